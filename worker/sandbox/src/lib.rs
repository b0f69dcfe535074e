//! Parsing of strangers' bytes in a child process, so that a hostile file can end only the child.
//!
//! The worker's `source` calls [`Sandbox::parse`], its `sync` [`Sandbox::list`], and who shows a page [`Sandbox::draw`]. Here children are started, fed and seen out; what runs in them, and the protocol that they
//! speak, is in `lectern-parse`. A panic guard would not be enough: such files abort, overflow the stack, run out of memory or
//! never end.

pub mod budget;
mod draw;
mod error;
mod list;
mod stream;

use std::{io, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use lectern_parse::{
    confine::ConfinementReport,
    protocol::{self, ChildRequest, PARSE_COMMAND, ParseOptions, ParserCrash, SourceKind, WALLS_COMMAND},
};
use lectern_shared::{
    config::ServiceLimits,
    ids::WorkspaceId,
    turns::{FairTurn, FairTurns},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout_at},
};

pub use self::{
    draw::{DrawFailure, DrawOrder},
    error::SandboxError,
    list::{ListFailure, ListOrder},
    stream::FrameStream,
};
use crate::budget::CpuBudget;

/// Turns at work that keeps a core busy, fair between workspaces; what is nobody's counts as one of them. More documents are under way than there
/// are cores, since each waits for servers most of the time.
pub type WorkTurns = FairTurns<Option<WorkspaceId>>;
/// One of the [`WorkTurns`].
pub type WorkTurn = FairTurn<Option<WorkspaceId>>;

/// How long a parser may work on one file in all, as a multiple of its longest silence.
const PATIENCE: u32 = 60;

/// The most that a child has to say of its walls, in bytes.
const WALLS_ANSWER: u64 = 4 * 1024;

/// Bytes handed to the child at a time.
const COPY_BUFFER: usize = 64 * 1024;

/// One document to parse.
#[derive(Debug)]
pub struct ParseRequest<R> {
    /// How to read the bytes.
    pub kind: SourceKind,
    /// The bytes, read to their end.
    pub source: R,
    /// What to read of them.
    pub options: ParseOptions,
}

/// Limits of every parse that a [`Sandbox`] runs.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The binary to run as a child; its main must honour [`lectern_parse::child::is_child`].
    pub exe: PathBuf,
    /// Address space of a child in bytes. Must hold the binary, a 64 MiB stack and about three copies of the file.
    pub memory_bytes: u64,
    /// Processor time of a child in seconds.
    pub cpu_seconds: u64,
    /// The longest silence between two frames; also the longest wait for bytes from the source.
    pub page_wall: Duration,
    /// The longest a child may take in all, without the time its reader takes between frames.
    pub total_wall: Duration,
    /// Bytes that a child may send in all.
    pub max_output_bytes: u64,
    /// Children at once; further parses wait for a turn.
    pub max_parallel: usize,
}

impl SandboxConfig {
    /// Limits that fit the service's own: sources of 100 MiB, 5,000 pages, 20,000,000 characters.
    pub fn new(exe: PathBuf) -> Self {
        Self {
            exe,
            memory_bytes: 2 * 1024 * 1024 * 1024,
            cpu_seconds: 600,
            page_wall: Duration::from_secs(30),
            total_wall: Duration::from_mins(15),
            max_output_bytes: 256 * 1024 * 1024,
            max_parallel: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }

    /// The running binary within the service's limits, with so many children at once.
    pub fn within(limits: &ServiceLimits, max_parallel: usize) -> io::Result<Self> {
        let total_wall = limits.parser_timeout.saturating_mul(PATIENCE);
        Ok(Self {
            memory_bytes: limits.parser_memory,
            page_wall: limits.parser_timeout,
            total_wall,
            cpu_seconds: total_wall.as_secs().max(1),
            max_parallel,
            ..Self::for_this_binary()?
        })
    }

    /// The running binary for drawing pages, each within this time and the service's other limits, so many at once.
    pub fn for_drawing(limits: &ServiceLimits, time: Duration, max_parallel: usize) -> Self {
        // Where nobody knows the binary no child starts, which is told whoever wants to see a page.
        let binary = Self::for_this_binary().unwrap_or_else(|_| Self::new(PathBuf::new()));
        Self {
            memory_bytes: limits.parser_memory,
            page_wall: time,
            total_wall: time,
            cpu_seconds: time.as_secs().max(1),
            // One message, in the largest of which an image is.
            max_output_bytes: 2 * protocol::MAX_MESSAGE as u64,
            max_parallel,
            ..binary
        }
    }

    /// [`SandboxConfig::new`] with the running binary, which on Linux stays reachable when its file is replaced.
    pub fn for_this_binary() -> io::Result<Self> {
        let exe = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self::new(exe))
    }
}

