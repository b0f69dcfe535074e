//! What a parser could reach from behind its walls, found out by trying.
//!
//! What a kernel says it has is not what holds: a container's runtime may refuse the calls that put walls up, and another
//! system may answer them and do nothing. So a child like those that parse is started, and tries.

use std::{
    fmt::{self, Display},
    fs::File,
    io::{self, Read, Write},
    net::UdpSocket,
    os::unix::net::UnixDatagram,
    process::{Command, Stdio},
};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::{ConfinementLayer, ResourceLimits};
use crate::protocol::PARSE_COMMAND;

/// Enough for a stack and the binary; what is tried needs next to nothing.
const BOUNDS: ResourceLimits = ResourceLimits { memory_bytes: 1024 * 1024 * 1024, cpu_seconds: 10 };

/// A file that would be made in the child's own folder.
const NEW_FILE: &str = "made";

/// What a parser has no business with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForbiddenResource {
    /// The environment of the service, with the secrets that are in it.
    Environment,
    /// Files: to read one, or to make one.
    Files,
    /// Sockets.
    Network,
    /// Other programs: to start one.
    Programs,
    /// Other processes: to send the service a signal.
    Processes,
}

impl ForbiddenResource {
    const ALL: [Self; 5] = [Self::Environment, Self::Files, Self::Network, Self::Programs, Self::Processes];

    /// Whether this process has it.
    fn is_open(self) -> bool {
        let parent = rustix::process::getppid();
        match self {
            Self::Environment => parent.is_some_and(|parent| {
                let path = format!("/proc/{}/environ", Pid::as_raw(Some(parent)));
                File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok()
            }),
            Self::Files => File::open("/").is_ok() || File::create(NEW_FILE).is_ok(),
            Self::Network => UdpSocket::bind(("127.0.0.1", 0)).is_ok() || UnixDatagram::unbound().is_ok(),
            Self::Programs => starts_a_program(),
            Self::Processes => {
                parent.is_some_and(|parent| rustix::process::test_kill_process(parent).is_ok())
            }
        }
    }
}

impl Display for ForbiddenResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "the service's environment",
            Self::Files => "files",
            Self::Network => "the network",
            Self::Programs => "other programs",
            Self::Processes => "other processes",
        })
    }
}

/// Its own program is one that is there for certain. It ends at once: nothing is on its standard input.
fn starts_a_program() -> bool {
    let nothing = Stdio::null;
    let program = Command::new("/proc/self/exe")
        .arg(PARSE_COMMAND)
        .stdin(nothing())
        .stdout(nothing())
        .stderr(nothing())
        .spawn();
    // What was started is waited for, so that it does not outlive this process.
    program.and_then(|mut program| program.wait()).is_ok()
}

/// What stands around parsers on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinementReport {
    /// The walls that the system lacks.
    pub missing: Vec<ConfinementLayer>,
    /// What a parser reached all the same.
    pub reached: Vec<ForbiddenResource>,
}

impl ConfinementReport {
    /// Whether all walls stand and nothing was reached.
    pub fn is_confined(&self) -> bool {
        self.missing.is_empty() && self.reached.is_empty()
    }
}

impl Display for ConfinementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |words: Vec<String>| words.join(", ");
        if !self.missing.is_empty() {
            let missing = list(self.missing.iter().map(ConfinementLayer::to_string).collect());
            write!(
                f,
                "parsers have no {missing} around them: the system does not have it, or withholds it; "
            )?;
        }
        if self.reached.is_empty() {
            f.write_str("tried just now, a parser reaches no files, no network and no other process")
        } else {
            write!(
                f,
                "tried just now, a parser reaches {}",
                list(self.reached.iter().map(ForbiddenResource::to_string).collect())
            )
        }
    }
}

/// The child's side: puts the walls up, tries everything, and writes what came of it.
pub(crate) fn run(mut output: File) -> io::Result<()> {
    super::inside(
        BOUNDS,
        || {},
        move |missing| {
            let reached = ForbiddenResource::ALL.into_iter().filter(|reach| reach.is_open()).collect();
            let walls = ConfinementReport { missing: missing.to_vec(), reached };
            output.write_all(&serde_json::to_vec(&walls)?)
        },
    )
}
