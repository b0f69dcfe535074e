//! How an answer is told on a page to whoever reads it there: as it comes, in one piece, or again later.

use askama::Template;
use axum::body::Bytes;
use lectern_agents::run::{CitationView, RunEvent, RunHandle};
use lectern_shared::{ids::WorkspaceId, model::workspace::Role, shutdown::Shutdown};
use serde_json::{Map, Value, json};

use super::{
    answer::{AnswerCard, AnswerContext},
    failure::with_wait,
    frame::Visitor,
    text::counted,
    traces::NO_QUESTION,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    response::ApiResult,
    run_stream::{RunEventEncoder, until_stopped},
    services::{actor::Permission, citations::CitationLinks, traces::RecordedTrace},
    sse::{self, EventKind},
};

/// Where the answers of signed-in people are told to be good or bad, from the root.
const FEEDBACK: &str = "feedback";

/// What somebody is shown with an answer.
#[derive(Clone)]
pub(super) struct AnswerReader {
    pub(super) links: CitationLinks,
    pub(super) workspace: WorkspaceId,
    /// The way from the page to the root.
    pub(super) root: String,
    pub(super) feedback: String,
    /// The stamp of the page's frame, which goes with feedback; empty on a page without one.
    pub(super) stamp: String,
    pub(super) sees_steps: bool,
    pub(super) sees_receipts: bool,
    /// Has no account, and need not know what the service has to do with others.
    pub(super) is_stranger: bool,
}

impl AnswerReader {
    fn context(&self) -> AnswerContext<'_> {
        AnswerContext {
            links: &self.links,
            workspace: self.workspace,
            root: &self.root,
            feedback: &self.feedback,
            stamp: &self.stamp,
            sees_steps: self.sees_steps,
            sees_receipts: self.sees_receipts,
        }
    }

    /// A failure as this reader is told it.
    pub(super) fn told(&self, error: ApiError) -> ApiError {
        with_wait(if self.is_stranger { for_strangers(error) } else { for_members(error) })
    }

    /// A signed-in person's.
    pub(super) fn of(visitor: &Visitor, links: CitationLinks) -> Self {
        Self {
            links,
            workspace: visitor.frame.workspace_id,
            root: visitor.frame.root.clone(),
            feedback: FEEDBACK.to_owned(),
            stamp: visitor.frame.stamp(),
            sees_steps: visitor.frame.role.includes(Role::Builder),
            sees_receipts: visitor.actor().may(Permission::EditDocuments).is_ok(),
            is_stranger: false,
        }
    }
}

/// A failure of an answer without what only those of the workspace are to know: its quotas, its provider, its agent's prompt. What
/// became of the request stays as it is.
fn for_strangers(error: ApiError) -> ApiError {
    const NEUTRAL: &str = "This page cannot answer at the moment. Try again later.";
    if matches!(error.kind, ApiErrorKind::NotFound | ApiErrorKind::RateLimited) {
        return error;
    }
    tracing::info!(code = error.code, "a page could not answer");
    ApiError { retry_after: error.retry_after, ..ApiError::new(error.kind, "cannot_answer", NEUTRAL) }
}

/// A failure of an answer without words of programs for what let its reader in, which may end meanwhile.
fn for_members(error: ApiError) -> ApiError {
    const ENDED: &str = "Your sign-in has ended, or you are no member of the workspace any more.";
    if error.kind == ApiErrorKind::Unauthenticated {
        return ApiError { message: ENDED.to_owned(), ..error };
    }
    error
}

/// Tells a run to a page: what is being done, the answer as it comes, and at last all of it as HTML.
pub(super) struct PageEncoder {
    reader: AnswerReader,
    citations: Vec<CitationView>,
}

impl PageEncoder {
    pub(super) fn new(reader: AnswerReader) -> Self {
        Self { reader, citations: Vec::new() }
    }

    fn note(kind: EventKind, text: &str) -> Bytes {
        sse::named(kind, &json!({"text": text}))
    }
}

