//! A trace as the documentation shows it.

use lectern_shared::model::run::{StepKind, TerminationReason};
use serde_json::{Value, json};

/// A trace, for the documentation.
pub fn example() -> Value {
    let place = json!({"page": 2, "pageEnd": 2, "charStart": 63, "charEnd": 136});
    let sentence = "Its captain, Solveig Aas, had sailed the route twice before.";
    json!({
        "id": "019a8f52-77d0-7b1e-8c35-41a6d90f2e18",
        "agentVersion": 3,
        "output": "Solveig Aas: \u{201c}Its captain, Solveig Aas, had sailed the route twice before.\u{201d} [1]",
        "finishReason": TerminationReason::Stop,
        "durationMs": 1240,
        "llm": {"model": "gpt-4.1-mini", "provider": "openai-chat"},
        "usage": {"inputTokens": 412, "outputTokens": 24, "cost": null, "source": "provider"},
        "steps": [
            {
                "kind": StepKind::Retrieval,
                "action": "search_documents",
                "input": "Who was the captain?",
                "log": null,
                "observation": null,
                "startedMs": 0,
                "durationMs": 12,
                "attempts": 1,
                "usage": null,
                "error": null,
                "documents": [{
                    "n": 1,
                    "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
                    "documentName": "report.pdf",
                    "chunkId": "5f0b7a52-1c3e-5d84-9a6f-2b7c8d9e0f11",
                    "place": place,
                    "score": 7.25,
                    "text": format!("Chapter two. {sentence}"),
                }],
            },
            {
                "kind": StepKind::Chat,
                "action": "gpt-4.1-mini",
                "input": "Who was the captain?",
                "log": null,
                "observation": format!("Solveig Aas: \u{201c}{sentence}\u{201d} [1]"),
                "startedMs": 13,
                "durationMs": 1226,
                "attempts": 1,
                "usage": {"inputTokens": 412, "outputTokens": 24, "cost": null, "source": "provider"},
                "error": null,
                "documents": [],
            },
        ],
        "citations": [{
            "n": 1,
            "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
            "documentName": "report.pdf",
            "chunkId": "5f0b7a52-1c3e-5d84-9a6f-2b7c8d9e0f11",
            "place": place,
            "page": 2,
            "url": "https://example.com/report.pdf#page=2",
            "quote": sentence,
            "verified": true,
        }],
    })
}
