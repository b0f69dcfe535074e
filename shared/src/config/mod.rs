//! Settings. Read once at the start, from the environment and an optional TOML file, the environment winning; a wrong value
//! stops the start with a message that names it. Nothing else in the program reads the environment.

mod command;
mod cors;
mod database;
mod embedding;
mod evaluation;
mod jobs;
mod limits;
mod mcp;
mod ocr;
mod oidc;
mod parse;
mod predict;
mod qdrant;
pub mod rate;
mod rerank;
mod source;
mod sync;
#[cfg(test)]
mod tests;
mod tracing;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use secrecy::SecretString;
use url::Url;

use crate::{address, blobs::BlobLocation, model::text_enum, secrets::MIN_SECRET_BYTES};
pub use cors::CorsOrigins;
pub use database::DatabaseLocation;
pub use embedding::{DEFAULT_MODEL, EmbedderKind, EmbeddingPrecision, EmbeddingSettings, ModelHubSettings};
pub use evaluation::EvaluationSettings;
pub use jobs::JobSettings;
pub use limits::ServiceLimits;
pub use mcp::McpProgram;
pub use ocr::{OcrProgram, OcrSettings};
pub use oidc::{OidcRoleMap, OidcSettings, PasswordPolicy};
pub use parse::http_url;
use parse::{ParseResult, at_least, choice, cidrs, default_llm, duration, number, size};
pub use predict::{PredictSettings, TokenPrice};
pub use qdrant::QdrantConfig;
use rate::RequestRate;
pub use rerank::{DEFAULT_RERANK_MODEL, RerankSettings, RerankerKind};
pub use source::SettingsSource;
pub use sync::SyncSettings;
pub use tracing::TracingSettings;

/// A setting that keeps the service from starting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct ConfigError {
    /// The setting's name, or the file's.
    pub setting: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

text_enum! {
    /// Who may sign up.
    SignUp {
        /// Anyone.
        Open => "open",
        /// Nobody.
        Closed => "closed",
        /// The first account only.
        First => "first",
    }
}

text_enum! {
    /// What reads PDFs.
    #[derive(Default)]
    PdfEngineChoice {
        /// The built-in engines, unless a pdfium library is named.
        #[default]
        Auto => "auto",
        /// The pdfium library, wherever it is.
        Pdfium => "pdfium",
    }
}

text_enum! {
    /// Whether text on images is recognised.
    OcrMode {
        /// When there is something to recognise it with.
        Auto => "auto",
        /// In any case: without it the service does not start.
        On => "on",
        /// Never.
        Off => "off",
    }
}

text_enum! {
    /// How log lines look.
    LogFormat {
        /// For people.
        Text => "text",
        /// One JSON object a line.
        Json => "json",
    }
}

/// One setting as the documentation lists it.
#[derive(Debug, Clone, Copy)]
pub struct SettingSpec {
    /// Its name.
    pub name: &'static str,
    /// Its value when unset, in words.
    pub default: &'static str,
    /// What it decides.
    pub meaning: &'static str,
    /// Holds a secret, and so may also be given as a file by `NAME_FILE`.
    pub secret: bool,
}

macro_rules! settings {
    ($($name:literal, $default:literal, $meaning:literal $(, $secret:ident)?;)*) => {
        &[$(SettingSpec { name: $name, default: $default, meaning: $meaning, secret: settings!(@ $($secret)?) },)*]
    };
    (@ secret) => { true };
    (@) => { false };
}

