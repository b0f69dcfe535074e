//! `lectern doctor`: what is wrong with the installation, and what to do about it.

use std::{fmt::Write as _, io::Write as _};

use clap::Args;
use lectern_runtime::process::FatalError;
use lectern_sandbox::{Sandbox, SandboxConfig, SandboxError};
use lectern_shared::config::Settings;
use serde_json::json;

use super::{DoctorFinding, DoctorOptions, DoctorReport, InstallationPart, Severity, documents};

/// How to look.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Mend what can be mended. The work is queued, and done when the service runs.
    #[arg(long)]
    repair: bool,
    /// Read all of the embedded index and the model's files too; it takes a while.
    #[arg(long)]
    deep: bool,
    /// Answer in JSON. Of each finding it tells the part, how bad it is (ok, warning or error), a code, what was found and what to do.
    #[arg(long)]
    json: bool,
}

/// Looks at every part; after a repair, once more.
///
/// # Errors
/// When anything found is an error.
pub(crate) async fn run(settings: &Settings, args: &DoctorArgs) -> Result<(), FatalError> {
    let DoctorArgs { repair, deep, json } = *args;
    let mended = if repair {
        Some(Box::pin(super::examine(settings, DoctorOptions { deep, repair: true })).await)
    } else {
        None
    };
    let mut report = Box::pin(super::examine(settings, DoctorOptions { deep, repair: false })).await;
    report.findings.push(sandbox().await);
    let text = if json { in_json(mended.as_ref(), &report)? } else { in_words(mended.as_ref(), &report)? };
    std::io::stdout().write_all(text.as_bytes())?;
    match report.count(Severity::Error) {
        0 => Ok(()),
        1 => Err("1 thing is wrong".into()),
        errors => Err(format!("{errors} things are wrong").into()),
    }
}

/// What a parser can reach on this machine: one is started, and tries.
async fn sandbox() -> DoctorFinding {
    let finding = |severity, code, what| DoctorFinding::new(InstallationPart::Sandbox, severity, code, what);
    let tried = match SandboxConfig::for_this_binary() {
        Ok(config) => Sandbox::new(config).probe_confinement().await,
        Err(error) => Err(SandboxError::Spawn(error)),
    };
    match tried {
        Ok(walls) if walls.is_confined() => finding(Severity::Ok, "ok", walls.to_string()),
        Ok(walls) => {
            let code = if walls.reached.is_empty() { "walls_missing" } else { "walls_open" };
            let todo = "run the workers on Linux 5.13 or later with Landlock (`landlock` in the boot parameter `lsm=`), in a container whose seccomp profile allows it";
            finding(Severity::Warning, code, walls.to_string()).todo(todo)
        }
        Err(error) => {
            let todo = "see why the program cannot be started by itself: nothing is parsed without that";
            finding(Severity::Error, "untried", error.to_string()).todo(todo)
        }
    }
}

fn in_json(mended: Option<&DoctorReport>, report: &DoctorReport) -> Result<String, FatalError> {
    let repaired: Vec<&DoctorFinding> = repaired(mended).collect();
    let mut text = serde_json::to_string_pretty(&json!({
        "sound": report.is_sound(),
        "repaired": repaired,
        "queued": mended.map_or(0, |mended| mended.queued),
        "running": report.running,
        "findings": report.findings,
    }))?;
    text.push('\n');
    Ok(text)
}

fn in_words(mended: Option<&DoctorReport>, report: &DoctorReport) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for finding in repaired(mended) {
        writeln!(text, "mended   {:<9} {}{}", finding.part, finding.what, ids(finding))?;
    }
    if let Some(mended) = mended {
        let next = match report.running {
            _ if mended.queued == 0 => "nothing is left to do for the service",
            Some(true) => "the service, which runs, does the work",
            Some(false) => "the service does not run: start it, and it does the work",
            None => "a worker does the work: start one if none runs",
        };
        writeln!(text, "{} queued; {next}\n", documents(mended.queued, ("was", "were")))?;
    }
    for finding in &report.findings {
        let severity = match finding.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        writeln!(text, "{severity:<8} {:<9} {}{}", finding.part, finding.what, ids(finding))?;
        if let Some(todo) = &finding.todo {
            writeln!(text, "{:<18} -> {todo}", "")?;
        }
    }
    Ok(text)
}

fn repaired(mended: Option<&DoctorReport>) -> impl Iterator<Item = &DoctorFinding> {
    mended.into_iter().flat_map(|mended| &mended.findings).filter(|finding| finding.repaired)
}

/// The ids that a finding names.
fn ids(finding: &DoctorFinding) -> String {
    if finding.ids.is_empty() {
        return String::new();
    }
    let all = finding.count.is_none_or(|count| count == finding.ids.len() as u64);
    format!(": {}{}", finding.ids.join(", "), if all { "" } else { ", …" })
}
