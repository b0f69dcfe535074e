//! Settings of the spans that are sent to a collector, under the names that OpenTelemetry gives them.

use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{ConfigError, SettingsSource, parse::ParseResult};

/// Where spans are sent.
#[derive(Clone, Debug)]
pub struct TracingSettings {
    /// The collector's address for traces; nothing is sent without one.
    pub endpoint: Option<Url>,
    /// Headers that it asks for.
    pub headers: Vec<(String, SecretString)>,
    /// What the service is called.
    pub service_name: Option<String>,
    /// Share of the traces that is sent, 0 to 1.
    pub ratio: f64,
}

impl TracingSettings {
    pub(super) fn load(source: &SettingsSource) -> Result<Self, ConfigError> {
        const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
        let headers = source.secret(HEADERS)?.map(|text| headers(text.expose_secret())).transpose();
        let headers = headers
            .map_err(|problem| ConfigError { setting: HEADERS.to_owned(), problem: problem.to_owned() })?;
        Ok(Self {
            endpoint: source.optional("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)?,
            headers: headers.unwrap_or_default(),
            service_name: source.get("OTEL_SERVICE_NAME")?,
            ratio: source.parse("OTEL_TRACES_SAMPLER_ARG", "1", ratio)?,
        })
    }
}

/// The address for traces of a collector at a base address.
fn endpoint(text: &str) -> ParseResult<Url> {
    let hint = || "is no address of a collector, such as http://collector:4318".to_owned();
    let mut url = Url::parse(text).map_err(|_| hint())?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return Err(hint());
    }
    let path = format!("{}/v1/traces", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn ratio(text: &str) -> ParseResult<f64> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

/// Nothing of the text is in the problem: it holds a secret.
fn headers(text: &str) -> Result<Vec<(String, SecretString)>, &'static str> {
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=').ok_or("must be name=value, separated by commas")?;
        let name = name.trim();
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        {
            return Err("has a name that no header can have");
        }
        Ok((name.to_owned(), SecretString::from(value.trim())))
    };
    text.split(',').filter(|pair| !pair.trim().is_empty()).map(header).collect()
}
