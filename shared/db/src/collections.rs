//! Collections, what is in them, and the agents that answer from them. Whatever changes what an agent answers from raises the agent's
//! version.

pub mod files;

use std::collections::{BTreeSet, HashMap};

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentCollectionId, AgentId, CollectionId, DocumentId, WorkspaceId},
    model::{
        collection::{AgentCollection, Collection},
        workspace::RowOwner,
    },
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{
    Db, Result, Tx, agents,
    documents::{
        CollectedRow, DocumentDetails, browse::and_has, collections_column, files::IdWindow, read_page,
        select::select_document,
    },
    execute, locks, on, silence,
};

/// Adds a collection.
pub async fn insert(tx: &mut Tx, collection: &Collection) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO collections (id, workspace_id, created_by, name, description, defaults, metadata, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        )
        .bind(collection.id)
        .bind(collection.owner.workspace_id)
        .bind(collection.owner.creator())
        .bind(collection.name.as_str())
        .bind(collection.description.as_str())
        .bind(&collection.defaults)
        .bind(&collection.metadata)
        .bind(collection.created_at)
        .bind(collection.updated_at)
    )?;
    Ok(())
}

macro_rules! select_collection {
    ($where:literal) => {
        concat!(
            "SELECT c.*, (SELECT COUNT(*) FROM collection_documents cd JOIN documents d ON d.id = cd.document_id
                          WHERE cd.collection_id = c.id AND d.deleted_at IS NULL) AS documents
             FROM collections c WHERE ",
            $where
        )
    };
}

