//! The way to a server, which a test can slow down, stall, lose and cut, and mend again.

pub mod commit;

use std::{
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, lookup_host},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::Instant,
};

use self::commit::{Answer, Ear, Trap};
use super::within_deadline;

/// How many pieces may be under way in one direction. What comes after them waits in the sender's own buffers.
const UNDER_WAY: usize = 256;

/// Passes connections on to another address, until it is told not to.
pub struct Proxy {
    address: SocketAddr,
    line: Arc<Line>,
    accepting: JoinHandle<()>,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    There,
    /// From the server to the client.
    Back,
}

/// What the line does with what it is given.
#[derive(Clone, Copy, Debug)]
enum State {
    /// It passes everything on.
    Open,
    /// Nothing gets through, and nobody is told. What was under way goes on when the line is mended.
    Stalled,
    /// Every connection breaks, and every new one at once.
    Cut,
}

#[derive(Clone, Copy, Debug)]
struct Weather {
    state: State,
    latency: Duration,
    /// Connections with a number below this are half-open for ever: their ends believe in them, and nothing gets through.
    lost_below: usize,
    /// So are new ones.
    loses_new: bool,
}

/// What all connections share.
struct Line {
    weather: watch::Sender<Weather>,
    /// How many connections have come.
    connections: watch::Sender<usize>,
    /// A connection breaks when so many more bytes have gone this way.
    cut: Mutex<Option<Shears>>,
    /// How often that has happened.
    cuts: watch::Sender<usize>,
    trap: Mutex<Option<Trap>>,
}

#[derive(Clone, Copy)]
struct Shears {
    way: Way,
    left: usize,
    /// Whether it happens again after as many bytes.
    every: Option<usize>,
}

/// A connection ends here.
struct Broken;

impl Proxy {
    /// A proxy on a free loopback port, open, to `target` (`host:port`).
    pub async fn to(target: &str) -> Self {
        let target = lookup_host(target).await.expect("a name").next().expect("an address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a loopback port");
        let address = listener.local_addr().expect("its address");
        let weather =
            Weather { state: State::Open, latency: Duration::ZERO, lost_below: 0, loses_new: false };
        let line = Arc::new(Line {
            weather: watch::Sender::new(weather),
            connections: watch::Sender::new(0),
            cut: Mutex::default(),
            cuts: watch::Sender::new(0),
            trap: Mutex::default(),
        });
        let shared = Arc::clone(&line);
        let accepting = tokio::spawn(async move {
            let mut number = 0;
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&shared).carry(number, client, target));
                number += 1;
                shared.connections.send_replace(number);
            }
        });
        Self { address, line, accepting }
    }

    /// A proxy to the server of this URL, and the URL by way of the proxy.
    pub async fn in_front_of(url: &str, port: u16) -> (Self, String) {
        let mut url = url::Url::parse(url).expect("a URL");
        let port = url.port().unwrap_or(port);
        let proxy = Self::to(&format!("{}:{port}", url.host_str().expect("a host"))).await;
        url.set_host(Some("127.0.0.1")).expect("a host can be set");
        url.set_port(Some(proxy.address.port())).expect("a port can be set");
        (proxy, url.into())
    }

    /// `host:port` of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks every connection, and every new one at once.
    pub fn cut(&self) {
        self.line.weather.send_modify(|weather| weather.state = State::Cut);
    }

    /// Lets nothing through and tells nobody: connections are accepted, and nothing is answered. What is under way arrives when
    /// the line is mended.
    pub fn stall(&self) {
        self.line.weather.send_modify(|weather| weather.state = State::Stalled);
    }

    /// Loses every connection that there is without telling its ends (half-open), and every new one, until the line is mended;
    /// those that were lost stay so.
    pub fn lose(&self) {
        self.line.weather.send_modify(|weather| weather.loses_new = true);
        self.lose_present();
    }

    /// Loses every connection that there is; new ones are carried.
    pub fn lose_present(&self) {
        let present = *self.line.connections.borrow();
        self.line.weather.send_modify(|weather| weather.lost_below = present);
    }

    /// Delays everything by so much, each way.
    pub fn delay(&self, latency: Duration) {
        self.line.weather.send_modify(|weather| weather.latency = latency);
    }

    /// Breaks one connection when so many more bytes, of all connections, have gone this way: they arrive, nothing after them does.
    pub fn cut_after(&self, way: Way, bytes: usize) {
        *self.line.cut.lock() = Some(Shears { way, left: bytes, every: None });
    }

    /// Breaks a connection whenever so many bytes have gone this way.
    pub fn cut_every(&self, way: Way, bytes: usize) {
        *self.line.cut.lock() = Some(Shears { way, left: bytes, every: Some(bytes) });
    }

    /// Passes connections on again, at once and whole.
    pub fn mend(&self) {
        *self.line.cut.lock() = None;
        let carried = *self.line.connections.borrow();
        self.line.weather.send_modify(|weather| {
            if std::mem::take(&mut weather.loses_new) {
                weather.lost_below = carried;
            }
            weather.state = State::Open;
            weather.latency = Duration::ZERO;
        });
    }

    /// How many connections have come so far.
    pub fn connections(&self) -> usize {
        *self.line.connections.borrow()
    }

    /// Waits until [`cut_after`](Self::cut_after) or [`cut_every`](Self::cut_every) has broken so many connections.
    pub async fn wait_until_cut(&self, times: usize) {
        let mut cuts = self.line.cuts.subscribe();
        let enough = cuts.wait_for(|cuts| *cuts >= times);
        within_deadline("a connection to be cut", enough).await.expect("the proxy holds the sender");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        // What is stalled or lost would hold its sockets for as long as the test's runtime runs.
        self.cut();
    }
}

