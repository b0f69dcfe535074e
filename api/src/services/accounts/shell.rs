//! What the operator does to accounts from the shell.

use std::net::{IpAddr, Ipv4Addr};

use lectern_db::{self as db, Tx};
use lectern_shared::{
    ids::UserId,
    model::{
        audit::{AuditAction, AuditDetails},
        user::email_key,
    },
};
use secrecy::SecretString;

use super::{AccountOrigin, AccountService, NewAccount, email_problem, password_problem, unknown};
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

    /// The account with an e-mail.
    async fn id_of(&self, email: &str) -> Result<UserId, ApiError> {
        let found = db::accounts::find_by_email(&self.db, &email_key(email)).await?;
        Ok(found.ok_or_else(unknown)?.user.id)
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
