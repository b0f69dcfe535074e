//! `lectern jobs`: the jobs of all users, for the operator. Beside the running service, or without it.

use std::{
    collections::BTreeSet,
    fmt::{Display, Write as _},
    io::Write as _,
    time::Duration,
};

use clap::{Args, Subcommand};
use lectern_api::{
    JobView,
    jobs::{JobError, JobFilter, JobList, JobOperator, JobService, JobSnapshot},
};
use lectern_db::operator_jobs::JobAction;
use lectern_runtime::{
    ProcessRole, Runtime,
    process::{self, FatalError},
};
use lectern_shared::{
    clock::Timestamp,
    config::Settings,
    ids::{DocumentId, JobId},
    model::{
        Json,
        job::{JobPhase, JobRecord},
    },
};

/// The most jobs that are listed at once.
const LONGEST_LIST: i64 = 10_000;

#[derive(Subcommand)]
pub(crate) enum JobsCommand {
    /// Show jobs. Queued ones come in the order in which workers take them, running ones with the longest running first, dead and
    /// cancelled ones with the last that ended first, all others with the newest documents' first.
    List {
        /// Only jobs that stand so: queued (due or waiting), due, waiting, running, dead, done or cancelled.
        #[arg(long, value_parser = standing)]
        state: Option<JobPhase>,
        /// Only the jobs of this user, by e-mail or id.
        #[arg(long)]
        user: Option<String>,
        /// Only jobs whose last attempt failed with this code, such as `embedder_failed`.
        #[arg(long)]
        code: Option<String>,
        /// Only the job of this document.
        #[arg(long)]
        document: Option<DocumentId>,
        /// The most jobs to show.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=LONGEST_LIST))]
        limit: u32,
        /// As a JSON array, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Show all that is known of a job.
    Show {
        /// Its id.
        id: JobId,
        /// As JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Have jobs tried again, at once and with all their attempts before them.
    #[command(
        override_usage = "lectern jobs retry [OPTIONS] <IDS>...\n       lectern jobs retry [OPTIONS] <--dead|--state <STATE>>"
    )]
    Retry {
        #[command(flatten)]
        which: JobSelector,
        /// All that stand so: dead, waiting or cancelled.
        #[arg(long, value_parser = standing, group = "all")]
        state: Option<JobPhase>,
    },
    /// Stop jobs, be they queued or running, and lay dead ones aside. Documents stay, and what can be searched of them.
    #[command(
        override_usage = "lectern jobs discard [OPTIONS] <IDS>...\n       lectern jobs discard [OPTIONS] <--dead|--state <STATE>>"
    )]
    Discard {
        #[command(flatten)]
        which: JobSelector,
        /// All that stand so: dead, queued (due or waiting), due, waiting or running.
        #[arg(long, value_parser = standing, group = "all")]
        state: Option<JobPhase>,
    },
}

/// Which jobs are meant.
#[derive(Args)]
pub(crate) struct JobSelector {
    /// Their ids.
    #[arg(required_unless_present = "all", conflicts_with_all = ["all", "user", "code"])]
    ids: Vec<JobId>,
    /// All that have failed for good.
    #[arg(long, group = "all")]
    dead: bool,
    /// Of all, those of this user, by e-mail or id.
    #[arg(long)]
    user: Option<String>,
    /// Of all, those whose last attempt failed with this code, such as `embedder_failed`.
    #[arg(long)]
    code: Option<String>,
}

fn standing(text: &str) -> Result<JobPhase, String> {
    text.parse().map_err(|_| format!("it must be one of {}", JobPhase::choices()))
}

/// # Errors
/// When a job or an account is not there, or a job cannot be changed.
pub(crate) async fn run(settings: Settings, command: JobsCommand) -> Result<(), FatalError> {
    // Refused before anything is opened.
    let all = match &command {
        JobsCommand::Retry { which, state } => which.standing(*state, JobAction::Retry)?,
        JobsCommand::Discard { which, state } => which.standing(*state, JobAction::Discard)?,
        JobsCommand::List { .. } | JobsCommand::Show { .. } => None,
    };
    let runtime = Runtime::start(settings, ProcessRole::Command).await?;
    let jobs = JobService::new(runtime.db.clone(), runtime.jobs.clone());
    let done = match command {
        JobsCommand::List { state, user, code, document, limit, json } => {
            list(&jobs, JobFilter { standing: state, user, document, code }, limit, json).await
        }
        JobsCommand::Show { id, json } => show(&jobs, id, json).await,
        JobsCommand::Retry { which, .. } => change(&jobs, JobAction::Retry, which, all).await,
        JobsCommand::Discard { which, .. } => change(&jobs, JobAction::Discard, which, all).await,
    };
    runtime.close().await;
    done
}

impl JobSelector {
    /// How all the jobs stand that are meant; none when they are named.
    fn standing(&self, state: Option<JobPhase>, action: JobAction) -> Result<Option<JobPhase>, FatalError> {
        match if self.dead { Some(JobPhase::Dead) } else { state } {
            Some(standing) if !action.standings().contains(&standing) => {
                Err(format!("--state must be one of {}; name jobs that stand otherwise", action.choices())
                    .into())
            }
            standing => Ok(standing),
        }
    }
}

// --- showing ---------------------------------------------------------------------------------------------------------

