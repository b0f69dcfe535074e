//! One agent: what it is, and what it answers from.

use std::collections::HashSet;

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_db::{
    agents::{LinkedDocument, NamedLink},
    documents::browse::{DocumentFilter, DocumentOrder},
};
use lectern_derive::handler;
use lectern_shared::{
    ids::{AgentId, UserId},
    model::{document::Document, job::JobState},
};
use uuid::Uuid;

use super::fields::AgentFields;
use crate::{
    dashboard::{
        PagePolicy,
        choices::{ChoiceKind, NameChoice, OFFERED, looked_for, told_apart},
        confirm::Confirmed,
        edits::{EditForm, was_made},
        frame::{Frame, Visitor},
        html,
        text::{IngestionState, variables},
    },
    error::ApiError,
    extract::{PathId, parameter},
    response::ApiResult,
    services::{
        actor::{Actor, Permission},
        agents::{AgentChange, AgentService, VisibleAgent},
        asking::AskService,
        documents::DocumentService,
        edits::EditBase,
        links::{AgentCollectionService, AgentDocumentService, AgentToolService},
        prompts::PromptService,
        publications::PublicationService,
        workspaces::members::MemberService,
    },
};

/// Documents that can be chosen; others are looked for by name.
const CHOICES: u32 = 100;
/// Documents of a page: many of them are better kept in a collection.
const DOCUMENTS: u32 = 20;
/// Collections of a page.
const COLLECTIONS: u32 = 50;
/// Versions, and members of the workspace, among whom is looked for who has changed an agent.
const VERSIONS: u32 = 20;
const MEMBERS: u32 = 200;

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    frame: Frame,
    id: AgentId,
    fields: AgentFields,
    /// What its prompt takes besides the question.
    needed: String,
    documents: LinkedDocuments,
    collections: LinkedCollections,
    /// Whether the list begins with what was linked last.
    is_first: bool,
    tools: Vec<LinkRow>,
    tool_choice: NameChoice,
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

impl From<NamedLink> for LinkRow {
    fn from(NamedLink { id, target, name }: NamedLink) -> Self {
        Self { id: id.to_string(), target: target.to_string(), name, state: None }
    }
}

