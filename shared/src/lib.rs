//! What the API and the worker both need, and no HTTP framework: settings, the relational store, the queue, the search
//! index, secrets, and the way out.

pub mod audit;
pub mod backup;
pub mod blobs;
pub mod cache_budget;
pub mod clock;
pub mod compute;
pub mod config;
pub(crate) mod data_dir;
pub mod db;
pub mod doctor;
pub mod egress;
pub mod embed;
pub mod format;
pub mod health;
pub mod ids;
pub mod index;
pub mod jobs;
pub mod limits;
pub mod metrics;
pub mod model;
pub mod open_files;
pub mod process;
pub mod prompt;
pub mod redis;
pub mod reencrypt;
pub mod runtime;
pub mod search;
pub mod secrets;
pub mod shutdown;
pub mod telemetry;
pub mod tls;
pub mod turns;
