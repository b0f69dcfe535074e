//! Why a run of a source ends early.

use std::{fmt::Display, io};

use lectern_db::{DbError, DbErrorKind};
use lectern_shared::blobs::BlobError;

use crate::failure::IngestFailure;

/// Why a run does not come to its end.
#[derive(Debug)]
pub(super) enum RunFailure {
    /// Somebody stopped it, or another worker has it.
    Lost,
    /// This process stops.
    Interrupted,
    /// It cannot be done; why, for people.
    Stopped(String),
    /// A part of the service is away.
    Outage(String),
    /// The store took too long: it may have too much to do now, or what it was asked may be too much for it.
    Slow(String),
}

impl RunFailure {
    /// It cannot be done.
    pub(super) fn stop(why: impl Display) -> Self {
        let mut why = why.to_string();
        if !why.ends_with('.') {
            why.push('.');
        }
        Self::Stopped(why)
    }

    /// A mistake of ours.
    fn internal(cause: impl Display) -> Self {
        tracing::error!(%cause, "a run of a source failed inside the service");
        Self::stop("Something failed inside the service")
    }
}

impl From<DbError> for RunFailure {
    fn from(error: DbError) -> Self {
        match error.kind() {
            DbErrorKind::Outage => Self::Outage(error.to_string()),
            DbErrorKind::Slow => Self::Slow(error.to_string()),
            DbErrorKind::Fault => Self::internal(error),
        }
    }
}

impl From<BlobError> for RunFailure {
    fn from(error: BlobError) -> Self {
        Self::Outage(error.to_string())
    }
}

impl From<io::Error> for RunFailure {
    fn from(error: io::Error) -> Self {
        Self::Outage(error.to_string())
    }
}

impl From<IngestFailure> for RunFailure {
    fn from(failure: IngestFailure) -> Self {
        match failure {
            IngestFailure::Document(error) | IngestFailure::Source { error, .. } => Self::stop(error.message),
            IngestFailure::ClaimLost => Self::Lost,
            IngestFailure::Outage(cause) => Self::Outage(cause),
            other => Self::internal(other.into_error().message),
        }
    }
}
