//! Values of settings.

use std::{fmt::Display, path::PathBuf, str::FromStr, time::Duration};

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};

use super::ConfigError;
use crate::db::Location;

/// A value, or what would have been right.
pub(super) type Parsed<T> = Result<T, String>;

/// `5s`, `15m`, `30d`.
pub(super) fn duration(text: &str) -> Parsed<Duration> {
    humantime::parse_duration(text).map_err(|_| "must be a duration such as 5s, 15m or 30d".to_owned())
}

/// `512MiB`, in bytes.
pub(super) fn size(text: &str) -> Parsed<u64> {
    text.parse::<bytesize::ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| "must be a size such as 512MiB".to_owned())
}

/// A whole number between two bounds, both included.
pub(super) fn number<T: FromStr + PartialOrd + Display + Copy>(min: T, max: T) -> impl Fn(&str) -> Parsed<T> {
    move |text| {
        text.parse()
            .ok()
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| format!("must be a whole number between {min} and {max}"))
    }
}

/// What another parser accepts, if it is not below `min`.
pub(super) fn at_least<T: PartialOrd + std::fmt::Debug>(
    min: T,
    parse: impl Fn(&str) -> Parsed<T>,
) -> impl Fn(&str) -> Parsed<T> {
    move |text| {
        let value = parse(text)?;
        if value < min { Err(format!("must be at least {min:?}")) } else { Ok(value) }
    }
}

/// One word of an enum.
pub(super) fn choice<T: FromStr + Choices>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("must be one of {}", T::choices()))
}

/// The words that a setting takes.
pub(super) trait Choices {
    fn choices() -> String;
}

macro_rules! choices {
    ($($name:ty),*) => {$(
        impl Choices for $name {
            fn choices() -> String {
                <$name>::choices()
            }
        }
    )*};
}
choices!(super::SignUp, super::EmbedderKind, super::LogFormat);

/// Networks, separated by commas; an address alone is a network of one.
pub(super) fn cidrs(text: &str) -> Parsed<Vec<IpNet>> {
    crate::egress::parse_allow_list(text)
}

/// `provider/model`.
pub(super) fn default_llm(text: &str) -> Parsed<(String, String)> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
            Ok((provider.to_owned(), model.to_owned()))
        }
        _ => Err("must be written provider/model".to_owned()),
    }
}

/// `file://` and an absolute path.
pub(super) fn folder_url(text: &str) -> Parsed<PathBuf> {
    url::Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "file")
        .and_then(|url| url.to_file_path().ok())
        .ok_or_else(|| "must be file:// and an absolute path".to_owned())
}

/// `postgres://…`; the message never repeats the value, which holds a password.
pub(super) fn database(url: SecretString) -> Result<Location, ConfigError> {
    let text = url.expose_secret();
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        Ok(Location::Postgres(url))
    } else {
        let problem =
            "must begin with postgres://; leave it unset for SQLite in the data directory".to_owned();
        Err(ConfigError { setting: "DATABASE_URL".to_owned(), problem })
    }
}

/// A secret must not be shorter than `min` bytes.
pub(super) fn secret_length(
    name: &str,
    secret: Option<&SecretString>,
    min: usize,
) -> Result<(), ConfigError> {
    match secret {
        Some(secret) if secret.expose_secret().len() < min => {
            Err(ConfigError { setting: name.to_owned(), problem: format!("must have at least {min} bytes") })
        }
        Some(_) | None => Ok(()),
    }
}
