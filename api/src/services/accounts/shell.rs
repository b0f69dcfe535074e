//! What the operator does to accounts from the shell.

use std::net::{IpAddr, Ipv4Addr};

use lectern_db::{self as db, Tx};
use lectern_shared::{
    ids::UserId,
    model::{
        audit::{AuditAction, AuditDetails},
        user::{User, email_key},
    },
};
use secrecy::SecretString;

use super::{
    AccountOrigin, AccountService, NewAccount, email_problem, password_problem, removal::RemovalOrder,
    unknown,
};
use crate::{error::ApiError, services::workspaces::operator::operator};

/// Where the operator's shell is, and nobody else who waits for a turn in its process.
const SHELL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Why something could not be done to an account, in words for whoever asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AccountError(String);

impl From<ApiError> for AccountError {
    fn from(error: ApiError) -> Self {
        let fields = error.fields.iter().map(|field| format!(" {} {}.", field.path, field.message));
        Self(fields.fold(error.message, |text, field| text + &field))
    }
}

impl AccountService {
    /// Makes an account, whatever the settings say of sign-ups.
    ///
    /// # Errors
    /// When the e-mail or password cannot be used, or the e-mail is taken.
    pub async fn add(
        &self,
        email: &str,
        password: SecretString,
        admin: bool,
    ) -> Result<UserId, AccountError> {
        if let Some(problem) = email_problem(email) {
            return Err(AccountError(format!("the e-mail {email:?} {problem}")));
        }
        check(&password)?;
        let account = NewAccount { email: email.to_owned(), password, name: None };
        let maker = |user: UserId| operator(user.into());
        Ok(self.create(account, AccountOrigin::Operator { admin }, SHELL, maker).await?.id)
    }

    /// Sets an account's password; every earlier sign-in ends.
    ///
    /// # Errors
    /// When there is no such account, or the password cannot be used.
    pub async fn set_password(&self, email: &str, password: SecretString) -> Result<UserId, AccountError> {
        check(&password)?;
        let change = async {
            let user = self.id_of(email).await?;
            let hash = self.passwords.turn(SHELL).await?.hash(password).await?;
            let mut tx = self.db.begin().await?;
            db::accounts::update(&mut tx, user, None, Some(&hash), self.clock.now()).await?;
            self.note_and_commit(tx, user, AuditAction::PasswordChanged, AuditDetails::default()).await
        };
        Ok(change.await?)
    }

    /// Gives an account another e-mail. Its sign-ins and tokens go on.
    ///
    /// # Errors
    /// When there is no such account, or the e-mail cannot be used, or is another account's.
    pub async fn set_email(&self, email: &str, new: &str) -> Result<UserId, AccountError> {
        if let Some(problem) = email_problem(new) {
            return Err(AccountError(format!("the e-mail {new:?} {problem}")));
        }
        let change = async {
            let before = self.account_of(email).await?;
            let mut tx = self.db.begin().await?;
            self.put_email(&mut tx, &operator(before.id.into()), &before, new).await?;
            tx.commit().await?;
            Ok::<_, ApiError>(before.id)
        };
        Ok(change.await?)
    }

    /// Deletes an account and everything that belongs to it. There is no way back.
    ///
    /// # Errors
    /// When there is no such account; when another workspace would have members and no owner; and, unless workspaces may go with it,
    /// when one has no other member, or its own one has others.
    pub async fn remove_account(&self, email: &str, with_workspaces: bool) -> Result<UserId, AccountError> {
        let removal = async {
            let user = self.id_of(email).await?;
            let order = RemovalOrder::Operator { with_workspaces };
            self.remove(&operator(user.into()), user, order).await?;
            Ok::<_, ApiError>(user)
        };
        Ok(removal.await?)
    }

    /// Makes an account an admin, or takes that away. It counts from the account's next request on.
    ///
    /// # Errors
    /// When there is no such account.
    pub async fn set_admin(&self, email: &str, admin: bool) -> Result<UserId, AccountError> {
        let change = async {
            let user = self.id_of(email).await?;
            let mut tx = self.db.begin().await?;
            db::accounts::set_admin(&mut tx, user, admin).await?.ok_or_else(unknown)?;
            let details = AuditDetails::default().with("admin", Some(if admin { "yes" } else { "no" }));
            self.note_and_commit(tx, user, AuditAction::RoleChanged, details).await
        };
        Ok(change.await?)
    }

    /// Forgets who at the provider of OpenID Connect an account belongs to, and ends its sign-ins: whoever comes next with its e-mail
    /// gets it.
    ///
    /// # Errors
    /// When there is no such account, or it belongs to nobody at a provider.
    pub async fn unlink(&self, email: &str) -> Result<UserId, AccountError> {
        let change = async {
            let user = self.id_of(email).await?;
            let mut tx = self.db.begin().await?;
            if db::identities::unlink(&mut tx, user).await? == 0 {
                return Err(ApiError::conflict("This account belongs to nobody at a provider."));
            }
            db::accounts::end_sessions(&mut tx, user).await?;
            self.note_and_commit(tx, user, AuditAction::SignedOut, AuditDetails::default()).await
        };
        Ok(change.await?)
    }

    async fn id_of(&self, email: &str) -> Result<UserId, ApiError> {
        Ok(self.account_of(email).await?.id)
    }

    /// The account with an e-mail.
    async fn account_of(&self, email: &str) -> Result<User, ApiError> {
        let found = db::accounts::find_by_email(&self.db, &email_key(email)).await?;
        Ok(found.ok_or_else(unknown)?.user)
    }

    /// Ends a change of an account, which is noted in the log of its own workspace.
    async fn note_and_commit(
        &self,
        mut tx: Tx,
        user: UserId,
        action: AuditAction,
        details: AuditDetails,
    ) -> Result<UserId, ApiError> {
        self.audit.note_with(&mut tx, &operator(user.into()), action, "user", user, details).await?;
        tx.commit().await?;
        Ok(user)
    }
}

fn check(password: &SecretString) -> Result<(), AccountError> {
    password_problem(password).map_or(Ok(()), |problem| Err(AccountError(format!("the password {problem}"))))
}
