//! The walls around whatever reads strangers' bytes: limits, Landlock and seccomp.
//!
//! A parser that has been taken over still has the service's account, and as that account it could read the service's
//! memory, its database and its key, and speak to what listens on this machine. Limits take from it what it could use up;
//! Landlock takes the files, and seccomp every call into the system that parsing has no use for. Each wall alone would keep
//! files and other processes out of reach, so a kernel that lacks one is worth a warning and not a refusal.
//!
//! The child puts up all of them ([`inside`]). The worker asks for those around a program that the operator named
//! ([`confine_thread`]), which is given strangers' bytes too.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls;
#[cfg(target_os = "linux")]
mod files;
mod trial;

use std::{
    fmt::{self, Display},
    io,
    path::PathBuf,
};

use rustix::process::Resource;
#[cfg(target_os = "linux")]
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

pub(crate) use self::trial::run as try_everything;
pub use self::trial::{ConfinementReport, ForbiddenResource};

/// Stack of the thread that parses, in bytes: deep nesting that is honest fits, and one that is not ends this process only.
const STACK: usize = 64 * 1024 * 1024;

/// Descriptors a parser needs: the three standard ones, the private one and room for the start of a thread.
const DESCRIPTORS: u64 = 16;

/// A wall that a kernel may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfinementLayer {
    /// Keeps from files, from other processes, and in newer kernels from TCP.
    Landlock,
    /// Keeps from all calls into the system that are not named.
    Seccomp,
}

impl Display for ConfinementLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
        })
    }
}

/// What a parser may use up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceLimits {
    /// Address space, in bytes.
    pub(crate) memory_bytes: u64,
    /// Processor time, in seconds.
    pub(crate) cpu_seconds: u64,
}

/// Runs `work` in a thread of its own, with every wall around this process that the system has, and tells it which are
/// missing. What has to be opened first is for `open`. The walls stay: nothing but ending is left for this process to do
/// afterwards.
pub(crate) fn inside(
    bounds: ResourceLimits,
    open: impl FnOnce(),
    work: impl FnOnce(&[ConfinementLayer]) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    apply_limits(bounds)?;
    open();
    // It is of no use to a parser that the service runs as root.
    #[cfg(target_os = "linux")]
    drop_capabilities(CapabilitySet::all())?;
    // It holds for this thread and for those that it starts from now on, so it comes before the other thread.
    let landlock = restrict_files()?;
    let parsing = std::thread::Builder::new().name("parse".into()).stack_size(STACK);
    let thread = parsing.spawn(move || {
        forbid_threads()?;
        // It holds for all threads at once: memory is theirs together, so one without it would be a way around it.
        let seccomp = restrict_syscalls()?;
        work(&missing([(ConfinementLayer::Landlock, landlock), (ConfinementLayer::Seccomp, seccomp)]))
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the parser panicked")))
}

/// Takes from this process what a parser has no use for. Whatever of it fails to be set ends the child: no parse
/// without limits.
fn apply_limits(bounds: ResourceLimits) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, Signal};
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // First to go when memory is short. Not every container lets a process write it.
        let _unwritable = std::fs::write("/proc/self/oom_score_adj", "1000");
        // After the line above: it takes /proc/self away from this process.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        rustix::thread::set_no_new_privs(true)?;
        limit(Resource::As, bounds.memory_bytes)?;
    }
    limit(Resource::Cpu, bounds.cpu_seconds)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nofile, DESCRIPTORS)
}

/// What root may do that would lead around the walls: look into processes and at any file, and change the system.
#[cfg(target_os = "linux")]
const WAYS_AROUND: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_RESOURCE);

/// Takes privileges of root from this thread and from what it starts. An account that has none loses none.
#[cfg(target_os = "linux")]
fn drop_capabilities(privileges: CapabilitySet) -> io::Result<()> {
    use rustix::thread::{CapabilitySets, capabilities, set_capabilities};
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    if !(effective | permitted | inheritable).intersects(privileges) {
        return Ok(());
    }
    let kept = CapabilitySets {
        effective: effective.difference(privileges),
        permitted: permitted.difference(privileges),
        inheritable: inheritable.difference(privileges),
    };
    // Programs that are started would have them back otherwise.
    rustix::thread::set_no_new_privs(true)?;
    Ok(set_capabilities(None, kept)?)
}

/// No thread and no process can be started from here on.
fn forbid_threads() -> io::Result<()> {
    if cfg!(target_os = "linux") { limit(Resource::Nproc, 0) } else { Ok(()) }
}

/// Lowers a limit for good. One that is already lower stays.
fn limit(resource: Resource, value: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

/// Takes all files from this thread and from those that it starts. Whether there is such a wall.
fn restrict_files() -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return files::close();
    #[cfg(not(target_os = "linux"))]
    Ok(false)
}

/// Takes from all threads the calls into the system that parsing has no use for. Whether there is such a wall.
fn restrict_syscalls() -> io::Result<bool> {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    return calls::close();
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    Ok(false)
}

/// How the name of a folder begins that is made for one run of a program that the operator named. By it the folders of all
/// other runs are kept from a run, those that are made meanwhile and those of other processes of the service included.
pub const RUN_FOLDER: &str = "lectern-run-";

/// What a program that the operator named may reach, when it is given strangers' bytes.
#[derive(Debug, Clone)]
pub struct AccessGrant {
    /// Folders and files that it must not.
    pub hidden: Vec<PathBuf>,
    /// Its own folder, which it may wherever that lies. What lies beside it and is called like it, it must not.
    pub folder: PathBuf,
    /// Whether it may have sockets.
    pub network: bool,
}

/// Puts walls around this thread and around the processes that it starts, and tells which the system lacks. They stay, so the
/// thread has to be one that ends.
pub fn confine_thread(grant: &AccessGrant) -> io::Result<Vec<ConfinementLayer>> {
    #[cfg(target_os = "linux")]
    drop_capabilities(WAYS_AROUND)?;
    let stands = [
        (ConfinementLayer::Landlock, hide_files(grant)?),
        (ConfinementLayer::Seccomp, refuse_dangerous_calls(grant)?),
    ];
    Ok(missing(stands))
}

/// Takes what is hidden, and the memory of every other process. Whether there is such a wall.
fn hide_files(grant: &AccessGrant) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return files::hide(grant);
    #[cfg(not(target_os = "linux"))]
    {
        let _nothing_to_hide_with = grant;
        Ok(false)
    }
}

/// Takes what is dangerous, and sockets. Whether there is such a wall.
fn refuse_dangerous_calls(grant: &AccessGrant) -> io::Result<bool> {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    return calls::refuse_dangerous(grant.network);
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let _nothing_to_refuse_with = grant;
        Ok(false)
    }
}

fn missing(stands: [(ConfinementLayer, bool); 2]) -> Vec<ConfinementLayer> {
    stands.into_iter().filter(|(_, stands)| !stands).map(|(wall, _)| wall).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
