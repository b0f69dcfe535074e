//! PDFs, by the built-in engine.

#![no_main]

use std::sync::Once;

use lectern_parse::fuzzing;
use libfuzzer_sys::fuzz_target;

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    // A panic on one page costs that page: the engine catches it. The hook would end the program before; what nobody catches still
    // does.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|info| eprintln!("{info}"))));
    fuzzing::pdf(bytes);
});
