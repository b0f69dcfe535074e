//! Passwords that a command is given.

use std::io::{IsTerminal, Write};

use lectern_runtime::process::FatalError;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use tokio::io::{AsyncBufReadExt, BufReader};

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

/// The first line of standard input. One that is typed is asked for, and not shown.
///
/// # Errors
/// When nothing can be read.
pub(crate) async fn read() -> Result<SecretString, FatalError> {
    let is_typed = std::io::stdin().is_terminal();
    let hidden = if is_typed { HiddenInput::begin().ok() } else { None };
    if is_typed {
        let shown = if hidden.is_some() { ", which is not shown" } else { "" };
        writeln!(std::io::stderr(), "type the password{shown}, then Enter")?;
    }
    let mut line = String::new();
    BufReader::new(tokio::io::stdin()).read_line(&mut line).await?;
    drop(hidden);
    Ok(SecretString::from(line.trim_end_matches(['\r', '\n'])))
}
