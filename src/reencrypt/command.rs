//! `lectern reencrypt`: everything that the previous secret key encrypted, and what earlier versions stored plainly,
//! encrypted under the present one.

use lectern_runtime::{KEY_NOTICE_STANDS, ProcessRole, Runtime, forget_gone_writers, process::FatalError};
use lectern_shared::{config::Settings, shutdown::Shutdown};

use super::{ReencryptOutcome, ReencryptReport};
use crate::jobs::say;

/// Does it, beside the running service or without.
///
/// # Errors
/// When it did not come to its end, when something could be opened by neither key, and when a process still encrypts under another.
pub(crate) async fn run(settings: Settings) -> Result<(), FatalError> {
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let runtime = Runtime::start(settings, ProcessRole::Command).await?;
    let with_previous = runtime.keyring.has_previous();
    if !with_previous {
        tracing::warn!(
            "LECTERN_SECRET_KEY_PREVIOUS is not set: it is looked whether LECTERN_SECRET_KEY opens everything, and only what is plain is \
             encrypted"
        );
    }
    forget_gone_writers(&runtime).await?;
    let now = || runtime.jobs.now();
    let report = super::run(&runtime.db, &runtime.keyring, now, shutdown.soft()).await;
    runtime.close().await;
    let report = report?;
    for row in &report.named {
        tracing::error!(table = row.table, id = %row.id, "its encrypted value cannot be opened");
    }
    say(&format!("encrypted under LECTERN_SECRET_KEY: {}", report.renewed))?;
    conclude(&report, with_previous)
}

/// Says what is left to do, and fails when something is.
fn conclude(report: &ReencryptReport, with_previous: bool) -> Result<(), FatalError> {
    match report.end {
        ReencryptOutcome::Stopped => {
            return Err("stopped before everything was done: run it again to go on".into());
        }
        ReencryptOutcome::StillWritten => {
            return Err("a process still encrypts under another key: restart every process with the new \
                        LECTERN_SECRET_KEY, then run this again"
                .into());
        }
        ReencryptOutcome::WritersLeft(processes) => return Err(writers_left(processes).into()),
        ReencryptOutcome::Complete => {}
    }
    let freed = if with_previous {
        "nothing needs LECTERN_SECRET_KEY_PREVIOUS any more: it can be unset"
    } else {
        "everything that can be opened is under LECTERN_SECRET_KEY"
    };
    match report.unreadable {
        0 => say(freed),
        some => {
            Err(format!("{some} values can be opened by no key that is set, and were left; else {freed}")
                .into())
        }
    }
}

/// What is said while others may write what the previous key alone opens.
fn writers_left(processes: i64) -> String {
    let minutes = KEY_NOTICE_STANDS.as_secs() / 60;
    format!(
        "processes that encrypt under another key: {processes}. That key is needed as long as they run: restart every process \
         with the new LECTERN_SECRET_KEY, then run this again. One that was killed counts for {minutes} minutes more"
    )
}
