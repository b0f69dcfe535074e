//! What a person may do, whichever face of the service they use: the rules, the transaction, the jobs, and what is answered
//! once. A face reads what was asked, calls one function here, and tells what came of it. Nothing here knows HTTP.
//!
//! Each service holds the parts that it uses, is cheap to clone, and takes the [`Actor`] first.

pub(crate) mod accounts;
pub(crate) mod agents;
pub(crate) mod creation;
pub(crate) mod credentials;
pub(crate) mod documents;
pub mod jobs;
pub(crate) mod links;
pub(crate) mod prompts;
pub(crate) mod search;
pub(crate) mod sign_in;
pub(crate) mod tags;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod traces;
pub(crate) mod uploads;

use lectern_runtime::Runtime;
use lectern_shared::ids::UserId;

use self::{
    accounts::AccountService,
    agents::AgentService,
    creation::IdempotencyStore,
    credentials::Authenticator,
    documents::DocumentService,
    jobs::JobService,
    links::{AgentDocumentService, AgentToolService},
    prompts::PromptService,
    search::SearchService,
    sign_in::{PasswordHashPool, SignInService},
    tags::TagService,
    tokens::TokenService,
    tools::ToolService,
    traces::TraceService,
    uploads::UploadService,
};
use crate::{limits::RateLimiter, search::SearchEngine};

/// Longest name of anything, in characters.
pub(crate) const NAME: usize = 1_000;

/// On whose behalf something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    /// Whose data it is.
    pub(crate) user: UserId,
}

/// All services. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) accounts: AccountService,
    pub(crate) agent_documents: AgentDocumentService,
    pub(crate) agent_tools: AgentToolService,
    pub(crate) agents: AgentService,
    pub(crate) authenticator: Authenticator,
    pub(crate) creations: IdempotencyStore,
    pub(crate) documents: DocumentService,
    pub(crate) jobs: JobService,
    pub(crate) prompts: PromptService,
    pub(crate) search: SearchService,
    pub(crate) sign_ins: SignInService,
    pub(crate) tags: TagService,
    pub(crate) tokens: TokenService,
    pub(crate) tools: ToolService,
    pub(crate) traces: TraceService,
    pub(crate) uploads: UploadService,
}

impl Services {
    pub(crate) fn new(runtime: &Runtime, search: SearchEngine, limits: RateLimiter) -> Self {
        let (accounts, sign_ins) = accounts_and_sign_ins(runtime, limits);
        let Runtime { db, clock, keyring, settings, jobs, blobs, .. } = runtime.clone();
        let creations = IdempotencyStore::new(db.clone(), keyring.clone(), jobs.clone());
        let tokens = TokenService::new(db.clone(), clock.clone(), keyring.clone(), creations.clone());
        Self {
            accounts,
            agent_documents: AgentDocumentService::new(
                db.clone(),
                clock.clone(),
                jobs.clone(),
                creations.clone(),
            ),
            agent_tools: AgentToolService::new(db.clone(), clock.clone(), creations.clone()),
            agents: AgentService::new(
                db.clone(),
                clock.clone(),
                keyring.clone(),
                settings.clone(),
                creations.clone(),
            ),
            authenticator: Authenticator::new(db.clone(), clock.clone(), sign_ins.clone(), tokens.clone()),
            documents: DocumentService::new(
                db.clone(),
                clock.clone(),
                keyring.clone(),
                jobs.clone(),
                blobs.clone(),
                settings.clone(),
                creations.clone(),
            ),
            uploads: UploadService::new(db.clone(), jobs.clone(), blobs, settings, creations.clone()),
            jobs: JobService::new(db.clone(), jobs),
            prompts: PromptService::new(db.clone(), clock.clone(), creations.clone()),
            search: SearchService::new(db.clone(), search),
            sign_ins,
            tags: TagService::new(db.clone(), clock.clone(), creations.clone()),
            tokens,
            tools: ToolService::new(db.clone(), clock.clone(), keyring, creations.clone()),
            traces: TraceService::new(db, clock),
            creations,
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
    let sign_ins =
        SignInService::new(db.clone(), clock.clone(), keyring, limits, passwords.clone(), settings.jwt_ttl);
    let accounts = AccountService::new(db, clock, jobs, settings.sign_up, passwords, sign_ins.clone());
    (accounts, sign_ins)
}
