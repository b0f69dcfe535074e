//! The text of a prompt: a format string as Python writes them, of which `{name}`, `{{` and `}}` are known and nothing else.
//! It is parsed when it is saved, so that what an agent uses later can fail only for want of a value.

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;

use std::collections::HashSet;

use unicode_normalization::char::is_combining_mark;

/// Longest name of a variable, in characters.
pub const LONGEST_NAME: usize = 100;

/// A template: text, and the places in it that a value is put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate {
    pieces: Vec<TemplateSegment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplateSegment {
    /// What is taken over as it is; never empty, and never beside another one.
    Literal(String),
    /// What is replaced by the value of this name.
    Variable(String),
}

/// Why a text is no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("character {position}: {problem}")]
pub struct TemplateError {
    /// Where it stands, in Unicode code points, the first one being 1.
    pub position: usize,
    /// What is wrong there.
    pub problem: TemplateProblem,
}

/// What can be wrong in a template, and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateProblem {
    /// `{` that no `}` closes.
    #[error("this `{{` is not closed; write `{{{{` for a brace in the text")]
    SingleOpen,
    /// `}` that closes nothing.
    #[error("this `}}` closes nothing; write `}}}}` for a brace in the text")]
    SingleClose,
    /// `{}`.
    #[error("`{{}}` names no variable; write `{{name}}`, or `{{{{}}}}` for braces in the text")]
    Empty,
    /// `{0}`.
    #[error("variables have names, not numbers; write `{{name}}`")]
    Positional,
    /// `{a.b}`.
    #[error("attributes cannot be looked up; write the variable's name alone, without `.`")]
    Attribute,
    /// `{a[0]}`.
    #[error("items cannot be looked up; write the variable's name alone, without `[`")]
    Index,
    /// `{a!r}`.
    #[error("conversions are not supported; write the variable's name alone, without `!`")]
    Conversion,
    /// `{a:>3}`.
    #[error("format specifications are not supported; write the variable's name alone, without `:`")]
    FormatSpec,
    /// Anything else that is no name.
    #[error(
        "a variable's name has letters, digits and `_`, and does not begin with a digit; \
         write `{{{{` and `}}}}` for braces in the text"
    )]
    NotAName,
    /// A name of more than [`LONGEST_NAME`] characters.
    #[error("a variable's name has at most {LONGEST_NAME} characters")]
    NameTooLong,
}

/// Why a template could not be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateFormatError {
    /// There is no value for this variable.
    #[error("there is no value for the variable `{0}`")]
    Missing(String),
    /// The result would have more bytes than the caller wants.
    #[error("the prompt would have more than {0} bytes")]
    TooLong(usize),
}

/// In what a template and the variables that were declared for it differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableMismatch {
    /// Used but not declared, in the order of their first use.
    pub undeclared: Vec<String>,
    /// Declared but not used, in the order of declaration.
    pub unused: Vec<String>,
}

