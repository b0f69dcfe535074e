//! Why a model cannot be used.

use std::{
    io,
    path::{Path, PathBuf},
};

use lectern_encoder::WeightsError;

/// Why a model's files cannot be used, in words for the operator.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file that every model has is not there.
    #[error("{} is missing: {hint}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What to do.
        hint: String,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In which way.
        reason: String,
    },
    /// The model is of a kind that is not known here.
    #[error(
        "{}: {reason}; choose a sentence encoder of the BERT family (BERT, RoBERTa, XLM-RoBERTa or DistilBERT), or serve \
         this one with an OpenAI-compatible server and set LECTERN_EMBEDDER=openai-compatible", path.display()
    )]
    Unsupported {
        /// The file that says so.
        path: PathBuf,
        /// What is not known.
        reason: String,
    },
    /// Its weights cannot be used.
    #[error("{}: {error}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// Why.
        error: WeightsError,
    },
}

impl ModelError {
    pub(super) fn damaged(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), reason: format!("{reason}") }
    }

    pub(super) fn unsupported(path: &Path, reason: impl Into<String>) -> Self {
        Self::Unsupported { path: path.to_owned(), reason: reason.into() }
    }
}
