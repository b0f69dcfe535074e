//! The agents that somebody may ask.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::handler;
use lectern_shared::ids::AgentId;
use uuid::Uuid;

use crate::{
    dashboard::{
        PagePolicy,
        frame::{Frame, Visitor},
        home::AgentCard,
        html,
    },
    extract::parameter,
    response::ApiResult,
    services::asking::AskService,
};

/// Agents of a page.
const AGENTS: u32 = 48;

#[derive(Template)]
#[template(path = "agents.html")]
struct AgentsPage {
    frame: Frame,
    agents: Vec<AgentCard>,
    next: Option<AgentId>,
}

/// Shows the agents.
#[handler]
pub(super) async fn show(State(asking): State<AskService>, visitor: Visitor, uri: Uri) -> ApiResult {
    let before = parameter(&uri, "after").and_then(|after| after.parse().ok());
    let before = before.unwrap_or_else(|| AgentId::from(Uuid::max()));
    let found = asking.askable(&visitor.actor(), before, AGENTS + 1).await?;
    let has_more = found.len() > AGENTS as usize;
    let agents: Vec<AgentCard> = found.into_iter().take(AGENTS as usize).map(AgentCard::from).collect();
    let next = agents.last().map(|last| last.id).filter(|_| has_more);
    html(&PagePolicy::Own, StatusCode::OK, &AgentsPage { frame: visitor.frame, agents, next })
}
