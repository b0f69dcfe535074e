//! An S3 store of a test's own, over a folder.

use hyper_util::rt::TokioIo;
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

use super::setup::Setup;

/// The bucket that it has.
pub const BUCKET: &str = "documents";
/// The account that may use it, and its secret.
pub const KEY_ID: &str = "AKIALECTERN";
pub const SECRET: &str = "hunter2hunter2";

/// The store. It ends with this value.
pub struct S3Server {
    address: String,
    folder: TempDir,
    serving: JoinHandle<()>,
}

impl S3Server {
    /// Starts it, with an empty bucket.
    pub async fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("lectern-s3-").tempdir().expect("a temporary directory");
        std::fs::create_dir(folder.path().join(BUCKET)).expect("a bucket");
        let store = s3s_fs::FileSystem::new(folder.path()).expect("a folder that can be a store");
        let mut builder = S3ServiceBuilder::new(store);
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let service = builder.build();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a loopback port");
        let address = listener.local_addr().expect("its address").to_string();
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let serve = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service.clone());
                tokio::spawn(serve);
            }
        });
        Self { address, folder, serving }
    }

    /// `host:port` where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Lets a service keep its blobs there, by way of `address`.
    pub fn used_by(setup: Setup, address: &str) -> Setup {
        setup
            .env("LECTERN_BLOBS", &format!("s3://{BUCKET}/lectern"))
            .env("AWS_ENDPOINT_URL", &format!("http://{address}"))
            .env("AWS_ACCESS_KEY_ID", KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
    }

    /// Its bucket, as a folder.
    pub fn bucket(&self) -> std::path::PathBuf {
        self.folder.path().join(BUCKET)
    }

    /// The files in its bucket.
    pub fn files(&self) -> usize {
        fn count(folder: &std::path::Path) -> usize {
            let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
            entries.flatten().map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
        }
        count(&self.folder.path().join(BUCKET))
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
