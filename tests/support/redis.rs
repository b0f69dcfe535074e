//! The Redis server that the tests share, and servers of a test's own, for tests that take them away.

use std::time::Duration;

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use uuid::Uuid;

use super::{process::dying_with_this_thread, server::Server, within_deadline};

/// The server of `TEST_REDIS_URL`. Every service keeps to keys of its own there, so tests do not hear each other; nobody
/// may empty it.
pub fn shared_url() -> String {
    std::env::var("TEST_REDIS_URL").unwrap_or_else(|_| {
        panic!("TEST_REDIS_URL is not set; run scripts/test.sh, which starts a Redis server for the tests")
    })
}

/// A Redis server of a test's own, on loopback, that keeps nothing over a restart. It ends with this value.
pub struct RedisServer {
    server: Server,
    password: String,
}

impl RedisServer {
    /// Starts a server and waits until it answers.
    pub async fn start() -> Self {
        // The password also tells it from whatever else may have come to listen on its port.
        let password = Uuid::now_v7().simple().to_string();
        let command = {
            let password = password.clone();
            move |port: u16| {
                let mut command = dying_with_this_thread("redis-server");
                command.args([
                    "--bind",
                    "127.0.0.1",
                    "--port",
                    &port.to_string(),
                    "--requirepass",
                    &password,
                ]);
                command.args(["--save", "", "--appendonly", "no"]);
                command
            }
        };
        let is_up =
            async |port: u16| ask(port, &password, "PING").await.is_ok_and(|answer| answer == "+PONG");
        let server = Server::start("Redis", Signal::KILL, command, is_up).await;
        Self { server, password }
    }

    /// Its address, `redis://…`. It stays the same over restarts.
    pub fn url(&self) -> String {
        format!("redis://:{}@127.0.0.1:{}", self.password, self.server.port())
    }

    /// Ends it at once, as a crash does. What it held is lost.
    pub async fn stop(&mut self) {
        self.server.end(Signal::KILL).await;
    }

    /// Starts it again, empty, at the same address.
    pub async fn start_again(&mut self) {
        let password = self.password.clone();
        let is_up =
            async |port: u16| ask(port, &password, "PING").await.is_ok_and(|answer| answer == "+PONG");
        self.server.start_again(is_up).await;
    }

    /// Freezes it for a while: connections stay open, and nothing is answered.
    pub async fn pause(&mut self, duration: Duration) {
        self.server.pause(duration).await;
    }

    /// Forgets everything that it holds.
    pub async fn flush(&self) {
        assert_eq!(self.command("FLUSHALL").await, "+OK");
    }

    /// Sends a command of words without spaces, and returns the first line of the answer, as the protocol writes it
    /// (`:3` for the number 3).
    pub async fn command(&self, command: &str) -> String {
        let answer = within_deadline("Redis' answer", ask(self.server.port(), &self.password, command)).await;
        answer.unwrap_or_else(|error| panic!("Redis did not answer {command}: {error}"))
    }
}

/// One command on a connection of its own.
async fn ask(port: u16, password: &str, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("AUTH {password}\r\n{command}\r\nQUIT\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let mut lines = answer.lines().map(str::to_owned);
    match (lines.next().as_deref(), lines.next()) {
        (Some("+OK"), Some(line)) => Ok(line),
        (refused, _) => Err(std::io::Error::other(format!("AUTH was answered with {refused:?}"))),
    }
}
