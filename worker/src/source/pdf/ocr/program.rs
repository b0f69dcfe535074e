//! A program that is run for one page, behind walls.
//!
//! The program is trusted, the image is not: it was drawn from a stranger's file. So the program runs for a bounded time,
//! in a folder of its own, without the service's environment, and what it says is bounded too. Walls keep from it what the
//! service holds, the images of other pages, and the network.

use std::{
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use lectern_parse::confine::{self, AccessGrant, RUN_FOLDER};
use lectern_shared::config::OcrSettings;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    runtime::Handle,
    time::timeout,
};

/// What stands for the image's file in the command.
const INPUT: &str = "{input}";
/// The most that a program may say of one page, in bytes.
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;
/// How much of what it says besides is kept for the log, in bytes.
const COMPLAINT: u64 = 2_048;

/// Why a page was not recognised.
#[derive(Debug, thiserror::Error)]
pub(super) enum OcrError {
    /// The program is not there, or may not be run.
    #[error("the program cannot be run: {0}")]
    Start(io::Error),
    /// A pipe or a file failed.
    #[error("the page could not be handed over: {0}")]
    Pipe(io::Error),
    /// It said that it failed.
    #[error("the program failed: {0}")]
    Failed(ExitStatus),
    /// It took too long.
    #[error("the program took longer than LECTERN_OCR_TIMEOUT")]
    TooSlow,
    /// It said more than a page can hold.
    #[error("the program wrote more than {MAX_OUTPUT} bytes")]
    TooMuch,
}

/// A program with its arguments, and what it may reach. Cheap enough to clone.
#[derive(Debug, Clone)]
pub(super) struct ConfinedProgram {
    program: PathBuf,
    arguments: Vec<String>,
    settings: OcrSettings,
    /// Address space in bytes; as much as it likes when none.
    memory_bytes: Option<u64>,
}

impl ConfinedProgram {
    /// The program that the first of these words names, with the others as its arguments, if it is there and may be run.
    pub(super) fn find(mut words: Vec<String>, settings: &OcrSettings) -> Option<Self> {
        let program = find(Path::new(words.first()?), settings)?;
        words.remove(0);
        Some(Self { program, arguments: words, settings: settings.clone(), memory_bytes: None })
    }

    /// The same with other arguments.
    pub(super) fn with_arguments(&self, arguments: Vec<String>) -> Self {
        Self { arguments, ..self.clone() }
    }

    /// The same without the network, and with so much address space.
    pub(super) fn within(mut self, memory_bytes: u64) -> Self {
        self.settings.network = false;
        self.memory_bytes = Some(memory_bytes);
        self
    }

