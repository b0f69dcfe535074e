//! Servers that belong to one test, which stops and starts them while the service uses them.

use std::{
    net::{Ipv4Addr, TcpListener},
    process::Command,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::process::Signal;

use super::{
    process::{Log, POLL, Process},
    within_deadline,
};

/// A server program on a loopback port that stays its own over restarts. It ends with this value.
pub struct Server {
    name: &'static str,
    /// What ends it at once.
    end: Signal,
    command: Box<dyn Fn(u16) -> Command + Send + Sync>,
    port: u16,
    log: Arc<Mutex<Log>>,
    process: Option<Process>,
}

impl Server {
    /// Starts `command` on a free port and waits until `is_up` says that the server there is this one.
    pub async fn start(
        name: &'static str,
        end: Signal,
        command: impl Fn(u16) -> Command + Send + Sync + 'static,
        is_up: impl AsyncFn(u16) -> bool,
    ) -> Self {
        let mut server =
            Self { name, end, command: Box::new(command), port: 0, log: Arc::default(), process: None };
        // Another process may take the port before the server does.
        for _ in 0..5 {
            server.port = free_port();
            if server.try_start(&is_up).await {
                return server;
            }
        }
        panic!("{name} does not start: {}", server.log.lock().tail());
    }

    /// The port, also while it is stopped.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a signal to it, which runs.
    pub fn signal(&mut self, signal: Signal) {
        self.process.as_mut().unwrap_or_else(|| panic!("{} does not run", self.name)).signal(signal);
    }

    /// Ends it with a signal, and waits until it has ended. One that is stopped stays so.
    pub async fn end(&mut self, signal: Signal) {
        if let Some(mut process) = self.process.take() {
            process.signal(signal);
            process.wait(self.name).await;
        }
    }

    /// Starts it again on its port, and waits until it is up.
    pub async fn start_again(&mut self, is_up: impl AsyncFn(u16) -> bool) {
        assert!(self.process.is_none(), "{} runs already", self.name);
        let started = self.try_start(&is_up).await;
        assert!(started, "{} does not start again: {}", self.name, self.log.lock().tail());
    }

    /// Freezes it for a while (SIGSTOP, SIGCONT): connections are taken by the kernel, and nobody answers.
    pub async fn pause(&mut self, duration: Duration) {
        self.signal(Signal::STOP);
        tokio::time::sleep(duration).await;
        self.signal(Signal::CONT);
    }

    /// Whether it is up; not, when it has ended instead.
    async fn try_start(&mut self, is_up: &impl AsyncFn(u16) -> bool) -> bool {
        let mut process = Process::spawn((self.command)(self.port), &self.log);
        let up = async {
            loop {
                if process.ended().is_some() {
                    return false;
                }
                if is_up(self.port).await {
                    return true;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        let up = within_deadline(&format!("{} to start", self.name), up).await;
        self.process = up.then_some(process);
        up
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.end(self.end);
        }
        if std::thread::panicking() {
            eprintln!("--- the end of the log of {} ---\n{}", self.name, self.log.lock().tail());
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
    listener.local_addr().expect("the address that was bound").port()
}
