//! Pages for people, which the service renders itself: HTML that needs no script. The templates are in `api/templates`, and what users
//! wrote reaches HTML through their escaping alone. A handler calls one function of `services`; the router and
//! [`crate::http`] call what is here.

mod cited;

use askama::Template;
use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};

use crate::{
    error::{ApiError, ApiErrorKind},
    http::status_of,
    response::ApiResult,
    state::AppState,
    static_file::StaticFile,
};

/// A page loads its style and its pictures from this service, and nothing else from anywhere; it stands in no other site's frame.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// What is said for every link that opens nothing, so that nobody learns why.
const NOTHING_HERE: (&str, &str) = (
    "This link opens nothing",
    "It is not complete, or its time is over, or what it led to was deleted. Ask your question again to get a new one.",
);

/// The paths of the pages. They are for people, and no part of the interface for programs.
#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(crate) fn router() -> Router<AppState> {
    let style = StaticFile::new("text/css; charset=utf-8", Bytes::from_static(include_bytes!("style.css")));
    Router::new()
        .route("/cite/{token}", get(cited::show))
        .route("/cite/{token}/page.png", get(cited::page))
        .route("/assets/style.css", get(async move |headers: HeaderMap| style.answer(&headers)))
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    title: &'a str,
    message: &'a str,
    request_id: &'a str,
    /// The way from the page's folder to the root, under whatever path a proxy has put that.
    root: &'a str,
}

/// The answer to a person's request that failed, for a path that is so many folders below the root.
pub(crate) fn error_response(error: &ApiError, request_id: &str, depth: usize) -> Response {
    let (title, message) = if error.kind == ApiErrorKind::NotFound {
        NOTHING_HERE
    } else {
        ("This page cannot be shown", error.message.as_str())
    };
    let status = status_of(error);
    let root = "../".repeat(depth);
    html(status, &ErrorPage { title, message, request_id, root: &root })
        .unwrap_or_else(|_| (status, message.to_owned()).into_response())
}

/// A page as browsers get it. It may be for one person alone, so nobody in between keeps it, and its address goes to nobody.
fn html(status: StatusCode, page: &impl Template) -> ApiResult {
    let text = page.render().map_err(|error| {
        tracing::error!(%error, "a page could not be rendered");
        ApiError::internal()
    })?;
    let headers = [
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
        (ROBOTS, HeaderValue::from_static("noindex")),
    ];
    Ok((status, headers, Html(text)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_page_that_repeats_nothing_as_html() {
        let error = ApiError::new(ApiErrorKind::Unavailable, "unavailable", "<b>\"away\" & so on</b>");
        let page = ErrorPage { title: "Title", message: &error.message, request_id: "r-1", root: "" };
        let text = page.render().unwrap();
        assert!(!text.contains("<b>") && text.contains("away") && text.contains("r-1"), "{text}");
        let response = error_response(&error, "r-1", 1);
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    }

    #[test]
    fn the_style_loads_nothing_and_is_the_one_that_pages_name() {
        let style = include_str!("style.css");
        assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
        for (root, href) in [("", "\"assets/style.css\""), ("../../", "\"../../assets/style.css\"")] {
            let page = ErrorPage { title: "", message: "", request_id: "", root }.render().unwrap();
            assert!(page.contains(href), "{page}");
        }
    }
}
