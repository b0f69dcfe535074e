//! What opens a request: whose it is, and whether it is still in force.

use std::collections::HashMap;

use lectern_db::{
    self as db, Db, DbError,
    accounts::{self, AccountInWorkspace, AccountMembership},
    api_tokens::TokenGrant,
};
use lectern_shared::{
    clock::Clock,
    config::rate::RequestRate,
    ids::{ApiTokenId, UserId, WorkspaceId},
    model::{Json, user::User, workspace::Role},
};

use super::{
    actor::{Actor, RequestOrigin, TokenScope},
    sign_in::SignInService,
    tokens::{self, TokenService},
};
use crate::{
    coalesced::CoalescedReads,
    error::{ApiError, ApiErrorKind},
    fields::GivenId,
    limits::{LimitKey, RateLimiter},
};

/// What opened a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    /// A JSON web token, and the role that its account has where it asks.
    SignIn {
        user: UserId,
        workspace: WorkspaceId,
        role: Role,
        /// The user's token version that it was given out under.
        version: i64,
        /// When it ends by itself, in seconds since 1970.
        ends_at: i64,
    },
    /// An API token.
    Token {
        id: ApiTokenId,
        /// What it may do.
        role: Role,
    },
}

/// What a request says of itself besides its credential.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestContext {
    /// The workspace that it names; text that cannot be an id is an unknown one.
    pub(crate) workspace: Option<GivenId<WorkspaceId>>,
    /// The origin of the page that sends it.
    pub(crate) page_origin: Option<String>,
    /// Where it came from.
    pub(crate) origin: RequestOrigin,
}

/// Somebody who is known, and on whose behalf the request is made.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedUser {
    pub(crate) credential: Credential,
    pub(crate) user: User,
    pub(crate) actor: Actor,
}

/// What a token may do: its own role, and never more than its maker.
fn effective_role(token: Option<Role>, maker: Role) -> Role {
    token.map_or(maker, |role| role.at_most(maker))
}

/// What is said to whoever names a workspace beside what is asked for. The code tells it from a thing that is not there.
fn no_workspace() -> ApiError {
    ApiError::new(ApiErrorKind::NotFound, "workspace", "There is no such workspace.")
}

/// Tells whose credentials are. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Authenticator {
    db: Db,
    clock: Clock,
    limits: RateLimiter,
    sign_ins: SignInService,
    tokens: TokenService,
    /// Of many requests at once by the same account, not each asks for itself.
    accounts: CoalescedReads<(UserId, WorkspaceId), Result<Option<AccountInWorkspace>, ApiError>>,
}

