//! Attacks and faults that succeeded once, tried again: what is quick enough for every change. The heavy ones are run by
//! `scripts/attack.sh`; docs/security.md lists them all.

mod commits;
mod disk;
mod fair;
mod guess;
mod html;
pub mod memory;
pub mod network;
mod sandbox;
mod scrubbing;
pub mod server;
pub mod splitting;
