//! Where Qdrant is.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

/// How to reach Qdrant.
#[derive(Clone, Debug)]
pub struct QdrantConfig {
    /// Its gRPC address: `http://host:6334`, or `https` for TLS with a certificate that the system trusts.
    pub url: Url,
    /// Its key.
    pub api_key: Option<SecretString>,
    /// The longest that one request takes.
    pub timeout: Duration,
}
