//! What is not in the workspace that somebody is in may be in another one of theirs: a link is opened after a sign-in, which begins in
//! the account's own workspace, or while another one is chosen.

use askama::Template;
use axum::{
    extract::{FromRequestParts, Request},
    http::{Method, StatusCode, request::Parts},
    middleware::Next,
    response::Response,
};
use uuid::Uuid;

use super::{
    NOTHING_HERE, PagePolicy,
    frame::{Frame, Visitor, here, wants_json},
    html,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    request_id::RequestId,
    state::AppState,
};

#[derive(Template)]
#[template(path = "elsewhere.html")]
struct ElsewherePage {
    frame: Frame,
    title: &'static str,
    message: &'static str,
    /// The address that was opened, from the root, to come back to it in another workspace.
    here: String,
    request_id: String,
}

/// Whether it is a person who opens the page of one thing of a workspace, which has its id in its path.
pub(super) fn is_link(request: &Request) -> bool {
    request.method() == Method::GET
        && !wants_json(request.headers())
        && request.uri().path().split('/').nth(2).is_some_and(|id| Uuid::try_parse(id).is_ok())
}

/// Answers whoever opens a link. To members of several workspaces who find nothing, another one is offered.
pub(super) async fn answer(state: &AppState, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let asked = parts.clone();
    let response = next.run(Request::from_parts(parts, body)).await;
    let error = response.extensions().get::<ApiError>();
    if error.is_none_or(|error| error.kind != ApiErrorKind::NotFound) {
        return response;
    }
    // Boxed, as it is rarely needed, and every request would have the room for it.
    Box::pin(offer(asked, state)).await.unwrap_or(response)
}

/// The page that offers another workspace, if there is one. It says the same whether that has what was asked for or not: nobody is told
/// of what they may not see, nor that it exists.
async fn offer(mut asked: Parts, state: &AppState) -> Option<Response> {
    let frame = Visitor::from_request_parts(&mut asked, state).await.ok()?.frame;
    if frame.workspaces.iter().all(|choice| choice.is_chosen) {
        return None;
    }
    let (title, message) = NOTHING_HERE;
    let request_id = asked.extensions.get::<RequestId>().map(|id| id.as_str().to_owned()).unwrap_or_default();
    let page = ElsewherePage { frame, title, message, here: here(&asked.uri), request_id };
    html(&PagePolicy::Own, StatusCode::NOT_FOUND, &page).ok()
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::header};

    use super::*;

    #[test]
    fn only_the_page_of_one_thing_is_a_link() {
        let asked = |method: Method, path: &str, accepted: &str| {
            let request =
                axum::http::Request::builder().method(method).uri(path).header(header::ACCEPT, accepted);
            is_link(&request.body(Body::empty()).unwrap())
        };
        let thing = format!("/documents/{}?page=2", Uuid::now_v7());
        assert!(asked(Method::GET, &thing, "text/html"));
        assert!(!asked(Method::GET, &thing, "application/json"), "a script asks");
        assert!(!asked(Method::POST, &thing, "text/html"));
        for path in ["/", "/documents", "/documents/new", "/documents/duplicates", "/ask/help"] {
            assert!(!asked(Method::GET, path, "text/html"), "{path}");
        }
    }
}
