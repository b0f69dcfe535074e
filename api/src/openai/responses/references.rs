//! Answers that a client refers to by their ids: they are looked up among the traces that whoever asks may see.

use lectern_shared::ids::TraceId;
use serde_json::Value;

use crate::{
    error::{ApiError, ApiErrorKind},
    openai::messages::{AnswerReference, Conversation},
    services::{actor::Actor, traces::TraceService},
};

/// Answers that are looked up for one request, the last ones: each is a question to the database.
const MOST_ANSWERS: usize = 100;
/// Bytes that they have in sum, at most: as many as a request that sends them.
const LARGEST_SUM: usize = 2 << 20;

/// What is said of a reference that leads to nothing.
pub(super) const UNKNOWN_REFERENCE: &str = "names no answer of yours that is still kept: send the item itself, as clients do that \
                                            are told `store: false`";

/// The conversation with the answers that it only refers to. Of more than are looked up, the oldest go first, with all that was said
/// before them.
///
/// # Errors
/// A reference to what is not there, or is not for this actor to see.
pub(super) async fn resolve(
    traces: &TraceService,
    actor: &Actor,
    conversation: Conversation,
) -> Result<Conversation, ApiError> {
    let Conversation { question, mut history, instructions, references } = conversation;
    let mut room = LARGEST_SUM;
    // From the last one on, so that the places of those before it stay where they are.
    for (count, AnswerReference { path, trace, turn, at }) in references.into_iter().rev().enumerate() {
        let answer = find(traces, actor, trace, &path).await?;
        if count == MOST_ANSWERS || answer.len() > room {
            history = history.split_off(turn + 1);
            break;
        }
        room -= answer.len();
        if let Some((_, told)) = history.get_mut(turn) {
            told.insert_str(at, &answer);
        }
    }
    Ok(Conversation { question, history, instructions, references: Vec::new() })
}

/// The answer of a run, to which the field `path` refers.
async fn find(traces: &TraceService, actor: &Actor, trace: TraceId, path: &str) -> Result<String, ApiError> {
    let found = traces.find(actor, trace).await.map_err(|error| match error.kind {
        ApiErrorKind::NotFound => ApiError::invalid_field(path, UNKNOWN_REFERENCE),
        _ => error,
    })?;
    Ok(found.body.0.get("output").and_then(Value::as_str).unwrap_or_default().to_owned())
}
