//! How rows are written, whether they come from delimited text or from a spreadsheet.
//!
//! Every row is a block of `name: value` lines, blocks are parted by one blank line, and no block has a blank line in it.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::{
    output::ParserOutput,
    protocol::{MAX_TITLE, MarkKind, ParseAbort, TextMark},
};

/// Longest part that is handed on, in bytes.
const PART: usize = 1 << 20;
/// A part that is longer than this ends before the next row, so that few rows are cut in two.
const FULL: usize = PART / 2;
/// Longest name of a column that is repeated with each of its values, in characters: a longer one is somebody's remark.
const MAX_NAME: usize = 200;

/// Writes rows as text with marks. Feed it `sheet`, then for each row `row` and its fields from left to right; end with `finish`.
pub(crate) struct RowWriter<'a, 'o> {
    output: &'a mut ParserOutput<'o>,
    text: String,
    /// Characters in `text`.
    length: u64,
    marks: Vec<TextMark>,
    /// Whether a block has been written; the next one is parted from it.
    begun: bool,
    /// The sheet's name, until something of the sheet is written.
    title: Option<SheetTitle>,
    /// Where the names of the columns are, counted from 0 in the sheet.
    header: Option<u64>,
    names: Vec<String>,
    role: RowRole,
    /// Data rows of the table that have been written.
    data_rows: u64,
    /// Whether a block of the current row has begun.
    in_row: bool,
    /// The number of the row that was marked last, in any sheet.
    marked: Option<u64>,
    /// Whether that mark stands at the sheet's title, whose first row needs no other.
    at_title: bool,
}

struct SheetTitle {
    name: String,
    /// Whether the name is also written.
    written: bool,
}

/// What a row is.
#[derive(Debug, Clone, Copy)]
enum RowRole {
    /// Something above the table: its title, or a remark.
    Above,
    /// The names of the columns.
    Header,
    /// Data, by its number.
    Data(u64),
}

impl<'a, 'o> RowWriter<'a, 'o> {
    /// A writer for one document.
    pub(crate) fn new(output: &'a mut ParserOutput<'o>) -> Self {
        Self {
            output,
            text: String::new(),
            length: 0,
            marks: Vec::new(),
            begun: false,
            title: None,
            header: None,
            names: Vec::new(),
            role: RowRole::Above,
            data_rows: 0,
            in_row: false,
            marked: None,
            at_title: false,
        }
    }

    /// Begins a sheet that has a name; it is a line of the text if `written`. A sheet of which nothing else is written leaves no trace.
    pub(crate) fn title(&mut self, name: &str, written: bool) {
        self.title = Some(SheetTitle { name: name.to_owned(), written });
        self.at_title = false;
    }

    /// Begins a table. `header` is the row with the names of its columns, counted from 0; rows before it stand above the table.
    pub(crate) fn table(&mut self, header: Option<u64>) {
        self.header = header;
        self.names.clear();
        self.data_rows = 0;
    }

    /// Ends a table. Names of columns with nothing below them become a line: they are all that it says.
    pub(crate) fn end_table(&mut self) -> Result<(), ParseAbort> {
        let mut names = std::mem::take(&mut self.names);
        names.retain(|name| !name.is_empty());
        if self.data_rows > 0 || names.is_empty() {
            return Ok(());
        }
        self.in_row = false;
        let row = self.marked.map(|_| 1);
        self.lead("", row)?;
        for (place, name) in names.iter().enumerate() {
            self.put(if place > 0 { ", " } else { "" })?;
            self.put(name)?;
        }
        Ok(())
    }

    /// Begins the row `index`, counted from 0 with everything that a spreadsheet program shows as one, blank rows included.
    ///
    /// Data rows are numbered from 1, from the row below the header on, or from the first row where there is none.
    pub(crate) fn row(&mut self, index: u64) {
        self.in_row = false;
        self.role = match self.header {
            Some(header) if index < header => RowRole::Above,
            Some(header) if index == header => RowRole::Header,
            Some(header) => RowRole::Data(index - header),
            None => RowRole::Data(index.saturating_add(1)),
        };
    }

