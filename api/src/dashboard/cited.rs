//! The page that the link of a citation opens.

use askama::Template;
use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
};

use super::{
    PagePolicy, ROBOTS, html,
    text::{filters, place_words},
};
use crate::{
    error_response::unknown_path,
    response::ApiResult,
    services::{
        citations::{CitationLinks, CitedPassage},
        pages::PageService,
    },
    v1::documents::image_response,
};
use lectern_derive::handler;
use lectern_index::lexical::language_tag;

#[derive(Template)]
#[template(path = "cited.html")]
struct CitedPassagePage<'a> {
    document: &'a str,
    place: &'a str,
    headings: &'a str,
    url: &'a str,
    before: &'a str,
    lead: &'a str,
    quote: &'a str,
    rest: &'a str,
    after: &'a str,
    image: Option<PageImage<'a>>,
}

impl CitedPassagePage<'_> {
    /// That of the whole passage, which tells it better than the few words that are quoted.
    fn language(&self) -> &'static str {
        language_tag(&[self.lead, self.quote, self.rest].concat())
    }
}

/// The picture of a page that a passage is on.
struct PageImage<'a> {
    /// Its path from the page's folder.
    path: &'a str,
    /// What is on it, for those who do not see it.
    words: String,
    /// Of the page, for the space that is kept free until it is there.
    width: u32,
    height: u32,
}

/// Says that a passage is gone, and nothing of what stands in its document now, which nobody cited.
#[derive(Template)]
#[template(path = "changed.html")]
struct ChangedDocumentPage<'a> {
    document: &'a str,
}

/// Shows the passage of a citation. Whoever has the link may see it.
#[handler]
pub(super) async fn show(
    State(links): State<CitationLinks>,
    token: Result<Path<String>, PathRejection>,
) -> ApiResult {
    // Bytes that are no text name nothing.
    let Ok(Path(token)) = token else { return Err(unknown_path().await) };
    let cited = links.open(&token).await?;
    match &cited.passage {
        Some(passage) => show_passage(&cited.document_name, passage, &token),
        None => {
            html(&PagePolicy::Static, StatusCode::OK, &ChangedDocumentPage { document: &cited.document_name })
        }
    }
}

/// Shows the page of a citation as it looks, with its words marked: of several the one that they are on. Whoever has the link may see it.
#[handler]
pub(super) async fn page(
    State(links): State<CitationLinks>,
    State(pages): State<PageService>,
    headers: HeaderMap,
    token: Result<Path<String>, PathRejection>,
) -> ApiResult {
    let Ok(Path(token)) = token else { return Err(unknown_path().await) };
    let mut response = image_response(&pages, links.pages(&token).await?, &headers).await?;
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response.headers_mut().insert(ROBOTS, HeaderValue::from_static("noindex"));
    Ok(response)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of pages are within bounds"
)]
fn show_passage(document: &str, passage: &CitedPassage, token: &str) -> ApiResult {
    let CitedPassage { place, page, page_size, url, before, lead, quote, rest, after } = passage;
    let path = format!("{token}/page.png");
    let image = page_size.map(|(width, height)| PageImage {
        path: &path,
        words: picture_words(passage),
        width: width.round() as u32,
        height: height.round() as u32,
    });
    let headings = place.heading.as_deref().unwrap_or_default().join(" › ");
    let place = place_words(&place.cited_on(*page));
    let url = url.as_deref().unwrap_or_default();
    let page = CitedPassagePage {
        document,
        place: &place,
        headings: &headings,
        url,
        before,
        lead,
        quote,
        rest,
        after,
        image,
    };
    html(&PagePolicy::Static, StatusCode::OK, &page)
}

/// Which page a picture shows, and what is marked on it.
fn picture_words(passage: &CitedPassage) -> String {
    let marked = if passage.quote.is_empty() {
        "the passage marked if it is"
    } else {
        "the quoted words marked if they are"
    };
    let page = match passage.pages() {
        Some((first, last)) if first < last => {
            format!("One of the pages {first} to {last}")
        }
        Some((page, _)) => format!("Page {page}"),
        None => "A page".to_owned(),
    };
    format!("{page}, with {marked} found on it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_wrote_is_text_on_the_page_wherever_it_stands() {
        let hostile = "</title><script>alert(1)</script>\"' onmouseover=x";
        let page = CitedPassagePage {
            document: hostile,
            place: hostile,
            headings: hostile,
            url: "https://a.example/?q=\"><script>",
            before: hostile,
            lead: hostile,
            quote: hostile,
            rest: hostile,
            after: hostile,
            image: Some(PageImage { path: hostile, words: hostile.to_owned(), width: 595, height: 842 }),
        };
        let text = page.render().unwrap();
        assert!(!text.contains("<script") && text.matches("</title>").count() == 1, "{text}");
        let link = text.split("href=\"").find(|part| part.starts_with("https://")).unwrap();
        assert!(link.split('"').next().unwrap().ends_with("script&#62;"), "{link}");
        let changed = ChangedDocumentPage { document: hostile }.render().unwrap();
        assert!(!changed.contains("<script"), "{changed}");
    }

    #[test]
    fn what_there_is_not_leaves_nothing_on_the_page() {
        let page = CitedPassagePage {
            document: "Note",
            place: "",
            headings: "",
            url: "",
            before: "",
            lead: "What it says.",
            quote: "",
            rest: "",
            after: "",
            image: None,
        };
        let text = page.render().unwrap();
        assert!(text.contains("What it says.") && text.contains("<title>Note"), "{text}");
        for absent in ["<mark", "<img", "<a ", "class=\"context\"", "class=\"place\""] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
    }
}
