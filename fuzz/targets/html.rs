//! Web pages.

#![no_main]

use lectern_parse::fuzzing as parsers;
use lectern_worker::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::passages(parsers::html(bytes)));
