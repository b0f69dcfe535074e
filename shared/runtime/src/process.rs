//! What every program of the service does around its work: settings, logging, signals, and asking a running one how it is.

use std::{
    fmt::Display,
    io::{Write, stderr},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use futures::future::LocalBoxFuture;
use lectern_shared::{
    config::{ConfigError, LogFormat, Settings, SettingsSource},
    egress, open_files,
    shutdown::Shutdown,
    telemetry::{self, Telemetry},
};

use crate::{ProcessRole, Runtime, RuntimeStartError, key_notice::KeyNotice};

/// How long blocking work may take to end after everything else has.
const EXIT_WITHIN: Duration = Duration::from_secs(2);
/// How often the clock of leases is set by the database's.
const CLOCK_EVERY: Duration = Duration::from_mins(1);
/// The longest that a running process may take to say how it is.
const HEALTH_WITHIN: Duration = Duration::from_secs(5);

/// Anything that ends a program, in words for the operator.
pub type FatalError = Box<dyn std::error::Error>;

/// Closes this process to others of its account, which could else read its memory and the secrets in its environment; what
/// it starts gains no rights by being started, and no file that whoever started this one had open. It is the first thing that a
/// program with secrets does. To a process of root it stays open. A crash leaves no memory on the disk any more.
pub fn shield() {
    close_fds::set_fds_cloexec(3, &[]);
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Nothing is logged yet; `open` says what is missing.
        let _said_later = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _said_later = rustix::thread::set_no_new_privs(true);
    }
}

/// Whether [`shield`] has worked.
fn is_shielded() -> bool {
    #[cfg(target_os = "linux")]
    return rustix::process::dumpable_behavior()
        .is_ok_and(|behavior| behavior == rustix::process::DumpableBehavior::NotDumpable);
    #[cfg(not(target_os = "linux"))]
    false
}

/// Reads the settings, the TOML file `config` among them, begins to log, and runs `work`. A failure is told on standard error.
pub fn run<F: Future<Output = Result<(), FatalError>>>(
    config: Option<&Path>,
    work: impl FnOnce(Settings) -> F,
) -> ExitCode {
    let (settings, runtime, mut telemetry) = match prepare(config) {
        Ok(prepared) => prepared,
        Err(failure) => {
            // What fails before logging is set up must be seen all the same.
            let _lines = telemetry::init("info", LogFormat::Text, None);
            tracing::error!("{failure}");
            return ExitCode::FAILURE;
        }
    };
    let end = runtime.block_on(work(settings));
    if let Err(failure) = &end {
        tell(failure);
    }
    telemetry.finish();
    // Blocking work that nobody waits for any more (a name that does not resolve, say) must not keep the process.
    runtime.shutdown_timeout(EXIT_WITHIN);
    if end.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Logs what a program or a command could not do. Whoever started it must learn that in any case, so it is written without the log
/// where the log's filter drops it.
pub fn tell(failure: &impl Display) {
    if tracing::event_enabled!(tracing::Level::ERROR) {
        tracing::error!("{failure}");
    } else {
        let _unheard = writeln!(stderr(), "error: {failure}");
    }
}

fn prepare(config: Option<&Path>) -> Result<(Settings, tokio::runtime::Runtime, Telemetry), FatalError> {
    let (source, settings) = load(config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| format!("the program cannot get what it needs of the system: {error}"))?;
    let telemetry = {
        let _inside = runtime.enter();
        telemetry::init(&settings.log, settings.log_format, Some(&settings.tracing))?
    };
    for name in source.unknown() {
        tracing::warn!(name, "this variable is no setting of this version; is it misspelt?");
    }
    for name in source.ineffective() {
        tracing::warn!(name, "this setting has no effect beside the others");
    }
    open_files::raise_limit();
    Ok((settings, runtime, telemetry))
}

fn load(config: Option<&Path>) -> Result<(SettingsSource, Settings), ConfigError> {
    let environment = SettingsSource::environment()?;
    let source = match config {
        Some(path) => environment.with_file(path)?,
        None => environment,
    };
    let settings = Settings::load(&source)?;
    Ok((source, settings))
}

/// Opens every part, says under which key is encrypted from now on, and begins to get the embedding model and to keep the time; none when the process was asked to stop before
/// all parts were there. Boxed here, so that it is compiled once and not again for each program.
pub fn open(
    settings: Settings,
    role: ProcessRole,
    shutdown: &Shutdown,
) -> LocalBoxFuture<'_, Result<Option<Runtime>, RuntimeStartError>> {
    Box::pin(open_until(settings, role, shutdown))
}

async fn open_until(
    settings: Settings,
    role: ProcessRole,
    shutdown: &Shutdown,
) -> Result<Option<Runtime>, RuntimeStartError> {
    open_files::tell_raised();
    if !is_shielded() {
        tracing::warn!(
            "other programs of this account can read the memory of this one: the system has no way to prevent it"
        );
    }
    tokio::select! {
        started = Runtime::start(settings, role) => {
            let mut runtime = started?;
            runtime.key_notice = Some(KeyNotice::give(&runtime, shutdown).await?);
            runtime.models.start(&runtime.clock, shutdown);
            runtime.jobs.keep_time(CLOCK_EVERY, shutdown);
            Ok(Some(runtime))
        }
        // A server that does not answer must not keep the process from being stopped.
        () = shutdown.soft().cancelled() => Ok(None),
    }
}

/// Where a process of this machine is reached that listens on `addr`.
pub fn local_address(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}

/// Asks the process that listens on `addr` whether it is ready, for a container's health check.
pub async fn ask_health(addr: SocketAddr) -> Result<(), FatalError> {
    let url = format!("http://{}/health/ready", local_address(addr));
    let client = egress::operator_client(HEALTH_WITHIN, HEALTH_WITHIN)?;
    let answer = client.get(&url).send().await;
    let response =
        answer.map_err(|error| format!("{url} does not answer: {}", egress::why_unanswered(&error)))?;
    if response.status().is_success() {
        return Ok(());
    }
    Err(format!("{url} answers {}", response.status()).into())
}
