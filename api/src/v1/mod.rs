//! The JSON interface, one file a noun: its router, bodies and handlers. A handler extracts, calls, responds.

mod agent_collections;
mod agent_documents;
mod agent_tools;
mod agents;
mod api_tokens;
mod auth;
mod collections;
pub(crate) mod documents;
mod evaluations;
mod oidc;
mod predict;
mod prompts;
mod publications;
mod search;
mod sources;
mod tags;
mod tools;
mod traces;
mod users;
mod webhooks;
mod workspaces;

pub(crate) use self::{
    evaluations::import_file,
    oidc::{cookies as oidc_cookies, forget as forget_oidc_cookie},
};

use crate::openapi::ApiRouter;

/// Everything under `/api/v1`.
pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .merge(auth::router())
        .merge(oidc::router())
        .merge(users::router())
        .merge(workspaces::router())
        .merge(api_tokens::router())
        .merge(documents::router())
        .merge(collections::router())
        .merge(agents::router())
        .merge(agent_documents::router())
        .merge(agent_collections::router())
        .merge(tags::router())
        .merge(prompts::router())
        .merge(publications::router())
        .merge(search::router())
        .merge(predict::router())
        .merge(tools::router())
        .merge(agent_tools::router())
        .merge(traces::router())
        .merge(sources::router())
        .merge(evaluations::router())
        .merge(webhooks::router())
}
