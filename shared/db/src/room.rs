//! Room on the disk of a SQLite store. A database cannot delete anything without writing first, so a full disk would keep what
//! fills it. Beside the file lies therefore another one, the reserve, which holds nothing but room: what must work on a full
//! disk ([`Db::begin_essential`](super::Db::begin_essential)) finds it given back, and everything else waits until the reserve
//! is whole again.
//!
//! Nothing here is asked while all is well: a store is in doubt only after a transaction broke off, or once its reserve is used.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rand::Rng;
use rustix::{fs::FallocateFlags, io::Errno};
use sqlx::SqlitePool;
use tokio::{sync::Mutex, time::Instant};

use super::{DbError, Result};

/// The name of the reserve.
const RESERVE: &str = "reserve";
/// What the reserve holds: enough to delete an account of some 20,000 documents in one transaction, which rewrites a page of
/// 4 KiB for every few rows, and as much at least as the log has between two checkpoints (4 MiB, and 8 at the most). It becomes less after a deletion on a
/// full disk: that leaves room in the database's file, which does not shrink, and to use it some is needed beside it, for the log.
const RESERVED: [u64; 3] = [32 << 20, 16 << 20, 8 << 20];
/// So much room in the database's file is worth a smaller reserve.
const REUSABLE: i64 = 4 << 20;
/// A disk that has no room for so much is full: an ordinary transaction may write as much to the log.
const NEEDED: u64 = 4 << 20;
/// How long an answer to whether there is room again holds. Writes go on so soon after there is.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What is written at once where the file system cannot set room aside.
const PIECE: usize = 1 << 16;

/// What is known of the room beside a database's file.
#[derive(Debug)]
pub struct DiskReserve {
    folder: PathBuf,
    /// Whether a reserve is kept: by the service, not by commands and tests.
    kept: AtomicBool,
    /// The size of the reserve.
    size: AtomicU64,
    /// Whether there may be no room: the last transaction broke off, or the reserve is in use.
    doubtful: AtomicBool,
    /// What was last found when there is none. Held while it is looked, so that one looks and the others wait.
    lacking: Arc<Mutex<Option<LackOfRoom>>>,
}

/// Nothing could be written.
#[derive(Clone, Copy, Debug)]
struct LackOfRoom {
    at: Instant,
    why: io::ErrorKind,
}

impl LackOfRoom {
    /// Whether it is for want of room, which deletions mend, and not of a right, say.
    fn is_full(self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WriteZero};
        matches!(self.why, StorageFull | QuotaExceeded | FileTooLarge | WriteZero)
    }
}

impl DiskReserve {
    pub(super) fn beside(file: &Path) -> Self {
        Self {
            folder: file.parent().unwrap_or(Path::new(".")).to_owned(),
            kept: AtomicBool::new(false),
            size: AtomicU64::new(RESERVED[0]),
            doubtful: AtomicBool::new(false),
            lacking: Arc::default(),
        }
    }

    /// Gives the reserve back, if there is one, before the store is open.
    pub(super) fn give_back(&self) -> bool {
        fs::remove_file(self.folder.join(RESERVE)).is_ok()
    }

    /// Keeps a reserve from now on. On a disk that is full already there may be none until there is room.
    pub(super) async fn keep_reserve(&self) {
        self.kept.store(true, Ordering::Release);
        self.doubt();
        let folder = self.folder.clone();
        // One that had to be smaller is made anew, as large as it should be.
        let _ = blocking(move || {
            let reserve = folder.join(RESERVE);
            let is_whole = fs::metadata(&reserve)?.len() >= RESERVED[0];
            if is_whole { Ok(()) } else { fs::remove_file(reserve) }
        })
        .await;
        let _ = self.look(RESERVED.to_vec(), Duration::ZERO).await;
    }

    /// Has it looked before the next ordinary transaction whether there is room.
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    /// Whether there may be no room, by what the file system says too.
    pub(super) async fn probe_free_space(&self) -> bool {
        let folder = self.folder.clone();
        if !self.is_doubtful() && blocking(move || free(&folder)).await.is_ok_and(|free| free < NEEDED) {
            self.doubt();
        }
        self.is_doubtful()
    }

    /// Lets an ordinary transaction pass when there is room for it.
    pub(super) async fn check(&self) -> Result<()> {
        if !self.is_doubtful() {
            return Ok(());
        }
        self.look(vec![self.size.load(Ordering::Acquire)], LOOK_EVERY).await
    }

    /// Looks whether there is room besides a reserve of one of these sizes, the first that is possible; not if that was done in
    /// the last `pause`.
    async fn look(&self, sizes: Vec<u64>, pause: Duration) -> Result<()> {
        let mut lacking = Arc::clone(&self.lacking).lock_owned().await;
        if !self.is_doubtful() {
            return Ok(());
        }
        if lacking.is_none_or(|lack| lack.at.elapsed() >= pause) {
            let (folder, kept) = (self.folder.clone(), self.kept.load(Ordering::Acquire));
            let look = move || try_room(&folder, if kept { &sizes } else { &[] });
            let (held, found) = blocking_with(lacking, look).await.map_err(sqlx::Error::Io)?;
            lacking = held;
            match found {
                Ok(size) => {
                    self.size.store(size.unwrap_or(RESERVED[0]), Ordering::Release);
                    if lacking.take().is_some() {
                        tracing::info!("the disk can be written again");
                    }
                    self.doubtful.store(false, Ordering::Release);
                    return Ok(());
                }
                Err(error) => {
                    let found = LackOfRoom { at: Instant::now(), why: error.kind() };
                    if lacking.replace(found).is_none() {
                        let folder = self.folder.display();
                        if found.is_full() {
                            tracing::error!(%error, %folder, "the disk is full: only what frees room is written until there is some");
                        } else {
                            tracing::error!(%error, %folder, "nothing can be written to the data directory");
                        }
                    }
                }
            }
        }
        Err(match *lacking {
            Some(lack) if !lack.is_full() => DbError::Failed(sqlx::Error::Io(lack.why.into())),
            Some(_) | None => DbError::Full(format!("there is no room in {}", self.folder.display())),
        })
    }

