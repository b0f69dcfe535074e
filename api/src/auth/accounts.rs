//! Making accounts, for the sign-up endpoint and for the shell.

use std::net::{IpAddr, Ipv4Addr};

use lectern_shared::{
    config::SignUp,
    db::{self, DbError, singletons},
    ids::UserId,
    model::user::{User, email_key},
    runtime::Runtime,
};
use secrecy::SecretString;

use super::password::Passwords;
use crate::error::ApiError;

/// The row that the first account claims.
const FIRST: &str = "first-account";

/// Why an account could not be made, in words for whoever asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AccountError(String);

impl From<ApiError> for AccountError {
    fn from(error: ApiError) -> Self {
        let fields = error.fields.iter().map(|field| format!(" {} {}.", field.path, field.message));
        Self(fields.fold(error.message, |text, field| text + &field))
    }
}

/// What an account is made from; e-mail and name are checked already.
pub(crate) struct NewAccount {
    pub(crate) email: String,
    pub(crate) name: Option<String>,
    pub(crate) password: SecretString,
}

/// Who asks for the account.
pub(crate) enum Origin {
    /// Anyone who reaches the service, from this address; the settings decide.
    SignUp(IpAddr),
    /// The operator.
    Operator {
        /// Make an admin.
        admin: bool,
    },
}

/// Where the operator's shell is, and nobody else who waits for a turn in its process.
const SHELL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Makes an account. The first one of an installation is an admin.
pub(crate) async fn create(
    runtime: &Runtime,
    passwords: &Passwords,
    account: NewAccount,
    origin: Origin,
) -> Result<User, ApiError> {
    let closed = || ApiError::forbidden("This service takes no sign-ups. Ask its operator for an account.");
    let policy = runtime.settings.sign_up;
    if let Origin::SignUp(_) = origin {
        let taken = policy == SignUp::First && singletons::get(&runtime.db, FIRST).await?.is_some();
        // Said before the password is hashed, which is the expensive part.
        if policy == SignUp::Closed || taken {
            return Err(closed());
        }
    }
    let address = match origin {
        Origin::SignUp(address) => address,
        Origin::Operator { .. } => SHELL,
    };
    let password_hash = passwords.turn(address).await?.hash(account.password).await?;
    let email = account.email.trim();
    let local_part = email.split('@').next().unwrap_or(email);
    let mut tx = runtime.db.begin().await?;
    let first = singletons::claim(&mut tx, FIRST, "taken").await?;
    let is_admin = match origin {
        Origin::SignUp(_) if !first && policy == SignUp::First => return Err(closed()),
        Origin::SignUp(_) => first,
        Origin::Operator { admin } => admin || first,
    };
    let user = db::accounts::NewUser {
        id: UserId::generate(),
        email,
        email_key: &email_key(email),
        name: account.name.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or(local_part),
        password_hash: &password_hash,
        is_admin,
    };
    let created =
        db::accounts::insert(&mut tx, &user, runtime.clock.now()).await.map_err(|error| match error {
            DbError::Duplicate => ApiError::conflict("There is an account with this e-mail already."),
            error @ (DbError::Full(_)
            | DbError::Failed(_)
            | DbError::CommitUnknown(_)
            | DbError::Unreadable(_)) => error.into(),
        })?;
    tx.commit().await?;
    tracing::info!(user = %created.id, admin = created.is_admin, "account created");
    Ok(created)
}

/// Deletes an account.
pub(crate) async fn delete(runtime: &Runtime, user: UserId) -> Result<(), ApiError> {
    let now = runtime.jobs.now();
    let mut tx = runtime.db.begin_essential().await?;
    db::accounts::close(&mut tx, user, now).await?;
    tx.commit().await?;
    tracing::info!(%user, "account deleted");
    let removed = async {
        let mut tx = runtime.db.begin_essential().await?;
        db::accounts::delete(&mut tx, user, now).await?;
        tx.commit().await
    };
    if let Err(error) = removed.await {
        // It is ended for good by now; the sweeper does the rest.
        tracing::warn!(%error, %user, "what a deleted account owned is removed later");
    }
    Ok(())
}

/// Makes an account from the shell, whatever the settings say of sign-ups.
///
/// # Errors
/// When the e-mail or password cannot be used, or the e-mail is taken.
pub async fn add(
    runtime: &Runtime,
    email: &str,
    password: SecretString,
    admin: bool,
) -> Result<UserId, AccountError> {
    check(email, &password)?;
    let account = NewAccount { email: email.to_owned(), name: None, password };
    Ok(create(runtime, &Passwords::new(), account, Origin::Operator { admin }).await?.id)
}

/// Sets an account's password from the shell; every earlier sign-in ends.
///
/// # Errors
/// When there is no such account, or the password cannot be used.
pub async fn set_password(
    runtime: &Runtime,
    email: &str,
    password: SecretString,
) -> Result<UserId, AccountError> {
    check(email, &password)?;
    let change = async {
        let found = db::accounts::find_by_email(&runtime.db, &email_key(email)).await?;
        let user = found.ok_or_else(|| ApiError::not_found("account"))?.user;
        let hash = Passwords::new().turn(SHELL).await?.hash(password).await?;
        let mut tx = runtime.db.begin().await?;
        db::accounts::update(&mut tx, user.id, None, Some(&hash), runtime.clock.now()).await?;
        tx.commit().await?;
        Ok::<_, ApiError>(user.id)
    };
    Ok(change.await?)
}

/// Makes an account an admin from the shell, or takes that away. It counts from the account's next request on.
///
/// # Errors
/// When there is no such account.
pub async fn set_admin(runtime: &Runtime, email: &str, admin: bool) -> Result<UserId, AccountError> {
    let change = async {
        let unknown = || ApiError::not_found("account");
        let user =
            db::accounts::find_by_email(&runtime.db, &email_key(email)).await?.ok_or_else(unknown)?.user;
        let mut tx = runtime.db.begin().await?;
        db::accounts::set_admin(&mut tx, user.id, admin).await?.ok_or_else(unknown)?;
        tx.commit().await?;
        Ok::<_, ApiError>(user.id)
    };
    Ok(change.await?)
}

fn check(email: &str, password: &SecretString) -> Result<(), AccountError> {
    email_problem(email)
        .or_else(|| password_problem(password))
        .map_or(Ok(()), |problem| Err(AccountError(problem)))
}

/// What is wrong with an e-mail address, if anything is.
pub(crate) fn email_problem(email: &str) -> Option<String> {
    let email = email.trim();
    let good = email.len() <= 254
        && !email.chars().any(|c| c.is_whitespace() || c.is_control())
        && email.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && !domain.is_empty()
                && !domain.contains('@')
                && !domain.starts_with('.')
                && !domain.ends_with('.')
        });
    (!good).then(|| "must be an e-mail address".to_owned())
}

/// What is wrong with a password, if anything is.
pub(crate) fn password_problem(password: &SecretString) -> Option<String> {
    use secrecy::ExposeSecret;
    let length = password.expose_secret().chars().count();
    (!(8..=256).contains(&length)).then(|| "must have 8 to 256 characters".to_owned())
}