/// Runs parses in child processes, a bounded number at once. Clones share the bound.
#[derive(Debug, Clone)]
pub struct Sandbox {
    config: Arc<SandboxConfig>,
    turns: WorkTurns,
    /// Whose document is parsed, where somebody's is.
    workspace: Option<WorkspaceId>,
    /// What the document that is parsed may still take, besides the limits of every parse.
    budget: Option<CpuBudget>,
}

impl Sandbox {
    /// A sandbox with these limits. Starts nothing yet.
    pub fn new(config: SandboxConfig) -> Self {
        let turns = WorkTurns::new(config.max_parallel);
        Self { config: Arc::new(config), turns, workspace: None, budget: None }
    }

    /// The same sandbox for one document: what its parses take is taken from its budget, and ends with it.
    #[must_use]
    pub fn for_document(&self, workspace: WorkspaceId, budget: CpuBudget) -> Self {
        Self { workspace: Some(workspace), budget: Some(budget), ..self.clone() }
    }

    /// The turns that parses have, for other work that keeps a core busy.
    pub fn turns(&self) -> &WorkTurns {
        &self.turns
    }

    async fn turn(&self) -> WorkTurn {
        self.turns.take(self.workspace).await
    }

    fn cpu_seconds(&self) -> u64 {
        let left = self.budget.as_ref().map_or(u64::MAX, |budget| whole_seconds(budget.left()));
        self.config.cpu_seconds.min(left)
    }

