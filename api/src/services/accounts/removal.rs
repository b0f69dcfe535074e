//! Deleting an account: by its owner, who proves to be it, or by the operator.

use std::{net::IpAddr, time::Duration};

use lectern_db::{self as db, Tx};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Timestamp,
    ids::{UserId, WorkspaceId},
    model::workspace::Role,
};
use secrecy::SecretString;
use utoipa::ToSchema;

use super::{AccountService, NO_PASSWORD, unknown};
use crate::{
    error::{ApiError, ApiErrorKind},
    services::actor::Actor,
};

/// How old a sign-in may be that stands for the password of an account that has none, or may not use it.
const FRESH: Duration = Duration::from_mins(10);

/// The proof that one may delete an account.
#[derive(RequestBody, ToSchema)]
#[schema(as = UserRemoval)]
pub(crate) struct AccountRemoval {
    /// The account's password, if it has one that it may use.
    #[schema(value_type = Option<String>, format = Password, max_length = 10_000)]
    pub(crate) password: Option<SecretString>,
}

/// What proves that it is its owner who deletes an account.
pub(crate) struct RemovalProof<'a> {
    /// Its password.
    pub(crate) password: Option<SecretString>,
    /// The credential in hand. Where the account has no password that it may use, a sign-in of a moment ago is enough.
    pub(crate) credential: Option<&'a str>,
}

/// On whose word an account is deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalOrder {
    /// Its owner's, who knows what goes with it.
    Owner,
    /// The operator's, who may not.
    Operator {
        /// Delete with it the workspaces that have no other member, and its own although that has others.
        with_workspaces: bool,
    },
}

impl AccountService {
    /// Whether it is by its password that its owner proves to delete the account: one that is switched off proves nothing, and who signs
    /// in with the provider may not know it any more.
    async fn is_proved_by_password(&self, actor: &Actor) -> Result<bool, ApiError> {
        let found = db::accounts::find_credentials(&self.db, actor.account()?).await?.ok_or_else(unknown)?;
        let may_use_it = self.sign_ins.allow_password(found.user.is_admin).is_ok();
        Ok(may_use_it && found.password_hash != NO_PASSWORD)
    }

    /// Deletes an account and everything that belongs to it.
    ///
    /// # Errors
    /// 403 when the account has no password that it may use, and the credential is no sign-in of a moment ago.
    pub(crate) async fn delete(
        &self,
        actor: &Actor,
        proof: RemovalProof<'_>,
        address: IpAddr,
    ) -> Result<(), ApiError> {
        let user = actor.account()?;
        if self.is_proved_by_password(actor).await? {
            let missing = || ApiError::invalid_field("password", "is required");
            let password = proof.password.ok_or_else(missing)?;
            self.sign_ins.check_password(actor, password, "password", address).await?;
        } else {
            let sign_in = proof.credential.and_then(|credential| self.sign_ins.claims(credential));
            let now = self.clock.now();
            let is_proof = sign_in.is_some_and(|claims| claims.sub == user && is_fresh(claims.iat, now));
            if !is_proof {
                return Err(sign_in_again());
            }
        }
        self.remove(actor, user, RemovalOrder::Owner).await
    }

    /// Deletes an account and everything that belongs to it, on behalf of this actor.
    ///
    /// # Errors
    /// When another workspace would have members and no owner; and by the operator's order, when one would go that may not.
    pub(super) async fn remove(
        &self,
        actor: &Actor,
        user: UserId,
        order: RemovalOrder,
    ) -> Result<(), ApiError> {
        let now = self.jobs.now();
        let mut tx = self.db.begin_essential().await?;
        let (left, stay) = leave_workspaces(&mut tx, user, order).await?;
        if order == (RemovalOrder::Operator { with_workspaces: false }) {
            keep_workspaces(&mut tx, user, &left).await?;
        }
        for workspace in &left {
            db::workspaces::close(&mut tx, *workspace, now).await?;
        }
        // The log of its own workspace goes with the account; those who stay in others read there what became of a member.
        for (workspace, role) in stay {
            let there = actor.clone().within(workspace, role);
            let removed = db::workspaces::members::remove(&mut tx, workspace, user, now).await?;
            self.audit.note_removal(&mut tx, &there, user, role, &removed).await?;
        }
        db::accounts::close(&mut tx, user, now).await?;
        tx.commit().await?;
        tracing::info!(%user, "account deleted");
        let removed = async {
            let mut tx = self.db.begin_essential().await?;
            for workspace in left {
                db::workspaces::delete(&mut tx, workspace, now).await?;
            }
            db::accounts::delete(&mut tx, user, now).await?;
            tx.commit().await
        };
        if let Err(error) = removed.await {
            // It is ended for good by now; the sweeper does the rest.
            tracing::warn!(%error, %user, "what a deleted account owned is removed later");
        }
        Ok(())
    }
}

