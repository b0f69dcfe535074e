//! What handlers share.

use std::{ops::Deref, sync::Arc};

use axum::extract::FromRef;
use lectern_agents::{run::AgentParts, search::SearchEngine, tools::Toolbox};
use lectern_db::Db;
use lectern_runtime::Runtime;
use lectern_shared::clock::Clock;

use crate::{
    auth::in_force::CredentialMonitor,
    body::BodyReader,
    limits::RateLimiter,
    services::{
        Services,
        accounts::AccountService,
        agents::AgentService,
        asking::AskService,
        audit::AuditService,
        citations::CitationLinks,
        collections::CollectionService,
        credentials::Authenticator,
        documents::DocumentService,
        embeddings::EmbeddingService,
        evaluations::EvaluationService,
        exports::ExportService,
        jobs::JobService,
        links::{AgentCollectionService, AgentDocumentService, AgentToolService},
        pages::PageService,
        prompts::PromptService,
        publications::PublicationService,
        search::SearchService,
        sign_in::{SignInService, oidc::OidcService},
        sources::SourceService,
        tags::TagService,
        tokens::TokenService,
        tools::ToolService,
        traces::TraceService,
        uploads::UploadService,
        webhooks::WebhookService,
        workspaces::{
            UsageService, WorkspaceService, invitations::InvitationService, members::MemberService,
        },
    },
};

/// Everything that a handler may take a part of. Cheap to clone: every layer clones it for every request, many times over.
///
/// The router asks in a dozen places of each handler whether the state can be sent between threads. Of a trait object the compiler
/// knows; of the parts it would look through every type in them each time, for half of the time that this crate takes.
#[derive(Clone)]
pub(crate) struct AppState(Arc<dyn SharedParts>);

/// Where the parts are.
trait SharedParts: Send + Sync {
    fn parts(&self) -> &AppParts;
}

impl SharedParts for AppParts {
    fn parts(&self) -> &AppParts {
        self
    }
}

/// The parts themselves.
pub(crate) struct AppParts {
    pub(crate) runtime: Runtime,
    pub(crate) services: Services,
    /// What runs of agents are made of.
    pub(crate) agents: AgentParts,
    /// What these runs call.
    pub(crate) toolbox: Toolbox,
    /// How often callers may ask.
    pub(crate) limits: RateLimiter,
    /// By what answers that go on for long were opened.
    pub(crate) in_force: CredentialMonitor,
    /// The memory for bodies.
    pub(crate) bodies: BodyReader,
}

impl Deref for AppState {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        self.0.parts()
    }
}

impl AppState {
    pub(crate) fn new(runtime: Runtime) -> Self {
        let limits = RateLimiter::new(runtime.settings.rate_limit, runtime.redis.clone());
        let search = SearchEngine::new(
            runtime.db.clone(),
            runtime.index.clone(),
            runtime.models.clone(),
            runtime.reranker.clone(),
            runtime.metrics.clone(),
            &runtime.cache_budget,
        );
        let agents = AgentParts::new(&runtime, search);
        let toolbox = Toolbox::new(&runtime);
        let services = Services::new(&runtime, agents.clone(), toolbox.clone(), limits.clone());
        Self(Arc::new(AppParts {
            agents,
            toolbox,
            limits,
            in_force: CredentialMonitor::new(services.authenticator.clone()),
            services,
            bodies: BodyReader::new(&runtime.settings.limits),
            runtime,
        }))
    }
}

/// A handler takes the parts, and the services, that it uses.
macro_rules! part {
    ($($($field:ident).+: $part:ty),+ $(,)?) => {$(
        impl FromRef<AppState> for $part {
            fn from_ref(state: &AppState) -> Self {
                state.$($field).+.clone()
            }
        }
    )+};
}

part! {
    agents: AgentParts,
    bodies: BodyReader,
    in_force: CredentialMonitor,
    limits: RateLimiter,
    runtime: Runtime,
    runtime.clock: Clock,
    runtime.db: Db,
    services.accounts: AccountService,
    services.agent_collections: AgentCollectionService,
    services.agent_documents: AgentDocumentService,
    services.agent_tools: AgentToolService,
    services.agents: AgentService,
    services.asking: AskService,
    services.audit: AuditService,
    services.authenticator: Authenticator,
    services.citations: CitationLinks,
    services.collections: CollectionService,
    services.documents: DocumentService,
    services.embeddings: EmbeddingService,
    services.evaluations: EvaluationService,
    services.exports: ExportService,
    services.invitations: InvitationService,
    services.jobs: JobService,
    services.members: MemberService,
    services.oidc: OidcService,
    services.pages: PageService,
    services.prompts: PromptService,
    services.publications: PublicationService,
    services.search: SearchService,
    services.sign_ins: SignInService,
    services.tags: TagService,
    services.tokens: TokenService,
    services.tools: ToolService,
    services.traces: TraceService,
    services.uploads: UploadService,
    services.usage: UsageService,
    services.sources: SourceService,
    services.webhooks: WebhookService,
    services.workspaces: WorkspaceService,
}
