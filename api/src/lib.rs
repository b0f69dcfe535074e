//! The API: answers requests over the relational store and the search index, and queues the work that outlives them.

mod auth;
mod error;
mod extract;
mod http;
mod leftover;
pub mod llm;
pub mod predict;
mod response;
mod routes;
mod server;
mod state;

use std::io;

use axum::{Router, middleware};
use lectern_shared::{
    config::{ConfigError, Settings},
    runtime::Runtime,
    shutdown::Shutdown,
};
use tokio::net::TcpListener;

pub use crate::auth::accounts;
use crate::{llm::Provider, state::AppState};

/// Checks the settings that only the API understands.
///
/// # Errors
/// The first setting that is wrong.
pub fn check_settings(settings: &Settings) -> Result<(), ConfigError> {
    let (provider, _) = &settings.default_llm;
    let problem = match provider.parse::<Provider>() {
        Ok(Provider::OpenAiCompatible) => {
            "openai-compatible needs a base_url, which only an agent of its own can have".to_owned()
        }
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(ConfigError { setting: "LECTERN_DEFAULT_LLM".to_owned(), problem })
}

/// The whole HTTP interface.
pub fn router(runtime: Runtime) -> Router {
    let state = AppState::new(runtime);
    Router::new()
        .nest("/api/v1", routes::v1())
        .merge(routes::health::router())
        .fallback(http::unknown_path)
        .method_not_allowed_fallback(http::method_not_allowed)
        .layer(middleware::from_fn_with_state(state.clone(), http::observe))
        .with_state(state)
}

/// Answers requests on `listener` until the shutdown begins, then until those in hand are answered.
pub async fn serve(runtime: Runtime, listener: TcpListener, shutdown: Shutdown) -> io::Result<()> {
    server::serve(router(runtime), listener, &shutdown).await
}
