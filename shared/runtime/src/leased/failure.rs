//! Why a run of claimed work ends early.

use std::{fmt::Display, io};

use lectern_db::{DbError, DbErrorKind};
use lectern_shared::{blobs::BlobError, compute::ComputeStopped};

/// Why a run does not come to its end.
#[derive(Debug)]
pub enum RunFailure {
    /// Somebody stopped it, or another process has it.
    Lost,
    /// This process stops.
    Interrupted,
    /// It cannot be done; why, for people.
    Stopped(String),
    /// A part of the service is away.
    Outage(String),
    /// The store took too long, or failed in a way that may pass: it may have too much to do now, or what it was asked may be too much for
    /// it.
    Slow(String),
}

impl RunFailure {
    /// It cannot be done.
    pub fn stop(why: impl Display) -> Self {
        let mut why = why.to_string();
        if !why.ends_with('.') {
            why.push('.');
        }
        Self::Stopped(why)
    }

    /// A mistake of ours: to try it again and again would be no better.
    pub fn internal(cause: impl Display) -> Self {
        tracing::error!(%cause, "a run failed inside the service");
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

impl From<ComputeStopped> for RunFailure {
    fn from(stopped: ComputeStopped) -> Self {
        // That the process stops is known before this: something panicked, and would do so again.
        Self::internal(stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_does_not_end_a_run_for_good() {
        let full = RunFailure::from(DbError::Full("no room".to_owned()));
        assert!(matches!(full, RunFailure::Outage(_)));
        let damaged = RunFailure::from(DbError::Unreadable("a value".to_owned()));
        assert!(matches!(damaged, RunFailure::Stopped(_)), "it would fail again and again");
    }
}
