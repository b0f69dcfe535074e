//! Accounts that are added and changed from the operator's shell.

use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use reqwest::StatusCode;
use rustix::{
    fs::OFlags,
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr},
};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{sign_in, sign_up, text};
use crate::support::{
    client::{PASSWORD, id},
    db::Database,
    in_both_modes, on_postgres_too,
    service::{Mode, Service, Setup},
    setup::Program,
    within_deadline,
};

in_both_modes!(
    the_shell_adds_accounts_to_a_closed_service,
    a_password_set_from_the_shell_ends_earlier_sign_ins,
    the_shell_changes_an_e_mail_and_ends_nothing,
    the_shell_deletes_an_account_and_no_workspace_that_it_was_not_told_to
);

on_postgres_too!(the_shell_adds_accounts_to_a_closed_service);

async fn the_shell_adds_accounts_to_a_closed_service(mode: Mode) {
    let mut shell = Shell::start(mode, "closed").await;
    assert_eq!(sign_up(&shell.service, "ada@example.com").await.0, StatusCode::FORBIDDEN);

    let done = shell.run(&["user", "add", " Ada@example.com "], &format!("{PASSWORD}\n")).await;
    assert!(done.status.success(), "{done:?}");
    assert!(!said(&done).contains(PASSWORD), "the password is in the output: {}", said(&done));
    let done = shell.run(&["user", "add", "grace@example.com"], &format!("{PASSWORD}\r\n")).await;
    assert!(done.status.success(), "{done:?}");
    let done = shell.run(&["user", "add", "--admin", "mary@example.com"], PASSWORD).await;
    assert!(done.status.success(), "{done:?}");
    for (what, email, password, named) in [
        ("a taken e-mail", "ada@EXAMPLE.com", PASSWORD, "e-mail"),
        ("no e-mail", "nobody", PASSWORD, "nobody"),
        ("a short password", "joan@example.com", "short", "the password must have 8 to 256"),
        ("no password", "joan@example.com", "", "the password must have 8 to 256"),
    ] {
        let refused = shell.run(&["user", "add", email], password).await;
        assert!(!refused.status.success(), "{what}: {refused:?}");
        assert!(said(&refused).contains(named), "{what}: {}", said(&refused));
    }

    shell.service.restart().await;
    for (email, is_admin) in
        [("ada@example.com", true), ("grace@example.com", false), ("mary@example.com", true)]
    {
        let user = shell.service.client().sign_in(email, PASSWORD).await;
        assert_eq!(user.user()["isAdmin"], is_admin, "{email}");
    }
    assert_eq!(sign_in(&shell.service, "joan@example.com", "short").await.0, StatusCode::UNAUTHORIZED);
}

