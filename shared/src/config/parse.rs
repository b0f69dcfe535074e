//! Values of settings.

use std::{
    fmt::Display,
    net::SocketAddr,
    path::{Component, Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::{ConfigError, OcrMode, SettingsSource};
use crate::{
    blobs::{BlobLocation, S3Location},
    config::QdrantConfig,
};

/// A value, or what would have been right.
pub(super) type ParseResult<T> = Result<T, String>;

/// `5s`, `15m`, `30d`.
pub(super) fn duration(text: &str) -> ParseResult<Duration> {
    humantime::parse_duration(text).map_err(|_| "must be a duration such as 5s, 15m or 30d".to_owned())
}

/// `512MiB`, in bytes.
pub(super) fn size(text: &str) -> ParseResult<u64> {
    text.parse::<bytesize::ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| "must be a size such as 512MiB".to_owned())
}

/// Folders by their absolute paths, separated by commas.
pub(super) fn folders(text: &str) -> ParseResult<Vec<PathBuf>> {
    let folder = |path: &str| {
        let path = Path::new(path);
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if path.is_absolute() && is_plain {
            Ok(path.to_owned())
        } else {
            Err("must be absolute paths such as /srv/documents, separated by commas".to_owned())
        }
    };
    text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(folder).collect()
}

/// A whole number between two bounds, both included.
pub(super) fn number<T: FromStr + PartialOrd + Display + Copy>(
    min: T,
    max: T,
) -> impl Fn(&str) -> ParseResult<T> {
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
    parse: impl Fn(&str) -> ParseResult<T>,
) -> impl Fn(&str) -> ParseResult<T> {
    move |text| {
        let value = parse(text)?;
        if value < min { Err(format!("must be at least {min:?}")) } else { Ok(value) }
    }
}

/// A value that must not be greater than `max`.
pub(super) fn at_most<T: PartialOrd + std::fmt::Debug>(
    max: T,
    parse: impl Fn(&str) -> ParseResult<T>,
) -> impl Fn(&str) -> ParseResult<T> {
    move |text| {
        let value = parse(text)?;
        if value > max { Err(format!("must be at most {max:?}")) } else { Ok(value) }
    }
}

/// One word of an enum.
pub(super) fn choice<T: FromStr + WordChoices>(text: &str) -> ParseResult<T> {
    text.parse().map_err(|_| format!("must be one of {}", T::choices()))
}

/// The words that a setting takes.
pub(super) trait WordChoices {
    fn choices() -> String;
}

macro_rules! choices {
    ($($name:ty),*) => {$(
        impl WordChoices for $name {
            fn choices() -> String {
                <$name>::choices()
            }
        }
    )*};
}
choices!(
    OcrMode,
    super::PdfEngineChoice,
    super::SignUp,
    super::EmbedderKind,
    super::EmbeddingPrecision,
    super::RerankerKind,
    super::LogFormat,
    super::PasswordPolicy
);

/// Networks, separated by commas; an address alone is a network of one.
pub(super) fn cidrs(text: &str) -> ParseResult<Vec<IpNet>> {
    crate::egress::parse_allow_list(text)
}

/// `provider/model`.
pub(super) fn default_llm(text: &str) -> ParseResult<(String, String)> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
            Ok((provider.to_owned(), model.to_owned()))
        }
        _ => Err("must be written provider/model".to_owned()),
    }
}

/// An address and a port.
pub(super) fn address(text: &str) -> ParseResult<SocketAddr> {
    text.parse().map_err(|_| "must be an address and a port, such as 127.0.0.1:8080".to_owned())
}

/// Where blobs are: `file://` and an absolute path, or `s3://bucket/prefix`; unset, a folder of the data directory.
pub(super) fn blobs(source: &SettingsSource, data_dir: &Path) -> Result<BlobLocation, ConfigError> {
    const NAME: &str = "LECTERN_BLOBS";
    let refuse = |setting: &str, problem: &str| ConfigError {
        setting: setting.to_owned(),
        problem: problem.to_owned(),
    };
    let Some(text) = source.get(NAME)? else { return Ok(BlobLocation::Folder(data_dir.join("blobs"))) };
    let wrong = || refuse(NAME, "must be file:// and an absolute path, or s3:// with a bucket and a prefix");
    let url = Url::parse(text.trim()).map_err(|_| wrong())?;
    match url.scheme() {
        "file" => Ok(BlobLocation::Folder(url.to_file_path().map_err(|()| wrong())?)),
        "s3" => {
            let endpoint = source.optional("AWS_ENDPOINT_URL", http_url)?;
            let access_key_id = source.get("AWS_ACCESS_KEY_ID")?;
            let secret_access_key = source.secret("AWS_SECRET_ACCESS_KEY")?;
            if access_key_id.is_some() != secret_access_key.is_some() {
                let missing =
                    if access_key_id.is_some() { "AWS_SECRET_ACCESS_KEY" } else { "AWS_ACCESS_KEY_ID" };
                return Err(refuse(missing, "must be set too: the key and its id belong together"));
            }
            Ok(BlobLocation::S3(S3Location {
                bucket: url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?.to_owned(),
                prefix: url.path().trim_matches('/').to_owned(),
                path_style: endpoint.is_some(),
                endpoint,
                region: source.get("AWS_REGION")?,
                access_key_id,
                secret_access_key,
                session_token: source.secret("AWS_SESSION_TOKEN")?,
            }))
        }
        _ => Err(wrong()),
    }
}

