//! Questions that go on from the one before ("And of pumps?"), for agents without a model: what is asked for is in both then, so both
//! are searched for together.

use lectern_index::lexical::LexicalQuery;

use super::setup::{AnswerStyle, RunSetup};

/// The most words, besides function words, of a question that goes on by a [connecting word](CONNECTING).
const MAX_CONNECTED: usize = 3;

/// What questions begin with that go on from another, in several languages. None is what another language begins a question with, as
/// French does with "ma" ("my") and, without its accent, "ou" ("where").
const CONNECTING: [&str; 21] = [
    "and", "but", "or", "und", "oder", "aber", "et", "mais", "y", "pero", "e", "ed", "mas", "maar", "och",
    "eller", "og", "ja", "entä", "és", "oraz",
];

/// What the documents of a run are searched for. The question itself comes first: of a long text the end may not be read.
pub(super) fn searched(setup: &RunSetup) -> String {
    let question = &setup.question;
    goes_on_from(setup).map_or_else(|| question.clone(), |before| format!("{question}\n{before}"))
}

/// The question that this one goes on from, of an agent without a model: the last one that stands by itself, or else the last one. A
/// model is told the whole conversation.
pub(super) fn goes_on_from(setup: &RunSetup) -> Option<&str> {
    let history = &setup.history;
    if setup.style != AnswerStyle::Extractive || history.is_empty() || !goes_on(&setup.question) {
        return None;
    }
    let stands = history.iter().rev().find(|(question, _)| !goes_on(question));
    stands.or(history.last()).map(|(question, _)| question.as_str())
}

/// Whether a question says too little to stand by itself: it has one word besides function words, or begins with "and" and has few.
fn goes_on(question: &str) -> bool {
    let first = question.split_whitespace().next().unwrap_or_default();
    let first = first.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let most = if CONNECTING.contains(&first.as_str()) { MAX_CONNECTED } else { 1 };
    LexicalQuery::new(question).content_words() <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_goes_on_when_it_says_too_little_by_itself() {
        for question in [
            "And of pumps?",
            "What about pumps?",
            "and in edition 2025?",
            "Und der Pumpen?",
            "Et des pompes ?",
            "¿Y de las bombas?",
            "Why?",
            "of the X300?",
        ] {
            assert!(goes_on(question), "{question}");
        }
        for question in [
            "What is the warranty of valves?",
            "Wie lang ist die Garantie der Ventile?",
            "How many days of holiday does an employee have?",
            "And how many days of holiday does an employee of the north have?",
            "Ma garantie couvre les pompes ?",
            "Ou se trouve le parking des visiteurs ?",
        ] {
            assert!(!goes_on(question), "{question}");
        }
    }
}
