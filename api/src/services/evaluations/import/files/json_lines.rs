//! Lines of JSON, a case in each. What is wrong with one is told in the words in which it is told of a request, with what stands there.

use serde_json::Value;

use super::{
    Bounds, FileCase, FileExpectation, FileGold, FileProblems, MOST_GOLD, NAME, NOTE, QUESTION, QUOTE,
    ReadFile, lines, unreadable,
};
use crate::{
    body::json::ValueBounds,
    error::{ApiError, FieldError},
    fields::{self, JsonFields},
    services::evaluations::readers::{GivenOutcome, NO_OUTCOME, grade, outcome},
};

/// What is built of a line: a case, a list, and the places in it, one more than there may be and each with more members than it has.
const CASE: ValueBounds = ValueBounds { members: 20, elements: MOST_GOLD + 1, depth: 3 };
/// What a file in UTF-16 begins with.
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
/// What is wrong with a line in another encoding.
const NOT_UTF8: &str = "is not UTF-8, which lines of JSON have to be: save the file as UTF-8";
/// Fields of a line that are named.
const NAMED_FIELDS: usize = 3;
/// Characters that are shown of what stands somewhere.
const SHOWN: usize = 40;

/// The cases that [`EvaluationService::export`](super::super::super::EvaluationService::export) writes, or those that `POST …/cases` takes.
pub(super) fn read_lines(bytes: &[u8], bounds: Bounds) -> Result<ReadFile, ApiError> {
    if UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        return Err(unreadable("is UTF-16, and lines of JSON have to be UTF-8: save it as UTF-8"));
    }
    let mut problems = FileProblems::default();
    let (mut read, mut places) = (Vec::new(), 0);
    for (line, bytes) in lines(bytes) {
        if problems.is_full() {
            break;
        }
        if bytes.len() > bounds.line {
            problems.note(line, bounds.too_long());
            continue;
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            problems.note(line, NOT_UTF8);
            continue;
        };
        if text.trim().is_empty() {
            continue;
        }
        if read.len() == bounds.cases {
            problems.end()?;
            return Err(bounds.too_many_cases());
        }
        let case = match read_case(line, text) {
            Ok(case) => case,
            Err(problem) => {
                problems.note(line, problem);
                continue;
            }
        };
        if let FileExpectation::Gold(gold) = &case.expect {
            places += gold.len();
        }
        if places > bounds.places {
            problems.end()?;
            return Err(bounds.too_many_places("places that answer"));
        }
        read.push(case);
    }
    Ok(ReadFile { cases: read, problems })
}

/// The case of a line, or what is wrong with it.
fn read_case(line: u64, text: &str) -> Result<FileCase, String> {
    let case = CASE.parse(text.as_bytes()).map_err(|error| broken(text, &error))?;
    if !case.is_object() {
        let wanted = "must be an object such as {\"question\": …, \"expect\": …}";
        return Err(format!("{wanted} (here: {})", shown(&case)));
    }
    let read = fields::read(&case, |fields| {
        fields.only(&["question", "expect", "note", "id"]);
        FileCase {
            line,
            question: fields.text("question", QUESTION),
            expect: expectation(fields, line),
            note: fields.optional_text("note", NOTE),
        }
    });
    read.map_err(|error| wrong_fields(&case, &error.fields))
}

fn expectation(fields: &mut JsonFields<'_>, line: u64) -> FileExpectation {
    if fields.get("expect").is_none() {
        fields.refuse("expect", NO_OUTCOME);
    }
    match outcome(fields, "expect", |fields| place(fields, line)) {
        Some(GivenOutcome::Gold(gold)) => FileExpectation::Gold(gold),
        // What is wrong is noted.
        Some(GivenOutcome::Decline) | None => FileExpectation::Decline,
    }
}

fn place(fields: &mut JsonFields<'_>, line: u64) -> FileGold {
    fields.only(&["documentId", "document", "quote", "grade"]);
    let gold = FileGold {
        line,
        document_id: fields.optional_text("documentId", NAME),
        document: fields.optional_text("document", NAME),
        quote: fields.optional_text("quote", QUOTE),
        grade: grade(fields),
    };
    if gold.name().is_none() && !fields.is_refused("documentId") && !fields.is_refused("document") {
        fields.refuse("documentId", "is required, or the document's name as `document`");
    }
    gold
}

/// What is wrong with a line that is no JSON, and what stands where that shows.
pub(super) fn broken(line: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "ends before its JSON does: all of it has to be in one line".to_owned();
    }
    let column = error.column();
    let at = line.floor_char_boundary(column.saturating_sub(1));
    format!("{} (column {column}, at `{}`)", CASE.problem(error), excerpt(&line[at..]))
}

/// What is wrong with fields of a line, each with what stands there.
fn wrong_fields(line: &Value, errors: &[FieldError]) -> String {
    let told = errors.iter().take(NAMED_FIELDS).map(|FieldError { path, message, .. }| {
        match line.pointer(&format!("/{}", path.replace('.', "/"))) {
            Some(there) => format!("`{path}` {message} (here: {})", shown(there)),
            None => format!("`{path}` {message}"),
        }
    });
    told.collect::<Vec<_>>().join("; ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => excerpt(&value.to_string()),
    }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
