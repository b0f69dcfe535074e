//! `lectern-load table`: starts the service, measures it, and prints the table of docs/performance.md.

mod args;
mod database;
mod figure;
mod machine;
mod measure;
mod model;
mod service;

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tokio::process::Command;

use self::{
    args::ServiceModes,
    database::RunDatabases,
    figure::{TableColumn, TableFigure, between_markers, markdown},
    measure::{CLIENTS, PAGES, ServiceBench},
    model::MockModelServer,
    service::{RunningService, ServiceSetup},
};
use crate::{
    api::{ApiClient, RequestProblem},
    out::{note, say},
    stats::LatencyHistogram,
    stop,
};

pub(crate) use args::TableArgs;

/// A service is left alone for so long before its memory is read.
const IDLE: Duration = Duration::from_secs(10);

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    /// Arguments that do not fit together.
    #[error("{0}")]
    Arguments(&'static str),
    /// A program of the service.
    #[error("{name} {what}; its log is {}", log.display())]
    Process {
        /// Which one.
        name: String,
        /// What it did.
        what: String,
        /// What it wrote, or the folder of all logs.
        log: PathBuf,
    },
    /// There is no such program.
    #[error("--programs: {} cannot be read: {error}", path.display())]
    Program {
        /// Where it should be.
        path: PathBuf,
        /// Why it is not.
        error: io::Error,
    },
    /// The embedding model.
    #[error("the model of --model-dir is not open: {0}")]
    Model(String),
    /// A wrong answer, or none.
    #[error("the service answered badly: {0}")]
    Answer(#[from] RequestProblem),
    /// The PostgreSQL server.
    #[error("PostgreSQL: {0}")]
    Database(#[from] sqlx::Error),
    /// Files, and standard output.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Somebody asked for it.
    #[error("stopped before the end")]
    Stopped,
}

/// Measures what the arguments say, and prints the table.
pub(crate) async fn run(args: TableArgs) -> Result<(), TableError> {
    let cluster = args.mode != ServiceModes::Embedded;
    if cluster && (args.database_url.is_none() || args.redis_url.is_none()) {
        return Err(TableError::Arguments("a cluster needs --database-url and --redis-url"));
    }
    if args.documents < 50 || args.requests == 0 || args.starts == 0 || args.small == 0 || args.pdfs == 0 {
        return Err(TableError::Arguments("--documents must be 50 at least, the other numbers 1"));
    }
    let requested = stop::requested()?;
    let folder = tempfile::Builder::new().prefix("lectern-load-").tempdir()?;
    let databases = args.database_url.as_ref().map(RunDatabases::on);
    let measured = tokio::select! {
        measured = measure(&args, folder.path(), databases.as_ref()) => measured,
        () = stop::wait(requested, 1) => Err(TableError::Stopped),
    };
    if let Some(databases) = &databases
        && let Err(error) = databases.drop_all().await
    {
        note(&format!("a database was left behind: {error}"));
    }
    match measured {
        Ok(table) => {
            say(table.trim_end())?;
            args.output.as_deref().map_or(Ok(()), |file| write_table(file, &table))
        }
        Err(error) => {
            if matches!(error, TableError::Process { .. } | TableError::Answer(_) | TableError::Model(_)) {
                note(&format!("the data and the logs are in {}", folder.keep().display()));
            }
            Err(error)
        }
    }
}

fn write_table(file: &Path, table: &str) -> Result<(), TableError> {
    let there = match fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let text = there.and_then(|there| between_markers(&there, table));
    Ok(fs::write(file, text.as_deref().unwrap_or(table))?)
}

async fn measure(
    args: &TableArgs,
    folder: &Path,
    databases: Option<&RunDatabases>,
) -> Result<String, TableError> {
    let mut columns = Vec::new();
    if args.mode != ServiceModes::Cluster {
        columns.push(ModeRun { args, folder, databases: None }.column("embedded", &["lectern"]).await?);
    }
    if args.mode != ServiceModes::Embedded {
        let programs = ["lectern-api", "lectern-worker"];
        columns.push(ModeRun { args, folder, databases }.column("cluster", &programs).await?);
    }
    let now = humantime::format_rfc3339_seconds(now()).to_string();
    let mut facts = vec![
        machine::facts(),
        format!("{}, measured {}", version(args).await?, now.get(..10).unwrap_or(&now)),
    ];
    if let Some(databases) = databases {
        facts.push(format!("Cluster: {}, Redis; index in {}", databases.describe().await?, index(args)));
    }
    facts.push(format!("`{}`", command_line(std::env::args().skip(1))));
    Ok(markdown(&columns, &facts))
}

fn now() -> SystemTime {
    #[expect(clippy::disallowed_methods, reason = "the date of a measurement, which nothing goes by")]
    SystemTime::now()
}

fn index(args: &TableArgs) -> &'static str {
    if args.qdrant_url.is_some() { "Qdrant" } else { "PostgreSQL" }
}

async fn version(args: &TableArgs) -> Result<String, TableError> {
    let program =
        args.programs.join(if args.mode == ServiceModes::Cluster { "lectern-api" } else { "lectern" });
    let output = Command::new(program).arg("--version").output().await?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// How this program was started.
fn command_line(arguments: impl Iterator<Item = String>) -> String {
    let shown = arguments.map(|argument| {
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
            _ => (String::new(), argument.as_str()),
        };
        // Addresses may hold passwords, and paths say nothing to others.
        let value = match (value.split_once("://"), value.rsplit_once('/')) {
            (Some((scheme, _)), _) => format!("{scheme}://…"),
            (None, Some((folder, name))) if folder.is_empty() || folder.starts_with('/') => {
                format!("…/{name}")
            }
            _ => value.to_owned(),
        };
        format!("{option}{value}")
    });
    format!("lectern-load {}", shown.collect::<Vec<_>>().join(" "))
}

/// The measurements of one mode.
struct ModeRun<'a> {
    args: &'a TableArgs,
    folder: &'a Path,
    /// The server of a cluster's databases.
    databases: Option<&'a RunDatabases>,
}

