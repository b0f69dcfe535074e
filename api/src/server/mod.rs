//! The HTTP server. Connections are bounded, in all and for each address; a client that does not finish its headers, says nothing
//! any more or does not read its answer is cut off; one that is refused over and over waits for its answers; and a shutdown lets the
//! requests in hand be answered.

mod accept;
mod activity;
mod progress;
mod refusals;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulConnection, GracefulShutdown},
};
use ipnet::IpNet;
use lectern_shared::{clock::Clock, config::Settings, open_files, shutdown::Shutdown};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tower::ServiceExt;

use self::{
    accept::{AcceptBackoff, RefusedConnections},
    activity::ConnectionActivity,
    progress::WriteTimeoutStream,
    refusals::RefusalPacer,
};
use crate::{
    client_address::{TrustedProxy, client, is_trusted, network},
    shares::{PoolLimits, ResourcePool},
};

/// Connections at once, if there may be as many files.
const CONNECTIONS: usize = 4_000;
/// The longest that a client may take to send the headers of a request, and the longest that a connection may be idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
/// A connection without a request in hand gives way after this time when there is no room for others: a client that has something
/// to ask has asked long before.
const IDLE: Duration = Duration::from_secs(5);
/// The longest that a client may take none of its answer.
const READ_WITHIN: Duration = Duration::from_secs(30);
/// What is kept of one connection's input at most, so the most that headers may have too. Others allow 8 to 32 KiB.
const INPUT: usize = 64 << 10;
/// What the system keeps of one connection's output. Left to itself it takes megabytes, and does not tell that a slow client
/// reads before a third of it is gone.
const OUTPUT: u32 = 128 << 10;
/// Connections that the system takes before they are accepted.
const BACKLOG: u32 = 1_024;

/// Listens on an address.
pub(crate) fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Connections inherit it.
    socket.set_send_buffer_size(OUTPUT)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Who may connect, and for how long what may last.
pub(crate) struct ServerOptions {
    /// Proxies in these networks are believed from whom they have a request, and have any number of connections.
    pub(crate) trusted: Arc<[IpNet]>,
    /// Connections of one address.
    pub(crate) of_one: usize,
    /// Connections in all.
    pub(crate) all: usize,
    /// How long a connection may be idle when there is no room for others.
    pub(crate) idle: Duration,
    pub(crate) headers_within: Duration,
    pub(crate) read_within: Duration,
    pub(crate) refusals: RefusalPacer,
}

impl ServerOptions {
    pub(crate) fn of(settings: &Settings, clock: Clock) -> Self {
        // A request needs files and connections of its own, to the database for instance.
        let half = open_files::limit().and_then(|limit| usize::try_from(limit / 2).ok());
        Self {
            trusted: settings.trusted_proxies.as_slice().into(),
            of_one: settings.limits.connections,
            all: half.unwrap_or(CONNECTIONS).clamp(1, CONNECTIONS),
            idle: IDLE,
            headers_within: HEADERS_WITHIN,
            read_within: READ_WITHIN,
            refusals: RefusalPacer::new(settings.refusal_rate, clock),
        }
    }
}

/// Answers requests until the shutdown begins, then until those in hand are answered. [`ConnectInfo`] has the client's address.
pub(crate) async fn serve(
    app: Router,
    listener: TcpListener,
    terms: ServerOptions,
    shutdown: &Shutdown,
) -> io::Result<()> {
    let connections =
        ResourcePool::new(PoolLimits { whole: terms.all, of_one: terms.of_one, stale: terms.idle });
    let (mut trouble, mut refusals) = (AcceptBackoff::default(), RefusedConnections::default());
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(terms.headers_within)
        .max_buf_size(INPUT)
        .max_header_size(INPUT);
    loop {
        let accepted = tokio::select! {
            () = shutdown.soft().cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tokio::select! {
                    () = shutdown.soft().cancelled() => break,
                    () = tokio::time::sleep(trouble.pause(&error)) => continue,
                }
            }
        };
        trouble.is_over();
        let share =
            connections.begin(Some(network(peer.ip())).filter(|_| !is_trusted(peer.ip(), &terms.trusted)));
        if let Err(full) = share.grow(1) {
            // Closed without an answer, which would have to be waited for.
            refusals.add(peer.ip(), full);
            continue;
        }
        let activity = ConnectionActivity::new(share);
        let stream = WriteTimeoutStream::new(ready(stream), terms.read_within, activity.clone());
        let connection = connection(&http, app.clone(), stream, peer, &terms, shutdown);
        tokio::spawn(run(graceful.watch(connection), activity));
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = shutdown.hard().cancelled() => {}
    }
    Ok(())
}

fn ready(stream: TcpStream) -> TcpStream {
    // Answers are small; they must not wait to be packed together.
    let _ = stream.set_nodelay(true);
    stream
}

/// Answers on a connection until it ends, or until another client has its place.
async fn run(connection: impl Future<Output = hyper::Result<()>>, activity: ConnectionActivity) {
    tokio::select! {
        end = connection => {
            // A client that breaks off is no event.
            if let Err(error) = end {
                tracing::debug!(%error, "connection ended");
            }
        }
        () = activity.evicted() => tracing::debug!("a connection gave way to another"),
    }
}

fn connection(
    http: &http1::Builder,
    app: Router,
    stream: WriteTimeoutStream<TcpStream>,
    peer: SocketAddr,
    terms: &ServerOptions,
    shutdown: &Shutdown,
) -> impl GracefulConnection<Error = hyper::Error> + Send + use<> {
    let (activity, shutdown) = (stream.activity().clone(), shutdown.clone());
    let (trusted, refusals) = (Arc::clone(&terms.trusted), terms.refusals.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let client = client(peer, request.headers(), &trusted);
        request.extensions_mut().insert(ConnectInfo(client));
        if is_trusted(peer.ip(), &trusted) {
            request.extensions_mut().insert(TrustedProxy);
        }
        // For answers that would go on for long.
        request.extensions_mut().insert(shutdown.clone());
        let in_hand = activity.begin();
        let answer = app.clone().oneshot(request.map(Body::new));
        let (activity, shutdown, refusals) = (activity.clone(), shutdown.clone(), refusals.clone());
        async move {
            let answer = answer.await?;
            let held = refusals.hold(client.ip(), answer.status(), activity.take_received());
            if !held.is_zero() {
                tokio::select! {
                    () = tokio::time::sleep(held) => {}
                    () = shutdown.soft().cancelled() => {}
                }
            }
            Ok::<_, Infallible>(answer.map(|body| in_hand.track_body(body)))
        }
    });
    http.serve_connection(TokioIo::new(stream), service)
}
