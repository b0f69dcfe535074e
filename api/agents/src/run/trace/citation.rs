//! The sources of an answer, and where they stand.

use std::{collections::HashMap, ops::Range};

use lectern_shared::{
    ids::{ChunkId, DocumentId},
    model::place::SourceSpan,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    answer::{AnswerQuotations, cite::AnswerCitation},
    run::sources::NumberedSource,
};

/// A source of the answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Citation)]
#[serde(rename_all = "camelCase")]
pub struct CitationView {
    /// The number in the answer's `[n]`.
    pub n: usize,
    /// The document.
    #[schema(value_type = String)]
    pub document_id: DocumentId,
    /// Its name.
    pub document_name: String,
    /// The passage of it.
    #[schema(value_type = String)]
    pub chunk_id: ChunkId,
    /// Where the passage stands in the document.
    #[schema(value_type = PlaceView)]
    pub place: SourceSpan,
    /// The page that the words begin on, of a document with pages. Null when that is not known, such as for a passage over several pages of
    /// which nothing is quoted. Traces of before this was noted do not have it.
    #[schema(required = false)]
    pub page: Option<u32>,
    /// Where the words can be opened: the document's address, at the page of a PDF (`#page=7`) or the moment of a video. Of several addresses
    /// it is the one that the passage is from. Null for documents that were uploaded or came as text, and for an address with a key in its query.
    #[schema(required = true)]
    pub url: Option<String>,
    /// The words that are quoted. When the answer quotes none: the passage's sentence that supports it best.
    pub quote: String,
    /// The answer quotes these words, and they were found in the document's text.
    pub verified: bool,
    // What follows is for faces that say more of an answer. It is no part of a trace, which is compared with that of a replay.
    /// The markers in the answer that stand for it, in order.
    #[serde(skip)]
    pub markers: Vec<AnswerSpan>,
    /// Where the quoted words stand in the passage's text, in bytes; none when they were not found. What goes on in the next passage
    /// ends where this one does.
    #[serde(skip)]
    pub quote_range: Option<Range<usize>>,
}

impl CitationView {
    /// Whether its words are the answer's alone: in quotation marks there, and not in the passage.
    pub fn is_misquoted(&self, quotations: &AnswerQuotations) -> bool {
        !self.verified && self.quote_range.is_none() && quotations.holds(&self.quote)
    }

    pub(in crate::run) fn new(source: &NumberedSource, cited: &AnswerCitation) -> Option<Self> {
        let passage = source.part(cited.range.as_ref())?;
        let page = source.page(passage, cited.range.as_ref());
        Some(Self {
            n: source.n,
            document_id: passage.document_id,
            document_name: passage.document_name.clone(),
            chunk_id: passage.chunk_id,
            place: passage.place.clone(),
            page,
            url: passage.url_on(page),
            quote: cited.quote.clone(),
            verified: cited.verified,
            markers: cited
                .markers
                .iter()
                .map(|bytes| AnswerSpan { start: bytes.start, end: bytes.end })
                .collect(),
            quote_range: cited.range.as_ref().and_then(|range| passage.own_range(range)),
        })
    }
}

/// A stretch of an answer, in Unicode code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerSpan {
    /// The first character.
    pub start: usize,
    /// The first one after it.
    pub end: usize,
}

impl AnswerSpan {
    /// Makes code points of the markers of citations, which are in bytes of this answer.
    pub(in crate::run) fn count_characters(answer: &str, citations: &mut [CitationView]) {
        let spans = citations.iter().flat_map(|citation| &citation.markers);
        let mut ends: Vec<usize> = spans.flat_map(|span| [span.start, span.end]).collect();
        ends.sort_unstable();
        ends.dedup();
        let (mut bytes, mut characters) = (0, 0);
        let mut counted = HashMap::with_capacity(ends.len());
        for end in ends {
            // A place that is not in the answer marks nothing.
            let Some(text) = answer.get(bytes..end) else { continue };
            (bytes, characters) = (end, characters + text.chars().count());
            counted.insert(end, characters);
        }
        let in_characters =
            |span: &Self| Some(Self { start: *counted.get(&span.start)?, end: *counted.get(&span.end)? });
        for citation in citations {
            citation.markers = citation.markers.iter().filter_map(in_characters).collect();
        }
    }
}

/// Where a passage stands in its source. Only what the kind of source has is present; the offsets always are.
#[derive(ToSchema)]
#[schema(as = Place, rename_all = "camelCase")]
#[allow(dead_code, reason = "describes `Place`, which writes itself")]
pub struct PlaceView {
    /// PDF: the first page that it touches, counted from 1.
    #[schema(required = false, minimum = 1)]
    page: u32,
    /// PDF: the last page that it touches.
    #[schema(required = false, minimum = 1)]
    page_end: u32,
    /// PDF: where each page begins that it touches besides the first, in Unicode code points of the extracted text. Not there for a passage on
    /// one page, and for what was read before version 0.2.
    #[schema(required = false)]
    page_starts: Vec<u64>,
    /// URL, of several addresses: the number of the one that it is from, counted from 1.
    #[schema(required = false, minimum = 1)]
    address: u32,
    /// CSV: the first data row, counted from 1 without the header.
    #[schema(required = false, minimum = 1)]
    row: u64,
    /// CSV: the last data row.
    #[schema(required = false, minimum = 1)]
    row_end: u64,
    /// VIDEO: where it begins, in seconds.
    #[schema(required = false)]
    start: f64,
    /// VIDEO: where it ends, in seconds.
    #[schema(required = false)]
    end: f64,
    /// Pages with structure, and PDFs with an outline: the headings above it, outermost first.
    #[schema(required = false)]
    heading: Vec<String>,
    /// Where it begins in the extracted text, in Unicode code points.
    char_start: u64,
    /// Where it ends in the extracted text, in Unicode code points; not included.
    char_end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sources::{RetrievedExcerpt, SourceRegistry};

    #[test]
    fn markers_are_counted_in_code_points_of_the_answer() {
        let answer = "e\u{301}🌊 [1] and “ü” [2]";
        let source = RetrievedExcerpt::whole(DocumentId::generate(), "name", SourceSpan::default(), "text");
        let mut sources = SourceRegistry::default();
        sources.add(vec![source]);
        let marker = |text: &str| answer.find(text).map(|start| start..start + text.len()).unwrap();
        let cited = AnswerCitation {
            n: 1,
            quote: String::new(),
            verified: false,
            range: Some(1..3),
            // What lies behind the end of the answer marks nothing.
            markers: vec![marker("[1]"), marker("[2]"), 90..93],
        };
        let mut citations = vec![CitationView::new(sources.get(1).unwrap(), &cited).unwrap()];
        AnswerSpan::count_characters(answer, &mut citations);
        let characters: Vec<char> = answer.chars().collect();
        let text = |span: &AnswerSpan| characters[span.start..span.end].iter().collect::<String>();
        assert_eq!(citations[0].markers.iter().map(text).collect::<Vec<_>>(), ["[1]", "[2]"]);
        assert_eq!(citations[0].quote_range, Some(1..3));
    }
}
