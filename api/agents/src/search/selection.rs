//! Which of a workspace's documents a search is about.

use std::{collections::HashSet, sync::Arc};

use lectern_shared::{
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::document::ActiveDocument,
};

use super::{
    MetadataFilter, SearchError,
    active::{ActiveSet, CorpusSummary},
    metadata::MetadataCache,
};

/// Which of the documents a search is about.
pub(super) struct DocumentSelection {
    /// Their generations.
    pub(super) generations: Vec<GenerationId>,
    /// Those of the others.
    pub(super) others: Vec<GenerationId>,
    /// What they are like.
    pub(super) summary: CorpusSummary,
}

impl ActiveSet {
    /// Those of the documents that are named, all when none are, and that meet the filter.
    pub(super) async fn select(
        self: &Arc<Self>,
        metadata: &MetadataCache,
        workspace: WorkspaceId,
        named: Option<&[DocumentId]>,
        filter: &MetadataFilter,
    ) -> Result<DocumentSelection, SearchError> {
        if named.is_none() && filter.is_empty() {
            let generations = self.documents.iter().map(|d| d.active_generation).collect();
            return Ok(DocumentSelection { generations, others: Vec::new(), summary: self.whole.clone() });
        }
        let named: Option<HashSet<DocumentId>> = named.map(|ids| ids.iter().copied().collect());
        let is_named =
            |document: &ActiveDocument| named.as_ref().is_none_or(|named| named.contains(&document.id));
        let meant: Vec<bool> = if filter.is_empty() {
            self.documents.iter().map(|document| is_named(document)).collect()
        } else {
            let places = self.documents.iter().enumerate().filter(|(_, document)| is_named(document));
            let places: Vec<usize> = places.map(|(place, _)| place).collect();
            metadata.met(workspace, self, &places, filter).await?
        };
        // In the order of the documents, so that ties break alike every time.
        let of = |wanted: bool| {
            let each = self.documents.iter().zip(&meant).filter(move |(_, meant)| **meant == wanted);
            each.map(|(document, _)| document.as_ref())
        };
        Ok(DocumentSelection {
            generations: of(true).map(|d| d.active_generation).collect(),
            others: of(false).map(|d| d.active_generation).collect(),
            summary: CorpusSummary::of(of(true)),
        })
    }
}
