//! Spreadsheets: XLSX, XLSM, XLSB, XLS and ODS.
//!
//! Every sheet is a section of its own. Its rows are written like those of delimited text, and numbered as in [`table`](super::table):
//! by what the spreadsheet program shows, less the row of the header.

mod cell;
mod merged;

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Cursor, Read as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use calamine::{
    Data, Ods, OdsError, Range, Reader, SheetType, SheetVisible, Style, Xls, XlsError, Xlsb, XlsbError, Xlsx,
    XlsxError,
};
use quick_xml::{Reader as XmlReader, events::Event};
use zip::ZipArchive;

use self::merged::{CompleteRows, MergedCells};
use super::{
    compound,
    table::{RowWriter, SAMPLE_BYTES, SAMPLE_ROWS, find_header},
};
use crate::{
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, ParseOptions},
};

/// How an OLE2 file begins: an old workbook, or an encrypted new one.
const OLE2: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// Most bytes that the parts of a workbook may unpack to. More of them have more text than is taken.
const MAX_UNPACKED: u64 = 1 << 30;
/// Most bytes of those parts that are held in memory as a whole.
const MAX_HELD: u64 = 256 << 20;
/// These parts: the sheets of Open Document, and what the sheets of the others refer to. Sheets themselves are read cell by cell.
const HELD: [&str; 5] = ["content.xml", "sharedstrings.xml", "sharedstrings.bin", "styles.xml", "styles.bin"];

/// Columns that a sheet has, in each of the formats. Files say others: places up to there would be kept for them in every row.
const MOST_COLUMNS: usize = 16_384;

/// Reads a workbook, sheet by sheet.
pub(crate) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    let mut book =
        WorkbookReader { writer: RowWriter::new(output), several: false, hidden: 0, unreadable: 0 };
    match container(&bytes)? {
        WorkbookFormat::Xlsx => {
            check_shared_strings(&bytes)?;
            book.xlsx(Cursor::new(bytes))?;
        }
        WorkbookFormat::Xlsb => book.xlsb(Cursor::new(bytes))?,
        WorkbookFormat::Ods => {
            check_closed(&bytes)?;
            book.ods(Cursor::new(bytes), options)?;
        }
        WorkbookFormat::Xls => book.xls(Cursor::new(bytes))?,
    }
    book.finish()
}

/// The formats, as far as they are read differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkbookFormat {
    Xlsx,
    Xlsb,
    Ods,
    Xls,
}

fn container(bytes: &[u8]) -> Result<WorkbookFormat, ParseError> {
    let source = Cursor::new(bytes);
    if bytes.starts_with(OLE2) {
        compound::check(bytes)?;
        // Encrypted workbooks of every newer kind look alike from outside.
        let is_encrypted = cfb::CompoundFile::open(source).is_ok_and(|file| file.exists("/EncryptedPackage"));
        return if is_encrypted { Err(ParseError::PasswordRequired) } else { Ok(WorkbookFormat::Xls) };
    }
    let mut archive = ZipArchive::new(source).map_err(|_| ParseError::Damaged)?;
    let (mut unpacked, mut held, mut names) = (0_u64, 0_u64, Vec::new());
    for number in 0..archive.len() {
        let file = archive.by_index_raw(number).map_err(|_| ParseError::Damaged)?;
        // A name that cannot be read is none of those that are looked for.
        let Ok(name) = file.name() else { continue };
        let name = name.trim_start_matches('/').to_ascii_lowercase();
        if Path::new(&name).extension().is_some_and(|extension| extension == "xml" || extension == "bin") {
            unpacked = unpacked.saturating_add(file.size());
        }
        if HELD.iter().any(|part| name.ends_with(part)) {
            held = held.saturating_add(file.size());
        }
        names.push(name);
    }
    if unpacked > MAX_UNPACKED || held > MAX_HELD {
        return Err(ParseError::UnpacksTooFar);
    }
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    Ok(if has("xl/workbook.bin") {
        WorkbookFormat::Xlsb
    } else if has("content.xml") {
        WorkbookFormat::Ods
    } else {
        WorkbookFormat::Xlsx
    })
}

