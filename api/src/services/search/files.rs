//! Searching the files of one collection.

use std::collections::HashMap;

use lectern_agents::search::{MetadataFilter, PassageHit, SearchRequest};
use lectern_db as db;
use lectern_shared::{
    ids::{CollectionId, DocumentId},
    model::{document::FileLabel, search::SearchMode},
};

use super::SearchService;
use crate::{
    error::ApiError,
    services::actor::{Actor, Permission},
};

/// What to search for in the files of a collection.
pub(crate) struct FileQuery {
    pub(crate) collection: CollectionId,
    pub(crate) query: String,
    pub(crate) filter: MetadataFilter,
    pub(crate) limit: usize,
}

/// A passage, and what its document is as a file.
pub(crate) struct FilePassage {
    pub(crate) passage: PassageHit,
    pub(crate) label: FileLabel,
}

impl SearchService {
    /// The passages of a collection that answer best, best first.
    ///
    /// # Errors
    /// Not found, for a collection that is not the caller's.
    pub(crate) async fn search_files(
        &self,
        actor: &Actor,
        asked: FileQuery,
    ) -> Result<Vec<FilePassage>, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        let FileQuery { collection, query, filter, limit } = asked;
        let collections = [collection];
        let (epoch, documents) =
            tokio::try_join!(self.epoch(actor, workspace), self.collected(workspace, &collections))?;
        let (documents, mode) = (Some(documents.into()), SearchMode::Hybrid);
        let request = SearchRequest { workspace, query, documents, filter, mode, limit, rerank: None, epoch };
        let found = self.search.search(&request).await?.passages;
        let mut ids: Vec<DocumentId> = found.iter().map(|passage| passage.chunk.document_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let labels = db::documents::files::labels(&self.db, workspace, &ids).await?;
        let labels: HashMap<DocumentId, FileLabel> =
            labels.into_iter().map(|label| (label.id, label)).collect();
        // One that was deleted meanwhile has no name any more.
        let with_label = |passage: PassageHit| {
            let label = labels.get(&passage.chunk.document_id)?.clone();
            Some(FilePassage { passage, label })
        };
        Ok(found.into_iter().filter_map(with_label).collect())
    }
}
