//! Asking an agent.

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::post,
};
use lectern_shared::{db, ids::AgentId, runtime::Runtime};
use serde_json::json;

use crate::{
    auth::TokenCaller,
    error::ApiError,
    extract::{Fields, FromFields, PathId, Valid},
    predict::{self, Question},
    response::Answer,
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/agents/{id}/predict", post(run))
}

/// Longest question, in characters.
const QUESTION: usize = 100_000;
/// Longest session name, in characters.
const SESSION: usize = 1_000;

struct Body {
    question: String,
    session: Option<String>,
}

impl FromFields for Body {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        if fields.get("input").is_none() {
            fields.refuse("input", "is required: an object such as {\"input\": \"your question\"}");
        }
        if fields.boolean("has_streaming") == Some(true) {
            fields.refuse("has_streaming", "streamed answers are not available yet; send false");
        }
        Self {
            question: fields.nested("input", |input| input.text("input", QUESTION)).unwrap_or_default(),
            session: fields.optional_text("session", SESSION),
        }
    }
}

async fn run(
    State(runtime): State<Runtime>,
    TokenCaller(user): TokenCaller,
    PathId(id): PathId<AgentId>,
    Valid(body): Valid<Body>,
) -> Answer<Response> {
    let agent =
        db::agents::find(&runtime.db, user.id, id).await?.ok_or_else(|| ApiError::not_found("agent"))?;
    let question = Question { text: body.question, session: body.session };
    let answer = predict::run(&runtime, &agent, &question).await?;
    Ok(Json(json!({"success": true, "data": answer.text, "trace": answer.trace})).into_response())
}
