//! Delimited text: CSV and its relatives.
//!
//! A row's number is the one that a spreadsheet program shows, less that of the header: blank lines count, line ends within a field do
//! not. What turns out to be no table keeps its text, and is warned of.

mod dialect;
mod fields;
mod header;
mod prose;
mod writer;

use std::{borrow::Cow, path::Path};

use self::{
    dialect::DetectedDialect,
    fields::{FieldReader, TableDialect},
};
pub(crate) use self::{header::find as find_header, writer::RowWriter};
use crate::{
    charset,
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, ParseOptions},
};

/// Rows by which the header is told, here and in spreadsheets.
pub(crate) const SAMPLE_ROWS: usize = 100;
/// Bytes of them at most.
pub(crate) const SAMPLE_BYTES: usize = 1 << 20;

/// Reads delimited text, row by row.
pub(crate) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    let text = charset::decode_noting(&bytes, options.charset.as_deref(), output)?;
    match text {
        Cow::Borrowed(text) => read(text, options, output),
        Cow::Owned(text) => {
            drop(bytes);
            read(&text, options, output)
        }
    }
}

fn read(text: &str, options: &ParseOptions, output: &mut ParserOutput<'_>) -> Result<(), ParseAbort> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(());
    }
    let (said, text) = said_delimiter(text);
    let delimiter = said.or_else(|| tab(text, options));
    let detected = dialect::detect(text, delimiter);
    let mut writer = RowWriter::new(output);
    if delimiter.is_none() && !prose::is_table(text, detected) {
        writer.warn("not_a_table", "The text has no rows and columns and was read as it is.", 1)?;
        writer.plain(text)?;
    } else {
        rows(text, detected, &mut writer)?;
    }
    writer.finish()
}

fn rows(text: &str, detected: DetectedDialect, writer: &mut RowWriter<'_, '_>) -> Result<(), ParseAbort> {
    let DetectedDialect { dialect, .. } = detected;
    let header = header(text, dialect);
    writer.table(header);
    let mut fields = FieldReader::new(text, dialect);
    // Without a header the first row says how many fields are usual.
    let (mut usual, mut filled, mut uneven) = (None, 0, 0_u64);
    while let Some(field) = fields.next() {
        if field.column == 0 {
            writer.row(field.row);
            filled = 0;
        }
        writer.field(field.column, &field.value)?;
        let width = field.column + 1;
        if !field.value.trim().is_empty() {
            filled = width;
        }
        if field.last && header.is_none_or(|header| field.row >= header) && filled > 0 {
            let usual = *usual.get_or_insert(width);
            // Delimiters at the end of a row, with nothing between them, harm nobody.
            uneven += u64::from(width < usual || filled > usual);
        }
    }
    writer.end_table()?;
    if uneven > 0 {
        let message = "Some rows have more or fewer fields than the first one. All of them were kept.";
        writer.warn("uneven_rows", message, uneven)?;
    }
    if fields.unclosed() > 0 {
        let message = "Some quotation marks are never closed and were taken for text.";
        writer.warn("unclosed_quotes", message, fields.unclosed())?;
    }
    Ok(())
}

/// The row with the names of the columns.
fn header(text: &str, dialect: TableDialect) -> Option<u64> {
    let mut fields = FieldReader::new(text, dialect);
    let (mut sample, mut row, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(field) = fields.next() {
        let (number, last) = (field.row, field.last);
        bytes += field.value.len() + size_of::<String>();
        row.push(field.value.into_owned());
        let full = bytes > SAMPLE_BYTES;
        if last || full {
            let row = std::mem::take(&mut row);
            if row.iter().any(|field| !field.trim().is_empty()) {
                sample.push((number, row));
            }
            if full || sample.len() == SAMPLE_ROWS {
                break;
            }
        }
    }
    find_header(&sample)
}

/// The delimiter that a first line `sep=;` names, as Excel understands it, and the text without that line.
fn said_delimiter(text: &str) -> (Option<u8>, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let line = line.trim_end_matches('\r').trim_matches('"');
    let said = line.get(..4).filter(|said| said.eq_ignore_ascii_case("sep="));
    match said.and_then(|said| line.get(said.len()..)).map(str::as_bytes) {
        Some(&[delimiter]) if delimiter.is_ascii() => (Some(delimiter), rest),
        _ => (None, text),
    }
}

/// The tab, if the file is called so and has some.
fn tab(text: &str, options: &ParseOptions) -> Option<u8> {
    let extension = Path::new(options.name.as_deref()?).extension()?;
    let is_called_so = ["tsv", "tab"].into_iter().any(|known| extension.eq_ignore_ascii_case(known));
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    (is_called_so && first.contains('\t')).then_some(b'\t')
}

#[cfg(test)]
mod tests;
