//! A parser that was taken over, and another program of the service's account: neither reaches what the service holds.
//! What a parser's walls refuse one by one is tested beside them, in the worker.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::support::{
    command::doctor,
    in_both_modes,
    service::{Mode, Service},
    setup::Program,
    within_deadline,
};

in_both_modes!(every_program_closes_itself_and_tells_of_the_walls_around_its_parsers);

/// Whether a process has said that it gains no rights any more, which every program does right after closing itself.
fn is_shielded(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"]))
}

async fn every_program_closes_itself_and_tells_of_the_walls_around_its_parsers(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let workers = (0..service.worker_count()).map(|worker| service.worker_pid(worker));
    for process in workers.chain([service.pid()]) {
        assert!(is_shielded(process));
    }
    let told = service.logged("the walls", |event| event["fields"]["message"] == "sandbox").await;
    let walls = told["fields"]["walls"].as_str().expect("what the walls are").to_owned();

    let (_, report) = doctor(&service.sibling(), &[]);
    let findings = report["findings"].as_array().expect("findings");
    let found =
        findings.iter().find(|finding| finding["part"] == "sandbox").expect("a finding on the sandbox");
    assert_eq!(found["what"], walls, "{report:#}");
    if found["severity"] == "ok" {
        assert!(walls.ends_with("a parser reaches no files, no network and no other process"), "{walls}");
    } else {
        assert!(found["todo"].as_str().is_some_and(|todo| todo.contains("Landlock")), "{report:#}");
        let text = format!("\n!!! not all walls of parsers can be had here: {walls} !!!\n\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// An account that is not root's: the tests' own, or when they run as root, nobody's.
struct Account(Option<u32>);

impl Account {
    fn new() -> Self {
        Self(rustix::process::getuid().is_root().then_some(65_534))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(id) = self.0 {
            command.uid(id).gid(id);
        }
        command
    }

    fn may_read_environment_of(&self, process: u32) -> bool {
        let output = self.command("cat").arg(format!("/proc/{process}/environ")).output().expect("it starts");
        output.status.success() && !output.stdout.is_empty()
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_of_the_same_account_cannot_read_the_secrets_of_the_service() {
    let account = Account::new();
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(id) = account.0 {
        std::os::unix::fs::chown(folder.path(), Some(id), Some(id)).expect("root may");
    }
    let other = Running(account.command("sleep").arg("600").spawn().expect("it starts"));
    let readable = async {
        while !account.may_read_environment_of(other.0.id()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within_deadline("one program of an account to read another's environment", readable).await;

    // It goes on until it is stopped.
    let service = account
        .command(Program::Lectern.path())
        .env("LECTERN_ADDR", "127.0.0.1:0")
        .env("LECTERN_EMBEDDER", "none")
        .env("LECTERN_DATA_DIR", folder.path())
        .env("LECTERN_SECRET_KEY", "a key that only these tests ever use")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let service = Running(service.expect("it starts"));
    let shielded = async {
        while !is_shielded(service.0.id()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within_deadline("the program to close itself", shielded).await;
    assert!(!account.may_read_environment_of(service.0.id()));
}