impl Authenticator {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        limits: RateLimiter,
        sign_ins: SignInService,
        tokens: TokenService,
    ) -> Self {
        Self { db, clock, limits, sign_ins, tokens, accounts: CoalescedReads::default() }
    }

    /// What this text is, whose, and what it may do in the workspace that is meant.
    ///
    /// # Errors
    /// When it opens nothing, or nothing any more; when the workspace is not one of its account's; and what a token's own limits refuse.
    pub(crate) async fn authenticate(
        &self,
        text: &str,
        context: RequestContext,
    ) -> Result<AuthenticatedUser, ApiError> {
        if text.starts_with(tokens::PREFIX) {
            let grant = self.tokens.authenticate(text).await?.ok_or_else(ApiError::token_ended)?;
            self.by_token(grant, context).await
        } else {
            self.by_sign_in(text, context).await
        }
    }

    async fn by_sign_in(&self, text: &str, context: RequestContext) -> Result<AuthenticatedUser, ApiError> {
        let claims = self.sign_ins.claims(text).ok_or_else(ApiError::credential_ended)?;
        let own = WorkspaceId::from(claims.sub);
        let named = context.workspace.unwrap_or(Ok(own));
        // Whoever names what cannot be one is told so only after the credential was found to be good.
        let workspace = named.unwrap_or(own);
        let read = async { Ok(accounts::find_in_workspace(&self.db, claims.sub, workspace).await?) };
        let found = self.accounts.share((claims.sub, workspace), read).await?;
        let found = found.filter(|found| found.user.token_version == claims.ver);
        let AccountInWorkspace { user, role, quotas, search_epoch, stored_at_most } =
            found.ok_or_else(ApiError::credential_ended)?;
        let role = role.filter(|_| named.is_ok()).ok_or_else(no_workspace)?;
        let (version, ends_at) = (claims.ver, claims.exp);
        let credential = Credential::SignIn { user: user.id, workspace, role, version, ends_at };
        let quotas = quotas.map(|Json(quotas)| quotas).unwrap_or_default();
        let actor =
            Actor::new(user.id, workspace, role, quotas, None).at_epoch(search_epoch).storing(stored_at_most);
        Ok(AuthenticatedUser { credential, user, actor: actor.from(context.origin) })
    }

    async fn by_token(
        &self,
        grant: TokenGrant,
        context: RequestContext,
    ) -> Result<AuthenticatedUser, ApiError> {
        if context.workspace.is_some_and(|named| named != Ok(grant.workspace_id)) {
            let message = "must be the API token's own workspace, or be left out";
            return Err(ApiError::invalid_field("X-Workspace", message));
        }
        if let (Some(Json(origins)), Some(page)) = (&grant.origins, &context.page_origin)
            && !origins.contains(page)
        {
            let message = "Pages of this origin may not use this API token.";
            return Err(ApiError::new(ApiErrorKind::Forbidden, "origin_refused", message));
        }
        let slow_down = "This API token is for fewer requests a minute. Slow down.";
        self.by_grant(grant, context.origin, slow_down).await
    }

    /// For whom those ask who open a page without an account. The token is the page's, and nobody has its value.
    ///
    /// # Errors
    /// 429 when all of them together ask too often.
    pub(super) async fn by_page(
        &self,
        grant: TokenGrant,
        origin: RequestOrigin,
    ) -> Result<AuthenticatedUser, ApiError> {
        self.tokens.note_use(&grant);
        let too_often =
            "This page is asked more questions at the moment than it may answer. Try again in some seconds.";
        self.by_grant(grant, origin, too_often).await
    }

    /// Whom a token's grant stands for, within the token's own rate; `too_often` is said to whoever is beyond it.
    async fn by_grant(
        &self,
        grant: TokenGrant,
        origin: RequestOrigin,
        too_often: &str,
    ) -> Result<AuthenticatedUser, ApiError> {
        if let Some(rate) = grant.rate_per_minute.and_then(|rate| u32::try_from(rate).ok()) {
            let key = LimitKey::token(grant.token_id);
            let refusal = |wait| ApiError::too_many("rate_limited", too_often, wait);
            self.limits
                .admit_at(RequestRate::per_minute(rate), &[key], self.clock.now())
                .await
                .map_err(refusal)?;
        }
        let role = effective_role(grant.token_role, grant.maker_role);
        let token = TokenScope {
            id: grant.token_id,
            agent: grant.agent_id,
            is_publishable: grant.origins.is_some(),
            is_bounded: grant.expires_at.is_some() || grant.rate_per_minute.is_some(),
            role: grant.token_role,
        };
        let quotas = grant.quotas.map(|Json(quotas)| quotas).unwrap_or_default();
        let actor = Actor::new(grant.user.id, grant.workspace_id, role, quotas, Some(token))
            .at_epoch(Some(grant.search_epoch))
            .storing(grant.stored_at_most);
        let credential = Credential::Token { id: grant.token_id, role };
        Ok(AuthenticatedUser { credential, user: grant.user, actor: actor.from(origin) })
    }

    /// Those of these credentials that open nothing any more, or less than when they were looked at.
    pub(crate) async fn ended(&self, credentials: &[Credential]) -> Result<Vec<Credential>, DbError> {
        let (mut users, mut workspaces, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for credential in credentials {
            match credential {
                Credential::SignIn { user, workspace, .. } => {
                    users.push(*user);
                    workspaces.push(*workspace);
                }
                Credential::Token { id, .. } => tokens.push(*id),
            }
        }
        let memberships: HashMap<(UserId, WorkspaceId), (i64, Role)> = match users.as_slice() {
            [] => HashMap::new(),
            users => {
                let found = accounts::memberships(&self.db, users, &workspaces).await?;
                let pair =
                    |at: AccountMembership| ((at.user_id, at.workspace_id), (at.token_version, at.role));
                found.into_iter().map(pair).collect()
            }
        };
        let now = self.clock.now();
        let tokens: HashMap<ApiTokenId, Role> = match tokens.as_slice() {
            [] => HashMap::new(),
            tokens => {
                let found = db::api_tokens::in_force(&self.db, tokens, now).await?;
                found
                    .into_iter()
                    .map(|found| (found.id, effective_role(found.token_role, found.maker_role)))
                    .collect()
            }
        };
        let now = now.as_secs();
        let is_in_force = |credential: &Credential| match credential {
            Credential::SignIn { user, workspace, role, version, ends_at } => {
                *ends_at > now
                    && memberships
                        .get(&(*user, *workspace))
                        .is_some_and(|(at, has)| at == version && has.includes(*role))
            }
            Credential::Token { id, role } => tokens.get(id).is_some_and(|has| has.includes(*role)),
        };
        Ok(credentials.iter().filter(|credential| !is_in_force(credential)).copied().collect())
    }
}
