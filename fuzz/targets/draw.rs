//! Pages of PDFs, drawn with marks on them.

#![no_main]

use std::sync::Once;

use lectern_parse::fuzzing;
use libfuzzer_sys::fuzz_target;

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    // A panic is a page that is not drawn, as in `pdf`.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|info| eprintln!("{info}"))));
    fuzzing::draw(bytes);
});
