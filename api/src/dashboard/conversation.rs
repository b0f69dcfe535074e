//! What was asked and answered before in a conversation, on the page where it goes on. A member's own are told from their traces, so
//! that a page which is loaded anew has lost nothing.

use lectern_shared::ids::AgentId;
use serde_json::{Map, Value};

use super::told::{AnswerReader, ToldAnswer};
use crate::{
    error::ApiErrorKind,
    response::ApiResult,
    services::{actor::Actor, traces::TraceService},
};

/// Turns that are shown, the latest. An answer can be long, and so can a conversation.
const TURNS: u32 = 20;
/// Characters of a conversation's name, as [`QuestionForm`](super::ask::QuestionForm) has it.
const NAME: usize = 200;

/// A question, and the answer to it as HTML.
pub(super) struct ConversationTurn {
    pub(super) question: String,
    pub(super) html: String,
}

/// What was said in a conversation.
#[derive(Default)]
pub(super) struct Conversation {
    /// Its name; none of one that begins.
    pub(super) session: Option<String>,
    /// The oldest first.
    pub(super) turns: Vec<ConversationTurn>,
    /// There are earlier ones besides.
    pub(super) has_earlier: bool,
    /// The values that went with the last question.
    pub(super) values: Map<String, Value>,
}

impl Conversation {
    /// One's own conversation of this name with an agent, if there is any.
    pub(super) async fn read(
        traces: &TraceService,
        actor: &Actor,
        agent: AgentId,
        session: Option<String>,
        reader: &AnswerReader,
    ) -> ApiResult<Self> {
        let mut conversation = Self::default();
        let Some(session) = session.filter(|name| is_name(name)) else { return Ok(conversation) };
        let mut ids = traces.of_session(actor, agent, &session, TURNS + 1).await?;
        conversation.session = Some(session);
        conversation.has_earlier = ids.len() > TURNS as usize;
        if conversation.has_earlier {
            ids.remove(0);
        }
        // One by one: a trace and its record may have megabytes.
        for id in ids {
            match traces.find_told(actor, id).await {
                Ok(told) => conversation.add(ToldAnswer::of(&told, reader).await?),
                // It has expired at this moment.
                Err(error) if error.kind == ApiErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(conversation)
    }

    /// Goes on with an answer that was told before.
    pub(super) fn add(&mut self, told: ToldAnswer) {
        self.values = told.values;
        self.turns.push(ConversationTurn { question: told.question, html: told.html });
    }
}

/// Whether it can be the name of a conversation: an address may say anything.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= NAME && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_conversation_or_nothing() {
        assert!(is_name("019a8f60-1b2c-7d3e-8f4a-5b6c7d8e9f01") && is_name("mine"));
        for text in ["", "a\0b", "a\nb", &"a".repeat(201)] {
            assert!(!is_name(text), "{text:?}");
        }
    }
}