/// An `http://` or `https://` URL.
///
/// # Errors
/// What it must be, when it is something else.
pub fn http_url(text: &str) -> ParseResult<Url> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| "must begin with http:// or https://, and name a host".to_owned())
}

/// An `http://` or `https://` URL that names nobody: whoever is sent there has a key of its own.
pub(super) fn open_url(text: &str) -> ParseResult<Url> {
    let url = http_url(text)?;
    if has_user(&url) { Err("must hold no user name and no password".to_owned()) } else { Ok(url) }
}

/// Whether an address holds a user name or a password.
pub(super) fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The address of a whole site.
pub(super) fn site(text: &str) -> ParseResult<Url> {
    let url = http_url(text)?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if bare && !has_user(&url) {
        Ok(url)
    } else {
        Err("must be a scheme and a host such as https://www.example.com, with no path behind it".to_owned())
    }
}

/// Where browsers reach the service, perhaps below a path.
pub(super) fn public_url(text: &str) -> ParseResult<Url> {
    let url = http_url(text)?;
    let plain = url.query().is_none() && url.fragment().is_none();
    if plain && !has_user(&url) {
        Ok(url)
    } else {
        Err("must be an address such as https://lectern.example.com, with nothing behind its path".to_owned())
    }
}

/// `NAME/VERSION` of a player.
pub(super) fn video_client(text: &str) -> ParseResult<(String, String)> {
    // They become headers and parts of a JSON object.
    let is_word = |text: &str| {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    match text.split_once('/') {
        Some((name, version)) if is_word(name) && is_word(version) => {
            Ok((name.to_owned(), version.to_owned()))
        }
        _ => Err("must be written NAME/VERSION, such as ANDROID/20.10.38".to_owned()),
    }
}

/// Where the service keeps what nobody else may read: its folders, and the files that its settings come from.
pub(super) fn own_files(source: &SettingsSource, data_dir: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let mut own = vec![data_dir.to_owned()];
    if let BlobLocation::Folder(folder) = blobs(source, data_dir)? {
        own.push(folder);
    }
    own.extend(source.files());
    Ok(own)
}

/// A filter of log lines. One without any level is a level that is misspelt: it would be read as the name of what alone is logged.
pub(super) fn log_filter(text: &str) -> ParseResult<String> {
    const FORM: &str =
        "must be error, warn, info, debug, trace or off, or a filter such as lectern=debug,sqlx=warn";
    EnvFilter::try_new(text).map_err(|error| format!("{FORM} ({error})"))?;
    let has_level = |directive: &str| {
        let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level);
        level.trim().parse::<LevelFilter>().is_ok()
    };
    if text.split(',').any(has_level) { Ok(text.to_owned()) } else { Err(FORM.to_owned()) }
}

/// A proxy's address; the message never repeats the value, which may hold a password.
pub(super) fn proxy(url: SecretString) -> Result<SecretString, ConfigError> {
    match http_url(url.expose_secret().trim()) {
        Ok(_) => Ok(url),
        Err(problem) => Err(ConfigError { setting: "LECTERN_VIDEO_PROXY".to_owned(), problem }),
    }
}

/// Where Qdrant is, if it is used.
pub(super) fn qdrant(source: &SettingsSource) -> Result<Option<QdrantConfig>, ConfigError> {
    let Some(url) = source.optional("QDRANT_URL", http_url)? else { return Ok(None) };
    let timeout =
        source.parse("LECTERN_QDRANT_TIMEOUT", "10s", at_least(Duration::from_millis(100), duration))?;
    Ok(Some(QdrantConfig { url, api_key: source.key("QDRANT_API_KEY")?, timeout }))
}

/// `redis://…`; the message never repeats the value, which may hold a password.
pub(super) fn redis(url: SecretString) -> Result<SecretString, ConfigError> {
    if crate::redis::is_url(&url) {
        Ok(url)
    } else {
        let problem =
            "must be a URL such as redis://:password@host:6379/0, or the same with rediss://; what is behind the last / is a number"
                .to_owned();
        Err(ConfigError { setting: "REDIS_URL".to_owned(), problem })
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
