//! Documents as people look for them: by a part of the name, by state, type, collection, source and metadata, in the order that they
//! like.

use std::{cmp::Ordering, collections::BTreeSet};

use lectern_shared::{
    clock::Timestamp,
    file_name::spellings,
    ids::{AgentId, CollectionId, DocumentId, SourceId, WorkspaceId},
    model::{
        Json,
        document::{Document, DocumentType},
        job::JobState,
    },
};
use serde_json::{Map, Number, Value};
use sqlx::{Database, Encode, QueryBuilder, Type};
use uuid::Uuid;

use super::select::select_document;
use crate::{Db, Result, jobs::still_queued, on};

/// Documents that are read at once to see whether their metadata is as it should be.
const BATCH: u32 = 500;
/// Letters of a name that are made small one by one: no more than an alphabet has, lest the statement become too deep for SQLite.
const LETTERS: usize = 100;
/// Whole numbers below this are written with all their digits and without an exponent, as floating-point numbers too.
const PLAIN: u64 = 1_000_000_000_000_000;

/// The owner's own values.
type DocumentMetadata = Json<Map<String, Value>>;

/// In which order documents are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentOrder {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
    /// By name, and those of one name by age.
    Name,
}

/// Which documents are listed. What is left out lets all of them through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// What the name has somewhere, in whichever case; empty for any name.
    pub name: String,
    /// Where the ingestion stands.
    pub state: Option<JobState>,
    /// The kind of source.
    pub r#type: Option<DocumentType>,
    /// The collection that it is in.
    pub collection: Option<CollectionId>,
    /// The source that keeps it in step with what is there.
    pub source: Option<SourceId>,
    /// A value that its metadata has.
    pub metadata: Option<MetadataMatch>,
    /// An agent that it is not linked to, unless by a collection.
    pub unlinked: Option<AgentId>,
}

/// A key of a document's metadata, and the values of which its own has to be one; where that is an array, one of its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataMatch {
    /// The key, which is none of a value within another one.
    pub key: String,
    /// Strings are compared to the letter, numbers by what they are. Without any, no document passes.
    pub values: Vec<Value>,
}

impl MetadataMatch {
    /// What somebody types for a value: the string, and the number or boolean that is written like it.
    #[must_use]
    pub fn typed(key: &str, value: &str) -> Self {
        let read = serde_json::from_str(value).ok();
        let read = read.filter(|read: &Value| read.is_number() || read.is_boolean());
        Self { key: key.to_owned(), values: std::iter::once(Value::from(value)).chain(read).collect() }
    }

    /// Whether a document with this metadata passes.
    fn is_met(&self, metadata: Option<&DocumentMetadata>) -> bool {
        let is_one = |own: &Value| self.values.iter().any(|value| is_same(own, value));
        match metadata.and_then(|Json(metadata)| metadata.get(&self.key)) {
            None => false,
            Some(Value::Array(items)) => items.iter().any(is_one),
            Some(own) => is_one(own),
        }
    }

    /// What stands somewhere in the stored metadata of every document that passes: the key, and one of the values unless these are none
    /// because there are several ways to write one.
    fn traces(&self) -> (String, Option<Vec<String>>) {
        let values = self.values.iter().map(|value| match value {
            Value::Number(number) => digits(number),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Some(value.to_string())
            }
        });
        (Value::from(self.key.as_str()).to_string(), values.collect())
    }
}

/// Whether two values are the same to the letter, or numbers that are worth the same.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i128(), other.as_i128()) {
            // Large ones must not be rounded together.
            (Some(one), Some(other)) => one == other,
            _ => one.as_f64().partial_cmp(&other.as_f64()) == Some(Ordering::Equal),
        },
        _ => one == other,
    }
}

/// The digits that stand in a whole number however it is written; none for numbers that may be written in several ways.
fn digits(number: &Number) -> Option<String> {
    let size = number.as_i64()?.unsigned_abs();
    (size < PLAIN).then(|| size.to_string())
}

