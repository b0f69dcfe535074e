//! Text recognition for pages that are images: the operator's command is run once for each page.
//!
//! The command is trusted, the image is not: it was drawn from a stranger's file. So the command runs for a bounded time,
//! in a folder of its own, without the service's environment, and what it says is bounded too. Walls keep from it what the
//! service holds, the images of other pages, and the network.

use std::{
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use lectern_parse::{
    confine::{self, AccessGrant, RUN_FOLDER},
    formats::pdf,
};
use lectern_shared::{config::OcrSettings, model::job::IngestionWarning};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
    time::timeout,
};

/// What stands for the image's file in the command.
const INPUT: &str = "{input}";
/// The most that a command may say of one page, in bytes.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// How much of what it says besides is kept for the log, in bytes.
const COMPLAINT: u64 = 2_048;
/// After so many failures in a row the command is not asked for the rest of a document.
const MAX_FAILURES_IN_A_ROW: u32 = 5;

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
    #[error("the command failed: {0}")]
    Failed(ExitStatus),
    /// It took too long.
    #[error("the command took longer than LECTERN_OCR_TIMEOUT")]
    TooSlow,
    /// It said more than a page can hold.
    #[error("the command wrote more than {MAX_OUTPUT} bytes")]
    TooMuch,
}

/// The operator's command for recognising text. Cheap enough to clone.
#[derive(Debug, Clone)]
pub(super) struct OcrCommand {
    settings: OcrSettings,
}

impl OcrCommand {
    /// Runs this command. It is not tried yet; [`OcrCommand::program`] tells whether it is there.
    pub(super) fn new(settings: OcrSettings) -> Self {
        Self { settings }
    }

    /// Where the program is, if it is there and may be run.
    pub(super) fn program(&self) -> Option<PathBuf> {
        let name = Path::new(self.settings.command.first()?);
        let may_run = |path: &PathBuf| {
            path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        };
        if name.components().count() > 1 || name.is_absolute() {
            return Some(name.to_owned()).filter(may_run);
        }
        let path = self.settings.environment.iter().find(|(name, _)| name == "PATH")?;
        std::env::split_paths(&path.1).map(|folder| folder.join(name)).find(may_run)
    }

    /// The text on one page, cleaned like any other page's. Dropping the future ends the command.
    pub(super) async fn read(&self, png: Vec<u8>) -> Result<String, OcrError> {
        let OcrSettings { command, timeout: patience, environment, hidden, network } = &self.settings;
        let by_file = command.iter().any(|word| word.contains(INPUT));
        let (folder, file, png) = tokio::task::spawn_blocking(move || prepare(png, by_file))
            .await
            .map_err(|error| OcrError::Pipe(error.into()))?
            .map_err(OcrError::Pipe)?;
        let input = file.to_string_lossy();
        let mut words = command.iter().map(|word| word.replace(INPUT, &input));
        let program = self.program().ok_or_else(|| OcrError::Start(io::ErrorKind::NotFound.into()))?;
        let mut command = Command::new(program);
        command
            .args(words.by_ref().skip(1))
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
        let said = timeout(*patience, converse(&mut child.0, png)).await.map_err(|_| OcrError::TooSlow)??;
        drop(child);
        tokio::task::spawn_blocking(move || {
            drop(folder);
            pdf::tidy(&String::from_utf8_lossy(&said))
        })
        .await
        .map_err(|error| OcrError::Pipe(error.into()))
    }
}

/// Starts the command behind walls. They are put around a thread, whose children inherit them, so it is one that does
/// nothing else and ends.
async fn start(mut command: Command, grant: AccessGrant) -> io::Result<ProcessGroup> {
    let (sender, receiver) = oneshot::channel();
    let runtime = Handle::current();
    std::thread::Builder::new().name("recognise".into()).spawn(move || {
        let _inside = runtime.enter();
        let started = confine::confine_thread(&grant).and_then(|_| command.spawn()).map(ProcessGroup);
        // When nobody waits any more, dropping it ends the command.
        let _unheard = sender.send(started);
    })?;
    receiver.await.map_err(io::Error::other)?
}

