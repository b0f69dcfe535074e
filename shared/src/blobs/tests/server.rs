//! An S3 store on a loopback port, over a folder, that remembers what it was asked and can be told to behave otherwise.

use std::{net::SocketAddr, path::Path, sync::Arc};

use bytes::Bytes;
use hyper::{Request, Response, body::Incoming, header::CONTENT_LENGTH, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use secrecy::SecretString;
use tokio::{net::TcpListener, task::JoinHandle};
use url::Url;

use crate::blobs::S3Location;

pub(super) const BUCKET: &str = "documents";
pub(super) const KEY_ID: &str = "AKIALECTERN";
pub(super) const SECRET: &str = "hunter2hunter2";

/// What a request was.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) what: String,
    pub(super) query: String,
    pub(super) bytes: u64,
    /// How many requests were being answered when it came, itself included.
    pub(super) together: usize,
}

/// What the server answers instead of doing what it is asked: a status and an error code of S3.
pub(super) type Refusal = fn(&Request<Incoming>) -> Option<(u16, &'static str)>;

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    now: usize,
    refusal: Option<Refusal>,
}

pub(super) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves `root`, in which the bucket is made.
    pub(super) async fn start(root: &Path) -> Self {
        std::fs::create_dir(root.join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let service = builder.build();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, state) = (service.clone(), Arc::clone(&shared));
                let answer = service_fn(move |request: Request<Incoming>| {
                    let (service, state) = (service.clone(), Arc::clone(&state));
                    async move {
                        let refused = state.lock().note(&request);
                        let answer = match refused {
                            None => service.call(request.map(s3s::Body::from)).await,
                            Some((status, code)) => Ok(refuse(status, code)),
                        };
                        state.lock().now -= 1;
                        answer
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), answer),
                );
            }
        });
        Self { address, state, task }
    }

    pub(super) fn location(&self) -> S3Location {
        S3Location {
            bucket: BUCKET.to_owned(),
            prefix: "lectern/blobs".to_owned(),
            endpoint: Some(Url::parse(&format!("http://{}/", self.address)).unwrap()),
            region: None,
            access_key_id: Some(KEY_ID.to_owned()),
            secret_access_key: Some(SecretString::from(SECRET)),
            session_token: None,
            path_style: true,
        }
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.state.lock().refusal = Some(refusal);
    }

    /// What it was asked since the last time.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().asked)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn note(&mut self, request: &Request<Incoming>) -> Option<(u16, &'static str)> {
        self.now += 1;
        let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        self.asked.push(Asked {
            what: format!("{} {}", request.method(), request.uri().path()),
            query: request.uri().query().unwrap_or_default().to_owned(),
            bytes: length.and_then(|length| length.parse().ok()).unwrap_or(0),
            together: self.now,
        });
        self.refusal.and_then(|refusal| refusal(request))
    }
}

/// An error as S3 writes it, with the things in it that must not come out.
fn refuse(status: u16, code: &str) -> Response<s3s::Body> {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>no</Message>\
         <AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId><SignatureProvided>5167a7ure</SignatureProvided></Error>"
    );
    Response::builder().status(status).body(s3s::Body::from(Bytes::from(text))).unwrap()
}