/// Adds to a statement over documents and their jobs what a filter says. Of metadata that is only what can be seen without reading it.
macro_rules! and_passes {
    ($query:ident, $workspace:ident, $filter:ident) => {
        and_has(&mut $query, "d.name", &$filter.name);
        if let Some(state) = $filter.state {
            // As a word, which the databases know before they plan: their indexes are of single states.
            $query.push(" AND j.state = '").push(state.as_str()).push("'");
            if matches!(state, JobState::Dead | JobState::Cancelled) {
                $query
                    .push(" AND d.id IN (SELECT b.document_id FROM jobs b WHERE b.state = '")
                    .push(state.as_str());
                $query.push("' AND b.workspace_id = ").push_bind($workspace).push(")");
            }
        }
        if let Some(kind) = $filter.r#type {
            $query.push(" AND d.type = ").push_bind(kind);
        }
        if let Some(collection) = $filter.collection {
            $query
                .push(" AND EXISTS (SELECT 1 FROM collection_documents m WHERE m.document_id = d.id AND m.collection_id = ")
                .push_bind(collection)
                .push(")");
        }
        if let Some(source) = $filter.source {
            $query
                .push(" AND EXISTS (SELECT 1 FROM source_items i WHERE i.document_id = d.id AND i.workspace_id = ")
                .push_bind($workspace)
                .push(" AND i.source_id = ")
                .push_bind(source)
                .push(")");
        }
        if let Some(agent) = $filter.unlinked {
            $query
                .push(" AND NOT EXISTS (SELECT 1 FROM agent_documents l WHERE l.document_id = d.id AND l.agent_id = ")
                .push_bind(agent)
                .push(")");
        }
        if let Some((key, values)) = $filter.metadata.as_ref().map(MetadataMatch::traces) {
            $query.push(" AND d.metadata LIKE ").push_bind(contains(&key)).push(" ESCAPE '\\'");
            if let Some(values) = values {
                $query.push(" AND (1 = 0");
                for value in values {
                    $query.push(" OR d.metadata LIKE ").push_bind(contains(&value)).push(" ESCAPE '\\'");
                }
                $query.push(")");
            }
        }
    };
}

/// Goes on with a statement over documents, and their jobs where a filter looks at them.
macro_rules! from_documents {
    ($query:ident, $filter:ident) => {
        $query.push(" FROM documents d");
        if $filter.state.is_some() {
            $query.push(" JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest'");
        }
        $query.push(" WHERE d.deleted_at IS NULL");
    };
}

/// At most `limit` of a workspace's documents that pass a filter, those that come behind `after` in this order.
pub async fn browse(
    db: &Db,
    workspace: WorkspaceId,
    filter: &DocumentFilter,
    order: DocumentOrder,
    after: Option<DocumentId>,
    limit: u32,
) -> Result<Vec<Document>> {
    let Some(wanted) = &filter.metadata else {
        return candidates(db, workspace, filter, order, after, limit).await;
    };
    let (mut found, mut after) = (Vec::new(), after);
    // The engines do not read JSON alike, and PostgreSQL does not read all that is stored, so it is read here.
    loop {
        let batch = candidates(db, workspace, filter, order, after, BATCH).await?;
        let has_more = batch.len() == BATCH as usize;
        after = batch.last().map(|document| document.id);
        let room = (limit as usize).saturating_sub(found.len());
        found.extend(
            batch.into_iter().filter(|document| wanted.is_met(document.metadata.as_ref())).take(room),
        );
        if !has_more || found.len() >= limit as usize {
            return Ok(found);
        }
    }
}

