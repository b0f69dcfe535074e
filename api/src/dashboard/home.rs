//! The first page: the way to a first answer, and then whom one can ask and what needs a hand.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_db::documents::browse::{DocumentFilter, DocumentOrder};
use lectern_derive::handler;
use lectern_shared::{
    ids::{AgentId, DocumentId, SourceId},
    model::job::JobState,
};
use uuid::Uuid;

use super::{
    PagePolicy,
    frame::{Frame, Visitor},
    html,
};
use crate::{
    response::ApiResult,
    services::{
        asking::{AskService, AskableAgent},
        documents::DocumentService,
        sources::SourceService,
    },
};

/// Agents that are shown.
const AGENTS: u32 = 24;
/// Failed documents that are shown, sources that ask, and sources that could not be read.
const FAILED: u32 = 5;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    has_documents: bool,
    agents: Vec<AgentCard>,
    /// There are others besides.
    has_more_agents: bool,
    failed: Vec<FailedDocument>,
    /// Sources that ask whether so much is to be deleted.
    asking: Vec<(SourceId, String)>,
    /// Sources that could not be read, and why.
    failing: Vec<(SourceId, String, Option<String>)>,
}

/// An agent that can be asked.
pub(super) struct AgentCard {
    pub(super) id: AgentId,
    pub(super) name: String,
    pub(super) description: String,
}

struct FailedDocument {
    id: DocumentId,
    name: String,
    reason: String,
}

impl From<AskableAgent> for AgentCard {
    fn from(askable: AskableAgent) -> Self {
        Self { id: askable.agent().id, description: askable.summary(), name: askable.agent().name.clone() }
    }
}

/// Shows the first page.
#[handler]
pub(super) async fn show(
    State(asking): State<AskService>,
    State(documents): State<DocumentService>,
    State(sources): State<SourceService>,
    visitor: Visitor,
) -> ApiResult {
    let mut agents = asking.askable(&visitor.actor(), "", Uuid::max().into(), AGENTS + 1).await?;
    let has_more_agents = agents.len() > AGENTS as usize;
    agents.truncate(AGENTS as usize);
    let agents: Vec<AgentCard> = agents.into_iter().map(AgentCard::from).collect();
    let (mut has_documents, mut failed) = (false, Vec::new());
    let (mut sources_asking, mut sources_failing) = (Vec::new(), Vec::new());
    if visitor.frame.may_edit() {
        let actor = visitor.actor();
        sources_asking = sources.asking(&actor, FAILED).await?;
        sources_failing = sources.failing(&actor, FAILED).await?;
        has_documents = !documents.list(&actor, Uuid::max(), 1).await?.is_empty();
        let dead = DocumentFilter { state: Some(JobState::Dead), ..DocumentFilter::default() };
        let found = documents.browse(&actor, &dead, DocumentOrder::Newest, None, FAILED).await?;
        failed = found
            .into_iter()
            .map(|document| FailedDocument {
                id: document.id,
                name: document.name,
                reason: document.ingestion.last_error.map(|error| error.0.message).unwrap_or_default(),
            })
            .collect();
    }
    let page = HomePage {
        frame: visitor.frame,
        has_documents,
        agents,
        has_more_agents,
        failed,
        asking: sources_asking,
        failing: sources_failing,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}
