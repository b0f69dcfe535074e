//! Child processes of a test: watched, asked to stop, frozen, killed. None outlives its test.

use std::{
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, OnceLock},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::within_deadline;

/// How often a state that cannot announce itself is looked at.
pub const POLL: Duration = Duration::from_millis(10);

/// What one program wrote, over all its restarts.
#[derive(Default)]
pub struct Log {
    pub text: String,
    /// Whether the process that runs now has said that it has started.
    pub started: bool,
    /// Where the process that runs now has said that it listens.
    pub address: Option<SocketAddr>,
}

impl Log {
    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let fields = &event["fields"];
        match fields["message"].as_str() {
            Some("listening") => {
                self.address = fields["addr"].as_str().and_then(|address| address.parse().ok());
                self.started = true;
            }
            Some("working") => self.started = true,
            _ => {}
        }
    }

    /// Its last lines, without the requests that went well: a test that waits makes hundreds of them.
    pub fn tail(&self) -> String {
        const LINES: usize = 60;
        let went_well = |line: &str| {
            serde_json::from_str::<Value>(line).is_ok_and(|event| {
                let fields = &event["fields"];
                fields["message"] == "request" && fields["status"].as_u64().is_some_and(|status| status < 400)
            })
        };
        let lines: Vec<_> = self.text.lines().filter(|line| !went_well(line)).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// A child process whose output is read on threads, so that it never blocks on a full pipe. Dropping it kills it.
pub struct Process {
    child: Child,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts `command`, whose output goes to the end of `log`.
    pub fn spawn(mut command: Command, log: &Arc<Mutex<Log>>) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        {
            let mut log = log.lock();
            (log.started, log.address) = (false, None);
        }
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let stdout = child.stdout.take().expect("a pipe");
        let stderr = child.stderr.take().expect("a pipe");
        let readers = vec![read_lines(stdout, Arc::clone(log)), read_lines(stderr, Arc::clone(log))];
        Self { child, readers }
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the process ended, once it has and all that it wrote is in the log.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("a child can be waited for")?;
        self.drain();
        Some(status)
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&mut self, signal: Signal) {
        // The id of a child that was waited for may be another process' by now.
        if self.ended().is_none() {
            let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw).expect("a process id");
            // A child that has ended in this moment is still there to be signalled, until it is waited for.
            kill_process(pid, signal).expect("a child can be signalled");
        }
    }

    /// Waits until the process has ended by itself, or because it was asked to.
    pub async fn wait(&mut self, name: &str) -> ExitStatus {
        let end = async {
            loop {
                if let Some(status) = self.ended() {
                    return status;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline(&format!("{name} to stop"), end).await
    }

    /// Ends it with a signal that it obeys at once; with SIGKILL if it does not.
    pub fn end(&mut self, signal: Signal) {
        const PATIENCE: Duration = Duration::from_secs(5);
        self.signal(signal);
        let asked = Instant::now();
        while self.ended().is_none() && asked.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kill();
    }

    /// Ends it at once (SIGKILL), as a crash or a power cut would.
    pub fn kill(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.drain();
    }

    /// Waits for the readers, but not long: a grandchild may hold the pipes open.
    fn drain(&self) {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(1) && !self.readers.iter().all(JoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_lines(pipe: impl Read + Send + 'static, log: Arc<Mutex<Log>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            log.lock().add(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}

/// A command whose process ends with this thread, and so with the test, even when the test itself is killed.
///
/// The kernel can do that only for a process that asks for it: where there is util-linux's `setpriv`, that asks and becomes
/// the program, in the same process. Elsewhere only dropping the [`Process`] ends it.
pub fn dying_with_this_thread(program: &str) -> Command {
    signalled_with_this_thread("KILL", program)
}

/// As [`dying_with_this_thread`], for a program that another signal ends more cleanly.
pub fn signalled_with_this_thread(signal: &str, program: &str) -> Command {
    static SETPRIV: OnceLock<bool> = OnceLock::new();
    let setpriv = || {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", signal, "--"]);
        command
    };
    let works = *SETPRIV.get_or_init(|| {
        let probe = setpriv().arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
        cfg!(target_os = "linux") && probe.is_ok_and(|status| status.success())
    });
    if works {
        let mut command = setpriv();
        command.arg(program);
        command
    } else {
        Command::new(program)
    }
}
