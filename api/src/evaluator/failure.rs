//! Why a run of an evaluation ends early.

use std::fmt::Display;

use lectern_agents::evaluation::GoldError;
use lectern_db::{DbError, DbErrorKind};
use lectern_shared::compute::ComputeStopped;

use crate::error::{ApiError, ApiErrorKind};

/// Why a run does not come to its end.
#[derive(Debug)]
pub(super) enum RunFailure {
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
    /// A mistake of ours: to try it again and again would be no better.
    fn internal(cause: impl Display) -> Self {
        tracing::error!(%cause, "a run of an evaluation failed inside the service");
        Self::Stopped("Something failed inside the service.".to_owned())
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

/// What a service refuses stops the run, and is told; that a part of it is away does not.
impl From<ApiError> for RunFailure {
    fn from(error: ApiError) -> Self {
        match error.kind {
            // The cause, which would tell how soon it passes, is in the log alone.
            ApiErrorKind::Unavailable => Self::Slow(error.message),
            ApiErrorKind::StorageFull => Self::Outage(error.message),
            _ => Self::Stopped(error.message),
        }
    }
}

impl From<ComputeStopped> for RunFailure {
    fn from(stopped: ComputeStopped) -> Self {
        // That the process stops is known before this: something panicked, and would do so again.
        Self::internal(stopped)
    }
}

impl From<GoldError> for RunFailure {
    fn from(error: GoldError) -> Self {
        match error {
            GoldError::Db(error) => error.into(),
            GoldError::Stopped(stopped) => stopped.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::failure::ServiceFailure;

    use super::*;

    #[test]
    fn what_may_pass_does_not_end_a_run_for_good() {
        let told = |failure: ServiceFailure| RunFailure::from(ApiError::from(failure));
        for passing in [ServiceFailure::Unavailable, ServiceFailure::OutcomeUnknown] {
            assert!(matches!(told(passing), RunFailure::Slow(_)), "{passing:?}");
        }
        assert!(matches!(told(ServiceFailure::StorageFull), RunFailure::Outage(_)));
        assert!(matches!(told(ServiceFailure::Internal), RunFailure::Stopped(_)));
        let refused = RunFailure::from(ApiError::forbidden("It is used up."));
        assert!(matches!(refused, RunFailure::Stopped(why) if why == "It is used up."));
        let full = RunFailure::from(DbError::Full("no room".to_owned()));
        assert!(matches!(full, RunFailure::Outage(_)));
        let damaged = RunFailure::from(DbError::Unreadable("a value".to_owned()));
        assert!(matches!(damaged, RunFailure::Stopped(_)), "it would fail again and again");
    }
}
