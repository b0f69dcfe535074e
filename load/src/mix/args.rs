//! What `lectern-load mix` takes.

use std::time::Duration;

use clap::Args;
use url::Url;

use crate::units::{GrowthAllowance, LoadRate};

/// Load at set rates, with every answer checked. Exit code 1 when there was an error, a job or document was stuck, or the memory
/// grew.
#[derive(Args, Debug)]
pub(crate) struct MixArgs {
    /// Where the service is.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub(super) url: Url,
    /// How long the load lasts, the warm-up included.
    #[arg(long, default_value = "10m", value_parser = humantime::parse_duration)]
    pub(super) duration: Duration,
    /// The part at the beginning after which memory may not grow; a fifth of the duration without it.
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) warm_up: Option<Duration>,
    /// How often a line is printed, and the time over which memory is compared.
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration)]
    pub(super) interval: Duration,
    /// Documents that are added; the oldest go at the same rate.
    #[arg(long, default_value = "5/s")]
    pub(super) documents: LoadRate,
    /// Questions that the agent is asked.
    #[arg(long, default_value = "20/s")]
    pub(super) questions: LoadRate,
    /// Searches.
    #[arg(long, default_value = "20/s")]
    pub(super) searches: LoadRate,
    /// Pages of lists that are read.
    #[arg(long, default_value = "5/s")]
    pub(super) lists: LoadRate,
    /// Documents whose metadata is changed.
    #[arg(long, default_value = "1/s")]
    pub(super) patches: LoadRate,
    /// Documents that there are at the beginning, and about at any time.
    #[arg(long, default_value_t = 500)]
    pub(super) corpus: usize,
    /// Requests of one kind that may be under way at once; documents count until they are searchable.
    #[arg(long, default_value_t = 64)]
    pub(super) in_flight: usize,
    /// Where processes of the service say what memory they hold and which jobs there are; repeat it for each process.
    /// `/metrics` of --url without it.
    #[arg(long)]
    pub(super) metrics: Vec<Url>,
    /// By how much a process may be larger at the end than after the warm-up.
    #[arg(long, default_value = "10%+16MiB")]
    pub(super) max_growth: GrowthAllowance,
    /// How long the service has, after the load, to finish what it was given.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    pub(super) drain: Duration,
    /// The account to use: it is made, or signed in to. Without it a new one is made.
    #[arg(long, requires = "password")]
    pub(super) email: Option<String>,
    /// That account's password.
    #[arg(long, requires = "email")]
    pub(super) password: Option<String>,
    /// A sign-in or API token, instead of an account.
    #[arg(long, conflicts_with = "email")]
    pub(super) token: Option<String>,
    /// What documents and questions follow from.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Leave the documents and the agent there.
    #[arg(long)]
    pub(super) keep: bool,
}

impl MixArgs {
    /// The part at the beginning after which memory may not grow.
    pub(super) fn warm_up(&self) -> Duration {
        self.warm_up.unwrap_or(self.duration / 5)
    }
}
