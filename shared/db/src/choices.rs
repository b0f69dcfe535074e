//! What a workspace has of a kind, to be chosen by name: the newest of it, and how much there is.

use lectern_shared::ids::{AgentId, CollectionId, PromptId, SourceId, WorkspaceId};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{Db, Result, documents::browse::and_has, on};

/// What can be chosen.
#[derive(Debug)]
pub struct NamedChoices<I> {
    /// By id and name, the newest first: as many as were asked for.
    pub newest: Vec<(I, String)>,
    /// How many there are.
    pub count: u64,
}

impl<I: From<Uuid>> NamedChoices<I> {
    /// From rows that each tell how many there are.
    fn of(rows: Vec<(Uuid, String, i64)>) -> Self {
        let count = rows.first().map_or(0, |(_, _, count)| count.unsigned_abs());
        Self { newest: rows.into_iter().map(|(id, name, _)| (id.into(), name)).collect(), count }
    }
}

/// At most `limit` of a workspace's collections, the newest first, and how many there are. Their names have `name` somewhere, in
/// whichever case.
pub async fn collections(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    limit: u32,
) -> Result<NamedChoices<CollectionId>> {
    named(db, "collections", None, workspace, name, limit).await
}

/// The same of its prompts.
pub async fn prompts(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    limit: u32,
) -> Result<NamedChoices<PromptId>> {
    named(db, "prompts", None, workspace, name, limit).await
}

/// The same of its sources.
pub async fn sources(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    limit: u32,
) -> Result<NamedChoices<SourceId>> {
    named(db, "sources", None, workspace, name, limit).await
}

/// The links of an agent, by their table and its column of what they lead to.
pub(crate) struct LinkTable {
    pub(crate) agent: AgentId,
    pub(crate) links: &'static str,
    pub(crate) thing: &'static str,
}

/// What is in a table of things that have names, without those that these links lead to.
pub(crate) async fn named<I: From<Uuid>>(
    db: &Db,
    things: &'static str,
    unlinked: Option<LinkTable>,
    workspace: WorkspaceId,
    name: &str,
    limit: u32,
) -> Result<NamedChoices<I>> {
    let rows = on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT id, name, COUNT(*) OVER () FROM ");
        query.push(things).push(" WHERE workspace_id = ").push_bind(workspace);
        if let Some(LinkTable { agent, links, thing }) = &unlinked {
            query.push(" AND id NOT IN (SELECT ").push(*thing).push(" FROM ").push(*links);
            query.push(" WHERE agent_id = ").push_bind(*agent);
            query.push(" AND workspace_id = ").push_bind(workspace).push(")");
        }
        and_has(&mut query, "name", name);
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?;
    Ok(NamedChoices::of(rows))
}
