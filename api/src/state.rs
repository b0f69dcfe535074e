//! What handlers share.

use axum::extract::FromRef;
use lectern_agents::{run::AgentParts, search::SearchEngine, tools::Toolbox};
use lectern_runtime::Runtime;
use lectern_shared::{clock::Clock, db::Db};

use crate::{
    auth::in_force::CredentialMonitor,
    body::BodyReader,
    limits::RateLimiter,
    services::{
        Services,
        accounts::AccountService,
        agents::AgentService,
        credentials::Authenticator,
        documents::DocumentService,
        jobs::JobService,
        links::{AgentDocumentService, AgentToolService},
        prompts::PromptService,
        search::SearchService,
        sign_in::SignInService,
        tags::TagService,
        tokens::TokenService,
        tools::ToolService,
        traces::TraceService,
        uploads::UploadService,
    },
};

/// Everything that a handler may take a part of. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) runtime: Runtime,
    pub(crate) services: Services,
    /// What runs of agents are made of.
    pub(crate) agents: AgentParts,
    /// How often callers may ask.
    pub(crate) limits: RateLimiter,
    /// By what answers that go on for long were opened.
    pub(crate) in_force: CredentialMonitor,
    /// Opens agents' tools.
    pub(crate) toolbox: Toolbox,
    /// The memory for bodies.
    pub(crate) bodies: BodyReader,
}

impl AppState {
    pub(crate) fn new(runtime: Runtime) -> Self {
        let limits = RateLimiter::new(runtime.settings.rate_limit, runtime.redis.clone());
        let search = SearchEngine::new(
            runtime.db.clone(),
            runtime.index.clone(),
            runtime.models.clone(),
            runtime.metrics.clone(),
            &runtime.cache_budget,
        );
        let services = Services::new(&runtime, search.clone(), limits.clone());
        Self {
            agents: AgentParts::new(&runtime, search),
            limits,
            in_force: CredentialMonitor::new(services.authenticator.clone()),
            services,
            toolbox: Toolbox::new(&runtime),
            bodies: BodyReader::new(&runtime.settings.limits),
            runtime,
        }
    }
}

impl FromRef<AppState> for AgentParts {
    fn from_ref(state: &AppState) -> Self {
        state.agents.clone()
    }
}

impl FromRef<AppState> for RateLimiter {
    fn from_ref(state: &AppState) -> Self {
        state.limits.clone()
    }
}

impl FromRef<AppState> for CredentialMonitor {
    fn from_ref(state: &AppState) -> Self {
        state.in_force.clone()
    }
}

impl FromRef<AppState> for Runtime {
    fn from_ref(state: &AppState) -> Self {
        state.runtime.clone()
    }
}

impl FromRef<AppState> for Db {
    fn from_ref(state: &AppState) -> Self {
        state.runtime.db.clone()
    }
}

impl FromRef<AppState> for Clock {
    fn from_ref(state: &AppState) -> Self {
        state.runtime.clock.clone()
    }
}

impl FromRef<AppState> for BodyReader {
    fn from_ref(state: &AppState) -> Self {
        state.bodies.clone()
    }
}

impl FromRef<AppState> for Toolbox {
    fn from_ref(state: &AppState) -> Self {
        state.toolbox.clone()
    }
}

/// A handler takes the service that it calls.
macro_rules! service {
    ($($field:ident: $service:ty),+ $(,)?) => {$(
        impl FromRef<AppState> for $service {
            fn from_ref(state: &AppState) -> Self {
                state.services.$field.clone()
            }
        }
    )+};
}

service! {
    accounts: AccountService,
    agent_documents: AgentDocumentService,
    agent_tools: AgentToolService,
    agents: AgentService,
    authenticator: Authenticator,
    documents: DocumentService,
    jobs: JobService,
    prompts: PromptService,
    search: SearchService,
    sign_ins: SignInService,
    tags: TagService,
    tokens: TokenService,
    tools: ToolService,
    traces: TraceService,
    uploads: UploadService,
}
