//! The forms of files with cases: CSV, lines of JSON, and collections in the form of BEIR.

use std::{
    collections::{BTreeMap, HashMap},
    io::{Cursor, Read},
};

use lectern_shared::model::evaluation::simply;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{
    MOST_CASES,
    readers::{MOST_GOLD, QUOTE},
};
use crate::error::{ApiError, FieldError};

/// Bytes of one file of a BEIR collection that are unpacked: a list of questions, or of what answers them.
const UNPACKED: u64 = 64 << 20;
/// Longest question, in characters.
const QUESTION: usize = 10_000;
/// Longest name by which a file names a document, and longest note, in characters.
const NAME: usize = 1_000;
const NOTE: usize = 10_000;
/// Problems that are named.
const NAMED: usize = 20;

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

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileExpectation {
    Decline,
    Gold(Vec<FileGold>),
}

/// A place that answers, of a document by its id or by what the file calls it.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FileGold {
    #[serde(default)]
    pub(super) document_id: Option<String>,
    #[serde(default)]
    pub(super) document: Option<String>,
    #[serde(default)]
    pub(super) quote: Option<String>,
    #[serde(default = "simply")]
    pub(super) grade: u32,
}

impl FileGold {
    pub(super) fn name(&self) -> Option<&str> {
        self.document_id.as_deref().or(self.document.as_deref()).filter(|name| !name.trim().is_empty())
    }
}

/// What is wrong with a file, line by line.
#[derive(Default)]
pub(super) struct FileProblems(Vec<FieldError>);

impl FileProblems {
    pub(super) fn note(&mut self, line: u64, what: &str) {
        if self.0.len() < NAMED {
            self.0.push(FieldError::new(&format!("line {line}"), what));
        }
    }

    pub(super) fn end<T>(self, read: T) -> Result<T, ApiError> {
        if self.0.is_empty() { Ok(read) } else { Err(ApiError::invalid(self.0)) }
    }
}

fn unreadable(what: &str) -> ApiError {
    ApiError::invalid_field("file", what)
}

/// Reads the cases of a file.
///
/// # Errors
/// What is wrong with it, line by line.
pub(super) fn read(format: ImportFormat, bytes: &[u8]) -> Result<Vec<FileCase>, ApiError> {
    let cases = match format {
        ImportFormat::Csv => read_table(bytes)?,
        ImportFormat::JsonLines => read_lines(bytes)?,
        ImportFormat::Beir => read_collection(bytes)?,
    };
    let most = usize::try_from(MOST_CASES).unwrap_or(usize::MAX);
    if cases.is_empty() {
        return Err(unreadable("has no cases"));
    }
    if cases.len() > most {
        return Err(unreadable(&format!("has {} cases; an evaluation may have at most {most}", cases.len())));
    }
    Ok(cases)
}

