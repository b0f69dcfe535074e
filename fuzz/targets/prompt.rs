//! Prompt templates.

#![no_main]

use lectern_agents::prompt::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::prompt(bytes));
