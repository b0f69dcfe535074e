//! What ends a run of an evaluation early when a service refuses, or what answers cannot be looked for.

use lectern_agents::evaluation::GoldError;
pub(super) use lectern_runtime::leased::RunFailure;

use crate::error::{ApiError, ApiErrorKind};

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

/// What it means for a run that what answers could not be looked for.
pub(super) fn of_gold(error: GoldError) -> RunFailure {
    match error {
        GoldError::Db(error) => error.into(),
        GoldError::Stopped(stopped) => stopped.into(),
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
    }
}