/// How many of a workspace's documents pass a filter, up to `most`.
pub async fn count(db: &Db, workspace: WorkspaceId, filter: &DocumentFilter, most: u32) -> Result<u64> {
    if let Some(wanted) = &filter.metadata {
        return count_read(db, workspace, filter, wanted, most).await;
    }
    let count: i64 = on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT COUNT(*) FROM (SELECT 1 AS one");
        from_documents!(query, filter);
        query.push(" AND d.workspace_id = ").push_bind(workspace);
        and_passes!(query, workspace, filter);
        query.push(" LIMIT ").push_bind(i64::from(most)).push(") AS found");
        query.build_query_scalar().fetch_one(c).await
    })?;
    Ok(count.unsigned_abs())
}

/// [`count`], of documents whose metadata has to be read for it. Nothing else of them is.
async fn count_read(
    db: &Db,
    workspace: WorkspaceId,
    filter: &DocumentFilter,
    wanted: &MetadataMatch,
    most: u32,
) -> Result<u64> {
    let (mut found, mut behind) = (0, DocumentId::from(Uuid::max()));
    while found < most as usize {
        let batch: Vec<(DocumentId, Option<DocumentMetadata>)> = on!(db, |c| async {
            let mut query = QueryBuilder::new("SELECT d.id, d.metadata");
            from_documents!(query, filter);
            // The newest first, as [`candidates`] has them.
            query.push(" AND d.workspace_id >= ").push_bind(workspace);
            query.push(" AND (d.workspace_id, d.id) < (").push_bind(workspace).push(", ");
            query.push_bind(behind).push(")");
            and_passes!(query, workspace, filter);
            query.push(" ORDER BY d.workspace_id DESC, d.id DESC LIMIT ").push_bind(i64::from(BATCH));
            query.build_query_as().fetch_all(c).await
        })?;
        found += batch.iter().filter(|(_, metadata)| wanted.is_met(metadata.as_ref())).count();
        let Some((last, _)) = batch.last().filter(|_| batch.len() == BATCH as usize) else { break };
        behind = *last;
    }
    Ok(u64::from(most).min(found as u64))
}

