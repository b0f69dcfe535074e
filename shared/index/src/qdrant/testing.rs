//! A real Qdrant for the tests, when there is one: collections with a name of their own, deleted in the end.

use std::{io::Write, sync::Once, time::Duration};

use lectern_shared::config::QdrantConfig;
use qdrant_client::Qdrant;
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::QdrantIndex;

/// An index of its own on the server that the test command names.
pub(crate) struct TestQdrant {
    pub(crate) index: QdrantIndex,
    pub(super) config: QdrantConfig,
    pub(super) instance: String,
    pub(super) prefix: String,
}

/// The server that the test command names; without one it is said, once, what did not run.
pub(super) fn server() -> Option<QdrantConfig> {
    static MISSING: Once = Once::new();
    #[expect(clippy::disallowed_methods, reason = "the test command passes the server's address this way")]
    let (url, key) = (std::env::var("TEST_QDRANT_URL"), std::env::var("TEST_QDRANT_API_KEY"));
    let Ok(url) = url else {
        // Not by `eprintln!`, which is shown of failed tests only.
        MISSING.call_once(|| {
            let text = "\n!!! TEST_QDRANT_URL is not set: the tests of the search index did NOT run against Qdrant !!!\n\n";
            let _ = std::io::stderr().write_all(text.as_bytes());
        });
        return None;
    };
    let url = url.parse().expect("TEST_QDRANT_URL is Qdrant's gRPC address, such as http://127.0.0.1:6334");
    Some(QdrantConfig { url, api_key: key.ok().map(SecretString::from), timeout: Duration::from_secs(30) })
}

/// An empty index, if there is a server.
pub(crate) async fn index() -> Option<TestQdrant> {
    let config = server()?;
    let prefix = format!("lectern_test_{}", Uuid::now_v7().simple());
    let instance = Uuid::now_v7().to_string();
    let index = QdrantIndex::open_as(&config, &instance, &prefix, false).await.unwrap();
    Some(TestQdrant { index, config, instance, prefix })
}

impl TestQdrant {
    /// The same index as another process would open it.
    pub(super) async fn reopen(&self) -> QdrantIndex {
        QdrantIndex::open_as(&self.config, &self.instance, &self.prefix, false).await.unwrap()
    }

    pub(super) fn qdrant(&self) -> Qdrant {
        self.index.inner.client.qdrant()
    }
}

impl Drop for TestQdrant {
    fn drop(&mut self) {
        let (config, prefix) = (self.config.clone(), self.prefix.clone());
        // A destructor cannot wait on the runtime of its own test.
        let deleted = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let key = config.api_key.as_ref().map(|key| key.expose_secret().to_owned());
                let builder = Qdrant::from_url(config.url.as_str()).api_key(key).timeout(config.timeout);
                let client = builder.skip_compatibility_check().build().unwrap();
                for collection in client.list_collections().await.unwrap().collections {
                    if collection.name.starts_with(&prefix) {
                        client.delete_collection(collection.name).await.unwrap();
                    }
                }
            });
        })
        .join();
        if deleted.is_err() {
            eprintln!("the test collections {}* were left behind", self.prefix);
        }
    }
}
