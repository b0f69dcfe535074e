//! `lectern`: the API and the worker in one process, with nothing else to install.

mod backup;
mod doctor;
mod evaluate;
mod jobs;
mod model;
mod password;
mod reembed;
mod reencrypt;
mod reingest;
mod workspaces;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use backup::command::{BackupArgs, RestoreArgs};
use clap::{Parser, Subcommand};
use doctor::command::DoctorArgs;
use evaluate::EvalArgs;
use jobs::{JobsCommand, say};
use lectern_api::HttpInterface;
use lectern_parse::child;
use lectern_runtime::{
    ProcessRole, Runtime,
    process::{self, FatalError},
};
use lectern_shared::{config::Settings, model::document::DocumentType, shutdown::Shutdown};
use lectern_worker::{ParsingTools, preview};
use model::ModelCommand;
use reingest::ReingestArgs;
use workspaces::WorkspaceCommand;

/// Documents, and agents that answer from them.
#[derive(Parser)]
#[command(version)]
struct LecternCli {
    /// A TOML file with settings; the environment wins over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<LecternCommand>,
}

#[derive(Subcommand)]
enum LecternCommand {
    /// Run the service (what happens without a command).
    Serve,
    /// Bring the database's schema up to date, and end. In an empty PostgreSQL database it is made; a SQLite file has to be there.
    Migrate,
    /// Index every searchable document again from its stored passages, in the index that is set: after a change of
    /// `QDRANT_URL`, or when Qdrant lost its data. Nothing else of this installation may run meanwhile.
    Reindex,
    /// Embed every document anew with the model that is set, from its stored passages: after a change of the model. On SQLite
    /// the service must not be running.
    Reembed,
    /// Read PDFs again from their sources, as if these had changed: what a lesser engine read, or all. The service may be running,
    /// and does the work; without it, it is done when the service starts.
    Reingest(ReingestArgs),
    /// Encrypt under `LECTERN_SECRET_KEY` what is still under `LECTERN_SECRET_KEY_PREVIOUS`, so that the latter can be unset.
    /// The service may run meanwhile, every process of it with the new key.
    Reencrypt,
    /// Copy the database, the uploaded files and the key into a new folder, while the service runs. Only over SQLite.
    Backup(BackupArgs),
    /// Make an installation of a backup, in a data directory that is empty.
    Restore(RestoreArgs),
    /// Look at the database, the key, the queue, the index, the blobs and the model: what is wrong, and what to do. Works while
    /// the service runs, and when it cannot start.
    Doctor(DoctorArgs),
    /// Download models for embeddings and rerankers. Needs no running service.
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Show how a file would be read and cut into passages, as JSON. Needs no running service.
    Parse {
        /// The file.
        file: PathBuf,
        /// The document's type: TXT, PDF, VIDEO, CSV or URL. What the bytes are decides before it.
        #[arg(long, default_value = "TXT", value_parser = document_type)]
        r#type: DocumentType,
        /// Only the text.
        #[arg(long)]
        text: bool,
    },
    /// Run an evaluation of a running service, and fail when something is below a threshold.
    Eval(EvalArgs),
    /// Ask the running service whether it is ready.
    Health,
    /// See the jobs of all users, and have them tried again or stopped. The service may be running.
    Jobs {
        #[command(subcommand)]
        command: JobsCommand,
    },
    /// Manage accounts.
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// See workspaces, what they may hold, and who is a member. The service may be running.
    Workspace {
        #[command(subcommand)]
        command: WorkspaceCommand,
    },
}

#[derive(Subcommand)]
enum UserCommand {
    /// Add an account; the password is read from standard input.
    Add {
        /// The account's e-mail.
        email: String,
        /// May use the operator's endpoints.
        #[arg(long)]
        admin: bool,
    },
    /// Make an account an admin, who may use the operator's endpoints. It counts from the account's next request on.
    Admin {
        /// The account's e-mail.
        email: String,
        /// Make it an ordinary account again.
        #[arg(long)]
        revoke: bool,
    },
    /// Set an account's password, read from standard input; every earlier sign-in ends.
    Passwd {
        /// The account's e-mail.
        email: String,
    },
    /// Give an account another e-mail. Its sign-ins and API tokens go on.
    Email {
        /// The account's e-mail.
        email: String,
        /// The one that it gets.
        new: String,
    },
    /// Delete an account and its own workspace, with everything in that; what it made in workspaces of others stays there. There is no way
    /// back. The service refuses the account's credentials from the next request on.
    Delete {
        /// The account's e-mail.
        email: String,
        /// Delete the workspaces too that nobody else is a member of, and its own one with other members in it.
        #[arg(long)]
        with_workspaces: bool,
    },
    /// Forget who at the provider of OpenID Connect an account belongs to; every earlier sign-in ends. Whoever signs in there next
    /// with the account's e-mail gets it.
    Unlink {
        /// The account's e-mail.
        email: String,
    },
}

