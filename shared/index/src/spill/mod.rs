//! Spilling to the disk: blocks of the index that do not fit into memory are kept in files, from which a search reads only what its
//! question needs.
//!
//! A file has no name, and goes with the process. It is only a copy: what is lost of it is read from the relational store again.

mod block;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use lectern_shared::{open_files, scratch_file};
use parking_lot::Mutex;

pub(crate) use self::block::SpilledBlock;
use crate::segment::PostingsBlock;

/// Smaller blocks, in bytes, are not worth a file: they are read from the store again in a moment.
const LEAST: u64 = 1 << 20;
/// The index has at most one of so many files that the process may have open: the others are for connections.
const FILES: u64 = 4;
/// How long nothing is written after the disk has refused.
const PAUSE: Duration = Duration::from_mins(1);

/// Room on the disk for blocks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SpillSpace {
    shared: Arc<SpillState>,
}

#[derive(Debug)]
struct SpillState {
    folder: PathBuf,
    capacity: u64,
    least: u64,
    /// The least room that a file counts for, in bytes: it bounds how many files there are.
    least_room: u64,
    /// The room that all files take, in bytes.
    taken: AtomicU64,
    /// When something could not be written last.
    refused: Mutex<Option<Instant>>,
    /// Whether a file could not be read: the disk is not used any more.
    broken: AtomicBool,
}

/// A part of the room, given back when it is dropped.
#[derive(Debug)]
struct SpillRoom {
    of: Arc<SpillState>,
    bytes: u64,
}

impl Drop for SpillRoom {
    fn drop(&mut self) {
        self.of.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl SpillSpace {
    /// Room for so many bytes in files in this folder.
    pub fn new(folder: PathBuf, capacity: u64) -> Self {
        let files = open_files::limit().map_or(u64::MAX, |limit| limit / FILES);
        Self::of_blocks_from(folder, capacity, LEAST, files)
    }

    /// The same, for blocks of which each takes `least` bytes or more, in so many files at most.
    pub(crate) fn of_blocks_from(folder: PathBuf, capacity: u64, least: u64, files: u64) -> Self {
        let shared = SpillState {
            folder,
            capacity,
            least,
            least_room: capacity / files.max(1),
            taken: AtomicU64::new(0),
            refused: Mutex::new(None),
            broken: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The most bytes that all files together may have; none while the disk cannot be used.
    pub(crate) fn capacity(&self) -> u64 {
        let is_usable = !self.shared.broken.load(Ordering::Relaxed)
            && self.shared.refused.lock().is_none_or(|at| at.elapsed() >= PAUSE);
        if is_usable { self.shared.capacity } else { 0 }
    }

    /// The room that all files take, in bytes.
    pub(crate) fn taken(&self) -> u64 {
        self.shared.taken.load(Ordering::Relaxed)
    }

    /// Whether a block of so many bytes is large enough for a file.
    pub(crate) fn is_worth(&self, bytes: u64) -> bool {
        bytes >= self.shared.least
    }

    /// The room that other files must give back before a block can be written; none when it cannot be at all.
    pub(crate) fn lacking(&self, block: &PostingsBlock) -> Option<u64> {
        let (capacity, room) = (self.capacity(), self.room_of(block));
        if room > capacity {
            return None;
        }
        // A disk that cannot be asked says why when it is written to.
        let on_disk = scratch_file::lacking(&self.shared.folder, SpilledBlock::file_len(block)).unwrap_or(0);
        Some(on_disk.max(self.taken().saturating_add(room).saturating_sub(capacity)))
    }

    fn room_of(&self, block: &PostingsBlock) -> u64 {
        SpilledBlock::file_len(block).max(self.shared.least_room)
    }

    /// Writes a block to a file of its own; none when there is no room for it.
    pub(crate) fn write(&self, block: &PostingsBlock) -> Option<SpilledBlock> {
        let room = self.take(self.room_of(block))?;
        match scratch_file::create(&self.shared.folder, SpilledBlock::file_len(block))
            .and_then(|file| SpilledBlock::write(block, file, room))
        {
            Ok(spilled) => {
                *self.shared.refused.lock() = None;
                Some(spilled)
            }
            Err(error) => {
                if self.shared.refused.lock().replace(Instant::now()).is_none() {
                    let folder = self.shared.folder.display();
                    tracing::warn!(%error, %folder, "the index cannot be kept on the disk: searches of more of it than memory holds read it from the database");
                }
                None
            }
        }
    }

    /// Uses no file from now on: one could not be read.
    pub(crate) fn give_up(&self, error: &io::Error) {
        if !self.shared.broken.swap(true, Ordering::Relaxed) {
            let folder = self.shared.folder.display();
            tracing::error!(%error, %folder, "what was kept of the index on the disk cannot be read: until the next start it is kept in memory only");
        }
    }

    fn take(&self, bytes: u64) -> Option<SpillRoom> {
        let capacity = self.capacity();
        let fits = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= capacity);
        self.shared.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(SpillRoom { of: Arc::clone(&self.shared), bytes })
    }
}
