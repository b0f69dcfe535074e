//! Accounts: signing up, and what their owners change.

mod problems;
mod removal;
mod shell;

use std::net::IpAddr;

use lectern_db::{self as db, Db, DbError, Tx, singletons};
use lectern_derive::RequestBody;
use lectern_jobs::JobQueue;
use lectern_shared::{
    clock::Clock,
    config::SignUp,
    ids::UserId,
    model::{
        audit::{AuditAction, AuditDetails},
        user::{User, email_key},
        workspace::Role,
    },
};
use secrecy::SecretString;
use utoipa::ToSchema;

use super::{
    actor::{Actor, RequestOrigin},
    audit::AuditService,
    sign_in::{PasswordHashPool, SignInService, SignedInUser},
};
use crate::{
    error::ApiError,
    fields::{FieldRule, JsonFields},
};

pub(crate) use problems::email_problem;
use problems::password_problem;
pub(crate) use removal::{AccountRemoval, RemovalProof};
pub use shell::AccountError;

/// The row that the first account claims.
const FIRST: &str = "first-account";
/// Longest text that is looked at as a new password, in characters.
const LOOKED_AT: usize = 10_000;

/// A new account.
#[derive(RequestBody, ToSchema)]
#[schema(as = SignUp)]
#[body(stranger)]
pub(crate) struct NewAccount {
    /// The e-mail address to sign in with. Spaces around it and the case of its letters do not matter.
    #[schema(format = "email", min_length = 3, max_length = 254)]
    #[body(with = email)]
    pub(crate) email: String,
    /// The password.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 256)]
    #[body(with = password)]
    pub(crate) password: SecretString,
    /// How the owner is called. Without one: the part of the e-mail address before the @.
    #[schema(max_length = 1_000)]
    pub(crate) name: Option<String>,
}

/// What is to be changed of an account. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[schema(as = UserChange, rename_all = "camelCase")]
#[body(change, after = check_current_password)]
pub(crate) struct AccountChange {
    /// How its owner is called.
    #[schema(nullable = false, min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(crate) name: Option<String>,
    /// Another e-mail address to sign in with. Sign-ins and API tokens go on.
    #[schema(nullable = false, format = "email", min_length = 3, max_length = 254)]
    #[body(with = new_email)]
    pub(crate) email: Option<String>,
    /// A new password. It ends every sign-in; API tokens stay as they are.
    #[schema(value_type = Option<String>, nullable = false, format = Password, min_length = 8, max_length = 256)]
    #[body(with = new_password)]
    pub(crate) password: Option<SecretString>,
    /// The password so far; required to set a new one, or another e-mail address.
    #[schema(value_type = Option<String>, nullable = false, format = Password, max_length = 10_000)]
    pub(crate) current_password: Option<SecretString>,
}

fn email(fields: &mut JsonFields<'_>, rule: &FieldRule) -> String {
    let email = fields.text(rule.name, rule.max_length);
    if let Some(problem) = email_problem(&email).filter(|_| !fields.is_refused(rule.name)) {
        fields.refuse(rule.name, problem);
    }
    email
}

fn new_email(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let email = fields.optional_text(rule.name, rule.max_length)?;
    if let Some(problem) = email_problem(&email) {
        fields.refuse(rule.name, problem);
    }
    Some(email)
}

/// A password, which has to be there.
fn password(fields: &mut JsonFields<'_>, rule: &FieldRule) -> SecretString {
    let password = SecretString::from(fields.text(rule.name, LOOKED_AT));
    if let Some(problem) = password_problem(&password).filter(|_| !fields.is_refused(rule.name)) {
        fields.refuse(rule.name, problem);
    }
    password
}

fn new_password(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<SecretString> {
    let password = SecretString::from(fields.optional_text(rule.name, LOOKED_AT)?);
    if let Some(problem) = password_problem(&password) {
        fields.refuse(rule.name, problem);
    }
    Some(password)
}

fn check_current_password(change: &AccountChange, fields: &mut JsonFields<'_>) {
    if change.current_password.is_some() {
        return;
    }
    if change.password.is_some() {
        fields.refuse("currentPassword", "is required to change the password");
    } else if change.email.is_some() {
        fields.refuse("currentPassword", "is required to change the e-mail");
    }
}

/// The password's hash of an account that has no password: no password fits it.
const NO_PASSWORD: &str = "";

/// Who asks for an account.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AccountOrigin {
    /// Anyone who reaches the service; the settings decide.
    SignUp,
    /// The operator.
    Operator {
        /// Make an admin.
        admin: bool,
    },
}

/// Who may make an account at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignUpOffer {
    /// Nobody, or not with a password.
    Nobody,
    /// Anybody, and it will be the first one.
    FirstAccount,
    /// Anybody.
    Anybody,
}

