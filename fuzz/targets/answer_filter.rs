//! What a model answers, on its way to the reader.

#![no_main]

use lectern_agents::answer::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::answer_filter(bytes));