/// One of a workspace's collections.
pub async fn find(db: &Db, workspace: WorkspaceId, id: CollectionId) -> Result<Option<Collection>> {
    Ok(on!(db, |c| sqlx::query_as(select_collection!("c.id = $1 AND c.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's collections older than `before`, newest first. Their names have `name` somewhere, in whichever case.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    before: CollectionId,
    limit: u32,
) -> Result<Vec<Collection>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(select_collection!("c.workspace_id = "));
        query.push_bind(workspace).push(" AND c.id < ").push_bind(before);
        and_has(&mut query, "c.name", name);
        query.push(" ORDER BY c.id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// The collections that one of a workspace's documents is in, by id and name, the newest first.
pub async fn of_document(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
) -> Result<Vec<(CollectionId, String)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT c.id, c.name FROM collection_documents cd JOIN collections c ON c.id = cd.collection_id
         WHERE cd.document_id = $1 AND c.workspace_id = $2 ORDER BY c.id DESC"
    )
    .bind(document)
    .bind(workspace)
    .fetch_all(c))?)
}

/// The collections of a workspace within a window.
pub async fn window(db: &Db, workspace: WorkspaceId, window: &IdWindow) -> Result<Vec<Collection>> {
    let select = if window.is_ascending {
        select_collection!("c.workspace_id = $1 AND c.id > $2 AND c.id < $3 ORDER BY c.id LIMIT $4")
    } else {
        select_collection!("c.workspace_id = $1 AND c.id > $2 AND c.id < $3 ORDER BY c.id DESC LIMIT $4")
    };
    Ok(on!(db, |c| sqlx::query_as(select)
        .bind(workspace)
        .bind(window.above)
        .bind(window.below)
        .bind(i64::from(window.limit))
        .fetch_all(c))?)
}

/// Reads one of a workspace's collections and keeps it as it is until the transaction ends.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: CollectionId) -> Result<Option<Collection>> {
    locks::lock_workspace(tx, workspace).await?;
    Ok(on!(tx, |c| sqlx::query_as(select_collection!("c.id = $1 AND c.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// Reads these of a workspace's collections, in this order and each once, and keeps them as they are until the transaction ends; how
/// many documents are in them is not counted. None when one of them is not the workspace's.
pub async fn lock_all(
    tx: &mut Tx,
    workspace: WorkspaceId,
    ids: &[CollectionId],
) -> Result<Option<Vec<Collection>>> {
    if ids.is_empty() {
        return Ok(Some(Vec::new()));
    }
    locks::lock_workspace(tx, workspace).await?;
    let found: Vec<Collection> = on!(tx, |c| async {
        let mut query = QueryBuilder::new("SELECT * FROM collections WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND id IN (");
        let mut listed = query.separated(", ");
        for id in ids {
            listed.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?;
    let mut found: HashMap<CollectionId, Collection> =
        found.into_iter().map(|collection| (collection.id, collection)).collect();
    if !ids.iter().all(|id| found.contains_key(id)) {
        return Ok(None);
    }
    Ok(Some(ids.iter().filter_map(|id| found.remove(id)).collect()))
}

/// Writes what can be changed of a collection that is [locked](lock).
pub async fn update(tx: &mut Tx, collection: &Collection) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE collections SET name = $3, description = $4, defaults = $5, metadata = $6, updated_at = $7
             WHERE id = $1 AND workspace_id = $2"
        )
        .bind(collection.id)
        .bind(collection.owner.workspace_id)
        .bind(collection.name.as_str())
        .bind(collection.description.as_str())
        .bind(&collection.defaults)
        .bind(&collection.metadata)
        .bind(collection.updated_at)
    )?;
    Ok(())
}

/// Deletes one of a workspace's collections, and no document; false when there is none.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: CollectionId) -> Result<bool> {
    locks::lock_workspace(tx, workspace).await?;
    touch_agents(tx, workspace, &[id]).await?;
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM collections WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(rows == 1)
}

/// Whether all of these collections, which may repeat, are the workspace's.
pub async fn has_all(db: &Db, workspace: WorkspaceId, ids: &[CollectionId]) -> Result<bool> {
    let ids: BTreeSet<CollectionId> = ids.iter().copied().collect();
    if ids.is_empty() {
        return Ok(true);
    }
    let found: i64 = on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT COUNT(*) FROM collections WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND id IN (");
        let mut listed = query.separated(", ");
        for id in &ids {
            listed.push_bind(*id);
        }
        query.push(")").build_query_scalar().fetch_one(c).await
    })?;
    Ok(usize::try_from(found).is_ok_and(|found| found == ids.len()))
}

/// Raises the version of every agent that answers from one of these collections.
async fn touch_agents(tx: &mut Tx, workspace: WorkspaceId, collections: &[CollectionId]) -> Result<()> {
    on!(tx, |c| async {
        let mut query = QueryBuilder::new("UPDATE agents SET version = version + 1 WHERE workspace_id = ");
        query.push_bind(workspace);
        query.push(" AND id IN (SELECT agent_id FROM agent_collections WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND collection_id IN (");
        let mut listed = query.separated(", ");
        for id in collections {
            listed.push_bind(*id);
        }
        query.push("))").build().execute(c).await.map(|_| ())
    })?;
    Ok(())
}

/// Puts documents into a collection; those that are in it stay. Returns how many of them are the workspace's, deleted ones not
/// counted. The workspace must be [locked](locks::lock_workspace).
pub async fn add_documents(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    documents: &[DocumentId],
) -> Result<usize> {
    let ids: BTreeSet<DocumentId> = documents.iter().copied().collect();
    if ids.is_empty() {
        return Ok(0);
    }
    let found: Vec<DocumentId> = on!(tx, |c| async {
        let mut query =
            QueryBuilder::new("SELECT id FROM documents WHERE deleted_at IS NULL AND workspace_id = ");
        query.push_bind(workspace).push(" AND id IN (");
        let mut listed = query.separated(", ");
        for id in &ids {
            listed.push_bind(*id);
        }
        query.push(")").build_query_scalar().fetch_all(c).await
    })?;
    if found.is_empty() {
        return Ok(0);
    }
    on!(tx, |c| async {
        let mut query =
            QueryBuilder::new("INSERT INTO collection_documents (collection_id, document_id, workspace_id) ");
        query.push_values(&found, |mut row, document| {
            row.push_bind(collection).push_bind(*document).push_bind(workspace);
        });
        query
            .push(" ON CONFLICT (collection_id, document_id) DO NOTHING")
            .build()
            .execute(c)
            .await
            .map(|_| ())
    })?;
    touch_agents(tx, workspace, &[collection]).await?;
    Ok(found.len())
}

/// Puts a document that was made in this transaction into these collections, which are [locked](lock_all).
pub async fn put_document(
    tx: &mut Tx,
    workspace: WorkspaceId,
    document: DocumentId,
    collections: &[CollectionId],
) -> Result<()> {
    if collections.is_empty() {
        return Ok(());
    }
    on!(tx, |c| async {
        let mut query =
            QueryBuilder::new("INSERT INTO collection_documents (collection_id, document_id, workspace_id) ");
        query.push_values(collections, |mut row, collection| {
            row.push_bind(*collection).push_bind(document).push_bind(workspace);
        });
        query.build().execute(c).await.map(|_| ())
    })?;
    touch_agents(tx, workspace, collections).await
}

/// Takes a document out of a collection; false when it was not in it.
pub async fn remove_document(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    document: DocumentId,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "DELETE FROM collection_documents WHERE collection_id = $1 AND document_id = $2 AND workspace_id = $3"
        )
        .bind(collection)
        .bind(document)
        .bind(workspace)
    )?;
    touch_agents(tx, workspace, &[collection]).await?;
    Ok(rows == 1)
}

/// The documents of these collections of a workspace, each once, by their ids.
pub async fn documents_of(
    db: &Db,
    workspace: WorkspaceId,
    collections: &[CollectionId],
) -> Result<Vec<DocumentId>> {
    if collections.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query =
            QueryBuilder::new("SELECT DISTINCT document_id FROM collection_documents WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND collection_id IN (");
        let mut listed = query.separated(", ");
        for id in collections {
            listed.push_bind(*id);
        }
        query.push(") ORDER BY document_id").build_query_scalar().fetch_all(c).await
    })?)
}

