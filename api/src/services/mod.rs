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
pub(crate) mod exports;
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

use lectern_agents::{
    run::{AgentParts, RunRecorder},
    tools::Toolbox,
};
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
    exports::ExportService,
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
    pub(crate) exports: ExportService,
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
    pub(crate) fn new(runtime: &Runtime, agents: AgentParts, toolbox: Toolbox, limits: RateLimiter) -> Self {
        let (accounts, sign_ins) = accounts_and_sign_ins(runtime, limits.clone());
        let parts = CommonParts::new(runtime, agents.recorder.clone());
        let origins = PageOrigins::new(runtime.db.clone(), runtime.clock.clone());
        let tokens = parts.tokens(&origins);
        let authenticator = parts.authenticator(limits.clone(), &sign_ins, &tokens);
        let documents = parts.documents();
        let pages = PageService::new(runtime, documents.clone());
        let workspaces = parts.workspaces();
        let (traces, usage) = (parts.traces(), parts.usage());
        Self {
            agent_collections: parts.agent_collections(),
            agent_documents: parts.agent_documents(),
            agent_tools: parts.agent_tools(),
            agents: parts.agents(),
            search: SearchService::new(runtime.db.clone(), agents.search.clone(), agents.briefings.clone()),
            asking: parts.asking(agents, toolbox, &usage),
            citations: CitationLinks::new(runtime, pages.clone()),
            collections: parts.collections(&documents),
            embeddings: parts.embeddings(&usage),
            evaluations: parts.evaluations(&traces),
            exports: parts.exports(limits),
            invitations: parts.invitations(&workspaces),
            jobs: JobService::new(runtime.db.clone(), runtime.jobs.clone()),
            members: parts.members(&workspaces),
            oidc: parts.oidc(&accounts, &sign_ins),
            prompts: parts.prompts(),
            publications: parts.publications(&authenticator),
            sources: parts.sources(),
            tags: parts.tags(),
            tools: parts.tools(),
            uploads: parts.uploads(),
            webhooks: parts.webhooks(),
            accounts,
            audit: parts.audit,
            authenticator,
            creations: parts.creations,
            documents,
            origins,
            pages,
            sign_ins,
            tokens,
            traces,
            usage,
            workspaces,
        }
    }
}

/// What most services use, and how each is made of it.
struct CommonParts<'r> {
    runtime: &'r Runtime,
    recorder: RunRecorder,
    creations: IdempotencyStore,
    audit: AuditService,
    history: AgentHistory,
}

impl<'r> CommonParts<'r> {
    fn new(runtime: &'r Runtime, recorder: RunRecorder) -> Self {
        let Runtime { db, clock, keyring, jobs, .. } = runtime;
        Self {
            runtime,
            recorder,
            creations: IdempotencyStore::new(db.clone(), keyring.clone(), jobs.clone()),
            audit: AuditService::new(db.clone(), clock.clone(), keyring.clone()),
            history: AgentHistory::new(db.clone(), clock.clone(), keyring.clone()),
        }
    }

    // --- who asks ----------------------------------------------------------------------------------------------------

    fn tokens(&self, origins: &PageOrigins) -> TokenService {
        let Runtime { db, clock, keyring, .. } = self.runtime.clone();
        TokenService::new(db, clock, keyring, self.creations.clone(), self.audit.clone(), origins.clone())
    }

    fn authenticator(
        &self,
        limits: RateLimiter,
        sign_ins: &SignInService,
        tokens: &TokenService,
    ) -> Authenticator {
        let Runtime { db, clock, .. } = self.runtime.clone();
        Authenticator::new(db, clock, limits, sign_ins.clone(), tokens.clone())
    }

    fn oidc(&self, accounts: &AccountService, sign_ins: &SignInService) -> OidcService {
        let Runtime { settings, operator_egress, .. } = self.runtime.clone();
        let (accounts, sign_ins) = (accounts.clone(), sign_ins.clone());
        OidcService::new(settings.oidc.clone(), operator_egress, accounts, sign_ins, self.audit.clone())
    }

    fn workspaces(&self) -> WorkspaceService {
        let Runtime { db, clock, jobs, .. } = self.runtime.clone();
        WorkspaceService::new(db, clock, jobs, self.creations.clone(), self.audit.clone())
    }

