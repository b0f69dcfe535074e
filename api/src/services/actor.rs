//! Who does something, where, and what they may do there: the one table of permissions.

use std::{net::IpAddr, sync::Arc};

use lectern_shared::{
    ids::{AgentId, ApiTokenId, UserId, WorkspaceId},
    model::workspace::{Role, RowOwner, RunOwner, WorkspaceQuotas},
};

use crate::error::{ApiError, ApiErrorKind};

/// What members of a workspace do, as far as it is told apart who may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Ask agents, in sessions of one's own.
    AskAgents,
    /// See which agents there are.
    ListAgents,
    /// See what was cited to oneself, and the record of one question of one's own.
    ReadCitations,
    /// List and replay one's own questions.
    ListRuns,
    /// Make, read, change and delete documents, collections and tags, and search.
    EditDocuments,
    /// Make, read, change and delete agents, prompts, tools, links and API tokens, and see everybody's questions.
    BuildAgents,
    /// See the members.
    ListMembers,
    /// Decide on members, settings and deletion, and read the audit log.
    ManageWorkspace,
}

impl Permission {
    /// The lowest role that may. This is the table.
    const fn least(self) -> Role {
        match self {
            Self::AskAgents | Self::ListAgents | Self::ReadCitations | Self::ListRuns | Self::ListMembers => {
                Role::Asker
            }
            Self::EditDocuments => Role::Editor,
            Self::BuildAgents => Role::Builder,
            Self::ManageWorkspace => Role::Owner,
        }
    }

    /// Whether a token that is bound to an agent may, as far as its role does.
    const fn is_of_bound_tokens(self) -> bool {
        matches!(self, Self::AskAgents | Self::ReadCitations)
    }

    /// Whether this tells of people, of whom those who share a token are to know nothing.
    const fn tells_of_people(self) -> bool {
        matches!(self, Self::ListRuns | Self::ListMembers)
    }
}

/// The API token that a request came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenScope {
    pub(crate) id: ApiTokenId,
    /// The one agent that it may ask.
    pub(crate) agent: Option<AgentId>,
    /// Whether it is for pages of some origins, and so in strangers' hands.
    pub(crate) is_publishable: bool,
    /// Whether it has an end or a rate of its own.
    pub(crate) is_bounded: bool,
    /// Its own role; none for a token from before there were roles.
    pub(crate) role: Option<Role>,
}

impl TokenScope {
    /// Whether many may hold it, who are nobody to one another.
    fn is_shared(self) -> bool {
        self.agent.is_some() || self.is_publishable
    }
}

/// Where a request came from, for the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestOrigin {
    /// The address of the client.
    pub(crate) address: Option<IpAddr>,
    /// The id of the request.
    pub(crate) request_id: Option<Arc<str>>,
}

/// On whose behalf something is done, and in which workspace. Whoever reaches for what is in it gets its id from [`Actor::may`], so
/// that nothing is reached without asking.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    /// The account.
    pub(crate) user: UserId,
    workspace: WorkspaceId,
    role: Role,
    quotas: WorkspaceQuotas,
    search_epoch: Option<i64>,
    stored_at_most: Option<i64>,
    token: Option<TokenScope>,
    origin: RequestOrigin,
}

impl Actor {
    pub(crate) fn new(
        user: UserId,
        workspace: WorkspaceId,
        role: Role,
        quotas: WorkspaceQuotas,
        token: Option<TokenScope>,
    ) -> Self {
        let origin = RequestOrigin::default();
        Self { user, workspace, role, quotas, search_epoch: None, stored_at_most: None, token, origin }
    }

    /// Somebody in the workspace of their own.
    pub(super) fn at_home(user: UserId, origin: RequestOrigin) -> Self {
        Self::new(user, user.into(), Role::Owner, WorkspaceQuotas::default(), None).from(origin)
    }

    /// The same, with where the request came from.
    pub(crate) fn from(mut self, origin: RequestOrigin) -> Self {
        self.origin = origin;
        self
    }

    /// The same, with the search epoch at which the workspace was when the request came.
    pub(super) const fn at_epoch(mut self, search_epoch: Option<i64>) -> Self {
        self.search_epoch = search_epoch;
        self
    }

    /// The same, with what the workspace stored at most when the request came.
    pub(super) const fn storing(mut self, stored_at_most: Option<i64>) -> Self {
        self.stored_at_most = stored_at_most;
        self
    }

    /// The same, in another workspace, in which the account has this role.
    pub(super) fn within(mut self, workspace: WorkspaceId, role: Role) -> Self {
        (self.workspace, self.role, self.search_epoch, self.stored_at_most) = (workspace, role, None, None);
        self
    }

