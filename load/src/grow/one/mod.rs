//! One workspace that holds more and more.

mod ask;
mod fill;

use self::fill::GrowingWorkspace;
use super::{
    GrowthClock, NEW,
    args::{GrowArgs, PASSAGES},
    figure::{GrowFigure, GrowthTable},
    plan,
    service::GrownService,
};
use crate::bench::{BenchError, CLIENTS, ServiceMode, both, grouped, median, millis};

/// The growth of one workspace in one mode.
pub(super) struct OneGrowth<'a> {
    pub(super) args: &'a GrowArgs,
    pub(super) mode: &'a ServiceMode<'a>,
}

impl OneGrowth<'_> {
    /// Measures it at every step.
    pub(super) async fn run(&self, table: &mut GrowthTable) -> Result<(), BenchError> {
        let mut service = GrownService::start(self.mode).await?;
        let mut workspace = GrowingWorkspace::new(service.api()?).await?;
        let clock = GrowthClock::start(self.args);
        for (place, passages) in self.args.steps.all().iter().enumerate() {
            table.begin(*passages);
            self.grow(&mut workspace, passages / PASSAGES, table).await?;
            service.memory(GrowFigure::MemoryIngested, table);
            self.ask(&workspace, table).await?;
            self.add(&mut workspace, table).await?;
            service.memory(GrowFigure::MemoryAsked, table);
            service.disk(table).await?;
            let search = async |api: &_| workspace.first_search(api).await;
            service = service.restarted(self.args.starts, table, search).await?;
            if !clock.allows(place, &self.args.steps, table) {
                break;
            }
        }
        table.remark(format!(
            "texts of about {PASSAGES} passages by {} clients; at most {} requests of each kind, one at a time",
            CLIENTS,
            self.args.requests
        ));
        service.remove().await
    }

    /// Adds documents until there are so many.
    async fn grow(
        &self,
        workspace: &mut GrowingWorkspace,
        documents: u64,
        table: &mut GrowthTable,
    ) -> Result<(), BenchError> {
        table.note("documents");
        let rate = workspace.ingest(documents, table).await?;
        table.add(
            GrowFigure::Ingestion,
            format!("{:.0} documents/s, {:.0} passages/s", rate.documents, rate.passages),
        );
        let (documents, passages) = workspace.held();
        table.add(
            GrowFigure::Held,
            format!("{} documents, {} passages", grouped(documents), grouped(passages)),
        );
        Ok(workspace.link(table).await?)
    }

    async fn ask(&self, workspace: &GrowingWorkspace, table: &mut GrowthTable) -> Result<(), BenchError> {
        table.note("requests");
        let plan = plan(self.args);
        table.add(GrowFigure::List, both(&workspace.list(plan).await?, 0.0));
        if let Some(times) = workspace.list_middle(plan).await? {
            table.add(GrowFigure::ListMiddle, both(&times, 0.0));
        }
        table.add(GrowFigure::SearchLexical, both(&workspace.search(plan, "lexical").await?, 0.0));
        if self.mode.model.is_some() {
            table.add(GrowFigure::SearchHybrid, both(&workspace.search(plan, "hybrid").await?, 0.0));
        }
        table.add(GrowFigure::SearchDocuments, both(&workspace.search_documents(plan).await?, 0.0));
        table.add(GrowFigure::SearchFilter, both(&workspace.search_filter(plan).await?, 0.0));
        table.add(GrowFigure::PredictSome, both(&workspace.ask_some(plan).await?, 0.0));
        table.add(GrowFigure::PredictAll, both(&workspace.ask_all(plan).await?, 0.0));
        Ok(())
    }

    /// Adds documents one after the other.
    async fn add(&self, workspace: &mut GrowingWorkspace, table: &mut GrowthTable) -> Result<(), BenchError> {
        let (mut searchable, mut found) = (Vec::new(), Vec::new());
        for _ in 0..NEW {
            let (until_searchable, search) = workspace.add_one().await?;
            searchable.push(until_searchable);
            found.push(search);
        }
        table.add(GrowFigure::NewDocument, millis(median(&mut searchable)));
        table.add(GrowFigure::NewFound, millis(median(&mut found)));
        Ok(())
    }
}