async fn list(jobs: &JobService, filter: JobFilter, limit: u32, json: bool) -> Result<(), FatalError> {
    let JobList { jobs, at, next } = jobs.list(filter, None, limit).await?;
    if json {
        let jobs: Vec<JobView> = jobs.into_iter().map(|job| JobView::new(job, at)).collect();
        say(&serde_json::to_string_pretty(&jobs)?)?;
    } else if jobs.is_empty() {
        tracing::info!("there are no such jobs");
    } else {
        say(&table(&jobs, at))?;
    }
    if next.is_some() {
        tracing::info!(limit, "there are more; --limit shows more of them");
    }
    Ok(())
}

fn table(jobs: &[JobRecord], now: Timestamp) -> String {
    let head = ["ID", "STATE", "ATTEMPTS", "KIND", "USER", "DOCUMENT", "AGE", "ERROR"].map(str::to_owned);
    let row = |job: &JobRecord| {
        let error = job.last_error.as_ref().map_or("-", |Json(error)| &error.code);
        [
            job.id.to_string(),
            job.standing(now).to_string(),
            format!("{}/{}", job.attempts, job.max_attempts),
            job.kind.to_string(),
            plain(&job.user_email),
            job.document_id.to_string(),
            age(job, now),
            plain(error),
        ]
    };
    let rows: Vec<_> = [head].into_iter().chain(jobs.iter().map(row)).collect();
    let widths: [usize; 8] = std::array::from_fn(|column| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    });
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// For how long a job has stood as it does: since it was due, begun, or ended. One that waits has been queued for so long.
fn age(job: &JobRecord, now: Timestamp) -> String {
    let since = match job.standing(now) {
        JobPhase::Due => Some(job.run_at),
        JobPhase::Running => job.started_at,
        JobPhase::Dead | JobPhase::Done | JobPhase::Cancelled => job.finished_at,
        JobPhase::Queued | JobPhase::Waiting => None,
    };
    rounded(now.since(since.unwrap_or(job.queued_at)))
}

/// A time in its largest unit.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

async fn show(jobs: &JobService, id: JobId, json: bool) -> Result<(), FatalError> {
    let JobSnapshot { job, at } = jobs.find(id).await?;
    let view = serde_json::to_value(JobView::new(job, at))?;
    if json {
        return say(&serde_json::to_string_pretty(&view)?);
    }
    let fields = view.as_object().into_iter().flatten();
    let width = fields.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in fields {
        let value = value.as_str().map_or_else(|| value.to_string(), plain);
        writeln!(out, "{name:width$}  {value}")?;
    }
    say(out.trim_end())
}

/// Text for a terminal: what would steer it is taken out.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// `1 job`, `2 jobs`.
pub(crate) fn counted<N: Copy + Display + From<u8> + PartialEq>(count: N, one: &str, many: &str) -> String {
    format!("{count} {}", if count == N::from(1) { one } else { many })
}

/// Writes the command's own output, which log lines never mix with.
pub(crate) fn say(text: &str) -> Result<(), FatalError> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // Whoever reads has seen enough, `head` for instance.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        end => Ok(end?),
    }
}

// --- changing --------------------------------------------------------------------------------------------------------

async fn change(
    jobs: &JobService,
    action: JobAction,
    which: JobSelector,
    all: Option<JobPhase>,
) -> Result<(), FatalError> {
    let JobSelector { ids, user, code, .. } = which;
    match all {
        Some(standing) => {
            change_all(jobs, action, JobFilter { standing: Some(standing), user, document: None, code }).await
        }
        None => change_named(jobs, action, ids).await,
    }
}

async fn change_named(jobs: &JobService, action: JobAction, ids: Vec<JobId>) -> Result<(), FatalError> {
    let ids: BTreeSet<JobId> = ids.into_iter().collect();
    let mut failed = 0;
    for id in &ids {
        let what = match (jobs.change(JobOperator::Command, action, *id).await, action) {
            (Ok(true), JobAction::Retry) => "due",
            (Ok(true), JobAction::Discard) => "cancelled",
            (Ok(false), JobAction::Retry) => "due already",
            (Ok(false), JobAction::Discard) => "ended already",
            (Err(error @ (JobError::UnknownJob(_) | JobError::Running(_))), _) => {
                failed += 1;
                process::tell(&error);
                continue;
            }
            (Err(error @ (JobError::UnknownUser(_) | JobError::Db(_))), _) => return Err(error.into()),
        };
        say(&format!("{id}  {what}"))?;
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} jobs stay as they are", ids.len()).into()) }
}

async fn change_all(jobs: &JobService, action: JobAction, filter: JobFilter) -> Result<(), FatalError> {
    let changed = jobs.change_all(JobOperator::Command, action, filter).await?;
    say(&match action {
        JobAction::Retry => format!("due: {changed}"),
        JobAction::Discard => format!("cancelled: {changed}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_largest_unit() {
        for (seconds, shown) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (7_200, "2h"),
            (86_399, "23h"),
            (200_000, "2d"),
        ] {
            assert_eq!(rounded(Duration::from_secs(seconds)), shown);
        }
    }

    #[test]
    fn nothing_that_is_shown_can_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\r\nc"), "a\u{fffd}[31mb\u{fffd}\u{fffd}c");
    }
}
