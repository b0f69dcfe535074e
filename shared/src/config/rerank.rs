//! Settings of the reranker.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::SecretString;
use url::Url;

use super::{
    ConfigError, SettingsSource,
    embedding::{ModelHubSettings, languages, local_name, server},
    parse::{choice, duration, number},
};
use crate::model::{language::Language, text_enum};

text_enum! {
    /// What puts passages into a better order.
    RerankerKind {
        /// A cross-encoder in this process.
        Local => "local",
        /// A server with a `/rerank`, as Jina's, Cohere's and vLLM's have.
        Server => "server",
        /// Nothing.
        None => "none",
    }
}

/// The local cross-encoder when none is named: small, for English.
pub const DEFAULT_RERANK_MODEL: &str = "cross-encoder/ms-marco-MiniLM-L6-v2";

/// What puts passages into a better order, and what that may cost.
#[derive(Clone, Debug)]
pub struct RerankSettings {
    /// The kind of model.
    pub kind: RerankerKind,
    /// Its name: `owner/name` or `owner/name@revision` on the hub, or what the server calls it.
    pub model: String,
    /// The folder of a local model's files; the cache, then the hub, when none.
    pub model_dir: Option<PathBuf>,
    /// Where local models come from.
    pub hub: ModelHubSettings,
    /// The server's address, such as `https://api.jina.ai/v1`.
    pub url: Option<Url>,
    /// The server's key.
    pub api_key: Option<SecretString>,
    /// The languages that the model knows; what its vocabulary tells, or all of a server's, when none.
    pub languages: Option<Vec<Language>>,
    /// The best passages that are looked at.
    pub candidates: usize,
    /// The longest that a search is held up; passages that are not reached in it keep their places.
    pub budget: Duration,
    /// Pairs that this process scores at once.
    pub threads: usize,
}

impl RerankSettings {
    /// Reads the settings of the reranker.
    ///
    /// # Errors
    /// The first one that is wrong, or missing.
    pub(super) fn load(source: &SettingsSource, data_dir: &Path, cores: usize) -> Result<Self, ConfigError> {
        let kind = source.parse("LECTERN_RERANKER", "none", choice)?;
        let url = source.optional("LECTERN_RERANK_URL", server)?;
        if kind == RerankerKind::Server && url.is_none() {
            return Err(ConfigError {
                setting: "LECTERN_RERANK_URL".to_owned(),
                problem:
                    "must be set to the server's address, such as https://api.jina.ai/v1, when LECTERN_RERANKER is server"
                        .to_owned(),
            });
        }
        let model = source.get("LECTERN_RERANK_MODEL")?.map(|name| name.trim().to_owned());
        if kind == RerankerKind::Server && model.as_deref().is_none_or(str::is_empty) {
            return Err(ConfigError {
                setting: "LECTERN_RERANK_MODEL".to_owned(),
                problem: "must be set to what the server calls its model when LECTERN_RERANKER is server"
                    .to_owned(),
            });
        }
        let model_dir = source.get("LECTERN_RERANK_MODEL_DIR")?.map(|path| PathBuf::from(path.trim()));
        Ok(Self {
            kind,
            model: local_name(model, model_dir.as_deref(), DEFAULT_RERANK_MODEL),
            model_dir,
            hub: ModelHubSettings::load(source, data_dir)?,
            url,
            api_key: source.key("LECTERN_RERANK_API_KEY")?,
            languages: source.optional("LECTERN_RERANK_LANGUAGES", languages)?,
            candidates: source.parse("LECTERN_RERANK_CANDIDATES", "30", number(1, 200))?,
            budget: source.parse("LECTERN_RERANK_BUDGET", "1s", duration)?,
            threads: source.parse("LECTERN_RERANK_THREADS", &cores.to_string(), number(1, 1_024))?,
        })
    }
}