/// Every setting there is.
pub const SETTINGS: &[SettingSpec] = settings! {
    "LECTERN_ADDR", "127.0.0.1:8080", "where the API listens";
    "LECTERN_WORKER_ADDR", "none", "where `lectern-worker` answers `/health/live`, `/health/ready` and `/metrics`";
    "LECTERN_DATA_DIR", "./data", "embedded database, blobs, keys";
    "DATABASE_URL", "SQLite in the data directory", "or `postgres://…`", secret;
    "REDIS_URL", "none: the queue's doorbell is in the process", "or `redis://…`, `rediss://…`: the doorbell, rate limits and sign-in counters of several processes", secret;
    "QDRANT_URL", "none: the index is in the database", "or `http://host:6334`, Qdrant's gRPC address";
    "QDRANT_API_KEY", "none", "Qdrant's key", secret;
    "LECTERN_QDRANT_TIMEOUT", "10s", "time for one request to Qdrant";
    "LECTERN_BLOBS", "a folder in the data directory", "`file://` and an absolute path, or `s3://bucket/prefix`. A folder that several processes share has the files of all workspaces: make it for the service's account alone (`chmod 700`)";
    "AWS_ENDPOINT_URL", "Amazon's", "of an S3-compatible store: its address";
    "AWS_REGION", "us-east-1", "of the S3 bucket";
    "AWS_ACCESS_KEY_ID", "the instance's role", "of the S3 account";
    "AWS_SECRET_ACCESS_KEY", "the instance's role", "of the S3 account", secret;
    "AWS_SESSION_TOKEN", "none", "of a temporary S3 account", secret;
    "LECTERN_SECRET_KEY", "made in the data directory (mode 0600)", "any text of at least 32 bytes; what is encrypted at rest is encrypted under it", secret;
    "LECTERN_SECRET_KEY_PREVIOUS", "none", "the key before the last change; still reads what it encrypted", secret;
    "LECTERN_JWT_TTL", "30d", "how long a sign-in lasts";
    "LECTERN_SIGN_UP", "first", "who may sign up: `open`, `closed`, or `first` (the first account only)";
    "LECTERN_PASSWORDS", "on", "who may sign in with a password: `on` (everybody), `admins` (admins alone, and nobody signs up), or `off` (nobody: by OpenID Connect only)";
    "LECTERN_OIDC_ISSUER", "none", "the provider of sign-in by OpenID Connect, exactly as it names itself, such as `https://login.example.com/realms/main`; needs LECTERN_PUBLIC_URL";
    "LECTERN_OIDC_CLIENT_ID", "none", "what this service is called there; its redirect URI is LECTERN_PUBLIC_URL with `/api/v1/auth/oidc/callback` behind it";
    "LECTERN_OIDC_CLIENT_SECRET", "none: a public client", "its secret there", secret;
    "LECTERN_OIDC_SCOPES", "openid email profile", "what the provider is asked to tell";
    "LECTERN_OIDC_ROLE_CLAIM", "none", "the claim that lists somebody's groups, such as `groups` or `realm_access.roles`; like the next two, it is set with the others or not at all";
    "LECTERN_OIDC_ROLES", "none", "roles of groups, `group=role` separated by commas, with `*` for everybody: they are given, changed and taken away at each sign-in by the provider";
    "LECTERN_OIDC_WORKSPACE", "none", "the id of the workspace that these roles are for";
    "LECTERN_OIDC_NAME", "single sign-on", "what pages call the provider";
    "LECTERN_RATE_LIMIT", "200/s", "requests of one credential and of one address: `200/s`, `60/m`, `200/s burst 500` (without a burst, ten times the number) or `off`. Where it limits, eight of one address's requests begin at once, and of more that wait eight every 20 ms";
    "LECTERN_REFUSAL_RATE", "20/s", "requests of one address that are refused for a fault of theirs and answered at once; answers to further ones are held back, for two seconds at most. 64 KiB that were sent count as one request more. Written as LECTERN_RATE_LIMIT";
    "LECTERN_TRUSTED_PROXIES", "none", "networks (CIDR, separated by commas) of proxies whose `X-Forwarded-For` names the client that is limited; of theirs, `X-Forwarded-Host` and `X-Forwarded-Proto` count for the links of citations and invitations where LECTERN_PUBLIC_URL is not set";
    "LECTERN_PUBLIC_URL", "none: links begin as the request's own address did", "where browsers reach the service, such as `https://lectern.example.com`, or with a path behind it: invitations and citations link there";
    "LECTERN_CORS_ORIGINS", "none", "origins (separated by commas, such as `https://app.example.com`) whose pages browsers let call the API, or `*` for all";
    "LECTERN_CITATION_LINKS", "90d", "how long the link of a citation opens its passage";
    "LECTERN_TRACE_TTL", "30d", "how long traces are kept";
    "LECTERN_INDEX_CACHE", "512MiB", "memory of the embedded index; a quarter of it at most, with Qdrant too, for the lists of searchable documents and their metadata";
    "LECTERN_INDEX_SPILL", "4GiB", "disk of the embedded index, in unnamed files in the data directory: what is searched and does not fit into LECTERN_INDEX_CACHE is kept there, and nothing is added that would leave less than 1 GiB free; `0` keeps nothing, and reads it from the database for each search";
    "LECTERN_INDEX_GRACE", "30s", "superseded and abandoned generations go after it";
    "LECTERN_EMBEDDER", "auto", "where vectors come from: `local` (a model in the process), `openai-compatible` (a server), `none` (search by words only), or `auto`: `local`, and by words only until the model is there";
    "LECTERN_EMBEDDING_MODEL", "sentence-transformers/all-MiniLM-L6-v2", "the model: `owner/name` or `owner/name@revision` on the hub, or what the server calls it";
    "LECTERN_EMBEDDING_MODEL_DIR", "none: the cache, then the hub", "the folder of a local model's files, instead of a download";
    "LECTERN_EMBEDDING_URL", "none", "the server of `openai-compatible`, such as `https://api.openai.com/v1`";
    "LECTERN_EMBEDDING_API_KEY", "none", "that server's key", secret;
    "LECTERN_EMBEDDING_DIMENSIONS", "what the server gives", "numbers in a vector that the server is asked for";
    "LECTERN_EMBEDDING_MAX_TOKENS", "8191", "the most tokens of a text that the server is sent; a local model knows its own limit";
    "LECTERN_EMBEDDING_LANGUAGES", "what a local model's vocabulary tells; all, of a server's", "languages that the model knows, such as `en,de`, or `all`: questions in others are found by words";
    "LECTERN_EMBEDDING_THREADS", "the number of cores", "texts that a local model embeds at once";
    "LECTERN_EMBEDDING_PRECISION", "auto", "how exactly a local model computes: `f32` as it is published; `int8` in whole numbers of eight bits, more than twice as fast in a third of the memory; `auto` is `int8` where the processor is faster with it and the model, asked at the start, finds nearly the same vectors, else `f32`";
    "LECTERN_RERANKER", "none", "what puts passages that were found into a better order, where searches and agents ask for it: `local` (a cross-encoder in the process), `server` (one with a `/rerank`, as Jina's, Cohere's and vLLM's have), or `none`";
    "LECTERN_RERANK_MODEL", "cross-encoder/ms-marco-MiniLM-L6-v2", "the cross-encoder: `owner/name` or `owner/name@revision` on the hub, or what the server calls it";
    "LECTERN_RERANK_MODEL_DIR", "none: the cache, then the hub", "the folder of a local cross-encoder's files, instead of a download";
    "LECTERN_RERANK_URL", "none", "the server of `server`, up to `/rerank`, such as `https://api.jina.ai/v1`";
    "LECTERN_RERANK_API_KEY", "none", "that server's key", secret;
    "LECTERN_RERANK_LANGUAGES", "what a local model's vocabulary tells; all, of a server's", "languages that the reranker knows, such as `en,de`, or `all`: passages in others keep their places";
    "LECTERN_RERANK_CANDIDATES", "30", "the best passages of a search that are put into a better order";
    "LECTERN_RERANK_BUDGET", "1s", "the longest that a search is held up by it; passages that are not reached in it keep their places";
    "LECTERN_RERANK_THREADS", "the number of cores", "passages that a local cross-encoder reads at once";
    "LECTERN_MODEL_HUB", "https://huggingface.co", "where local models are downloaded from";
    "LECTERN_MODEL_CACHE", "`models` in the data directory", "where downloaded models are kept";
    "HF_HUB_OFFLINE", "0", "`1`: nothing is asked of the hub; a model has to be in the cache, or in LECTERN_EMBEDDING_MODEL_DIR";
    "HF_TOKEN", "none", "opens models of the hub that are not for everybody", secret;
    "LECTERN_DEFAULT_LLM", "extractive/extractive", "for agents created without `llm`: `provider/model`, of any provider but `openai-compatible`, which needs an address of the agent's own";
    "LECTERN_WORKER_CONCURRENCY", "the number of cores, and 8 at least", "documents ingested at once; most of the time they wait for servers";
    "LECTERN_PARSERS", "the number of cores, and LECTERN_WORKER_CONCURRENCY at most", "of these documents, those that are parsed, cut or embedded by a local model at the same time; each parser has LECTERN_PARSER_MEMORY";
    "LECTERN_JOB_TIMEOUT", "15m", "a job that makes no progress for so long is given up";
    "LECTERN_JOB_MAX_ATTEMPTS", "5", "attempts before a document is FAILED";
    "LECTERN_JOB_LEASE", "60s", "a worker that is silent for so long loses its job";
    "LECTERN_EGRESS_ALLOW", "none", "networks (CIDR, separated by commas) that user-steered requests may reach besides public ones";
    "LECTERN_MCP_SERVERS", "none", "programs that tools of the type `MCP` may use as their `server`: `name=command` with its arguments, separated by `;`, such as `files=/usr/bin/mcp-files --root '/srv/my files'; clock=mcp-clock`; they run without a shell, as the service's own account, for all users alike";
    "LECTERN_VIDEO_SITE", "https://www.youtube.com", "the site that captions of `VIDEO` documents come from";
    "LECTERN_VIDEO_CLIENT", "built in", "what the video site is told that its player is, `NAME/VERSION` such as `ANDROID/20.10.38`, when it refuses the built-in ones";
    "LECTERN_VIDEO_PROXY", "none", "`http://…` or `https://…` proxy for requests to the video site, as `http://user:password@host:port` when it asks for a password", secret;
    "LECTERN_SOURCE_FOLDERS", "none", "folders (absolute paths, separated by commas) that sources of the type `folder` may read, with all below them but what the service keeps there, and hidden files unless they are named: for whoever may edit documents in any workspace";
    "LECTERN_SOURCE_RUNS", "8", "runs of sources at once in a worker, at most half of them of one workspace, or of sources that one account has made; most of their time they wait, so as not to burden a site";
    "LECTERN_SOURCE_PAUSE", "1s", "the least time between two requests of sources to one host; a site's robots.txt may ask for more";
    "LECTERN_SOURCE_ITEMS", "20000", "documents of one source, at most";
    "LECTERN_EVALUATION_RUNS", "2", "runs of evaluations at once in an API, each of another workspace and for another account";
    "LECTERN_EVALUATION_PARALLEL", "4", "cases of a run that are worked on at once, and so questions that its agent is asked at once";
    "LECTERN_EVALUATION_RESULTS", "200000", "results of cases that are kept of a workspace, of a few KiB each; those of its earliest runs go first, and their numbers stay";
    "LECTERN_TOKEN", "none", "the API token with which `lectern eval` asks a running service", secret;
    "LECTERN_MAX_BODY", "2MiB", "largest JSON body";
    "LECTERN_BODY_MEMORY", "64MiB", "memory of an API for JSON bodies that are just arriving, an eighth of it for sign-ins and sign-ups; beyond it those that are slowest or from where the most comes get a 503";
    "LECTERN_MAX_CONNECTIONS", "256", "connections of one address to an API, of IPv6 of one network of 64 bits; further ones are closed. Trusted proxies have as many as they like";
    "LECTERN_MAX_SOURCE", "100MiB", "largest source fetched";
    "LECTERN_MAX_STORAGE", "none", "what one workspace may store: files, texts, and the passages made of them, such as `10GiB`";
    "LECTERN_MAX_UPLOADS", "32", "files that an API takes at once, at most half of them of one workspace; further uploads wait 20 s for their turn, then get a 503";
    "LECTERN_MAX_PAGES", "5000", "pages ingested of one document, at most";
    "LECTERN_MAX_CHARACTERS", "20000000", "characters ingested of one document, at most";
    "LECTERN_MAX_PASSAGES", "100000", "passages that one document is cut into, at most";
    "LECTERN_FETCH_TIMEOUT", "2m", "time to fetch a document's source, all its addresses together";
    "LECTERN_PARSER_MEMORY", "2GiB", "address space of the process that parses a file, and of tesseract, which needs 300MiB of it";
    "LECTERN_PARSER_TIMEOUT", "30s", "a parser that works for so long without a word is stopped; one that does not get to work, on a machine with too much to do, after twice as long";
    "LECTERN_PROCESSOR_TIME", "10m", "processor time that one document may take for parsing and cutting, at most";
    "LECTERN_PDF_ENGINE", "auto", "what reads PDFs: `auto` is the built-in engine, unless LECTERN_PDFIUM_LIB is set; `pdfium`";
    "LECTERN_PDFIUM_LIB", "with LECTERN_PDF_ENGINE=pdfium: beside the program, then where the system has its libraries", "the pdfium library, or its folder; PDFs are read with it when this is set";
    "LECTERN_PAGE_IMAGE_TIMEOUT", "20s", "time to draw a page of a PDF, for whoever looks at it";
    "LECTERN_PAGE_IMAGES_PARALLEL", "2", "pages that are drawn at once, each in a process with LECTERN_PARSER_MEMORY; one workspace has half of them at most, and one at least";
    "LECTERN_PAGE_IMAGE_CACHE", "64MiB", "memory for images of pages, so that they are not drawn again";
    "LECTERN_OCR", "auto", "whether the text of scanned pages is recognised: `auto` when tesseract is on the PATH, or a command is set; `on` must find it; `off`";
    "LECTERN_OCR_LANGUAGES", "eng", "the languages that tesseract reads, by the names of its models: `eng+deu`, the most likely first; a document's `metadata.language` comes before them";
    "LECTERN_OCR_COMMAND", "none: tesseract", "a command that recognises text instead of tesseract: it is run for each page that is an image, without a shell, gets a PNG by standard input or as the file that `{input}` stands for (`/opt/read {input}`), and writes the text to standard output";
    "LECTERN_OCR_NETWORK", "off", "`on` lets that command use the network, if it asks a server for the text; what the service keeps is hidden from it in any case";
    "LECTERN_OCR_TIMEOUT", "60s", "time to recognise one page";
    "LECTERN_MAX_SECONDS", "120s", "time for one predict; like the next three, agents may lower it for themselves";
    "LECTERN_MAX_STEPS", "15", "requests to the model in one predict";
    "LECTERN_MAX_TOKENS", "none", "tokens, read and written by the model, of one predict";
    "LECTERN_MAX_COST", "none", "what the model's tokens of one predict may cost, in the currency of LECTERN_PRICES; a model without a price costs nothing";
    "LECTERN_PRICES", "none", "what models cost, for a million tokens read and written: `provider/model=0.40:1.60`, separated by commas";
    "LECTERN_IMAGE_HOSTS", "none", "hosts (separated by commas, such as `images.example.com`) whose images answers may show, besides those that the question or the agent's prompt names";
    "OLLAMA_HOST", "none", "where the models of agents with the provider `ollama` run, such as `127.0.0.1:11434`; without it such agents need a `base_url`";
    "AZURE_OPENAI_ENDPOINT", "none", "the Azure resource, such as `https://my-resource.openai.azure.com`, of agents with the provider `azure-openai` that have no `base_url`; `AZURE_OPENAI_API_KEY` is its key";
    "LECTERN_LOG", "info", "which log lines are written: `error`, `warn`, `info`, `debug`, or a filter such as `lectern=debug,sqlx=warn`";
    "LECTERN_LOG_FORMAT", "text", "`text` or `json`";
    "LECTERN_METRICS_TOKEN", "none: whoever reaches the address reads them", "what `/metrics` asks for as `Authorization: Bearer …`", secret;
    "OTEL_EXPORTER_OTLP_ENDPOINT", "none: no traces", "where spans are sent by OTLP over HTTP, such as `http://collector:4318`";
    "OTEL_EXPORTER_OTLP_HEADERS", "none", "headers that the collector asks for: `name=value`, separated by commas", secret;
    "OTEL_SERVICE_NAME", "the program's name", "what the spans' service is called";
    "OTEL_TRACES_SAMPLER_ARG", "1", "share of the traces that is sent, 0 to 1; a caller's `traceparent` decides for its own";
};

