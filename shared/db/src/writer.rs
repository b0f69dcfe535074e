//! SQLite's only writer: who waits for it, in which order, and when a commit is a promise.

use std::{
    fs::{self, File, Metadata},
    io,
    ops::{Deref, DerefMut},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lectern_shared::{
    combine::RequestCombiner,
    ids::WorkspaceId,
    turns::{FairTurn, FairTurns},
};
use parking_lot::Mutex;
use sqlx::{SqliteConnection, SqlitePool, SqliteTransaction};
use tokio::{sync::watch, task::spawn_blocking, time::timeout};

use super::{CommitDurability, DbError, Result};

/// How long a transaction waits for the writer: a burst of uploads must wait, not fail.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Turns of the background: one transaction of its own at a time waits for the writer or has it, and the next is that of the workspace
/// that had one the longest ago. What is no workspace's counts as one of them.
pub(super) type BackgroundTurns = FairTurns<Option<WorkspaceId>>;

/// For whom a handle begins its transactions.
#[derive(Clone, Debug)]
pub struct WriterLane {
    is_background: bool,
    /// On whose behalf, where that is known.
    workspace: Option<WorkspaceId>,
    turns: BackgroundTurns,
    log: WriteLog,
}

impl WriterLane {
    /// That of requests to the store in this file.
    pub(super) fn new(file: &Path) -> Self {
        let turns = BackgroundTurns::new(1);
        Self { is_background: false, workspace: None, turns, log: WriteLog::beside(file) }
    }

    /// That of jobs beside these requests.
    pub(super) fn background(&self) -> Self {
        Self { is_background: true, ..self.clone() }
    }

    /// The same on behalf of a workspace.
    pub(super) fn of(&self, workspace: WorkspaceId) -> Self {
        Self { workspace: Some(workspace), ..self.clone() }
    }

    pub(super) fn turns(&self) -> BackgroundTurns {
        self.turns.clone()
    }

    pub(super) fn log(&self) -> &WriteLog {
        &self.log
    }

    /// Begins a transaction, once it is its turn.
    ///
    /// # Errors
    /// Those of SQLite; [`DbError::Failed`] when the writer is busy for too long, or the disk has failed.
    pub(super) async fn begin(
        &self,
        writer: &SqlitePool,
        durability: CommitDurability,
    ) -> Result<SqliteWrite> {
        self.log.check()?;
        let turn = if self.is_background {
            let turn = timeout(PATIENCE, self.turns.take(self.workspace)).await;
            Some(turn.map_err(|_| DbError::Failed(sqlx::Error::PoolTimedOut))?)
        } else {
            None
        };
        let tx = writer.begin_with("BEGIN IMMEDIATE").await?;
        Ok(SqliteWrite { tx, turn, durability, log: self.log.clone(), active: None })
    }
}

/// An open transaction on SQLite.
#[derive(Debug)]
pub struct SqliteWrite {
    tx: SqliteTransaction<'static>,
    /// Given back after the connection.
    turn: Option<FairTurn<Option<WorkspaceId>>>,
    durability: CommitDurability,
    log: WriteLog,
    /// A workspace that is not deleted, nor will be until this ends.
    active: Option<WorkspaceId>,
}

impl SqliteWrite {
    /// Notes that a workspace is not deleted.
    pub(super) fn note_active(&mut self, workspace: WorkspaceId) {
        self.active = Some(workspace);
    }

    /// Whether a workspace is known not to be deleted until this ends.
    pub(super) fn knows_active(&self, workspace: WorkspaceId) -> bool {
        self.active == Some(workspace)
    }

    /// Commits. Others have the writer while this waits for the disk.
    ///
    /// # Errors
    /// [`DbError::CommitUnknown`] when it took place and may not be on the disk; every other error means that nothing did.
    pub(super) async fn commit(self) -> Result<()> {
        let Self { tx, turn, durability, log, active: _ } = self;
        let end = tx.commit().await;
        drop(turn);
        end?;
        log.commits.send_replace(());
        match durability {
            CommitDurability::Promised => log.flush().await,
            CommitDurability::Relaxed => Ok(()),
        }
    }

    pub(super) async fn rollback(self) -> Result<()> {
        let Self { tx, turn, .. } = self;
        let end = tx.rollback().await;
        drop(turn);
        Ok(end?)
    }
}

impl Deref for SqliteWrite {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.tx
    }
}

impl DerefMut for SqliteWrite {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.tx
    }
}

/// The write-ahead log. SQLite writes to it and does not wait for the disk, since its only writer would wait with it: whose commit is a
/// promise waits itself, together with all who want that at the same moment. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct WriteLog {
    /// Changes with every commit.
    commits: watch::Sender<()>,
    flushes: RequestCombiner<(), (), std::result::Result<(), io::ErrorKind>>,
    file: Arc<LogFile>,
}

