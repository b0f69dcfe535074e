//! The API: answers requests over the relational store and the search index, and queues the work that outlives them.

mod audit_query;
mod auth;
mod body;
mod client_address;
mod coalesced;
mod cors;
mod dashboard;
mod docs;
mod error;
mod error_response;
mod evaluator;
mod extract;
mod fields;
mod http;
mod idempotency;
mod leftover;
mod limits;
mod mcp;
mod multipart;
mod openai;
mod openapi;
mod operator;
mod public_address;
mod rate_limit;
mod request_id;
mod response;
mod run_stream;
mod server;
mod services;
mod shares;
mod source_file;
mod sse;
mod state;
mod static_file;
mod turns;
mod v1;
mod watched;

use axum::{Router, middleware};
use futures::future::LocalBoxFuture;
use lectern_agents::models::ModelProvider;
use lectern_runtime::{Runtime, leased, process::FatalError};
use lectern_shared::{
    config::{ConfigError, EmbedderKind, Settings},
    shutdown::Shutdown,
};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, spawn_blocking},
};
use utoipa::openapi::OpenApi;

use crate::{
    evaluator::EvaluationRuns,
    limits::RateLimiter,
    openapi::{ApiDescription, ApiRouter},
    server::ServerOptions,
    state::AppState,
};
pub use lectern_agents::{
    evaluation::{ANSWER_METRICS, RETRIEVAL_METRICS},
    tools::secrets as tool_secrets,
};

pub use crate::{
    operator::JobView,
    services::{
        accounts::{AccountError, AccountService},
        jobs,
        workspaces::{
            WorkspaceUsage,
            operator::{QuotaChange, WorkspaceCommandError, WorkspaceOperator, WorkspaceReport},
        },
    },
};

/// Accounts, for the operator's shell.
pub fn accounts(runtime: &Runtime) -> AccountService {
    let limits = RateLimiter::new(runtime.settings.rate_limit, runtime.redis.clone());
    services::accounts_and_sign_ins(runtime, limits).0
}

/// Workspaces, for the operator's shell.
pub fn workspaces(runtime: &Runtime) -> WorkspaceOperator {
    WorkspaceOperator::new(runtime.db.clone(), runtime.clock.clone(), runtime.keyring.clone())
}

