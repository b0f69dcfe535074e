//! What an index finds, by words and by meaning, and the one ranking that is made of it.

use std::sync::Arc;

use lectern_embed::Embedder;
use lectern_shared::model::document::ActiveDocument;

use super::{
    PassageKey,
    active::ActiveSet,
    fuse::{RankedList, fuse},
};

/// What words and meaning count. Measured: anything between 0.4 and 0.6 is within the noise.
const WEIGHT: f32 = 0.5;

/// A question as a model sees it.
pub(super) struct EmbeddedQuestion {
    pub(super) embedder: Arc<dyn Embedder>,
    pub(super) vector: Vec<f32>,
    /// Only passages in languages that the model knows count.
    pub(super) known_only: bool,
}

impl EmbeddedQuestion {
    /// Whether what the model says of a document counts.
    pub(super) fn is_about(&self, document: &ActiveDocument) -> bool {
        document.embedding_space == Some(self.embedder.space().id)
            && (!self.known_only || document.language().is_none_or(|language| self.embedder.knows(language)))
    }
}

/// The lists that were found, and what they were found with.
pub(super) struct CandidateLists {
    pub(super) lexical: Vec<(PassageKey, f32)>,
    pub(super) dense: Vec<DenseCandidates>,
}

/// What is near a question in one embedding space.
pub(super) struct DenseCandidates {
    pub(super) asked: EmbeddedQuestion,
    pub(super) hits: Vec<(PassageKey, f32)>,
    /// Whether there was no room for more.
    pub(super) is_full: bool,
}

impl CandidateLists {
    /// Whether no list has anything: a model may have been asked, and know none of the documents' languages.
    pub(super) fn is_empty(&self) -> bool {
        self.lexical.is_empty() && self.dense.iter().all(|found| found.hits.is_empty())
    }

    /// One ranking of what was found.
    pub(super) fn rank(&self, active: &ActiveSet) -> Vec<(PassageKey, f32)> {
        let lexical = (
            None,
            RankedList { hits: self.lexical.clone(), weight: WEIGHT, zero_beyond: true, is_cut: false },
        );
        let dense = self.dense.iter().map(|DenseCandidates { asked, hits, is_full }| {
            let list =
                RankedList { hits: hits.clone(), weight: WEIGHT, zero_beyond: false, is_cut: *is_full };
            (Some(asked), list)
        });
        let found = std::iter::once(lexical).chain(dense).filter(|(_, list)| !list.hits.is_empty());
        let (asked, mut lists): (Vec<_>, Vec<_>) = found.unzip();
        // A list alone keeps its own scores.
        if lists.len() < 2 {
            return lists.pop().map(|list| list.hits).unwrap_or_default();
        }
        fuse(&lists, |(generation, _), number| match asked.get(number) {
            Some(Some(asked)) => {
                active.document(*generation).is_some_and(|document| asked.is_about(document))
            }
            Some(None) | None => true,
        })
    }
}
