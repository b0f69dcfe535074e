//! The load program against the real service.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::support::{
    in_both_modes,
    service::{Mode, Service},
    within_deadline,
};

in_both_modes!(a_mixed_load_is_carried_and_leaves_nothing_undone);

/// The program with a small load, which asks the service at `url`.
fn mix(url: &str, duration: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lectern-load"));
    command.args(["mix", "--url", url, "--duration", duration, "--warm-up", "1s", "--interval", "1s"]);
    command.args(["--corpus", "10", "--documents", "2/s", "--questions", "5/s", "--searches", "5/s"]);
    command.args(["--lists", "2/s", "--max-growth", "1GiB"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().expect("the load program")
}

async fn a_mixed_load_is_carried_and_leaves_nothing_undone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let load = mix(&service.base_url(), "5s");
    let done = within_deadline("the load", load.wait_with_output()).await.expect("its output");
    let report = String::from_utf8_lossy(&done.stdout);
    let problems = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{report}{problems}");
    assert!(report.contains("PASSED"), "{report}");
    assert!(report.contains("jobs left: dead 0, due 0, running 0, waiting 0"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_dies_under_load_is_a_failed_run_that_ends() {
    let mut service = Service::start().await;
    let mut load = mix(&service.base_url(), "10m");
    let mut lines = BufReader::new(load.stdout.take().expect("its output")).lines();
    let mut report = String::new();
    let begun = async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            report.push_str(&line);
            report.push('\n');
            if line.contains("load for") {
                return;
            }
        }
        panic!("the load did not begin: {report}");
    };
    within_deadline("the load to begin", begun).await;
    service.kill();
    let rest = async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            report.push_str(&line);
            report.push('\n');
        }
    };
    within_deadline("the end of the load", rest).await;
    let done = within_deadline("the load", load.wait_with_output()).await.expect("its end");
    let problems = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{report}{problems}");
    assert!(format!("{report}{problems}").contains("does not answer any more"), "{report}{problems}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_service_is_said() {
    // A port that was free a moment ago.
    let url = Service::start().await.base_url();
    let done = within_deadline("the load", mix(&url, "5s").wait_with_output()).await.expect("its output");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("no Lectern answers"), "{said}");
}
