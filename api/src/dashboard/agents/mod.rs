//! Agents in a browser: made, changed, linked, published and asked.

mod fields;
mod links;
mod list;
mod new;
mod one;
mod publish;
mod versions;

use axum::{
    Router,
    routing::{get, post},
};

use super::ask;
use crate::state::AppState;

#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/agents", get(list::show))
        .route("/agents/new", get(new::show).post(new::create))
        .route("/agents/{id}", get(one::show).post(one::change))
        .route("/agents/{id}/delete", post(one::delete))
        .route("/agents/{id}/link", post(links::link))
        .route("/agents/{id}/unlink", post(links::unlink))
        .route("/agents/{id}/publish", get(publish::show).post(publish::publish))
        .route("/agents/{id}/unpublish", post(publish::withdraw))
        .route("/agents/{id}/versions", get(versions::show))
        .route("/agents/{id}/versions/{version}/restore", post(versions::restore))
        .route("/agents/{id}/ask", get(ask::show).post(ask::answer))
        .route("/agents/{id}/ask/stream", post(ask::stream))
}
