//! How many files and connections this process may have open. What it starts with is often 1,024, for the sake of programs that
//! could not count further.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than all connections, files and pipes of a process together. A hard limit can be a thousand million, and programs that
/// are started from here may try to close as many.
const ENOUGH: u64 = 65_536;

/// What the limit was before it was raised, and what it is since.
static RAISED: OnceLock<(u64, u64)> = OnceLock::new();

/// Raises the limit as far as the system lets this process.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    let Some(before) = current.filter(|current| *current < most) else { return };
    match setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }) {
        Ok(()) => {
            let _ = RAISED.set((before, most));
        }
        Err(error) => tracing::warn!(limit = before, %error, "the limit of open files cannot be raised"),
    }
}

/// Says in the log that the limit was raised. A service does; for a command of the operator's it is beside the point.
pub fn tell_raised() {
    if let Some((before, now)) = RAISED.get() {
        tracing::info!(before, now, "the limit of open files was raised");
    }
}

/// The limit as it is; none when there is none.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