    fn invitations(&self, workspaces: &WorkspaceService) -> InvitationService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        let (creations, audit) = (self.creations.clone(), self.audit.clone());
        InvitationService::new(db, clock, workspaces.clone(), creations, audit)
    }

    fn members(&self, workspaces: &WorkspaceService) -> MemberService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        MemberService::new(db, clock, workspaces.clone(), self.audit.clone())
    }

    fn usage(&self) -> UsageService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        UsageService::new(db, clock, self.recorder.clone())
    }

    // --- documents ---------------------------------------------------------------------------------------------------

    fn documents(&self) -> DocumentService {
        let (creations, audit) = (self.creations.clone(), self.audit.clone());
        DocumentService::new(self.runtime, creations, audit, self.recorder.clone())
    }

    fn uploads(&self) -> UploadService {
        let Runtime { db, jobs, blobs, settings, .. } = self.runtime.clone();
        UploadService::new(db, jobs, blobs, settings, self.creations.clone())
    }

    fn collections(&self, documents: &DocumentService) -> CollectionService {
        let Runtime { db, clock, jobs, .. } = self.runtime.clone();
        let (creations, audit) = (self.creations.clone(), self.audit.clone());
        CollectionService::new(db, clock, jobs, creations, audit, documents.clone())
    }

    fn tags(&self) -> TagService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        TagService::new(db, clock, self.creations.clone(), self.audit.clone())
    }

    fn sources(&self) -> SourceService {
        SourceService::new(self.runtime, self.creations.clone(), self.audit.clone())
    }

    fn embeddings(&self, usage: &UsageService) -> EmbeddingService {
        let Runtime { models, metrics, compute, .. } = self.runtime.clone();
        EmbeddingService::new(models, metrics, compute, usage.clone())
    }

    // --- agents, and what they use -----------------------------------------------------------------------------------

    fn agents(&self) -> AgentService {
        let (creations, audit) = (self.creations.clone(), self.audit.clone());
        AgentService::new(self.runtime, creations, audit, self.history.clone())
    }

    fn asking(&self, agents: AgentParts, toolbox: Toolbox, usage: &UsageService) -> AskService {
        AskService::new(self.runtime.db.clone(), agents, toolbox, usage.clone(), self.history.clone())
    }

    fn prompts(&self) -> PromptService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        let (history, audit) = (self.history.clone(), self.audit.clone());
        PromptService::new(db, clock, self.creations.clone(), history, audit)
    }

    fn tools(&self) -> ToolService {
        let Runtime { db, clock, keyring, settings, .. } = self.runtime.clone();
        let mcp_servers = settings.mcp_servers.iter().map(|program| program.name.clone()).collect();
        ToolService::new(db, clock, keyring, self.creations.clone(), self.audit.clone(), mcp_servers)
    }

    fn agent_collections(&self) -> AgentCollectionService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        AgentCollectionService::new(db, clock, self.creations.clone())
    }

    fn agent_documents(&self) -> AgentDocumentService {
        let Runtime { db, clock, jobs, .. } = self.runtime.clone();
        AgentDocumentService::new(db, clock, jobs, self.creations.clone())
    }

    fn agent_tools(&self) -> AgentToolService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        AgentToolService::new(db, clock, self.creations.clone())
    }

    fn publications(&self, authenticator: &Authenticator) -> PublicationService {
        let Runtime { db, clock, keyring, .. } = self.runtime.clone();
        PublicationService::new(db, clock, keyring, authenticator.clone(), self.audit.clone())
    }

    // --- what was asked, and who is told -----------------------------------------------------------------------------

    fn traces(&self) -> TraceService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        TraceService::new(db, clock, self.recorder.clone(), self.audit.clone())
    }

    fn exports(&self, limits: RateLimiter) -> ExportService {
        let Runtime { db, clock, .. } = self.runtime.clone();
        ExportService::new(db, clock, limits, self.recorder.clone(), self.audit.clone())
    }

    fn evaluations(&self, traces: &TraceService) -> EvaluationService {
        let (creations, audit) = (self.creations.clone(), self.audit.clone());
        EvaluationService::new(self.runtime, creations, audit, traces.clone(), self.history.clone())
    }

    fn webhooks(&self) -> WebhookService {
        let Runtime { db, clock, keyring, egress, .. } = self.runtime.clone();
        WebhookService::new(db, clock, keyring, egress, self.creations.clone(), self.audit.clone())
    }
}

/// Accounts and signing in to them, which take turns at the same work on passwords.
pub(crate) fn accounts_and_sign_ins(
    runtime: &Runtime,
    limits: RateLimiter,
) -> (AccountService, SignInService) {
    let Runtime { db, clock, keyring, settings, jobs, .. } = runtime.clone();
    let passwords = PasswordHashPool::new();
    let audit = AuditService::new(db.clone(), clock.clone(), keyring.clone());
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
