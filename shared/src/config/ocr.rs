//! What recognises text on pages that are images.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    ConfigError, OcrMode, SettingsSource, command,
    parse::{ParseResult, at_least, choice, duration, own_files},
};

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

impl OcrSettings {
    /// What recognises text on images, within `memory_bytes`, if anything does.
    pub(super) fn load(
        source: &SettingsSource,
        data_dir: &Path,
        memory_bytes: u64,
    ) -> Result<Option<Self>, ConfigError> {
        let second = at_least(Duration::from_secs(1), duration);
        let timeout = source.parse("LECTERN_OCR_TIMEOUT", "60s", second)?;
        let mode: OcrMode = source.parse("LECTERN_OCR", "auto", choice)?;
        let languages = source.optional("LECTERN_OCR_LANGUAGES", ocr_languages)?;
        let command = source.commands("LECTERN_OCR_COMMAND", command::words)?;
        let network = source.parse("LECTERN_OCR_NETWORK", "off", switch)?;
        let is_required = match mode {
            OcrMode::Off => return Ok(None),
            OcrMode::Auto => false,
            OcrMode::On => true,
        };
        let program = command.map_or(OcrProgram::Tesseract { is_required, languages }, OcrProgram::Command);
        let environment = source.passed_on(&["PATH", "HOME", "TESSDATA_PREFIX", "OMP_THREAD_LIMIT"]);
        let hidden = own_files(source, data_dir)?;
        Ok(Some(Self { program, timeout, environment, hidden, network, memory_bytes }))
    }
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

/// `eng+deu`: names of tesseract's models.
fn ocr_languages(text: &str) -> ParseResult<Vec<String>> {
    let is_name = |name: &str| {
        (2..=40).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/".contains(&byte))
    };
    let names: Vec<&str> = text.trim().split('+').collect();
    if names.len() <= 10 && names.iter().all(|name| is_name(name)) {
        Ok(names.into_iter().map(str::to_owned).collect())
    } else {
        Err("must be names of tesseract's languages such as eng+deu, at most ten".to_owned())
    }
}

fn switch(text: &str) -> ParseResult<bool> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be `on` or `off`".to_owned()),
    }
}
