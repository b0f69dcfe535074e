//! What can be reached from behind the walls: this test program starts itself again, puts walls up, and tries.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test ends by panicking, and tells its own child by variables what to try"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    fs::{File, OpenOptions},
    io::{IoSliceMut, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::{
        net::{UnixListener, UnixStream},
        process::CommandExt as _,
    },
    process::{Child, Command},
    sync::mpsc,
};

use nix::{
    errno::Errno,
    sys::{
        ptrace,
        uio::{RemoteIoVec, process_vm_readv},
    },
};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Rlimit, Signal};

use super::*;

const WALLS: &str = "TEST_WALLS";
const FOLDER: &str = "TEST_FOLDER";
const PORT: &str = "TEST_PORT";
const VICTIM: &str = "TEST_VICTIM";
const SAID: &str = "tried ";

/// Which walls the child puts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Nothing,
    Landlock,
    Seccomp,
    /// As a parser has them.
    Everything,
}

const ALL: [Around; 4] = [Around::Nothing, Around::Landlock, Around::Seccomp, Around::Everything];

/// Runs as a child of the other tests, which tell it what to put up.
#[test]
#[ignore = "is started by the tests below"]
fn tries_everything() {
    let Ok(walls) = env::var(WALLS) else { return };
    let walls = ALL.into_iter().find(|around| format!("{around:?}") == walls).unwrap();
    let (go, wait) = mpsc::channel();
    // One that is there before the walls are.
    let elder = std::thread::spawn(move || {
        wait.recv().unwrap();
        say("a socket in a thread that was there before", has_datagrams());
    });
    match walls {
        Around::Nothing => try_all(),
        Around::Landlock => {
            say("put up Landlock", files::close().unwrap());
            try_all();
        }
        Around::Seccomp => {
            say("put up seccomp", calls::close().unwrap());
            try_all();
        }
        Around::Everything => {
            let bounds = ResourceLimits { memory_bytes: 8 << 30, cpu_seconds: 60 };
            let tried = inside(
                bounds,
                || {},
                |missing| {
                    say("put up Landlock", !missing.contains(&ConfinementLayer::Landlock));
                    say("put up seccomp", !missing.contains(&ConfinementLayer::Seccomp));
                    try_all();
                    Ok(())
                },
            );
            tried.unwrap();
        }
    }
    go.send(()).unwrap();
    elder.join().unwrap();
    // It does not come back when it is let.
    let error = Command::new("/bin/echo").args(["\ntried", "to become another program: yes"]).exec();
    say("to become another program", error.raw_os_error().is_none());
}

fn has_datagrams() -> bool {
    std::net::UdpSocket::bind(("127.0.0.1", 0)).is_ok()
}

fn say(what: &str, done: bool) {
    let done = if done { "yes" } else { "no" };
    // The harness has begun a line.
    let mut stdout = std::io::stdout();
    write!(stdout, "\n{SAID}{what}: {done}\n").unwrap();
}

fn try_all() {
    let parent = rustix::process::getppid().unwrap().as_raw_nonzero();
    let folder = PathBuf::from(env::var_os(FOLDER).unwrap());
    let victim: i32 = env::var(VICTIM).unwrap().parse().unwrap();
    let victim_pid = Pid::from_raw(victim).unwrap();
    let port: u16 = env::var(PORT).unwrap().parse().unwrap();
    let reads = |path: &std::path::Path| fs::read(path).is_ok();

    say("the parent's environment", reads(format!("/proc/{parent}/environ").as_ref()));
    say("the parent's memory", File::open(format!("/proc/{parent}/mem")).is_ok());
    say("to read the database", reads(&folder.join("lectern.db")));
    say("to write the database", OpenOptions::new().append(true).open(folder.join("lectern.db")).is_ok());
    say("to make a file", File::create(folder.join("made")).is_ok());
    say("to list a folder", fs::read_dir("/").is_ok());
    say("loopback", TcpStream::connect(("127.0.0.1", port)).is_ok());
    say("a datagram socket", has_datagrams());
    say("a Unix socket", UnixStream::connect(folder.join("socket")).is_ok());
    let victim_id = nix::unistd::Pid::from_raw(victim);
    say("to trace a process", ptrace::seize(victim_id, ptrace::Options::empty()).is_ok());
    say("to read a process", reads_memory(victim_id));
    say("to get hold of a process", rustix::process::pidfd_open(victim_pid, PidfdFlags::empty()).is_ok());
    say("to signal a process", rustix::process::kill_process(victim_pid, Signal::CONT).is_ok());
    say(
        "to signal the parent",
        rustix::process::test_kill_process(rustix::process::getppid().unwrap()).is_ok(),
    );
    let missing = Command::new("/nonexistent/program").spawn().map(drop).unwrap_err();
    say("to start a process", missing.kind() == io::ErrorKind::NotFound);
    say("to run a program", Command::new("/bin/true").status().is_ok());
    say("to start a thread", std::thread::Builder::new().spawn(|| {}).is_ok());
    let dumpable = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
    say("to open itself to others", dumpable.is_ok());
    let more = Rlimit { current: Some(0), maximum: None };
    say("to raise a limit", rustix::process::setrlimit(Resource::Core, more).is_ok());
    let privileges = rustix::thread::capabilities(None).is_ok_and(|own| !own.permitted.is_empty());
    say("root's privileges", privileges);
    // What a parser does all the time goes on.
    assert!(!vec![1_u8; 64 << 20].is_empty());
    assert!(std::time::Instant::now().elapsed().as_secs() < 60);
    assert!(std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(1))).is_err());
}

