//! Why an ingestion failed, and how that is told.

use std::{io, time::Duration};

use lectern_db::{DbError, DbErrorKind};
use lectern_index::{IndexError, segment::BuildError};
use lectern_jobs::RetryPause;
use lectern_parse::protocol::ParseError;
use lectern_sandbox::{SandboxError, budget::CpuBudget};
use lectern_shared::{egress::EgressError, model::job::IngestionError};

/// Why an ingestion failed.
#[derive(Debug)]
pub(crate) enum IngestFailure {
    /// The document cannot be ingested; its owner is told why.
    Document(IngestionError),
    /// The source cannot be had now.
    Source {
        /// What the document's owner is told.
        error: IngestionError,
        /// How long its server asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// A part of the service failed; worth trying again.
    Internal(String),
    /// A server that the service needs is away; no document is to blame.
    Outage(String),
    /// Nothing moved for too long.
    Stalled,
    /// The code panicked.
    Panicked,
    /// The claim is no longer held; somebody else decides.
    ClaimLost,
}

impl IngestFailure {
    /// A failure that trying again does not mend.
    pub(crate) fn permanent(code: &str, message: impl Into<String>) -> Self {
        Self::Document(IngestionError { code: code.to_owned(), message: message.into(), retryable: false })
    }

    /// A failure that may be over soon.
    pub(crate) fn passing(code: &str, message: impl Into<String>) -> Self {
        Self::Document(IngestionError { code: code.to_owned(), message: message.into(), retryable: true })
    }

    /// The source cannot be had now, for as long as its server says, if it does.
    pub(crate) fn away(code: &str, message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        let error = IngestionError { code: code.to_owned(), message: message.into(), retryable: true };
        Self::Source { error, retry_after }
    }

    /// How long the next attempt waits, where there is one.
    pub(crate) fn pause(&self) -> RetryPause {
        if let Self::Source { retry_after, .. } = self {
            RetryPause::Source(*retry_after)
        } else {
            RetryPause::Service
        }
    }

    /// The document has taken all the processor time that it may.
    pub(crate) fn out_of_time(budget: &CpuBudget) -> Self {
        ParseError::OutOfTime { seconds: budget.limit().as_secs() }.into()
    }

    /// There is nothing to index.
    pub(crate) fn no_text(message: &str) -> Self {
        Self::permanent("no_extractable_text", message)
    }

    /// What the document's owner is told. The cause of an internal failure goes to the log, not to the owner.
    pub(crate) fn into_error(self) -> IngestionError {
        let (code, message) = match self {
            Self::Document(error) | Self::Source { error, .. } => return error,
            Self::Internal(cause) => {
                tracing::error!(cause, "an ingestion failed inside the service");
                ("internal", "Something failed inside the service; the document itself may be fine.")
            }
            Self::Outage(_) => {
                ("unavailable", "A part of the service was away; the document is tried again by itself.")
            }
            Self::Panicked => {
                tracing::error!("an ingestion panicked");
                ("internal", "Something failed inside the service; the document itself may be fine.")
            }
            Self::Stalled => ("timeout", "The ingestion made no progress for too long."),
            Self::ClaimLost => ("interrupted", "The ingestion was interrupted."),
        };
        IngestionError { code: code.to_owned(), message: message.to_owned(), retryable: true }
    }
}

impl From<EgressError> for IngestFailure {
    fn from(error: EgressError) -> Self {
        let message = format!("The source could not be fetched: {error}.");
        if error.is_retryable() {
            Self::away(error.code(), message, None)
        } else {
            Self::permanent(error.code(), message)
        }
    }
}

impl From<IndexError> for IngestFailure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::ClaimLost => Self::ClaimLost,
            // The same passage is refused the next time, too.
            IndexError::Rejected(BuildError::Full | BuildError::TextTooLong(_)) => {
                Self::permanent("too_large", format!("The document cannot be indexed: {error}."))
            }
            // The model is to blame, and no document.
            IndexError::Rejected(_) => {
                tracing::error!(%error, "the vectors of a document cannot be indexed");
                Self::passing(
                    "embedder_failed",
                    "The vectors of the embedding model cannot be indexed; whoever runs the service can tell why.",
                )
            }
            // A key that is refused, or a collection that is gone, is no document's fault either.
            IndexError::Engine(cause) | IndexError::Refused(cause) => Self::Outage(cause),
            IndexError::Db(error) => error.into(),
            IndexError::Stopped(_) | IndexError::Spill(_) => Self::Internal(error.to_string()),
        }
    }
}

/// The store's own trouble is nothing that the document's owner can mend.
impl From<DbError> for IngestFailure {
    fn from(error: DbError) -> Self {
        match error.kind() {
            // One that is too slow all the time uses up the patience with outages, and then attempts.
            DbErrorKind::Outage | DbErrorKind::Slow => Self::Outage(error.to_string()),
            DbErrorKind::Fault => Self::Internal(error.to_string()),
        }
    }
}

impl From<ParseError> for IngestFailure {
    fn from(error: ParseError) -> Self {
        Self::permanent(error.code(), error.to_string())
    }
}

impl From<SandboxError> for IngestFailure {
    fn from(error: SandboxError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<io::Error> for IngestFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Outage(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_called_too_large_only_when_it_is() {
        let code = |error: BuildError| IngestFailure::from(IndexError::Rejected(error)).into_error().code;
        for error in [BuildError::Full, BuildError::TextTooLong(1 << 30)] {
            assert_eq!(code(error), "too_large");
        }
        for error in [
            BuildError::NotFinite,
            BuildError::MixedVectors,
            BuildError::Dimension { expected: 2, actual: 3 },
        ] {
            assert_eq!(code(error), "embedder_failed");
        }
    }
}
