//! The text format of agents that reason and act: Thought, Action, Action Input, Observation, Final Answer.
//!
//! Models keep to it more or less. What is plainly meant is read as meant; what could be read in two ways is an error
//! that tells the model what to write instead.

mod labels;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use self::labels::{LabelKind, ReactLabel, end_of_line, holds_answer, kept, labels, unfenced};

/// What the model is asked to stop at. Providers allow four; the rest is cut by [`cut_at_stop`].
pub(super) const STOP: [&str; 4] =
    ["\nObservation:", "\n\tObservation:", "\n**Observation:", "\n## Observation:"];

/// What a model wants to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReactDirective {
    /// Use a tool.
    Call {
        /// The tool's name, as the model wrote it without decoration; never empty, and not necessarily known.
        tool: String,
        /// Its input; may be empty.
        input: String,
    },
    /// Answer; never blank.
    Finish(String),
}

/// One text of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReactTurn {
    /// What it wrote before the directive, without the label; may be empty.
    pub(super) thought: String,
    /// What it wants.
    pub(super) directive: ReactDirective,
}

/// Why a text is none of the format. The message is for the model: it says what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReactFormatError {
    /// Neither an action nor an answer.
    #[error(
        "There was no complete `Action:` and no `Final Answer:`. To use a tool, write `Action:` with its name and on \
         the next line `Action Input:`; to answer, write `Final Answer:` and the answer."
    )]
    MissingAction,
    /// An action without its input.
    #[error(
        "`Action:` was not followed by `Action Input:`. Write the tool's name after `Action:` and its input on the \
         next line after `Action Input:`."
    )]
    MissingActionInput,
    /// An answer without a word.
    #[error("`Final Answer:` was empty. Write the whole answer after it.")]
    EmptyAnswer,
    /// A line that is both.
    #[error(
        "One line held both `Action:` and `Final Answer:`. Write either `Action:` with `Action Input:` to use a tool, \
         or only `Final Answer:` with the answer."
    )]
    ActionWithAnswer,
}

impl ReactFormatError {
    /// The error's name in a trace.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::MissingAction => "missing_action",
            Self::MissingActionInput => "missing_action_input",
            Self::EmptyAnswer => "empty_answer",
            Self::ActionWithAnswer => "action_with_answer",
        }
    }
}

/// Reads a complete text of the model. Takes time in proportion to its length.
pub(super) fn parse(text: &str) -> Result<ReactTurn, ReactFormatError> {
    let text = without_thinking(text);
    let mut reader = ReactParser::new(&text);
    let (start, directive) = reader.directive()?;
    Ok(ReactTurn { thought: reader.thought(start), directive })
}

/// What is shown if a text is taken as the answer although it is none of the format: without thinking, without what
/// follows an invented observation, and without the labels that only frame it. May be empty.
pub(super) fn prose(text: &str) -> String {
    let text = without_thinking(text);
    let reader = ReactParser::new(&text);
    let mut shown = String::with_capacity(reader.text.len());
    let mut from = 0;
    for (at, label) in reader.labels.iter().enumerate() {
        let content = &reader.text[label.content..reader.content_end(at)];
        let bare = content.trim().is_empty();
        let answered = (label.kind == LabelKind::Action).then(|| holds_answer(first_line(content))).flatten();
        let until = match answered {
            Some(answer) => label.content + offset(content, answer),
            None if bare || matches!(label.kind, LabelKind::Thought | LabelKind::Answer) => label.content,
            None => continue,
        };
        shown.push_str(&reader.text[from..label.start]);
        from =
            until + (reader.text[until..].len() - reader.text[until..].trim_start_matches([' ', '\t']).len());
    }
    shown.push_str(&reader.text[from..]);
    shown.trim().to_owned()
}

/// What can be shown of a turn that was cut off.
pub(super) fn so_far(text: &str) -> String {
    match parse(cut_at_stop(text)) {
        Ok(turn) => match turn.directive {
            ReactDirective::Finish(answer) => answer,
            ReactDirective::Call { .. } => String::new(),
        },
        Err(_) => String::new(),
    }
}

/// The text up to the first observation that the model invented: where it would have stopped had it kept to [`STOP`].
/// For a complete text: in a part of one, a fence that is still open hides nothing.
pub(super) fn cut_at_stop(text: &str) -> &str {
    let parts = kept(text);
    let joined: String = parts.iter().map(|part| &text[part.clone()]).collect();
    let Some(mut at) = observation(&labels(&joined)) else { return text };
    for part in parts {
        if at <= part.len() {
            return &text[..part.start + at];
        }
        at -= part.len();
    }
    text
}

