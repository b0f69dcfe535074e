//! What recognises text on pages that are images.

use std::{path::PathBuf, time::Duration};

/// How text on pages that are images is recognised.
#[derive(Clone, Debug)]
pub struct OcrSettings {
    /// What recognises it.
    pub program: OcrProgram,
    /// Time for one page.
    pub timeout: Duration,
    /// All that the program gets of the environment, by name.
    pub environment: Vec<(String, String)>,
    /// What the program must not read: the folders of the service, and the files that it has secrets from.
    pub hidden: Vec<PathBuf>,
    /// Whether a command may use the network. Tesseract never does.
    pub network: bool,
    /// Address space of tesseract, in bytes. A command has no such limit.
    pub memory_bytes: u64,
}

/// What recognises text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OcrProgram {
    /// The operator's command: a program and its arguments; at least one word.
    Command(Vec<String>),
    /// Tesseract, as it is found on the PATH.
    Tesseract {
        /// Whether the service does not start without it.
        is_required: bool,
        /// The names of its models, the most likely first; English when none are set.
        languages: Option<Vec<String>>,
    },
}
