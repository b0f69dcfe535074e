//! What an agent is told of what was said before: the last turns, as many as there is room for, of a session that is remembered here
//! or of the conversation that a caller tells.

use lectern_db::{self as db, Tx, memory::ConversationTurn};
use lectern_embed::approximate_tokens;
use lectern_shared::{
    ids::TraceId,
    model::{
        agent::{Agent, LlmConfig},
        workspace::RunOwner,
    },
};
use uuid::Uuid;

use super::{
    AgentParts, AgentQuestion,
    instructions::BESIDES_TURN,
    setup::{OfferedFunction, RenderedPrompt},
};
use crate::{AgentError, answer::markers, prompt::PromptTemplate};

/// Tokens of the turns of a session that a model is told, at most.
const TOKENS: i64 = 4_000;
/// Tokens of the turns that a caller tells, where nothing is known of the model: the usual ones have room for 32,000 and more, of
/// which this leaves enough for the passages, the question and the answer.
const TOLD: usize = 24_000;
/// Turns of a session that are kept.
const KEPT: u32 = 200;
/// Bytes of a text that is too long, which are counted at a time.
const PIECE: usize = 96;
/// Stands for what is left out of a text.
const MARK: &str = " … ";

/// The conversation that a question belongs to, as far as the model is told of it.
#[derive(Default)]
pub(super) struct RecalledSession {
    /// A question and its answer each, oldest first.
    pub(super) turns: Vec<(String, String)>,
    /// The last time that it was erased, where it is remembered.
    pub(super) last_erasure: Option<Uuid>,
}

/// Somebody's session, within the room that the model has for it.
pub(super) async fn recall(
    parts: &AgentParts,
    owner: RunOwner,
    agent: &Agent,
    session: &str,
) -> Result<RecalledSession, AgentError> {
    // First: of what is erased from here on, the answer is not remembered.
    let last_erasure = db::memory::last_erasure(&parts.db, owner, agent.id, session).await?;
    let turns = db::memory::latest(&parts.db, owner, agent.id, session, room(agent)).await?;
    // Numbers of sources mean others in another turn.
    let told = |turn: ConversationTurn| (turn.question, markers::strip_markers(&turn.answer));
    Ok(RecalledSession { turns: turns.into_iter().rev().map(told).collect(), last_erasure })
}

/// Tokens of the turns of a session that an agent's model is told, at most.
fn room(agent: &Agent) -> i64 {
    let window = agent.llm.0.context_window.map(i64::from);
    window.map_or(TOKENS, |window| TOKENS.min(window / 4))
}

/// Tokens of the turns that a caller tells, at most: what a model has room for besides so many `others`, and besides an answer, which
/// may have up to `longest` and gets a quarter in any case, since tools say something too and every model counts in its own way.
pub(super) fn told_room(llm: &LlmConfig, longest: Option<u32>, others: usize) -> usize {
    let tokens = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let Some(window) = llm.context_window.map(tokens) else { return TOLD };
    let answer = longest.map_or(0, tokens).max(window / 4);
    // A question that goes on from what was said is no question without some of it.
    window.saturating_sub(answer).saturating_sub(others).max(window / 8)
}

/// Tokens of what a model is asked with besides the turns that a caller tells, and the passages.
pub(super) fn tokens_besides(
    question: &AgentQuestion,
    prompt: Option<&RenderedPrompt>,
    functions: &[OfferedFunction],
) -> usize {
    let texts = [
        Some(question.text.as_str()),
        question.instructions.as_deref(),
        prompt.map(|prompt| prompt.text.as_str()),
    ];
    let described = functions.iter().map(|offered| {
        approximate_tokens(&offered.description) + approximate_tokens(&offered.parameters.to_string())
    });
    texts.into_iter().flatten().map(approximate_tokens).chain(described).sum()
}

/// The last of the turns that a caller tells, oldest first, within so many tokens. The newest is told in any case, if need be without
/// its middle: it is what the question most likely goes on from.
pub(super) fn latest(room: usize, turns: &[(String, String)]) -> Vec<(String, String)> {
    let (mut told, mut left) = (Vec::new(), room);
    for (question, answer) in turns.iter().rev() {
        let answer = markers::strip_markers(answer);
        let tokens = approximate_tokens(question) + approximate_tokens(&answer);
        match left.checked_sub(tokens) {
            Some(rest) => {
                told.push((question.clone(), answer));
                left = rest;
            }
            None if told.is_empty() => {
                told.push(shortened_turn(question, &answer, room));
                break;
            }
            None => break,
        }
    }
    told.reverse();
    told
}

