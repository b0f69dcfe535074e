//! Programs over other people's packages, as child processes: those in scripts/clients, and those that a document shows.

use std::{
    ffi::OsStr,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tempfile::TempDir;

use super::process::{Log, Process, dying_with_this_thread};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/clients");

/// A folder with programs, beside the packages that the test command has fetched.
pub struct Workbench(TempDir);

impl Workbench {
    /// A folder that has only the packages.
    pub fn empty() -> Self {
        let folder = tempfile::Builder::new().prefix("programs-").tempdir().expect("a temporary directory");
        if let Some(packages) = packages("TEST_CLIENTS_NODE") {
            // Modules are looked for beside the program that names them.
            let link = folder.path().join("node_modules");
            std::os::unix::fs::symlink(packages.join("node_modules"), link).expect("a link");
        }
        Self(folder)
    }

    /// A folder that has the programs of scripts/clients as well.
    pub fn with_scripts() -> Self {
        let bench = Self::empty();
        for entry in std::fs::read_dir(SCRIPTS).expect("the folder of the programs") {
            let path = entry.expect("an entry of it").path();
            if path.extension().is_some_and(|kind| kind == "py" || kind == "mjs") {
                let name = path.file_name().expect("a name");
                std::fs::copy(&path, bench.0.path().join(name)).expect("a copy");
            }
        }
        bench
    }

    /// Puts a program in.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).expect("a file");
    }

    /// Runs a program, which has to succeed, and returns what it wrote. `None` where its packages could not be had, which is
    /// said.
    ///
    /// It sees no variable of the test's own environment, only these.
    pub async fn run(
        &self,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Option<String> {
        let mut command = dying_with_this_thread(interpreter(program)?.to_str().expect("a path in Unicode"));
        command.arg(program).args(arguments).env_clear().envs(environment.iter().copied());
        command.env("HOME", self.0.path()).current_dir(self.0.path());
        for name in ["PATH", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let log = Arc::<Mutex<Log>>::default();
        let status = Process::spawn(command, &log).wait(program).await;
        let text = log.lock().text.clone();
        assert!(status.success(), "{program} ended with {status}:\n{text}");
        Some(text)
    }
}

/// What runs a program.
fn interpreter(program: &str) -> Option<PathBuf> {
    match Path::new(program).extension().and_then(OsStr::to_str) {
        Some("py") => Some(packages("TEST_CLIENTS_PYTHON")?.join("bin/python")),
        Some("mjs") => packages("TEST_CLIENTS_NODE").map(|_| PathBuf::from("node")),
        other => panic!("nothing is known that runs {other:?}"),
    }
}

/// The folder with packages that the test command names; without one it is said, once, what did not run.
fn packages(variable: &'static str) -> Option<PathBuf> {
    static MISSING: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let named = std::env::var_os(variable).filter(|named| !named.is_empty()).map(PathBuf::from);
    let mut missing = MISSING.lock();
    if named.is_none() && !missing.contains(&variable) {
        missing.push(variable);
        // Not by `eprintln!`, which is shown of failed tests only.
        let text =
            format!("\n!!! {variable} is not set: the tests with other people's clients did NOT run !!!\n\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    named
}