/// A table with the columns `question`, `quote`, `document` or `documentId`, and, if need be, `grade`, `expect` and `note`. Rows with the
/// same question are one case.
fn read_table(bytes: &[u8]) -> Result<Vec<FileCase>, ApiError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let header = text.lines().next().unwrap_or_default();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|delimiter| {
        let count = header.bytes().filter(|byte| byte == delimiter).count();
        (count, *delimiter == b',')
    });
    let mut table = csv::ReaderBuilder::new()
        .delimiter(delimiter.unwrap_or(b','))
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let wrong = |_| unreadable("is no table as CSV");
    let header = table.headers().map_err(wrong)?.clone();
    let column = |name: &str| header.iter().position(|title| title.eq_ignore_ascii_case(name));
    let question = column("question").ok_or_else(|| unreadable("needs a column `question`"))?;
    let (quote, id, document) = (column("quote"), column("documentId"), column("document"));
    let (grade, expect, note) = (column("grade"), column("expect"), column("note"));
    let mut problems = FileProblems::default();
    let mut order: Vec<FileCase> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for record in table.records() {
        let record = record.map_err(wrong)?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |at: Option<usize>| {
            let text = at.and_then(|at| record.get(at)).unwrap_or_default();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let Some(question) = cell(Some(question)) else {
            if !record.iter().all(str::is_empty) {
                problems.note(line, "has no question");
            }
            continue;
        };
        let is_declined = cell(expect).is_some_and(|word| word.eq_ignore_ascii_case("decline"));
        let grade = match cell(grade).map(|grade| grade.parse()) {
            None => simply(),
            Some(Ok(grade)) => grade,
            Some(Err(_)) => {
                problems.note(line, "has a grade that is no whole number");
                continue;
            }
        };
        let gold = FileGold { document_id: cell(id), document: cell(document), quote: cell(quote), grade };
        if !is_declined && gold.name().is_none() {
            problems.note(line, "names no document, and does not say `decline` in `expect`");
            continue;
        }
        let at = *places.entry(question.clone()).or_insert(order.len());
        match order.get_mut(at).map(|case| &mut case.expect) {
            Some(FileExpectation::Gold(golds)) if !is_declined => golds.push(gold),
            Some(_) => {
                problems.note(line, "says `decline` of a question that is answered elsewhere in the file");
            }
            None => {
                let expect =
                    if is_declined { FileExpectation::Decline } else { FileExpectation::Gold(vec![gold]) };
                order.push(FileCase { line, question, expect, note: cell(note) });
            }
        }
    }
    problems.end(order)
}

/// The cases that [`EvaluationService::export`] writes, or those that `POST …/cases` takes.
fn read_lines(bytes: &[u8]) -> Result<Vec<FileCase>, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct JsonCase {
        question: String,
        expect: Value,
        #[serde(default)]
        note: Option<String>,
        #[serde(default, rename = "id")]
        _id: Option<String>,
    }
    let text = String::from_utf8_lossy(bytes);
    let mut problems = FileProblems::default();
    let mut read = Vec::new();
    for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let case: JsonCase = match serde_json::from_str(text) {
            Ok(case) => case,
            Err(error) => {
                problems.note(line, &format!("is no case: {error}"));
                continue;
            }
        };
        let expect = if case.expect == json!("decline") {
            FileExpectation::Decline
        } else {
            match serde_json::from_value::<Vec<FileGold>>(case.expect) {
                Ok(gold) if !gold.is_empty() && gold.iter().all(|gold| gold.name().is_some()) => {
                    FileExpectation::Gold(gold)
                }
                _ => {
                    problems.note(line, "`expect` must be \"decline\", or a list of {documentId, quote}");
                    continue;
                }
            }
        };
        read.push(FileCase { line, question: case.question, expect, note: case.note });
    }
    problems.end(read)
}