/// At most `limit` of the documents of one of a workspace's collections that are older than `before`, newest first.
pub async fn list_documents(
    db: &Db,
    workspace: WorkspaceId,
    collection: CollectionId,
    before: DocumentId,
    limit: u32,
) -> Result<Vec<DocumentDetails>> {
    let limit = i64::from(limit);
    match db {
        Db::Postgres { pool, .. } => {
            let page =
                sqlx::query_as(LIST_POSTGRES).bind(workspace).bind(before).bind(collection).bind(limit);
            let page: Vec<CollectedRow<Vec<Uuid>>> = silence::answered(page.fetch_all(pool)).await?;
            read_page(page)
        }
        Db::Sqlite { readers, .. } => {
            let page = sqlx::query_as(LIST_SQLITE).bind(workspace).bind(before).bind(collection).bind(limit);
            let page: Vec<CollectedRow<Option<String>>> = page.fetch_all(readers).await?;
            read_page(page)
        }
    }
}

/// [`list_documents`] by a range of what is in the collection, and in its order, for the reasons that [`crate::documents::list`] has. Whose
/// the documents are, their places in the collection tell: else SQLite takes all of the workspace's, and sorts them.
pub(crate) const LIST_POSTGRES: &str = select_document!(
    collections_column!(postgres),
    "JOIN collection_documents cd ON cd.document_id = d.id",
    "cd.workspace_id = (SELECT CAST($1 AS UUID))
     AND cd.collection_id >= (SELECT CAST($3 AS UUID)) AND cd.collection_id <= (SELECT CAST($3 AS UUID))
     AND (cd.collection_id, cd.document_id) < ((SELECT CAST($3 AS UUID)), $2)
     ORDER BY cd.collection_id DESC, cd.document_id DESC LIMIT (SELECT CAST($4 AS BIGINT))"
);
pub(crate) const LIST_SQLITE: &str = select_document!(
    collections_column!(sqlite),
    "JOIN collection_documents cd ON cd.document_id = d.id",
    "cd.workspace_id = $1 AND cd.collection_id >= $3 AND (cd.collection_id, cd.document_id) < ($3, $2)
     ORDER BY cd.collection_id DESC, cd.document_id DESC LIMIT $4"
);