/// A turn within so many tokens. If one half of it is short, that one stays whole.
fn shortened_turn(question: &str, answer: &str, room: usize) -> (String, String) {
    let for_question = room.saturating_sub(approximate_tokens(answer)).max(room / 2);
    let for_question = for_question.min(approximate_tokens(question));
    (shortened(question, for_question), shortened(answer, room - for_question))
}

/// A text within so many tokens: its beginning and its end, if it has more.
fn shortened(text: &str, room: usize) -> String {
    if approximate_tokens(text) <= room {
        return text.to_owned();
    }
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    // One token is the mark's.
    let (mut head, mut tail, mut left) = (0, text.len(), room.saturating_sub(1));
    loop {
        let next = text.floor_char_boundary(head + PIECE);
        let last = text.floor_char_boundary(tail.saturating_sub(PIECE));
        let tokens = approximate_tokens(part(head, next)) + approximate_tokens(part(last, tail));
        match left.checked_sub(tokens) {
            Some(rest) if next <= last => (head, tail, left) = (next, last, rest),
            Some(_) | None => break,
        }
    }
    format!("{}{MARK}{}", part(0, head).trim_end(), part(tail, text.len()).trim_start())
}

/// What of the turns an agent's prompt of at most so many bytes has room for, if it holds them itself. `bare` is the prompt without any.
pub(super) fn held(
    longest: usize,
    template: Option<&PromptTemplate>,
    bare: Option<&RenderedPrompt>,
    turns: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let (Some(template), Some(bare)) = (template, bare) else { return turns };
    match longest.saturating_sub(bare.text.len()).checked_div(template.places_of("chat_history")) {
        Some(room) => within_bytes(room, turns),
        None => turns,
    }
}

/// The last of some turns, oldest first, of which a prompt has so many bytes at most: tokens say little of how large a text is. Of the
/// newest, the middle is left out if it alone is larger; nothing is told where even the marks of that have no room.
fn within_bytes(bytes: usize, mut turns: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut left = bytes;
    let fits = |(question, answer): &&(String, String)| {
        let rest = left.checked_sub(question.len() + answer.len() + BESIDES_TURN);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let kept = turns.iter().rev().take_while(fits).count();
    if kept > 0 {
        return turns.split_off(turns.len() - kept);
    }
    let room = bytes.saturating_sub(BESIDES_TURN);
    let Some((question, answer)) = turns.pop().filter(|_| room >= 2 * MARK.len()) else { return Vec::new() };
    let for_question = room.saturating_sub(answer.len()).max(room / 2).min(question.len());
    vec![(cut(&question, for_question), cut(&answer, room - for_question))]
}

/// A text within so many bytes: its beginning and its end, if it has more.
fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let half = bytes.saturating_sub(MARK.len()) / 2;
    let (head, _) = text.split_at(text.floor_char_boundary(half));
    let (_, tail) = text.split_at(text.ceil_char_boundary(text.len() - half));
    format!("{}{MARK}{}", head.trim_end(), tail.trim_start())
}

/// A turn that is to be remembered.
#[derive(Clone, Copy)]
pub(super) struct AnsweredTurn<'a> {
    pub(super) trace: TraceId,
    pub(super) session: &'a str,
    pub(super) question: &'a str,
    pub(super) answer: &'a str,
    /// The last time that the session was erased when the question was asked.
    pub(super) last_erasure: Option<Uuid>,
}

