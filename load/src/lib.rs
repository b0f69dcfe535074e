//! Drives a running service over HTTP, as its users do: `mix` puts it under load at set rates and checks every answer, `table`
//! measures what docs/performance.md shows, and `grow` how the service behaves as it holds more. It shares no code with the
//! service, so it cannot share its mistakes.

mod api;
mod bench;
mod cli;
mod facts;
mod grow;
mod judge;
mod memory;
mod mix;
mod out;
mod pdf;
mod prometheus;
mod random;
mod stats;
mod stop;
mod table;
mod units;
mod words;

use std::process::ExitCode;

/// The program: reads the command line, runs the command, and says how it ended.
pub fn main() -> ExitCode {
    cli::main()
}
