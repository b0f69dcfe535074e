//! Documents as people look for them: by a part of the name, by state, type, collection and metadata, in the order that they like.

use lectern_shared::{
    ids::{CollectionId, DocumentId, WorkspaceId},
    model::{
        document::{Document, DocumentType},
        job::JobState,
    },
};
use sqlx::QueryBuilder;

use super::select_document;
use crate::{Db, Result, on};

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
    /// A value of its metadata: the key, and the value as text.
    pub metadata: Option<(String, String)>,
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
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(select_document!("d.workspace_id = "));
        query.push_bind(workspace);
        if !filter.name.is_empty() {
            query
                .push(" AND LOWER(d.name) LIKE ")
                .push_bind(contains(&filter.name.to_lowercase()))
                .push(" ESCAPE '\\'");
        }
        if let Some(state) = filter.state {
            // As a word, which the databases know before they plan: their indexes are of single states.
            query.push(" AND j.state = '").push(state.as_str()).push("'");
            if matches!(state, JobState::Dead | JobState::Cancelled) {
                query
                    .push(" AND d.id IN (SELECT b.document_id FROM jobs b WHERE b.state = '")
                    .push(state.as_str());
                query.push("' AND b.workspace_id = ").push_bind(workspace).push(")");
            }
        }
        if let Some(kind) = filter.r#type {
            query.push(" AND d.type = ").push_bind(kind);
        }
        if let Some(collection) = filter.collection {
            query
                .push(" AND EXISTS (SELECT 1 FROM collection_documents m WHERE m.document_id = d.id AND m.collection_id = ")
                .push_bind(collection)
                .push(")");
        }
        if let Some((key, value)) = &filter.metadata {
            let [as_text, before_more, at_end] = metadata_texts(key, value);
            query.push(" AND (d.metadata LIKE ").push_bind(as_text).push(" ESCAPE '\\'");
            query.push(" OR d.metadata LIKE ").push_bind(before_more).push(" ESCAPE '\\'");
            query.push(" OR d.metadata LIKE ").push_bind(at_end).push(" ESCAPE '\\')");
        }
        match (order, after) {
            (_, None) => {}
            (DocumentOrder::Newest, Some(after)) => {
                query.push(" AND d.id < ").push_bind(after);
            }
            (DocumentOrder::Oldest, Some(after)) => {
                query.push(" AND d.id > ").push_bind(after);
            }
            (DocumentOrder::Name, Some(after)) => {
                // Where the list was, though that document may have been deleted since: its row is there for a while.
                query
                    .push(" AND (SUBSTR(d.name, 1, 200), d.id) > ((SELECT SUBSTR(p.name, 1, 200) FROM documents p WHERE p.id = ")
                    .push_bind(after)
                    .push("), ")
                    .push_bind(after)
                    .push(")");
            }
        }
        query.push(match order {
            DocumentOrder::Newest => " ORDER BY d.id DESC LIMIT ",
            DocumentOrder::Oldest => " ORDER BY d.id LIMIT ",
            DocumentOrder::Name => " ORDER BY SUBSTR(d.name, 1, 200), d.id LIMIT ",
        });
        query.push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// How many jobs are before that of one of a workspace's documents, up to `most`; none when it does not wait for its turn.
pub async fn jobs_before(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    most: u32,
) -> Result<Option<u64>> {
    let before: Option<i64> = on!(db, |c| {
        sqlx::query_scalar(
        "SELECT (SELECT COUNT(*) FROM (
                     SELECT 1 FROM jobs b WHERE b.state = 'queued' AND b.fair_at < j.fair_at LIMIT $3) AS earlier)
         FROM jobs j WHERE j.document_id = $1 AND j.workspace_id = $2 AND j.kind = 'ingest' AND j.state = 'queued'
           AND j.fair_at < 9223372036854775807"
    )
    .bind(document)
    .bind(workspace)
    .bind(i64::from(most))
    .fetch_optional(c)
    })?;
    Ok(before.map(i64::unsigned_abs))
}

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

/// How a value of the metadata can stand in its JSON: as a text; as a number or a word, with more behind it or not.
fn metadata_texts(key: &str, value: &str) -> [String; 3] {
    let key = serde_json::Value::from(key);
    let text = serde_json::Value::from(value);
    [format!("{key}:{text}"), format!("{key}:{value},"), format!("{key}:{value}}}")]
        .map(|text| contains(&text))
}
