//! `lectern`: the API and the worker in one process, with nothing else to install.

use std::{io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use lectern_api::accounts;
use lectern_shared::{
    config::{Settings, Source},
    runtime::Runtime,
    shutdown::Shutdown,
    telemetry,
};
use lectern_worker::sandbox;
use secrecy::SecretString;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    sync::oneshot,
};

/// Documents, and agents that answer from them.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// A TOML file with settings; the environment wins over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service (what happens without a command).
    Serve,
    /// Bring the database's schema up to date, and end.
    Migrate,
    /// Manage accounts. The service must not be running on the same data directory.
    User {
        #[command(subcommand)]
        command: UserCommand,
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
    /// Set an account's password, read from standard input; every earlier sign-in ends.
    Passwd {
        /// The account's e-mail.
        email: String,
    },
}

/// How long blocking work may take to end after everything else has.
const EXIT_WITHIN: Duration = Duration::from_secs(2);

/// Anything that ends the program, in words for the operator.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    // A parsing child has nothing in common with the service but the binary.
    if sandbox::is_child() {
        return sandbox::child_main();
    }
    let cli = Cli::parse();
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tracing::error!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn start(cli: Cli) -> Result<(), Failure> {
    let loaded = Source::environment().and_then(|source| match &cli.config {
        Some(path) => source.with_file(path),
        None => Ok(source),
    });
    let (source, settings) = match loaded.and_then(|source| Ok((Settings::load(&source)?, source))) {
        Ok((settings, source)) => (source, settings),
        Err(error) => {
            // Logging is not set up yet; the message must be seen all the same.
            telemetry::init("info", lectern_shared::config::LogFormat::Text)?;
            return Err(error.into());
        }
    };
    telemetry::init(&settings.log, settings.log_format)?;
    for name in source.unknown() {
        tracing::warn!(name, "this variable is no setting of this version; is it misspelt?");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let end = runtime.block_on(async {
        match cli.command.unwrap_or(Command::Serve) {
            Command::Serve => serve(settings).await,
            Command::Migrate => {
                Runtime::start(settings).await?.db.close().await;
                tracing::info!("the schema is up to date");
                Ok(())
            }
            Command::User { command } => user(settings, command).await,
        }
    });
    // Blocking work that nobody waits for any more (a name that does not resolve, say) must not keep the process.
    runtime.shutdown_timeout(EXIT_WITHIN);
    end
}

async fn serve(settings: Settings) -> Result<(), Failure> {
    lectern_api::check_settings(&settings)?;
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let addr = settings.addr;
    let runtime = tokio::select! {
        started = Runtime::start(settings) => started?,
        // A database that hangs must not keep the process from being stopped.
        () = shutdown.soft().cancelled() => return Ok(()),
    };
    let listener = TcpListener::bind(addr)
        .await
        .map_err(|error| format!("LECTERN_ADDR: {addr} cannot be listened on: {error}"))?;
    lectern_worker::start(&runtime, &shutdown).await?;
    let addr = listener.local_addr()?;
    tracing::info!(addr = %addr, data = %runtime.settings.data_dir.display(), "listening");
    tracing::warn!("no embedding model is in use: documents are found by words, not by meaning");
    let (served, result) = oneshot::channel();
    let server = lectern_api::serve(runtime.clone(), listener, shutdown.clone());
    let stopping = shutdown.clone();
    // Tracked like everything else, so that a request which never ends cannot keep the service from stopping.
    shutdown.spawn(async move {
        let end = server.await;
        // A server that ended by itself has failed; nothing is left to do.
        stopping.begin();
        let _ = served.send(end);
    });
    shutdown.finished().await;
    runtime.db.close().await;
    tracing::info!("stopped");
    match result.await {
        Ok(end) => Ok(end?),
        // Dropped in the middle of a request.
        Err(_) => Ok(()),
    }
}

async fn user(settings: Settings, command: UserCommand) -> Result<(), Failure> {
    let runtime = Runtime::start(settings).await?;
    if std::io::stdin().is_terminal() {
        tracing::info!("type the password, then Enter");
    }
    let mut line = String::new();
    BufReader::new(tokio::io::stdin()).read_line(&mut line).await?;
    let password = SecretString::from(line.trim_end_matches(['\r', '\n']));
    let id = match command {
        UserCommand::Add { email, admin } => accounts::add(&runtime, &email, password, admin).await?,
        UserCommand::Passwd { email } => accounts::set_password(&runtime, &email, password).await?,
    };
    runtime.db.close().await;
    tracing::info!(user = %id, "done");
    Ok(())
}
