//! The service while it grows: started, looked at, and started again.

use std::time::Duration;

use super::figure::{GrowFigure, GrowthTable};
use crate::{
    api::{ApiClient, RequestProblem},
    bench::{BenchError, RunningService, ServiceMode, ServiceSetup, median, megabytes, millis},
};

/// A running service, and what it was started with.
pub(super) struct GrownService<'a> {
    mode: &'a ServiceMode<'a>,
    setup: ServiceSetup,
    running: RunningService,
}

impl<'a> GrownService<'a> {
    /// A service with nothing in it.
    pub(super) async fn start(mode: &'a ServiceMode<'a>) -> Result<Self, BenchError> {
        let setup = mode.fresh().await?;
        let setup = match &mode.model {
            Some(folder) => setup.with_model(folder),
            None => setup.without_model(),
        };
        let (running, _) = setup.start().await?;
        let service = Self { mode, setup, running };
        service.until_open().await?;
        Ok(service)
    }

    /// A client that is not signed in.
    pub(super) fn api(&self) -> Result<&ApiClient, BenchError> {
        self.running.api()
    }

    /// Adds what each process holds.
    pub(super) fn memory(&self, figure: GrowFigure, table: &mut GrowthTable) {
        table.add(figure, megabytes(&self.running.resident()));
    }

    /// Adds what it takes on the disk.
    pub(super) async fn disk(&self, table: &mut GrowthTable) -> Result<(), BenchError> {
        table.add(GrowFigure::Disk, megabytes(&self.mode.disk(&self.setup).await?));
        Ok(())
    }

    /// Stops and starts it so many times, and adds how long a start took. `search` is given a client that is not signed in, and
    /// says how long a search took, the first since the start.
    pub(super) async fn restarted(
        mut self,
        starts: usize,
        table: &mut GrowthTable,
        mut search: impl AsyncFnMut(&ApiClient) -> Result<Duration, RequestProblem>,
    ) -> Result<Self, BenchError> {
        table.note("starting again");
        let (mut ready, mut first) = (Vec::new(), Vec::new());
        for _ in 0..starts {
            self.running.stop().await?;
            let (running, time) = self.setup.start().await?;
            self.running = running;
            ready.push(time);
            // It is not what is measured, and would take processor time meanwhile.
            self.until_open().await?;
            first.push(search(self.running.api()?).await?);
        }
        table.add(GrowFigure::Restart, millis(median(&mut ready)));
        table.add(GrowFigure::FirstSearch, millis(median(&mut first)));
        self.memory(GrowFigure::MemoryRestarted, table);
        Ok(self)
    }

    /// Stops it, and removes what it has kept.
    pub(super) async fn remove(self) -> Result<(), BenchError> {
        self.running.stop().await?;
        self.mode.remove(&self.setup).await
    }

    async fn until_open(&self) -> Result<(), BenchError> {
        if self.mode.model.is_some() { self.running.until_model_is_open().await } else { Ok(()) }
    }
}
