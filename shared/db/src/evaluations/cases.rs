//! The cases of evaluations.

use lectern_shared::{
    clock::Timestamp,
    ids::{EvaluationCaseId, EvaluationId, UserId, WorkspaceId},
    model::{
        Json,
        evaluation::{EvaluationCase, ExpectedOutcome},
    },
};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, execute, on};

/// The most rows that one statement adds.
const BATCH: usize = 200;

/// A new case.
#[derive(Clone, Debug)]
pub struct NewEvaluationCase {
    /// Its id.
    pub id: EvaluationCaseId,
    /// The question.
    pub question: String,
    /// What is to come of it.
    pub expect: ExpectedOutcome,
    /// Anything that somebody wants to say of it.
    pub note: Option<String>,
}

/// Adds cases to a set that is [locked](super::lock).
pub async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    by: Option<UserId>,
    cases: &[NewEvaluationCase],
    now: Timestamp,
) -> Result<()> {
    for batch in cases.chunks(BATCH) {
        on!(tx, |c| async {
            let mut query = QueryBuilder::new(
                "INSERT INTO evaluation_cases (id, workspace_id, evaluation_id, question, expect, note, created_by, created_at,
                                               updated_at) ",
            );
            query.push_values(batch, |mut row, case| {
                row.push_bind(case.id)
                    .push_bind(workspace)
                    .push_bind(evaluation)
                    .push_bind(case.question.as_str())
                    .push_bind(Json(&case.expect))
                    .push_bind(case.note.as_deref())
                    .push_bind(by)
                    .push_bind(now)
                    .push_bind(now);
            });
            query.build().execute(c).await.map(|_| ())
        })?;
    }
    Ok(())
}

macro_rules! select_case {
    ($where:literal) => {
        concat!(
            "SELECT id, workspace_id, evaluation_id, question, expect, note, created_at, updated_at FROM evaluation_cases WHERE ",
            $where
        )
    };
}

/// One case of a set that is [locked](super::lock).
pub async fn find(
    tx: &mut Tx,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    id: EvaluationCaseId,
) -> Result<Option<EvaluationCase>> {
    Ok(on!(tx, |c| sqlx::query_as(select_case!("id = $1 AND evaluation_id = $2 AND workspace_id = $3"))
        .bind(id)
        .bind(evaluation)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// At most `limit` cases of one of a workspace's sets older than `before`, newest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    before: EvaluationCaseId,
    limit: u32,
) -> Result<Vec<EvaluationCase>> {
    Ok(on!(db, |c| sqlx::query_as(select_case!(
        "evaluation_id = $1 AND workspace_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    ))
    .bind(evaluation)
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// At most `limit` cases of one of a workspace's sets behind `after`, in the order in which they were made; those made until then.
pub async fn following(
    db: &Db,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    until: Timestamp,
    after: EvaluationCaseId,
    limit: u32,
) -> Result<Vec<EvaluationCase>> {
    Ok(on!(db, |c| sqlx::query_as(select_case!(
        "evaluation_id = $1 AND workspace_id = $2 AND created_at <= $3 AND id > $4 ORDER BY id LIMIT $5"
    ))
    .bind(evaluation)
    .bind(workspace)
    .bind(until)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// At most `limit` cases behind `after` of a set that is [locked](super::lock), in the order in which they were made.
pub async fn page(
    tx: &mut Tx,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    after: EvaluationCaseId,
    limit: u32,
) -> Result<Vec<EvaluationCase>> {
    Ok(on!(tx, |c| sqlx::query_as(select_case!(
        "evaluation_id = $1 AND workspace_id = $2 AND id > $3 ORDER BY id LIMIT $4"
    ))
    .bind(evaluation)
    .bind(workspace)
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Bytes of the questions of a set that is [locked](super::lock), and of what is to come of them, as they are stored.
pub async fn stored_bytes(tx: &mut Tx, workspace: WorkspaceId, evaluation: EvaluationId) -> Result<u64> {
    let bytes: i64 = on!(tx, |c| {
        sqlx::query_scalar(
            "SELECT CAST(COALESCE(SUM(octet_length(question) + octet_length(expect)), 0) AS BIGINT) FROM evaluation_cases
             WHERE evaluation_id = $1 AND workspace_id = $2",
        )
        .bind(evaluation)
        .bind(workspace)
        .fetch_one(c)
    })?;
    Ok(bytes.unsigned_abs())
}

/// Makes a case of one of a workspace's sets what it is said to be; false when there is none.
pub async fn update(
    tx: &mut Tx,
    workspace: WorkspaceId,
    case: &EvaluationCase,
    now: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE evaluation_cases SET question = $4, expect = $5, note = $6, updated_at = $7
             WHERE id = $1 AND evaluation_id = $2 AND workspace_id = $3"
        )
        .bind(case.id)
        .bind(case.evaluation_id)
        .bind(workspace)
        .bind(case.question.as_str())
        .bind(&case.expect)
        .bind(case.note.as_deref())
        .bind(now)
    )?;
    Ok(rows == 1)
}

/// Deletes a case of one of a workspace's sets; false when there is none.
pub async fn delete(
    tx: &mut Tx,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    id: EvaluationCaseId,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "DELETE FROM evaluation_cases WHERE id = $1 AND evaluation_id = $2 AND workspace_id = $3"
        )
        .bind(id)
        .bind(evaluation)
        .bind(workspace)
    )?;
    Ok(rows == 1)
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::evaluation::{DeclineWord, Evaluation};
    use uuid::Uuid;

    use super::*;
    use crate::{
        evaluations,
        testing::{at, both, commit, made_in, workspace},
    };

    #[tokio::test]
    async fn questions_count_among_the_bytes_of_their_own_set() {
        for t in &both().await {
            let workspace = workspace(&t.db, at(0)).await;
            let [set, other] = [EvaluationId::generate(), EvaluationId::generate()];
            for id in [set, other] {
                let evaluation = Evaluation {
                    id,
                    owner: made_in(workspace),
                    name: "Questions".to_owned(),
                    agent_id: None,
                    collection_ids: Json(Vec::new()),
                    judge_id: None,
                    created_at: at(1),
                    updated_at: at(1),
                    cases: 0,
                };
                commit!(t.db, |tx| evaluations::insert(tx, &evaluation));
            }
            for (set, question) in [(set, "Müde?"), (set, "Why?"), (other, "Elsewhere?")] {
                let case = NewEvaluationCase {
                    id: EvaluationCaseId::generate(),
                    question: question.to_owned(),
                    expect: ExpectedOutcome::Decline(DeclineWord::Decline),
                    note: Some("not counted".to_owned()),
                };
                commit!(t.db, |tx| insert(tx, workspace, set, None, &[case], at(1)));
            }
            let mut tx = t.db.begin().await.unwrap();
            let bytes = stored_bytes(&mut tx, workspace, set).await.unwrap();
            assert_eq!(bytes, "Müde?\"decline\"Why?\"decline\"".len() as u64, "{}", t.name);
            let first = page(&mut tx, workspace, set, Uuid::nil().into(), 1).await.unwrap();
            let rest = page(&mut tx, workspace, set, first[0].id, 10).await.unwrap();
            let asked: Vec<_> = first.iter().chain(&rest).map(|case| case.question.as_str()).collect();
            assert_eq!(asked, ["Müde?", "Why?"], "{}", t.name);
        }
    }
}