/// The most of an Open Document's manifest that is looked at.
const MAX_MANIFEST: u64 = 1 << 20;

/// Fails if the content of an Open Document ends before all of its elements do: the library would read on for ever.
fn check_closed(bytes: &[u8]) -> Result<(), ParseError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| ParseError::Damaged)?;
    if let Ok(content) = archive.by_name("content.xml")
        && is_closed(XmlReader::from_reader(BufReader::new(content)))
    {
        return Ok(());
    }
    let mut manifest = Vec::new();
    if let Ok(file) = archive.by_name("META-INF/manifest.xml") {
        let _what_there_is = file.take(MAX_MANIFEST).read_to_end(&mut manifest);
    }
    let is_encrypted = String::from_utf8_lossy(&manifest).contains("encryption-data");
    Err(if is_encrypted { ParseError::PasswordRequired } else { ParseError::Damaged })
}

/// The shortest text of a table of texts: `<si/>`.
const SHORTEST_TEXT: u64 = 5;

/// Fails if a workbook's table of texts says that it has more of them than fit in it: the library would set aside memory for all.
fn check_shared_strings(bytes: &[u8]) -> Result<(), ParseError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| ParseError::Damaged)?;
    for number in 0..archive.len() {
        let Ok(part) = archive.by_index(number) else { continue };
        let is_table = part.name().is_ok_and(|name| name.to_ascii_lowercase().ends_with("sharedstrings.xml"));
        let fit = part.size() / SHORTEST_TEXT;
        if is_table && count_of_texts(BufReader::new(part)) > fit {
            return Err(ParseError::Damaged);
        }
    }
    Ok(())
}

/// How many texts a table says that it has, at most.
fn count_of_texts(table: impl BufRead) -> u64 {
    // The library reads on where XML is not as it should be, so this does too.
    let mut reader = XmlReader::from_reader(table);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.expand_empty_elements = true;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(element)) if element.local_name().as_ref() == "sst" => {
                return largest_count(element.attributes_raw());
            }
            Ok(Event::Eof) | Err(_) => return 0,
            Ok(_) => {}
        }
    }
}

/// The largest number behind the name of the attribute that counts texts, wherever it stands: what is an attribute is not the same to
/// all who read broken ones.
fn largest_count(attributes: &str) -> u64 {
    let is_before = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '"' | '\'');
    let counts = attributes.split("uniqueCount").skip(1).filter_map(|behind| {
        let number = behind.trim_start_matches(is_before);
        let digits =
            number.split(|c: char| !c.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?;
        // More digits than a number holds are more than fit.
        Some(digits.parse().unwrap_or(u64::MAX))
    });
    counts.max().unwrap_or(0)
}

fn is_closed(mut reader: XmlReader<impl BufRead>) -> bool {
    let (mut open, mut buffer) = (0_u64, Vec::new());
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(_)) => open += 1,
            Ok(Event::End(_)) => open = open.saturating_sub(1),
            Ok(Event::Eof) => return open == 0,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// A cell that has something in it, at its row and column, both counted from 0.
struct SheetCell {
    row: u64,
    column: usize,
    text: String,
}

impl SheetCell {
    fn new((row, column): (u32, u32), text: String) -> Option<Self> {
        let column = usize::try_from(column).ok()?;
        (!text.trim().is_empty()).then_some(Self { row: u64::from(row), column, text })
    }
}

/// A workbook on its way to text.
struct WorkbookReader<'a, 'o> {
    writer: RowWriter<'a, 'o>,
    /// Whether there is more than one sheet.
    several: bool,
    /// Sheets that are hidden from those who open the workbook.
    hidden: u64,
    /// Cells that hold something which the format does not know, or stand where no sheet has any.
    unreadable: u64,
}

