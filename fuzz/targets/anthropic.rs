//! Answers in Anthropic's format.

#![no_main]

use lectern_agents::models::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::anthropic(bytes));