/// The questions of a collection in the form of BEIR that have judgements, those of its test set if it has several.
fn read_collection(bytes: &[u8]) -> Result<Vec<FileCase>, ApiError> {
    #[derive(Deserialize)]
    struct JsonQuery {
        #[serde(rename = "_id")]
        id: Value,
        text: String,
    }
    let wrong = |_| unreadable("is no ZIP file that can be read");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(wrong)?;
    let names: Vec<String> = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let ends = |end: &str| names.iter().find(|name| *name == end || name.ends_with(&format!("/{end}")));
    let questions = ends("queries.jsonl").ok_or_else(|| unreadable("has no `queries.jsonl`"))?;
    let is_judgement = |name: &&String| {
        let path = std::path::Path::new(name.as_str());
        let folder = path.parent().and_then(|folder| folder.file_name());
        path.extension().is_some_and(|end| end == "tsv") && folder.is_some_and(|folder| folder == "qrels")
    };
    let judgements = ends("qrels/test.tsv").or_else(|| names.iter().find(is_judgement));
    let judgements = judgements.ok_or_else(|| unreadable("has no `qrels/test.tsv`"))?;
    let mut unpack = |name: &str| {
        let file = archive.by_name(name).map_err(wrong)?;
        let mut plain = Vec::new();
        file.take(UNPACKED + 1).read_to_end(&mut plain).map_err(|_| unreadable("is damaged"))?;
        if plain.len() as u64 > UNPACKED {
            return Err(unreadable(&format!("has more than {UNPACKED} bytes in `{name}`")));
        }
        Ok(plain)
    };
    let (judged, asked) = (unpack(judgements)?, unpack(questions)?);
    let mut problems = FileProblems::default();
    let mut gold: BTreeMap<String, Vec<FileGold>> = BTreeMap::new();
    for (line, text) in (1..).zip(String::from_utf8_lossy(&judged).lines()) {
        let cells: Vec<&str> = text.split('\t').map(str::trim).collect();
        let (question, document, grade) = match cells.as_slice() {
            [question, document, grade] => (*question, *document, grade.parse::<i64>()),
            _ if text.trim().is_empty() => continue,
            _ => {
                problems.note(line, &format!("of `{judgements}` has not three columns"));
                continue;
            }
        };
        match grade.map(u32::try_from) {
            // The header.
            Err(_) if line == 1 => {}
            Err(_) => problems.note(line, &format!("of `{judgements}` has a grade that is no whole number")),
            Ok(Ok(grade @ 1..)) => {
                let document = Some(document.to_owned());
                let place = FileGold { document_id: None, document, quote: None, grade };
                gold.entry(question.to_owned()).or_default().push(place);
            }
            // It does not answer.
            Ok(Ok(0) | Err(_)) => {}
        }
    }
    let mut read = Vec::new();
    for (line, text) in (1..).zip(String::from_utf8_lossy(&asked).lines()) {
        let query = match serde_json::from_str::<JsonQuery>(text) {
            Ok(query) => query,
            Err(_) if text.trim().is_empty() => continue,
            Err(error) => {
                problems.note(line, &format!("of `{questions}` is no question: {error}"));
                continue;
            }
        };
        let id = query.id.as_str().map_or_else(|| query.id.to_string(), str::to_owned);
        if let Some(gold) = gold.remove(&id) {
            let expect = FileExpectation::Gold(gold);
            read.push(FileCase { line, question: query.text, expect, note: Some(id) });
        }
    }
    problems.end(read)
}