impl WorkbookReader<'_, '_> {
    /// The names of the sheets that have cells, in their order.
    fn sheets(&mut self, all: &[calamine::Sheet]) -> Vec<String> {
        let sheets = || all.iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
        self.several = sheets().count() > 1;
        self.hidden = sheets().filter(|sheet| sheet.visible != SheetVisible::Visible).count() as u64;
        sheets().map(|sheet| sheet.name.clone()).collect()
    }

    fn xlsx(&mut self, source: Cursor<Vec<u8>>) -> Result<(), ParseAbort> {
        let mut book = Xlsx::new(source).map_err(|_| ParseError::Damaged)?;
        for name in self.sheets(book.sheets_metadata()) {
            // The library panics at places that no sheet has. Where they cannot be read, no cells are merged.
            let merged = catch_unwind(AssertUnwindSafe(|| book.merge_cells_by_sheet_name(&name)));
            let merged = merged.ok().and_then(Result::ok).unwrap_or_default();
            let mut cells = match book.worksheet_cells_reader(&name) {
                Ok(cells) => cells,
                // A chart that is called a sheet.
                Err(XlsxError::NotAWorksheet(_)) => continue,
                Err(_) => return Err(ParseError::Damaged.into()),
            };
            let mut unreadable = 0;
            self.sheet(&name, MergedCells::of(&merged), || {
                loop {
                    match cells.next_cell_with_style_id() {
                        Ok(None) => return Ok(None),
                        Ok(Some((cell, style))) => {
                            let code = cells.styles().get(style).and_then(number_format);
                            let text = cell::text(cell.get_value(), code);
                            if let Some(cell) = SheetCell::new(cell.get_position(), text) {
                                return Ok(Some(cell));
                            }
                        }
                        // The reader stands within the cell and goes on with the next one.
                        Err(
                            XlsxError::CellError(_)
                            | XlsxError::CellTAttribute(_)
                            | XlsxError::ParseFloat(_)
                            | XlsxError::Unexpected(_)
                            | XlsxError::UnexpectedNode(_)
                            | XlsxError::Unrecognized { .. },
                        ) => unreadable += 1,
                        Err(_) => return Err(ParseError::Damaged.into()),
                    }
                }
            })?;
            self.unreadable += unreadable;
        }
        Ok(())
    }

    fn xlsb(&mut self, source: Cursor<Vec<u8>>) -> Result<(), ParseAbort> {
        let mut book = Xlsb::new(source).map_err(|error| match error {
            XlsbError::Password => ParseError::PasswordRequired,
            _ => ParseError::Damaged,
        })?;
        for name in self.sheets(book.sheets_metadata()) {
            let mut cells = book.worksheet_cells_reader(&name).map_err(|_| ParseError::Damaged)?;
            self.sheet(&name, MergedCells::default(), || {
                while let Some(cell) = cells.next_cell().map_err(|_| ParseError::Damaged)? {
                    let text = cell::text(cell.get_value(), None);
                    if let Some(cell) = SheetCell::new(cell.get_position(), text) {
                        return Ok(Some(cell));
                    }
                }
                Ok(None)
            })?;
        }
        Ok(())
    }

    fn ods(&mut self, source: Cursor<Vec<u8>>, options: &ParseOptions) -> Result<(), ParseAbort> {
        let book: Ods<_> = Ods::new(source).map_err(|error| match error {
            OdsError::Password => ParseError::PasswordRequired,
            OdsError::CellLimitExceeded { .. } => ParseError::TooLarge { limit: options.max_chars },
            _ => ParseError::Damaged,
        })?;
        self.ranges(book)
    }

    fn xls(&mut self, source: Cursor<Vec<u8>>) -> Result<(), ParseAbort> {
        let book: Xls<_> = Xls::new(source).map_err(|error| match error {
            XlsError::Password => ParseError::PasswordRequired,
            _ => ParseError::Damaged,
        })?;
        self.ranges(book)
    }

