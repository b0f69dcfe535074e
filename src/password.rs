//! Passwords that a command is given.

use std::{
    future::poll_fn,
    io::{IsTerminal, Write},
    task::Poll,
};

use lectern_runtime::process::FatalError;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    signal::unix::{Signal, SignalKind, signal},
};

/// A terminal that does not show what is typed, until this is dropped.
struct HiddenInput {
    /// How the terminal was before.
    before: Termios,
}

impl HiddenInput {
    fn begin() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The end of the line is shown, so that the next one stands below it.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// The signals that would end this process by themselves, and leave the terminal as it is then.
fn ends() -> std::io::Result<Vec<Signal>> {
    let kinds = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate(), SignalKind::hangup()];
    kinds.into_iter().map(signal).collect()
}

/// The first line of standard input. One that is typed is asked for, and not shown.
///
/// # Errors
/// When nothing can be read, or the command is stopped before something was typed.
pub(crate) async fn read() -> Result<SecretString, FatalError> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = String::new();
    if std::io::stdin().is_terminal() {
        let mut ends = ends()?;
        let hidden = HiddenInput::begin().ok();
        let shown = if hidden.is_some() { ", which is not shown" } else { "" };
        writeln!(std::io::stderr(), "type the password{shown}, then Enter")?;
        let ended = poll_fn(|context| {
            let is_there = ends.iter_mut().any(|end| end.poll_recv(context).is_ready());
            if is_there { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            read = input.read_line(&mut line) => { read?; }
            () = ended => return Err("stopped: no password was typed".into()),
        }
    } else {
        input.read_line(&mut line).await?;
    }
    Ok(SecretString::from(line.trim_end_matches(['\r', '\n'])))
}