impl ModeRun<'_> {
    async fn column(&self, title: &'static str, programs: &[&str]) -> Result<TableColumn, TableError> {
        let mut column = TableColumn::new(title);
        // They run in a folder of their own, where a relative path would mean something else.
        let folder = fs::canonicalize(&self.args.programs)
            .map_err(|error| TableError::Program { path: self.args.programs.clone(), error })?;
        let paths: Vec<PathBuf> = programs.iter().map(|program| folder.join(program)).collect();
        let mut sizes = Vec::new();
        for path in &paths {
            let size = fs::metadata(path);
            let size = size.map_err(|error| TableError::Program { path: path.clone(), error })?;
            sizes.push((name_of(path), size.len()));
        }
        column.add(TableFigure::Size, megabytes(&sizes));
        self.starts(&paths, &mut column).await?;
        self.without_model(&paths, &mut column).await?;
        if let Some(model) = &self.args.model_dir {
            let model = fs::canonicalize(model)?;
            self.with_model(&paths, &model, &mut column).await?;
        }
        Ok(column)
    }

    /// A service with nothing in it.
    async fn fresh(&self, programs: &[PathBuf]) -> Result<ServiceSetup, TableError> {
        // It goes with the folder that it is in, unless somebody has to look at it.
        let folder = tempfile::Builder::new().prefix("service-").tempdir_in(self.folder)?.keep();
        let mut setup = ServiceSetup { programs: programs.to_vec(), folder, env: Vec::new() }
            .with("LECTERN_RATE_LIMIT", "off")
            .with("LECTERN_SIGN_UP", "open")
            .with("LECTERN_EGRESS_ALLOW", "127.0.0.1/32");
        if let (Some(databases), Some(redis)) = (self.databases, &self.args.redis_url) {
            setup = setup
                .with("DATABASE_URL", databases.fresh().await?.as_str())
                .with("REDIS_URL", redis.as_str())
                .with("LECTERN_SECRET_KEY", "a key for nothing but measurements");
            if let Some(qdrant) = &self.args.qdrant_url {
                setup = setup.with("QDRANT_URL", qdrant.as_str());
            }
        }
        Ok(setup)
    }

    async fn starts(&self, programs: &[PathBuf], column: &mut TableColumn) -> Result<(), TableError> {
        note(&format!("{}: starting and stopping", column.title));
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for _ in 0..self.args.starts {
            let setup = self.fresh(programs).await?;
            let setup = setup.with("LECTERN_EMBEDDER", "none");
            for times in [&mut first, &mut again] {
                let (service, time) = setup.start().await?;
                times.push(time);
                service.stop().await?;
            }
        }
        column.add(TableFigure::StartEmpty, format!("{} ms", median(&mut first).as_millis()));
        column.add(TableFigure::StartExisting, format!("{} ms", median(&mut again).as_millis()));
        Ok(())
    }

    async fn without_model(&self, programs: &[PathBuf], column: &mut TableColumn) -> Result<(), TableError> {
        let setup = self.fresh(programs).await?;
        let (service, _) = setup.with("LECTERN_EMBEDDER", "none").start().await?;
        column.add(TableFigure::Idle, idle(&service).await);
        let requests = self.args.requests;
        note(&format!("{}: requests", column.title));
        let mut bench = ServiceBench::new(service.api()?).await?;
        column.add(TableFigure::Client, format!("{:.1} ms", bench.client(requests).await?.at(0.5)));
        column.add(TableFigure::PostAlone, both(&bench.post(requests / 2, true).await?, 0.0));
        column.add(TableFigure::PostBusy, both(&bench.post(requests / 2, false).await?, 0.0));
        bench.fill(self.args.documents).await?;
        column.add(TableFigure::List, both(&bench.list(requests).await?, 0.0));
        column.add(TableFigure::SearchLexical, both(&bench.search(requests, "lexical").await?, 0.0));
        self.predict(&bench, column).await?;
        column.notes.push(format!(
            "{requests} requests of each kind (half as many of each POST); lists, searches and predicts over {} documents",
            bench.documents()
        ));
        note(&format!("{}: ingestion", column.title));
        column.add(TableFigure::IngestLexical, documents(bench.ingest(self.args.small).await?));
        let pages = bench.ingest_pdfs(self.args.pdfs).await?;
        column.add(TableFigure::Pdf, format!("{pages:.0} pages/s"));
        column.notes.push(format!(
            "{} small documents and {} PDFs of {PAGES} pages, by {CLIENTS} clients; afterwards it holds {}",
            self.args.small,
            self.args.pdfs,
            megabytes(&service.resident())
        ));
        service.stop().await
    }

    async fn predict(&self, bench: &ServiceBench, column: &mut TableColumn) -> Result<(), TableError> {
        let model = MockModelServer::start().await?;
        let agent = bench.agent(model.base_url.as_str()).await?;
        let bare = bench.model(&ApiClient::new(&model.base_url)?, self.args.requests).await?;
        let whole = bench.predict(&agent, self.args.requests).await?;
        column.add(TableFigure::Predict, both(&whole, bare.at(0.5)));
        column.notes.push(format!(
            "a predict takes {}, and the model alone {}, of which the median is taken off",
            both(&whole, 0.0),
            both(&bare, 0.0)
        ));
        Ok(())
    }

    async fn with_model(
        &self,
        programs: &[PathBuf],
        model: &Path,
        column: &mut TableColumn,
    ) -> Result<(), TableError> {
        note(&format!("{}: with the model", column.title));
        let setup = self.fresh(programs).await?;
        let setup = setup.with("LECTERN_EMBEDDER", "local").with("LECTERN_EMBEDDING_MODEL_DIR", model);
        let (service, _) = setup.start().await?;
        service.until_model_is_open().await?;
        column.add(TableFigure::IdleWithModel, idle(&service).await);
        let mut bench = ServiceBench::new(service.api()?).await?;
        column.add(TableFigure::IngestDense, documents(bench.ingest(self.args.documents).await?));
        column.add(TableFigure::SearchHybrid, both(&bench.search(self.args.requests, "hybrid").await?, 0.0));
        service.stop().await
    }
}

