//! `lectern-load table`: starts the service, measures it, and prints the table of docs/performance.md.

mod args;
mod figure;
mod measure;
mod model;

use std::{path::Path, time::Duration};

use self::{
    figure::{TableColumn, TableFigure, markdown},
    measure::{PAGES, ServiceBench},
    model::MockModelServer,
};
use crate::{
    api::ApiClient,
    bench::{
        self, BenchError, BenchRun, CLIENTS, PageMarkers, RunningService, ServiceMode, both, median,
        megabytes, millis,
    },
    out::{note, say},
};

pub(crate) use args::TableArgs;

/// A service is left alone for so long before its memory is read.
const IDLE: Duration = Duration::from_secs(10);
/// Where the table stands in a page.
const MARKERS: PageMarkers = PageMarkers("table");

/// Measures what the arguments say, and prints the table.
pub(crate) async fn run(args: TableArgs) -> Result<(), BenchError> {
    args.check()?;
    let table = bench::bench(&args.service, async |run| measure(&args, run).await).await?;
    say(table.trim_end())?;
    args.output.as_deref().map_or(Ok(()), |file| bench::write_table(file, MARKERS, &table))
}

async fn measure(args: &TableArgs, run: &BenchRun<'_>) -> Result<String, BenchError> {
    let mut columns = Vec::new();
    for mode in run.modes()? {
        columns.push(ModeRun { args, mode: &mode }.column().await?);
    }
    Ok(markdown(&columns, &run.facts().await?))
}

/// The measurements of one mode.
struct ModeRun<'a> {
    args: &'a TableArgs,
    mode: &'a ServiceMode<'a>,
}

impl ModeRun<'_> {
    async fn column(&self) -> Result<TableColumn, BenchError> {
        let mut column = TableColumn::new(self.mode.title);
        column.add(TableFigure::Size, megabytes(&self.mode.sizes()?));
        self.starts(&mut column).await?;
        self.without_model(&mut column).await?;
        if let Some(model) = &self.mode.model {
            self.with_model(model, &mut column).await?;
        }
        Ok(column)
    }

    async fn starts(&self, column: &mut TableColumn) -> Result<(), BenchError> {
        note(&format!("{}: starting and stopping", column.title));
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for _ in 0..self.args.starts {
            let setup = self.mode.fresh().await?.without_model();
            for times in [&mut first, &mut again] {
                let (service, time) = setup.start().await?;
                times.push(time);
                service.stop().await?;
            }
        }
        column.add(TableFigure::StartEmpty, millis(median(&mut first)));
        column.add(TableFigure::StartExisting, millis(median(&mut again)));
        Ok(())
    }

    async fn without_model(&self, column: &mut TableColumn) -> Result<(), BenchError> {
        let (service, _) = self.mode.fresh().await?.without_model().start().await?;
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

    async fn predict(&self, bench: &ServiceBench, column: &mut TableColumn) -> Result<(), BenchError> {
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

    async fn with_model(&self, model: &Path, column: &mut TableColumn) -> Result<(), BenchError> {
        note(&format!("{}: with the model", column.title));
        let (service, _) = self.mode.fresh().await?.with_model(model).start().await?;
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

fn documents(rate: f64) -> String {
    format!("{rate:.0} documents/s")
}
