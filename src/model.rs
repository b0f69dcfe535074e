//! `lectern model`: models of the hub, in the cache of this machine. Needs no running service, and minds none.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write as _},
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::Subcommand;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use lectern_embed::{CachedModel, Embedder, LocalEmbedder, ModelHub, ModelId, PullProgress};
use lectern_runtime::process::FatalError;
use lectern_shared::{
    config::{EmbedderKind, EmbeddingSettings},
    model::space::EmbeddingSpace,
};

/// Characters of a commit that tell it from others.
const SHORT_COMMIT: usize = 12;
/// Without a terminal, a line is written for each part of a hundred.
const PERCENT_A_LINE: u64 = 10;

#[derive(Subcommand)]
pub(crate) enum ModelCommand {
    /// Download a model for embeddings, or see that it is there, and try it. What was begun earlier is gone on with.
    Pull {
        /// `owner/name` or `owner/name@revision` on the hub; the model that is set when none is named.
        model: Option<ModelId>,
    },
    /// Show the models that are here.
    List,
}

pub(crate) async fn run(settings: &EmbeddingSettings, command: ModelCommand) -> Result<(), FatalError> {
    let hub = ModelHub::new(settings.hub.clone(), settings.hub_token.clone(), settings.cache.clone())?;
    let hub = hub.offline(settings.offline);
    match command {
        ModelCommand::Pull { model } => {
            let model = match model {
                Some(model) => model,
                None => set_model(settings)?,
            };
            pull(settings, &hub, &model).await
        }
        ModelCommand::List => list(settings, &hub),
    }
}

/// The model that the settings name.
fn set_model(settings: &EmbeddingSettings) -> Result<ModelId, FatalError> {
    if settings.kind == EmbedderKind::OpenAiCompatible {
        return Err("LECTERN_EMBEDDER is openai-compatible, whose model is its server's: name a model".into());
    }
    Ok(settings.model.parse().map_err(|error| format!("LECTERN_EMBEDDING_MODEL: {error}"))?)
}

async fn pull(settings: &EmbeddingSettings, hub: &ModelHub, model: &ModelId) -> Result<(), FatalError> {
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
    let EmbeddingSpace { dimensions, .. } = prove(settings, &folder, model).await?;
    tracing::info!(%model, dimensions, "the model is here, and works");
    if settings.model_dir.is_some() {
        tracing::warn!("LECTERN_EMBEDDING_MODEL_DIR is set: the service takes the model that is there");
    }
    writeln!(std::io::stdout(), "{}", folder.display())?;
    Ok(())
}

/// Opens the model and embeds a word with it.
async fn prove(
    settings: &EmbeddingSettings,
    folder: &Path,
    model: &ModelId,
) -> Result<EmbeddingSpace, FatalError> {
    let (folder, name, threads) = (folder.to_owned(), model.to_string(), settings.threads);
    let embedder =
        tokio::task::spawn_blocking(move || LocalEmbedder::open(&folder, &name, threads)).await??;
    embedder.embed_question("lectern").await?;
    Ok(embedder.space().clone())
}

fn list(settings: &EmbeddingSettings, hub: &ModelHub) -> Result<(), FatalError> {
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
