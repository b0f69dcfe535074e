//! Why an agent gave no answer, as the one who asked is told. Causes inside the service go to the log.

use lectern_db::DbError;
use lectern_embed::EmbedError;
use lectern_shared::{compute::ComputeStopped, failure::ServiceFailure, secrets::SecretError};

use crate::{
    models::{ChatError, ModelConfigError},
    search::SearchError,
};

/// Why an agent, or a search, gave no answer. The text is for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The owner has no agent of this id.
    #[error("There is no such agent.")]
    UnknownAgent,
    /// The agent was saved by a version that knows more providers of models.
    #[error("The agent's provider is not known to this version of the service.")]
    UnknownProvider,
    /// The agent's prompt uses variables that the question has no values for: their names.
    #[error("the agent's prompt has variables without a value")]
    MissingValues(Vec<String>),
    /// The prompt, filled in, would have more than so many bytes.
    #[error("the agent's prompt would have more than {0} bytes")]
    PromptTooLong(usize),
    /// The model cannot be set up.
    #[error(transparent)]
    ModelSetup(#[from] ModelConfigError),
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ChatError),
    /// Search by meaning was asked for, and there is no embedding model.
    #[error(
        "The service has no embedding model, so it cannot search by meaning. Set `mode` to `lexical` or `hybrid`, or leave it \
         out."
    )]
    NoEmbedder,
    /// The embedding model may answer the next time.
    #[error("The embedding model is away; try again shortly, or set `mode` to `lexical` or `hybrid`.")]
    EmbedderAway,
    /// The embedding model will fail until the operator changes something.
    #[error(
        "The embedding model cannot be used as the service is set up. Set `mode` to `lexical` or `hybrid`, or leave it out."
    )]
    EmbedderRefused,
    /// The run cannot be repeated.
    #[error(transparent)]
    NotRepeatable(#[from] RepeatRefusal),
    /// Whoever reads the events took none for too long.
    #[error(
        "The stream was not read for too long, and a part of it is lost; the trace has the whole answer."
    )]
    StreamNotRead,
    /// Something inside the service failed.
    #[error(transparent)]
    Service(#[from] ServiceFailure),
}

/// Why a stored run cannot be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepeatRefusal {
    /// Not all of it was kept.
    #[error(
        "This trace has no whole record, since it was too large or failed early, so it cannot be run again."
    )]
    NoRecord,
    /// The record is in another form than this version writes.
    #[error("This trace was recorded by another version of the service and cannot be repeated.")]
    OtherVersion,
}

impl AgentError {
    /// What it is called in answers, spans and log lines.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownAgent => "not_found",
            Self::UnknownProvider | Self::ModelSetup(_) => "provider_not_available",
            Self::MissingValues(_) | Self::PromptTooLong(_) => "invalid_fields",
            Self::Model(error) => error.kind.code(),
            Self::NoEmbedder => "no_embedding_model",
            Self::EmbedderAway | Self::EmbedderRefused => "embedding_model_unavailable",
            Self::NotRepeatable(_) => "conflict",
            Self::StreamNotRead => "stream_not_read",
            Self::Service(failure) => failure.code(),
        }
    }

    /// Something broke here; the log says what.
    pub(crate) const fn internal() -> Self {
        Self::Service(ServiceFailure::Internal)
    }
}

impl From<DbError> for AgentError {
    fn from(error: DbError) -> Self {
        Self::Service(error.into())
    }
}

impl From<SecretError> for AgentError {
    fn from(error: SecretError) -> Self {
        Self::Service(error.into())
    }
}

impl From<ComputeStopped> for AgentError {
    fn from(error: ComputeStopped) -> Self {
        Self::Service(error.into())
    }
}

impl From<EmbedError> for AgentError {
    fn from(error: EmbedError) -> Self {
        match error {
            EmbedError::Away(_) => {
                tracing::warn!(%error, "the embedding model is away");
                Self::EmbedderAway
            }
            EmbedError::Refused(_) => {
                tracing::error!(%error, "the embedding model cannot be used");
                Self::EmbedderRefused
            }
            EmbedError::Stopped(error) => error.into(),
        }
    }
}

impl From<SearchError> for AgentError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Db(error) => error.into(),
            SearchError::Index(error) => {
                tracing::error!(%error, "the index failed");
                Self::Service(ServiceFailure::Unavailable)
            }
            SearchError::NoModel => Self::NoEmbedder,
            SearchError::Embed(error) => error.into(),
            SearchError::Stopped(error) => error.into(),
        }
    }
}