impl PromptTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// The first thing in it that is wrong.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let error = |rest: &str, problem| {
            let before = &text[..text.len() - rest.len()];
            TemplateError { position: before.chars().count() + 1, problem }
        };
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..];
            if let Some(after) = brace.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = brace.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some(inside) = brace.strip_prefix('{') {
                let end = inside.find(['{', '}']).filter(|end| inside[*end..].starts_with('}'));
                let end = end.ok_or_else(|| error(brace, TemplateProblem::SingleOpen))?;
                let field = &inside[..end];
                if let Some((within, problem)) = problem_of(field) {
                    // What names no variable is shown by its brace.
                    let place = if within == 0 { brace } else { &inside[within..] };
                    return Err(error(place, problem));
                }
                if !literal.is_empty() {
                    pieces.push(TemplateSegment::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(TemplateSegment::Variable(field.to_owned()));
                rest = &inside[end + 1..];
            } else {
                return Err(error(brace, TemplateProblem::SingleClose));
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(TemplateSegment::Literal(literal));
        }
        Ok(Self { pieces })
    }

    /// The variables, each once, in the order of their first use.
    pub fn variables(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        self.pieces
            .iter()
            .filter_map(|piece| match piece {
                TemplateSegment::Variable(name) => Some(name.as_str()),
                TemplateSegment::Literal(_) => None,
            })
            .filter(|name| seen.insert(*name))
            .collect()
    }

    /// In how many places a variable's value is put.
    pub(crate) fn places_of(&self, name: &str) -> usize {
        let is_it = |piece: &&TemplateSegment| matches!(piece, TemplateSegment::Variable(own) if own == name);
        self.pieces.iter().filter(is_it).count()
    }

    /// In what this and the variables that were declared for it differ; nothing, when each that is used is declared and each
    /// that is declared is used. Names are the same when they are so character by character.
    pub fn disagreement<S: AsRef<str>>(&self, declared: &[S]) -> Option<VariableMismatch> {
        let used = self.variables();
        let differs = |these: &mut dyn Iterator<Item = &str>, others: &HashSet<&str>| -> Vec<String> {
            these.filter(|name| !others.contains(name)).map(ToOwned::to_owned).collect()
        };
        let found = VariableMismatch {
            undeclared: differs(&mut used.iter().copied(), &declared.iter().map(AsRef::as_ref).collect()),
            unused: differs(&mut declared.iter().map(AsRef::as_ref), &used.iter().copied().collect()),
        };
        (found != VariableMismatch::default()).then_some(found)
    }

    /// Puts the values in. They are taken as they are: braces in them mean nothing. The result has at most `limit` bytes,
    /// which is known before it is made, because a template may use a long value many times.
    ///
    /// # Errors
    /// When there is no value for a variable, or the result would be too long.
    pub(crate) fn format<V: AsRef<str>>(
        &self,
        value: impl Fn(&str) -> Option<V>,
        limit: usize,
    ) -> Result<String, TemplateFormatError> {
        let mut parts = Vec::with_capacity(self.pieces.len());
        let mut length = 0_usize;
        for piece in &self.pieces {
            let part = match piece {
                TemplateSegment::Literal(text) => RenderedPart::Literal(text),
                TemplateSegment::Variable(name) => RenderedPart::Value(
                    value(name).ok_or_else(|| TemplateFormatError::Missing(name.clone()))?,
                ),
            };
            length = length.saturating_add(part.as_str().len());
            if length > limit {
                return Err(TemplateFormatError::TooLong(limit));
            }
            parts.push(part);
        }
        let mut text = String::with_capacity(length);
        for part in &parts {
            text.push_str(part.as_str());
        }
        Ok(text)
    }
}

enum RenderedPart<'t, V> {
    Literal(&'t str),
    Value(V),
}

impl<V: AsRef<str>> RenderedPart<'_, V> {
    fn as_str(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Value(value) => value.as_ref(),
        }
    }
}

/// Whether a text can be the name of a variable: Unicode letters, their marks, digits and `_`, not beginning with a digit or
/// a mark, as identifiers of Python are; at most [`LONGEST_NAME`] characters.
pub fn is_variable_name(text: &str) -> bool {
    problem_of(text).is_none()
}

/// What is wrong with what stands between two braces, and at which of its bytes.
fn problem_of(field: &str) -> Option<(usize, TemplateProblem)> {
    let end = field.find(['.', '[', '!', ':']).unwrap_or(field.len());
    let (name, more) = field.split_at(end);
    let mut characters = name.chars();
    match characters.next() {
        None => return Some((0, TemplateProblem::Empty)),
        Some(_) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Some((0, TemplateProblem::Positional));
        }
        Some(first) if !begins_name(first) || !characters.all(continues_name) => {
            return Some((0, TemplateProblem::NotAName));
        }
        Some(_) => {}
    }
    let problem = match more.chars().next() {
        Some('.') => TemplateProblem::Attribute,
        Some('[') => TemplateProblem::Index,
        Some('!') => TemplateProblem::Conversion,
        Some(_) => TemplateProblem::FormatSpec,
        None if name.chars().count() > LONGEST_NAME => return Some((0, TemplateProblem::NameTooLong)),
        None => return None,
    };
    Some((end, problem))
}

fn begins_name(character: char) -> bool {
    character == '_' || (character.is_alphabetic() && !is_combining_mark(character))
}

/// Marks are letters' parts: accents that are written apart, and the vowel signs of many scripts.
fn continues_name(character: char) -> bool {
    character == '_' || character.is_alphanumeric() || is_combining_mark(character)
}

#[cfg(test)]
mod tests;