/// [`browse`], with documents that have the metadata only by the look of it.
async fn candidates(
    db: &Db,
    workspace: WorkspaceId,
    filter: &DocumentFilter,
    order: DocumentOrder,
    after: Option<DocumentId>,
    limit: u32,
) -> Result<Vec<Document>> {
    Ok(on!(db, |c| async {
        // In the order of ids by a range that begins with the workspace, for the reason that [`super::LIST`] has.
        let (of_workspace, first) = match order {
            DocumentOrder::Newest => (
                select_document!("d.workspace_id >= "),
                Some((" AND (d.workspace_id, d.id) < (", after.unwrap_or(Uuid::max().into()))),
            ),
            DocumentOrder::Oldest => (
                select_document!("d.workspace_id <= "),
                Some((" AND (d.workspace_id, d.id) > (", after.unwrap_or(Uuid::nil().into()))),
            ),
            DocumentOrder::Name => (select_document!("d.workspace_id = "), None),
        };
        let mut query = QueryBuilder::new(of_workspace);
        query.push_bind(workspace);
        if let Some((behind, id)) = first {
            query.push(behind).push_bind(workspace).push(", ").push_bind(id).push(")");
        }
        and_passes!(query, workspace, filter);
        if let (DocumentOrder::Name, Some(after)) = (order, after) {
            // Where the list was, though that document may have been deleted since: its row is there for a while.
            query
                .push(" AND (SUBSTR(d.name, 1, 200), d.id) > ((SELECT SUBSTR(p.name, 1, 200) FROM documents p WHERE p.workspace_id = ")
                .push_bind(workspace)
                .push(" AND p.id = ")
                .push_bind(after)
                .push("), ")
                .push_bind(after)
                .push(")");
        }
        query.push(match order {
            DocumentOrder::Newest => " ORDER BY d.workspace_id DESC, d.id DESC LIMIT ",
            DocumentOrder::Oldest => " ORDER BY d.workspace_id, d.id LIMIT ",
            DocumentOrder::Name => " ORDER BY SUBSTR(d.name, 1, 200), d.id LIMIT ",
        });
        query.push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// Adds to a statement that a column has a text somewhere, in whichever case and with accents in one piece or in two. An empty text is in
/// all of them.
pub(crate) fn and_has<D: Database>(query: &mut QueryBuilder<D>, column: &str, text: &str)
where
    String: for<'q> Encode<'q, D> + Type<D>,
{
    and_any_has(query, &[column], text);
}

/// [`and_has`], of one of several columns.
pub(crate) fn and_any_has<D: Database>(query: &mut QueryBuilder<D>, columns: &[&str], text: &str)
where
    String: for<'q> Encode<'q, D> + Type<D>,
{
    if text.is_empty() {
        return;
    }
    let spellings = spellings(text);
    let letters = large_letters(&spellings.concat());
    let mut before = " AND (";
    for (column, spelling) in
        columns.iter().flat_map(|column| spellings.iter().map(move |text| (column, text)))
    {
        // SQLite makes ASCII small, as PostgreSQL does in some locales; the rest of the letters that are looked for is done here.
        query.push(before).push("REPLACE(".repeat(letters.len()));
        // The İ of Turkish is the one letter that becomes two when it is made small.
        query.push("LOWER(REPLACE(").push(column).push(", 'İ', 'i'))");
        for (large, small) in &letters {
            query.push(", ").push_bind(large.to_string());
            query.push(", ").push_bind(small.to_string()).push(")");
        }
        let small: String = spelling.replace('İ', "i").chars().flat_map(char::to_lowercase).collect();
        query.push(" LIKE ").push_bind(contains(&small)).push(" ESCAPE '\\'");
        before = " OR ";
    }
    query.push(")");
}

/// How many jobs are before that of one of a workspace's documents, up to `most`; none when it does not wait for its turn.
pub async fn jobs_before(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    most: u32,
) -> Result<Option<u64>> {
    let before: Option<i64> = on!(db, |c| sqlx::query_scalar(JOBS_BEFORE)
        .bind(document)
        .bind(workspace)
        .bind(i64::from(most))
        .fetch_optional(c))?;
    Ok(before.map(i64::unsigned_abs))
}

pub(crate) const JOBS_BEFORE: &str = concat!(
    "SELECT (SELECT COUNT(*) FROM (
                 SELECT 1 FROM jobs b WHERE b.state = 'queued' AND b.fair_at < j.fair_at LIMIT $3) AS earlier)
     FROM jobs j WHERE j.document_id = $1 AND j.workspace_id = $2 AND j.kind = 'ingest'
       AND j.fair_at < 9223372036854775807 AND ",
    still_queued!("j.")
);

/// When the job of one of a workspace's documents is due that waits, be it for that or for its turn; none when it does not wait.
pub async fn job_due_at(db: &Db, workspace: WorkspaceId, document: DocumentId) -> Result<Option<Timestamp>> {
    Ok(on!(db, |c| sqlx::query_scalar(JOB_DUE_AT).bind(document).bind(workspace).fetch_optional(c))?)
}

pub(crate) const JOB_DUE_AT: &str = concat!(
    "SELECT run_at FROM jobs WHERE document_id = $1 AND workspace_id = $2 AND kind = 'ingest' AND ",
    still_queued!("")
);

/// A pattern of what has this text somewhere.
fn contains(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// The large letters beyond ASCII whose small ones a text has in one case or the other, with these.
fn large_letters(text: &str) -> Vec<(char, char)> {
    let small: BTreeSet<char> = text.chars().flat_map(char::to_lowercase).filter(|c| !c.is_ascii()).collect();
    let pairs = small.into_iter().filter_map(|small| {
        let mut large = small.to_uppercase();
        let large = large.next().filter(|_| large.next().is_none())?;
        (large != small && large.to_lowercase().eq([small])).then_some((large, small))
    });
    pairs.take(LETTERS).collect()
}