impl RunEventEncoder for PageEncoder {
    fn encode(&mut self, event: &RunEvent) -> Option<Bytes> {
        Some(match event {
            RunEvent::Start { .. } => Self::note(EventKind::Start, "Searching the documents…"),
            RunEvent::Retrieval { documents, .. } => {
                let found = counted(documents.len() as u64, "passage", "passages");
                Self::note(EventKind::Retrieval, &format!("{found} found. Writing the answer…"))
            }
            // What its builder gave an agent is nothing to strangers.
            RunEvent::ToolCall { .. } if self.reader.is_stranger => {
                Self::note(EventKind::ToolCall, "Looking further…")
            }
            RunEvent::ToolResult { .. } if self.reader.is_stranger => {
                Self::note(EventKind::ToolResult, "Writing the answer…")
            }
            RunEvent::ToolCall { name, .. } => {
                Self::note(EventKind::ToolCall, &format!("Asking the tool {name}…"))
            }
            RunEvent::ToolResult { failed: true, name, .. } => {
                Self::note(EventKind::ToolResult, &format!("The tool {name} failed; going on…"))
            }
            RunEvent::ToolResult { .. } => Self::note(EventKind::ToolResult, "Writing the answer…"),
            RunEvent::Token { delta } => sse::named(EventKind::Token, &json!({"delta": delta})),
            RunEvent::Citation(citation) => {
                self.citations.push(CitationView::clone(citation));
                return None;
            }
            RunEvent::Failed(error) => self.failure(&error.clone().into()),
            RunEvent::End { trace, .. } => {
                let card = AnswerCard::of_run(trace, &self.citations, &self.reader.context());
                let shown = card.and_then(|card| Ok((rendered(&card)?, card.announced)));
                match shown {
                    Ok((html, said)) => sse::named(EventKind::End, &json!({"html": html, "said": said})),
                    Err(error) => self.failure(&error),
                }
            }
        })
    }

    fn failure(&mut self, error: &ApiError) -> Bytes {
        let error = self.reader.told(error.clone());
        sse::named(EventKind::Error, &json!({"code": error.code, "message": error.message}))
    }
}

fn rendered(card: &AnswerCard) -> Result<String, ApiError> {
    card.render().map_err(|error| {
        tracing::error!(%error, "an answer could not be rendered");
        ApiError::internal()
    })
}

/// A question that was asked before, and its answer as HTML.
pub(super) struct ToldAnswer {
    pub(super) question: String,
    pub(super) session: Option<String>,
    /// The values that went with it.
    pub(super) values: Map<String, Value>,
    pub(super) html: String,
}

impl ToldAnswer {
    pub(super) async fn of(told: &RecordedTrace, reader: &AnswerReader) -> ApiResult<Self> {
        let trace = &told.trace;
        let card = AnswerCard::of_trace(trace, &reader.context()).await?;
        Ok(Self {
            question: told.question().unwrap_or_else(|| NO_QUESTION.to_owned()),
            session: trace.session.clone(),
            values: told.values(),
            html: rendered(&card)?,
        })
    }
}

/// Waits for a run's answer, as HTML.
pub(super) async fn whole(
    mut running: RunHandle,
    reader: &AnswerReader,
    shutdown: Option<&Shutdown>,
) -> ApiResult<String> {
    let mut citations = Vec::new();
    let answered = async {
        loop {
            match running.next().await {
                Some(RunEvent::Citation(citation)) => citations.push(*citation),
                Some(RunEvent::End { trace, .. }) => {
                    return rendered(&AnswerCard::of_run(&trace, &citations, &reader.context())?);
                }
                Some(RunEvent::Failed(error)) => return Err(reader.told(error.into())),
                Some(_) => {}
                None => return Err(ApiError::internal()),
            }
        }
    };
    until_stopped(shutdown, answered).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_told_that_a_page_cannot_answer_and_not_why() {
        let secret = "This workspace has used what it may: 72 of 40 tokens.";
        for kind in [
            ApiErrorKind::Unauthenticated,
            ApiErrorKind::Forbidden,
            ApiErrorKind::Invalid,
            ApiErrorKind::Upstream,
            ApiErrorKind::UpstreamTimeout,
            ApiErrorKind::Unavailable,
        ] {
            let error = ApiError { retry_after: Some(3), ..ApiError::new(kind, "quota_exceeded", secret) };
            let told = for_strangers(error);
            assert_eq!((told.kind, told.retry_after), (kind, Some(3)));
            assert!(!told.message.contains("tokens") && told.code != "quota_exceeded", "{told:?}");
        }
        let slow = ApiError::new(ApiErrorKind::RateLimited, "rate_limited", "Try again in some seconds.");
        assert_eq!(for_strangers(slow.clone()), slow);
        assert_eq!(for_members(slow.clone()), slow);
    }

    #[test]
    fn whoever_is_removed_while_an_answer_comes_is_told_so_without_words_of_programs() {
        let told = for_members(ApiError::credential_ended());
        assert_eq!(told.kind, ApiErrorKind::Unauthenticated);
        assert!(told.message.contains("no member") && !told.message.contains("credentials"), "{told:?}");
    }
}