impl Line {
    /// Carries one connection until it ends or breaks.
    async fn carry(self: Arc<Self>, number: usize, mut client: TcpStream, target: SocketAddr) {
        let mut weather = self.weather.subscribe();
        let carried = async {
            self.is_clear(number).await;
            let Ok(mut server) = TcpStream::connect(target).await else { return };
            let _ = client.set_nodelay(true);
            let _ = server.set_nodelay(true);
            let ear = Mutex::new(Ear::default());
            let (mut from_client, mut to_client) = client.split();
            let (mut from_server, mut to_server) = server.split();
            let _ = tokio::try_join!(
                self.pump(number, Way::There, &mut from_client, &mut to_server, &ear),
                self.pump(number, Way::Back, &mut from_server, &mut to_client, &ear),
            );
        };
        tokio::select! {
            () = carried => {}
            _ = weather.wait_for(|weather| matches!(weather.state, State::Cut)) => {}
        }
    }

    /// Waits until something of this connection may pass.
    async fn is_clear(&self, number: usize) {
        let mut weather = self.weather.subscribe();
        let lost = {
            let clear = |weather: &Weather| {
                let lost = weather.loses_new || number < weather.lost_below;
                lost || matches!(weather.state, State::Open)
            };
            let weather = weather.wait_for(clear).await;
            weather.is_ok_and(|weather| weather.loses_new || number < weather.lost_below)
        };
        if lost {
            pending::<()>().await;
        }
    }

    /// Carries one direction of a connection.
    async fn pump(
        &self,
        number: usize,
        way: Way,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        ear: &Mutex<Ear>,
    ) -> Result<(), Broken> {
        let (sender, mut under_way) = mpsc::channel::<(Instant, Vec<u8>, bool)>(UNDER_WAY);
        let take = async {
            let sender = sender;
            let mut buffer = vec![0; 16 * 1024];
            loop {
                let read = from.read(&mut buffer).await.map_err(|_| Broken)?;
                if read == 0 {
                    return Ok(());
                }
                let mut bytes = &buffer[..read];
                match way {
                    Way::There => bytes = ear.lock().hear(bytes, &self.trap),
                    Way::Back => {
                        let answer = ear.lock().answer();
                        match answer {
                            Answer::Passes => {}
                            Answer::Is(held) => held.pass().await,
                            Answer::Lost => return Err(Broken),
                        }
                    }
                }
                let passed = self.shear(way, bytes.len());
                let breaks = passed.is_some() || bytes.len() < read;
                let bytes = bytes[..passed.unwrap_or(bytes.len())].to_vec();
                let due = Instant::now() + self.weather.borrow().latency;
                // The other side is gone when nobody receives.
                if sender.send((due, bytes, breaks)).await.is_err() || breaks {
                    return Ok(());
                }
            }
        };
        let give = async {
            while let Some((due, bytes, breaks)) = under_way.recv().await {
                tokio::time::sleep_until(due).await;
                self.is_clear(number).await;
                to.write_all(&bytes).await.map_err(|_| Broken)?;
                if breaks {
                    return Err(Broken);
                }
            }
            self.is_clear(number).await;
            to.shutdown().await.map_err(|_| Broken)
        };
        tokio::try_join!(take, give).map(|_| ())
    }

    /// How many of these bytes still pass, if the connection is to break among them.
    fn shear(&self, way: Way, bytes: usize) -> Option<usize> {
        let mut cut = self.cut.lock();
        let shears = cut.as_mut().filter(|shears| shears.way == way)?;
        if bytes < shears.left {
            shears.left -= bytes;
            return None;
        }
        let passed = shears.left;
        match shears.every {
            Some(every) => shears.left = every,
            None => *cut = None,
        }
        self.cuts.send_modify(|cuts| *cuts += 1);
        Some(passed)
    }
}