/// Accounts. Cheap to clone.
#[derive(Clone)]
pub struct AccountService {
    db: Db,
    clock: Clock,
    jobs: JobQueue,
    /// Who may sign up.
    policy: SignUp,
    passwords: PasswordHashPool,
    sign_ins: SignInService,
    audit: AuditService,
}

impl AccountService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        jobs: JobQueue,
        policy: SignUp,
        passwords: PasswordHashPool,
        sign_ins: SignInService,
        audit: AuditService,
    ) -> Self {
        Self { db, clock, jobs, policy, passwords, sign_ins, audit }
    }

    /// Who may make an account with a password.
    pub(crate) async fn sign_up_offer(&self) -> Result<SignUpOffer, ApiError> {
        if self.policy == SignUp::Closed || self.sign_ins.allow_password(false).is_err() {
            return Ok(SignUpOffer::Nobody);
        }
        let is_first = singletons::get(&self.db, FIRST).await?.is_none();
        Ok(match self.policy {
            _ if is_first => SignUpOffer::FirstAccount,
            SignUp::Open => SignUpOffer::Anybody,
            SignUp::First | SignUp::Closed => SignUpOffer::Nobody,
        })
    }

    /// Makes an account, if the settings let anyone, and signs in to it.
    pub(crate) async fn sign_up(
        &self,
        account: NewAccount,
        address: IpAddr,
        origin: RequestOrigin,
    ) -> Result<SignedInUser, ApiError> {
        self.sign_ins.allow_password(false)?;
        let maker = |user| Actor::at_home(user, origin.clone());
        let user = self.create(account, AccountOrigin::SignUp, address, maker).await?;
        self.sign_ins.sign_in_new(user, address, origin).await
    }

    /// Changes the name, the e-mail or the password of an account, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When the current password is wrong or may not be used; when the e-mail is another account's, or is not its owner's to change.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        change: AccountChange,
        address: IpAddr,
    ) -> Result<User, ApiError> {
        let id = actor.account()?;
        let AccountChange { name, email, password, current_password } = change;
        let before = db::accounts::find(&self.db, id).await?.ok_or_else(unknown)?;
        if email.is_some() {
            self.sign_ins.allow_new_email()?;
        }
        if email.is_some() || password.is_some() {
            self.sign_ins.allow_password(before.is_admin)?;
            let missing = || ApiError::invalid_field("currentPassword", "is required");
            let current = current_password.ok_or_else(missing)?;
            self.sign_ins.check_password(actor, current, "currentPassword", address).await?;
        }
        let hash = match password {
            Some(new) => Some(self.passwords.turn(address).await?.hash(new).await?),
            None => None,
        };
        let at_home = actor.clone().within(id.into(), Role::Owner);
        let mut tx = self.db.begin().await?;
        let name = name.as_deref().map(str::trim);
        let user = db::accounts::update(&mut tx, id, name, hash.as_deref(), self.clock.now()).await?;
        let mut user = user.ok_or_else(unknown)?;
        if hash.is_some() {
            self.audit.note(&mut tx, &at_home, AuditAction::PasswordChanged, "user", id).await?;
        }
        if let Some(email) = email {
            user = self.put_email(&mut tx, &at_home, &user, &email).await?;
            self.sign_ins.remember_address(&mut tx, &user, address).await?;
        }
        tx.commit().await?;
        Ok(user)
    }

    /// Gives an account another e-mail, and notes both in the log of its own workspace, where this actor is. Its sign-ins and tokens go on.
    async fn put_email(
        &self,
        tx: &mut Tx,
        at_home: &Actor,
        before: &User,
        email: &str,
    ) -> Result<User, ApiError> {
        let (id, email) = (before.id, email.trim());
        let changed = db::accounts::set_email(tx, id, email, &email_key(email), self.clock.now()).await;
        let user = changed.map_err(taken)?.ok_or_else(unknown)?;
        if before.email != email {
            let details = AuditDetails::change(Some(before.email.as_str()), Some(email));
            self.audit.note_with(tx, at_home, AuditAction::EmailChanged, "user", id, details).await?;
        }
        Ok(user)
    }

    /// Whether the account has a password. One that was made for somebody from the provider of OpenID Connect has none.
    pub(crate) async fn has_password(&self, actor: &Actor) -> Result<bool, ApiError> {
        let found = db::accounts::find_credentials(&self.db, actor.account()?).await?;
        Ok(found.ok_or_else(unknown)?.password_hash != NO_PASSWORD)
    }

    /// Adds an account without a password, whose e-mail the provider of OpenID Connect has verified, if the settings let anyone.
    ///
    /// # Errors
    /// 403 when they do not, and a conflict when there is an account with this e-mail.
    pub(super) async fn add_verified(
        &self,
        tx: &mut Tx,
        email: &str,
        name: Option<&str>,
    ) -> Result<User, ApiError> {
        self.insert(tx, email, name, NO_PASSWORD, AccountOrigin::SignUp).await
    }

    /// Makes an account of what is checked already, whose password is hashed in the turn of an address. `maker` is who makes it.
    async fn create(
        &self,
        account: NewAccount,
        origin: AccountOrigin,
        address: IpAddr,
        maker: impl FnOnce(UserId) -> Actor,
    ) -> Result<User, ApiError> {
        if origin == AccountOrigin::SignUp {
            let taken = self.policy == SignUp::First && singletons::get(&self.db, FIRST).await?.is_some();
            // Said before the password is hashed, which is the expensive part.
            if self.policy == SignUp::Closed || taken {
                return Err(closed());
            }
        }
        let password_hash = self.passwords.turn(address).await?.hash(account.password).await?;
        let mut tx = self.db.begin().await?;
        let created =
            self.insert(&mut tx, &account.email, account.name.as_deref(), &password_hash, origin).await?;
        let maker = maker(created.id);
        self.audit.note(&mut tx, &maker, AuditAction::AccountCreated, "user", created.id).await?;
        tx.commit().await?;
        tracing::info!(user = %created.id, admin = created.is_admin, "account created");
        Ok(created)
    }

    /// Adds an account. The first one of an installation is an admin.
    async fn insert(
        &self,
        tx: &mut Tx,
        email: &str,
        name: Option<&str>,
        password_hash: &str,
        origin: AccountOrigin,
    ) -> Result<User, ApiError> {
        let email = email.trim();
        let local_part = email.split('@').next().unwrap_or(email);
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        let first = singletons::claim(tx, FIRST, "taken").await?;
        let is_admin = match (origin, self.policy) {
            (AccountOrigin::SignUp, SignUp::Closed) => return Err(closed()),
            (AccountOrigin::SignUp, SignUp::First) if !first => return Err(closed()),
            (AccountOrigin::SignUp, SignUp::First | SignUp::Open) => first,
            (AccountOrigin::Operator { admin }, SignUp::Closed | SignUp::First | SignUp::Open) => {
                admin || first
            }
        };
        let user = db::accounts::NewUser {
            id: UserId::generate(),
            email,
            email_key: &email_key(email),
            name: name.unwrap_or(local_part),
            password_hash,
            is_admin,
        };
        db::accounts::insert(tx, &user, self.clock.now()).await.map_err(taken)
    }
}