/// An address that holds nothing is told from one that may not be looked at.
fn reads_memory(process: nix::unistd::Pid) -> bool {
    let mut byte = [0];
    let there = RemoteIoVec { base: 8, len: 1 };
    process_vm_readv(process, &mut [IoSliceMut::new(&mut byte)], &[there]) != Err(Errno::EPERM)
}

/// What a child that was let try it all could do.
struct Tried(BTreeMap<String, bool>);

impl Tried {
    fn behind(around: Around) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lectern.db"), "everybody's documents").unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let _socket = UnixListener::bind(folder.path().join("socket")).unwrap();
        let victim = Victim(Command::new("sleep").arg("600").spawn().unwrap());
        let test = format!("{}::tries_everything", module_path!().split_once("::").unwrap().1);
        let output = Command::new(env::current_exe().unwrap())
            .args([&test, "--exact", "--ignored", "--nocapture"])
            .env(WALLS, format!("{around:?}"))
            .env(FOLDER, folder.path())
            .env(PORT, listener.local_addr().unwrap().port().to_string())
            .env(VICTIM, victim.0.id().to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let tried = said.lines().filter_map(|line| line.strip_prefix(SAID)?.split_once(": "));
        let tried: BTreeMap<_, _> = tried.map(|(what, done)| (what.to_owned(), done == "yes")).collect();
        let end = "to become another program";
        assert!(tried.contains_key(end), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        Self(tried)
    }

    /// Whether a wall was there; where it was not, that is said.
    fn has(&self, wall: ConfinementLayer) -> bool {
        let there = self.0.get(&format!("put up {wall}")) == Some(&true);
        if !there {
            let text =
                format!("\n!!! the kernel lacks {wall}: what it keeps from parsers was NOT tried !!!\n\n");
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        there
    }

    fn reached(&self) -> BTreeSet<&str> {
        let done = self.0.iter().filter(|(what, done)| **done && !what.starts_with("put up"));
        done.map(|(what, _)| what.as_str()).collect()
    }
}

struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// What an account may do to its own processes, and what it takes root for where the system is strict.
const OFTEN_REFUSED_ANYWAY: [&str; 5] = [
    "the parent's memory",
    "root's privileges",
    "to raise a limit",
    "to read a process",
    "to trace a process",
];

#[test]
fn without_walls_everything_can_be_reached() {
    let tried = Tried::behind(Around::Nothing);
    let refused = tried.0.iter().filter(|(what, done)| {
        !**done && (rustix::process::getuid().is_root() || !OFTEN_REFUSED_ANYWAY.contains(&what.as_str()))
    });
    let refused: Vec<_> = refused.collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(tried.0.len() > 20, "{:?}", tried.0);
}

#[test]
fn behind_the_walls_of_a_parser_nothing_is_reached() {
    let tried = Tried::behind(Around::Everything);
    if tried.has(ConfinementLayer::Seccomp) {
        assert_eq!(tried.reached(), BTreeSet::new());
    }
}

#[test]
fn seccomp_alone_keeps_everything_away() {
    let tried = Tried::behind(Around::Seccomp);
    if tried.has(ConfinementLayer::Seccomp) {
        assert_eq!(tried.reached(), BTreeSet::new());
    }
}

#[test]
fn landlock_alone_keeps_files_and_the_memory_of_others_away() {
    let tried = Tried::behind(Around::Landlock);
    if !tried.has(ConfinementLayer::Landlock) {
        return;
    }
    for what in [
        "the parent's environment",
        "the parent's memory",
        "to read the database",
        "to write the database",
        "to make a file",
        "to list a folder",
        "to trace a process",
        "to read a process",
        "to run a program",
        "to become another program",
    ] {
        assert!(!tried.reached().contains(what), "{what}: {:?}", tried.0);
    }
}
