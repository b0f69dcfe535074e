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
}
