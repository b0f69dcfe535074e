//! Links of crawled pages.

#![no_main]

use lectern_parse::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::links(bytes));
