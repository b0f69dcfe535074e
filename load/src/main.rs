//! `lectern-load`: puts a running service under load, and measures it.

use std::process::ExitCode;

fn main() -> ExitCode {
    lectern_load::main()
}
