//! What is shown of evaluations, as the description of the interface shows it.

use serde_json::{Value, json};

const WORKSPACE: &str = "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55";
const EVALUATION: &str = "019a8f60-11c2-7d30-8a4e-6b5c7d8e9f01";
const RUN: &str = "019a8f61-22d3-7e41-9b5f-7c6d8e9f0a12";
const CASE: &str = "019a8f60-33e4-7f52-8c60-8d7e9f0a1b23";
const DOCUMENT: &str = "019a8f42-51d0-7e8c-a4f6-0b1c2d3e4f50";

/// A set as it is shown.
pub(super) fn example() -> Value {
    json!({
        "id": EVALUATION,
        "workspaceId": WORKSPACE,
        "name": "Warranty questions",
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "collectionIds": [],
        "judgeAgentId": null,
        "cases": 120,
        "createdAt": "2026-01-31T08:06:00.000000+00:00",
        "updatedAt": "2026-01-31T08:06:00.000000+00:00",
    })
}

/// A case as it is shown.
pub(super) fn case_example() -> Value {
    json!({
        "id": CASE,
        "workspaceId": WORKSPACE,
        "evaluationId": EVALUATION,
        "question": "How long does the warranty last?",
        "expect": [{"documentId": DOCUMENT, "quote": "The warranty lasts two years"}],
        "note": null,
        "createdAt": "2026-01-31T08:07:00.000000+00:00",
        "updatedAt": "2026-01-31T08:07:00.000000+00:00",
    })
}

/// A run as it is shown.
pub(super) fn run_example() -> Value {
    let estimate =
        |value: f64| json!({"value": value, "low": value - 0.05, "high": value + 0.05, "cases": 120});
    json!({
        "id": RUN,
        "workspaceId": WORKSPACE,
        "evaluationId": EVALUATION,
        "state": "succeeded",
        "requestedBy": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "modes": ["hybrid"],
        "answers": false,
        "agentId": null,
        "agentVersion": null,
        "rerank": false,
        "cases": 120,
        "done": 120,
        "metrics": {
            "retrieval": {"hybrid": {"hit@5": estimate(0.875), "ndcg@10": estimate(0.75)}},
            "lost": 1,
            "failed": 0,
        },
        "error": null,
        "createdAt": "2026-01-31T08:10:00.000000+00:00",
        "updatedAt": "2026-01-31T08:10:02.000000+00:00",
        "startedAt": "2026-01-31T08:10:00.500000+00:00",
        "finishedAt": "2026-01-31T08:10:02.000000+00:00",
    })
}

/// A result as it is shown.
pub(super) fn result_example() -> Value {
    json!({
        "caseId": CASE,
        "question": "How long does the warranty last?",
        "expect": [{"documentId": DOCUMENT, "quote": "The warranty lasts two years"}],
        "gold": [{"state": "found", "reason": null}],
        "retrieval": {"hybrid": {
            "ranks": [2],
            "metrics": {"hit@1": 0.0, "hit@5": 1.0, "hit@10": 1.0, "mrr": 0.5, "ndcg@10": 0.63, "recall@10": 1.0},
            "retrieved": [{"documentId": DOCUMENT, "chunkId": "9d7c1b2a-0f3e-5d6c-8b4a-1e2f3a4b5c6d", "gold": 0}],
            "error": null,
        }},
        "answer": null,
    })
}

/// A run with its results as it is shown.
pub(super) fn run_with_results_example() -> Value {
    let mut run = run_example();
    run["results"] = json!([result_example()]);
    run
}

/// A comparison as it is shown.
pub(super) fn comparison_example() -> Value {
    json!({
        "run": run_example(),
        "other": run_example(),
        "metrics": [{
            "metric": "hit@5", "mode": "hybrid", "value": 0.875, "other": 0.85, "difference": 0.025, "low": -0.01, "high": 0.06,
            "won": 5, "lost": 2, "tied": 113,
        }],
        "differing": 7,
        "cases": [{
            "differences": [{"metric": "hit@1", "mode": "hybrid", "value": 0.0, "other": 1.0}],
            "this": result_example(),
            "other": result_example(),
        }],
    })
}
