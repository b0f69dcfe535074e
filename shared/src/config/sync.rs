//! Sources of documents that are kept up with.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    ConfigError, SettingsSource,
    parse::{duration, folders, number, own_files},
};

/// How sources are kept up with.
#[derive(Clone, Debug)]
pub struct SyncSettings {
    /// The folders that sources may read.
    pub folders: Vec<PathBuf>,
    /// What no source reads, within those too: what the service keeps for itself, and what the system tells of processes.
    pub hidden: Vec<PathBuf>,
    /// Runs at once in a worker.
    pub runs: u32,
    /// The least time between two requests to one host.
    pub pause: Duration,
    /// Documents of one source, at most.
    pub items: u32,
}

impl SyncSettings {
    pub(super) fn load(source: &SettingsSource, data_dir: &Path) -> Result<Self, ConfigError> {
        let mut hidden = own_files(source, data_dir)?;
        hidden.extend(["/proc", "/sys", "/dev"].map(PathBuf::from));
        Ok(Self {
            folders: source.parse("LECTERN_SOURCE_FOLDERS", "", folders)?,
            hidden,
            runs: source.parse("LECTERN_SOURCE_RUNS", "8", number(1, 1_000))?,
            pause: source.parse("LECTERN_SOURCE_PAUSE", "1s", duration)?,
            items: source.parse("LECTERN_SOURCE_ITEMS", "20000", number(1, 1_000_000))?,
        })
    }

    /// Those of the folders that are not there at this moment, which the disk is asked for. They may be mounted later.
    pub fn missing_folders(&self) -> Vec<&Path> {
        self.folders.iter().map(PathBuf::as_path).filter(|folder| !folder.is_dir()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_or_no_folder_is_missing_until_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        let [there, later, file] = ["there", "later", "file"].map(|name| root.path().join(name));
        std::fs::create_dir(&there).unwrap();
        std::fs::write(&file, "text").unwrap();
        let settings = SyncSettings {
            folders: vec![there, later.clone(), file.clone()],
            hidden: Vec::new(),
            runs: 1,
            pause: Duration::ZERO,
            items: 1,
        };
        assert_eq!(settings.missing_folders(), [later.as_path(), file.as_path()]);
        std::fs::create_dir(&later).unwrap();
        assert_eq!(settings.missing_folders(), [file.as_path()]);
    }
}
