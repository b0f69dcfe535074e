//! What a stored tool says of itself.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use super::ToolError;

/// The longest time for a call, unless the configuration says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest that it may say.
const LONGEST: f64 = 120.0;

/// A failure, in a sentence for the model.
pub(super) fn failed(sentence: &str) -> ToolError {
    ToolError::Failed(sentence.to_owned())
}

/// A tool's configuration, secrets included. It was checked when it was stored; what is not as it should be counts as
/// absent.
pub(super) struct ToolConfiguration<'a>(pub(super) &'a Map<String, Value>);

impl ToolConfiguration<'_> {
    /// A text that is not blank.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// A whole number of at least 1, as a number or as digits.
    pub(super) fn count(&self, name: &str) -> Option<usize> {
        let value = self.0.get(name)?;
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
        usize::try_from(number).ok().filter(|number| *number > 0)
    }

    /// An address.
    pub(super) fn url(&self, name: &str) -> Option<Url> {
        self.text(name)?.parse().ok()
    }

    /// The configured host, or else the vendor's own.
    pub(super) fn base(&self, vendor: &str) -> Result<Url, ToolError> {
        match self.url("base_url") {
            Some(base) => Ok(base),
            None => vendor.parse().map_err(|_| failed("The address of this tool cannot be used.")),
        }
    }

    /// A key, as the value of a header, behind `scheme`.
    pub(super) fn key(&self, name: &str, scheme: &str) -> Result<HeaderValue, ToolError> {
        let key = self.text(name).ok_or_else(|| ToolError::Failed(format!("This tool has no `{name}`.")))?;
        let mut value = HeaderValue::from_str(&format!("{scheme}{key}")).map_err(|_| {
            ToolError::Failed(format!("The `{name}` of this tool cannot be sent in a header."))
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The headers that go with every request.
    pub(super) fn headers(&self) -> HeaderMap {
        let configured = self.0.get("headers").and_then(Value::as_object).into_iter().flatten();
        let pairs = configured.filter_map(|(name, value)| {
            let mut value = HeaderValue::from_str(value.as_str()?).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        });
        pairs.collect()
    }

    /// A list of texts.
    pub(super) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let listed = self.0.get(name)?.as_array()?;
        Some(listed.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// How long a call may take.
    pub(super) fn timeout(&self) -> Duration {
        let seconds = self.0.get("timeout").and_then(Value::as_f64);
        seconds.map_or(TIMEOUT, |seconds| {
            Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST)).unwrap_or(TIMEOUT)
        })
    }
}