fn main() -> ExitCode {
    // A parsing child has nothing in common with the service but the binary.
    if child::is_child() {
        return child::main();
    }
    process::shield();
    let LecternCli { config, command } = LecternCli::parse();
    process::run(config.as_deref(), async |settings| match command.unwrap_or(LecternCommand::Serve) {
        LecternCommand::Serve => Box::pin(serve(settings)).await,
        LecternCommand::Migrate => {
            lectern_runtime::require_file(&settings)?;
            Runtime::start(settings, ProcessRole::Whole).await?.close().await;
            say("the schema is up to date")
        }
        LecternCommand::Reindex => {
            let documents = Runtime::reindex(settings).await?;
            say(&format!("queued: {documents}; they are indexed when the service runs"))
        }
        LecternCommand::Reembed => Box::pin(reembed::run(settings)).await,
        LecternCommand::Reingest(args) => reingest::run(settings, args).await,
        LecternCommand::Reencrypt => reencrypt::command::run(settings).await,
        LecternCommand::Backup(args) => Box::pin(backup::command::make(&settings, &args)).await,
        LecternCommand::Restore(args) => Box::pin(backup::command::restore(&settings, &args)).await,
        LecternCommand::Doctor(args) => doctor::command::run(&settings, &args).await,
        LecternCommand::Model { command } => model::run(&settings, command).await,
        LecternCommand::Parse { file, r#type, text } => parse(&settings, &file, r#type, text).await,
        LecternCommand::Eval(args) => evaluate::run(&settings, &args).await,
        LecternCommand::Health => process::ask_health(settings.addr).await,
        LecternCommand::Jobs { command } => jobs::run(settings, command).await,
        LecternCommand::User { command } => Box::pin(user(settings, command)).await,
        LecternCommand::Workspace { command } => Box::pin(workspaces::run(settings, command)).await,
    })
}

async fn serve(settings: Settings) -> Result<(), FatalError> {
    lectern_api::check_settings(&settings)?;
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let interface = HttpInterface::prepare();
    let opened = process::open(settings.clone(), ProcessRole::Whole, &shutdown);
    let (opened, tools) = tokio::join!(opened, ParsingTools::open(&settings, &shutdown));
    let Some(runtime) = opened? else { return Ok(()) };
    let Some(tools) = tools? else {
        shutdown.finished(runtime.close()).await;
        return Ok(());
    };
    let listener = lectern_api::bind(&runtime)?;
    lectern_worker::start(&runtime, tools, &shutdown).await?;
    lectern_api::run(runtime, listener, interface, &shutdown).await
}

fn document_type(text: &str) -> Result<DocumentType, String> {
    text.parse().map_err(|_| format!("it must be one of {}", DocumentType::choices()))
}

async fn parse(settings: &Settings, file: &Path, r#type: DocumentType, text: bool) -> Result<(), FatalError> {
    let preview = preview::read(file, r#type, settings).await?;
    let mut out = if text { preview.text } else { serde_json::to_string_pretty(&preview)? };
    out.push('\n');
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(())
}

async fn user(settings: Settings, command: UserCommand) -> Result<(), FatalError> {
    let runtime = Runtime::start(settings, ProcessRole::Command).await?;
    let accounts = lectern_api::accounts(&runtime);
    let id = match command {
        UserCommand::Add { email, admin } => accounts.add(&email, password::read().await?, admin).await?,
        UserCommand::Admin { email, revoke } => accounts.set_admin(&email, !revoke).await?,
        UserCommand::Email { email, new } => accounts.set_email(&email, &new).await?,
        UserCommand::Delete { email, with_workspaces } => {
            accounts.remove_account(&email, with_workspaces).await?
        }
        UserCommand::Unlink { email } => accounts.unlink(&email).await?,
        UserCommand::Passwd { email } => accounts.set_password(&email, password::read().await?).await?,
    };
    runtime.close().await;
    say(&format!("{id}  done"))
}

#[cfg(test)]
mod tests {
    use lectern_api::{ANSWER_METRICS, RETRIEVAL_METRICS};

    use super::*;

    /// What is said instead of running a command.
    fn said(arguments: &[&str]) -> String {
        let line = ["lectern"].iter().chain(arguments);
        LecternCli::try_parse_from(line).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn whoever_names_no_type_of_documents_is_told_which_there_are() {
        for arguments in [&["parse", "--type", "FOO", "file"][..], &["parse", "--help"]] {
            let said = said(arguments);
            assert!(DocumentType::ALL.iter().all(|known| said.contains(known.as_str())), "{said}");
        }
    }

    #[test]
    fn whoever_says_not_which_jobs_are_meant_is_told_both_ways_to_do_so() {
        for change in ["retry", "discard"] {
            let said = said(&["jobs", change]);
            assert!(said.contains("<IDS>...") && said.contains("<--dead|--state <STATE>>"), "{said}");
        }
    }

    #[test]
    fn a_quota_that_is_no_size_is_answered_with_one() {
        let said = said(&["workspace", "quotas", "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55", "--bytes", "10XB"]);
        assert!(said.contains("such as 10GiB"), "{said}");
    }

    #[test]
    fn the_help_of_an_evaluation_names_what_it_measures() {
        let said = said(&["eval", "--help"]);
        assert!(
            RETRIEVAL_METRICS.iter().chain(&ANSWER_METRICS).all(|metric| said.contains(metric)),
            "{said}"
        );
    }
}
