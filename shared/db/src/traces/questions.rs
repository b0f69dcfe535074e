//! Looking for a trace by what was asked.

use lectern_shared::{
    clock::Timestamp,
    ids::{AskerId, TraceId, WorkspaceId},
};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{StoredTrace, TraceFilter, columns};
use crate::{Db, Result, documents::browse::and_has, on};

/// Characters of a question that are kept to be looked for: an index has room for so many, whichever they are.
const QUESTION: usize = 500;

/// What is kept of a question beside its trace. PostgreSQL takes no text with a NUL.
pub(super) fn kept_question(question: &str) -> String {
    question.chars().take(QUESTION).map(|c| if c == '\0' { ' ' } else { c }).collect()
}

/// [`super::list`], of the answers to a question, along the index that has the questions: any other way would go through more than is to be looked
/// at, and read all of it.
pub(super) async fn search(
    db: &Db,
    workspace: WorkspaceId,
    asker: Option<AskerId>,
    filter: &TraceFilter,
    now: Timestamp,
    before: TraceId,
    limit: u32,
) -> Result<Vec<StoredTrace>> {
    let since = filter.since.unwrap_or(Uuid::nil().into());
    Ok(on!(db, |c| async {
        let mut query =
            QueryBuilder::new(concat!("SELECT ", columns!(), " FROM traces WHERE (workspace_id, id) < ("));
        query.push_bind(workspace).push(", ").push_bind(before).push(") AND (workspace_id, id) >= (");
        query.push_bind(workspace).push(", ").push_bind(since).push(") AND expires_at > ").push_bind(now);
        and_has(&mut query, "question", &filter.question);
        if let Some(agent) = filter.agent {
            // In words that no index is chosen by.
            query.push(" AND (").push_bind(agent).push(" IS NULL OR agent_id = ").push_bind(agent).push(")");
        }
        if let Some(asker) = asker {
            query
                .push(" AND (")
                .push_bind(asker)
                .push(" IS NULL OR COALESCE(token_id, created_by, workspace_id) = ");
            query.push_bind(asker).push(")");
        }
        if let Some(rating) = filter.rating {
            query.push(" AND rating = ").push_bind(rating);
        }
        query.push(" ORDER BY workspace_id DESC, id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// With which of a workspace's traces older than `before` a search ends that looks at `most` of them; none when there are no more than
/// these.
pub async fn search_end(
    db: &Db,
    workspace: WorkspaceId,
    before: TraceId,
    most: u32,
) -> Result<Option<TraceId>> {
    let found: Vec<TraceId> = on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM traces WHERE workspace_id >= $1 AND (workspace_id, id) < ($1, $2)
         ORDER BY workspace_id DESC, id DESC LIMIT 2 OFFSET $3"
    )
    .bind(workspace)
    .bind(before)
    .bind(i64::from(most.saturating_sub(1)))
    .fetch_all(c))?;
    let [last, _] = found.as_slice() else { return Ok(None) };
    Ok(Some(*last))
}
