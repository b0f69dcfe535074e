//! One agent: what it is, and what it answers from.

use std::collections::HashMap;

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use lectern_shared::{
    ids::AgentId,
    model::{document::Document, job::JobState},
};
use uuid::Uuid;

use super::fields::AgentFields;
use crate::{
    dashboard::{
        PagePolicy,
        frame::{Frame, SubmittedForm, Visitor},
        html,
        text::IngestionState,
    },
    error::ApiError,
    extract::PathId,
    response::ApiResult,
    services::{
        actor::{Actor, Permission},
        agents::{AgentChange, AgentService, VisibleAgent},
        collections::CollectionService,
        documents::DocumentService,
        links::{AgentCollectionService, AgentDocumentService, AgentToolService},
        prompts::PromptService,
        publications::PublicationService,
        tools::ToolService,
    },
};

/// Links and choices of each kind that are shown.
const SHOWN: u32 = 100;
/// Documents that are shown of an agent's own: many of them are better kept in a collection.
const DOCUMENTS: u32 = 20;

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    frame: Frame,
    id: AgentId,
    fields: AgentFields,
    documents: LinkedDocuments,
    linked_collections: Vec<LinkRow>,
    collections: Vec<(String, String)>,
    tools: Vec<LinkRow>,
    linkable_tools: Vec<(String, String)>,
    /// The last part of its page's address.
    published: Option<String>,
    /// That page does not answer any more.
    is_closed: bool,
}

/// Something that the agent has.
struct LinkRow {
    /// Of the link.
    id: String,
    /// Of what it leads to.
    target: String,
    name: String,
    /// How a document is of which not all is well.
    state: Option<LinkState>,
}

/// How a linked document is, and what that is for the agent.
struct LinkState {
    word: &'static str,
    tone: &'static str,
    note: &'static str,
    is_busy: bool,
}

impl LinkState {
    /// None for a document that was read, and is searched.
    fn of(document: &Document) -> Option<Self> {
        let IngestionState { word, tone, is_busy, .. } = IngestionState::of(&document.ingestion);
        let is_searchable = document.search_index.is_some();
        let note = match (is_searchable, is_busy) {
            (true, _) if document.ingestion.state == JobState::Done => return None,
            (true, _) => "It answers from what was read of it before.",
            (false, true) => "It cannot answer from it yet.",
            (false, false) => "It cannot answer from it.",
        };
        Some(Self { word, tone, note, is_busy })
    }
}

/// The documents that are linked, and those that can be.
struct LinkedDocuments {
    rows: Vec<LinkRow>,
    has_more: bool,
    /// How one of them is changes soon.
    is_busy: bool,
    linkable: Vec<(String, String)>,
}

impl LinkedDocuments {
    async fn read(
        documents: &DocumentService,
        links: &AgentDocumentService,
        actor: &Actor,
        agent: AgentId,
    ) -> ApiResult<Self> {
        let links = links.list(actor, Some(agent), Uuid::max(), DOCUMENTS + 1).await?;
        let has_more = links.len() > DOCUMENTS as usize;
        let mut named: Vec<(String, String)> = Vec::new();
        let mut states: HashMap<String, LinkState> = HashMap::new();
        for details in documents.list(actor, Uuid::max(), SHOWN).await? {
            let document = details.document;
            let id = document.id.to_string();
            states.extend(LinkState::of(&document).map(|state| (id.clone(), state)));
            named.push((id, document.name));
        }
        let mut pairs = Vec::new();
        for link in links.into_iter().take(DOCUMENTS as usize) {
            let target = link.document_id.to_string();
            if !named.iter().any(|(id, _)| *id == target) {
                let document = documents.find(actor, link.document_id).await?.details.document;
                states.extend(LinkState::of(&document).map(|state| (target.clone(), state)));
                named.push((target.clone(), document.name));
            }
            pairs.push((link.id.to_string(), target));
        }
        let (mut rows, linkable) = split(pairs, named);
        for row in &mut rows {
            row.state = states.remove(&row.target);
        }
        let is_busy = rows.iter().any(|row| row.state.as_ref().is_some_and(|state| state.is_busy));
        Ok(Self { rows, has_more, is_busy, linkable })
    }
}