/// The shared workspaces that nobody is a member of but this account, which go with it; and the others, with its role in each.
///
/// # Errors
/// When another one would have members and no owner.
async fn leave_workspaces(
    tx: &mut Tx,
    user: UserId,
    order: RemovalOrder,
) -> Result<(Vec<WorkspaceId>, Vec<(WorkspaceId, Role)>), ApiError> {
    let (mut alone, mut stay) = (Vec::new(), Vec::new());
    for workspace in db::workspaces::members::joined_by(tx, user).await? {
        // Its role is read after this: another owner may leave at this moment.
        db::locks::lock_workspace(tx, workspace).await?;
        let Some(member) = db::workspaces::members::find(tx, workspace, user).await? else { continue };
        if !db::workspaces::members::has_others(tx, workspace, user).await? {
            alone.push(workspace);
        } else if member.role == Role::Owner
            && !db::workspaces::members::has_other_owner(tx, workspace, user).await?
        {
            let name = db::workspaces::name(tx, workspace).await?;
            return Err(last_owner(workspace, &name, order));
        } else {
            stay.push((workspace, member.role));
        }
    }
    Ok((alone, stay))
}

/// Refuses to delete workspaces by the operator's order that does not say so: these, which have no other member than the account, and its
/// own where that has others. Without any other member its own is nobody else's, and goes in any case.
async fn keep_workspaces(tx: &mut Tx, user: UserId, alone: &[WorkspaceId]) -> Result<(), ApiError> {
    let own = WorkspaceId::from(user);
    // Nobody joins it meanwhile.
    db::locks::lock_workspace(tx, own).await?;
    if db::workspaces::members::has_others(tx, own, user).await? {
        let message = format!(
            "The account's own workspace {own} has other members, and would go with it. Remove them first (`lectern workspace \
             member {own} EMAIL --remove`), or delete it all the same with `--with-workspaces`."
        );
        return Err(ApiError::new(ApiErrorKind::Conflict, "conflict", message));
    }
    let mut named = Vec::new();
    for workspace in alone {
        let name = db::workspaces::name(tx, *workspace).await?;
        named.push(format!("“{}” ({workspace})", readable(&name)));
    }
    if named.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Nobody else is a member of {}, which would go with the account. Make somebody else an owner (`lectern workspace member \
         ID EMAIL --role owner`), or delete what is named here too with `--with-workspaces`.",
        named.join(", ")
    );
    Err(ApiError::new(ApiErrorKind::Conflict, "conflict", message))
}

/// What is said when others would be left in a workspace without an owner.
fn last_owner(workspace: WorkspaceId, name: &str, order: RemovalOrder) -> ApiError {
    let message = match order {
        RemovalOrder::Owner => format!(
            "You are the last owner of the workspace “{name}”. Make another member an owner, or delete it, first."
        ),
        RemovalOrder::Operator { .. } => format!(
            "The account is the last owner of the workspace “{}”, which has other members. Make one of them an owner first \
             (`lectern workspace member {workspace} EMAIL --role owner`).",
            readable(name)
        ),
    };
    ApiError::new(ApiErrorKind::Conflict, "last_owner", message)
}

/// A name for a terminal, which somebody else has chosen.
fn readable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).collect()
}

/// Whether a sign-in of that second is of a moment ago.
fn is_fresh(signed_in_at: i64, now: Timestamp) -> bool {
    signed_in_at >= now.minus(FRESH).as_secs()
}

fn sign_in_again() -> ApiError {
    let message = "Sign in again with the provider, and delete the account within ten minutes.";
    ApiError::new(ApiErrorKind::Forbidden, "sign_in_again", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_stands_for_a_password_for_ten_minutes() {
        let signed_in = Timestamp::from_micros(1_800_000_000_000_000);
        let after = |minutes| is_fresh(signed_in.as_secs(), signed_in.plus(Duration::from_mins(minutes)));
        assert_eq!([0, 10, 11].map(after), [true, true, false]);
    }
}