    /// The same, in a workspace that may hold and use so much.
    pub(super) const fn under(mut self, quotas: WorkspaceQuotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// The workspace, and who makes something in it, for whoever may do this there.
    ///
    /// # Errors
    /// 403, which names the role that is needed.
    pub(crate) fn may(&self, permission: Permission) -> Result<RowOwner, ApiError> {
        let least = permission.least();
        if !self.role.includes(least) {
            let message =
                format!("This needs the role `{least}` in the workspace; yours is `{}`.", self.role);
            return Err(ApiError::new(ApiErrorKind::Forbidden, "role_required", message));
        }
        if self.is_bound() && !permission.is_of_bound_tokens() {
            let message = "This API token may only ask its agent, and read what that cites.";
            return Err(ApiError::new(ApiErrorKind::Forbidden, "token_restricted", message));
        }
        if self.is_shared() && permission.tells_of_people() {
            let message =
                "This API token may be in many hands, and tells nothing of people and what they ask.";
            return Err(ApiError::new(ApiErrorKind::Forbidden, "token_restricted", message));
        }
        Ok(RowOwner::new(self.workspace, self.user))
    }

    /// [`Actor::may`] ask this agent.
    ///
    /// # Errors
    /// 403 too for a token that is bound to another agent.
    pub(crate) fn may_ask(&self, agent: AgentId) -> Result<RunOwner, ApiError> {
        self.may(Permission::AskAgents)?;
        match self.bound_agent() {
            Some(bound) if bound != agent => {
                let message = "This API token may only ask the agent that it is bound to.";
                Err(ApiError::new(ApiErrorKind::Forbidden, "token_restricted", message))
            }
            Some(_) | None => Ok(self.runs()),
        }
    }

    /// Whose runs tell what was cited to somebody.
    pub(crate) fn may_read_cited(&self) -> Result<RunOwner, ApiError> {
        self.may(Permission::ReadCitations)?;
        Ok(self.runs())
    }

    /// Whose runs and sessions somebody sees: everybody's, or their own alone. Whether they may see any, [`Actor::may`] says.
    pub(crate) fn sees_runs_of(&self) -> Option<RunOwner> {
        let sees_all = self.may(Permission::BuildAgents).is_ok() && !self.is_shared();
        (!sees_all).then(|| self.runs())
    }

    /// Whose runs and sessions are one's own. Those by a token that many may hold are apart, from its maker's too.
    fn runs(&self) -> RunOwner {
        let token = self.token.filter(|token| token.is_shared()).map(|token| token.id);
        RunOwner { workspace_id: self.workspace, user: self.user, token }
    }

    /// The account, for what belongs to no workspace: the account itself, and what is an operator's.
    ///
    /// # Errors
    /// 403 for a token that many may hold, or that builds no agents.
    pub(crate) fn account(&self) -> Result<UserId, ApiError> {
        let reaches = |token: TokenScope| {
            !token.is_shared() && token.role.is_none_or(|role| role.includes(Role::Builder))
        };
        if self.token.is_none_or(reaches) { Ok(self.user) } else { Err(Self::restricted()) }
    }

    /// Whether the credential has no limit that another one, made or read with it, might not have.
    pub(crate) fn may_handle_tokens(&self) -> Result<(), ApiError> {
        let is_limited = self.token.is_some_and(|token| token.is_shared() || token.is_bounded);
        if is_limited { Err(Self::restricted()) } else { Ok(()) }
    }

    fn restricted() -> ApiError {
        let message = "This API token may not do that. Sign in.";
        ApiError::new(ApiErrorKind::Forbidden, "token_restricted", message)
    }

    /// The account of whoever is signed in.
    ///
    /// # Errors
    /// 403 for API tokens.
    pub(crate) fn signed_in(&self) -> Result<UserId, ApiError> {
        if self.token.is_some() {
            let message = "An API token is for one workspace and may not do that. Sign in.";
            return Err(ApiError::new(ApiErrorKind::Forbidden, "sign_in_required", message));
        }
        Ok(self.user)
    }

    /// What this actor may give to others: no more than it has.
    ///
    /// # Errors
    /// 403, which names the role that is needed.
    pub(crate) fn may_grant(&self, role: Role) -> Result<(), ApiError> {
        self.reaches(role, "give the role")
    }

    /// Whether this actor may delete what others have made that has a role: nothing that may do more than it.
    ///
    /// # Errors
    /// 403, which names the role that is needed.
    pub(crate) fn may_revoke(&self, role: Role) -> Result<(), ApiError> {
        self.reaches(role, "delete an API token that has the role")
    }

    fn reaches(&self, role: Role, deed: &str) -> Result<(), ApiError> {
        if self.role.includes(role) {
            return Ok(());
        }
        let message = format!("Your role is `{}`, so you cannot {deed} `{role}`.", self.role);
        Err(ApiError::new(ApiErrorKind::Forbidden, "role_required", message))
    }

    /// The role in the workspace.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// The workspace that the request means, as it is: to tell one request from another, to log, and to count what is used. Not to
    /// reach what is in it.
    pub(crate) fn named_workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// What the workspace may hold and use, besides what the settings say.
    pub(crate) fn quotas(&self) -> WorkspaceQuotas {
        self.quotas
    }

    /// The search epoch at which the workspace was when the request came, if that was read with the credential: what was changed before the
    /// request is in it.
    pub(crate) fn search_epoch(&self) -> Option<i64> {
        self.search_epoch
    }

    /// No less than what the workspace stored when the request came, in bytes, if that was read with the credential and is known.
    pub(crate) fn stored_at_most(&self) -> Option<i64> {
        self.stored_at_most
    }

    /// The one agent that the token may ask, if it is bound to one.
    pub(crate) fn bound_agent(&self) -> Option<AgentId> {
        self.token.and_then(|token| token.agent)
    }

    /// The API token that was used, if it was one.
    pub(crate) fn token(&self) -> Option<ApiTokenId> {
        self.token.map(|token| token.id)
    }

    /// Where the request came from.
    pub(crate) fn origin(&self) -> &RequestOrigin {
        &self.origin
    }

    /// Whether the credential is one that many may hold, who are nobody to one another.
    fn is_shared(&self) -> bool {
        self.token.is_some_and(TokenScope::is_shared)
    }

    fn is_bound(&self) -> bool {
        self.token.is_some_and(|token| token.agent.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(role: Role, token: Option<TokenScope>) -> Actor {
        let user = UserId::generate();
        Actor::new(user, user.into(), role, WorkspaceQuotas::default(), token)
    }

    fn token(agent: Option<AgentId>) -> TokenScope {
        TokenScope {
            id: ApiTokenId::generate(),
            agent,
            is_publishable: false,
            is_bounded: false,
            role: Some(Role::Builder),
        }
    }

    #[test]
    fn each_role_may_what_the_table_says_and_is_told_what_it_lacks() {
        use Permission::*;
        let table: [(Permission, [bool; 4]); 8] = [
            (AskAgents, [true, true, true, true]),
            (ListAgents, [true, true, true, true]),
            (ReadCitations, [true, true, true, true]),
            (ListMembers, [true, true, true, true]),
            (ListRuns, [true, true, true, true]),
            (EditDocuments, [false, true, true, true]),
            (BuildAgents, [false, false, true, true]),
            (ManageWorkspace, [false, false, false, true]),
        ];
        for (permission, allowed) in table {
            for (role, allowed) in Role::ALL.iter().zip(allowed) {
                let answer = actor(*role, None).may(permission);
                assert_eq!(answer.is_ok(), allowed, "{role} {permission:?}");
                if let Err(error) = answer {
                    assert_eq!((error.kind.status(), error.code), (403, "role_required"));
                    assert!(error.message.contains(permission.least().as_str()), "{}", error.message);
                }
            }
        }
    }

    #[test]
    fn a_token_that_is_bound_to_an_agent_asks_that_one_and_does_nothing_else() {
        let agent = AgentId::generate();
        let bound = actor(Role::Owner, Some(token(Some(agent))));
        assert!(bound.may_ask(agent).is_ok());
        assert_eq!(bound.may_ask(AgentId::generate()).unwrap_err().code, "token_restricted");
        assert!(bound.may(Permission::ReadCitations).is_ok());
        for permission in [
            Permission::ListRuns,
            Permission::ListAgents,
            Permission::EditDocuments,
            Permission::ManageWorkspace,
        ] {
            assert_eq!(bound.may(permission).unwrap_err().code, "token_restricted", "{permission:?}");
        }
        assert!(bound.account().is_err() && bound.signed_in().is_err());
        let own = bound.sees_runs_of().unwrap();
        assert_eq!((own.user, own.token), (bound.user, bound.token()), "apart from its maker's");
        assert!(bound.may_handle_tokens().is_err());
    }

    #[test]
    fn a_token_for_pages_tells_nothing_of_people_whatever_else_it_may() {
        let for_pages = actor(Role::Owner, Some(TokenScope { is_publishable: true, ..token(None) }));
        for permission in [Permission::ListRuns, Permission::ListMembers] {
            assert_eq!(for_pages.may(permission).unwrap_err().code, "token_restricted", "{permission:?}");
        }
        for permission in [Permission::AskAgents, Permission::ListAgents, Permission::BuildAgents] {
            assert!(for_pages.may(permission).is_ok(), "{permission:?}");
        }
        assert!(actor(Role::Asker, Some(token(None))).may(Permission::ListMembers).is_ok());
    }

    #[test]
    fn a_token_of_a_workspace_makes_no_workspace_and_gives_no_more_than_it_has() {
        let editor = actor(Role::Editor, Some(token(None)));
        assert!(editor.account().is_ok() && editor.may_handle_tokens().is_ok());
        assert_eq!(editor.signed_in().unwrap_err().code, "sign_in_required");
        assert!(editor.may_grant(Role::Asker).is_ok() && editor.may_grant(Role::Editor).is_ok());
        let refusals = [editor.may_grant(Role::Owner), editor.may_revoke(Role::Owner)];
        for (refusal, deed) in refusals.into_iter().zip(["give", "delete"]) {
            let refusal = refusal.unwrap_err();
            assert_eq!(refusal.code, "role_required");
            assert!(refusal.message.contains(deed) && refusal.message.contains("`owner`"), "{refusal:?}");
        }
    }
}
