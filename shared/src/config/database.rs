//! Where the relational store is.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

use super::ConfigError;

/// Where the store is.
#[derive(Clone, Debug)]
pub enum DatabaseLocation {
    /// A `postgres://` URL, which may hold a password.
    Postgres(SecretString),
    /// A SQLite file, made when it is missing.
    Sqlite(PathBuf),
}

impl DatabaseLocation {
    /// Reads `postgres://…`; the message never repeats the value, which holds a password.
    pub(super) fn read(url: SecretString) -> Result<Self, ConfigError> {
        let text = url.expose_secret();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Ok(Self::Postgres(url))
        } else {
            let problem =
                "must begin with postgres://; leave it unset for SQLite in the data directory".to_owned();
            Err(ConfigError { setting: "DATABASE_URL".to_owned(), problem })
        }
    }
}
