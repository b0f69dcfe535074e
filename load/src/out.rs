//! Standard output, which is what the program is for.

use std::io::{self, Write as _};

/// Writes a line.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a line that is not part of the result.
pub(crate) fn note(line: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "lectern-load: {line}");
}
