//! `WebVTT`, with or without its header.

use super::{
    FoundCues,
    blocks::{self, BlockDialect, arrow},
};

/// What the first line of the format begins with.
const SIGNATURE: &str = "WEBVTT";

/// Whether a text without a mark of byte order begins like one.
pub(super) fn is_webvtt(head: &str) -> bool {
    let head = head.trim_start();
    head.strip_prefix(SIGNATURE).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Reads all cues. Metadata between the signature and the first blank line are no text.
pub(super) fn read(text: &str) -> FoundCues {
    let mut text = text.trim_start();
    if is_webvtt(text) {
        let is_header = |line: &str| !line.trim().is_empty() && arrow(line).is_none();
        while let Some(line) = text.split_inclusive('\n').next().filter(|line| is_header(line)) {
            text = text.get(line.len()..).unwrap_or_default();
        }
    }
    blocks::read(text, &BlockDialect { timing: arrow, is_webvtt: true })
}