async fn a_password_set_from_the_shell_ends_earlier_sign_ins(mode: Mode) {
    const NEW: &str = "a new password, with spaces ";
    let mut shell = Shell::start(mode, "open").await;
    let ada = shell.service.signed_up("ada@example.com").await;
    let grace = shell.service.signed_up("grace@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;

    let done = shell.run(&["user", "passwd", "ADA@example.com"], &format!("{NEW}\n")).await;
    assert!(done.status.success(), "{done:?}");
    let refused = shell.run(&["user", "passwd", "nobody@example.com"], NEW).await;
    assert!(!refused.status.success(), "{refused:?}");
    let refused = shell.run(&["user", "passwd", "grace@example.com"], "short\n").await;
    assert!(!refused.status.success(), "{refused:?}");

    shell.service.restart().await;
    assert_eq!(ada.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&shell.service, "ada@example.com", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    let again = shell.service.client().sign_in("ada@example.com", NEW).await;
    let log = again.read(&format!("/workspaces/{}/audit", text(&again.user()["id"]))).await;
    let actions = log.as_array().expect("a list").iter().map(|line| text(&line["action"]));
    assert!(actions.clone().any(|action| action == "password_changed"), "{log:#}");
    ada.with_token(text(&token["token"])).read("/users/me").await;
    grace.read("/users/me").await;
}

async fn the_shell_changes_an_e_mail_and_ends_nothing(mode: Mode) {
    let mut shell = Shell::start(mode, "open").await;
    let ada = shell.service.signed_up("ada@example.com").await;
    shell.service.signed_up("grace@example.com").await;
    for (old, new, named) in [
        ("nobody@example.com", "new@example.com", "no such account"),
        ("ada@example.com", "GRACE@example.com", "account with this e-mail already"),
        ("ada@example.com", "nobody", "must be an e-mail address"),
    ] {
        let refused = shell.run(&["user", "email", old, new], "").await;
        assert!(!refused.status.success(), "{new}: {refused:?}");
        assert!(said(&refused).contains(named), "{new}: {}", said(&refused));
    }
    let done = shell.run(&["user", "email", "ADA@example.com", "new@example.com"], "").await;
    assert!(done.status.success(), "{done:?}");

    shell.service.restart().await;
    assert_eq!(ada.read("/users/me").await["email"], "new@example.com");
    assert_eq!(sign_in(&shell.service, "ada@example.com", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    shell.service.client().sign_in("new@example.com", PASSWORD).await;
}

async fn the_shell_deletes_an_account_and_no_workspace_that_it_was_not_told_to(mode: Mode) {
    let mut shell = Shell::start(mode, "open").await;
    let ada = shell.service.signed_up("ada@example.com").await;
    let bob = shell.service.signed_up("bob@example.com").await;
    let shared = ada.create("/workspaces", &json!({ "name": "Team" })).await;
    let (team, inside) = (id(&shared), ada.in_workspace(id(&shared)));
    let invitation =
        inside.create(&format!("/workspaces/{team}/invitations"), &json!({ "role": "editor" })).await;
    bob.create("/invitations/accept", &json!({ "token": invitation["token"] })).await;
    let alone = ada.create("/workspaces", &json!({ "name": "Attic" })).await;

    let delete = ["user", "delete", "Ada@example.com"];
    let with_workspaces = ["user", "delete", "ada@example.com", "--with-workspaces"];
    for arguments in [&delete[..], &with_workspaces] {
        let refused = shell.run(arguments, "").await;
        assert!(!refused.status.success(), "{refused:?}");
        let told = said(&refused);
        assert!(told.contains("last owner of the workspace") && told.contains(team), "{told}");
    }
    let promote = ["workspace", "member", team, "bob@example.com", "--role", "owner"];
    let promoted = shell.run(&promote, "").await;
    assert!(promoted.status.success(), "{promoted:?}");
    let refused = shell.run(&delete, "").await;
    assert!(!refused.status.success(), "{refused:?}");
    let told = said(&refused);
    assert!(
        told.contains("Attic") && told.contains(id(&alone)) && told.contains("--with-workspaces"),
        "{told}"
    );
    let done = shell.run(&with_workspaces, "").await;
    assert!(done.status.success(), "{done:?}");
    assert!(!shell.run(&with_workspaces, "").await.status.success(), "it is gone");

    shell.service.restart().await;
    assert_eq!(ada.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&shell.service, "ada@example.com", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    let log = bob.in_workspace(team).read(&format!("/workspaces/{team}/audit")).await;
    let mut lines = log.as_array().expect("a list").iter();
    assert!(lines.any(|line| line["action"] == "member_removed"), "{log:#}");
    let again = shell.service.signed_up("ada@example.com").await;
    assert_ne!(id(again.user()), id(ada.user()), "the e-mail is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_deletes_an_account_beside_the_running_service() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let bob = service.signed_up("bob@example.com").await;
    let path = format!("/workspaces/{}/invitations", id(ada.user()));
    let invitation = ada.create(&path, &json!({ "role": "editor" })).await;
    bob.create("/invitations/accept", &json!({ "token": invitation["token"] })).await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;

    let delete = ["user", "delete", "ada@example.com", "--with-workspaces"];
    let refused = lectern(&delete[..3], "", service.data_dir(), &[]).await;
    assert!(!refused.status.success(), "{refused:?}");
    assert!(
        said(&refused).contains("own workspace") && said(&refused).contains("other members"),
        "{refused:?}"
    );
    ada.read("/users/me").await;
    let done = lectern(&delete, "", service.data_dir(), &[]).await;
    assert!(done.status.success(), "{}", said(&done));
    for client in [&ada, &ada.with_token(text(&token["token"]))] {
        assert_eq!(client.get("/users/me").await.0, StatusCode::UNAUTHORIZED, "from the next request on");
    }
    bob.read("/users/me").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_sets_a_password_beside_the_running_service() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let new = "another battery staple";
    let done = lectern(&["user", "passwd", "ada@example.com"], new, service.data_dir(), &[]).await;
    assert!(done.status.success(), "{}", said(&done));
    let (status, _) = ada.get("/users/me").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "every earlier sign-in has ended");
    service.client().sign_in("ada@example.com", new).await.read("/users/me").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_says_why_it_failed_with_the_log_off_too() {
    let service = Service::start().await;
    let passwd = ["user", "passwd", "nobody@example.com"];
    for filter in ["off", "error", "lectern_api=info"] {
        let refused = lectern(&passwd, PASSWORD, service.data_dir(), &[("LECTERN_LOG", filter)]).await;
        assert_eq!(refused.status.code(), Some(1), "{filter}: {refused:?}");
        let told = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(told.matches("There is no such account.").count(), 1, "{filter}: {told}");
    }
    let refusal = service.sibling().env("LECTERN_LOG", "off").start_refused().await;
    let directory = service.data_dir().to_str().expect("a path of plain text");
    assert!(refusal.log.contains(directory), "the message names no directory: {}", refusal.log);
}

/// A terminal: what is typed into it and shown on it, and the end that a program has.
fn terminal() -> (File, OwnedFd) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("a terminal of our own");
    unlockpt(&terminal).expect("a terminal that can be opened");
    let name = ptsname(&terminal, Vec::<u8>::new()).expect("a terminal with a name");
    // What other tests start must not have it too.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let end = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("its other end");
    (File::from(terminal), end)
}

/// A command that has asked for a password at this end of a terminal.
fn asks_for_password(service: &Service, keyboard: OwnedFd) -> Child {
    let mut command = Command::new(Program::Lectern.path());
    command.args(["user", "add", "ada@example.com"]).env_clear().envs(service.sibling().environment());
    command.stdin(keyboard).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut told = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("type the password") {
        line.clear();
        assert_ne!(told.read_line(&mut line).expect("text"), 0, "no password is asked for");
    }
    child.stderr = Some(told.into_inner());
    child
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_typed_is_not_shown() {
    let service = Service::start().await;
    let (mut terminal, keyboard) = terminal();
    let mut child = asks_for_password(&service, keyboard);

    terminal.write_all(format!("{PASSWORD}\n").as_bytes()).expect("a terminal that is read");
    assert!(child.wait().expect("the command's end").success());
    let mut shown = Vec::new();
    // Once nobody has the other end any more, this ends with an error.
    let _ = terminal.read_to_end(&mut shown);
    assert!(!String::from_utf8_lossy(&shown).contains(PASSWORD), "the password was shown");
    service.client().sign_in("ada@example.com", PASSWORD).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_stopped_at_a_password_leaves_the_terminal_as_it_was() {
    let service = Service::start().await;
    let (_terminal, keyboard) = terminal();
    let shows = || tcgetattr(&keyboard).expect("a terminal").local_modes.contains(LocalModes::ECHO);
    let mut child = asks_for_password(&service, keyboard.try_clone().expect("the same end"));
    assert!(!shows(), "the password would be shown");
    kill_process(Pid::from_child(&child), Signal::INT).expect("a child can be signalled");
    assert!(!child.wait().expect("the command's end").success());
    assert!(shows(), "nothing that is typed would be shown any more");
}

/// The key of these services: without one, a command could make one of its own.
const SECRET: &str = "the secret key of a service that has a shell beside it";

/// A service, and the operator's shell beside it.
struct Shell {
    // The service goes before the database that it uses.
    service: Service,
    database: Option<Database>,
}

impl Shell {
    async fn start(mode: Mode, sign_up: &str) -> Self {
        let database = match mode {
            Mode::Embedded => None,
            Mode::Postgres | Mode::Cluster => Some(Database::fresh().await),
        };
        let setup = Service::in_mode(mode).env("LECTERN_SECRET_KEY", SECRET).env("LECTERN_SIGN_UP", sign_up);
        let with_url = |setup: Setup, database: &Database| setup.database_url(database.url());
        let setup = database.iter().fold(setup, with_url);
        Self { service: setup.start().await, database }
    }

    /// Runs a command over the service's data, which the service is stopped for.
    async fn run(&mut self, arguments: &[&str], stdin: &str) -> Output {
        if self.service.client().is_ready().await {
            self.service.terminate().await;
        }
        let mut env = vec![("LECTERN_SECRET_KEY", SECRET)];
        env.extend(self.database.iter().map(|database| ("DATABASE_URL", database.url())));
        lectern(arguments, stdin, self.service.data_dir(), &env).await
    }
}

/// Runs a command to its end.
pub async fn lectern(arguments: &[&str], stdin: &str, data_dir: &Path, env: &[(&str, &str)]) -> Output {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_lectern"));
    command.args(arguments).env_clear().envs(env.iter().copied());
    command
        .env("LECTERN_DATA_DIR", data_dir)
        .env("LECTERN_EMBEDDER", "none")
        .env("LECTERN_LOG_FORMAT", "json");
    for name in ["PATH", "LLVM_PROFILE_FILE"].map(OsStr::new) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // A command that is refused at once reads nothing.
    let _ = pipe.write_all(stdin.as_bytes()).await;
    drop(pipe);
    within_deadline("the command's end", child.wait_with_output()).await.expect("the command's output")
}

/// Everything that a command wrote.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
