//! How large passages may be: what the embedding model cannot take in is not found by it.

use std::{fmt, sync::Arc};

use lectern_embed::{Embedder, approximate_tokens};
use lectern_shared::config::{EmbedderKind, EmbeddingSettings};

/// Tokens of a text that are left to the header that is embedded with a passage: its document's name and its headings.
const HEADER: usize = 34;
/// What the usual local models take in, their own tokens not counted.
const USUAL: usize = 254;

/// Counts tokens as the model does, and knows how many of them a passage may have. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenCounter {
    embedder: Option<Arc<dyn Embedder>>,
    /// The most tokens that a text may have, if any number is too large.
    limit: Option<usize>,
}

impl TokenCounter {
    /// For the model that is there; without one, for the model that may come, so that passages need not be cut anew for it.
    pub(crate) fn of(embedder: Option<Arc<dyn Embedder>>, settings: &EmbeddingSettings) -> Self {
        let limit = match (&embedder, settings.kind) {
            (Some(embedder), _) => Some(embedder.max_tokens()),
            (None, EmbedderKind::None) => None,
            (None, EmbedderKind::OpenAiCompatible) => Some(settings.max_tokens),
            (None, EmbedderKind::Auto | EmbedderKind::Local) => Some(USUAL),
        };
        Self { embedder, limit }
    }

    /// For a model that takes in so many tokens.
    #[cfg(test)]
    pub(crate) fn limited(limit: usize) -> Self {
        Self { embedder: None, limit: Some(limit) }
    }

    /// How many tokens a text has. Computes.
    pub(crate) fn count(&self, text: &str) -> usize {
        match &self.embedder {
            Some(embedder) => embedder.count_tokens(text),
            None => approximate_tokens(text),
        }
    }

    /// The most tokens of a passage.
    pub(crate) fn most(&self) -> Option<usize> {
        self.limit.map(|limit| limit.saturating_sub(HEADER).max(limit / 4 * 3).max(1))
    }

    /// The beginning of a header that leaves room for the largest passage.
    pub(crate) fn fit<'t>(&self, header: &'t str) -> &'t str {
        let Some((limit, most)) = self.limit.zip(self.most()) else { return header };
        let room = limit - most.min(limit);
        if self.count(header) <= room {
            return header;
        }
        // A token is about three characters and hardly ever less than one.
        let mut end = header.floor_char_boundary(room * 3);
        while end > 0 && self.count(header.get(..end).unwrap_or_default()) > room {
            end = header.floor_char_boundary(end - end.div_ceil(8).min(end));
        }
        header.get(..end).unwrap_or_default()
    }
}

/// What passages depend on, to tell when they must be cut anew.
impl fmt::Display for TokenCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.embedder.as_ref().and_then(|embedder| embedder.space().fact("tokenizer"));
        write!(f, "{:?} {}", self.limit, counted.unwrap_or("approximate"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_leaves_room_for_its_header() {
        assert_eq!(TokenCounter::limited(254).most(), Some(220));
        assert_eq!(TokenCounter::limited(8_191).most(), Some(8_157));
        assert_eq!(TokenCounter::limited(32).most(), Some(24));
        assert_eq!(TokenCounter::default().most(), None);
    }

    #[test]
    fn a_long_header_is_cut_to_its_room_and_a_short_one_is_not() {
        let sizing = TokenCounter::limited(254);
        assert_eq!(sizing.fit("Terms of use\nLiability"), "Terms of use\nLiability");
        let long = "Überlänge und mehr ".repeat(50);
        let cut = sizing.fit(&long);
        assert!(long.starts_with(cut) && cut.len() > 40, "{cut}");
        assert!(sizing.count(cut) <= HEADER);
        assert_eq!(TokenCounter::default().fit(&long), long);
    }
}