fn observation(labels: &[ReactLabel]) -> Option<usize> {
    labels.iter().find(|label| label.kind == LabelKind::Observation && label.colon).map(|label| label.start)
}

fn without_thinking(text: &str) -> String {
    kept(text).into_iter().map(|part| &text[part]).collect()
}

/// So many objects that turn out to be none are tried; each may reach to the end of the text.
const MAX_BROKEN_BLOBS: usize = 8;

/// A text without thinking and without what follows an invented observation.
struct ReactParser<'a> {
    text: &'a str,
    labels: Vec<ReactLabel>,
    broken_blobs: usize,
}

impl<'a> ReactParser<'a> {
    fn new(text: &'a str) -> Self {
        let mut labels = labels(text);
        let end = observation(&labels).unwrap_or(text.len());
        labels.retain(|label| label.start < end);
        Self { text: &text[..end], labels, broken_blobs: 0 }
    }

    /// Where what a label announces ends: at the next label of any kind.
    fn content_end(&self, at: usize) -> usize {
        self.labels.get(at + 1).map_or(self.text.len(), |next| next.start)
    }

    fn content(&self, at: usize) -> &'a str {
        &self.text[self.labels[at].content..self.content_end(at)]
    }

    fn thought(&self, end: usize) -> String {
        let label = self.labels.iter().find(|label| label.kind == LabelKind::Thought);
        let start =
            label.filter(|label| self.text[..label.start].trim().is_empty()).map_or(0, |label| label.content);
        self.text.get(start..end).unwrap_or("").trim().to_owned()
    }

    /// The directive and where it starts.
    fn directive(&mut self) -> Result<(usize, ReactDirective), ReactFormatError> {
        let preamble = self.labels.first().map_or(self.text.len(), |label| label.start);
        if let Some(found) = self.blob(0, preamble)? {
            return Ok(found);
        }
        let mut missing = ReactFormatError::MissingAction;
        for at in 0..self.labels.len() {
            let label = self.labels[at];
            match label.kind {
                LabelKind::Answer => return Ok((label.start, ReactDirective::Finish(self.answer(at)?))),
                LabelKind::Action => {
                    if let Some(directive) = self.action(at)? {
                        return Ok((label.start, directive));
                    }
                    if !tool(self.content(at)).is_empty() {
                        missing = ReactFormatError::MissingActionInput;
                    }
                }
                LabelKind::Thought | LabelKind::Input | LabelKind::Observation => {}
            }
            // An input is no place for a directive: what looks like one is input of an action that was not named.
            if label.kind != LabelKind::Input
                && let Some(found) = self.blob(label.content, self.content_end(at))?
            {
                return Ok(found);
            }
        }
        Err(missing)
    }

    /// What the action at a label wants, if it is complete.
    fn action(&self, at: usize) -> Result<Option<ReactDirective>, ReactFormatError> {
        let content = self.content(at);
        if let Some(object) = object_start(first_line(content)).and_then(|_| blob(content)) {
            return object.map(Some);
        }
        if holds_answer(first_line(content)).is_some() {
            return Err(ReactFormatError::ActionWithAnswer);
        }
        let name = tool(content);
        if name.is_empty() || !self.has_input(at) {
            return Ok(None);
        }
        let input = self.content(at + 1);
        directive(name, input.trim(), || clean_input(input).to_owned()).map(Some)
    }

    fn has_input(&self, at: usize) -> bool {
        self.labels.get(at + 1).is_some_and(|next| next.kind == LabelKind::Input)
    }

    /// The last answer, from the one at a label on, that says something.
    fn answer(&self, first: usize) -> Result<String, ReactFormatError> {
        let mut answer = "";
        let mut open = None;
        for at in first..self.labels.len() {
            let label = &self.labels[at];
            match label.kind {
                LabelKind::Answer => {
                    answer = self.between(open.replace(at), label.start).unwrap_or(answer);
                }
                LabelKind::Action
                    if !matches!(self.action(at), Ok(None) | Err(ReactFormatError::ActionWithAnswer)) =>
                {
                    let before = &self.labels[at - 1];
                    // The thought that leads to the action is the action's.
                    let end = if before.kind == LabelKind::Thought { before.start } else { label.start };
                    answer = self.between(open.take(), end).unwrap_or(answer);
                }
                _ => {}
            }
        }
        answer = self.between(open, self.text.len()).unwrap_or(answer);
        if answer.is_empty() { Err(ReactFormatError::EmptyAnswer) } else { Ok(answer.to_owned()) }
    }

    /// The answer from a label to an end, if it says something.
    fn between(&self, label: Option<usize>, end: usize) -> Option<&'a str> {
        let label = &self.labels[label?];
        let answer = self.text.get(label.content..end)?.trim();
        let mark = label.open_emphasis;
        // Emphasis that holds label and answer ends with the answer; emphasis inside it comes in pairs.
        let closes = !mark.is_empty() && answer.matches(mark).count() % 2 == 1;
        let answer = answer.strip_suffix(mark).filter(|_| closes).map_or(answer, str::trim);
        (!answer.is_empty()).then_some(answer)
    }

    /// The first object in a part of the text that names an action and its input.
    fn blob(&mut self, from: usize, to: usize) -> Result<Option<(usize, ReactDirective)>, ReactFormatError> {
        let mut line = from;
        while line < to && self.broken_blobs < MAX_BROKEN_BLOBS {
            let line_end = end_of_line(self.text, line).min(to);
            if let Some(start) = object_start(&self.text[line..line_end]) {
                match blob(&self.text[line + start..to]) {
                    Some(directive) => return directive.map(|directive| Some((line, directive))),
                    None => self.broken_blobs += 1,
                }
            }
            line = line_end + 1;
        }
        Ok(None)
    }
}

