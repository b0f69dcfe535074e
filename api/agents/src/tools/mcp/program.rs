//! Servers that are programs of this machine. Only the operator names them. Each is started when it is first asked, serves all
//! runs, and is started again after it has ended; not at once each time when it cannot stay.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lectern_shared::{compute::ComputePool, config::McpProgram, retry::RetryBackoff};
use parking_lot::Mutex;
use serde_json::{json, value::RawValue};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    super::{ToolError, configuration::failed},
    message::{self, McpFailure, McpRequest, McpRevision},
    program_link::RunningProgram,
};

/// How long a program is let rest that ends soon after its start.
const PAUSES: RetryBackoff = RetryBackoff { first: Duration::from_secs(1), longest: Duration::from_mins(5) };
/// How long a program may take to be ready.
const START: Duration = Duration::from_mins(1);
/// A program that runs for so long has not failed to start.
const STEADY: Duration = Duration::from_mins(1);

/// The programs, by their names.
pub(super) struct ProgramServers(Vec<Arc<ProgramServer>>);

impl ProgramServers {
    pub(super) fn new(programs: Vec<McpProgram>, compute: &ComputePool) -> Self {
        Self(programs.into_iter().map(|program| Arc::new(ProgramServer::new(program, compute))).collect())
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<ProgramServer>> {
        self.0.iter().find(|server| server.program.name == name).map(Arc::clone)
    }
}

/// One program, running or not.
pub(super) struct ProgramServer {
    program: McpProgram,
    compute: ComputePool,
    state: Arc<Mutex<ProgramState>>,
    /// How often it was started, or said that its tools are others.
    changes: Arc<AtomicU64>,
}

#[derive(Default)]
struct ProgramState {
    /// The last start, unless it has failed. What runs ends when nobody holds this any more.
    start: Option<watch::Receiver<ProgramStart>>,
    /// When it began, or has failed.
    since: Option<Instant>,
    /// Whether it has lasted.
    is_steady: bool,
    /// Starts in a row of which none has lasted.
    failures: u32,
}

/// How a start goes, for all who wait for it.
#[derive(Clone)]
enum ProgramStart {
    Underway,
    Running(Arc<RunningProgram>, McpRevision),
    Failed(McpFailure),
}

impl ProgramState {
    /// The start that somebody who asks now waits for, or has waited for.
    fn current(&mut self) -> Option<watch::Receiver<ProgramStart>> {
        let start = self.start.clone()?;
        let is_useful = match &*start.borrow() {
            ProgramStart::Underway => start.has_changed().is_ok(),
            ProgramStart::Running(running, _) => running.is_alive(),
            ProgramStart::Failed(_) => false,
        };
        if is_useful {
            return Some(start);
        }
        self.start = None;
        if !self.is_steady {
            self.failures = self.failures.saturating_add(1);
        }
        None
    }

