//! `lectern reencrypt`: everything that the previous secret key encrypted, encrypted under the present one.

use lectern_runtime::{ProcessRole, Runtime, process::FatalError};
use lectern_shared::{config::Settings, shutdown::Shutdown};

use super::ReencryptOutcome;
use crate::jobs::say;

/// Does it, beside the running service or without.
///
/// # Errors
/// When it did not come to its end, and when something could be opened by neither key.
pub(crate) async fn run(settings: Settings) -> Result<(), FatalError> {
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let runtime = Runtime::start(settings, ProcessRole::Command).await?;
    let with_previous = runtime.keyring.has_previous();
    if !with_previous {
        tracing::warn!(
            "LECTERN_SECRET_KEY_PREVIOUS is not set: it is only looked whether LECTERN_SECRET_KEY opens everything"
        );
    }
    let report = super::run(&runtime.db, &runtime.keyring, shutdown.soft()).await;
    runtime.close().await;
    let report = report?;
    for row in &report.named {
        tracing::error!(table = row.table, id = %row.id, "its encrypted value cannot be opened");
    }
    say(&format!("encrypted under LECTERN_SECRET_KEY: {}", report.renewed))?;
    match report.end {
        ReencryptOutcome::Stopped => {
            return Err("stopped before everything was done: run it again to go on".into());
        }
        ReencryptOutcome::StillWritten => {
            return Err("a process still encrypts under another key: restart every process with the new \
                        LECTERN_SECRET_KEY, then run this again"
                .into());
        }
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
