//! One run of an agent: retrieve for the question → ask the model, or quote the passages → verify citations → keep the
//! trace. The predict endpoint calls [`run`]; it calls the search, the model and the store.

mod chat;
pub mod cite;
mod extractive;
pub(crate) mod link;
pub mod quote;
mod retrieve;
pub(crate) mod trace;

use lectern_shared::{
    db::{self, traces::StoredTrace},
    ids::TraceId,
    model::agent::Agent,
    runtime::Runtime,
};
use serde_json::Value;

use crate::{
    error::ApiError,
    llm::{Provider, Usage},
    predict::{cite::Cited, retrieve::NumberedSource, trace::Trace},
};

/// What an agent is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The question.
    pub(crate) text: String,
    /// The conversation that it belongs to.
    pub(crate) session: Option<String>,
}

/// What an agent answers.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The answer, with `[n]` where it cites.
    pub(crate) text: String,
    /// How it came about.
    pub(crate) trace: Value,
}

/// An answer before it is written down.
struct Composed {
    text: String,
    finish_reason: &'static str,
    citations: Vec<Cited>,
    usage: Option<Usage>,
}

/// Asks an agent.
pub(crate) async fn run(runtime: &Runtime, agent: &Agent, question: &Question) -> Result<Answer, ApiError> {
    let mut trace = Trace::begin(TraceId::generate());
    let provider: Provider = agent.llm.0.provider.parse().map_err(|_| {
        let message = "The agent's provider is not known to this version of the service.";
        ApiError::new(axum::http::StatusCode::BAD_GATEWAY, "provider_not_available", message)
    })?;
    let sources = retrieve::retrieve(runtime, agent, &question.text, &mut trace).await?;
    let composed = match provider {
        Provider::Extractive => {
            extractive::compose(&runtime.compute, question.text.clone(), sources.clone()).await?
        }
        Provider::OpenAiChat
        | Provider::OpenAi
        | Provider::Anthropic
        | Provider::Gemini
        | Provider::Mistral
        | Provider::Groq
        | Provider::Cohere
        | Provider::AzureOpenAi
        | Provider::Ollama
        | Provider::OpenAiCompatible => {
            chat::compose(runtime, agent, provider, &question.text, &sources, &mut trace).await?
        }
    };
    let body = trace.finish(agent, &composed, &sources);
    keep(runtime, agent, question, &body).await;
    Ok(Answer { text: composed.text, trace: body })
}

/// The largest trace that is kept whole, in bytes.
const LARGEST_TRACE: usize = 1 << 20;

/// Stores the trace. The answer is right without it, so a store that is away costs the record, not the answer.
async fn keep(runtime: &Runtime, agent: &Agent, question: &Question, body: &Value) {
    let Some(id) = body.get("id").and_then(Value::as_str).and_then(|id| id.parse::<TraceId>().ok()) else {
        return;
    };
    let complete = body.to_string().len() <= LARGEST_TRACE;
    let kept = if complete { body.clone() } else { trace::shortened(body.clone(), LARGEST_TRACE) };
    let now = runtime.clock.now();
    let stored = StoredTrace {
        id,
        agent_id: agent.id,
        session: question.session.clone(),
        created_at: now,
        complete,
        body: db::Json(kept),
    };
    let written = async {
        let mut tx = runtime.db.begin().await?;
        db::traces::insert(&mut tx, agent.user_id, &stored, now.plus(runtime.settings.trace_ttl)).await?;
        tx.commit().await
    };
    if let Err(error) = written.await {
        tracing::error!(%error, trace = %id, "the trace of an answer could not be kept");
    }
}

/// Where a citation's passage is among the sources.
fn source_of<'a>(sources: &'a [NumberedSource], cited: &Cited) -> Option<&'a NumberedSource> {
    sources.iter().find(|source| source.n == cited.n)
}
