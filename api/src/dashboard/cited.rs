//! The page that the link of a citation opens.

use std::time::Duration;

use askama::Template;
use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
};
use lectern_shared::model::place::SourceSpan;

use super::{ROBOTS, html};
use crate::{
    http::unknown_path,
    response::ApiResult,
    services::{
        citations::{CitationLinks, CitedPassage},
        pages::PageService,
    },
    v1::documents::image_response,
};

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

/// The picture of the page that a passage begins on.
struct PageImage<'a> {
    /// Its path from the page's folder.
    path: &'a str,
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
pub(super) async fn show(
    State(links): State<CitationLinks>,
    token: Result<Path<String>, PathRejection>,
) -> ApiResult {
    // Bytes that are no text name nothing.
    let Ok(Path(token)) = token else { return Err(unknown_path().await) };
    let cited = links.open(&token).await?;
    match &cited.passage {
        Some(passage) => show_passage(&cited.document_name, passage, &token),
        None => html(StatusCode::OK, &ChangedDocumentPage { document: &cited.document_name }),
    }
}

/// Shows the page of a citation as it looks, with its words marked: of several the one that they are on. Whoever has the link may see it.
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
    let CitedPassage { place, page_size, url, before, lead, quote, rest, after } = passage;
    let path = format!("{token}/page.png");
    let image = page_size.map(|(width, height)| PageImage {
        path: &path,
        width: width.round() as u32,
        height: height.round() as u32,
    });
    let headings = place.heading.as_deref().unwrap_or_default().join(" › ");
    let place = place_words(place);
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
    html(StatusCode::OK, &page)
}

/// Where a passage stands, as people say it; empty for a text that has no such places.
fn place_words(place: &SourceSpan) -> String {
    let pages = place.page.map(|page| numbered("Page", page.into(), place.page_end.map(u64::from)));
    let rows = place.row.map(|row| numbered("Row", row, place.row_end));
    let moments = place.start.and_then(moment).map(|start| match place.end.and_then(moment) {
        Some(end) if end != start => format!("{start}–{end}"),
        Some(_) | None => start,
    });
    [pages, rows, moments].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// `Page 3`, or `Pages 3–4`.
fn numbered(noun: &str, first: u64, last: Option<u64>) -> String {
    match last {
        Some(last) if last > first => format!("{noun}s {first}–{last}"),
        Some(_) | None => format!("{noun} {first}"),
    }
}

/// A moment of a video, `1:23` or `1:02:03`.
fn moment(seconds: f64) -> Option<String> {
    let whole = Duration::try_from_secs_f64(seconds).ok()?.as_secs();
    let (hours, minutes, seconds) = (whole / 3_600, whole / 60 % 60, whole % 60);
    Some(match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_as_people_say_it() {
        let none = SourceSpan::default;
        for (place, words) in [
            (none(), ""),
            (SourceSpan { page: Some(3), page_end: Some(3), ..none() }, "Page 3"),
            (SourceSpan { page: Some(3), page_end: Some(5), ..none() }, "Pages 3–5"),
            (SourceSpan { row: Some(1), row_end: Some(9), ..none() }, "Rows 1–9"),
            (SourceSpan { row: Some(7), ..none() }, "Row 7"),
            (SourceSpan { start: Some(83.9), end: Some(90.0), ..none() }, "1:23–1:30"),
            (SourceSpan { start: Some(3_723.0), end: Some(3_723.4), ..none() }, "1:02:03"),
            (SourceSpan { start: Some(f64::NAN), ..none() }, ""),
            (SourceSpan { start: Some(-1.0), ..none() }, ""),
        ] {
            assert_eq!(place_words(&place), words);
        }
    }

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
            image: Some(PageImage { path: hostile, width: 595, height: 842 }),
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
