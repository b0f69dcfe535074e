//! What a model writes, as the targets in `fuzz/` call what reads it.

use super::{
    filter::AnswerFilter,
    react_text::{self, ReactDirective},
};

/// The answer filter: what passes does not depend on how the answer was cut. The bytes before the first NUL are a text that the run
/// has named, those after it the answer.
pub fn answer_filter(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (known, answer) = text.split_once('\0').unwrap_or(("https://example.org/a", &*text));
    let filtered = |pieces: &mut dyn Iterator<Item = &str>| {
        let mut filter = AnswerFilter::new();
        filter.allow_source(1);
        filter.allow_hosts_in(known);
        let mut passed: String = pieces.map(|piece| filter.push(piece)).collect();
        passed.push_str(&filter.finish());
        passed
    };
    let whole = filtered(&mut std::iter::once(answer));
    assert_eq!(whole, filtered(&mut answer.split_inclusive(|_: char| true)), "one character at a time");
    let half = answer.floor_char_boundary(answer.len() / 2);
    let (first, second) = answer.split_at(half);
    assert_eq!(whole, filtered(&mut [first, "", second].into_iter()), "in two halves");
}

/// The reader of texts of thoughts and actions.
pub fn react(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert!(text.starts_with(react_text::cut_at_stop(&text)));
    let prose = react_text::prose(&text);
    assert_eq!(prose.trim(), prose);
    match react_text::parse(&text) {
        Ok(turn) => match turn.directive {
            ReactDirective::Call { tool, .. } => assert!(!tool.is_empty()),
            ReactDirective::Finish(answer) => assert!(!answer.trim().is_empty()),
        },
        Err(error) => assert!(!error.to_string().is_empty() && !error.code().is_empty()),
    }
}
