//! What opens a request: whose it is, and whether it is still in force.

use std::collections::{HashMap, HashSet};

use lectern_shared::{
    clock::Clock,
    db::{Db, DbError, accounts},
    ids::{ApiTokenId, UserId},
    model::user::User,
};

use super::{
    sign_in::SignInService,
    tokens::{self, TokenService},
};
use crate::error::ApiError;

/// What opened a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    /// A JSON web token.
    SignIn {
        user: UserId,
        /// The user's token version that it was given out under.
        version: i64,
        /// When it ends by itself, in seconds since 1970.
        ends_at: i64,
    },
    /// An API token.
    Token(ApiTokenId),
}

/// Tells whose credentials are. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Authenticator {
    db: Db,
    clock: Clock,
    sign_ins: SignInService,
    tokens: TokenService,
}

impl Authenticator {
    pub(crate) fn new(db: Db, clock: Clock, sign_ins: SignInService, tokens: TokenService) -> Self {
        Self { db, clock, sign_ins, tokens }
    }

    /// What this text is, and whose.
    ///
    /// # Errors
    /// When it opens nothing, or nothing any more.
    pub(crate) async fn authenticate(&self, text: &str) -> Result<(Credential, User), ApiError> {
        let found = if text.starts_with(tokens::PREFIX) {
            self.tokens.authenticate(text).await?.map(|(id, user)| (Credential::Token(id), user))
        } else {
            self.sign_ins.authenticate(text).await?.map(|(claims, user)| {
                let (version, ends_at) = (claims.ver, claims.exp);
                (Credential::SignIn { user: claims.sub, version, ends_at }, user)
            })
        };
        found.ok_or_else(ApiError::credential_ended)
    }

    /// Those of these credentials that open nothing any more.
    pub(crate) async fn ended(&self, credentials: &[Credential]) -> Result<Vec<Credential>, DbError> {
        let (mut users, mut tokens) = (Vec::new(), Vec::new());
        for credential in credentials {
            match credential {
                Credential::SignIn { user, .. } => users.push(*user),
                Credential::Token(id) => tokens.push(*id),
            }
        }
        let versions: HashMap<UserId, i64> = match users.as_slice() {
            [] => HashMap::new(),
            users => accounts::token_versions(&self.db, users).await?.into_iter().collect(),
        };
        let tokens: HashSet<ApiTokenId> = match tokens.as_slice() {
            [] => HashSet::new(),
            tokens => accounts::tokens_in_force(&self.db, tokens).await?.into_iter().collect(),
        };
        let now = self.clock.now().as_secs();
        let is_in_force = |credential: &Credential| match credential {
            Credential::SignIn { user, version, ends_at } => {
                *ends_at > now && versions.get(user) == Some(version)
            }
            Credential::Token(id) => tokens.contains(id),
        };
        Ok(credentials.iter().filter(|credential| !is_in_force(credential)).copied().collect())
    }
}
