//! The data directory of an embedded installation: one process works in it, and nobody else on the machine reads it.

use std::{
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use rustix::fs::Mode;

use crate::RuntimeStartError;

/// What everybody but the owner may do.
const OTHERS: u32 = 0o077;

/// Makes the data directory and takes it for this process alone: a second process on its SQLite file would take the first
/// one's jobs for abandoned.
pub(crate) fn lock(path: &Path) -> Result<File, RuntimeStartError> {
    let fail = |source| RuntimeStartError::DataDir { path: path.display().to_string(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fail)?;
    let lock =
        File::options().create(true).truncate(false).write(true).open(path.join("lock")).map_err(fail)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(RuntimeStartError::InUse(path.display().to_string())),
        Err(TryLockError::Error(error)) => Err(fail(error)),
    }
}

/// Has all that this process makes from now on be closed to every other user of the machine.
pub fn make_private() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// Closes the data directory to every other user of the machine: what is there, whoever made it and however it was copied here,
/// and what this process is going to make.
///
/// # Errors
/// [`RuntimeStartError::DataDirOpen`] when that is not possible.
pub(crate) fn close_to_others(path: &Path) -> Result<(), RuntimeStartError> {
    make_private();
    let open = |source| RuntimeStartError::DataDirOpen { path: path.display().to_string(), source };
    close_within(path);
    close(path).map_err(open)
}

/// Closes what is in a folder. The folders in it are gone through only if they were open: nobody reaches what is in others. What
/// cannot be closed is out of reach nevertheless, once the data directory itself is closed.
fn close_within(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
        // A link has no mode, and leads elsewhere.
        if found.is_symlink() || found.permissions().mode() & OTHERS == 0 {
            continue;
        }
        if found.is_dir() {
            close_within(&path);
        }
        // Last, so that a folder which was not gone through to its end is begun anew at the next start.
        if let Err(error) = close(&path) {
            tracing::warn!(%error, path = %path.display(), "what lies in the data directory cannot be closed to others");
        }
    }
}

/// Takes every right from others, and makes sure that they are gone: some file systems have no rights.
fn close(path: &Path) -> io::Result<()> {
    let mode = |path| fs::metadata(path).map(|found| found.permissions().mode() & 0o7777);
    let found = mode(path)?;
    if found & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(found & !OTHERS))?;
    if mode(path)? & OTHERS == 0 { Ok(()) } else { Err(io::Error::other("the file system keeps no modes")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_was_open_is_closed_down_to_the_last_file_and_what_a_link_leads_to_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let shard = data.join("blobs/7f");
        fs::create_dir_all(&shard).unwrap();
        let outside = dir.path().join("outside");
        let files = [data.join("lectern.db"), shard.join("blob"), outside.clone()];
        for file in &files {
            fs::write(file, "text").unwrap();
            set(file, 0o644);
        }
        std::os::unix::fs::symlink(&outside, data.join("link")).unwrap();
        for folder in [&data, &data.join("blobs"), &shard] {
            set(folder, 0o755);
        }
        close_to_others(&data).unwrap();
        for folder in [&data, &data.join("blobs"), &shard] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        assert_eq!(files.each_ref().map(|file| mode(file)), [0o600, 0o600, 0o644]);
    }

    #[test]
    fn a_folder_that_cannot_be_closed_is_refused_with_what_to_do() {
        // Nobody may change it, not even root, and there are only links in it.
        let refused = close_to_others(Path::new("/proc/self/ns")).unwrap_err().to_string();
        assert!(refused.contains("chmod") && refused.contains("LECTERN_DATA_DIR"), "{refused}");
    }
}
