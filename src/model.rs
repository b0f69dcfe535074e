//! `lectern model`: models of the hub, in the cache of this machine. Needs no running service, and minds none.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write as _},
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::Subcommand;
use futures::TryStreamExt as _;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use lectern_embed::{
    CachedModel, Embedder, LocalEmbedder, LocalReranker, ModelHub, ModelId, PullProgress, Reranker,
};
use lectern_runtime::process::FatalError;
use lectern_shared::{
    config::{EmbedderKind, EmbeddingSettings, ModelHubSettings, RerankSettings, RerankerKind, Settings},
    model::space::EmbeddingSpace,
};

/// Characters of a commit that tell it from others.
const SHORT_COMMIT: usize = 12;
/// Without a terminal, a line is written for each part of a hundred.
const PERCENT_A_LINE: u64 = 10;

#[derive(Subcommand)]
pub(crate) enum ModelCommand {
    /// Download a model for embeddings, or a reranker, or see that it is there, and try it. What was begun earlier is gone on with.
    Pull {
        /// `owner/name` or `owner/name@revision` on the hub; the model that is set when none is named.
        model: Option<ModelId>,
        /// It is a reranker (a cross-encoder), not a model for embeddings.
        #[arg(long)]
        reranker: bool,
    },
    /// Show the models that are here.
    List,
}

pub(crate) async fn run(settings: &Settings, command: ModelCommand) -> Result<(), FatalError> {
    let ModelHubSettings { address, token, offline, cache, .. } = settings.embedding.hub.clone();
    let hub = ModelHub::new(address, token, cache)?.offline(offline);
    match command {
        ModelCommand::Pull { model, reranker } => {
            let purpose = if reranker {
                ModelPurpose::Rerank(&settings.rerank)
            } else {
                ModelPurpose::Embed(&settings.embedding)
            };
            let model = match model {
                Some(model) => model,
                None => purpose.set_model()?,
            };
            pull(purpose, &hub, &model).await
        }
        ModelCommand::List => list(&settings.embedding.hub, &hub),
    }
}

/// What a model is for.
#[derive(Clone, Copy)]
enum ModelPurpose<'a> {
    Embed(&'a EmbeddingSettings),
    Rerank(&'a RerankSettings),
}

impl ModelPurpose<'_> {
    /// The model that the settings name.
    fn set_model(self) -> Result<ModelId, FatalError> {
        let (name, setting) = match self {
            Self::Embed(settings) if settings.kind == EmbedderKind::OpenAiCompatible => {
                return Err(
                    "LECTERN_EMBEDDER is openai-compatible, whose model is its server's: name a model".into(),
                );
            }
            Self::Rerank(settings) if settings.kind == RerankerKind::Server => {
                return Err("LECTERN_RERANKER is server, whose model is its server's: name a model".into());
            }
            Self::Embed(settings) => (&settings.model, "LECTERN_EMBEDDING_MODEL"),
            Self::Rerank(settings) => (&settings.model, "LECTERN_RERANK_MODEL"),
        };
        Ok(name.parse().map_err(|error| match self.folder_instead() {
            // It is called after the folder then.
            Some(folder) => format!(
                "{folder} is set, and the service takes that folder's model: to download another, name it"
            ),
            None => format!("{setting}: {error}"),
        })?)
    }

    /// The setting of a folder that the service takes instead, when it is set.
    fn folder_instead(self) -> Option<&'static str> {
        match self {
            Self::Embed(settings) => settings.model_dir.as_ref().map(|_| "LECTERN_EMBEDDING_MODEL_DIR"),
            Self::Rerank(settings) => settings.model_dir.as_ref().map(|_| "LECTERN_RERANK_MODEL_DIR"),
        }
    }

    /// Opens the model and has it read a word.
    async fn prove(self, folder: &Path, model: &ModelId) -> Result<(), FatalError> {
        let (folder, name) = (folder.to_owned(), model.to_string());
        match self {
            Self::Embed(settings) => {
                let (threads, precision) = (settings.threads, settings.precision);
                let open = move || LocalEmbedder::open(&folder, &name, threads, precision, None);
                let embedder = tokio::task::spawn_blocking(open).await??;
                embedder.embed_question("lectern").await?;
                let EmbeddingSpace { dimensions, .. } = embedder.space();
                tracing::info!(%model, dimensions, "the model is here, and works");
            }
            Self::Rerank(settings) => {
                let threads = settings.threads;
                let open = move || LocalReranker::open(&folder, &name, threads, None);
                let reranker = tokio::task::spawn_blocking(open).await??;
                let word = || "lectern".to_owned();
                let scores = reranker.score(word(), vec![word()], Duration::MAX);
                scores.try_collect::<Vec<_>>().await?;
                tracing::info!(%model, "the reranker is here, and works");
            }
        }
        Ok(())
    }
}

async fn pull(purpose: ModelPurpose<'_>, hub: &ModelHub, model: &ModelId) -> Result<(), FatalError> {
    let display = PullDisplay::new();
    let report = |progress| display.show(progress);
    let pulled = tokio::select! {
        pulled = hub.pull(model, &report) => Some(pulled),
        _ = tokio::signal::ctrl_c() => None,
    };
    display.clear();
    let Some(pulled) = pulled else {
        return Err("stopped; the same command goes on where this one ended".into());
    };
    let folder = pulled?;
    purpose.prove(&folder, model).await?;
    if let Some(setting) = purpose.folder_instead() {
        tracing::warn!("{setting} is set: the service takes the model that is there");
    }
    writeln!(std::io::stdout(), "{}", folder.display())?;
    Ok(())
}

fn list(settings: &ModelHubSettings, hub: &ModelHub) -> Result<(), FatalError> {
    let models = hub.list()?;
    if models.is_empty() {
        tracing::info!(cache = %settings.cache.display(), "no model is here yet");
    }
    let mut out = String::new();
    for CachedModel { model, commit, bytes, folder } in models {
        let state = match commit {
            Some(commit) => {
                format!("{} {}", commit.get(..SHORT_COMMIT).unwrap_or(&commit), HumanBytes(bytes))
            }
            None => "not complete".to_owned(),
        };
        writeln!(out, "{model}\t{state}\t{}", folder.display())?;
    }
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(())
}

/// How far a pull is: a bar on a terminal, lines elsewhere.
struct PullDisplay {
    terminal: bool,
    bar: OnceLock<ProgressBar>,
    /// The part of a hundred of the last line.
    percent: AtomicU64,
}

impl PullDisplay {
    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), bar: OnceLock::new(), percent: AtomicU64::new(0) }
    }

    fn show(&self, PullProgress { file, bytes, total }: PullProgress) {
        if self.terminal {
            // What an earlier pull left is no sign of how fast this one is.
            let bar =
                self.bar.get_or_init(|| ProgressBar::new(total).with_style(style()).with_position(bytes));
            if bar.message() != file {
                bar.set_message(file);
            }
            bar.set_position(bytes);
            return;
        }
        let percent = bytes.saturating_mul(100) / total.max(1);
        let reached = percent - percent % PERCENT_A_LINE;
        if reached > self.percent.fetch_max(reached, Ordering::Relaxed) {
            tracing::info!(file, bytes, total, "{reached} % of the model is here");
        }
    }

    fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    let template = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    // The template is ours; if it were wrong, the plain bar would do.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
