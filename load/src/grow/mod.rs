//! `lectern-load grow`: starts the service, lets it grow, in one workspace and in many, and measures at each step what its users
//! wait for then and what it takes of the machine.

mod args;
mod feed;
mod figure;
mod many;
mod one;
mod service;

use std::time::Duration;

use tokio::time::Instant;

use self::{
    args::GrowthSteps,
    figure::{GrowthTable, markdown},
    many::ManyGrowth,
    one::OneGrowth,
};
use crate::{
    bench::{self, BenchError, BenchRun, PageMarkers, RequestPlan},
    out::{note, say},
};

pub(crate) use args::GrowArgs;

/// Requests of each kind before those that are timed.
const WARM_UP: u64 = 20;
/// When requests of one kind take longer, fewer are timed.
const LONGEST: Duration = Duration::from_mins(1);
/// Documents that are added one after the other at each step.
const NEW: usize = 10;
/// Where the tables stand in a page.
const MARKERS: PageMarkers = PageMarkers("grow");

/// Measures what the arguments say, and prints the tables. Of a run that fails, what was measured before is printed too.
pub(crate) async fn run(args: GrowArgs) -> Result<(), BenchError> {
    args.check()?;
    let mut tables = Vec::new();
    let measured = bench::bench(&args.service, async |run| measure(&args, run, &mut tables).await).await;
    match measured {
        Ok(facts) => {
            let text = markdown(&tables, &facts);
            say(text.trim_end())?;
            args.output.as_deref().map_or(Ok(()), |file| bench::write_table(file, MARKERS, &text))
        }
        Err(error) => {
            if !tables.is_empty() {
                note("it did not come to its end; this was measured before:");
                say(markdown(&tables, &[]).trim_end())?;
            }
            Err(error)
        }
    }
}

async fn measure(
    args: &GrowArgs,
    run: &BenchRun<'_>,
    tables: &mut Vec<GrowthTable>,
) -> Result<Vec<String>, BenchError> {
    for mode in &run.modes()? {
        // A table is there before it has anything in it, so that what was measured is not lost when something fails.
        if !args.steps.all().is_empty() {
            let table = tables.push_mut(GrowthTable::of_one(mode.title));
            OneGrowth { args, mode }.run(table).await?;
        }
        if !args.workspaces.all().is_empty() {
            let table = tables.push_mut(GrowthTable::of_many(mode.title));
            ManyGrowth { args, mode }.run(table).await?;
        }
    }
    run.facts().await
}

/// How many requests of a kind are timed.
fn plan(args: &GrowArgs) -> RequestPlan {
    RequestPlan { warm_up: WARM_UP, requests: args.requests, longest: LONGEST }
}

/// Since when something grows, and how long it may.
struct GrowthClock {
    began: Instant,
    limit: Option<Duration>,
}

impl GrowthClock {
    /// It begins now.
    fn start(args: &GrowArgs) -> Self {
        Self { began: Instant::now(), limit: args.time_limit }
    }

    /// Whether there is time for the steps after the one of this place. When there is none, the table says so.
    fn allows(&self, place: usize, steps: &GrowthSteps, table: &mut GrowthTable) -> bool {
        let (done, left) = steps.all().split_at(place + 1);
        match (self.limit, done.last()) {
            (Some(limit), Some(done)) if !left.is_empty() && self.began.elapsed() > limit => {
                table.end_early(*done, left, limit);
                false
            }
            _ => true,
        }
    }
}
