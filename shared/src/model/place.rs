//! Where a passage stands in its source.

use serde::{Deserialize, Serialize};

/// Where a passage stands in its source. Only what the kind of source has is present; the offsets always are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceSpan {
    /// PDF: the first page that it touches, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// PDF: the last page that it touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_end: Option<u32>,
    /// CSV: the first data row, counted from 1 without the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// CSV: the last data row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_end: Option<u64>,
    /// VIDEO: where it begins, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// VIDEO: where it ends, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<f64>,
    /// Pages with structure, and PDFs with an outline: the headings above it, outermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<Vec<String>>,
    /// Where it begins in the extracted text, in Unicode code points.
    pub char_start: u64,
    /// Where it ends in the extracted text, in Unicode code points; not included.
    pub char_end: u64,
}

impl SourceSpan {
    /// The name of a passage's document and the headings above the passage, a line each: they are searched with its text, but
    /// are no part of what can be quoted. A heading that the passage begins with is not said twice.
    pub fn header(&self, document: &str, text: &str) -> String {
        let beginning = text.lines().next().unwrap_or_default();
        let headings = self.heading.iter().flatten().map(String::as_str);
        let mut lines = vec![document];
        lines.extend(headings.filter(|heading| !beginning.contains(heading)));
        lines.join("\n")
    }
}
