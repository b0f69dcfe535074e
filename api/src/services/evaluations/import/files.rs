//! The forms of files with cases: CSV, lines of JSON, and collections in the form of BEIR.

mod beir;
mod json_lines;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::super::{
    MOST_CASES,
    readers::{MOST_GOLD, QUOTE},
};
use crate::error::{ApiError, FieldError, FieldErrorCause, NAMED_ERRORS};

/// Places that answer, or judgements, of one file: more than any public collection's test set has, and far fewer than [`MOST_CASES`] times
/// [`MOST_GOLD`], which do not fit into memory.
const PLACES: usize = 500_000;
/// Longest line of a file, in bytes.
const LINE: usize = 4 << 20;
/// What some programs begin a text file with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Longest question, in characters.
const QUESTION: usize = 10_000;
/// Longest name by which a file names a document, and longest note, in characters.
const NAME: usize = 1_000;
const NOTE: usize = 10_000;
/// What is wrong with a case of more than [`MOST_GOLD`] places.
const TOO_MUCH_GOLD: &str = "has more than 2,000 places that answer";

/// The form of a file with cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportFormat {
    /// A table with a header.
    Csv,
    /// A case in each line, as JSON.
    JsonLines,
    /// `queries.jsonl` and `qrels/*.tsv` in a ZIP file.
    Beir,
}

impl ImportFormat {
    /// The form of a file, by its first bytes and its name.
    pub(crate) fn of(name: &str, bytes: &[u8]) -> Self {
        let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match (end.as_str(), first) {
            _ if bytes.starts_with(b"PK\x03\x04") => Self::Beir,
            ("jsonl" | "ndjson" | "json", _) | (_, Some(b'{')) => Self::JsonLines,
            _ => Self::Csv,
        }
    }
}

/// A case as a file has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileCase {
    /// Where it begins in its file.
    pub(super) line: u64,
    pub(super) question: String,
    pub(super) expect: FileExpectation,
    pub(super) note: Option<String>,
}

impl FileCase {
    /// The places that answer it; none when it is to be declined.
    pub(super) fn gold(&self) -> &[FileGold] {
        match &self.expect {
            FileExpectation::Decline => &[],
            FileExpectation::Gold(gold) => gold,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileExpectation {
    Decline,
    Gold(Vec<FileGold>),
}

/// A place that answers, of a document by its id or by what the file calls it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileGold {
    /// Where it stands in its file.
    pub(super) line: u64,
    pub(super) document_id: Option<String>,
    pub(super) document: Option<String>,
    pub(super) quote: Option<String>,
    pub(super) grade: u32,
}

impl FileGold {
    pub(super) fn name(&self) -> Option<&str> {
        self.document_id.as_deref().or(self.document.as_deref()).filter(|name| !name.trim().is_empty())
    }
}

/// The cases of a file that can be read, and what is wrong with the others. Nothing is read behind the last problem that is named.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub(super) cases: Vec<FileCase>,
    pub(super) problems: FileProblems,
}

/// What is wrong with a file, line by line.
#[derive(Debug, Default)]
pub(super) struct FileProblems(Vec<(u64, FieldErrorCause, String)>);

impl FileProblems {
    pub(super) fn note(&mut self, line: u64, what: impl Into<String>) {
        self.note_because(FieldErrorCause::Value, line, what);
    }

    pub(super) fn note_because(&mut self, cause: FieldErrorCause, line: u64, what: impl Into<String>) {
        if !self.is_full() {
            self.0.push((line, cause, what.into()));
        }
    }

    /// Whether what else is wrong would not be named: there is no use in reading on.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= NAMED_ERRORS
    }

    /// # Errors
    /// All of it by its lines, if anything is wrong.
    pub(super) fn end(mut self) -> Result<(), ApiError> {
        if self.0.is_empty() {
            return Ok(());
        }
        // What is noticed later may stand before what was noticed first.
        self.0.sort_by_key(|(line, ..)| *line);
        let fields = self.0.iter().map(|(line, cause, what)| FieldError {
            cause: *cause,
            ..FieldError::new(&format!("line {line}"), what)
        });
        Err(ApiError::invalid(fields.collect()))
    }
}

fn unreadable(what: &str) -> ApiError {
    ApiError::invalid_field("file", what)
}

/// How much of a file is read: nothing that follows is looked at.
#[derive(Clone, Copy)]
struct Bounds {
    cases: usize,
    /// Places that answer, of all cases.
    places: usize,
    /// Bytes of a line.
    line: usize,
}

impl Bounds {
    fn of_a_file() -> Self {
        Self { cases: usize::try_from(MOST_CASES).unwrap_or(usize::MAX), places: PLACES, line: LINE }
    }

    fn too_many_cases(self) -> ApiError {
        let most = self.cases;
        unreadable(&format!(
            "has more than {most} cases; an evaluation may have at most {most}: split it over several evaluations"
        ))
    }

    fn too_many_places(self, what: &str) -> ApiError {
        let most = self.places;
        unreadable(&format!(
            "has more than {most} {what}; a file may have at most {most}: split it into several files"
        ))
    }

    /// The text of a line, unless it is too long.
    fn text(self, line: &[u8]) -> Option<Cow<'_, str>> {
        (line.len() <= self.line).then(|| String::from_utf8_lossy(line))
    }

    fn too_long(self) -> String {
        format!("has more than {} bytes: shorten it, or split it into several lines", self.line)
    }
}

/// The lines of a file, with their numbers.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    (1_u64..).zip(bytes.split(|byte| *byte == b'\n'))
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Reads the cases of a file.
///
/// # Errors
/// When all of it is not what it should be. What is wrong with single lines is told with what can be read.
pub(super) fn read(format: ImportFormat, bytes: &[u8]) -> Result<ReadFile, ApiError> {
    read_within(format, bytes, Bounds::of_a_file())
}

fn read_within(format: ImportFormat, bytes: &[u8], bounds: Bounds) -> Result<ReadFile, ApiError> {
    let read = match format {
        ImportFormat::Csv => table::read_table(bytes, bounds)?,
        ImportFormat::JsonLines => json_lines::read_lines(without_mark(bytes), bounds)?,
        ImportFormat::Beir => beir::read_collection(bytes, bounds)?,
    };
    if read.cases.is_empty() && read.problems.0.is_empty() {
        return Err(unreadable("has no cases"));
    }
    Ok(read)
}

/// Notes what is wrong with a case as it stands.
pub(super) fn check(case: &FileCase, problems: &mut FileProblems) {
    let length = |text: &str| text.chars().count();
    if case.question.trim().is_empty() {
        problems.note(case.line, "has an empty question");
    }
    if length(&case.question) > QUESTION {
        problems.note(case.line, "has a question of more than 10,000 characters");
    }
    if case.question.contains('\0') {
        problems.note(case.line, "has the character U+0000 in it");
    }
    if case.note.as_deref().is_some_and(|note| length(note) > NOTE || note.contains('\0')) {
        problems.note(case.line, "has a note of more than 10,000 characters, or with U+0000");
    }
    if case.gold().len() > MOST_GOLD {
        problems.note(case.line, TOO_MUCH_GOLD);
    }
    for gold in case.gold() {
        if gold.quote.as_deref().is_some_and(|quote| length(quote) > QUOTE || quote.contains('\0')) {
            problems.note(gold.line, "has a quote of more than 10,000 characters, or with U+0000");
        }
        if gold.name().is_some_and(|name| length(name) > NAME) {
            problems.note(gold.line, "has a document's name of more than 1,000 characters");
        }
        if gold.grade > 100 {
            problems.note(gold.line, "has a grade over 100");
        }
    }
}