    /// Waits for a turn, starts a child, hands it the bytes and returns the stream of its frames. Dropping the future
    /// or the stream kills the child.
    ///
    /// The child is killed when the thread that called this ends, so call it on the runtime's own threads.
    pub async fn parse<R>(&self, request: ParseRequest<R>) -> Result<FrameStream, SandboxError>
    where
        R: AsyncRead + Unpin,
    {
        let ParseRequest { kind, mut source, options } = request;
        let config = &self.config;
        let header = ChildRequest {
            kind,
            options: options.clone(),
            memory_bytes: config.memory_bytes,
            cpu_seconds: self.cpu_seconds(),
        };
        let header = protocol::encode(&header).map_err(|_| SandboxError::Request)?;
        let turn = self.turn().await;
        let directory = directory().await?;
        let deadline = Instant::now() + config.total_wall;
        let mut child = self.start(PARSE_COMMAND, &directory, Stdio::piped()).map_err(SandboxError::Spawn)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(SandboxError::Spawn(io::Error::other("a pipe to the child is missing")));
        };
        // Made before the bytes are sent: it drains stderr, on which a dying child could otherwise block.
        let mut stream = FrameStream::new(stream::StreamParts {
            child,
            stdout,
            stderr,
            turn,
            directory,
            kind,
            options,
            deadline,
            page_wall: config.page_wall,
            max_output_bytes: config.max_output_bytes,
            budget: self.budget.clone(),
        });
        let patience = config.page_wall.saturating_mul(stream::STARVED);
        if feed(stdin, &header, &mut source, patience, deadline).await? == FeedOutcome::Stuck {
            stream.fail_early(ParserCrash::TooSlow);
        }
        Ok(stream)
    }

    /// Waits for a turn, hands a child a request and what is in `source`, and has `answer` read what it says; none when that takes too long.
    /// Dropping the future kills the child.
    async fn exchange<R, A>(
        &self,
        subcommand: &str,
        header: &[u8],
        source: &mut R,
        within: Duration,
        answer: impl FnOnce(ChildStdout) -> A,
    ) -> Result<Option<A::Output>, SandboxError>
    where
        R: AsyncRead + Unpin,
        A: Future,
    {
        // The semaphore is ours and never closed.
        let _turn = self.turn().await;
        let directory = directory().await?;
        let deadline = Instant::now() + within;
        // What it says on stderr would only tell where a library gave up.
        let mut child = self.start(subcommand, &directory, Stdio::null()).map_err(SandboxError::Spawn)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SandboxError::Spawn(io::Error::other("a pipe to the child is missing")));
        };
        let answered = async {
            match feed(stdin, header, source, self.config.page_wall, deadline).await? {
                FeedOutcome::Stuck => Ok(None),
                FeedOutcome::Whole | FeedOutcome::Refused => {
                    Ok(timeout_at(deadline, answer(stdout)).await.ok())
                }
            }
        }
        .await;
        kill(&mut child).await;
        answered
    }

    /// Has a child try what it could reach, and tells which walls are around it. Takes no turn: it is soon over.
    pub async fn probe_confinement(&self) -> Result<ConfinementReport, SandboxError> {
        let directory = directory().await?;
        let mut child = self.start(WALLS_COMMAND, &directory, Stdio::piped()).map_err(SandboxError::Spawn)?;
        drop(child.stdin.take());
        let missing = || io::Error::other("the child says nothing of its walls");
        let mut said = Vec::new();
        let answer = async {
            let stdout = child.stdout.take().ok_or_else(missing)?;
            stdout.take(WALLS_ANSWER).read_to_end(&mut said).await?;
            serde_json::from_slice(&said).map_err(|_| missing())
        };
        let walls = timeout_at(Instant::now() + self.config.page_wall, answer).await;
        kill(&mut child).await;
        walls.map_err(io::Error::from).flatten().map_err(SandboxError::Spawn)
    }

    /// Starts a child in its folder, with pipes for all that it says and hears.
    fn start(&self, subcommand: &str, directory: &TempDir, stderr: Stdio) -> io::Result<Child> {
        Command::new(&self.config.exe)
            .arg(subcommand)
            .env_clear()
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            // Ctrl-C in a terminal goes to the whole group: a stopping service lets its children finish.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

/// An empty folder for a child.
async fn directory() -> Result<TempDir, SandboxError> {
    tokio::task::spawn_blocking(tempfile::tempdir)
        .await
        .map_err(|error| SandboxError::Spawn(error.into()))?
        .map_err(SandboxError::Spawn)
}

/// Whole seconds of at least this time, as the kernel limits it.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// How handing over the bytes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FeedOutcome {
    /// The child has them all.
    Whole,
    /// The child stopped reading. What it says, or that it says nothing, is found out by reading from it.
    Refused,
    /// The child neither reads nor goes. It must not be believed any more: what it has is not the whole file.
    Stuck,
}

/// Sends the request and the bytes, then closes the pipe.
async fn feed<R>(
    mut stdin: ChildStdin,
    header: &[u8],
    source: &mut R,
    patience: Duration,
    deadline: Instant,
) -> Result<FeedOutcome, SandboxError>
where
    R: AsyncRead + Unpin,
{
    let mut buffer = vec![0; COPY_BUFFER];
    let mut sent = timeout_at(deadline, stdin.write_all(header)).await;
    loop {
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ok(FeedOutcome::Refused),
            Err(_) => return Ok(FeedOutcome::Stuck),
        }
        let until = deadline.min(Instant::now() + patience);
        let length = timeout_at(until, source.read(&mut buffer))
            .await
            .map_err(|elapsed| SandboxError::Source(elapsed.into()))?
            .map_err(SandboxError::Source)?;
        let Some(bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else {
            return Ok(FeedOutcome::Whole);
        };
        let until = deadline.min(Instant::now() + patience);
        sent = timeout_at(until, stdin.write_all(bytes)).await;
    }
}

/// Kills a child and waits for it, so that no zombie is left.
async fn kill(child: &mut Child) {
    if let Err(error) = child.kill().await {
        tracing::debug!(%error, "a parser process could not be killed");
    }
}