/// What is linked, by name, and what else there is.
fn split(links: Vec<(String, String)>, all: Vec<(String, String)>) -> (Vec<LinkRow>, Vec<(String, String)>) {
    let mut names: HashMap<String, String> = all.iter().cloned().collect();
    let row = |(id, target): (String, String)| {
        // Older than what is listed: by its number alone.
        let name = names.remove(&target).unwrap_or_else(|| target.clone());
        LinkRow { id, target, name, state: None }
    };
    let rows: Vec<LinkRow> = links.into_iter().map(row).collect();
    let others = all.into_iter().filter(|(id, _)| names.contains_key(id)).collect();
    (rows, others)
}

/// Shows it to those who build agents; others are sent to ask it.
#[expect(clippy::too_many_arguments, reason = "an agent has to do with much")]
#[handler]
pub(super) async fn show(
    State(agents): State<AgentService>,
    State(prompts): State<PromptService>,
    State(documents): State<DocumentService>,
    State(document_links): State<AgentDocumentService>,
    State(collections): State<CollectionService>,
    State(collection_links): State<AgentCollectionService>,
    State(tools): State<ToolService>,
    State(tool_links): State<AgentToolService>,
    State(publications): State<PublicationService>,
    visitor: Visitor,
    PathId(id): PathId<AgentId>,
) -> ApiResult {
    let actor = visitor.actor();
    let VisibleAgent::Whole(agent) = agents.find(&actor, id).await? else {
        return Ok(visitor.go(&format!("agents/{id}/ask")));
    };
    let max = Uuid::max();
    let links = collection_links.list(&actor, Some(id), max, SHOWN).await?;
    let links = links.into_iter().map(|link| (link.id.to_string(), link.collection_id.to_string())).collect();
    let all = collections.list(&actor, max, 2 * SHOWN).await?;
    let all = all.into_iter().map(|collection| (collection.id.to_string(), collection.name)).collect();
    let (linked_collections, collections) = split(links, all);
    let links = tool_links.list(&actor, Some(id), max, SHOWN).await?;
    let links = links.into_iter().map(|link| (link.id.to_string(), link.tool_id.to_string())).collect();
    let all = tools.list(&actor, max, 2 * SHOWN).await?;
    let all = all.into_iter().map(|details| (details.tool.id.to_string(), details.tool.name)).collect();
    let (tool_rows, linkable_tools) = split(links, all);
    let published = publications.find(&actor, id).await?;
    let is_closed = match &published {
        Some(page) => !publications.is_answering(page).await?,
        None => false,
    };
    let page = AgentPage {
        id,
        fields: AgentFields::of(Some(&agent), &prompts, &visitor).await?,
        documents: LinkedDocuments::read(&documents, &document_links, &actor, id).await?,
        linked_collections,
        collections,
        tools: tool_rows,
        linkable_tools,
        published: published.map(|publication| publication.slug),
        is_closed,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Changes it.
#[handler]
pub(super) async fn change(
    State(agents): State<AgentService>,
    PathId(id): PathId<AgentId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<AgentChange>,
) -> ApiResult {
    agents.change(&visitor.actor(), id, body).await?;
    Ok(visitor.go(&format!("agents/{id}?said=saved")))
}

/// Deletes it.
#[handler]
pub(super) async fn delete(
    State(agents): State<AgentService>,
    visitor: Visitor,
    PathId(id): PathId<AgentId>,
) -> Result<axum::response::Response, ApiError> {
    visitor.actor().may(Permission::BuildAgents)?;
    agents.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("agents?said=agent-deleted"))
}
