//! The interface of OpenAI's clients, at `/v1`: an SDK needs another base address and key, and nothing else. Agents are its models,
//! documents its files, collections its vector stores. Like [`crate::v1`] it extracts, calls a service, and responds; what an agent
//! does is the same run as everywhere. Nothing else of the service calls this.

mod annotations;
mod asking;
mod chat;
mod embeddings;
mod entries;
mod error;
mod events;
mod files;
mod messages;
mod models;
mod responses;
mod score;
mod vector_stores;

use std::time::Duration;

use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};

pub(crate) use self::error::error_response;
use crate::openapi::ApiRouter;

/// How long an answer took to begin, in milliseconds.
const PROCESSING: HeaderName = HeaderName::from_static("openai-processing-ms");
/// The version of the interface that is spoken.
const VERSION: HeaderName = HeaderName::from_static("openai-version");

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .merge(models::router())
        .merge(chat::router())
        .merge(responses::router())
        .merge(embeddings::router())
        .merge(files::router())
        .merge(vector_stores::router())
}

/// Adds the headers that every answer has here, be it an error.
pub(crate) fn add_headers(response: &mut Response, took: Duration) {
    let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    response.headers_mut().insert(PROCESSING, HeaderValue::from(milliseconds));
    response.headers_mut().insert(VERSION, HeaderValue::from_static("2020-10-01"));
}
