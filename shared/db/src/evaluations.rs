//! Evaluations: sets of cases, and their runs. In the order of locks: the workspace, the set, its run.

pub mod cases;
pub mod runs;

use lectern_shared::{
    ids::{EvaluationId, WorkspaceId},
    model::evaluation::Evaluation,
};

use crate::{Db, Result, Tx, execute, on};

macro_rules! select_evaluation {
    ($where:literal) => {
        concat!(
            "SELECT e.id, e.workspace_id, e.created_by, e.name, e.agent_id, e.collection_ids, e.judge_id, e.created_at, e.updated_at,
                    (SELECT COUNT(*) FROM evaluation_cases c WHERE c.evaluation_id = e.id) AS cases
             FROM evaluations e WHERE ",
            $where
        )
    };
}

/// Adds a set.
pub async fn insert(tx: &mut Tx, evaluation: &Evaluation) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO evaluations (id, workspace_id, created_by, name, agent_id, collection_ids, judge_id, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)"
        )
        .bind(evaluation.id)
        .bind(evaluation.owner.workspace_id)
        .bind(evaluation.owner.creator())
        .bind(evaluation.name.as_str())
        .bind(evaluation.agent_id)
        .bind(&evaluation.collection_ids)
        .bind(evaluation.judge_id)
        .bind(evaluation.created_at)
    )?;
    Ok(())
}

/// One of a workspace's sets.
pub async fn find(db: &Db, workspace: WorkspaceId, id: EvaluationId) -> Result<Option<Evaluation>> {
    Ok(on!(db, |c| sqlx::query_as(select_evaluation!("e.id = $1 AND e.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// [`find`] within a transaction; nobody else changes it or its cases until that ends.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: EvaluationId) -> Result<Option<Evaluation>> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE evaluations SET updated_at = updated_at WHERE id = $1 AND workspace_id = $2")
            .bind(id)
            .bind(workspace)
    )?;
    if rows == 0 {
        return Ok(None);
    }
    Ok(on!(tx, |c| sqlx::query_as(select_evaluation!("e.id = $1 AND e.workspace_id = $2"))
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` of a workspace's sets older than `before`, newest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    before: EvaluationId,
    limit: u32,
) -> Result<Vec<Evaluation>> {
    Ok(on!(db, |c| sqlx::query_as(select_evaluation!(
        "e.workspace_id = $1 AND e.id < $2 ORDER BY e.id DESC LIMIT $3"
    ))
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// How many sets a workspace has.
pub async fn count(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64> {
    let count: i64 =
        on!(tx, |c| sqlx::query_scalar("SELECT COUNT(*) FROM evaluations WHERE workspace_id = $1")
            .bind(workspace)
            .fetch_one(c))?;
    Ok(count.unsigned_abs())
}

/// Makes a set what it is said to be.
pub async fn update(tx: &mut Tx, evaluation: &Evaluation) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE evaluations SET name = $3, agent_id = $4, collection_ids = $5, judge_id = $6, updated_at = $7
             WHERE id = $1 AND workspace_id = $2"
        )
        .bind(evaluation.id)
        .bind(evaluation.owner.workspace_id)
        .bind(evaluation.name.as_str())
        .bind(evaluation.agent_id)
        .bind(&evaluation.collection_ids)
        .bind(evaluation.judge_id)
        .bind(evaluation.updated_at)
    )?;
    Ok(())
}

/// Deletes one of a workspace's sets, with its cases and runs; false when there is none.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: EvaluationId) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM evaluations WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(rows == 1)
}
