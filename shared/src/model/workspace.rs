//! Workspaces: whose data it is, and who may do what with it.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{ApiTokenId, AskerId, InvitationId, UserId, WorkspaceId},
    model::text_enum,
};

text_enum! {
    /// What a member of a workspace may do; each may what those before it may.
    Role {
        /// Asks agents, and sees what they cite.
        Asker => "asker",
        /// Keeps the documents.
        Editor => "editor",
        /// Builds agents.
        Builder => "builder",
        /// Decides who is a member.
        Owner => "owner",
    }
}

impl Role {
    /// The lower of two.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        if self.includes(other) { other } else { self }
    }

    /// Whether this one may all that the other may.
    pub fn includes(self, other: Self) -> bool {
        self.rank() >= other.rank()
    }

    /// Its place among the roles: the higher one may more.
    pub const fn rank(self) -> u8 {
        match self {
            Self::Asker => 0,
            Self::Editor => 1,
            Self::Builder => 2,
            Self::Owner => 3,
        }
    }
}

/// Whose a row is, and who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct RowOwner {
    /// The workspace that it belongs to.
    pub workspace_id: WorkspaceId,
    /// None in a row from before there were workspaces.
    created_by: Option<UserId>,
}

impl RowOwner {
    /// Something that somebody makes in a workspace.
    pub fn new(workspace_id: WorkspaceId, creator: UserId) -> Self {
        Self { workspace_id, created_by: Some(creator) }
    }

    /// Who made it.
    pub fn creator(&self) -> UserId {
        self.created_by.unwrap_or_else(|| UserId::from(*self.workspace_id.as_uuid()))
    }
}

/// Whose a run of an agent is: somebody's, or that of a token which many hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOwner {
    /// The workspace that it is in.
    pub workspace_id: WorkspaceId,
    /// Who asks, or made the token.
    pub user: UserId,
    /// The token, if it is bound to an agent or for pages.
    pub token: Option<ApiTokenId>,
}

impl RunOwner {
    /// Who asks, as far as it is known.
    pub fn asker(&self) -> AskerId {
        AskerId::from(self.token.map_or_else(|| *self.user.as_uuid(), |token| *token.as_uuid()))
    }
}

/// What a workspace may hold and use; what is none has no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceQuotas {
    /// Documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<u64>,
    /// Bytes that are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Tokens of models in a calendar month, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_month: Option<u64>,
    /// What models may cost in a calendar month, in the currency of the service's prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_month: Option<f64>,
}

/// A workspace.
#[derive(Clone, Debug, FromRow)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// What its owners call it.
    pub name: String,
    /// Whether it is an account's own, which has the account's id and lasts as long.
    pub is_personal: bool,
    /// What the operator lets it hold and use.
    pub quotas: Option<crate::model::Json<WorkspaceQuotas>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When an owner last changed it.
    pub updated_at: Timestamp,
}

/// A workspace, and what somebody may do in it.
#[derive(Clone, Debug, FromRow)]
pub struct JoinedWorkspace {
    /// The workspace.
    #[sqlx(flatten)]
    pub workspace: Workspace,
    /// The role of whoever asks.
    pub role: Role,
}

/// A member of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Member {
    /// The account.
    pub user_id: UserId,
    /// Its e-mail.
    pub email: String,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it became a member.
    pub joined_at: Timestamp,
}

/// An invitation to a workspace. The token itself is found by its hash.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Invitation {
    /// Its id.
    pub id: InvitationId,
    /// Where to.
    pub workspace_id: WorkspaceId,
    /// What whoever accepts it may do.
    pub role: Role,
    /// The only one who may accept it, if it is for one.
    pub email: Option<String>,
    /// Who invites.
    pub created_by: UserId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What an invitation is to, as whoever may accept it is told before.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct InvitationOffer {
    /// What the workspace is called.
    pub workspace: String,
    /// What whoever accepts it may do there.
    pub role: Role,
    /// What whoever made it is called; empty for somebody without a name, or who is gone.
    pub inviter: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_what_those_before_it_may() {
        for (at, role) in Role::ALL.iter().enumerate() {
            for (other_at, other) in Role::ALL.iter().enumerate() {
                assert_eq!(role.includes(*other), at >= other_at, "{role} {other}");
                assert_eq!(role.at_most(*other), Role::ALL[at.min(other_at)], "{role} {other}");
            }
        }
    }

    #[test]
    fn who_made_what_is_older_than_workspaces_is_whose_workspace_it_is() {
        let user = UserId::generate();
        let old = RowOwner { workspace_id: user.into(), created_by: None };
        assert_eq!(old.creator(), user);
        let other = UserId::generate();
        assert_eq!(RowOwner::new(user.into(), other).creator(), other);
    }
}
