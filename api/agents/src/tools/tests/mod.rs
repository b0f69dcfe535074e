//! The tools against servers on loopback that speak the protocols of their services.

mod arguments;
mod automation;
mod compute_alpha;
mod failures;
mod guard;
mod mcp;
mod mcp_hostile;
mod mcp_program;
mod mcp_server;
mod model_host;
mod naming;
mod openapi;
mod opening;
mod pets;
mod search;
mod support;

pub(super) use self::support::stored;
