//! What a model writes, on its way to the reader: what passes here is the answer.
//!
//! The text comes in pieces, and what passes does not depend on how it was cut. Markers that name no source are taken
//! out, addresses on hosts that neither the question nor a source nor a tool named, and images and tags besides: text that a model
//! was talked into writing must not make a reader's browser tell anything to anybody. Less than 2 KiB is ever held back.

mod characters;
mod code;
mod guard;
mod known;
mod lookahead;
mod markdown;
mod markers;

pub use self::markdown::markdown_steps;
use self::{guard::LinkGuard, known::KnownReferences, markers::MarkerFilter};

/// Filters one answer.
#[derive(Debug)]
pub(crate) struct AnswerFilter {
    known: KnownReferences,
    /// What the model has given to tools.
    said: KnownReferences,
    markers: MarkerFilter,
    guard: LinkGuard,
    /// The last character was a carriage return, which has passed as a line feed.
    after_return: bool,
    opening: AnswerOpening,
}

impl AnswerFilter {
    /// A filter that knows no source and no address.
    pub(crate) fn new() -> Self {
        Self {
            known: KnownReferences::default(),
            said: KnownReferences::default(),
            markers: MarkerFilter::default(),
            guard: LinkGuard::new(),
            after_return: false,
            opening: AnswerOpening::default(),
        }
    }

    /// From now on the answer may cite this source.
    pub(crate) fn allow_source(&mut self, n: usize) {
        self.known.add_source(n);
    }

    /// From now on the answer may link to the hosts whose addresses are in this text: a source, or what a tool gave. Takes
    /// time in proportion to the text.
    pub(crate) fn allow_hosts_in(&mut self, text: &str) {
        self.known.add_text(text);
    }

    /// The same for what a person wrote, the question or the agent's prompt. Images on the hosts that it names may be shown too,
    /// if a text holds their very addresses.
    pub(crate) fn allow_user_text(&mut self, text: &str) {
        self.known.add_asked(text);
    }

    /// The same for images on a host that the operator named.
    pub(crate) fn allow_image_host(&mut self, host: &str) {
        self.known.add_image_host(host);
    }

    /// What the model gave a tool. It does not become known because a tool repeats it, now or later.
    pub(crate) fn note_model_text(&mut self, text: &str) {
        self.said.add_text(text);
    }

    /// The same as [`AnswerFilter::allow_hosts_in`] for what a tool answered, but for what the model itself has said.
    pub(crate) fn allow_tool_result(&mut self, text: &str) {
        let mut theirs = KnownReferences::default();
        theirs.add_text(text);
        theirs.remove(&self.said);
        self.known.add(theirs);
    }

    /// Takes what the model wrote next; returns what of the answer is certain by now.
    pub(crate) fn push(&mut self, delta: &str) -> String {
        let text = self.lines(delta);
        let mut cited = String::with_capacity(text.len());
        self.markers.push(&self.known, &text, &mut cited);
        self.guarded(&cited)
    }

    /// The same for a text whose brackets are its own, as those of a tool's result are.
    pub(crate) fn push_verbatim(&mut self, text: &str) -> String {
        let mut cited = String::with_capacity(text.len());
        self.markers.finish(&self.known, &mut cited);
        let text = self.lines(text);
        cited.push_str(&text);
        self.guarded(&cited)
    }

    fn guarded(&mut self, cited: &str) -> String {
        let mut passed = String::with_capacity(cited.len());
        self.guard.push(&self.known, cited, &mut passed);
        passed
    }

    /// With line feeds alone between lines, and without what some programs drop before they look for anything: NUL, and at the beginning
    /// the mark of an order of bytes, behind which the line begins with something else for those who keep it.
    fn lines(&mut self, delta: &str) -> String {
        let mut text = String::with_capacity(delta.len());
        for character in delta.chars() {
            let is_second = std::mem::replace(&mut self.after_return, character == '\r') && character == '\n';
            match character {
                '\r' => text.push('\n'),
                '\0' => {}
                '\u{FEFF}' if !self.opening.is_over() => {}
                _ if is_second => {}
                _ => {
                    self.opening.note(character);
                    text.push(character);
                }
            }
        }
        text
    }

    /// The model has ended; returns the rest of the answer.
    pub(crate) fn finish(&mut self) -> String {
        let mut cited = String::new();
        self.markers.finish(&self.known, &mut cited);
        let mut passed = String::new();
        self.guard.push(&self.known, &cited, &mut passed);
        self.guard.finish(&self.known, &mut passed);
        passed
    }
}

/// The beginning of an answer, up to the first word: what stands in brackets before it may be taken out, and what follows is the
/// beginning then.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerOpening {
    in_brackets: bool,
    is_over: bool,
}

impl AnswerOpening {
    fn note(&mut self, character: char) {
        match character {
            '[' | '【' | '(' | '<' => self.in_brackets = true,
            ']' | '】' | ')' | '>' => self.in_brackets = false,
            _ => self.is_over |= !self.in_brackets && character.is_alphabetic(),
        }
    }

    fn is_over(self) -> bool {
        self.is_over
    }
}

impl Default for AnswerFilter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