fn directive(
    tool: &str,
    answer: &str,
    input: impl FnOnce() -> String,
) -> Result<ReactDirective, ReactFormatError> {
    if !tool.eq_ignore_ascii_case("final answer") {
        return Ok(ReactDirective::Call { tool: tool.to_owned(), input: input() });
    }
    if answer.is_empty() {
        Err(ReactFormatError::EmptyAnswer)
    } else {
        Ok(ReactDirective::Finish(answer.to_owned()))
    }
}

/// The first line that says something and is no fence.
fn first_line(content: &str) -> &str {
    let fence = |line: &str| line.strip_prefix("```").is_some_and(|info| !info.contains(['`', '{']));
    content.lines().map(str::trim).find(|line| !line.is_empty() && !fence(line)).unwrap_or("")
}

/// The tool's name without what models put around it.
fn tool(content: &str) -> &str {
    let mut name = first_line(content);
    loop {
        let bare = name.trim_matches(|c: char| c.is_whitespace() || "`*\"'“”‘’".contains(c));
        let inner = bare.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(bare);
        if inner.len() == name.len() {
            return name;
        }
        name = inner;
    }
}

/// The input without a fence that only says that it is JSON, and without one clean pair of quotes.
fn clean_input(content: &str) -> &str {
    let content = content.trim();
    let json = unfenced(content).filter(|(info, _)| info.eq_ignore_ascii_case("json"));
    let content = json.map_or(content, |(_, body)| body.trim());
    for (open, close) in [('"', '"'), ('\'', '\''), ('“', '”')] {
        let inner = content.strip_prefix(open).and_then(|content| content.strip_suffix(close));
        if let Some(inner) = inner
            && !inner.contains([open, close])
        {
            return inner.trim();
        }
    }
    content
}

/// Where the object starts that a line starts with, fenced on the same line or not.
fn object_start(line: &str) -> Option<usize> {
    let rest = line.trim_start();
    let inner = rest.trim_start_matches('`');
    let inner = if inner.len() < rest.len() { inner.strip_prefix("json").unwrap_or(inner) } else { inner };
    let inner = inner.trim_start();
    inner.starts_with('{').then(|| line.len() - inner.len())
}

fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// What an object at the start of a text wants, if it names an action and its input.
fn blob(content: &str) -> Option<Result<ReactDirective, ReactFormatError>> {
    let content = &content[content.find('{')?..];
    let object = first_object(content).or_else(|| first_object(&with_escaped_newlines(content)))?;
    let name = object.get("action")?.as_str().map(tool).filter(|name| !name.is_empty())?;
    let input = match object.get("action_input")? {
        Value::Null => String::new(),
        Value::String(input) => input.trim().to_owned(),
        input => input.to_string(),
    };
    Some(directive(name, &input, || input.clone()))
}

fn first_object(content: &str) -> Option<Map<String, Value>> {
    serde_json::Deserializer::from_str(content).into_iter().next()?.ok()
}

/// Models break lines inside the strings of JSON, which it does not allow.
fn with_escaped_newlines(content: &str) -> String {
    let mut escaped = String::with_capacity(content.len() + 16);
    let (mut quoted, mut after_backslash) = (false, false);
    for character in content.chars() {
        match character {
            '\n' if quoted => escaped.push_str("\\n"),
            '\r' if quoted => escaped.push_str("\\r"),
            '\t' if quoted => escaped.push_str("\\t"),
            _ => escaped.push(character),
        }
        quoted ^= character == '"' && !after_backslash;
        after_backslash = quoted && character == '\\' && !after_backslash;
    }
    escaped
}