/// A command that runs, with whatever it started. They end when this is dropped.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Only while the child is not reaped: its number may be another's afterwards.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended by itself.
            let _gone = rustix::process::kill_process_group(id, Signal::KILL);
        }
    }
}

/// A folder for one run, which no other account can enter, and the image in it when it is read from there.
fn prepare(png: Vec<u8>, by_file: bool) -> io::Result<(TempDir, PathBuf, Option<Vec<u8>>)> {
    let private = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix(RUN_FOLDER).permissions(private).tempdir()?;
    let file = folder.path().join("page.png");
    if by_file {
        std::fs::write(&file, png)?;
        return Ok((folder, file, None));
    }
    Ok((folder, file, Some(png)))
}

/// Hands the image over, takes what is said, and sees the command out.
async fn converse(child: &mut Child, png: Option<Vec<u8>>) -> Result<Vec<u8>, OcrError> {
    let missing = || OcrError::Pipe(io::ErrorKind::BrokenPipe.into());
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = stdout.zip(stderr).ok_or_else(missing)?;
    let hand_over = async {
        if let (Some(mut stdin), Some(png)) = (stdin, png) {
            // A command that has seen enough may close it.
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

/// Reads everything, so that the command never blocks on it, and keeps the beginning.
async fn drain(mut stderr: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let _unread = (&mut stderr).take(COMPLAINT).read_to_end(&mut kept).await;
    let _unread = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

/// The recognition of one document's pages, and how it went.
#[derive(Debug)]
pub(super) struct PageRecognition<'a> {
    ocr: Option<&'a OcrCommand>,
    /// The text of the page that comes next, if it was recognised.
    next: Option<String>,
    read: u64,
    failed: u64,
    failed_in_a_row: u32,
}

impl<'a> PageRecognition<'a> {
    /// Of a document that nothing has come of yet.
    pub(super) fn new(ocr: Option<&'a OcrCommand>) -> Self {
        Self { ocr, next: None, read: 0, failed: 0, failed_in_a_row: 0 }
    }

    /// Recognises the text on the image of the page that comes next.
    pub(super) async fn image(&mut self, page: u32, png: Vec<u8>) {
        self.next = None;
        let Some(ocr) = self.ocr else { return };
        if self.failed_in_a_row >= MAX_FAILURES_IN_A_ROW {
            self.failed += 1;
            return;
        }
        match ocr.read(png).await {
            Ok(text) => {
                self.failed_in_a_row = 0;
                self.next = Some(text);
            }
            Err(error) => {
                if self.failed == 0 {
                    tracing::warn!(%error, page, "text recognition (LECTERN_OCR_COMMAND) failed");
                }
                self.failed += 1;
                self.failed_in_a_row += 1;
            }
        }
    }

    /// What the page says: what was recognised, unless the page itself says more.
    pub(super) fn text(&mut self, of_page: String) -> String {
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        match self.next.take() {
            Some(recognised) if letters(&recognised) > letters(&of_page) => {
                self.read += 1;
                recognised
            }
            Some(_) | None => of_page,
        }
    }

    /// What the document's owner should know.
    pub(super) fn warnings(&self) -> Vec<IngestionWarning> {
        let warning = |code: &str, message: &str, count: u64| IngestionWarning {
            code: code.to_owned(),
            message: message.to_owned(),
            count,
        };
        let read = "Some pages are images; their text was recognised (OCR) and may hold mistakes.";
        let failed = "Some pages are images, and their text could not be recognised (OCR); it is not found.";
        [warning("ocr_pages", read, self.read), warning("ocr_failed", failed, self.failed)]
            .into_iter()
            .filter(|warning| warning.count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests;
