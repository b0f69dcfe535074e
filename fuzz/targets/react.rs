//! Texts of thoughts and actions.

#![no_main]

use lectern_agents::run::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::react(bytes));