/// Links a workspace's agent and collection and returns the link; the first one when they are linked already. None when either is not
/// the workspace's.
pub async fn link(
    tx: &mut Tx,
    owner: RowOwner,
    agent: AgentId,
    collection: CollectionId,
    now: Timestamp,
) -> Result<Option<AgentCollection>> {
    let workspace = owner.workspace_id;
    // Neither end may be on its way out at this moment.
    if lock_all(tx, workspace, &[collection]).await?.is_none()
        || !agents::lock_row(tx, workspace, agent).await?
    {
        return Ok(None);
    }
    if add_link(tx, owner, agent, collection, now).await? {
        agents::raise_version(tx, workspace, agent).await?;
    }
    Ok(on!(tx, |c| sqlx::query_as(
        "SELECT * FROM agent_collections WHERE agent_id = $1 AND collection_id = $2 AND workspace_id = $3"
    )
    .bind(agent)
    .bind(collection)
    .bind(workspace)
    .fetch_optional(c))?)
}

/// Links an agent that this transaction has made to a collection, which makes no other version of it; false when the collection is not the
/// workspace's.
pub async fn link_new(
    tx: &mut Tx,
    owner: RowOwner,
    agent: AgentId,
    collection: CollectionId,
    now: Timestamp,
) -> Result<bool> {
    if lock_all(tx, owner.workspace_id, &[collection]).await?.is_none() {
        return Ok(false);
    }
    add_link(tx, owner, agent, collection, now).await?;
    Ok(true)
}

/// Adds a link between an agent and a collection that stay meanwhile; false when they are linked already.
async fn add_link(
    tx: &mut Tx,
    owner: RowOwner,
    agent: AgentId,
    collection: CollectionId,
    now: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "INSERT INTO agent_collections (id, workspace_id, created_by, agent_id, collection_id, created_at)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (agent_id, collection_id) DO NOTHING"
        )
        .bind(AgentCollectionId::generate())
        .bind(owner.workspace_id)
        .bind(owner.creator())
        .bind(agent)
        .bind(collection)
        .bind(now)
    )?;
    Ok(rows > 0)
}

/// One of a workspace's links.
pub async fn find_link(
    db: &Db,
    workspace: WorkspaceId,
    id: AgentCollectionId,
) -> Result<Option<AgentCollection>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM agent_collections WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's links older than `before`, newest first; those of one agent when it is named.
pub async fn list_links(
    db: &Db,
    workspace: WorkspaceId,
    agent: Option<AgentId>,
    before: AgentCollectionId,
    limit: u32,
) -> Result<Vec<AgentCollection>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM agent_collections
         WHERE workspace_id = $1 AND id < $2 AND ($3 IS NULL OR agent_id = $3) ORDER BY id DESC LIMIT $4"
    )
    .bind(workspace)
    .bind(before)
    .bind(agent)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Deletes one of a workspace's links; false when there is none.
pub async fn unlink(tx: &mut Tx, workspace: WorkspaceId, id: AgentCollectionId) -> Result<bool> {
    locks::lock_workspace(tx, workspace).await?;
    let agent: Option<AgentId> = on!(tx, |c| sqlx::query_scalar(
        "DELETE FROM agent_collections WHERE id = $1 AND workspace_id = $2 RETURNING agent_id"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?;
    let Some(agent) = agent else { return Ok(false) };
    agents::raise_version(tx, workspace, agent).await
}
