//! What a model answers, as the target in `fuzz/` calls what filters it.

use super::filter::AnswerFilter;

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
