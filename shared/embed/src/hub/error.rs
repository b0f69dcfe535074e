//! Why a model could not be had, in words for the operator.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::ModelId;

/// Why a model could not be had. The text is for the operator: no token, no address beyond the hub's name, nothing of what
/// was sent.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// What should name a model does not.
    #[error("{0}")]
    Name(&'static str),
    /// The settings cannot be used: the hub's address or the token.
    #[error("{0}")]
    Settings(&'static str),
    /// The settings forbid asking the hub.
    #[error(
        "HF_HUB_OFFLINE is set, so {host} is not asked for {model}: put the model into LECTERN_MODEL_CACHE with `lectern model pull` where there is a network, or name its folder in LECTERN_EMBEDDING_MODEL_DIR"
    )]
    Offline {
        /// The model.
        model: ModelId,
        /// Who is not asked.
        host: String,
    },
    /// The hub, or the host that keeps its files, is away or refuses for now.
    #[error("{host} cannot serve the model now: {problem}")]
    Away {
        /// Who was asked.
        host: String,
        /// What went wrong.
        problem: String,
    },
    /// What answers does not speak as a hub does.
    #[error("{host} does not answer as a model hub does: {problem}")]
    NotAHub {
        /// Who was asked.
        host: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no such model, or no such revision.
    #[error("{model} is not on {host}: {problem}")]
    NotFound {
        /// The model.
        model: ModelId,
        /// Who was asked.
        host: String,
        /// What is missing.
        problem: &'static str,
    },
    /// The hub does not give it to us.
    #[error("{host} does not give out {model}: {problem}")]
    Refused {
        /// The model.
        model: ModelId,
        /// Who was asked.
        host: String,
        /// What to do.
        problem: &'static str,
    },
    /// The model has not the files that an encoder needs.
    #[error("{model} cannot be used: {problem}")]
    Unusable {
        /// The model.
        model: ModelId,
        /// What is missing, and what to do.
        problem: String,
    },
    /// What came is not what was announced.
    #[error(
        "{file} of {model} arrived damaged and was thrown away: {problem}; try again, or from another network"
    )]
    Damaged {
        /// The model.
        model: ModelId,
        /// The file.
        file: String,
        /// What differs.
        problem: &'static str,
    },
    /// The cache's disk is full.
    #[error("no space is left for models in {}", folder.display())]
    DiskFull {
        /// The folder.
        folder: PathBuf,
    },
    /// The cache cannot be read or written.
    #[error("the models in {} cannot be read or written: {error}", folder.display())]
    Disk {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl HubError {
    /// Whether the same may well succeed later without anything being changed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Away { .. } | Self::NotAHub { .. } | Self::DiskFull { .. } => true,
            Self::Name(_)
            | Self::Settings(_)
            | Self::Offline { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::Unusable { .. }
            | Self::Damaged { .. }
            | Self::Disk { .. } => false,
        }
    }

    pub(super) fn disk(folder: &Path, error: io::Error) -> Self {
        let folder = folder.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { folder },
            _ => Self::Disk { folder, error },
        }
    }
}

/// A request that failed.
#[derive(Debug)]
pub(super) struct HubFailure {
    pub(super) error: HubError,
    /// How long the server asks to be left alone.
    pub(super) after: Option<Duration>,
    /// No connection could be made at all.
    pub(super) unreachable: bool,
}

impl From<HubError> for HubFailure {
    fn from(error: HubError) -> Self {
        Self { error, after: None, unreachable: false }
    }
}
