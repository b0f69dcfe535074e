//! What one predict may take, and what models cost.

use std::{collections::BTreeMap, time::Duration};

use url::{Host, Url};

use super::{
    ConfigError, SettingsSource,
    parse::{ParseResult, at_least, duration, has_user, number, open_url},
};
use crate::address::quoted;

/// Longest time for one predict that can be set.
const LONGEST: Duration = Duration::from_hours(24);

/// What one predict may take, and what it costs.
#[derive(Clone, Debug)]
pub struct PredictSettings {
    /// Time.
    pub duration: Duration,
    /// Requests to the model.
    pub steps: u32,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// What the model's tokens may cost, in the currency of the prices.
    pub cost: Option<f64>,
    /// What models cost, by `provider/model`.
    pub prices: BTreeMap<String, TokenPrice>,
    /// Where models of `ollama` run, for agents that name no address.
    pub ollama: Option<Url>,
    /// The operator's resource of `azure-openai`, for agents that name none.
    pub azure: Option<Url>,
    /// Hosts whose images answers may show.
    pub image_hosts: Vec<String>,
}

/// What a model's tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TokenPrice {
    /// A million tokens that it reads.
    pub input: f64,
    /// A million tokens that it writes.
    pub output: f64,
}

impl TokenPrice {
    /// What so many tokens cost.
    #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 tokens")]
    pub fn of(self, input_tokens: u64, output_tokens: u64) -> f64 {
        (input_tokens as f64 * self.input + output_tokens as f64 * self.output) / 1e6
    }
}

impl PredictSettings {
    pub(super) fn load(source: &SettingsSource) -> Result<Self, ConfigError> {
        let prices = source.parse("LECTERN_PRICES", "", prices)?;
        // Without prices nothing costs anything: whoever limits that is told so.
        let cost = if prices.is_empty() { None } else { source.optional("LECTERN_MAX_COST", amount)? };
        Ok(Self {
            duration: source.parse("LECTERN_MAX_SECONDS", "120s", |text| {
                match at_least(Duration::from_secs(1), duration)(text)? {
                    time if time <= LONGEST => Ok(time),
                    _ => Err("must be at most 1d".to_owned()),
                }
            })?,
            steps: source.parse("LECTERN_MAX_STEPS", "15", number(1, 1_000))?,
            tokens: source.optional("LECTERN_MAX_TOKENS", number(1, u64::MAX))?,
            cost,
            prices,
            ollama: source.optional("OLLAMA_HOST", ollama)?,
            azure: source.optional("AZURE_OPENAI_ENDPOINT", open_url)?,
            image_hosts: source.parse("LECTERN_IMAGE_HOSTS", "", hosts)?,
        })
    }
}

/// Names of hosts, separated by commas, as browsers write them.
fn hosts(text: &str) -> ParseResult<Vec<String>> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| match Host::parse(name) {
            Ok(host) => Ok(host.to_string().trim_end_matches('.').to_owned()),
            Err(_) => Err(format!(
                "must be names such as images.example.com, separated by commas; {} is none",
                quoted(name)
            )),
        })
        .collect()
}

fn amount(text: &str) -> ParseResult<f64> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "must be an amount such as 0.05".to_owned())
}

/// `provider/model=input:output`, separated by commas or white space. Names of models have slashes, colons and equal signs of
/// their own, so that the numbers are looked for from behind.
fn prices(text: &str) -> ParseResult<BTreeMap<String, TokenPrice>> {
    let entries = text.split([',', ' ', '\t', '\n', '\r']).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (name, numbers) = entry.rsplit_once('=').filter(|(name, _)| {
                name.split_once('/').is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty())
            })?;
            let (input, output) = numbers.split_once(':')?;
            let price = TokenPrice { input: amount(input).ok()?, output: amount(output).ok()? };
            Some((name.to_owned(), price))
        })
        .map(|entry| {
            entry.ok_or_else(|| {
                "must list what a million tokens cost, read and written, as provider/model=0.40:1.60, separated by commas"
                    .to_owned()
            })
        })
        .collect()
}

/// As the program itself reads it: a host and a port, the scheme and the port being optional.
fn ollama(text: &str) -> ParseResult<Url> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let problem = || "must be an address such as 127.0.0.1:11434".to_owned();
    let mut url = Url::parse(&whole).map_err(|_| problem())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(problem());
    }
    if has_user(&url) {
        return Err("must hold no user name and no password".to_owned());
    }
    if url.port().is_none() && !text.contains("://") {
        url.set_port(Some(11_434)).map_err(|()| problem())?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_for_models_with_any_name() {
        let prices = prices("openai/gpt-4.1=2:8, openai-compatible/a/b:c=d=0.1:0.25\ngroq/x=0:0").unwrap();
        assert_eq!(prices["openai/gpt-4.1"], TokenPrice { input: 2.0, output: 8.0 });
        assert_eq!(prices["openai-compatible/a/b:c=d"], TokenPrice { input: 0.1, output: 0.25 });
        assert_eq!(prices.len(), 3);
        assert!((prices["openai/gpt-4.1"].of(1_000, 500) - 0.006).abs() < 1e-12);
    }

    #[test]
    fn hosts_of_images_are_kept_as_browsers_write_them() {
        assert_eq!(hosts(""), Ok(Vec::new()));
        let names = hosts("Images.Example.com., bücher.example,[::1]").unwrap();
        assert_eq!(names, ["images.example.com", "xn--bcher-kva.example", "[::1]"]);
        for wrong in ["https://a.example", "a.example/x", "a.example:80", "a b"] {
            assert!(hosts(wrong).unwrap_err().contains("images.example.com"), "{wrong}");
        }
    }

    #[test]
    fn a_price_that_is_none_is_refused() {
        for text in ["gpt=1:2", "a/b=1", "a/b=1:-2", "a/b=1:x", "/b=1:2", "a/b"] {
            assert!(prices(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_address_of_local_models_may_leave_out_what_is_usual() {
        for (text, url) in [
            ("127.0.0.1", "http://127.0.0.1:11434/"),
            ("box:8080", "http://box:8080/"),
            ("https://models.example", "https://models.example/"),
        ] {
            assert_eq!(ollama(text).unwrap().as_str(), url);
        }
        for wrong in ["ftp://box", "http://me:hunter2@box:11434", "me@box"] {
            assert!(ollama(wrong).is_err(), "{wrong}");
        }
    }
}
