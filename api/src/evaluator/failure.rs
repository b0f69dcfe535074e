//! Why a run of an evaluation ends early.

use std::fmt::Display;

use lectern_agents::evaluation::GoldError;
use lectern_db::DbError;
use lectern_shared::compute::ComputeStopped;

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
        if error.is_outage() { Self::Outage(error.to_string()) } else { Self::internal(error) }
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
