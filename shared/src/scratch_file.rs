//! Files without names for what can be made anew: nobody else sees them, and they go with the process that has them open.

use std::{fs::File, io, path::Path};

/// What is left free on the disk, for what cannot be made anew.
const SPARE: u64 = 1 << 30;

/// How many bytes must become free on a folder's disk before so many may be written there.
///
/// # Errors
/// The folder is not there.
pub fn lacking(folder: &Path, bytes: u64) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    Ok(SPARE.saturating_add(bytes).saturating_sub(free))
}

/// A new, empty file in a folder, in which so many bytes may be written.
///
/// # Errors
/// The folder is not there or cannot be written to, or less than 1 GiB would be left on its disk.
pub fn create(folder: &Path, bytes: u64) -> io::Result<File> {
    if lacking(folder, bytes)? > 0 {
        return Err(io::Error::new(io::ErrorKind::StorageFull, "less than 1 GiB would be left on the disk"));
    }
    tempfile::tempfile_in(folder)
}
