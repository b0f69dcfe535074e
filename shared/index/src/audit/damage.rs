//! What is missing of a document that answers.

use std::collections::HashMap;

use lectern_db::checkup::SearchableDocument;
use lectern_shared::{
    ids::GenerationId,
    model::{document::SearchIndexInfo, job::JobState},
};

use crate::EntryMismatch;

/// What is wrong with a document, the worst of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentDamage {
    /// Only its index entries: its passages are whole.
    Entries(EntryMismatch),
    /// The row of its generation; its passages are whole.
    Row,
    /// Some of its passages, or all; `left` are there.
    Passages {
        /// How many are left.
        left: i64,
    },
}

/// What the index holds of each generation, as far as it could be asked.
pub(super) struct GenerationAudit {
    /// Passages that are stored.
    pub(super) passages: HashMap<GenerationId, i64>,
    /// Generations of which the index does not hold what it should; empty when it could not be asked.
    pub(super) entries: HashMap<GenerationId, EntryMismatch>,
}

/// How many passages a document should have: as its generation's row says, or what was told of it when that is gone.
pub(super) fn expected(document: &SearchableDocument) -> i64 {
    let row = document.chunks.filter(|chunks| *chunks > 0);
    row.or_else(|| {
        let told: SearchIndexInfo = serde_json::from_str(document.search_index.as_deref()?).ok()?;
        i64::try_from(told.chunks).ok()
    })
    .unwrap_or(0)
}

/// What is wrong with a document; none when nothing is.
pub(super) fn damage(document: &SearchableDocument, holdings: &GenerationAudit) -> Option<DocumentDamage> {
    let left = holdings.passages.get(&document.generation).copied().unwrap_or(0);
    if left == 0 || left != expected(document) {
        return Some(DocumentDamage::Passages { left });
    }
    if document.state.as_deref() != Some("active") {
        return Some(DocumentDamage::Row);
    }
    holdings.entries.get(&document.generation).copied().map(DocumentDamage::Entries)
}

/// Whether what is queued already will mend it.
pub fn is_under_way(document: &SearchableDocument, damage: DocumentDamage) -> bool {
    let has_job = matches!(document.job, Some(JobState::Queued | JobState::Running));
    has_job
        && match damage {
            DocumentDamage::Entries(_) => true,
            // Its row can be made again at once.
            DocumentDamage::Row => false,
            DocumentDamage::Passages { .. } => {
                document.source_forgotten && document.from_stored == Some(false)
            }
        }
}

#[cfg(test)]
mod tests {
    use lectern_shared::ids::{DocumentId, WorkspaceId};

    use super::*;

    fn document(state: Option<&str>, chunks: Option<i64>) -> SearchableDocument {
        SearchableDocument {
            id: DocumentId::generate(),
            workspace_id: WorkspaceId::generate(),
            generation: GenerationId::generate(),
            search_index: Some(
                r#"{"status":"READY","chunks":3,"pages":null,"tokens":9,"embeddingModel":null,"dimensions":null,
                    "contentHash":"","generation":"01890000-0000-7000-8000-000000000000","indexedAt":""}"#
                    .to_owned(),
            ),
            has_url: false,
            has_content: true,
            blob_key: None,
            source_forgotten: false,
            state: state.map(str::to_owned),
            chunks,
            embedding_space: None,
            job: Some(JobState::Done),
            from_stored: Some(false),
        }
    }

    fn holding(document: &SearchableDocument, passages: i64, incomplete: bool) -> GenerationAudit {
        GenerationAudit {
            passages: HashMap::from([(document.generation, passages)]),
            entries: incomplete
                .then_some((document.generation, EntryMismatch::Missing))
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn the_worst_of_what_is_missing_decides() {
        let whole = document(Some("active"), Some(3));
        assert_eq!(damage(&whole, &holding(&whole, 3, false)), None);
        assert_eq!(
            damage(&whole, &holding(&whole, 3, true)),
            Some(DocumentDamage::Entries(EntryMismatch::Missing))
        );
        assert_eq!(damage(&whole, &holding(&whole, 2, true)), Some(DocumentDamage::Passages { left: 2 }));
        let rowless = document(None, None);
        assert_eq!(damage(&rowless, &holding(&rowless, 3, true)), Some(DocumentDamage::Row));
        assert_eq!(damage(&rowless, &holding(&rowless, 0, true)), Some(DocumentDamage::Passages { left: 0 }));
        let superseded = document(Some("superseded"), Some(3));
        assert_eq!(damage(&superseded, &holding(&superseded, 3, false)), Some(DocumentDamage::Row));
    }

    #[test]
    fn a_job_that_only_indexes_again_brings_no_passages_back() {
        let mut document = document(Some("active"), Some(3));
        document.job = Some(JobState::Queued);
        document.from_stored = Some(true);
        assert!(is_under_way(&document, DocumentDamage::Entries(EntryMismatch::Missing)));
        assert!(!is_under_way(&document, DocumentDamage::Passages { left: 0 }));
        document.from_stored = Some(false);
        assert!(
            !is_under_way(&document, DocumentDamage::Passages { left: 0 }),
            "an unchanged source is not read"
        );
        document.source_forgotten = true;
        assert!(is_under_way(&document, DocumentDamage::Passages { left: 0 }));
        document.job = Some(JobState::Dead);
        assert!(!is_under_way(&document, DocumentDamage::Entries(EntryMismatch::Missing)));
    }
}
