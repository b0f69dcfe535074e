//! Settings of the embedding model.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use url::Url;

use super::{
    ConfigError, SettingsSource,
    parse::{self, ParseResult, choice, number},
};
use crate::model::{language::Language, text_enum};

text_enum! {
    /// Where vectors come from.
    EmbedderKind {
        /// The local model when it can be had, else nowhere.
        Auto => "auto",
        /// A model in this process.
        Local => "local",
        /// A server that speaks OpenAI's protocol.
        OpenAiCompatible => "openai-compatible",
        /// Nowhere: search by words only.
        None => "none",
    }
}

text_enum! {
    /// How exactly a local model computes.
    EmbeddingPrecision {
        /// In whole numbers of eight bits, where the processor is faster with them and the model stands it; else as `F32`.
        Auto => "auto",
        /// As it is published.
        F32 => "f32",
        /// In whole numbers of eight bits, whatever they do to the model.
        Int8 => "int8",
    }
}

/// The local model when none is named: small, quick, for English.
pub const DEFAULT_MODEL: &str = "sentence-transformers/all-MiniLM-L6-v2";

/// Where local models come from, and where they are kept.
#[derive(Clone, Debug)]
pub struct ModelHubSettings {
    /// Where they are downloaded from.
    pub address: Url,
    /// Opens models that are not for everybody.
    pub token: Option<SecretString>,
    /// Whether the hub is asked for nothing.
    pub offline: bool,
    /// Where downloaded models are kept.
    pub cache: PathBuf,
    /// Where a process keeps the token embeddings of a model that it has open, in an unnamed file: the data directory.
    pub scratch_dir: PathBuf,
}

impl ModelHubSettings {
    /// Reads the settings of the hub.
    ///
    /// # Errors
    /// The first one that is wrong.
    pub(super) fn load(source: &SettingsSource, data_dir: &Path) -> Result<Self, ConfigError> {
        Ok(Self {
            address: source.parse("LECTERN_MODEL_HUB", "https://huggingface.co", server)?,
            token: source.key("HF_TOKEN")?,
            offline: source.parse("HF_HUB_OFFLINE", "0", offline)?,
            cache: source
                .get("LECTERN_MODEL_CACHE")?
                .map_or_else(|| data_dir.join("models"), |path| PathBuf::from(path.trim())),
            scratch_dir: data_dir.to_owned(),
        })
    }
}

/// Where vectors come from, and how they are made.
#[derive(Clone, Debug)]
pub struct EmbeddingSettings {
    /// The kind of model.
    pub kind: EmbedderKind,
    /// Its name: `owner/name` or `owner/name@revision` on the hub, or what the server calls it.
    pub model: String,
    /// The folder of a local model's files; the cache, then the hub, when none.
    pub model_dir: Option<PathBuf>,
    /// Where local models come from.
    pub hub: ModelHubSettings,
    /// The server's address, such as `https://api.openai.com/v1`.
    pub url: Option<Url>,
    /// The server's key.
    pub api_key: Option<SecretString>,
    /// Numbers in a vector of the server's; as many as it gives when none.
    pub dimensions: Option<usize>,
    /// The most tokens of a text that the server is sent.
    pub max_tokens: usize,
    /// The languages that the model knows; what its vocabulary tells, or all of a server's, when none.
    pub languages: Option<Vec<Language>>,
    /// Texts that this process embeds at once.
    pub threads: usize,
    /// How exactly a local model computes.
    pub precision: EmbeddingPrecision,
}

impl EmbeddingSettings {
    /// Reads the settings of the embedding model.
    ///
    /// # Errors
    /// The first one that is wrong, or missing.
    pub(super) fn load(source: &SettingsSource, data_dir: &Path, cores: usize) -> Result<Self, ConfigError> {
        let kind = source.parse("LECTERN_EMBEDDER", "auto", choice)?;
        let url = source.optional("LECTERN_EMBEDDING_URL", server)?;
        let model = source.get("LECTERN_EMBEDDING_MODEL")?.map(|name| name.trim().to_owned());
        if kind == EmbedderKind::OpenAiCompatible {
            let missing = |setting: &str, problem: &str| ConfigError {
                setting: setting.to_owned(),
                problem: format!("{problem} when LECTERN_EMBEDDER is openai-compatible"),
            };
            if url.is_none() {
                let problem = "must be set to the server's address, such as https://api.openai.com/v1,";
                return Err(missing("LECTERN_EMBEDDING_URL", problem));
            }
            if model.is_none() {
                let problem = "must be set to the model's name, such as text-embedding-3-small,";
                return Err(missing("LECTERN_EMBEDDING_MODEL", problem));
            }
        }
        let model_dir = source.get("LECTERN_EMBEDDING_MODEL_DIR")?.map(|path| PathBuf::from(path.trim()));
        Ok(Self {
            kind,
            model: local_name(model, model_dir.as_deref(), DEFAULT_MODEL),
            model_dir,
            hub: ModelHubSettings::load(source, data_dir)?,
            url,
            api_key: source.key("LECTERN_EMBEDDING_API_KEY")?,
            dimensions: source.optional("LECTERN_EMBEDDING_DIMENSIONS", number(1, 65_536))?,
            max_tokens: source.parse("LECTERN_EMBEDDING_MAX_TOKENS", "8191", number(64, 1_000_000))?,
            languages: source.optional("LECTERN_EMBEDDING_LANGUAGES", languages)?,
            threads: source.parse("LECTERN_EMBEDDING_THREADS", &cores.to_string(), number(1, 1_024))?,
            precision: source.parse("LECTERN_EMBEDDING_PRECISION", "auto", choice)?,
        })
    }
}

/// What a model is called: as it is set, else as its folder, because whatever is in a folder is not the default model.
pub(super) fn local_name(set: Option<String>, folder: Option<&Path>, default: &str) -> String {
    let folder = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    set.filter(|name| !name.is_empty()).or(folder).unwrap_or_else(|| default.to_owned())
}

pub(super) fn server(text: &str) -> ParseResult<Url> {
    let url = parse::http_url(text)?;
    if url.query().is_some() || url.fragment().is_some() || parse::has_user(&url) {
        return Err("must be an address without a query, a fragment, a user name or a password".to_owned());
    }
    Ok(url)
}

/// `1` or `0`, or the words for them that the hub's own tools take.
fn offline(text: &str) -> ParseResult<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Ok(true),
        "0" | "off" | "no" | "false" => Ok(false),
        _ => Err("must be `1` or `0`".to_owned()),
    }
}

/// `en,de`, or `all`.
pub(super) fn languages(text: &str) -> ParseResult<Vec<Language>> {
    if text == "all" {
        return Ok(Language::ALL.to_vec());
    }
    text.split(',')
        .map(|code| Language::from_iso(code.trim()))
        .collect::<Option<Vec<_>>>()
        .filter(|languages| !languages.is_empty())
        .ok_or_else(|| "must be all, or codes of languages such as en,de,zh".to_owned())
}
