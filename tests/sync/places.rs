//! What is found at each kind of place, and what becomes of it.

mod bucket;
mod feed;
mod folder;
mod moves;
mod page_moves;
mod pages;
mod site;

use serde_json::Value;

use super::{run_path, setup};
use crate::support::{
    client::Client,
    process::POLL,
    service::{Mode, Service, Setup},
    within_deadline,
};

/// A service whose runs go on soon after it was killed, however often that is.
fn killed_often(mode: Mode) -> Setup {
    let setup = setup(mode).env("LECTERN_JOB_MAX_ATTEMPTS", "50");
    match mode {
        // The next start knows that all leases are void.
        Mode::Embedded => setup,
        Mode::Postgres | Mode::Cluster => setup.env("LECTERN_JOB_LEASE", "6s"),
    }
}

/// Kills the service when a run has found so many documents elsewhere, and starts it again.
async fn kill_when_moved(service: &mut Service, client: &Client, started: &Value, wanted: i64) {
    let far_enough = async {
        while client.read(&run_path(started)).await["moved"].as_i64() < Some(wanted) {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the run to go on", far_enough).await;
    service.kill();
    service.restart().await;
}
