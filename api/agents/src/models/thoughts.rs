//! Thoughts that a model writes into its text before it answers, `<think>…</think>`, as servers pass them on that do not keep them
//! apart. They are no part of the answer, wherever the pieces of a stream are cut.

use std::borrow::Cow;

/// What such thoughts begin with, in any case.
const OPENING: [&str; 2] = ["<think>", "<thinking>"];
/// What they end with.
const CLOSING: [&str; 2] = ["</think>", "</thinking>"];

/// Takes the thoughts out of a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct ThoughtFilter {
    place: TextPlace,
    /// What may become a tag.
    held: String,
    /// Characters of thoughts so far.
    thought: u64,
}

/// Where in its text a model is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TextPlace {
    /// Nothing but white space has come.
    #[default]
    Before,
    /// In its thoughts.
    Thoughts,
    /// Behind them, and nothing but white space has come since.
    Behind,
    /// In the answer, which may hold the same tags.
    Answer,
}

impl ThoughtFilter {
    /// What of the answer has become known with this piece.
    pub(super) fn answer<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.place == TextPlace::Answer {
            return Cow::Borrowed(piece);
        }
        let text = std::mem::take(&mut self.held) + piece;
        let (mut answer, mut rest) = (String::new(), text.as_str());
        loop {
            let found = match self.place {
                TextPlace::Answer => return Cow::Owned(answer + rest),
                TextPlace::Thoughts => self.end_of_thoughts(rest),
                TextPlace::Before | TextPlace::Behind => {
                    let words = rest.trim_start();
                    if self.place == TextPlace::Before {
                        answer.push_str(&rest[..rest.len() - words.len()]);
                    }
                    beginning(words, OPENING)
                }
            };
            (self.place, rest) = match (found, self.place) {
                (Beginning::Tag { behind }, TextPlace::Thoughts) => (TextPlace::Behind, behind),
                (Beginning::Tag { behind }, _) => (TextPlace::Thoughts, behind),
                (Beginning::Part(held), _) => {
                    held.clone_into(&mut self.held);
                    return Cow::Owned(answer);
                }
                (Beginning::Other(words), _) => (TextPlace::Answer, words),
            };
        }
    }

    /// What of the answer is known only because nothing follows.
    pub(super) fn end(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if self.place == TextPlace::Thoughts { String::new() } else { held }
    }

    /// Characters of thoughts so far, which were written as well.
    pub(super) fn thought(&self) -> u64 {
        self.thought
    }

    /// What is left of a text behind the thoughts with which it goes on: the tag that ends them, or a part of one, which may be
    /// nothing.
    fn end_of_thoughts<'a>(&mut self, text: &'a str) -> Beginning<'a> {
        let mut all = text.match_indices('<').map(|(at, _)| (at, beginning(&text[at..], CLOSING)));
        let found = all.find(|(_, found)| !matches!(found, Beginning::Other(_)));
        let (at, found) = found.unwrap_or((text.len(), Beginning::Part("")));
        self.thought += text[..at].chars().count() as u64;
        found
    }
}

/// What a text begins with.
enum Beginning<'a> {
    /// A tag.
    Tag {
        /// The text behind it.
        behind: &'a str,
    },
    /// What may become a tag: the whole text, which may be empty.
    Part(&'a str),
    /// Something else: the whole text.
    Other(&'a str),
}

/// What a text begins with, of these tags.
fn beginning<'a>(text: &'a str, tags: [&str; 2]) -> Beginning<'a> {
    for tag in tags {
        let known = tag.len().min(text.len());
        if let Some((head, behind)) = text.split_at_checked(known)
            && head.eq_ignore_ascii_case(&tag[..known])
        {
            return if known == tag.len() { Beginning::Tag { behind } } else { Beginning::Part(text) };
        }
    }
    Beginning::Other(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pieces: &[&str]) -> String {
        let mut filter = ThoughtFilter::default();
        let mut told: String = pieces.iter().map(|piece| filter.answer(piece)).collect();
        told.push_str(&filter.end());
        told
    }

    #[test]
    fn thoughts_before_an_answer_are_no_part_of_it_wherever_the_stream_is_cut() {
        for (text, answer) in [
            ("<think>Hm: 1 < 2, </thin, </ think>.\n</think>\n\nIt opens at nine.", "It opens at nine."),
            ("\n<THINKING>é</Thinking> ü <think>x</think>", "\nü <think>x</think>"),
            ("<think>a</thinking><think></think>b", "b"),
            ("<think>a</think> <thi", "<thi"),
            ("<think>It has no end. </thin", ""),
            ("<think>", ""),
            ("<thi", "<thi"),
            ("<think", "<think"),
            ("<thirty years", "<thirty years"),
            ("<thinké>x</think>", "<thinké>x</think>"),
            (" It is <think>x</think>", " It is <think>x</think>"),
            ("`<think>` opens thoughts.", "`<think>` opens thoughts."),
            ("</think>It opens at nine.", "</think>It opens at nine."),
            (" \n", " \n"),
            ("", ""),
        ] {
            assert_eq!(told(&[text]), answer, "{text}");
            for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
                assert_eq!(told(&[&text[..at], &text[at..]]), answer, "{text}, cut at {at}");
            }
            let each: Vec<_> = text.split_inclusive(|_: char| true).collect();
            assert_eq!(told(&each), answer, "{text}, a character at a time");
        }
    }

    #[test]
    fn thoughts_are_counted_and_nothing_of_them_is_held() {
        let mut filter = ThoughtFilter::default();
        for piece in ["<think>", "äö", "</thi", "s", "</think>ü"] {
            filter.answer(piece);
        }
        assert_eq!((filter.thought(), filter.held.as_str()), ("äö</this".chars().count() as u64, ""));
    }
}
