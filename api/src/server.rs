//! The HTTP server: connections are bounded in number, a client that does not finish its headers is cut off, and a
//! shutdown lets the requests in hand be answered.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use ipnet::IpNet;
use lectern_shared::shutdown::Shutdown;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tower::ServiceExt;

use crate::client_address;

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS: usize = 4_000;
/// The longest that a client may take to send the headers of a request, and the longest that a connection may be idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
/// The pause after the system refused to accept a connection, for want of descriptors for instance.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Answers requests until the shutdown begins, then until those in hand are answered. Proxies in the networks `trusted` are
/// believed from whom they have a request; [`ConnectInfo`] has the client's address.
pub(crate) async fn serve(
    app: Router,
    listener: TcpListener,
    trusted: Arc<[IpNet]>,
    shutdown: &Shutdown,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    loop {
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((slot, listener.accept().await?))
        };
        let (slot, (stream, peer)) = tokio::select! {
            () = shutdown.soft().cancelled() => break,
            accepted = accepted => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let connection =
            graceful.watch(connection(&http, app.clone(), stream, peer, Arc::clone(&trusted), shutdown));
        tokio::spawn(async move {
            let _slot = slot;
            // A client that breaks off is no event.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = shutdown.hard().cancelled() => {}
    }
    Ok(())
}

fn connection(
    http: &http1::Builder,
    app: Router,
    stream: TcpStream,
    peer: SocketAddr,
    trusted: Arc<[IpNet]>,
    shutdown: &Shutdown,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + use<> {
    // Answers are small; they must not wait to be packed together.
    let _ = stream.set_nodelay(true);
    let shutdown = shutdown.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let client = client_address::client(peer, request.headers(), &trusted);
        request.extensions_mut().insert(ConnectInfo(client));
        // For answers that would go on for long.
        request.extensions_mut().insert(shutdown.clone());
        app.clone().oneshot(request.map(Body::new))
    });
    http.serve_connection(TokioIo::new(stream), service)
}
