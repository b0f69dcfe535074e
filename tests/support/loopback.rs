//! What the loopback servers share: listening, a record of the requests that came, and gates that a test opens.

use std::net::{Ipv4Addr, SocketAddr};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    http::{HeaderMap, Method},
    serve::ListenerExt as _,
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use super::within_deadline;

/// A server that runs until it is dropped.
pub struct Listening {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Listening {
    /// Serves `router` on a free loopback port.
    pub async fn start(router: Router) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a loopback port");
        let address = listener.local_addr().expect("the address that was bound");
        // Small pieces would otherwise wait 40 ms for the other side's acknowledgement.
        let listener = listener.tap_io(|connection| {
            let _ = connection.set_nodelay(true);
        });
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the loopback server runs");
        });
        Self { address, server }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    /// The path, with the query when there is one.
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    /// Reads a request to its end.
    pub async fn read(request: Request) -> Self {
        let (parts, body) = request.into_parts();
        Self {
            method: parts.method,
            target: parts.uri.path_and_query().map_or_else(String::new, |target| target.as_str().to_owned()),
            headers: parts.headers,
            body: to_bytes(body, usize::MAX).await.unwrap_or_default(),
        }
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A header's text, or `None` when it was not sent.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header of visible characters"))
    }
}

/// A list that grows, and that a test can wait for.
pub struct Record<T>(watch::Sender<Vec<T>>);

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl<T: Clone> Record<T> {
    /// Adds an entry.
    pub fn add(&self, entry: T) {
        self.0.send_modify(|entries| entries.push(entry));
    }

    /// Every entry so far, oldest first.
    pub fn all(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    /// Waits until at least `count` entries pass `wanted`, and returns those that do.
    pub async fn wait_for(&self, what: &str, count: usize, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut entries = self.0.subscribe();
        let enough =
            entries.wait_for(|entries| entries.iter().filter(|entry| wanted(entry)).count() >= count);
        let entries = within_deadline(what, enough).await.expect("the record outlives its readers");
        entries.iter().filter(|entry| wanted(entry)).cloned().collect()
    }
}

/// Holds an answer back until the test opens it; once open it stays open.
#[derive(Clone, Debug)]
pub struct Gate {
    open: watch::Sender<bool>,
    reached: watch::Sender<usize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: watch::Sender::new(false), reached: watch::Sender::new(0) }
    }
}

impl Gate {
    /// The server's side: says that it is here, and waits to be let through.
    pub async fn pass(&self) {
        self.reached.send_modify(|count| *count += 1);
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open).await.expect("the gate holds its own sender");
    }

    /// Waits until somebody stands at the gate, or has passed it.
    pub async fn wait_until_reached(&self) {
        let mut reached = self.reached.subscribe();
        let arrival = within_deadline("a request at a gate", reached.wait_for(|count| *count > 0)).await;
        drop(arrival.expect("the gate holds its own sender"));
    }

    /// Lets everybody through, now and later.
    pub fn release(&self) {
        self.open.send_replace(true);
    }
}