    /// A field of the current row; `column` counts from 0. Blank ones are left out.
    pub(crate) fn field(&mut self, column: usize, value: &str) -> Result<(), ParseAbort> {
        match self.role {
            RowRole::Header => self.name(column, value),
            _ if value.trim().is_empty() => {}
            RowRole::Above => {
                let row = self.marked.map(|_| 1);
                self.lead(if self.in_row { " " } else { "" }, row)?;
                self.value(value)?;
            }
            RowRole::Data(row) => {
                self.data_rows += 1;
                self.lead(if self.in_row { "\n" } else { "" }, Some(row))?;
                match self.names.get(column).filter(|name| !name.is_empty()) {
                    // Taken out for as long as the writer is borrowed.
                    Some(_) => {
                        let name = self.names.get_mut(column).map(std::mem::take).unwrap_or_default();
                        let put = self.put(&name);
                        if let Some(place) = self.names.get_mut(column) {
                            *place = name;
                        }
                        put?;
                    }
                    None => self.put(&format!("column_{}", column.saturating_add(1)))?,
                }
                self.put(": ")?;
                self.value(value)?;
            }
        }
        Ok(())
    }

    /// A text that is no table, as it is.
    pub(crate) fn plain(&mut self, text: &str) -> Result<(), ParseAbort> {
        for (number, line) in lines(text.trim_end()).enumerate() {
            if number > 0 {
                self.put("\n")?;
            }
            self.put(&cleaned(line.trim_end()))?;
        }
        Ok(())
    }

    /// Passes a warning on.
    pub(crate) fn warn(&mut self, code: &str, message: &str, count: u64) -> Result<(), ParseAbort> {
        self.output.warn(code, message, count)
    }

    /// Hands on what is left.
    pub(crate) fn finish(mut self) -> Result<(), ParseAbort> {
        self.flush()
    }

    fn name(&mut self, column: usize, name: &str) {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut name: String = cleaned(&name).chars().take(MAX_NAME + 1).collect();
        if let Some((end, _)) = name.char_indices().nth(MAX_NAME) {
            name.truncate(end);
            name.push('…');
        }
        if self.names.len() <= column {
            self.names.resize(column.saturating_add(1), String::new());
        }
        if let Some(place) = self.names.get_mut(column) {
            *place = name;
        }
    }

    /// What comes before a field: a new block with its marks, or what parts it from the one before.
    fn lead(&mut self, separator: &str, row: Option<u64>) -> Result<(), ParseAbort> {
        if self.in_row {
            return self.put(separator);
        }
        self.in_row = true;
        if let Some(title) = self.title.take() {
            self.block()?;
            let name = cleaned(&title.name).chars().take(MAX_TITLE).collect();
            self.marks.push(TextMark { at: self.length, what: MarkKind::Heading { level: 1, title: name } });
            // Without this the last row of the sheet before would seem to go on.
            if let Some(row) = row {
                self.mark(row);
                self.at_title = true;
            }
            if !title.written {
                return Ok(());
            }
            self.value(&title.name)?;
        }
        self.block()?;
        match row {
            Some(row) if !(self.at_title && self.marked == Some(row)) => {
                self.mark(row);
                self.at_title = false;
            }
            _ => {}
        }
        Ok(())
    }

    fn mark(&mut self, row: u64) {
        self.marked = Some(row);
        self.marks.push(TextMark { at: self.length, what: MarkKind::Row(row) });
    }

    fn block(&mut self) -> Result<(), ParseAbort> {
        if self.text.len() >= FULL {
            self.flush()?;
        }
        if self.begun { self.put("\n\n") } else { Ok(()) }
    }

    /// Writes a value without its blank lines, because these part rows.
    fn value(&mut self, value: &str) -> Result<(), ParseAbort> {
        let value = cleaned(value.trim());
        let mut first = true;
        for line in lines(&value).map(str::trim_end).filter(|line| !line.is_empty()) {
            if !first {
                self.put("\n")?;
            }
            first = false;
            self.put(line)?;
        }
        Ok(())
    }

    fn put(&mut self, mut text: &str) -> Result<(), ParseAbort> {
        self.begun |= !text.is_empty();
        while self.text.len() + text.len() > PART {
            let (now, later) = text.split_at(text.floor_char_boundary(PART.saturating_sub(self.text.len())));
            self.append(now);
            self.flush()?;
            text = later;
        }
        self.append(text);
        Ok(())
    }

    fn append(&mut self, text: &str) {
        self.text.push_str(text);
        self.length += text.chars().count() as u64;
    }

    fn flush(&mut self) -> Result<(), ParseAbort> {
        if self.text.is_empty() {
            return Ok(());
        }
        self.length = 0;
        self.output.part(std::mem::take(&mut self.text), std::mem::take(&mut self.marks))
    }
}

/// The lines of a text, however they are ended.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// Without zero bytes, in composed form.
fn cleaned(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.chars().filter(|c| *c != '\0').nfc().collect())
    } else if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}