/// How the captions of videos are got.
#[derive(Clone, Debug)]
pub struct VideoSettings {
    /// The site: a scheme and a host.
    pub site: Url,
    /// Name and version of the player that the site is asked as first; one of those built in when none.
    pub client: Option<(String, String)>,
    /// The operator's proxy for that site: an `http://` or `https://` URL.
    pub proxy: Option<SecretString>,
}

/// How pages of documents are drawn.
#[derive(Clone, Copy, Debug)]
pub struct PageImageSettings {
    /// The longest that drawing one may take.
    pub timeout: Duration,
    /// Pages that are drawn at once, each in a process of its own.
    pub parallel: usize,
    /// Memory for images that were drawn, in bytes.
    pub cache: u64,
}

/// How PDFs are read.
#[derive(Clone, Debug, Default)]
pub struct PdfSettings {
    /// What reads.
    pub engine: PdfEngineChoice,
    /// The pdfium library, or the folder that it is in.
    pub pdfium: Option<PathBuf>,
    /// What recognises text on pages that are images; none when nothing may.
    pub ocr: Option<OcrSettings>,
}

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the API listens.
    pub addr: SocketAddr,
    /// Where the embedded parts keep their files.
    pub data_dir: PathBuf,
    /// Where the worker answers questions about its health, when it runs by itself.
    pub worker_addr: Option<SocketAddr>,
    /// The relational store.
    pub database: DatabaseLocation,
    /// Redis: the doorbell and the counters of several processes.
    pub redis: Option<SecretString>,
    /// Qdrant; the embedded index when none.
    pub qdrant: Option<QdrantConfig>,
    /// Where blobs are.
    pub blobs: BlobLocation,
    /// The secret that encrypts; made in the data directory when unset.
    pub secret_key: Option<SecretString>,
    /// The secret before it.
    pub secret_key_previous: Option<SecretString>,
    /// How long a sign-in lasts.
    pub jwt_ttl: Duration,
    /// Who may sign up.
    pub sign_up: SignUp,
    /// Who may use passwords.
    pub passwords: PasswordPolicy,
    /// Sign-in by OpenID Connect.
    pub oidc: Option<OidcSettings>,
    /// How many requests one caller may send.
    pub rate_limit: Option<RequestRate>,
    /// How many refused requests of one address are answered at once.
    pub refusal_rate: Option<RequestRate>,
    /// Networks of proxies that are believed from whom they have a request.
    pub trusted_proxies: Vec<IpNet>,
    /// Where browsers reach the service.
    pub public_url: Option<Url>,
    /// Whose pages browsers let call the API.
    pub cors_origins: CorsOrigins,
    /// How long the link of a citation opens.
    pub citation_links: Duration,
    /// How pages of documents are drawn.
    pub page_images: PageImageSettings,
    /// How long traces are kept.
    pub trace_ttl: Duration,
    /// Memory of the embedded index and of the lists of what can be searched, in bytes.
    pub index_cache: u64,
    /// The most bytes on the disk of the embedded index's blocks that are not in memory; 0 for none.
    pub index_spill: u64,
    /// How long a superseded generation stays.
    pub index_grace: Duration,
    /// Where vectors come from.
    pub embedding: EmbeddingSettings,
    /// The reranker.
    pub rerank: RerankSettings,
    /// Provider and model of agents created without.
    pub default_llm: (String, String),
    /// Jobs.
    pub jobs: JobSettings,
    /// Private networks that user-steered requests may reach.
    pub egress_allow: Vec<IpNet>,
    /// The programs that tools may use as servers of the Model Context Protocol.
    pub mcp_servers: Vec<McpProgram>,
    /// Sources that documents are kept in step with.
    pub sync: SyncSettings,
    /// How evaluations are run.
    pub evaluation: EvaluationSettings,
    /// The API token with which commands ask a running service.
    pub token: Option<SecretString>,
    /// Captions of videos.
    pub video: VideoSettings,
    /// Sizes and times.
    pub limits: ServiceLimits,
    /// PDFs.
    pub pdf: PdfSettings,
    /// What one predict may take, and what models cost.
    pub predict: PredictSettings,
    /// What `/metrics` asks for.
    pub metrics_token: Option<SecretString>,
    /// Where spans are sent.
    pub tracing: TracingSettings,
    /// Which log lines are written.
    pub log: String,
    /// How they look.
    pub log_format: LogFormat,
    /// Keys of the model providers, by the providers' own usual names.
    pub provider_keys: std::collections::BTreeMap<String, SecretString>,
}

