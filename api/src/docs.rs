//! The OpenAPI document, and pages to browse it. They need no credentials, and load nothing from anywhere else.

use std::sync::LazyLock;

use axum::{
    Router,
    body::Bytes,
    extract::{Path, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, header},
    response::Redirect,
    routing::get,
};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tokio::task::spawn_blocking;

use crate::{
    error::ApiError, error_response::unknown_path, openapi::ApiDescription, response::ApiResult,
    state::AppState, static_file::StaticFile,
};

/// The pages may run and ask for nothing but what this service serves, in no other site's frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// A file of Swagger UI, which the build script takes out of its archive.
macro_rules! vendored {
    ($name:literal, $content_type:literal) => {
        ($name, $content_type, include_bytes!(concat!(env!("OUT_DIR"), "/", $name)))
    };
}

/// What the pages need of Swagger UI, by name and content type. All else of it (source maps, other builds, a sign-in that is not
/// ours) is not served.
const VENDORED: [(&str, &str, &[u8]); 3] = [
    vendored!("swagger-ui.css", "text/css; charset=utf-8"),
    vendored!("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    vendored!("favicon-32x32.png", "image/png"),
];

/// The files of the pages.
static PAGES: LazyLock<StaticFiles> = LazyLock::new(StaticFiles::new);

/// The document as it is answered; none when it cannot be written. It blocks.
fn write(description: &ApiDescription) -> Option<StaticFile> {
    let json = description.document().to_json();
    let json = json.inspect_err(|error| tracing::error!(%error, "there is no OpenAPI document"));
    json.ok().map(|json| StaticFile::new("application/json", Bytes::from(json)))
}

/// What [`write`] gives, which begins for whoever asks first. It goes on when they leave meanwhile, for those who ask next.
fn written_once(description: ApiDescription) -> Shared<BoxFuture<'static, Option<StaticFile>>> {
    let written = async { spawn_blocking(move || write(&description)).await.ok().flatten() };
    written.boxed().shared()
}

/// The paths of the document and the pages. They are for readers of the interface and no part of it.
#[expect(clippy::disallowed_methods, reason = "the document does not describe itself and its pages")]
pub(crate) fn router(description: ApiDescription) -> Router<AppState> {
    let written = written_once(description);
    let json = async move |headers: HeaderMap| {
        written.await.map(|json| json.answer(&headers)).ok_or_else(ApiError::internal)
    };
    Router::new()
        .route("/openapi.json", get(json))
        // Relative, so that it is right behind a proxy which serves this under a path of its own.
        .route("/docs", get(async || Redirect::permanent("docs/")))
        .route("/docs/", get(async |headers: HeaderMap| PAGES.answer("index.html", &headers).await))
        .route(
            "/docs/{file}",
            get(async |file: Result<Path<String>, PathRejection>, headers: HeaderMap| match file {
                Ok(Path(file)) => PAGES.answer(&file, &headers).await,
                // Bytes that are no text name nothing.
                Err(_) => Err(unknown_path().await),
            }),
        )
}

/// Every file of the pages, by name. Nothing is looked up anywhere else, so no name leads out of here.
struct StaticFiles(Vec<(&'static str, StaticFile)>);

impl StaticFiles {
    fn new() -> Self {
        let page = Bytes::from_static(include_bytes!("docs/index.html"));
        let script = Bytes::from_static(include_bytes!("docs/start.js"));
        let mut files = vec![
            ("index.html", StaticFile::new("text/html; charset=utf-8", page)),
            ("start.js", StaticFile::new("text/javascript; charset=utf-8", script)),
        ];
        let vendored = |(name, content_type, bytes): (&'static str, &str, &'static [u8])| {
            (name, StaticFile::new(content_type, Bytes::from_static(bytes)))
        };
        files.extend(VENDORED.map(vendored));
        Self(files)
    }

    async fn answer(&self, name: &str, headers: &HeaderMap) -> ApiResult {
        let Some((_, file)) = self.0.iter().find(|(known, _)| *known == name) else {
            return Err(unknown_path().await);
        };
        let mut response = file.answer(headers);
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_asks_first_and_leaves_takes_the_document_from_nobody() {
        let written = written_once(crate::operations().1);
        // Asked once, and left.
        drop(written.clone().now_or_never());
        assert!(written.await.is_some());
    }

    #[test]
    fn every_file_that_the_page_names_is_served_and_it_names_no_other_site() {
        let page = include_str!("docs/index.html");
        let files = StaticFiles::new().0;
        let mut named = 0;
        for attribute in ["href=\"", "src=\""] {
            for rest in page.split(attribute).skip(1) {
                let name = rest.split('"').next().unwrap();
                assert!(files.iter().any(|(known, _)| *known == name), "{name}");
                named += 1;
            }
        }
        assert_eq!(named, VENDORED.len() + 1, "each file but the page itself is named once");
        assert_eq!(files.len(), named + 1);
        for text in [page, include_str!("docs/start.js")] {
            assert!(
                !text.contains("//"),
                "an address of another host, or a comment that the browser needs not"
            );
        }
    }

    #[test]
    fn the_policy_allows_no_inline_code_which_the_page_has_none_of() {
        let page = include_str!("docs/index.html");
        assert!(!POLICY.to_str().unwrap().contains("unsafe"));
        assert!(page.matches("<script").count() == page.matches("<script src=").count());
        assert!(!page.contains("<style") && !page.contains("style=") && !page.contains(" on"));
    }
}
