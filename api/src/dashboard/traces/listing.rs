//! The page of all answers, and of those that one asked.

use std::collections::HashMap;

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_db::traces::{StoredTrace, TraceFilter};
use lectern_derive::handler;
use lectern_shared::{clock::Timestamp, ids::TraceId};
use url::form_urlencoded::Serializer;

use super::{NO_QUESTION, asked};
use crate::{
    dashboard::{
        PagePolicy,
        answer::TraceBody,
        askers::{AskerNames, NamedAsker, asker_of},
        choices::{ListPlace, told_apart},
        frame::{Frame, Visitor},
        html,
        text::{beginning, duration, filters, rating_words},
    },
    error::ApiError,
    extract::parameter,
    response::ApiResult,
    services::{asking::AskService, traces::TraceService},
};

/// Traces of a page: each may have a megabyte.
const TRACES: u32 = 25;
/// Characters of a question in the list.
const QUESTION: usize = 200;

#[derive(Template)]
#[template(path = "traces.html")]
struct TracesPage {
    frame: Frame,
    agents: Vec<(String, String)>,
    agent: String,
    rating: String,
    /// Whose answers these are alone, for those who see everybody's.
    asker: Option<NamedAsker>,
    /// All of whose answers can be deleted here.
    erasable: Option<NamedAsker>,
    /// What is looked for in the questions, and where the list goes on.
    place: ListPlace,
    rows: Vec<TraceRow>,
    /// There are answers that were not looked at.
    is_bounded: bool,
    /// The query of the next page, if there is one.
    next: Option<String>,
}

struct TraceRow {
    id: TraceId,
    question: String,
    agent: String,
    asker: Option<NamedAsker>,
    sources: String,
    /// There is no answer.
    has_failed: bool,
    took: String,
    feedback: &'static str,
    at: Timestamp,
}

impl TraceRow {
    /// Of an agent that is called so.
    fn of(trace: &StoredTrace, agent: &str, asker: Option<NamedAsker>) -> Self {
        let body = TraceBody::of(&trace.body.0);
        let verified = body.citations.iter().filter(|citation| citation.verified).count();
        let sources = match body.citations.len() {
            0 => "none".to_owned(),
            all => format!("{all}, {verified} verified"),
        };
        Self {
            id: trace.id,
            question: beginning(asked(&trace.body.0).unwrap_or(NO_QUESTION), QUESTION),
            has_failed: body.failure().is_some(),
            agent: agent.to_owned(),
            asker,
            sources,
            took: duration(body.duration_ms),
            feedback: rating_words(trace.rating),
            at: trace.created_at,
        }
    }
}

/// Shows the answers that were given, the newest first: to those who build agents everybody's, and to others their own.
#[handler]
pub(crate) async fn list(
    State(traces): State<TraceService>,
    State(asking): State<AskService>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    let actor = visitor.actor();
    let text = |name: &str| parameter(&uri, name).unwrap_or_default();
    let (agent, rating, asker) = (text("agent"), text("rating"), asker_of(&text("askedBy"))?);
    let place = ListPlace::of(&uri);
    let mut filter = TraceFilter {
        agent: match agent.as_str() {
            "" => None,
            agent => Some(agent.parse().map_err(|_| ApiError::not_found("agent"))?),
        },
        rating: rating.parse().ok(),
        asker,
        question: place.name.clone(),
        since: None,
    };
    let agents = asking
        .all_askable(&actor, |askable| (askable.agent().id.to_string(), askable.agent().name.clone()))
        .await?;
    let agents = told_apart(agents);
    let names: HashMap<&str, &str> = agents.iter().map(|(id, name)| (id.as_str(), name.as_str())).collect();
    let end = traces.bound(&actor, &mut filter, place.before()).await?;
    let mut found = traces.list(&actor, &filter, place.before(), TRACES + 1).await?;
    let has_more = found.len() > TRACES as usize;
    found.truncate(TRACES as usize);
    let last = if has_more { found.last().map(|last| *last.id.as_uuid()) } else { end };
    let next = place.next(last).map(|behind| {
        let pairs = [("agent", agent.clone()), ("rating", rating.clone())];
        let asked = asker.map(|asker| ("askedBy", asker.to_string()));
        let chosen = Serializer::new(String::new()).extend_pairs(pairs.into_iter().chain(asked)).finish();
        format!("{chosen}&{behind}")
    });
    let askers = found.iter().filter_map(StoredTrace::asker).chain(asker).collect();
    let askers = AskerNames::of(&traces, &actor, askers).await?;
    let row = |trace: &StoredTrace| {
        let agent = trace.agent_id.to_string();
        let agent = names.get(agent.as_str()).copied().unwrap_or_default();
        TraceRow::of(trace, agent, askers.named(trace.asker()))
    };
    let rows = found.iter().map(row).collect();
    let (asker, erasable) = (askers.named(asker), askers.erasable(&actor, asker));
    let is_bounded = !has_more && end.is_some();
    let frame = visitor.frame;
    let page = TracesPage { frame, agents, agent, rating, asker, erasable, place, rows, is_bounded, next };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}