    fn is_resting(&self) -> bool {
        self.failures > 0 && self.since.is_some_and(|since| since.elapsed() < PAUSES.delay(self.failures))
    }
}

impl ProgramServer {
    fn new(program: McpProgram, compute: &ComputePool) -> Self {
        Self { program, compute: compute.clone(), state: Arc::default(), changes: Arc::default() }
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Asks the program, and waits for its answer. What it does meanwhile for others does not matter.
    pub(super) async fn request(
        &self,
        request: &McpRequest,
        until: Instant,
    ) -> Result<Box<RawValue>, McpFailure> {
        let asking = async {
            let (running, revision) = self.running().await?;
            running.request(revision, request).await
        };
        timeout_at(until, asking).await.unwrap_or(Err(McpFailure::Other(ToolError::Timeout)))
    }

    /// The running program, started if it is not. Whoever waits for that only watches: a caller that goes away takes nothing
    /// from the others.
    async fn running(&self) -> Result<(Arc<RunningProgram>, McpRevision), McpFailure> {
        let mut start = self.start()?;
        let is_over = |start: &ProgramStart| !matches!(start, ProgramStart::Underway);
        let over = start.wait_for(is_over).await.map(|start| start.clone());
        match over {
            Ok(ProgramStart::Running(running, revision)) => Ok((running, revision)),
            Ok(ProgramStart::Failed(failure)) => Err(failure),
            Ok(ProgramStart::Underway) | Err(_) => {
                Err(failed("The MCP server has ended before it answered.").into())
            }
        }
    }

    /// The start that goes on or has brought what runs, or a new one.
    fn start(&self) -> Result<watch::Receiver<ProgramStart>, McpFailure> {
        let mut state = self.state.lock();
        if let Some(start) = state.current() {
            return Ok(start);
        }
        if state.is_resting() {
            return Err(failed("The MCP server has ended, and is started again in a moment.").into());
        }
        let (tell, start) = watch::channel(ProgramStart::Underway);
        state.start = Some(start.clone());
        state.since = Some(Instant::now());
        state.is_steady = false;
        self.changes.fetch_add(1, Ordering::Relaxed);
        let (program, compute, changes) =
            (self.program.clone(), self.compute.clone(), Arc::clone(&self.changes));
        let state = Arc::downgrade(&self.state);
        tokio::spawn(async move {
            let launched = tokio::select! {
                launched = timeout(START, launch(&program, &compute, &changes)) => launched,
                // Nobody has the program's server any more.
                () = tell.closed() => return,
            };
            let launched = launched.unwrap_or(Err(McpFailure::Other(ToolError::Timeout)));
            let running = settle(&state, &tell, launched);
            // What runs belongs to those who listen.
            drop(tell);
            if let Some(running) = running {
                watch_over(&state, &running).await;
            }
        });
        Ok(start)
    }
}

/// Tells what a start has brought, and notes it when it has failed.
fn settle(
    state: &Weak<Mutex<ProgramState>>,
    tell: &watch::Sender<ProgramStart>,
    launched: Result<(Arc<RunningProgram>, McpRevision), McpFailure>,
) -> Option<Weak<RunningProgram>> {
    let (running, start) = match launched {
        Ok((running, revision)) => (Some(Arc::downgrade(&running)), ProgramStart::Running(running, revision)),
        Err(failure) => {
            if let Some(state) = state.upgrade() {
                let mut state = state.lock();
                state.start = None;
                state.since = Some(Instant::now());
                state.failures = state.failures.saturating_add(1);
            }
            (None, ProgramStart::Failed(failure))
        }
    };
    drop(tell.send_replace(start));
    running
}

/// Forgets earlier failures when a program has lasted.
async fn watch_over(state: &Weak<Mutex<ProgramState>>, running: &Weak<RunningProgram>) {
    sleep(STEADY).await;
    if let Some(state) = state.upgrade()
        && running.upgrade().is_some_and(|running| running.is_alive())
    {
        let mut state = state.lock();
        state.failures = 0;
        state.is_steady = true;
    }
}

/// Starts a program, and comes to an agreement with it.
async fn launch(
    program: &McpProgram,
    compute: &ComputePool,
    changes: &Arc<AtomicU64>,
) -> Result<(Arc<RunningProgram>, McpRevision), McpFailure> {
    let started = RunningProgram::start(program, compute, changes);
    let running = Arc::new(started.map_err(|error| {
        tracing::error!(server = program.name, %error, "the program of an MCP server cannot be started");
        failed("The MCP server cannot be started; the service's operator finds the reason in the log.")
    })?);
    let revision = agree(&running).await?;
    Ok((running, revision))
}

/// Finds out how a program wants to be spoken to. It is asked for the handshake first, because many older ones end when
/// anything else comes before it.
async fn agree(running: &RunningProgram) -> Result<McpRevision, McpFailure> {
    match running.request(McpRevision::Handshake, &McpRequest::initialize()).await {
        Ok(result) if message::agreed_version(&result).is_some() => {
            running.tell(&message::notification("notifications/initialized", &json!({}))).await;
            return Ok(McpRevision::Handshake);
        }
        Ok(_) | Err(McpFailure::Refused(_)) => {}
        Err(failure) => return Err(failure),
    }
    let discovered = running.request(McpRevision::Stateless, &McpRequest::new("server/discover")).await?;
    if message::is_stateless(&discovered) {
        Ok(McpRevision::Stateless)
    } else {
        Err(failed("The MCP server speaks no version of the protocol that is known here.").into())
    }
}
