//! E-mails and web archives.

#![no_main]

use std::sync::Once;

use lectern_parse::fuzzing as parsers;
use lectern_worker::fuzzing;
use libfuzzer_sys::fuzz_target;

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    // A panic of the library's over headers costs those headers only: the parser catches it, as in `feed`.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|info| eprintln!("{info}"))));
    fuzzing::passages(parsers::mail(bytes));
});
