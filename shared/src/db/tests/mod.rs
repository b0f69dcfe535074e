//! Every function of the repositories, on both engines.

mod accounts;
mod agents;
mod checkup;
mod chunks;
mod documents;
mod fairness;
mod full;
mod generations;
mod idempotency;
mod index_segments;
mod jobs;
mod json;
mod leftovers;
mod memory;
mod migrate;
mod operator_jobs;
mod prompts;
mod reindex;
mod sealed;
mod singletons;
mod storage;
mod store;
mod tags;
mod tools;
mod traces;
mod vectors;
