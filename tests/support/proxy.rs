//! The way to a server, which a test can cut.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes connections on to another address, until it is told not to.
pub struct Proxy {
    address: SocketAddr,
    open: Arc<watch::Sender<bool>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy on a free loopback port, open, to `target` (`host:port`).
    pub async fn to(target: &str) -> Self {
        let target = lookup_host(target).await.expect("a name").next().expect("an address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a loopback port");
        let address = listener.local_addr().expect("its address");
        let open = Arc::new(watch::Sender::new(true));
        let state = Arc::clone(&open);
        let accepting = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut open = state.subscribe();
                tokio::spawn(async move {
                    if !*open.borrow() {
                        return;
                    }
                    let Ok(mut server) = TcpStream::connect(target).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        _ = open.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Self { address, open, accepting }
    }

    /// `host:port` of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks every connection, and every new one at once.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Passes connections on again.
    pub fn mend(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