    /// Makes room for what must be written on a full disk too: gives the reserve back if there is no other.
    pub(super) async fn make(&self) {
        if !self.kept.load(Ordering::Acquire) {
            return;
        }
        let one_at_a_time = Arc::clone(&self.lacking).lock_owned().await;
        let (folder, doubtful) = (self.folder.clone(), self.is_doubtful());
        let is_full = move || {
            if !folder.join(RESERVE).exists() {
                return Ok(false);
            }
            let has_room = if doubtful {
                // What broke off may have been as large as the reserve is meant for.
                try_file(&folder, RESERVED[0]).is_ok()
            } else {
                free(&folder)? >= NEEDED || try_file(&folder, NEEDED).is_ok()
            };
            Ok(!has_room)
        };
        // What follows finds out for itself whether it can be written.
        let Ok((one_at_a_time, Ok(true))) = blocking_with(one_at_a_time, is_full).await else { return };
        // Before there is room, which is not for those that begin meanwhile.
        self.doubt();
        let reserve = self.folder.join(RESERVE);
        if let Ok((_, Ok(()))) = blocking_with(one_at_a_time, move || fs::remove_file(reserve)).await {
            tracing::warn!("the disk is full: the reserve is given back to what frees room");
        }
    }

    /// Gives the log's room back to the disk when that is full: what was deleted there leaves room in the database's file, and
    /// the log, written anew for it, may hold as much as the reserve did.
    pub(super) async fn regain(&self, writer: &SqlitePool) -> Result<()> {
        if !self.is_doubtful() {
            return Ok(());
        }
        let folded: sqlx::Result<(i64, i64, i64)> =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(writer).await;
        if let Err(error) = folded {
            tracing::debug!(%error, "the log could not be folded into the database's file");
        }
        let pages: i64 = sqlx::query_scalar("PRAGMA freelist_count").fetch_one(writer).await?;
        let page: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(writer).await?;
        let size = self.size.load(Ordering::Acquire);
        let sizes = RESERVED.into_iter().filter(|smaller| *smaller < size);
        let is_worth_it = pages.saturating_mul(page) >= REUSABLE;
        self.look([size].into_iter().chain(sizes.filter(|_| is_worth_it)).collect(), Duration::ZERO).await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    blocking_with((), work).await?.1
}

/// Does blocking work that goes on when whoever asked for it goes away, and holds on to something until it ends.
async fn blocking_with<H: Send + 'static, T: Send + 'static>(
    held: H,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<(H, io::Result<T>)> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        (held, done)
    });
    done.await.map_err(io::Error::other)
}

fn free(folder: &Path) -> io::Result<u64> {
    let there = rustix::fs::statvfs(folder)?;
    Ok(there.f_bavail.saturating_mul(there.f_frsize))
}

/// Whether there is room beside the reserve, whose size is returned. It is made in one of these sizes when it is not there.
fn try_room(folder: &Path, sizes: &[u64]) -> io::Result<Option<u64>> {
    let reserve = folder.join(RESERVE);
    let there = fs::metadata(&reserve).map(|found| found.len()).ok();
    if there.is_some() || sizes.is_empty() {
        return try_file(folder, NEEDED).map(|()| there);
    }
    let mut tried = Ok(None);
    for size in sizes {
        tried = make_file(&reserve, *size).map(|()| Some(*size));
        if tried.is_ok() {
            match try_file(folder, NEEDED) {
                Ok(()) => break,
                Err(error) => tried = Err(error),
            }
            fs::remove_file(&reserve)?;
        }
    }
    tried
}

/// Whether a file of so many bytes can be made. Only that tells: what a file system calls free leaves quotas out.
fn try_file(folder: &Path, bytes: u64) -> io::Result<()> {
    let trial = folder.join("reserve.trial");
    make_file(&trial, bytes)?;
    fs::remove_file(trial)
}

/// Makes a file that takes so much room, or none.
fn make_file(path: &Path, bytes: u64) -> io::Result<()> {
    let file = File::create(path)?;
    let made = match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write(file, bytes),
        set_aside => set_aside.map_err(io::Error::from),
    };
    if made.is_err() {
        fs::remove_file(path)?;
    }
    made
}

/// Writes what no file system can store in less room.
fn write(mut file: File, bytes: u64) -> io::Result<()> {
    let (mut piece, mut left) = (vec![0; PIECE], bytes);
    while left > 0 {
        rand::rng().fill_bytes(&mut piece);
        let size = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        file.write_all(piece.get(..size).unwrap_or_default())?;
        left -= size as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn nobody_looks_for_room_beside_somebody_whose_caller_has_gone() {
        let lock = Arc::new(Mutex::new(()));
        let (end, may_end) = mpsc::channel::<()>();
        let look = move || {
            let _ = may_end.recv();
            Ok(())
        };
        let mut gone = Box::pin(blocking_with(Arc::clone(&lock).lock_owned().await, look));
        assert!(poll!(&mut gone).is_pending());
        drop(gone);
        assert!(lock.try_lock().is_err());
        drop(end);
        drop(lock.lock().await);
    }
}
