//! Why nobody was signed in. The causes are in the log.

use lectern_db::DbError;
use lectern_shared::secrets::SecretError;

use crate::error::ApiError;

/// Why nobody was signed in, as the page is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OidcFailure {
    /// The provider, or whoever was asked by it, said no.
    Refused,
    /// The answer does not belong to a sign-in that this browser began of late.
    State,
    /// What the provider answered cannot be believed.
    Token,
    /// There is no account yet, and no e-mail that the provider has verified.
    UnverifiedEmail,
    /// The account with their e-mail is somebody else's at the provider.
    EmailTaken,
    /// The provider cannot be asked.
    Away,
    /// There is no account, and the settings let none be made.
    SignUpClosed,
    /// The service itself failed, in a way that has a code of its own.
    Service(&'static str),
}

impl OidcFailure {
    /// What the page is told.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Refused => "oidc_refused",
            Self::State => "oidc_state",
            Self::Token => "oidc_token",
            Self::UnverifiedEmail => "oidc_unverified_email",
            Self::EmailTaken => "oidc_email_taken",
            Self::Away => "oidc_away",
            Self::SignUpClosed => "sign_up_closed",
            Self::Service(code) => code,
        }
    }
}

impl From<ApiError> for OidcFailure {
    fn from(error: ApiError) -> Self {
        Self::Service(error.code)
    }
}

impl From<DbError> for OidcFailure {
    fn from(error: DbError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<SecretError> for OidcFailure {
    fn from(error: SecretError) -> Self {
        ApiError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::failure::ServiceFailure;

    use super::*;

    #[test]
    fn the_pages_have_words_for_every_reason() {
        let script = include_str!("../../../dashboard/assets/app.js");
        let own = [
            OidcFailure::Refused,
            OidcFailure::State,
            OidcFailure::Token,
            OidcFailure::UnverifiedEmail,
            OidcFailure::EmailTaken,
            OidcFailure::Away,
            OidcFailure::SignUpClosed,
        ];
        let services = [
            ServiceFailure::Duplicate,
            ServiceFailure::StorageFull,
            ServiceFailure::Unavailable,
            ServiceFailure::OutcomeUnknown,
            ServiceFailure::Internal,
        ];
        let services = services.map(|failure| ApiError::from(failure).into());
        for failure in own.into_iter().chain(services) {
            assert!(script.contains(&format!("\n  {}: \"", failure.code())), "{failure:?}");
        }
    }
}
