//! What every program of the service needs, and no HTTP framework: settings, plain data, blobs, secrets, telemetry, and the way out.

pub mod address;
pub mod blobs;
pub mod cache_budget;
pub mod clock;
pub mod combine;
pub mod compute;
pub mod config;
pub mod disposition;
pub mod egress;
pub mod failure;
pub mod file_name;
pub mod format;
pub mod ids;
pub mod media_type;
pub mod metrics;
pub mod model;
pub mod open_files;
pub mod redis;
pub mod retry;
pub mod scratch_file;
pub mod secrets;
pub mod shutdown;
pub mod telemetry;
pub mod tls;
pub mod turns;
