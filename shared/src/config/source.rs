//! Where settings come from.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use secrecy::SecretString;

use super::{ConfigError, SETTINGS};

/// The environment, and what a file adds to it.
#[derive(Clone, Default)]
pub struct SettingsSource {
    environment: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    path: Option<PathBuf>,
    /// The settings that were looked at. Which those are depends on the others: nobody asks for the time that Qdrant may take where
    /// there is no Qdrant.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl std::fmt::Debug for SettingsSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("file", &self.file.keys()).finish_non_exhaustive()
    }
}

impl SettingsSource {
    /// The process's environment.
    ///
    /// # Errors
    /// When the value of a setting is no Unicode text.
    pub fn environment() -> Result<Self, ConfigError> {
        let mut environment = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            // A name that is no Unicode text can be none of ours.
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => {
                    environment.insert(name, value);
                }
                Err(_) if is_setting(&name) => {
                    return Err(ConfigError {
                        setting: name,
                        problem: "is not valid Unicode text".to_owned(),
                    });
                }
                Err(_) => {}
            }
        }
        Ok(Self { environment, ..Self::default() })
    }

    /// The given names and values instead of an environment.
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        let environment =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { environment, ..Self::default() }
    }

    /// Adds a TOML file of `NAME = value` lines. A name that is no setting is refused: a misspelt one would otherwise be
    /// a setting that silently does nothing.
    pub fn with_file(mut self, path: &Path) -> Result<Self, ConfigError> {
        let refuse = |problem: String| ConfigError { setting: path.display().to_string(), problem };
        let text =
            std::fs::read_to_string(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let table: toml::Table = toml::from_str(&text).map_err(|error| refuse(in_line(&text, &error)))?;
        for (name, value) in table {
            if !is_setting(&name) {
                return Err(refuse(format!("{name} is not a setting")));
            }
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(yes) => yes.to_string(),
                toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
                    return Err(refuse(format!("{name} must be a text or a number")));
                }
            };
            self.file.insert(name, value);
        }
        self.path = Some(path.to_owned());
        Ok(self)
    }

    /// Names in the environment that look like settings, and are none of this version's.
    pub fn unknown(&self) -> Vec<&str> {
        self.environment
            .keys()
            .map(String::as_str)
            .filter(|name| name.starts_with("LECTERN_") && !is_setting(name))
            .collect()
    }

    /// Settings that are set, and that nobody has asked for: beside the others they have no effect. To be called once everything is
    /// loaded. Those whose names are not the service's own may be set for another program.
    pub fn ineffective(&self) -> Vec<&str> {
        let asked = self.asked.lock();
        let is_asked =
            |name: &str| asked.contains(name) || asked.contains(name.strip_suffix("_FILE").unwrap_or(name));
        let set = self.environment.iter().chain(&self.file).filter(|(_, value)| !value.trim().is_empty());
        let names: BTreeSet<&str> = set.map(|(name, _)| name.as_str()).collect();
        let is_own = |name: &str| ["LECTERN_", "QDRANT_"].iter().any(|own| name.starts_with(own));
        names.into_iter().filter(|name| is_own(name) && is_setting(name) && !is_asked(name)).collect()
    }

    /// The value of a setting; an empty one counts as unset. The value of `NAME_FILE` is the name of a file to read it from,
    /// for secrets.
    pub(super) fn get(&self, name: &str) -> Result<Option<String>, ConfigError> {
        let secret =
            SETTINGS.iter().any(|setting| setting.name == name && setting.secret) || is_provider_key(name);
        self.asked.lock().insert(name.to_owned());
        let file_name = format!("{name}_FILE");
        for values in [&self.environment, &self.file] {
            let lookup = |name: &str| values.get(name).filter(|value| !value.trim().is_empty());
            match (lookup(name), lookup(&file_name).filter(|_| secret)) {
                (None, None) => {}
                (Some(value), None) => return Ok(Some(value.clone())),
                (Some(_), Some(_)) => {
                    let problem = "is set together with its _FILE variant; keep one".to_owned();
                    return Err(ConfigError { setting: name.to_owned(), problem });
                }
                (None, Some(path)) => {
                    let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
                        setting: file_name.clone(),
                        problem: format!("{path} cannot be read: {error}"),
                    })?;
                    return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
                }
            }
        }
        Ok(None)
    }

    pub(super) fn secret(&self, name: &str) -> Result<Option<SecretString>, ConfigError> {
        Ok(self.get(name)?.map(SecretString::from))
    }

    /// A secret that is sent in a header.
    pub(super) fn key(&self, name: &str) -> Result<Option<SecretString>, ConfigError> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        let key = text.trim();
        if key.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Ok(Some(SecretString::from(key)));
        }
        let problem = "must be one line of printable ASCII characters".to_owned();
        Err(ConfigError { setting: name.to_owned(), problem })
    }

    /// Names that are no settings of ours and their values in the environment, for another program.
    pub(super) fn passed_on(&self, names: &[&str]) -> Vec<(String, String)> {
        let value = |name: &&str| self.environment.get_key_value(*name);
        names.iter().filter_map(value).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The files that settings come from: the TOML file, and those that hold one secret each.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let named = [&self.environment, &self.file].into_iter().flatten();
        let named =
            named.filter(|(name, path)| name.ends_with("_FILE") && is_setting(name) && !path.is_empty());
        self.path.iter().cloned().chain(named.map(|(_, path)| PathBuf::from(path))).collect()
    }

    /// The providers' keys that are set, by their usual names.
    pub(super) fn provider_keys(&self) -> Result<BTreeMap<String, SecretString>, ConfigError> {
        let mut keys = BTreeMap::new();
        for name in PROVIDER_KEYS {
            if let Some(key) = self.key(name)? {
                keys.insert((*name).to_owned(), key);
            }
        }
        Ok(keys)
    }
}

const PROVIDER_KEYS: &[&str] = &[
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "COHERE_API_KEY",
    "AZURE_OPENAI_API_KEY",
];

/// What is wrong with a TOML file, and in which line. The line is not repeated: it may hold a secret.
fn in_line(text: &str, error: &toml::de::Error) -> String {
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, error.message()),
        None => error.message().to_owned(),
    }
}

fn is_provider_key(name: &str) -> bool {
    PROVIDER_KEYS.contains(&name)
}

fn is_setting(name: &str) -> bool {
    let known = |name: &str| SETTINGS.iter().find(|setting| setting.name == name);
    known(name).is_some()
        || is_provider_key(name)
        || name
            .strip_suffix("_FILE")
            .is_some_and(|base| known(base).is_some_and(|s| s.secret) || is_provider_key(base))
}