    /// Writes the sheets of a format that can be read sheet by sheet only.
    fn ranges(&mut self, mut book: impl Reader<Cursor<Vec<u8>>>) -> Result<(), ParseAbort> {
        for name in self.sheets(book.sheets_metadata()) {
            let range = book.worksheet_range(&name).map_err(|_| ParseError::Damaged)?;
            self.range(&name, &range)?;
        }
        Ok(())
    }

    /// Writes a sheet that is in memory as a whole.
    fn range(&mut self, name: &str, range: &Range<Data>) -> Result<(), ParseAbort> {
        let (top, left) = range.start().unwrap_or_default();
        let mut cells = range.used_cells().filter_map(|(row, column, value)| {
            let row = u32::try_from(row).ok()?.checked_add(top)?;
            let column = u32::try_from(column).ok()?.checked_add(left)?;
            SheetCell::new((row, column), cell::text(value, None))
        });
        self.sheet(name, MergedCells::default(), || Ok(cells.next()))
    }

    /// Writes a sheet, row by row, from cells that come in their order.
    fn sheet(
        &mut self,
        name: &str,
        merged: MergedCells,
        mut next: impl FnMut() -> Result<Option<SheetCell>, ParseAbort>,
    ) -> Result<(), ParseAbort> {
        // Most readers must not be asked again once they have said that they are at the end.
        let (mut ended, mut beyond) = (false, 0);
        let within = || {
            loop {
                let cell = if ended { None } else { next()? };
                ended = cell.is_none();
                if cell.as_ref().is_none_or(|cell| cell.column < MOST_COLUMNS) {
                    return Ok::<_, ParseAbort>(cell);
                }
                beyond += 1;
            }
        };
        let mut cells = CompleteRows::new(within, merged);
        let (mut first, mut bytes) = (VecDeque::new(), 0);
        let mut sample: Vec<(u64, Vec<String>)> = Vec::new();
        while bytes < SAMPLE_BYTES
            && let Some(cell) = cells.next_cell()?
        {
            bytes += cell.text.len();
            if sample.last().is_none_or(|(row, _)| *row != cell.row) {
                sample.push((cell.row, Vec::new()));
            }
            if let Some((_, row)) = sample.last_mut() {
                row.resize(row.len().max(cell.column + 1), String::new());
                if let Some(place) = row.get_mut(cell.column) {
                    place.clone_from(&cell.text);
                }
            }
            first.push_back(cell);
            if sample.len() > SAMPLE_ROWS {
                break;
            }
        }
        if sample.len() > SAMPLE_ROWS {
            sample.pop();
        }
        self.writer.title(name, self.several);
        self.writer.table(find_header(&sample));
        drop(sample);
        let mut current = None;
        while let Some(SheetCell { row, column, text }) = match first.pop_front() {
            Some(cell) => Some(cell),
            None => cells.next_cell()?,
        } {
            if current != Some(row) {
                self.writer.row(row);
                current = Some(row);
            }
            self.writer.field(column, &text)?;
        }
        drop(cells);
        self.unreadable += beyond;
        self.writer.end_table()
    }

    fn finish(mut self) -> Result<(), ParseAbort> {
        if self.hidden > 0 {
            let message = "Some sheets are hidden in the workbook. They were read like the others.";
            self.writer.warn("hidden_sheets", message, self.hidden)?;
        }
        if self.unreadable > 0 {
            let message = "Some cells hold a value of an unknown kind, or stand in no column of a sheet, and were left out.";
            self.writer.warn("unreadable_cells", message, self.unreadable)?;
        }
        self.writer.finish()
    }
}

/// How a style shows numbers.
fn number_format(style: &Style) -> Option<&str> {
    style.number_format.as_ref().map(|format| format.format_code.as_str())
}

#[cfg(test)]
mod tests;
