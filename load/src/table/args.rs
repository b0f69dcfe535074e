//! What `lectern-load table` takes.

use std::path::PathBuf;

use clap::Args;

use crate::bench::{BenchError, ServiceArgs};

/// Start the service, measure it with one request at a time, and print the table of docs/performance.md.
#[derive(Args, Debug)]
pub(crate) struct TableArgs {
    #[command(flatten)]
    pub(super) service: ServiceArgs,
    /// Where the table goes besides standard output. In a file that has the lines `<!-- table -->` and `<!-- /table -->`, what
    /// stands between them is replaced.
    #[arg(long)]
    pub(super) output: Option<PathBuf>,
    /// Documents in the corpus that is listed, searched and asked.
    #[arg(long, default_value_t = 1_000)]
    pub(super) documents: u64,
    /// Requests that are timed of each kind, after 50 to warm up.
    #[arg(long, default_value_t = 500)]
    pub(super) requests: u64,
    /// Starts that are timed of each kind.
    #[arg(long, default_value_t = 5)]
    pub(super) starts: usize,
    /// Small documents whose ingestion is timed.
    #[arg(long, default_value_t = 4_000)]
    pub(super) small: u64,
    /// PDFs of 50 pages whose ingestion is timed.
    #[arg(long, default_value_t = 12)]
    pub(super) pdfs: u64,
}

impl TableArgs {
    /// Refuses numbers with which nothing could be measured.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let is_any = self.requests > 0 && self.starts > 0 && self.small > 0 && self.pdfs > 0;
        if self.documents < 50 || !is_any {
            return Err(BenchError::Arguments("--documents must be 50 at least, the other numbers 1"));
        }
        Ok(())
    }
}
