//! What a person may do, whichever face of the service they use: the rules, the transaction, the jobs, and what is answered
//! once. A face reads what was asked, calls one function here, and tells what came of it. Nothing here knows HTTP.
//!
//! Each service holds the parts that it uses, is cheap to clone, and takes the [`Actor`](actor::Actor) first.

pub(crate) mod accounts;
pub(crate) mod actor;
pub(crate) mod agents;
pub(crate) mod asking;
pub(crate) mod audit;
pub(crate) mod citations;
pub(crate) mod collections;
pub(crate) mod creation;
pub(crate) mod credentials;
pub(crate) mod documents;
pub(crate) mod edits;
pub(crate) mod embeddings;
pub(crate) mod evaluations;
pub mod jobs;
pub(crate) mod links;
pub(crate) mod pages;
pub(crate) mod prompts;
pub(crate) mod publications;
mod request_headers;
pub(crate) mod search;
pub(crate) mod sign_in;
pub(crate) mod sources;
pub(crate) mod tags;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod traces;
pub(crate) mod uploads;
pub(crate) mod webhooks;
pub(crate) mod workspaces;

use lectern_agents::{run::AgentParts, tools::Toolbox};
use lectern_runtime::Runtime;

use self::{
    accounts::AccountService,
    agents::{AgentService, versions::AgentHistory},
    asking::AskService,
    audit::AuditService,
    citations::CitationLinks,
    collections::CollectionService,
    creation::IdempotencyStore,
    credentials::Authenticator,
    documents::DocumentService,
    embeddings::EmbeddingService,
    evaluations::EvaluationService,
    jobs::JobService,
    links::{AgentCollectionService, AgentDocumentService, AgentToolService},
    pages::PageService,
    prompts::PromptService,
    publications::PublicationService,
    search::SearchService,
    sign_in::{PasswordHashPool, SignInService, oidc::OidcService},
    sources::SourceService,
    tags::TagService,
    tokens::{PageOrigins, TokenService},
    tools::ToolService,
    traces::TraceService,
    uploads::UploadService,
    webhooks::WebhookService,
    workspaces::{UsageService, WorkspaceService, invitations::InvitationService, members::MemberService},
};
use crate::limits::RateLimiter;

/// Longest name of anything, in characters.
pub(crate) const NAME: usize = lectern_shared::file_name::LONGEST;

/// All services. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) accounts: AccountService,
    pub(crate) agent_collections: AgentCollectionService,
    pub(crate) agent_documents: AgentDocumentService,
    pub(crate) agent_tools: AgentToolService,
    pub(crate) agents: AgentService,
    pub(crate) asking: AskService,
    pub(crate) audit: AuditService,
    pub(crate) authenticator: Authenticator,
    pub(crate) citations: CitationLinks,
    pub(crate) collections: CollectionService,
    pub(crate) creations: IdempotencyStore,
    pub(crate) documents: DocumentService,
    pub(crate) embeddings: EmbeddingService,
    pub(crate) evaluations: EvaluationService,
    pub(crate) invitations: InvitationService,
    pub(crate) jobs: JobService,
    pub(crate) members: MemberService,
    pub(crate) origins: PageOrigins,
    pub(crate) pages: PageService,
    pub(crate) oidc: OidcService,
    pub(crate) prompts: PromptService,
    pub(crate) publications: PublicationService,
    pub(crate) search: SearchService,
    pub(crate) sign_ins: SignInService,
    pub(crate) tags: TagService,
    pub(crate) tokens: TokenService,
    pub(crate) tools: ToolService,
    pub(crate) traces: TraceService,
    pub(crate) uploads: UploadService,
    pub(crate) usage: UsageService,
    pub(crate) sources: SourceService,
    pub(crate) webhooks: WebhookService,
    pub(crate) workspaces: WorkspaceService,
}