/// What the processes hold when nobody asks anything.
async fn idle(service: &RunningService) -> String {
    note("waiting until it is idle");
    tokio::time::sleep(IDLE).await;
    megabytes(&service.resident())
}

/// The median and the 95th percentile, both less `off` milliseconds.
fn both(latency: &LatencyHistogram, off: f64) -> String {
    let less = |share| (latency.at(share) - off).max(0.0);
    format!("{:.1} / {:.1} ms", less(0.5), less(0.95))
}

fn documents(rate: f64) -> String {
    format!("{rate:.0} documents/s")
}

/// Each process or program with its size, in millions of bytes.
fn megabytes(sizes: &[(String, u64)]) -> String {
    let mut text = String::new();
    for (name, bytes) in sizes {
        if !text.is_empty() {
            text.push_str(", ");
        }
        #[expect(clippy::cast_precision_loss, reason = "it is rounded to a tenth of a million")]
        let millions = *bytes as f64 / 1e6;
        if sizes.len() > 1 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{} ", name.trim_start_matches("lectern-"));
        }
        let _ = write!(text, "{millions:.1} MB");
    }
    text
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The one in the middle; zero of none.
fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let millis = |numbers: &[u64]| numbers.iter().map(|&n| Duration::from_millis(n)).collect::<Vec<_>>();
        assert_eq!(median(&mut millis(&[9, 1, 5])), Duration::from_millis(5));
        assert_eq!(median(&mut []), Duration::ZERO);
    }

    #[test]
    fn what_the_model_takes_is_taken_off_and_nothing_becomes_negative() {
        let mut latency = LatencyHistogram::new();
        (0..100).for_each(|_| latency.add(Duration::from_millis(10)));
        assert_eq!(both(&latency, 4.0), "6.0 / 6.0 ms");
        assert_eq!(both(&latency, 40.0), "0.0 / 0.0 ms");
    }

    #[test]
    fn the_command_shows_no_address_and_no_place_of_the_machine() {
        let arguments =
            ["table", "--database-url", "postgres://ada:secret@db/x", "--redis-url=redis://:secret@db"];
        let paths = ["--programs", "target/release", "--model-dir", "/srv/models/mini"];
        let shown = command_line(arguments.into_iter().chain(paths).map(str::to_owned));
        assert_eq!(
            shown,
            "lectern-load table --database-url postgres://… --redis-url=redis://… --programs target/release --model-dir …/mini"
        );
    }

    #[test]
    fn sizes_of_several_processes_are_told_apart() {
        let one = ("lectern".to_owned(), 52_340_000);
        let other = ("lectern-worker".to_owned(), 1_000_000);
        assert_eq!(megabytes(std::slice::from_ref(&one)), "52.3 MB");
        assert_eq!(megabytes(&[one, other]), "lectern 52.3 MB, worker 1.0 MB");
    }

    #[test]
    fn a_table_goes_between_the_markers_of_a_file_or_is_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("table.md");
        write_table(&file, "| a |\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "| a |\n");
        fs::write(&file, "# T\n<!-- table -->\n<!-- /table -->\n").unwrap();
        write_table(&file, "| b |\n").unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains("-->\n\n| b |\n\n<!--"));
    }
}