impl WriteLog {
    fn beside(database: &Path) -> Self {
        let file = Arc::new(LogFile::beside(database));
        let log = Arc::clone(&file);
        let flush = move |(), asked: Vec<()>| {
            let log = Arc::clone(&log);
            async move {
                let flushed = spawn_blocking(move || log.flush().map_err(|error| error.kind())).await;
                vec![flushed.unwrap_or(Err(io::ErrorKind::Interrupted)); asked.len()]
            }
        };
        let flushes = RequestCombiner::new(usize::MAX, |()| 1, flush);
        Self { commits: watch::Sender::new(()), flushes, file }
    }

    /// Tells of each commit, until nobody can commit any more.
    pub(super) fn commits(&self) -> watch::Receiver<()> {
        self.commits.subscribe()
    }

    /// Refuses to go on after the disk has failed: what it has of the log is not known, so nothing after it could be promised.
    fn check(&self) -> Result<()> {
        if self.file.has_failed.load(Ordering::Acquire) {
            let message = "the disk failed while a commit was taken to it; start the service again";
            return Err(DbError::Failed(sqlx::Error::Io(io::Error::other(message))));
        }
        Ok(())
    }

    /// Takes everything that is committed to the disk.
    ///
    /// # Errors
    /// [`DbError::CommitUnknown`] when the disk fails or has failed.
    pub(super) async fn flush(&self) -> Result<()> {
        match self.flushes.ask((), ()).await {
            Some(Ok(())) => Ok(()),
            Some(Err(kind)) => Err(DbError::CommitUnknown(sqlx::Error::Io(kind.into()))),
            None => Err(DbError::CommitUnknown(sqlx::Error::WorkerCrashed)),
        }
    }

    /// How often something was taken to the disk.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn flushed(&self) -> u64 {
        self.file.flushed.load(Ordering::Acquire)
    }
}

/// The file of the log.
#[derive(Debug)]
struct LogFile {
    database: PathBuf,
    open: Mutex<Option<OpenLog>>,
    /// How often it was flushed.
    flushed: AtomicU64,
    has_failed: AtomicBool,
}

/// The log under a descriptor of its own, which stays: a failure of the disk is told to each descriptor that was open by then, once.
/// No lock of SQLite's is on this file, which closing it would give up.
#[derive(Debug)]
struct OpenLog {
    file: File,
    path: PathBuf,
    /// Device and number.
    identity: (u64, u64),
    /// Where its name stands, until that is on the disk: else all of it could be lost with its name.
    folder: Option<File>,
}

impl LogFile {
    fn beside(database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            open: Mutex::new(None),
            flushed: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Waits until what was written to it is on the disk. Once that has failed, it fails for good: what was not written is forgotten by
    /// the system, and the next time would seem to succeed. Where the log only cannot be opened, for want of descriptors, the next time
    /// does what this was to do.
    fn flush(&self) -> io::Result<()> {
        let mut open = self.open.lock();
        if self.has_failed.load(Ordering::Acquire) {
            return Err(io::Error::other("an earlier one failed"));
        }
        let log = match open.take() {
            // SQLite may have made it anew.
            Some(log) if identity(&fs::metadata(&log.path)?) == log.identity => log,
            Some(_) | None => OpenLog::of(&self.database)?,
        };
        let flushed = open.insert(log).sync();
        self.flushed.fetch_add(1, Ordering::AcqRel);
        if let Err(error) = &flushed {
            self.has_failed.store(true, Ordering::Release);
            tracing::error!(
                %error, database = %self.database.display(),
                "the disk failed: nothing more is written until the service is started again"
            );
        }
        flushed
    }
}

impl OpenLog {
    /// Opens the log that is there.
    fn of(database: &Path) -> io::Result<Self> {
        // SQLite has it beside the file that a link leads to.
        let database = database.canonicalize()?;
        let folder = database.parent().map(File::open).transpose()?;
        let mut path = database.into_os_string();
        path.push("-wal");
        let file = File::open(&path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self { file, path: path.into(), identity, folder })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(folder) = &self.folder {
            folder.sync_all()?;
            self.folder = None;
        }
        Ok(())
    }
}

fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_flush_that_failed_is_never_made_good_by_the_next_one() {
        let home = tempfile::tempdir().unwrap();
        let (database, log) = (home.path().join("test.db"), home.path().join("test.db-wal"));
        fs::write(&database, "").unwrap();
        let file = LogFile::beside(&database);
        assert!(file.flush().is_err(), "there is no log");
        fs::write(&log, "").unwrap();
        file.flush().expect("what could not be opened can be tried again");

        fs::remove_file(&log).unwrap();
        // No disk takes what is written to it.
        symlink("/dev/null", &log).unwrap();
        assert!(file.flush().is_err());
        assert!(file.has_failed.load(Ordering::Acquire));
        fs::remove_file(&log).unwrap();
        fs::write(&log, "").unwrap();
        assert!(file.flush().is_err(), "what became of the one before is not known");
    }
}
