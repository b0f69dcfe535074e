//! `SubRip`: numbered cues, a comma before the milliseconds.

use super::{
    Found,
    blocks::{self, Dialect, arrow},
};

/// Reads all cues.
pub(super) fn read(text: &str) -> Found {
    blocks::read(text, &Dialect { timing: arrow, is_webvtt: false })
}
