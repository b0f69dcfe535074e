//! The agents that somebody may ask.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::handler;

use crate::{
    dashboard::{
        PagePolicy,
        choices::ListPlace,
        frame::{Frame, Visitor},
        home::AgentCard,
        html,
    },
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
    place: ListPlace,
    /// The query of the next page, if there is one.
    next: Option<String>,
}

/// Shows the agents.
#[handler]
pub(super) async fn show(State(asking): State<AskService>, visitor: Visitor, uri: Uri) -> ApiResult {
    let place = ListPlace::of(&uri);
    let found = asking.askable(&visitor.actor(), &place.name, place.before().into(), AGENTS + 1).await?;
    let has_more = found.len() > AGENTS as usize;
    let agents: Vec<AgentCard> = found.into_iter().take(AGENTS as usize).map(AgentCard::from).collect();
    let next = place.next(agents.last().map(|last| *last.id.as_uuid()).filter(|_| has_more));
    html(&PagePolicy::Own, StatusCode::OK, &AgentsPage { frame: visitor.frame, agents, place, next })
}