/// What is said of an e-mail that could not be stored.
fn taken(error: DbError) -> ApiError {
    match error {
        DbError::Duplicate => ApiError::conflict("There is an account with this e-mail already."),
        error @ (DbError::Full(_)
        | DbError::Failed(_)
        | DbError::CommitUnknown(_)
        | DbError::Unreadable(_)) => error.into(),
    }
}

fn closed() -> ApiError {
    ApiError::forbidden("This service takes no sign-ups. Ask its operator for an account.")
}

fn unknown() -> ApiError {
    ApiError::not_found("account")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fields::validate;

    fn wrong(body: &Value) -> Vec<String> {
        let Err(error) = validate::<AccountChange>(body) else { return Vec::new() };
        error.fields.into_iter().map(|field| field.path).collect()
    }

    #[test]
    fn one_thing_is_said_of_a_field_and_it_is_so() {
        let said = |email: &str, password: &str| -> Vec<String> {
            let Err(error) = validate::<NewAccount>(&json!({"email": email, "password": password})) else {
                return Vec::new();
            };
            error.fields.into_iter().map(|field| field.message).collect()
        };
        assert_eq!(said("ada@example.com", "        "), ["must not be blanks only"]);
        assert_eq!(said("ada@example.com", ""), ["must not be empty"]);
        assert_eq!(said("ada@example.com", "short"), ["must have 8 to 256 characters"]);
        let long = format!("{}@example.com", "a".repeat(300));
        assert_eq!(said(&long, "correct horse"), ["must have at most 254 characters"]);
        assert_eq!(said("ada", "correct horse"), ["must be an e-mail address"]);
        // Nobody can sign in with a password of blanks.
        let blanks = json!({"password": "        ", "currentPassword": "correct horse"});
        assert_eq!(wrong(&blanks), ["password"]);
    }

    #[test]
    fn a_change_leaves_out_what_stays_and_empties_nothing() {
        assert_eq!(wrong(&json!({})), [""; 0]);
        assert_eq!(wrong(&json!({"name": "Ada"})), [""; 0]);
        let nulls = json!({"name": null, "password": null, "currentPassword": null});
        assert_eq!(wrong(&nulls), ["name", "password", "currentPassword"]);
        assert_eq!(wrong(&json!({"name": null, "isAdmin": true})), ["isAdmin", "name"]);
    }
}
