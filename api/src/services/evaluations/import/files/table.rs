//! Tables with cases: CSV, in whatever encoding and with whatever delimiter a program for tables has written it.

use std::{borrow::Cow, collections::HashMap};

use lectern_parse::charset;
use lectern_shared::model::evaluation::simply;

use super::{Bounds, FileCase, FileExpectation, FileGold, FileProblems, ReadFile, lines, unreadable};
use crate::error::ApiError;

/// A table with the columns `question`, `quote`, `document` or `documentId`, and, if need be, `grade`, `expect` and `note`. Rows with the
/// same question are one case.
pub(super) fn read_table(bytes: &[u8], bounds: Bounds) -> Result<ReadFile, ApiError> {
    let text = decoded(bytes)?;
    let bytes = text.as_bytes();
    refuse_long_lines(bytes, bounds)?;
    let mut table = csv::ReaderBuilder::new().delimiter(delimiter(bytes)).flexible(true).from_reader(bytes);
    let wrong = |_: csv::Error| unreadable("is no table as CSV");
    let columns = TableColumns::of(table.byte_headers().map_err(wrong)?)?;
    let (mut cases, mut problems) = (TableCases::default(), FileProblems::default());
    let mut rows = 0;
    let mut record = csv::ByteRecord::new();
    while !problems.is_full() && table.read_byte_record(&mut record).map_err(wrong)? {
        let Some(question) = cell(&record, Some(columns.question)) else {
            if !record.iter().all(|cell| trimmed(cell).is_empty()) {
                problems.note(line(&record), "has no question");
            }
            continue;
        };
        if rows == bounds.places {
            problems.end()?;
            return Err(bounds.too_many_places("rows"));
        }
        rows += 1;
        if !cases.takes(&question, bounds) {
            problems.end()?;
            return Err(bounds.too_many_cases());
        }
        let row = columns.row(&record, &mut problems);
        cases.add(question, row, &mut problems);
    }
    Ok(ReadFile { cases: cases.order, problems })
}

/// The text of a table, in whatever encoding a program for tables has written it. Found as that of a document is.
fn decoded(table: &[u8]) -> Result<Cow<'_, str>, ApiError> {
    let (text, encoding, is_damaged) = charset::decode(table, None);
    if is_damaged {
        let encoding = encoding.name();
        return Err(unreadable(&format!(
            "has bytes that are no characters of {encoding}, in which it seems to be written: save it as UTF-8"
        )));
    }
    if text.lines().next().is_some_and(|header| header.contains('\0')) {
        return Err(unreadable("seems to be UTF-16 that does not say so: save it as UTF-8"));
    }
    Ok(text)
}

/// Refuses a table one of whose lines is too long: as many empty cells take many times its size. A cell may have several lines.
fn refuse_long_lines(table: &[u8], bounds: Bounds) -> Result<(), ApiError> {
    let mut problems = FileProblems::default();
    let mut line = 1;
    for part in table.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        if part.len() > bounds.line {
            problems.note(line, bounds.too_long());
        }
        line += u64::from(part.ends_with(b"\n"));
    }
    problems.end()
}

/// What stands between the cells: what its first line has most of.
fn delimiter(table: &[u8]) -> u8 {
    let header = lines(table).next().map(|(_, header)| String::from_utf8_lossy(header)).unwrap_or_default();
    let most = [b',', b';', b'\t'].into_iter().max_by_key(|delimiter| {
        let count = header.bytes().filter(|byte| byte == delimiter).count();
        (count, *delimiter == b',')
    });
    most.unwrap_or(b',')
}

fn trimmed(cell: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(cell) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

fn cell(record: &csv::ByteRecord, at: Option<usize>) -> Option<String> {
    let text = trimmed(at.and_then(|at| record.get(at)).unwrap_or_default());
    (!text.is_empty()).then(|| text.into_owned())
}

fn line(record: &csv::ByteRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

/// Where the columns are.
struct TableColumns {
    question: usize,
    quote: Option<usize>,
    document_id: Option<usize>,
    document: Option<usize>,
    grade: Option<usize>,
    expect: Option<usize>,
    note: Option<usize>,
}

/// What a row says of its question.
struct TableRow {
    is_declined: bool,
    gold: FileGold,
    note: Option<String>,
}

impl TableColumns {
    fn of(header: &csv::ByteRecord) -> Result<Self, ApiError> {
        let column = |name: &str| header.iter().position(|title| trimmed(title).eq_ignore_ascii_case(name));
        Ok(Self {
            question: column("question").ok_or_else(|| unreadable("needs a column `question`"))?,
            quote: column("quote"),
            document_id: column("documentId"),
            document: column("document"),
            grade: column("grade"),
            expect: column("expect"),
            note: column("note"),
        })
    }

    fn row(&self, record: &csv::ByteRecord, problems: &mut FileProblems) -> TableRow {
        let line = line(record);
        let is_declined = cell(record, self.expect).is_some_and(|word| word.eq_ignore_ascii_case("decline"));
        let grade = match cell(record, self.grade).map(|grade| grade.parse()) {
            None => simply(),
            Some(Ok(grade)) => grade,
            // What else is wrong with the row is told, too.
            Some(Err(_)) => {
                problems.note(line, "has a grade that is no whole number");
                simply()
            }
        };
        let (document_id, document) = (cell(record, self.document_id), cell(record, self.document));
        let gold = FileGold { line, document_id, document, quote: cell(record, self.quote), grade };
        TableRow { is_declined, gold, note: cell(record, self.note) }
    }
}

/// The cases, in the order of their first rows.
#[derive(Default)]
struct TableCases {
    order: Vec<FileCase>,
    /// Where the case of each question is.
    places: HashMap<String, usize>,
}

impl TableCases {
    /// Whether there is room for a row of this question.
    fn takes(&self, question: &str, bounds: Bounds) -> bool {
        self.order.len() < bounds.cases || self.places.contains_key(question)
    }

    fn add(&mut self, question: String, row: TableRow, problems: &mut FileProblems) {
        let TableRow { is_declined, gold, note } = row;
        let line = gold.line;
        if !is_declined && gold.name().is_none() {
            problems.note(line, "names no document, and does not say `decline` in `expect`");
            return;
        }
        let at = self.places.get(&question).copied();
        match at.and_then(|at| self.order.get_mut(at)).map(|case| &mut case.expect) {
            Some(FileExpectation::Gold(golds)) if !is_declined => golds.push(gold),
            Some(_) => {
                problems.note(line, "says `decline` of a question that is answered elsewhere in the file");
            }
            None => {
                let expect =
                    if is_declined { FileExpectation::Decline } else { FileExpectation::Gold(vec![gold]) };
                self.places.insert(question.clone(), self.order.len());
                self.order.push(FileCase { line, question, expect, note });
            }
        }
    }
}
