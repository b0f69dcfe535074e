//! Failures inside the service as those who asked are told of them: a code and a sentence that stay the same whatever the
//! cause was. The cause goes to the log, and nowhere else.

use crate::{compute::ComputeStopped, secrets::SecretError};

/// A failure inside the service, without its cause. Its text is for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceFailure {
    /// It is stored already.
    #[error("This exists already.")]
    Duplicate,
    /// Nothing more can be stored.
    #[error("The service has no room left to store this. What is stored can be read, searched and deleted.")]
    StorageFull,
    /// A part of the service is away for the moment.
    #[error("A part of the service is away; try again shortly.")]
    Unavailable,
    /// A commit's answer was lost and the database is away.
    #[error(
        "The database went away while this was stored, so it may or may not have been done. Look before you try again, or \
         send it again with the same Idempotency-Key."
    )]
    OutcomeUnknown,
    /// Something broke.
    #[error("Something failed inside the service. The request id finds it in the log.")]
    Internal,
}

impl ServiceFailure {
    /// What it is called in answers, spans and log lines.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Duplicate => "conflict",
            Self::StorageFull => "storage_full",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Internal => "internal",
        }
    }
}

impl From<SecretError> for ServiceFailure {
    fn from(error: SecretError) -> Self {
        tracing::error!(%error, "a stored secret cannot be read");
        Self::Internal
    }
}

impl From<ComputeStopped> for ServiceFailure {
    fn from(_: ComputeStopped) -> Self {
        Self::Internal
    }
}
