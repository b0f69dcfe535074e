//! The child's side: takes its limits, reads the document from stdin and writes frames to a private descriptor.
//!
//! Everything here is synchronous and runs before any runtime, setting or log exists in the process.

use std::{
    fs::File,
    io::{self, Read, Write},
    panic::PanicHookInfo,
    process::ExitCode,
};

use super::{
    Crash, Kind, ParseError, Stop,
    frame::{self, Message, Request},
};
use crate::loaders::{Output, html, json, package, pdf, table, workbook};

/// Stack of the parsing thread in bytes: deep nesting that is honest fits, and one that is not ends this process only.
const STACK: usize = 64 * 1024 * 1024;

/// Descriptors a parser needs: the three standard ones, the private one and room for the start of a thread.
const DESCRIPTORS: u64 = 16;

/// Runs one parse for the parent at the other end of stdin and stdout. The exit code is for logs only: the parent
/// goes by the frames.
pub fn child_main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    let parsing = std::thread::Builder::new().name("parse".into()).stack_size(STACK);
    match private_output().and_then(|output| {
        let request = read_request(&mut io::stdin().lock())?;
        // The thread exists before the limit on threads does.
        let thread = parsing.spawn(move || {
            confine(&request)?;
            run(&request, &mut io::stdin().lock(), output)
        })?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the parser panicked")))
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unheard = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// Where it panicked and nothing else: a panic's message may quote the document, and stderr ends in a log.
fn report_panic(info: &PanicHookInfo<'_>) {
    if let Some(place) = info.location() {
        let _unheard = writeln!(io::stderr(), "panicked at {place}");
    }
}

fn read_request(input: &mut impl Read) -> io::Result<Request> {
    let mut prefix = [0; 4];
    input.read_exact(&mut prefix)?;
    let mut body = vec![0; frame::announced(prefix).map_err(io::Error::other)?];
    input.read_exact(&mut body)?;
    frame::decode(&body).map_err(io::Error::other)
}

/// Reads the document to its end, parses it and writes what comes of it.
fn run(request: &Request, input: &mut impl Read, mut output: File) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let options = &request.options;
    let mut emit = |message: &Message| match frame::encode(message) {
        Ok(bytes) => output.write_all(&bytes).map_err(Stop::Output),
        Err(_) => Err(ParseError::TooLarge { limit: options.max_chars }.into()),
    };
    let mut frames = |frame| emit(&Message::Frame(frame));
    let mut parts = Output::new(&mut frames, options.max_chars);
    let parsed = match request.kind {
        Kind::Pdf => pdf::parse(bytes, options, &mut frames),
        Kind::Html => html::parse(bytes, options, &mut parts),
        Kind::Table => table::parse(bytes, options, &mut parts),
        Kind::Workbook => workbook::parse(bytes, options, &mut parts),
        Kind::Package => package::parse(bytes, options, &mut parts),
        Kind::Json => json::parse(bytes, options, &mut parts),
    };
    let last_word = match parsed {
        Ok(()) => Message::Done,
        Err(Stop::Document(error)) => Message::Failed(error),
        Err(Stop::Panicked) => Message::Failed(ParseError::Crashed(Crash::Died)),
        Err(Stop::Output(error)) => return Err(error),
    };
    match emit(&last_word) {
        Ok(()) | Err(Stop::Document(_) | Stop::Panicked) => Ok(()),
        Err(Stop::Output(error)) => Err(error),
    }
}

/// The descriptor for frames. Descriptor 1 becomes a second stderr, so that a library that prints cannot end up
/// between two frames.
fn private_output() -> io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(output))
}

/// Takes from this process what a parser has no use for. Whatever of it fails to be set ends the child: no parse
/// without limits.
fn confine(request: &Request) -> io::Result<()> {
    use rustix::process::Resource;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, Signal};
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // First to go when memory is short. Not every container lets a process write it.
        let _unwritable = std::fs::write("/proc/self/oom_score_adj", "1000");
        // After the line above: it takes /proc/self away from this process.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        rustix::thread::set_no_new_privs(true)?;
        limit(Resource::As, request.memory_bytes)?;
        limit(Resource::Nproc, 0)?;
    }
    limit(Resource::Cpu, request.cpu_seconds)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nofile, DESCRIPTORS)
}

/// Lowers a limit for good. One that is already lower stays.
fn limit(resource: rustix::process::Resource, value: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}
