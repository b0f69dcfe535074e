//! How many files and connections this process may have open. What it starts with is often 1,024, for the sake of programs that
//! could not count further.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than all connections, files and pipes of a process together. A hard limit can be a thousand million, and programs that
/// are started from here may try to close as many.
const ENOUGH: u64 = 65_536;

/// Raises the limit as far as the system lets this process, and says so in the log.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    let Some(before) = current.filter(|current| *current < most) else { return };
    match setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }) {
        Ok(()) => tracing::info!(before, now = most, "the limit of open files was raised"),
        Err(error) => tracing::warn!(limit = before, %error, "the limit of open files cannot be raised"),
    }
}

/// The limit as it is; none when there is none.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
