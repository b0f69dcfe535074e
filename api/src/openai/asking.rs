//! What the ways to ask an agent have in common here: which agent a model's name means, how an answer's end is told, and the
//! reference to its trace.

use lectern_agents::run::{AgentQuestion, RunHandle};
use lectern_shared::{ids::TraceId, model::run::TerminationReason};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{error::unknown_model, messages::Conversation};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::JsonFields,
    services::{
        actor::Actor,
        asking::{AskService, AskableAgent},
    },
};

/// Where everything that happened can be read.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunReference {
    /// The id of the trace, see `GET /api/v1/traces/{id}`.
    #[schema(value_type = String)]
    pub(super) trace_id: TraceId,
}

/// The id of an answer, which is its trace's.
pub(super) fn answer_id(prefix: &str, trace: TraceId) -> String {
    format!("{prefix}{}", trace.as_uuid().simple())
}

/// The trace of which an answer has this id.
pub(super) fn trace_of(prefix: &str, id: &str) -> Option<TraceId> {
    let trace = TraceId::from(Uuid::try_parse(id.strip_prefix(prefix)?).ok()?);
    // The other spellings that `Uuid` reads were never given out.
    (answer_id(prefix, trace) == id).then_some(trace)
}

/// The agent that a model's name means.
pub(super) async fn find_model(
    asking: &AskService,
    actor: &Actor,
    model: &str,
) -> Result<AskableAgent, ApiError> {
    asking.find_named(actor, model).await.map_err(|error| match error.kind {
        ApiErrorKind::NotFound => unknown_model(model, ""),
        ApiErrorKind::Conflict => {
            let message = "is the name of several agents: give the id of the one that you mean";
            ApiError::invalid_field("model", message)
        }
        _ => error,
    })
}

/// Asks an agent. `variables` are values for its prompt, which clients have no other place for than the request's metadata; those that
/// the prompt does not name are ignored.
pub(super) async fn ask_model(
    asking: &AskService,
    actor: &Actor,
    asked: AskableAgent,
    conversation: Conversation,
    variables: Map<String, Value>,
    max_tokens: Option<u32>,
) -> Result<RunHandle, ApiError> {
    let Conversation { question, history, instructions, references: _ } = conversation;
    let text = question;
    let question =
        AgentQuestion { text, variables, history, instructions, max_tokens, ..AgentQuestion::default() };
    asking.ask(actor, asked, question).await.map_err(|error| error.with_values_in("metadata"))
}

/// Refuses a format of the answer other than text, which stands in this field.
pub(super) fn refuse_formats(fields: &mut JsonFields<'_>, name: &str, format: Option<&Value>) {
    let Some(format) = format else { return };
    if format.get("type").and_then(Value::as_str) != Some("text") {
        fields.refuse(name, "must be left out, or {\"type\": \"text\"}: agents answer in text");
    }
}

/// Whether an answer is shorter than it would have been without a limit.
pub(super) const fn is_cut(reason: TerminationReason) -> bool {
    match reason {
        TerminationReason::Length
        | TerminationReason::MaxIterations
        | TerminationReason::MaxTime
        | TerminationReason::MaxTokens
        | TerminationReason::MaxCost => true,
        TerminationReason::Stop
        | TerminationReason::Unformatted
        | TerminationReason::ReturnDirect
        | TerminationReason::Extractive
        | TerminationReason::Declined
        | TerminationReason::Error => false,
    }
}