    /// Hands it an image and returns what it says. Dropping the future ends the program.
    pub(super) async fn run(&self, png: Vec<u8>) -> Result<Vec<u8>, OcrError> {
        let OcrSettings { timeout: patience, environment, hidden, network, .. } = &self.settings;
        let by_file = self.arguments.iter().any(|word| word.contains(INPUT));
        let (folder, file, png) = tokio::task::spawn_blocking(move || prepare(png, by_file))
            .await
            .map_err(|error| OcrError::Pipe(error.into()))?
            .map_err(OcrError::Pipe)?;
        let input = file.to_string_lossy();
        let mut command = Command::new(&self.program);
        command
            .args(self.arguments.iter().map(|word| word.replace(INPUT, &input)))
            .env_clear()
            // Pages are recognised next to each other already; threads of one that wait for each other cost more than
            // they bring.
            .env("OMP_THREAD_LIMIT", "1")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            // Behind the walls nothing can be made in the folder of all temporary files.
            .env("TMPDIR", folder.path())
            .current_dir(folder.path())
            .stdin(if by_file { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // So that what it started ends with it.
            .process_group(0)
            .kill_on_drop(true);
        let grant =
            AccessGrant { hidden: hidden.clone(), folder: folder.path().to_owned(), network: *network };
        let mut child = start(command, grant).await.map_err(OcrError::Start)?;
        if let Some(bytes) = self.memory_bytes {
            child.limit_memory(bytes).map_err(OcrError::Start)?;
        }
        let said = timeout(*patience, converse(&mut child.0, png)).await.map_err(|_| OcrError::TooSlow)??;
        drop(child);
        tokio::task::spawn_blocking(move || {
            drop(folder);
            said
        })
        .await
        .map_err(|error| OcrError::Pipe(error.into()))
    }
}

/// Where a program is, found as a shell would find it.
fn find(name: &Path, settings: &OcrSettings) -> Option<PathBuf> {
    let may_run = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if name.components().count() > 1 || name.is_absolute() {
        return Some(name.to_owned()).filter(may_run);
    }
    let (_, path) = settings.environment.iter().find(|(name, _)| name == "PATH")?;
    std::env::split_paths(path).map(|folder| folder.join(name)).find(may_run)
}

/// Starts the command behind walls. They are put around a thread, whose children inherit them, so it is one that does nothing else and
/// ends. It is waited for as blocking work, which a service that stops waits for too: else it would be gone before what was started in
/// that moment is ended.
async fn start(mut command: Command, grant: AccessGrant) -> io::Result<ProcessGroup> {
    let runtime = Handle::current();
    let starting = move || {
        let _inside = runtime.enter();
        confine::confine_thread(&grant).and_then(|_| command.spawn()).map(ProcessGroup)
    };
    let started = tokio::task::spawn_blocking(move || {
        let thread = std::thread::Builder::new().name("recognise".into()).spawn(starting)?;
        thread.join().map_err(|_| io::Error::other("its start panicked"))?
    });
    // When nobody waits for it any more, it is dropped once it is started, which ends it.
    started.await.map_err(io::Error::other)?
}

/// A program that runs, with whatever it started. They end when this is dropped.
struct ProcessGroup(Child);

impl ProcessGroup {
    /// Its number. Only while the child is not reaped: the number may be another's afterwards.
    fn id(&self) -> Option<Pid> {
        self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }

    /// Lets it have so much address space from now on, which is before it has the image. One that is already over has no
    /// use for it.
    #[cfg(target_os = "linux")]
    fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        use rustix::{
            io::Errno,
            process::{Resource, Rlimit, prlimit},
        };
        let Some(id) = self.id() else { return Ok(()) };
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        match prlimit(Some(id), Resource::As, limit) {
            // It already may have less.
            Ok(_) | Err(Errno::PERM | Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Other systems have no way to limit a process from outside.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as on Linux, where it can fail")]
    fn limit_memory(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.id() {
            // It may have ended by itself.
            let _gone = rustix::process::kill_process_group(id, Signal::KILL);
        }
    }
}

/// A folder for one run, which no other account can enter, and the image in it when it is read from there.
pub(super) fn prepare(png: Vec<u8>, by_file: bool) -> io::Result<(TempDir, PathBuf, Option<Vec<u8>>)> {
    let private = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix(RUN_FOLDER).permissions(private).tempdir()?;
    let file = folder.path().join("page.png");
    if by_file {
        std::fs::write(&file, png)?;
        return Ok((folder, file, None));
    }
    Ok((folder, file, Some(png)))
}

/// Hands the image over, takes what is said, and sees the program out.
async fn converse(child: &mut Child, png: Option<Vec<u8>>) -> Result<Vec<u8>, OcrError> {
    let missing = || OcrError::Pipe(io::ErrorKind::BrokenPipe.into());
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = stdout.zip(stderr).ok_or_else(missing)?;
    let hand_over = async {
        if let (Some(mut stdin), Some(png)) = (stdin, png) {
            // A program that has seen enough may close it.
            let _closed = stdin.write_all(&png).await;
        }
    };
    let ((), said, complaint) = tokio::join!(hand_over, listen(stdout), drain(stderr));
    let said = said?;
    let status = child.wait().await.map_err(OcrError::Pipe)?;
    if !status.success() {
        tracing::debug!(%status, complaint, "text recognition failed");
        return Err(OcrError::Failed(status));
    }
    Ok(said)
}

async fn listen(stdout: impl AsyncRead + Unpin) -> Result<Vec<u8>, OcrError> {
    let mut said = Vec::new();
    stdout.take(MAX_OUTPUT + 1).read_to_end(&mut said).await.map_err(OcrError::Pipe)?;
    if u64::try_from(said.len()).unwrap_or(u64::MAX) > MAX_OUTPUT { Err(OcrError::TooMuch) } else { Ok(said) }
}

/// Reads everything, so that the program never blocks on it, and keeps the beginning.
async fn drain(mut stderr: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let _unread = (&mut stderr).take(COMPLAINT).read_to_end(&mut kept).await;
    let _unread = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}
