//! What sites ask of robots.

#![no_main]

use lectern_worker::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::robots(bytes));
