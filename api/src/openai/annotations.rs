//! Where an answer cites: a mark for each `[n]`, with a link that opens the passage.

use lectern_agents::run::{AnswerSpan, CitationView, trace::PlaceView};
use lectern_shared::{
    ids::{ChunkId, DocumentId, WorkspaceId},
    model::place::SourceSpan,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    error::ApiError,
    public_address::PublicAddress,
    services::{
        actor::{Actor, Permission},
        citations::{CitationLinks, PassageReference},
    },
};

/// What is known of a cited passage besides what these clients read.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CitationDetail {
    /// The number in the answer's `[n]`.
    n: usize,
    /// The document.
    #[schema(value_type = String)]
    pub(super) document_id: DocumentId,
    /// The passage of it.
    #[schema(value_type = String)]
    chunk_id: ChunkId,
    /// The page that the words begin on, where the document has pages; the passage's first where that is not known.
    #[schema(required = true)]
    page: Option<u32>,
    /// Where it stands in the document.
    #[schema(value_type = PlaceView)]
    place: SourceSpan,
    /// The words that are quoted. When the answer quotes none: the passage's sentence that supports it best, or nothing.
    quote: String,
    /// The answer quotes these words, and they were found in the document's text.
    verified: bool,
}

/// A marker of an answer, with what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CitedMarker {
    pub(super) span: AnswerSpan,
    /// Opens the passage.
    pub(super) url: String,
    /// The document's name.
    pub(super) title: String,
    pub(super) detail: CitationDetail,
}

/// Makes the address that opens a cited passage.
pub(super) struct CitationLinker(Box<LinkFunction>);

type LinkFunction = dyn Fn(&CitationView) -> Result<String, ApiError> + Send + Sync;

impl CitationLinker {
    /// Links for whoever asks, at the address by which they reach the service.
    ///
    /// # Errors
    /// 403, for whoever may not see what is cited.
    pub(super) fn new(links: CitationLinks, address: PublicAddress, actor: &Actor) -> Result<Self, ApiError> {
        let workspace = actor.may(Permission::ReadCitations)?.workspace_id;
        Ok(Self::of(move |citation| Ok(address.link(&path(&links, workspace, citation)?))))
    }

    fn of(link: impl Fn(&CitationView) -> Result<String, ApiError> + Send + Sync + 'static) -> Self {
        Self(Box::new(link))
    }

    /// The markers of an answer that has these citations, in the order in which they stand there. A citation for which no link can be
    /// made is left out: the answer is right without it.
    pub(super) fn markers(&self, citations: &[CitationView]) -> Vec<CitedMarker> {
        let mut markers = Vec::new();
        for citation in citations {
            match (self.0)(citation) {
                Ok(url) => markers.extend(markers_of(citation, &url)),
                Err(error) => tracing::error!(code = error.code, "a cited passage cannot be linked to"),
            }
        }
        markers.sort_by_key(|marker: &CitedMarker| (marker.span.start, marker.detail.n));
        markers
    }
}

fn path(links: &CitationLinks, workspace: WorkspaceId, citation: &CitationView) -> Result<String, ApiError> {
    let passage = PassageReference {
        document: citation.document_id,
        chunk: citation.chunk_id,
        quote: citation.quote_range.clone(),
    };
    links.path(workspace, &passage)
}

fn markers_of(citation: &CitationView, url: &str) -> impl Iterator<Item = CitedMarker> {
    citation.markers.iter().map(move |span| CitedMarker {
        span: *span,
        url: url.to_owned(),
        title: citation.document_name.clone(),
        detail: CitationDetail {
            n: citation.n,
            document_id: citation.document_id,
            chunk_id: citation.chunk_id,
            page: citation.page.or(citation.place.page),
            place: citation.place.clone(),
            quote: citation.quote.clone(),
            verified: citation.verified,
        },
    })
}

/// Citations for the tests of both ways to ask.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// Links that name the number of what they open.
    pub(in crate::openai) fn linker() -> CitationLinker {
        CitationLinker::of(|citation| Ok(format!("https://lectern.example/cite/{}", citation.n)))
    }

    /// A citation with this number, for every place in the answer at which its marker stands.
    pub(in crate::openai) fn citation(n: usize, answer: &str) -> CitationView {
        let marker = format!("[{n}]");
        let start = |at: usize| answer[..at].chars().count();
        let spans = answer
            .match_indices(&marker)
            .map(|(at, found)| AnswerSpan { start: start(at), end: start(at) + found.len() });
        CitationView {
            n,
            document_id: DocumentId::generate(),
            document_name: format!("report {n}.pdf"),
            chunk_id: ChunkId::from(uuid::Uuid::from_u128(7)),
            place: SourceSpan { page: Some(2), page_end: Some(2), ..SourceSpan::default() },
            page: Some(2),
            url: None,
            quote: "had sailed the route twice before".to_owned(),
            verified: true,
            markers: spans.collect(),
            quote_range: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        testing::{citation, linker},
        *,
    };

    /// What a client finds between the indices of a mark: they count code points.
    fn marked(answer: &str, marker: &CitedMarker) -> String {
        let AnswerSpan { start, end } = marker.span;
        answer.chars().skip(start).take(end - start).collect()
    }

    #[test]
    fn every_marker_is_found_by_code_points_and_in_the_order_of_the_text() {
        let answer = "Grüße 👩‍👩‍👧 e\u{301} [2], then [1] 🚢 and again [2].";
        let markers = linker().markers(&[citation(1, answer), citation(2, answer)]);
        let found: Vec<_> = markers.iter().map(|marker| marked(answer, marker)).collect();
        assert_eq!(found, ["[2]", "[1]", "[2]"]);
        assert_eq!(markers[0].url, "https://lectern.example/cite/2");
        assert_eq!((markers[1].title.as_str(), markers[1].detail.page), ("report 1.pdf", Some(2)));
    }

    #[test]
    fn what_no_link_can_be_made_for_leaves_the_others() {
        let linker = CitationLinker::of(|citation| match citation.n {
            1 => Err(ApiError::internal()),
            n => Ok(n.to_string()),
        });
        let answer = "[1] and [2]";
        let markers = linker.markers(&[citation(1, answer), citation(2, answer)]);
        assert_eq!(markers.iter().map(|marker| marker.detail.n).collect::<Vec<_>>(), [2]);
    }
}
