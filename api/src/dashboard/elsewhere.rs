//! Where those go on who are signed in and meet a failure: by the menu around its page. What is not in the workspace that somebody is
//! in may be in another one of theirs: a link is opened in a browser that is new to them, which begins in the account's own workspace,
//! or while another one is chosen.

use askama::Template;
use axum::{
    extract::{FromRequestParts, Request},
    http::{Method, StatusCode, request::Parts},
    middleware::Next,
    response::Response,
};
use uuid::Uuid;

use super::{
    FailureFrame, NOTHING_HERE, PagePolicy,
    frame::{Frame, Visitor, here},
    html,
};
use crate::{
    auth::PageWorkspace,
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

/// Whether it is the page of one thing of a workspace that somebody opens, which has its id in its path.
fn is_link(method: &Method, path: &str) -> bool {
    method == Method::GET && path.split('/').nth(2).is_some_and(|id| Uuid::try_parse(id).is_ok())
}

/// Answers a person who is signed in. The page of a failure gets the menu around it; to members of several workspaces who open a link
/// and find nothing, another one is offered.
pub(super) async fn answer(state: &AppState, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let asked = parts.clone();
    let response = next.run(Request::from_parts(parts, body)).await;
    let failure = response.extensions().get::<ApiError>().map(|error| error.kind);
    match failure {
        // Refusals cost next to nothing, and who it is cannot be read from a store that is away.
        None
        | Some(ApiErrorKind::Unauthenticated | ApiErrorKind::RateLimited | ApiErrorKind::Unavailable) => {
            response
        }
        // Boxed, as it is rarely needed, and every request would have the room for it.
        Some(kind) => Box::pin(framed(asked, state, kind, response)).await,
    }
}

/// A failure with what stands around its page. Where not even that can be had, it is told alone.
async fn framed(mut asked: Parts, state: &AppState, kind: ApiErrorKind, mut response: Response) -> Response {
    // Whoever sends a form of another workspace's page is in the one that was chosen since.
    asked.extensions.remove::<PageWorkspace>();
    let Ok(visitor) = Visitor::from_request_parts(&mut asked, state).await else { return response };
    let mut frame = visitor.frame;
    // What was done before is not said beside what has failed since.
    (frame.notice, frame.problem) = (None, None);
    let is_alone = frame.workspaces.iter().all(|choice| choice.is_chosen);
    if kind == ApiErrorKind::NotFound && !is_alone && is_link(&asked.method, asked.uri.path()) {
        return offer(frame, &asked).unwrap_or(response);
    }
    let was_sent = !asked.method.is_safe();
    response.extensions_mut().insert(FailureFrame::new(frame, was_sent));
    response
}

/// The page that offers another workspace. It says the same whether that has what was asked for or not: nobody is told of what they may
/// not see, nor that it exists.
fn offer(frame: Frame, asked: &Parts) -> Option<Response> {
    let (title, message) = NOTHING_HERE;
    let request_id = asked.extensions.get::<RequestId>().map(|id| id.as_str().to_owned()).unwrap_or_default();
    let page = ElsewherePage { frame, title, message, here: here(&asked.uri), request_id };
    html(&PagePolicy::Own, StatusCode::NOT_FOUND, &page).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_of_one_thing_is_a_link() {
        let thing = format!("/documents/{}", Uuid::now_v7());
        assert!(is_link(&Method::GET, &thing));
        assert!(!is_link(&Method::POST, &thing));
        for path in ["/", "/documents", "/documents/new", "/documents/duplicates", "/ask/help"] {
            assert!(!is_link(&Method::GET, path), "{path}");
        }
    }
}