/// What is wrong with a case as it stands.
pub(super) fn problem(case: &FileCase) -> Option<&'static str> {
    let length = |text: &str| text.chars().count();
    if case.question.trim().is_empty() {
        return Some("has an empty question");
    }
    if length(&case.question) > QUESTION {
        return Some("has a question of more than 10,000 characters");
    }
    if case.question.contains('\0') {
        return Some("has the character U+0000 in it");
    }
    if case.note.as_deref().is_some_and(|note| length(note) > NOTE || note.contains('\0')) {
        return Some("has a note of more than 10,000 characters, or with U+0000");
    }
    let FileExpectation::Gold(gold) = &case.expect else { return None };
    if gold.len() > MOST_GOLD {
        return Some("has more than 2,000 places that answer");
    }
    let is_too_long = |gold: &FileGold| {
        gold.quote.as_deref().is_some_and(|quote| length(quote) > QUOTE || quote.contains('\0'))
            || gold.name().is_some_and(|name| length(name) > NAME)
            || gold.grade > 100
    };
    gold.iter().any(is_too_long).then_some("has a quote of more than 10,000 characters, or a grade over 100")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gold(document: &str, quote: Option<&str>, grade: u32) -> FileGold {
        let document = Some(document.to_owned());
        FileGold { document_id: None, document, quote: quote.map(str::to_owned), grade }
    }

    fn case(question: &str, gold: Vec<FileGold>) -> FileCase {
        FileCase { line: 1, question: question.to_owned(), expect: FileExpectation::Gold(gold), note: None }
    }

    #[test]
    fn a_table_has_a_row_for_each_place_that_answers() {
        let table = "\u{feff}Question;Document;Quote;expect\nWho?;a.txt;\"Ada; of course\";\nWho?;b.txt;;\nWhy?;;;decline\n\n";
        let read = read(ImportFormat::of("cases.csv", table.as_bytes()), table.as_bytes()).unwrap();
        let why =
            FileCase { line: 4, question: "Why?".to_owned(), expect: FileExpectation::Decline, note: None };
        let who = vec![gold("a.txt", Some("Ada; of course"), 1), gold("b.txt", None, 1)];
        assert_eq!(read, [FileCase { line: 2, ..case("Who?", who) }, why]);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        let table = "question,document,grade\nWho?,,\n,a.txt,\nWhy?,a.txt,best\n";
        let error = read(ImportFormat::Csv, table.as_bytes()).unwrap_err();
        let named: Vec<_> = error.fields.iter().map(|detail| detail.path.as_str()).collect();
        assert_eq!(named, ["line 2", "line 3", "line 4"]);
        for (format, text) in [
            (ImportFormat::Csv, "answer\nx\n"),
            (ImportFormat::Csv, "question\n"),
            (ImportFormat::JsonLines, "{}"),
            (ImportFormat::JsonLines, "{\"question\": \"Who?\", \"expect\": []}"),
            (ImportFormat::Beir, "PK\x03\x04 nothing"),
        ] {
            assert!(read(format, text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_of_json_are_read() {
        let lines = "{\"question\": \"Who?\", \"expect\": [{\"document\": \"a.txt\", \"quote\": \"Ada\", \"grade\": 2}]}\n\n\
                     {\"question\": \"Why?\", \"expect\": \"decline\", \"note\": \"n\"}\n";
        assert_eq!(ImportFormat::of("x", lines.as_bytes()), ImportFormat::JsonLines);
        let read = read(ImportFormat::JsonLines, lines.as_bytes()).unwrap();
        assert_eq!(read[0], case("Who?", vec![gold("a.txt", Some("Ada"), 2)]));
        assert_eq!((&read[1].expect, read[1].note.as_deref()), (&FileExpectation::Decline, Some("n")));
    }

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in files {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn nothing_of_a_collection_is_passed_over() {
        let queries = b"{\"_id\": \"q1\", \"text\": \"Caf\xe9?\"}\n{\"_id\": \"q2\", \"text\": \"Why?\"}\n";
        let judged = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t-1\nq2\td2\t1\n";
        let bytes = zipped(&[("queries.jsonl", queries), ("qrels/test.tsv", judged)]);
        let read_all = read(ImportFormat::Beir, &bytes).unwrap();
        let lines: Vec<u64> = read_all.iter().map(|case| case.line).collect();
        assert_eq!(lines, [1, 2], "a broken character breaks nothing else off");
        for (queries, judged) in [
            (&queries[..], &b"query-id\tcorpus-id\tscore\nq1\td1\tgood\n"[..]),
            (&queries[..], &b"query-id\tcorpus-id\tscore\nq1 d1 1\n"[..]),
            (&b"{\"_id\": \"q1\"}\n"[..], &judged[..]),
        ] {
            let bytes = zipped(&[("queries.jsonl", queries), ("qrels/test.tsv", judged)]);
            assert_eq!(read(ImportFormat::Beir, &bytes).unwrap_err().fields.len(), 1);
        }
    }

    #[test]
    fn a_collection_is_read_by_its_judgements() {
        let bytes = zipped(&[
            (
                "nf/queries.jsonl",
                b"{\"_id\": \"q1\", \"text\": \"Who?\"}\n{\"_id\": \"q2\", \"text\": \"Why?\"}\n",
            ),
            ("nf/qrels/train.tsv", b"query-id\tcorpus-id\tscore\nq2\td9\t1\n"),
            ("nf/qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq1\td3\t1\n"),
        ]);
        let read = read(ImportFormat::of("nf.zip", &bytes), &bytes).unwrap();
        let judged = case("Who?", vec![gold("d1", None, 2), gold("d3", None, 1)]);
        assert_eq!(read, [FileCase { note: Some("q1".to_owned()), ..judged }]);
    }
}