impl Services {
    #[expect(clippy::too_many_lines, reason = "a list")]
    pub(crate) fn new(runtime: &Runtime, agents: AgentParts, toolbox: Toolbox, limits: RateLimiter) -> Self {
        let (accounts, sign_ins) = accounts_and_sign_ins(runtime, limits.clone());
        let Runtime { db, clock, keyring, settings, jobs, blobs, operator_egress, .. } = runtime.clone();
        let creations = IdempotencyStore::new(db.clone(), keyring.clone(), jobs.clone());
        let audit = AuditService::new(db.clone(), clock.clone());
        let history = AgentHistory::new(db.clone(), clock.clone(), keyring.clone());
        let traces = TraceService::new(db.clone(), clock.clone(), agents.recorder.clone());
        let origins = PageOrigins::new(db.clone(), clock.clone());
        let usage = UsageService::new(db.clone(), clock.clone(), agents.recorder.clone());
        let tokens = TokenService::new(
            db.clone(),
            clock.clone(),
            keyring.clone(),
            creations.clone(),
            audit.clone(),
            origins.clone(),
        );
        let documents =
            DocumentService::new(runtime, creations.clone(), audit.clone(), agents.recorder.clone());
        let pages = PageService::new(runtime, documents.clone());
        let workspaces =
            WorkspaceService::new(db.clone(), clock.clone(), jobs.clone(), creations.clone(), audit.clone());
        let oidc = OidcService::new(
            settings.oidc.clone(),
            operator_egress,
            accounts.clone(),
            sign_ins.clone(),
            audit.clone(),
        );
        let authenticator =
            Authenticator::new(db.clone(), clock.clone(), limits, sign_ins.clone(), tokens.clone());
        let mcp_servers = settings.mcp_servers.iter().map(|program| program.name.clone()).collect();
        Self {
            accounts,
            agent_collections: AgentCollectionService::new(db.clone(), clock.clone(), creations.clone()),
            agent_documents: AgentDocumentService::new(
                db.clone(),
                clock.clone(),
                jobs.clone(),
                creations.clone(),
            ),
            agent_tools: AgentToolService::new(db.clone(), clock.clone(), creations.clone()),
            agents: AgentService::new(runtime, creations.clone(), audit.clone(), history.clone()),
            search: SearchService::new(db.clone(), agents.search.clone(), agents.briefings.clone()),
            asking: AskService::new(db.clone(), agents, toolbox, usage.clone(), history.clone()),
            publications: PublicationService::new(
                db.clone(),
                clock.clone(),
                keyring.clone(),
                authenticator.clone(),
                audit.clone(),
            ),
            authenticator,
            citations: CitationLinks::new(runtime, pages.clone()),
            collections: CollectionService::new(
                db.clone(),
                clock.clone(),
                jobs.clone(),
                creations.clone(),
                audit.clone(),
                documents.clone(),
            ),
            documents,
            embeddings: EmbeddingService::new(
                runtime.models.clone(),
                runtime.metrics.clone(),
                runtime.compute.clone(),
                usage.clone(),
            ),
            uploads: UploadService::new(db.clone(), jobs.clone(), blobs, settings, creations.clone()),
            invitations: InvitationService::new(
                db.clone(),
                clock.clone(),
                workspaces.clone(),
                creations.clone(),
                audit.clone(),
            ),
            jobs: JobService::new(db.clone(), jobs),
            members: MemberService::new(db.clone(), clock.clone(), workspaces.clone(), audit.clone()),
            oidc,
            prompts: PromptService::new(
                db.clone(),
                clock.clone(),
                creations.clone(),
                history.clone(),
                audit.clone(),
            ),
            sign_ins,
            tags: TagService::new(db.clone(), clock.clone(), creations.clone(), audit.clone()),
            tokens,
            tools: ToolService::new(
                db.clone(),
                clock.clone(),
                keyring.clone(),
                creations.clone(),
                audit.clone(),
                mcp_servers,
            ),
            sources: SourceService::new(runtime, creations.clone(), audit.clone()),
            webhooks: WebhookService::new(
                db.clone(),
                clock.clone(),
                keyring,
                runtime.egress.clone(),
                creations.clone(),
                audit.clone(),
            ),
            evaluations: EvaluationService::new(
                runtime,
                creations.clone(),
                audit.clone(),
                traces.clone(),
                history,
            ),
            traces,
            audit,
            creations,
            origins,
            pages,
            usage,
            workspaces,
        }
    }
}

/// Accounts and signing in to them, which take turns at the same work on passwords.
pub(crate) fn accounts_and_sign_ins(
    runtime: &Runtime,
    limits: RateLimiter,
) -> (AccountService, SignInService) {
    let Runtime { db, clock, keyring, settings, jobs, .. } = runtime.clone();
    let passwords = PasswordHashPool::new();
    let audit = AuditService::new(db.clone(), clock.clone());
    let sign_ins = SignInService::new(
        db.clone(),
        clock.clone(),
        keyring,
        limits,
        passwords.clone(),
        &settings,
        audit.clone(),
    );
    let accounts = AccountService::new(db, clock, jobs, settings.sign_up, passwords, sign_ins.clone(), audit);
    (accounts, sign_ins)
}
