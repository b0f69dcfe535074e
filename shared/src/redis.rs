//! Redis, where several processes share what none of them needs to keep: the queue's doorbell and counters. It may be away,
//! slow, or emptied at any time; whoever asks it must be able to do without an answer.

use std::time::Duration;

pub use redis::RedisError;
use redis::{
    Client, IntoConnectionInfo,
    aio::{ConnectionManager, ConnectionManagerConfig, PubSub},
    io::tcp::TcpSettings,
};
use secrecy::{ExposeSecret, SecretString};

/// The longest that anybody waits for an answer, or for a connection.
const PATIENCE: Duration = Duration::from_secs(1);
/// A connection on which nothing that was sent is acknowledged for so long is given up: the server, or the way to it, is gone
/// without a word.
const SILENCE: Duration = Duration::from_secs(3);

/// A Redis server that this installation uses. Cheap to clone.
#[derive(Clone)]
pub struct Redis {
    client: Client,
    connection: ConnectionManager,
    prefix: String,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// Whether this can be the address of a Redis server.
pub(crate) fn is_url(url: &SecretString) -> bool {
    let text = url.expose_secret();
    (text.starts_with("redis://") || text.starts_with("rediss://")) && Client::open(text).is_ok()
}

impl Redis {
    /// A server at `url`, whose keys for the installation `instance` are its own. Nothing is connected yet: the first use
    /// connects, and every later one connects again when that is necessary.
    ///
    /// # Errors
    /// When the URL cannot be read.
    pub fn new(url: &SecretString, instance: &str) -> Result<Self, RedisError> {
        crate::tls::install();
        let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(SILENCE);
        let client = Client::open(url.expose_secret().into_connection_info()?.set_tcp_settings(tcp))?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE))
            .set_number_of_retries(1)
            .set_max_delay(PATIENCE);
        let connection = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
        Ok(Self { client, connection, prefix: format!("lectern:{instance}") })
    }

    /// A connection that several callers share, and that comes back by itself. An answer takes a second at most.
    pub fn connection(&self) -> ConnectionManager {
        self.connection.clone()
    }

    /// What every key of this installation begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether it can be used. A replica, or a server whose memory is full, answers a PING, and takes nothing that is written.
    pub async fn ping(&self) -> Result<(), RedisError> {
        // With nothing at the beginning of what is not there, this is a write, and writes nothing.
        let mut write = redis::cmd("SETRANGE");
        write.arg(format!("{}:ping", self.prefix)).arg(0).arg("");
        write.exec_async(&mut self.connection()).await
    }

    /// A connection of its own that hears what is published on `channel`.
    ///
    /// # Errors
    /// When the server does not take it within a second.
    pub async fn subscribe(&self, channel: &str) -> Result<PubSub, RedisError> {
        let subscribed = async {
            let mut messages = self.client.get_async_pubsub().await?;
            messages.subscribe(channel).await?;
            Ok(messages)
        };
        match tokio::time::timeout(PATIENCE, subscribed).await {
            Ok(result) => result,
            Err(_) => Err((redis::ErrorKind::Io, "no connection in time").into()),
        }
    }
}

#[cfg(any(test, feature = "testing"))]
#[allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "for tests"
)]
pub mod testing {
    //! The Redis server that the test command starts; every test has keys of its own on it.

    use super::{Redis, SecretString};

    /// The server's address.
    pub fn url() -> SecretString {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test command passes the server's address this way"
        )]
        let url = std::env::var("TEST_REDIS_URL").expect(
            "TEST_REDIS_URL is not set: run scripts/test.sh, which starts a Redis server for the tests",
        );
        SecretString::from(url)
    }

    /// An installation that nobody else uses.
    pub fn fresh() -> Redis {
        Redis::new(&url(), &format!("test-{}", uuid::Uuid::now_v7())).unwrap()
    }

    /// An installation whose server is away.
    pub fn away() -> Redis {
        // Nothing can listen on port 0.
        Redis::new(&SecretString::from("redis://127.0.0.1:0"), "test").unwrap()
    }
}
