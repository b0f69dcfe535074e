//! What the end-to-end tests stand on: the real binaries, a client of their API, and loopback servers that play the outside
//! world (sources on the web, a language model, databases). Nothing in here makes a claim about the service; the tests
//! do. Every wait is bounded by [`DEADLINE`] and says what it waited for.

#![allow(dead_code, reason = "a toolbox: which of its tools are in use changes with the tests")]

pub mod browser;
pub mod client;
pub mod collector;
pub mod command;
pub mod db;
pub mod embeddings;
pub mod forge;
pub mod loopback;
pub mod model;
pub mod pdf;
pub mod process;
pub mod programs;
pub mod proxy;
pub mod qdrant;
pub mod redis;
pub mod reranker;
pub mod s3;
pub mod scan;
pub mod server;
pub mod service;
pub mod setup;
pub mod sse;
pub mod tiny_model;
pub mod web;

use std::time::Duration;

/// How long anything may take before a test gives up on it. Far above what is normal, so that a slow machine fails no test.
pub const DEADLINE: Duration = Duration::from_mins(2);

/// Waits for `future`, and ends the test when it is not done within [`DEADLINE`].
pub async fn within_deadline<F: IntoFuture>(what: &str, future: F) -> F::Output {
    let output = tokio::time::timeout(DEADLINE, future.into_future()).await;
    output.unwrap_or_else(|_| panic!("gave up after {DEADLINE:?} of waiting for {what}"))
}

/// Makes two tests of each named `async fn(Mode)`: `embedded::…` and `cluster::…`.
///
/// The functions stay ordinary ones, and the compiler calls one that is not named here unused.
macro_rules! in_both_modes {
    ($($test:ident),+ $(,)?) => {
        $crate::support::in_mode!(embedded, Embedded, $($test),+);
        $crate::support::in_mode!(cluster, Cluster, $($test),+);
    };
}
pub(crate) use in_both_modes;

/// Makes one more test of each, `postgres::…`: the single program over PostgreSQL without Redis, for a few tests of each
/// part that this mix concerns.
macro_rules! on_postgres_too {
    ($($test:ident),+ $(,)?) => {
        $crate::support::in_mode!(postgres, Postgres, $($test),+);
    };
}
pub(crate) use on_postgres_too;

macro_rules! in_mode {
    ($module:ident, $mode:ident, $($test:ident),+) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($crate::support::service::Mode::$mode).await;
            })+
        }
    };
}
pub(crate) use in_mode;