impl From<LinkedDocument> for LinkRow {
    fn from(LinkedDocument { link_id, document }: LinkedDocument) -> Self {
        Self {
            id: link_id.to_string(),
            target: document.id.to_string(),
            state: LinkState::of(&document),
            name: document.name,
        }
    }
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

/// The documents of a page that are linked, and those that can be.
struct LinkedDocuments {
    rows: Vec<LinkRow>,
    /// The link behind which the page begins; none for the first one.
    page: Option<Uuid>,
    /// The last of them, when there are further ones.
    next: Option<String>,
    /// How one of them is changes soon.
    is_busy: bool,
    linkable: Vec<(String, String)>,
    /// Whether still others can be linked.
    has_more: bool,
    /// What the names of those that can be linked have somewhere.
    find: String,
}

impl LinkedDocuments {
    async fn read(
        documents: &DocumentService,
        links: &AgentDocumentService,
        actor: &Actor,
        agent: AgentId,
        uri: &Uri,
    ) -> ApiResult<Self> {
        let mut page = place(uri, "documents");
        let size = DOCUMENTS + 1;
        let mut found = links.of_agent(actor, agent, page.unwrap_or_else(Uuid::max), size).await?;
        // What stood there was taken away.
        if found.is_empty()
            && let Some(before) = page
        {
            page = links.page_before(actor, agent, before, DOCUMENTS).await?;
            found = links.of_agent(actor, agent, page.unwrap_or_else(Uuid::max), size).await?;
        }
        let (rows, next) = page_of(found, DOCUMENTS);
        let find = looked_for(uri, "find");
        let filter =
            DocumentFilter { name: find.clone(), unlinked: Some(agent), ..DocumentFilter::default() };
        let mut linkable = documents.browse(actor, &filter, DocumentOrder::Newest, None, CHOICES + 1).await?;
        let has_more = linkable.len() > CHOICES as usize;
        linkable.truncate(CHOICES as usize);
        let is_busy = rows.iter().any(|row| row.state.as_ref().is_some_and(|state| state.is_busy));
        let linkable = linkable.into_iter();
        let linkable = told_apart(linkable.map(|document| (document.id.to_string(), document.name)));
        Ok(Self { rows, page, next, is_busy, linkable, has_more, find })
    }
}

/// The collections of a page that are linked, and those that can be.
struct LinkedCollections {
    rows: Vec<LinkRow>,
    /// The link behind which the page begins; none for the first one.
    page: Option<Uuid>,
    /// The last of them, when there are further ones.
    next: Option<String>,
    choice: NameChoice,
}

impl LinkedCollections {
    async fn read(
        links: &AgentCollectionService,
        actor: &Actor,
        agent: AgentId,
        uri: &Uri,
    ) -> ApiResult<Self> {
        let mut page = place(uri, "collections");
        let size = COLLECTIONS + 1;
        let mut found = links.of_agent(actor, agent, page.unwrap_or_else(Uuid::max), size).await?;
        if found.is_empty()
            && let Some(before) = page
        {
            page = links.page_before(actor, agent, before, COLLECTIONS).await?;
            found = links.of_agent(actor, agent, page.unwrap_or_else(Uuid::max), size).await?;
        }
        let (rows, next) = page_of(found, COLLECTIONS);
        let kind = ChoiceKind::Collection;
        let choices = links.linkable(actor, agent, &kind.looked_for(uri), OFFERED).await?;
        Ok(Self { rows, page, next, choice: NameChoice::of(kind, choices, None, uri, "documents") })
    }
}

/// The tools that can be linked.
async fn tool_choice(
    links: &AgentToolService,
    actor: &Actor,
    agent: AgentId,
    uri: &Uri,
) -> ApiResult<NameChoice> {
    let kind = ChoiceKind::Tool;
    let choices = links.linkable(actor, agent, &kind.looked_for(uri), OFFERED).await?;
    Ok(NameChoice::of(kind, choices, None, uri, "tools"))
}

/// Where a list goes on, as the address has it.
fn place(uri: &Uri, list: &str) -> Option<Uuid> {
    parameter(uri, list)?.parse().ok()
}

/// The rows of a page, of which one too many was read, and the link behind which the next page begins.
fn page_of<T: Into<LinkRow>>(links: Vec<T>, most: u32) -> (Vec<LinkRow>, Option<String>) {
    let has_more = links.len() > most as usize;
    let rows: Vec<LinkRow> = links.into_iter().take(most as usize).map(Into::into).collect();
    let next = rows.last().map(|last| last.id.clone()).filter(|_| has_more);
    (rows, next)
}

/// Shows it to those who build agents; others are sent to ask it.
#[expect(clippy::too_many_arguments, reason = "an agent has to do with much")]
#[handler]
pub(super) async fn show(
    State(agents): State<AgentService>,
    State(prompts): State<PromptService>,
    State(documents): State<DocumentService>,
    State(document_links): State<AgentDocumentService>,
    State(collection_links): State<AgentCollectionService>,
    State(tool_links): State<AgentToolService>,
    State(publications): State<PublicationService>,
    State(asking): State<AskService>,
    visitor: Visitor,
    PathId(id): PathId<AgentId>,
    uri: Uri,
) -> ApiResult {
    let actor = visitor.actor();
    let VisibleAgent::Whole(agent) = agents.find(&actor, id).await? else {
        return Ok(visitor.go(&format!("agents/{id}/ask")));
    };
    let tools = tool_links.of_agent(&actor, id).await?;
    let published = publications.find(&actor, id).await?;
    let is_closed = match &published {
        Some(page) => !publications.is_answering(page).await?,
        None => false,
    };
    let documents = LinkedDocuments::read(&documents, &document_links, &actor, id, &uri).await?;
    let collections = LinkedCollections::read(&collection_links, &actor, id, &uri).await?;
    let page = AgentPage {
        id,
        fields: AgentFields::of(Some(&agent), &prompts, &actor, &uri).await?,
        needed: variables(&asking.needed_values(&asking.find(&actor, id).await?).await?),
        is_first: documents.page.or(collections.page).is_none(),
        documents,
        collections,
        tools: tools.into_iter().map(LinkRow::from).collect(),
        tool_choice: tool_choice(&tool_links, &actor, id, &uri).await?,
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
    State(prompts): State<PromptService>,
    State(members): State<MemberService>,
    PathId(id): PathId<AgentId>,
    uri: Uri,
    EditForm { visitor, body, edit }: EditForm<AgentChange>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(agents.change(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go(&format!("agents/{id}?said=saved")));
    }
    let VisibleAgent::Whole(agent) = agents.find(&actor, id).await? else {
        return Ok(visitor.go(&format!("agents/{id}/ask")));
    };
    let shows = AgentFields::of(Some(&agent), &prompts, &actor, &uri).await?.shown(&agent);
    let by = changed_by(&agents, &members, &actor, id, edit.base()).await?;
    edit.outdated(visitor, &shows, by.as_deref(), &format!("agents/{id}#change"))
}

/// Who has changed an agent since it was what a change begins from, as far as that is kept.
async fn changed_by(
    agents: &AgentService,
    members: &MemberService,
    actor: &Actor,
    id: AgentId,
    base: EditBase,
) -> ApiResult<Option<String>> {
    let EditBase::Shown(since) = base else { return Ok(None) };
    let versions = agents.versions(actor, id, Uuid::max(), VERSIONS).await?;
    let replaced = versions.into_iter().filter_map(|version| version.replaced);
    let by: HashSet<UserId> = replaced.filter(|(_, at)| *at > since).filter_map(|(by, _)| by).collect();
    let members = members.list(actor, actor.named_workspace(), "", Uuid::max(), MEMBERS).await?;
    let names = members.into_iter().filter(|member| by.contains(&member.user_id)).map(|member| {
        if member.user_id == actor.user {
            "you, elsewhere,".to_owned()
        } else if member.name.is_empty() {
            member.email
        } else {
            member.name
        }
    });
    let names: Vec<String> = names.collect();
    Ok((!names.is_empty()).then(|| names.join(" and ")))
}

/// Deletes it.
#[handler]
pub(super) async fn delete(
    State(agents): State<AgentService>,
    PathId(id): PathId<AgentId>,
    Confirmed(visitor): Confirmed,
) -> Result<axum::response::Response, ApiError> {
    visitor.actor().may(Permission::BuildAgents)?;
    agents.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("agents?said=agent-deleted"))
}
