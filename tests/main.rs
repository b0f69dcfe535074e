//! The end-to-end tests: the real binary, over HTTP, in each of its modes. One test binary, so that it is linked once.
//! `scripts/test.sh` runs them, and starts the servers that they need.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test ends by panicking, talks to loopback servers, and is nobody's interface"
)]

mod accounts;
mod admin;
mod agents;
mod attacks;
mod backup;
mod bodies;
mod citation_page;
mod crashes;
mod dashboard;
mod docs;
mod doctor;
mod documents;
mod embedding;
mod evaluations;
mod events;
mod garbage;
mod health;
mod hostile;
mod idempotency;
mod ingestion;
mod interface;
mod limits;
mod lists;
mod load;
mod local_model;
mod masks;
mod matrix;
mod mcp;
mod mcp_tools;
mod metrics;
mod mixes;
mod oidc;
mod openai;
mod openapi;
mod pages;
mod pdfium;
mod people;
mod predict;
mod prompts;
mod publications;
mod qdrant;
mod receipts;
mod reindex;
mod reranking;
mod rotation;
mod sandbox;
mod scans;
mod search;
mod shapes;
mod soak;
mod sources;
mod spans;
mod support;
mod sync;
mod tags;
mod tenancy;
mod tools;
mod upgrade;
mod upload;
mod video;
mod webhooks;