impl Settings {
    /// Reads every setting, and checks it.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub fn load(source: &SettingsSource) -> Result<Self, ConfigError> {
        let data_dir = PathBuf::from(source.get("LECTERN_DATA_DIR")?.unwrap_or_else(|| "./data".to_owned()));
        let database = match source.secret("DATABASE_URL")? {
            None => DatabaseLocation::Sqlite(data_dir.join("lectern.db")),
            Some(url) => DatabaseLocation::read(url)?,
        };
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let secret_key = source.secret("LECTERN_SECRET_KEY")?;
        let secret_key_previous = source.secret("LECTERN_SECRET_KEY_PREVIOUS")?;
        for (name, key) in
            [("LECTERN_SECRET_KEY", &secret_key), ("LECTERN_SECRET_KEY_PREVIOUS", &secret_key_previous)]
        {
            parse::secret_length(name, key.as_ref(), MIN_SECRET_BYTES)?;
        }
        let limits = ServiceLimits::load(source)?;
        let ocr = OcrSettings::load(source, &data_dir, limits.parser_memory)?;
        let public_url = source.optional("LECTERN_PUBLIC_URL", parse::public_url)?;
        let oidc = OidcSettings::load(source, public_url.as_ref())?;
        Ok(Self {
            addr: source.parse("LECTERN_ADDR", "127.0.0.1:8080", parse::address)?,
            worker_addr: source.optional("LECTERN_WORKER_ADDR", parse::address)?,
            database,
            redis: source.secret("REDIS_URL")?.map(parse::redis).transpose()?,
            qdrant: parse::qdrant(source)?,
            blobs: parse::blobs(source, &data_dir)?,
            embedding: EmbeddingSettings::load(source, &data_dir, cores)?,
            rerank: RerankSettings::load(source, &data_dir, cores)?,
            sync: SyncSettings::load(source, &data_dir)?,
            data_dir,
            secret_key,
            secret_key_previous,
            jwt_ttl: source.parse("LECTERN_JWT_TTL", "30d", at_least(Duration::from_mins(1), duration))?,
            sign_up: source.parse("LECTERN_SIGN_UP", "first", choice)?,
            passwords: PasswordPolicy::load(source, oidc.is_some())?,
            oidc,
            rate_limit: source.parse("LECTERN_RATE_LIMIT", "200/s", rate::parse_rate)?,
            refusal_rate: source.parse("LECTERN_REFUSAL_RATE", "20/s", rate::parse_rate)?,
            trusted_proxies: source.parse("LECTERN_TRUSTED_PROXIES", "", cidrs)?,
            public_url,
            cors_origins: source.parse("LECTERN_CORS_ORIGINS", "", cors::origins)?,
            citation_links: source.parse(
                "LECTERN_CITATION_LINKS",
                "90d",
                at_least(Duration::from_mins(1), duration),
            )?,
            page_images: PageImageSettings {
                timeout: source.parse(
                    "LECTERN_PAGE_IMAGE_TIMEOUT",
                    "20s",
                    at_least(Duration::from_secs(1), duration),
                )?,
                parallel: source.parse("LECTERN_PAGE_IMAGES_PARALLEL", "2", number(1, 64))?,
                cache: source.parse("LECTERN_PAGE_IMAGE_CACHE", "64MiB", size)?,
            },
            trace_ttl: source.parse("LECTERN_TRACE_TTL", "30d", duration)?,
            index_cache: source.parse("LECTERN_INDEX_CACHE", "512MiB", at_least(1 << 20, size))?,
            index_spill: source.parse("LECTERN_INDEX_SPILL", "4GiB", size)?,
            index_grace: source.parse("LECTERN_INDEX_GRACE", "30s", duration)?,
            default_llm: source.parse("LECTERN_DEFAULT_LLM", "extractive/extractive", default_llm)?,
            jobs: JobSettings::load(source, cores)?,
            egress_allow: source.parse("LECTERN_EGRESS_ALLOW", "", cidrs)?,
            mcp_servers: mcp::programs(source)?,
            evaluation: EvaluationSettings::load(source)?,
            token: source.secret("LECTERN_TOKEN")?,
            video: VideoSettings {
                site: source.parse("LECTERN_VIDEO_SITE", "https://www.youtube.com", parse::site)?,
                client: source.optional("LECTERN_VIDEO_CLIENT", parse::video_client)?,
                proxy: source.secret("LECTERN_VIDEO_PROXY")?.map(parse::proxy).transpose()?,
            },
            limits,
            pdf: PdfSettings {
                engine: source.parse("LECTERN_PDF_ENGINE", "auto", parse::choice)?,
                pdfium: source.get("LECTERN_PDFIUM_LIB")?.map(|path| PathBuf::from(path.trim())),
                ocr,
            },
            predict: PredictSettings::load(source)?,
            metrics_token: source.secret("LECTERN_METRICS_TOKEN")?,
            tracing: TracingSettings::load(source)?,
            log: source.parse("LECTERN_LOG", "info", parse::log_filter)?,
            log_format: source.parse("LECTERN_LOG_FORMAT", "text", choice)?,
            provider_keys: source.provider_keys()?,
        })
    }
}

impl SettingsSource {
    fn optional<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> ParseResult<T>,
    ) -> Result<Option<T>, ConfigError> {
        self.get(name)?.map(|_| self.parse(name, "", parse)).transpose()
    }

    fn parse<T>(
        &self,
        name: &str,
        default: &str,
        parse: impl Fn(&str) -> ParseResult<T>,
    ) -> Result<T, ConfigError> {
        let text = self.get(name)?.unwrap_or_else(|| default.to_owned());
        parse(text.trim()).map_err(|problem| {
            let shown = address::shown_text(&text).map(|text| format!(" (it is {text:?})"));
            ConfigError { setting: name.to_owned(), problem: problem + &shown.unwrap_or_default() }
        })
    }
}
