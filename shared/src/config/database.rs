//! Where the relational store is.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use url::Url;

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
        let problem = if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            "must begin with postgres://; leave it unset for SQLite in the data directory"
        } else if Url::parse(text).is_err() {
            "must be an address such as postgres://user:password@host:5432/database; in a password, `/`, `?`, `#`, `@`, `:` and `%` are written %2F, %3F, %23, %40, %3A and %25"
        } else {
            return Ok(Self::Postgres(url));
        };
        Err(ConfigError { setting: "DATABASE_URL".to_owned(), problem: problem.to_owned() })
    }
}
