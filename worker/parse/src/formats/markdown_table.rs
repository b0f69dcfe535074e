//! Tables as Markdown writes them, for every format that has some.

/// The header is said again after so many bytes of rows: fewer than a passage of a small model has, whose tokens of numbers are short.
const HEADER_EVERY: usize = 450;

/// A table whose header is said again and again, so that each piece of a long table can be understood: after [`HEADER_EVERY`], or
/// after four times its own size. Each piece is a block of lines; a blank line stands between two. `columns` is the least number of
/// columns.
pub(super) fn write<'r>(
    header: &[String],
    rows: impl IntoIterator<Item = &'r [String]>,
    columns: usize,
) -> String {
    let mut text = String::new();
    write_header(&mut text, header, columns);
    let mut since = 0;
    for row in rows {
        if since > HEADER_EVERY.max(4 * size(header)) {
            text.push('\n');
            write_header(&mut text, header, columns);
            since = 0;
        }
        write_row(&mut text, row);
        since += size(row);
    }
    text.truncate(text.trim_end().len());
    text
}

fn size(row: &[String]) -> usize {
    row.iter().map(|cell| cell.len() + 3).sum()
}

fn write_header(text: &mut String, header: &[String], columns: usize) {
    let missing = columns.saturating_sub(header.len());
    let full: Vec<_> = header.iter().cloned().chain(std::iter::repeat_n(String::new(), missing)).collect();
    write_row(text, &full);
    text.push('|');
    for _ in &full {
        text.push_str(" --- |");
    }
    text.push('\n');
}

fn write_row(text: &mut String, row: &[String]) {
    text.push('|');
    for cell in row {
        text.push(' ');
        text.push_str(&cell.replace('|', "\\|"));
        text.push_str(if cell.is_empty() { "|" } else { " |" });
    }
    text.push('\n');
}
