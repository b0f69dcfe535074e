//! Evaluations and their runs.

use std::{collections::BTreeMap, time::Duration};

use lectern_shared::{
    clock::Timestamp,
    ids::{EvaluationCaseId, EvaluationId, WorkspaceId},
    model::{
        Json,
        evaluation::{CaseResult, DeclineWord, Evaluation, EvaluationConfig, EvaluationRun, ExpectedOutcome},
        search::SearchMode,
    },
};

use crate::{
    Db, evaluations,
    evaluations::runs::{self, NewCaseResult},
    testing::{account_of, at, both, commit, made_in, workspace},
};

async fn added(db: &Db, workspace: WorkspaceId) -> EvaluationId {
    let evaluation = Evaluation {
        id: EvaluationId::generate(),
        owner: made_in(workspace),
        name: "Questions".to_owned(),
        agent_id: None,
        collection_ids: Json(Vec::new()),
        judge_id: None,
        created_at: at(0),
        updated_at: at(0),
        cases: 0,
    };
    commit!(db, |tx| evaluations::insert(tx, &evaluation));
    evaluation.id
}

async fn claimed(db: &Db, now: Timestamp) -> Option<EvaluationRun> {
    let until = now.plus(Duration::from_mins(1));
    commit!(db, |tx| runs::claim(tx, now, until)).map(|claimed| claimed.run)
}

fn config() -> EvaluationConfig {
    EvaluationConfig {
        modes: vec![SearchMode::Lexical],
        answers: false,
        agent_id: None,
        agent_name: None,
        agent_version: None,
        rerank: false,
    }
}

#[tokio::test]
async fn an_account_has_one_run_under_way_in_however_many_workspaces() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let shared = workspace(&t.db, at(0)).await;
        for (workspace, by) in [(ada, ada), (shared, ada), (grace, grace)] {
            let evaluation = added(&t.db, workspace).await;
            let (by, config) = (account_of(by), config());
            commit!(t.db, |tx| runs::insert(tx, workspace, evaluation, by, &config, 2, at(1)));
        }
        let first = claimed(&t.db, at(10)).await.expect(t.name);
        let second = claimed(&t.db, at(10)).await.expect(t.name);
        assert_eq!([first.workspace_id, second.workspace_id], [ada, grace], "{}", t.name);
        assert!(!runs::any_due(&t.db, at(10)).await.unwrap(), "{}", t.name);
        assert!(claimed(&t.db, at(10)).await.is_none(), "{}: the account has its share", t.name);
        commit!(t.db, |tx| runs::release(tx, first.id, first.claim_id.expect(t.name), false));
        assert!(runs::any_due(&t.db, at(10)).await.unwrap(), "{}", t.name);
        assert_eq!(claimed(&t.db, at(10)).await.expect(t.name).id, first.id, "{}", t.name);
    }
}

/// Else all that ever were would be read over and over, once for each that waits.
#[tokio::test]
async fn the_next_run_is_found_without_reading_those_that_have_ended() {
    let tests = both().await;
    for statement in [runs::CLAIM, runs::DUE] {
        let plan = tests[0].query_plan(statement).await;
        let reads_all = |step: &&String| step.starts_with("SCAN") && !step.contains("evaluation_runs_due");
        assert_eq!(plan.iter().find(reads_all), None, "{plan:#?}");
    }
}

#[tokio::test]
async fn a_run_that_is_given_back_was_taken_up_only_where_that_counts_and_since_it_last_went_on() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let evaluation = added(&t.db, owner).await;
        let (config, by) = (config(), account_of(owner));
        commit!(t.db, |tx| runs::insert(tx, owner, evaluation, by, &config, 2, at(1)));
        for (counts, attempts) in [(false, 1), (true, 1), (true, 2), (false, 3)] {
            let run = claimed(&t.db, at(10)).await.expect(t.name);
            assert_eq!(run.attempts, attempts, "{}", t.name);
            let claim = run.claim_id.expect(t.name);
            commit!(t.db, |tx| runs::release(tx, run.id, claim, counts));
        }
        let run = claimed(&t.db, at(10)).await.expect(t.name);
        let result = NewCaseResult {
            case: EvaluationCaseId::generate(),
            question: "Who?".to_owned(),
            result: CaseResult {
                expect: ExpectedOutcome::Decline(DeclineWord::Decline),
                gold: Vec::new(),
                retrieval: BTreeMap::new(),
                answer: None,
            },
        };
        commit!(t.db, |tx| runs::add_results(tx, &run, &[result]));
        commit!(t.db, |tx| runs::release(tx, run.id, run.claim_id.expect(t.name), true));
        let run = claimed(&t.db, at(10)).await.expect(t.name);
        assert_eq!((run.attempts, run.done), (2, 1), "{}: it went on", t.name);
    }
}
