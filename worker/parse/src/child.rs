//! The child: puts up its walls, reads the document from stdin and writes frames, the picture of a page, or what a source lists, to a
//! private descriptor.
//!
//! A binary that is to be a child asks [`is_child`] before anything else, and calls [`main`]. Everything here is synchronous
//! and runs before any runtime, setting or log exists in the process.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufWriter, Read, Write},
    panic::PanicHookInfo,
    process::ExitCode,
    sync::Arc,
};

use serde::de::DeserializeOwned;

use crate::{
    confine::{self, ResourceLimits},
    draw::{self, SystemFonts},
    formats, listing,
    protocol::{
        self, ChildMessage, ChildRequest, DRAW_COMMAND, DrawError, DrawMessage, DrawRequest, LIST_COMMAND,
        Listing, ListingMessage, ListingRequest, PARSE_COMMAND, ParseAbort, ParseError, ParserCrash,
        WALLS_COMMAND,
    },
};

/// The priority of a parser, lower than that of the service: whoever waits for an answer comes before a document.
const PRIORITY: i32 = 10;

/// Whether this process was started as a sandboxed child. If so, the program's `main` returns the code of [`main`] and does
/// nothing else: no runtime, no settings, no log.
pub fn is_child() -> bool {
    [PARSE_COMMAND, DRAW_COMMAND, LIST_COMMAND, WALLS_COMMAND].into_iter().any(is_subcommand)
}

fn is_subcommand(name: &str) -> bool {
    std::env::args_os().nth(1).as_deref() == Some(OsStr::new(name))
}

/// Does one thing for the parent at the other end of stdin and stdout. The exit code is for logs only: the parent
/// goes by the frames.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    let end = private_output().and_then(|output| {
        if is_subcommand(WALLS_COMMAND) {
            confine::try_everything(output)
        } else if is_subcommand(DRAW_COMMAND) {
            draw(output)
        } else if is_subcommand(LIST_COMMAND) {
            list(output)
        } else {
            parse(output)
        }
    });
    match end {
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

/// Parses one document behind the walls.
fn parse(output: File) -> io::Result<()> {
    // It does its work at any priority.
    let _unchanged = rustix::process::setpriority_process(None, PRIORITY);
    let request: ChildRequest = read_request(&mut io::stdin().lock())?;
    let bounds = ResourceLimits { memory_bytes: request.memory_bytes, cpu_seconds: request.cpu_seconds };
    let library = request.options.pdfium.clone();
    // The one file that a parser needs. None of the document's bytes has been seen when it is opened.
    let open = || library.iter().for_each(|library| formats::pdf::open_library(library));
    confine::inside(bounds, open, move |_| run(&request, &mut io::stdin().lock(), output))
}

/// Draws one page behind the walls.
fn draw(output: File) -> io::Result<()> {
    let request: DrawRequest = read_request(&mut io::stdin().lock())?;
    let bounds = ResourceLimits { memory_bytes: request.memory_bytes, cpu_seconds: request.cpu_seconds };
    // Nobody's bytes have been seen when they are opened.
    let fonts = Arc::new(SystemFonts::open());
    confine::inside(
        bounds,
        || (),
        move |_| {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            let message = match draw::draw(bytes, &request, fonts) {
                Ok(drawing) => DrawMessage::Drawn(drawing),
                Err(error) => DrawMessage::Failed(error),
            };
            let encoded = protocol::encode(&message)
                .or_else(|_| protocol::encode(&DrawMessage::Failed(DrawError::TooLarge)))
                .map_err(io::Error::other)?;
            (&output).write_all(&encoded)
        },
    )
}

/// Reads what a source lists behind the walls.
fn list(output: File) -> io::Result<()> {
    let _unchanged = rustix::process::setpriority_process(None, PRIORITY);
    let request: ListingRequest = read_request(&mut io::stdin().lock())?;
    let bounds = ResourceLimits { memory_bytes: request.memory_bytes, cpu_seconds: request.cpu_seconds };
    confine::inside(
        bounds,
        || (),
        move |_| {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            let messages = listing::read(&bytes, &request)
                .map_or_else(|error| vec![ListingMessage::Failed(error)], Listing::into_messages);
            let mut output = BufWriter::new(output);
            for message in messages {
                output.write_all(&protocol::encode(&message).map_err(io::Error::other)?)?;
            }
            output.flush()
        },
    )
}

fn read_request<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    let mut prefix = [0; 4];
    input.read_exact(&mut prefix)?;
    let mut body = vec![0; protocol::announced(prefix).map_err(io::Error::other)?];
    input.read_exact(&mut body)?;
    protocol::decode(&body).map_err(io::Error::other)
}

/// Reads the document to its end, parses it and writes what comes of it.
fn run(request: &ChildRequest, input: &mut impl Read, mut output: File) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let options = &request.options;
    let mut emit = |message: &ChildMessage| match protocol::encode(message) {
        Ok(bytes) => output.write_all(&bytes).map_err(ParseAbort::Output),
        Err(_) => Err(ParseError::TooLarge { limit: options.max_chars }.into()),
    };
    let parsed = formats::parse(request.kind, bytes, options, &mut |frame| emit(&ChildMessage::Frame(frame)));
    let last_word = match parsed {
        Ok(()) => ChildMessage::Done,
        Err(ParseAbort::Document(error)) => ChildMessage::Failed(error),
        Err(ParseAbort::Panicked) => ChildMessage::Failed(ParseError::Crashed(ParserCrash::Died)),
        Err(ParseAbort::Output(error)) => return Err(error),
    };
    match emit(&last_word) {
        Ok(()) | Err(ParseAbort::Document(_) | ParseAbort::Panicked) => Ok(()),
        Err(ParseAbort::Output(error)) => Err(error),
    }
}

/// The descriptor for frames. Descriptor 1 becomes a second stderr, so that a library that prints cannot end up
/// between two frames.
fn private_output() -> io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(output))
}