/// Checks the settings that only the API understands.
///
/// # Errors
/// The first setting that is wrong.
pub fn check_settings(settings: &Settings) -> Result<(), ConfigError> {
    for model in settings.predict.prices.keys() {
        let provider = model.split('/').next().unwrap_or_default();
        if let Err(error) = provider.parse::<ModelProvider>() {
            let problem = format!("{model:?} cannot be priced: {error}");
            return Err(ConfigError { setting: "LECTERN_PRICES".to_owned(), problem });
        }
    }
    let (provider, _) = &settings.default_llm;
    let problem = match provider.parse::<ModelProvider>() {
        Ok(ModelProvider::OpenAiCompatible) => {
            "openai-compatible needs a base_url, which only an agent of its own can have".to_owned()
        }
        Ok(provider @ (ModelProvider::Ollama | ModelProvider::AzureOpenAi))
            if provider.operator_host(&settings.predict).is_none() =>
        {
            let setting =
                if provider == ModelProvider::Ollama { "OLLAMA_HOST" } else { "AZURE_OPENAI_ENDPOINT" };
            format!("{provider} needs {setting}")
        }
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(ConfigError { setting: "LECTERN_DEFAULT_LLM".to_owned(), problem })
}

/// Every operation: what serves it, and what describes it.
fn operations() -> (Router<AppState>, ApiDescription) {
    ApiRouter::new()
        .nest("/api/v1", v1::router())
        .nest("/v1", openai::router())
        .merge(operator::router())
        .into_parts()
}

/// The OpenAPI document of the HTTP interface, as `/openapi.json` answers it.
pub fn document() -> OpenApi {
    operations().1.document()
}

/// What of the HTTP interface needs nothing of the rest of a process: the operations with what describes them, and the pages.
pub struct HttpInterface(JoinHandle<(Router<AppState>, ApiDescription)>);

impl HttpInterface {
    /// Begins to make it, on a thread of its own, while the store is opened.
    pub fn prepare() -> Self {
        Self(spawn_blocking(|| {
            let (router, description) = operations();
            (router.merge(dashboard::router()), description)
        }))
    }
}

/// The whole HTTP interface.
fn router(state: AppState, prepared: Router<AppState>, description: ApiDescription) -> Router {
    let origins = state.runtime.settings.cors_origins.clone();
    let cors = cors::layer(&origins, state.services.origins.clone());
    prepared
        .merge(docs::router(description))
        .merge(mcp::router(&state))
        .fallback(error_response::unrouted_path)
        .method_not_allowed_fallback(error_response::method_not_allowed)
        .layer(middleware::from_fn_with_state(state.clone(), auth::in_force::guard))
        .layer(middleware::from_fn_with_state(state.clone(), rate_limit::limit))
        .layer(middleware::from_fn_with_state(state.clone(), dashboard::session::admit))
        .layer(middleware::from_fn(http::answer_failures))
        // Outside of those that refuse, so that pages may read why.
        .layer(cors)
        // The last one added is the first to see a request, and sees the answers of all others.
        .layer(middleware::from_fn_with_state(state.clone(), http::observe))
        .with_state(state)
}

/// Binds `LECTERN_ADDR`.
///
/// # Errors
/// When the address cannot be listened on.
pub fn bind(runtime: &Runtime) -> Result<TcpListener, String> {
    let addr = runtime.settings.addr;
    server::bind(addr).map_err(|error| format!("LECTERN_ADDR: {addr} cannot be listened on: {error}"))
}

/// Answers requests on `listener` until the shutdown begins, then until those in hand are answered and everything else of
/// this process has ended. Boxed here, so that it is compiled once and not again for each program.
///
/// # Errors
/// When the server fails.
pub fn run(
    runtime: Runtime,
    listener: TcpListener,
    interface: HttpInterface,
    shutdown: &Shutdown,
) -> LocalBoxFuture<'_, Result<(), FatalError>> {
    Box::pin(answer(runtime, listener, interface, shutdown))
}

async fn answer(
    runtime: Runtime,
    listener: TcpListener,
    HttpInterface(prepared): HttpInterface,
    shutdown: &Shutdown,
) -> Result<(), FatalError> {
    let settings = &runtime.settings;
    let terms = ServerOptions::of(settings, runtime.clock.clone());
    let (addr, data, connections) = (listener.local_addr()?, settings.data_dir.display(), terms.all);
    tracing::info!(%addr, %data, connections, "listening");
    if settings.embedding.kind == EmbedderKind::None {
        tracing::info!("LECTERN_EMBEDDER is none: documents are found by words, not by meaning");
    }
    runtime.reranker.start(&runtime.clock, shutdown);
    let (served, result) = oneshot::channel();
    let state = AppState::new(runtime.clone());
    let (prepared, description) = prepared.await?;
    let (app, stopping) = (router(state.clone(), prepared, description), shutdown.clone());
    let (runs, recorder) = (EvaluationRuns::new(&state), state.agents.recorder.clone());
    runs.void_claims().await?;
    state.services.oidc.check_workspace().await;
    leased::start(runs, shutdown);
    // Tracked like everything else, so that a request which never ends cannot keep the service from stopping.
    shutdown.spawn(async move {
        let end = server::serve(app, listener, terms, &stopping).await;
        // A server that ended by itself has failed; nothing is left to do.
        stopping.begin();
        let _ = served.send(end);
    });
    let closing = async {
        recorder.finish().await;
        runtime.close().await;
    };
    shutdown.finished(closing).await;
    tracing::info!("stopped");
    match result.await {
        Ok(end) => Ok(end?),
        // Dropped in the middle of a request.
        Err(_) => Ok(()),
    }
}
