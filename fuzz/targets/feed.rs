//! Feeds.

#![no_main]

use std::sync::Once;

use lectern_parse::fuzzing;
use libfuzzer_sys::fuzz_target;

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    // A panic of the library's is a feed that is not read: the child catches it, as in `pdf`.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|info| eprintln!("{info}"))));
    fuzzing::feed(bytes);
});
