//! `SubRip`: numbered cues, a comma before the milliseconds.

use super::{
    FoundCues,
    blocks::{self, BlockDialect, arrow},
};

/// Reads all cues.
pub(super) fn read(text: &str) -> FoundCues {
    blocks::read(text, &BlockDialect { timing: arrow, is_webvtt: false })
}
