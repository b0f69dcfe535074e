//! Why an outbound request failed, in words that may be shown to whoever caused it: hosts that they named themselves,
//! but no header, query string, credential, resolved address or upstream text.
//!
//! An address that is refused, a name that does not exist and a port that is closed are told in the same words, with the same
//! code, and are tried again alike: who could tell them apart could map the operator's network by names. The log tells them
//! apart.

use std::{error::Error as StdError, io, net::Ipv4Addr};

use url::Url;

use super::resolver::ResolveError;

/// Why an outbound request failed. The `Display` text is one plain sentence, safe to show to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// The URL cannot be requested at all.
    #[error("the URL cannot be fetched: {reason}")]
    InvalidUrl {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The host is, or resolves to, an address that is neither public nor opened by the operator.
    #[error(
        "no connection to {host} could be made: it does not answer, or it is not at an address that is open to users"
    )]
    RefusedAddress {
        /// As the URL names it.
        host: String,
    },
    /// The host is not of the only site that may be asked.
    #[error("{host} does not belong to the site that was to be asked")]
    OtherSite {
        /// As the URL names it.
        host: String,
    },
    /// The host's name could not be resolved.
    #[error(
        "no connection to {host} could be made: it does not answer, or it is not at an address that is open to users"
    )]
    Dns {
        /// As the URL names it.
        host: String,
    },
    /// No connection could be made.
    #[error(
        "no connection to {host} could be made: it does not answer, or it is not at an address that is open to users"
    )]
    Connect {
        /// As the URL names it.
        host: String,
    },
    /// The TLS handshake failed: a certificate that is not trusted, or no TLS spoken there.
    #[error("no secure connection to {host} could be made; its certificate may be invalid")]
    Tls {
        /// As the URL names it.
        host: String,
    },
    /// A time limit passed: connecting, silence, or the request as a whole.
    #[error("{host} took too long to answer")]
    Timeout {
        /// As the URL names it.
        host: String,
    },
    /// The response, decompressed, has more bytes than the request accepts.
    #[error("the response is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Redirects did not come to an end.
    #[error("the address redirects more than {limit} times")]
    TooManyRedirects {
        /// The number that would have been followed.
        limit: usize,
    },
    /// A redirect would have taken a request's content to another site, or gone on without it: what was to be written is not.
    #[error("a redirect was not followed: {reason}")]
    ContentNotSentOn {
        /// What it would have done.
        reason: &'static str,
    },
    /// A redirect leads to what cannot be requested, or would have taken credentials where they do not belong.
    #[error("a redirect was not followed: {reason}")]
    RefusedRedirect {
        /// Where it leads, or what it would have done.
        reason: &'static str,
    },
    /// The body's compression is damaged, cut short or of an unknown kind.
    #[error("the response could not be decompressed")]
    Decode,
    /// The connection broke, or what came over it was not HTTP.
    #[error("{host} did not send a complete HTTP response")]
    Protocol {
        /// As the URL names it.
        host: String,
    },
    /// The client could not be built. Only at the start of the service.
    #[error("the outbound HTTP client could not be set up: {reason}")]
    Setup {
        /// For the operator.
        reason: String,
    },
}

impl EgressError {
    /// The error code by which clients of the API know this kind of failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } => "invalid_url",
            Self::RefusedAddress { .. }
            | Self::OtherSite { .. }
            | Self::Dns { .. }
            | Self::Connect { .. } => "refused_address",
            Self::Tls { .. } => "tls_failed",
            Self::Timeout { .. } => "timeout",
            Self::TooLarge { .. } => "too_large",
            Self::TooManyRedirects { .. } => "too_many_redirects",
            Self::ContentNotSentOn { .. } | Self::RefusedRedirect { .. } => "refused_redirect",
            Self::Decode => "damaged",
            Self::Protocol { .. } => "bad_response",
            Self::Setup { .. } => "internal",
        }
    }

    /// Whether the same request may well succeed later. A name that does not exist cannot be told from a resolver
    /// that is away, so both are; and a name at a refused address must not be told from either. An address that was given in
    /// digits says by itself that it is refused.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RefusedAddress { host } => !is_literal(host),
            Self::Dns { .. } | Self::Connect { .. } | Self::Timeout { .. } | Self::Protocol { .. } => true,
            Self::InvalidUrl { .. }
            | Self::OtherSite { .. }
            | Self::Tls { .. }
            | Self::TooLarge { .. }
            | Self::TooManyRedirects { .. }
            | Self::ContentNotSentOn { .. }
            | Self::RefusedRedirect { .. }
            | Self::Decode
            | Self::Setup { .. } => false,
        }
    }

    pub(super) fn setup(error: &reqwest::Error) -> Self {
        Self::Setup { reason: chain(error) }
    }

    /// The same about where a redirect leads: whoever asked has not written that address and cannot correct it.
    pub(super) fn of_redirect(self) -> Self {
        if let Self::InvalidUrl { reason } = self { Self::RefusedRedirect { reason } } else { self }
    }

    /// Tells apart what can go wrong before the head of a response has arrived.
    pub(super) fn from_send(host: String, error: &reqwest::Error) -> Self {
        let refusal = causes(error).find_map(|cause| cause.downcast_ref::<ResolveError>());
        match refusal {
            Some(ResolveError::Refused) => return Self::RefusedAddress { host },
            Some(ResolveError::TimedOut) => return Self::Timeout { host },
            Some(ResolveError::Failed(_)) => {
                tracing::info!(%host, error = chain(error), "outbound request failed: the name was not resolved");
                return Self::Dns { host };
            }
            None => {}
        }
        tracing::debug!(%host, error = chain(error), "outbound request failed");
        if error.is_timeout() {
            Self::Timeout { host }
        } else if error.is_builder() {
            Self::InvalidUrl { reason: "it is not a valid web address" }
        } else if !error.is_connect() {
            Self::Protocol { host }
        } else if causes(error).any(|cause| io_kind(cause) == Some(io::ErrorKind::InvalidData)) {
            // Connecting reads data in the TLS handshake only.
            Self::Tls { host }
        } else {
            tracing::info!(%host, error = chain(error), "outbound request failed: no connection");
            Self::Connect { host }
        }
    }

    /// The connection failed while a body was read.
    pub(super) fn from_body(host: &str, error: &reqwest::Error) -> Self {
        tracing::debug!(%host, error = chain(error), "response body failed");
        Self::Protocol { host: host.to_owned() }
    }
}

/// Why a host that the operator named does not answer: for the operator, without the address that was asked.
pub fn why_unanswered(error: &reqwest::Error) -> String {
    let why = chain(error);
    if why.is_empty() { "the request failed".to_owned() } else { why }
}

/// Whether a host, as a URL names it, is an address.
fn is_literal(host: &str) -> bool {
    host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
}

/// The host as the URL names it, for messages.
pub(super) fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// The error and everything beneath it. `io::Error` hides the error that it wraps from `source`, so it is unwrapped
/// here: the TLS handshake's lies there.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = error;
    std::iter::successors(Some(first), |&cause| match cause.downcast_ref::<io::Error>() {
        Some(wrapper) => match wrapper.get_ref() {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => wrapper.source(),
        },
        None => cause.source(),
    })
}

fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    error.downcast_ref::<io::Error>().map(io::Error::kind)
}

/// The whole chain in one line, for logs. The client's own layers are left out because they print the URL, and with it
/// whatever secret its query carries.
fn chain(error: &reqwest::Error) -> String {
    let texts: Vec<_> =
        causes(error).filter(|cause| !cause.is::<reqwest::Error>()).map(ToString::to_string).collect();
    texts.join(": ")
}
