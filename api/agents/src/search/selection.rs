//! Which of a workspace's documents a search is about.

use std::{collections::HashSet, sync::Arc};

use lectern_shared::{
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::document::ActiveDocument,
};

use super::{
    MetadataFilter, SearchError,
    active::{ActiveSet, CorpusSummary},
    judged::FilterDigest,
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
        let named = self.documents.iter().map(|document| is_named(document)).collect();
        let meant = self.meant(metadata, workspace, named, filter).await?;
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

    /// For each of the documents whether it is named and meets the filter.
    async fn meant(
        &self,
        metadata: &MetadataCache,
        workspace: WorkspaceId,
        named: Vec<bool>,
        filter: &MetadataFilter,
    ) -> Result<Vec<bool>, SearchError> {
        if filter.is_empty() {
            return Ok(named);
        }
        let digest = FilterDigest::of(filter);
        if let Some(met) = digest.and_then(|digest| self.judged.get(digest)) {
            return Ok(named.iter().zip(met.iter()).map(|(named, met)| *named && *met).collect());
        }
        let places: Vec<usize> =
            named.iter().enumerate().filter_map(|(place, named)| named.then_some(place)).collect();
        let met = metadata.met(workspace, self, &places, filter).await?;
        if let Some(digest) = digest
            && places.len() == met.len()
        {
            self.judged.put(digest, met.as_slice().into());
        }
        Ok(met)
    }
}
