//! Reads delimited text field by field, so that a row of any length takes no more memory than its longest field.

use std::borrow::Cow;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

/// Room for a field to begin with, in bytes.
const FIELD: usize = 4 << 10;
/// How often, measured by the whole text, it may be read again because of quotation marks that are none. After that no mark in it
/// means anything.
const READ_AGAIN: usize = 4;

/// How a text parts and quotes its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableDialect {
    /// What parts the fields of a row; always ASCII, so that it never is a part of another character.
    pub(super) delimiter: u8,
    /// What encloses fields that have the delimiter or line ends in them; twice within means once.
    pub(super) quote: Option<u8>,
    /// What makes a quotation mark within a field a part of it, besides writing it twice.
    pub(super) escape: Option<u8>,
}

/// One field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TableField<'a> {
    /// The row it is in, counted from 0 with blank rows.
    pub(super) row: u64,
    /// Its place in the row, from 0.
    pub(super) column: usize,
    /// What it says.
    pub(super) value: Cow<'a, str>,
    /// Whether it ends the row.
    pub(super) last: bool,
}

/// The fields of a text, in order.
pub(super) struct FieldReader<'a> {
    text: &'a [u8],
    /// Bytes read.
    at: usize,
    dialect: TableDialect,
    /// Reads with quotation marks, and without; made once, because that takes longer than reading many fields.
    readers: Box<(Reader, Reader)>,
    buffer: Vec<u8>,
    row: u64,
    column: usize,
    /// Whether only the rest of this row is read without quotation marks.
    literal: bool,
    /// Fields whose quotation mark nothing closes.
    unclosed: u64,
    /// Bytes that may still be read again because of them.
    patience: usize,
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(text: &'a str, dialect: TableDialect) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
            dialect,
            readers: Box::new((reader(dialect, true), reader(dialect, false))),
            buffer: vec![0; FIELD],
            row: 0,
            column: 0,
            literal: false,
            unclosed: 0,
            patience: text.len().saturating_mul(READ_AGAIN),
        }
    }

    /// How many quotation marks nothing closes, and were taken for text.
    pub(super) fn unclosed(&self) -> u64 {
        self.unclosed
    }

    /// The next field.
    pub(super) fn next(&mut self) -> Option<TableField<'_>> {
        if self.column == 0 && !self.begin_row() {
            return None;
        }
        let (start, mut length) = (self.at, 0);
        let last = loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let room = self.buffer.get_mut(length..).unwrap_or_default();
            let plain = self.literal || self.dialect.quote.is_none();
            let reader = if plain { &mut self.readers.1 } else { &mut self.readers.0 };
            let (result, read, written) = reader.read_field(rest, room);
            self.at += read;
            length += written;
            let last = match result {
                // Asked again without any bytes, it says that the text has ended.
                ReadFieldResult::InputEmpty => continue,
                ReadFieldResult::OutputFull => {
                    self.buffer.resize(self.buffer.len() * 2, 0);
                    continue;
                }
                ReadFieldResult::Field { record_end } => record_end,
                ReadFieldResult::End => true,
            };
            if !self.is_misquoted(start) {
                break last;
            }
            let swallowed = self.at - start;
            self.literal = swallowed <= self.patience;
            self.patience = self.patience.saturating_sub(swallowed);
            self.unclosed += 1;
            if !self.literal {
                self.dialect.quote = None;
            }
            self.readers.1.reset();
            (self.at, length) = (start, 0);
        };
        let (row, column) = (self.row, self.column);
        if last {
            self.row += 1;
            self.column = 0;
            if self.literal {
                self.literal = false;
                self.readers.0.reset();
            }
        } else {
            self.column += 1;
        }
        let value = String::from_utf8_lossy(self.buffer.get(..length).unwrap_or_default());
        Some(TableField { row, column, value, last })
    }

    /// Goes past blank lines, which spreadsheet programs show as rows. Says whether anything comes after them.
    fn begin_row(&mut self) -> bool {
        let before = self.at.checked_sub(1).and_then(|before| self.text.get(before));
        if before == Some(&b'\r') && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
        }
        while let Some(byte) = self.text.get(self.at) {
            let pair = usize::from(*byte == b'\r' && self.text.get(self.at + 1) == Some(&b'\n'));
            match byte {
                b'\r' | b'\n' => {
                    self.at += 1 + pair;
                    self.row += 1;
                }
                _ => return true,
            }
        }
        false
    }

    /// Whether the field that began at `start` has a quotation mark that nothing closes where a field may end, and so swallowed more
    /// than its own line.
    fn is_misquoted(&self, start: usize) -> bool {
        let Some(quote) = self.dialect.quote.filter(|_| !self.literal) else { return false };
        let Some((first, field)) = self.text.get(start..self.at).and_then(<[u8]>::split_first) else {
            return false;
        };
        let inner = field.trim_ascii_end();
        if *first != quote || !inner.contains(&b'\n') && !inner.contains(&b'\r') {
            return false;
        }
        let mut rest = field.iter().enumerate().peekable();
        while let Some((at, byte)) = rest.next() {
            if Some(*byte) == self.dialect.escape {
                rest.next();
            } else if *byte == quote && rest.next_if(|(_, next)| **next == quote).is_none() {
                let after = field.get(at + 1..).unwrap_or_default().iter().find(|byte| **byte != b' ');
                return after.is_some_and(|byte| ![self.dialect.delimiter, b'\n', b'\r'].contains(byte));
            }
        }
        true
    }
}

fn reader(dialect: TableDialect, quoting: bool) -> Reader {
    ReaderBuilder::new()
        .delimiter(dialect.delimiter)
        .quote(dialect.quote.unwrap_or(b'"'))
        .quoting(quoting && dialect.quote.is_some())
        .escape(dialect.escape)
        .build()
}
