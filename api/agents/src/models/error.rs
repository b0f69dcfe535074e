//! What can go wrong between this service and a model provider.
//!
//! Upstream error bodies quote API keys, prompts and addresses, so nothing of them is kept: an error is a class,
//! a status and the provider's label, and its text is safe to send to a client and to log.

use std::time::Duration;

use super::ModelProvider;

/// A chat call that failed for good, after every try it was entitled to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[error("The model provider {provider} {kind}.")]
pub struct ChatError {
    /// The provider that was asked.
    pub provider: ModelProvider,
    /// Requests sent, the failed ones included.
    pub attempts: u32,
    /// The class of the failure.
    pub kind: ChatErrorKind,
}

/// The class of a failed chat call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error)]
pub enum ChatErrorKind {
    /// The provider does not accept the credentials (401, 403).
    #[error("rejected the credentials (status {status}): check the key")]
    Unauthorized {
        /// The HTTP status.
        status: u16,
    },
    /// The provider knows no such model, or has nothing where it was asked (404).
    #[error("knows no such model, or has no chat at this address (status 404)")]
    NotFound,
    /// The conversation has more tokens than the model takes.
    #[error("rejected the request: the conversation is longer than the model takes (status {status})")]
    TooLong {
        /// The HTTP status, or the one that an error event named.
        status: u16,
    },
    /// The account that the key belongs to has nothing left to pay with.
    #[error("rejected the request: its account has no credit left (status {status})")]
    NoCredit {
        /// The HTTP status, or the one that an error event named.
        status: u16,
    },
    /// The provider does not accept the request (any other 4xx).
    #[error("rejected the request (status {status})")]
    BadRequest {
        /// The HTTP status, or the one that an error event named.
        status: u16,
    },
    /// The provider still answered 429 at the last try.
    #[error("is limiting requests")]
    RateLimited {
        /// How long the provider asked callers to wait.
        retry_after: Option<Duration>,
    },
    /// The provider failed, redirected, or sent an error in the middle of a stream.
    #[error("failed{}", status.map(|status| format!(" (status {status})")).unwrap_or_default())]
    Upstream {
        /// The HTTP status; `None` for an error event that named none.
        status: Option<u16>,
    },
    /// The answer broke off, or ended without saying why it ended.
    #[error("ended its answer before it was complete")]
    Truncated,
    /// The answer is not an event stream of JSON objects.
    #[error("answered with something that is not a stream of chat events: check the address")]
    Garbage,
    /// The answer is one JSON text, and no event stream.
    #[error("answered in one piece: the server did not stream, as it was asked to")]
    NotStreamed,
    /// The answer's tool calls, one of its events, or all of it together are larger than accepted.
    #[error("sent a larger answer than is accepted")]
    TooLarge,
    /// The stream ended in good order and held no choice at all.
    #[error("answered without any choice")]
    NoChoices,
    /// The answer has neither text nor tool calls. [`super::ChatModel::chat`] never fails with it: an empty answer
    /// is an outcome there, and callers that cannot use one report it with this.
    #[error("{0}")]
    Empty(EmptyAnswer),
    /// Nothing arrived for too long, or the deadline passed.
    #[error("did not answer in time")]
    Timeout,
    /// No connection could be made: nobody answers at the address, or its host leads to an address that this service does not connect
    /// to. Which of the two is not told, so that nobody maps the operator's network by it.
    #[error("could not be reached: it does not answer, or its host leads to an address which is not allowed")]
    RefusedAddress,
    /// The connection was not secure, or closed before an answer began.
    #[error("closed the connection")]
    Connect,
}

/// Why an answer has neither text nor tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error)]
pub enum EmptyAnswer {
    /// The provider says that the model was done.
    #[error("answered with nothing")]
    Nothing,
    /// The model could write no more, and had only thought.
    #[error(
        "reached the limit of its length before the first word of the answer: `llm.max_tokens` may be too low, since thoughts count too"
    )]
    Length,
    /// The provider withheld all of it.
    #[error("withheld its answer")]
    Withheld,
}

impl ChatErrorKind {
    /// The class in `snake_case`, for error envelopes, traces and logs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "provider_unauthorized",
            // What came as a limit of rate is told as one.
            Self::RateLimited { .. } | Self::NoCredit { status: 429 } => "provider_rate_limited",
            Self::NotFound | Self::TooLong { .. } | Self::NoCredit { .. } | Self::BadRequest { .. } => {
                "provider_rejected"
            }
            Self::Upstream { .. } => "provider_failed",
            Self::Truncated => "provider_truncated",
            Self::Garbage | Self::NotStreamed => "provider_garbage",
            Self::TooLarge => "provider_too_large",
            Self::NoChoices => "provider_no_choices",
            Self::Empty(_) => "provider_empty",
            Self::Timeout => "provider_timeout",
            Self::RefusedAddress => "provider_refused_address",
            Self::Connect => "provider_unreachable",
        }
    }

    /// The class of an unsuccessful HTTP status.
    pub(super) const fn from_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            401 | 403 => Self::Unauthorized { status },
            402 => Self::NoCredit { status },
            404 => Self::NotFound,
            429 => Self::RateLimited { retry_after },
            // The provider, or a gateway before it, gave up waiting, or finds it too early: not the request's fault.
            408 | 425 => Self::Upstream { status: Some(status) },
            400..=499 => Self::BadRequest { status },
            _ => Self::Upstream { status: Some(status) },
        }
    }
}

/// A model that cannot be set up from what its agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModelConfigError {
    /// The label is known, but this build has no way to reach the provider.
    #[error("The provider {provider} is not available on this server.")]
    ProviderNotAvailable {
        /// The provider in question.
        provider: ModelProvider,
    },
    /// The provider has no address of its own.
    #[error("The provider {provider} needs a base URL.")]
    BaseUrlRequired {
        /// The provider in question.
        provider: ModelProvider,
    },
    /// Neither the agent nor the operator has a key of the provider, which answers nobody without one.
    #[error(
        "No API key is set for the provider {provider}: the agent has no `llm.api_key`, and the operator has set none."
    )]
    ApiKeyRequired {
        /// The provider in question.
        provider: ModelProvider,
    },
    /// Not http or https, no host, or with a user name or password in it (keys belong in the key field).
    #[error("The base URL must be an http or https address without a user name or password.")]
    BaseUrlInvalid,
    /// The key holds characters that no HTTP header can carry.
    #[error("The API key holds characters that cannot be sent.")]
    ApiKeyInvalid,
    /// No model name.
    #[error("The model name is empty.")]
    ModelRequired,
}