/// Adds a turn to somebody's session, unless that was erased since the question was asked: what was erased does not come back.
pub(super) async fn remember(
    parts: &AgentParts,
    tx: &mut Tx,
    owner: RunOwner,
    agent: &Agent,
    turn: AnsweredTurn<'_>,
) -> Result<(), db::DbError> {
    let AnsweredTurn { trace, session, question, answer, last_erasure } = turn;
    if db::memory::was_erased_since(tx, owner, agent.id, session, last_erasure).await? {
        return Ok(());
    }
    let tokens = approximate_tokens(question) + approximate_tokens(answer);
    let turn = ConversationTurn {
        question: question.to_owned(),
        answer: answer.to_owned(),
        tokens: i64::try_from(tokens).unwrap_or(i64::MAX),
        trace: Some(trace),
    };
    db::memory::add(tx, owner, agent.id, session, &turn, parts.clock.now(), KEPT).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_s_last_turns_are_told_as_far_as_there_is_room() {
        let turn = |n: usize| (format!("question {n}"), format!("answer {n} [1]"));
        let turns: Vec<_> = (1..=50).map(turn).collect();
        let told = latest(40, &turns);
        assert!((2..50).contains(&told.len()), "{}", told.len());
        assert_eq!(
            told.last(),
            Some(&("question 50".to_owned(), "answer 50".to_owned())),
            "without its marker"
        );
        assert_eq!(told[0].0, format!("question {}", 51 - told.len()), "none is left out in between");
        assert_eq!(latest(TOLD, &turns).len(), 50);
    }

    #[test]
    fn a_last_turn_that_is_too_long_is_told_by_its_beginning_and_its_end() {
        let long = format!("First of all. {}Last of all.", "and so on, ".repeat(1_000));
        let turn = |question: &str, answer: &str| {
            let mut told = latest(
                600,
                &[("before".to_owned(), String::new()), (question.to_owned(), answer.to_owned())],
            );
            assert_eq!(told.len(), 1, "{told:?}");
            let told = told.remove(0);
            let tokens = approximate_tokens(&told.0) + approximate_tokens(&told.1);
            assert!((400..=600).contains(&tokens), "{tokens}: {told:?}");
            told
        };
        let is_cut = |text: &str| {
            text.starts_with("First of all. ") && text.contains(" … ") && text.ends_with(" Last of all.")
        };
        let (question, answer) = turn(&long, "Yes.");
        assert!(is_cut(&question) && answer == "Yes.", "{question:?} {answer:?}");
        let (question, answer) = turn("Well?", &long);
        assert!(question == "Well?" && is_cut(&answer), "{question:?} {answer:?}");
        let (question, answer) = turn(&long, &long);
        assert!(question.contains(" … ") && answer.contains(" … "), "{question:?} {answer:?}");
        turn(&"東京都".repeat(1_000), &"é".repeat(10_000));
        assert_eq!(latest(0, &[(long, String::new())]), [(" … ".to_owned(), String::new())]);
    }

    #[test]
    fn a_prompt_has_the_last_turns_within_so_many_bytes() {
        let turn = |n: usize| (format!("question {n}"), format!("answer {n}"));
        let turns: Vec<_> = (0..10).map(turn).collect();
        let size = |turns: &[(String, String)]| {
            turns.iter().map(|(question, answer)| question.len() + answer.len() + BESIDES_TURN).sum::<usize>()
        };
        assert_eq!(within_bytes(size(&turns), turns.clone()), turns);
        assert_eq!(within_bytes(size(&turns) - 1, turns.clone()), turns[1..]);
        assert_eq!(within_bytes(size(&turns[9..]), turns.clone()), turns[9..]);
        assert!(within_bytes(100, Vec::new()).is_empty());
        // Blanks are no tokens, and bytes nevertheless.
        for (question, answer) in [
            (" ".repeat(1_000), "Yes.".to_owned()),
            ("Well?".to_owned(), "äöü ".repeat(1_000)),
            ("東京都".repeat(1_000), "東京都".repeat(1_000)),
        ] {
            let turns = vec![turn(1), (question, answer)];
            let told = within_bytes(200, turns.clone());
            assert!(told.len() == 1 && (20..=200).contains(&size(&told)), "{told:?}");
            assert!(told[0].0.contains(MARK) || told[0].1.contains(MARK), "{told:?}");
            for bytes in 0..100 {
                let told = within_bytes(bytes, turns.clone());
                assert!(size(&told) <= bytes, "{bytes}: {told:?}");
            }
        }
    }

    #[test]
    fn a_caller_s_history_has_what_the_rest_leaves_of_the_window() {
        let llm = |window| LlmConfig { context_window: window, ..LlmConfig::default() };
        assert_eq!(told_room(&llm(None), Some(100_000), 100_000), TOLD);
        assert_eq!(told_room(&llm(Some(8_000)), None, 3_500), 2_500);
        assert_eq!(told_room(&llm(Some(100_000)), Some(40_000), 3_500), 56_500);
        assert_eq!(told_room(&llm(Some(8_000)), Some(4_000), 9_000), 1_000, "never nothing");
    }
}
