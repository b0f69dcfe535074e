//! What a failure that ingestion knows means for a run of a source.

pub(super) use lectern_runtime::leased::RunFailure;

use crate::failure::IngestFailure;

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
