//! Tables of a page: rows of cells that stand in columns become a table in Markdown, whose header is said again where it is long.
//!
//! Only what is certain is told to be one: several rows, one after the other, whose cells leave the same stripes empty, and say
//! little each. Running text in columns was taken out before, and everything else stays lines with tabs between their cells.

use super::{
    super::markdown_table,
    rows::{CELL, GUTTER, SPACE, TextRow, is_far, typical_size},
};
use crate::formats::pdf::fragment::TextFragment;

/// The least rows of several cells.
const ROWS: usize = 3;
/// Rows of a single cell between them, such as the headings of groups.
const SINGLE_ROWS: usize = 2;
/// The most columns; more are a drawing.
const MAX_COLUMNS: usize = 40;
/// The most characters that a cell has on average; more are text.
const MEAN_CELL: usize = 48;
/// Of so many rows one may reach over a stripe that all others leave empty, as headers over several columns do.
const ROWS_PER_CROSSING: usize = 5;
/// The most rows of a header.
const HEADER_ROWS: usize = 4;
/// A single text above a table heads its columns when it begins so many font sizes to the right of the labels.
const HEADER_INDENT: f32 = 8.0;

/// The first and the last row of a table, and its text.
pub(super) struct FoundTable {
    pub(super) rows: std::ops::Range<usize>,
    pub(super) text: String,
}

/// The tables among rows that stand below one another, in their order.
pub(super) fn find(rows: &[TextRow]) -> Vec<FoundTable> {
    let counts: Vec<usize> = rows.iter().map(count_cells).collect();
    let mut found = Vec::new();
    let mut next = 0;
    while next < rows.len() {
        if counts.get(next).is_none_or(|count| *count < 2) {
            next += 1;
            continue;
        }
        let end = run_end(rows, &counts, next);
        let free = found.last().map_or(0, |table: &FoundTable| table.rows.end);
        let start = header_start(rows, free, next, end);
        if let Some(text) = rows.get(start..end).and_then(table) {
            found.push(FoundTable { rows: start..end, text });
        }
        next = end.max(next + 1);
    }
    found
}

/// Whether rows that leave stripes empty hold figures beside one another: what they are read as otherwise, columns of running text,
/// would tear them apart.
pub(super) fn are_figures(rows: &[TextRow]) -> bool {
    let several: Vec<&TextRow> = rows.iter().filter(|row| row.pieces.len() >= 2).collect();
    let (mut figures, mut all) = (0_usize, 0_usize);
    for piece in several.iter().flat_map(|row| &row.pieces) {
        all += 1;
        figures += usize::from(is_figure(&piece.text));
    }
    several.len() > ROWS && several.len() * 5 >= rows.len() * 4 && figures * 3 >= all
}

/// How many cells a row has.
fn count_cells(row: &TextRow) -> usize {
    let gaps = row.pieces.windows(2).filter(|pair| match pair {
        [left, right] => right.left - left.right >= CELL * left.size.max(right.size),
        _ => false,
    });
    usize::from(!row.pieces.is_empty()) + gaps.count()
}

/// Where rows of several cells end that begin at `start`.
fn run_end(rows: &[TextRow], counts: &[usize], start: usize) -> usize {
    let mut end = start + 1;
    let mut single = 0;
    for at in start + 1..rows.len() {
        let (Some(above), Some(row)) = (rows.get(at - 1), rows.get(at)) else { break };
        if is_far(above, Some(row)) {
            break;
        }
        if counts.get(at).is_some_and(|count| *count >= 2) {
            end = at + 1;
            single = 0;
        } else {
            single += 1;
            if single > SINGLE_ROWS {
                break;
            }
        }
    }
    end
}

/// Where rows begin that head those from `start` to `end`: right above them, and over their columns of numbers alone. None of them
/// is before `free`.
fn header_start(rows: &[TextRow], free: usize, start: usize, end: usize) -> usize {
    let left = |row: &TextRow| row.pieces.first().map_or(f32::INFINITY, |piece| piece.left);
    let labels = rows.get(start..end).unwrap_or_default().iter().map(left).fold(f32::INFINITY, f32::min);
    let mut begin = start;
    while begin > free && start - begin < SINGLE_ROWS {
        let (Some(above), Some(row)) = (rows.get(begin - 1), rows.get(begin)) else { break };
        if is_far(above, Some(row)) || left(above) < labels + HEADER_INDENT * above.size {
            break;
        }
        begin -= 1;
    }
    begin
}

/// What rows say as a table; none when they are none.
fn table(rows: &[TextRow]) -> Option<String> {
    let size = typical_size(rows);
    let several: Vec<&TextRow> = rows.iter().filter(|row| count_cells(row) >= 2).collect();
    if several.len() < ROWS || is_contents(&several) {
        return None;
    }
    let columns = columns(&several, size);
    if !(2..=MAX_COLUMNS).contains(&columns.len()) {
        return None;
    }
    let cells: Vec<Vec<ColumnCell>> = rows.iter().map(|row| cells(row, &columns)).collect();
    let mut grid: Vec<Vec<String>> =
        cells.iter().map(|row| row.iter().map(|cell| cell.text.clone()).collect()).collect();
    join_signs(&mut grid);
    join_labels(&mut grid);
    if !is_data(&grid) {
        return None;
    }
    let header_rows = header_rows(&grid);
    let joined_rows = grid.len() != cells.len();
    let header = header(cells.get(..header_rows)?, grid.first()?.len(), &columns, &grid, joined_rows);
    let body = grid.get(header_rows..)?.iter().map(Vec::as_slice);
    Some(markdown_table::write(&header, body, grid.first()?.len()))
}

/// Whether rows are a table of contents: a title, what leads the eye over to its page, and the page.
fn is_contents(rows: &[&TextRow]) -> bool {
    let leads = |piece: &TextFragment| is_leader(piece) || without_leader(&piece.text) != piece.text;
    let is_entry = |row: &&&TextRow| {
        let behind = row.pieces.iter().rev().take_while(|piece| !leads(piece)).count();
        behind <= 1 && row.pieces.iter().any(leads)
    };
    rows.iter().filter(is_entry).count() * 3 >= rows.len()
}

/// Whether a piece only leads the eye over to a number.
fn is_leader(piece: &TextFragment) -> bool {
    piece.text.chars().all(|c| matches!(c, '.' | '…' | ' '))
}

/// A label without what leads the eye from it to a number.
fn without_leader(text: &str) -> &str {
    let label = text.trim_end_matches(['.', '…', ' ']);
    let dots = text.get(label.len()..).unwrap_or_default().chars().filter(|c| matches!(c, '.' | '…')).count();
    if dots > 2 { label } else { text }
}

/// A column: from its left to its right edge.
type ColumnStripe = (f32, f32);

/// The columns of rows: between the stripes that nearly all of them leave empty.
fn columns(rows: &[&TextRow], size: f32) -> Vec<ColumnStripe> {
    let crossing = rows.len() / ROWS_PER_CROSSING;
    // Where pieces begin and end; of two at the same place the beginning comes first.
    let mut edges: Vec<(f32, bool)> = rows
        .iter()
        .flat_map(|row| stretches(row))
        .flat_map(|(left, right)| [(left, true), (right, false)])
        .collect();
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut columns: Vec<ColumnStripe> = Vec::new();
    let (mut covered, mut open) = (0_usize, None);
    for (at, begins) in edges {
        if begins {
            covered += 1;
            if covered == crossing + 1 {
                open = Some(at);
            }
        } else {
            covered = covered.saturating_sub(1);
            if covered == crossing
                && let Some(left) = open.take()
            {
                match columns.last_mut() {
                    Some(last) if left - last.1 < GUTTER * size => last.1 = at,
                    _ => columns.push((left, at)),
                }
            }
        }
    }
    columns
}

/// What a row covers: its pieces, those that stand together as one.
fn stretches(row: &TextRow) -> Vec<ColumnStripe> {
    let mut stretches: Vec<ColumnStripe> = Vec::new();
    for piece in row.pieces.iter().filter(|piece| !is_leader(piece)) {
        match stretches.last_mut() {
            Some(last) if piece.left <= last.1 => last.1 = last.1.max(piece.right),
            _ => stretches.push((piece.left, piece.right)),
        }
    }
    stretches
}

/// What a row says in a column.
#[derive(Clone, Default)]
struct ColumnCell {
    text: String,
    /// The last column that it reaches into.
    until: usize,
}

/// The cells of a row, one for each column.
fn cells(row: &TextRow, columns: &[ColumnStripe]) -> Vec<ColumnCell> {
    let mut cells: Vec<ColumnCell> = vec![ColumnCell::default(); columns.len()];
    let mut before: Option<(&TextFragment, usize)> = None;
    for piece in row.pieces.iter().filter(|piece| !is_leader(piece)) {
        let (first, last) = reach(piece, columns);
        let gap = |left: &TextFragment| (piece.left - left.right) / left.size.max(piece.size);
        // Words of one cell may reach over the edge of its column.
        let column = match before {
            Some((left, column)) if gap(left) < CELL / 2.0 && first > column && spans(left, columns) => {
                column
            }
            _ => first,
        };
        let Some(cell) = cells.get_mut(column) else { continue };
        if let Some((left, _)) = before
            && !cell.text.is_empty()
            && !cell.text.ends_with(['$', '€', '£', '¥'])
            && (gap(left) >= SPACE || left.spaced.1 || piece.spaced.0 || gap(left) < -0.5)
        {
            cell.text.push(' ');
        }
        cell.text.push_str(without_leader(&piece.text));
        cell.until = cell.until.max(last);
        before = Some((piece, column));
    }
    cells
}

fn spans(piece: &TextFragment, columns: &[ColumnStripe]) -> bool {
    let (first, last) = reach(piece, columns);
    last > first
}

/// The first and the last column that a piece stands in; the nearest one for what stands in none.
fn reach(piece: &TextFragment, columns: &[ColumnStripe]) -> (usize, usize) {
    let within = |column: &ColumnStripe| piece.left < column.1 && column.0 < piece.right;
    let first = columns.iter().position(within);
    let last = columns.iter().rposition(within);
    if let (Some(first), Some(last)) = (first, last) {
        return (first, last);
    }
    let distance = |column: &ColumnStripe| (column.0 - piece.right).max(piece.left - column.1);
    let nearest = columns.iter().enumerate().min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
    let nearest = nearest.map_or(0, |(at, _)| at);
    (nearest, nearest)
}

/// Puts the signs of currencies before the numbers that they stand apart from, and those of shares and losses behind theirs.
fn join_signs(grid: &mut [Vec<String>]) {
    let is_of = |grid: &[Vec<String>], column: usize, signs: &[&str]| {
        let mut said =
            grid.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty()).peekable();
        said.peek().is_some() && said.all(|cell| signs.contains(&cell.as_str()))
    };
    let mut column = 0;
    while let Some(columns) = grid.first().map(Vec::len)
        && column < columns
    {
        let is_before = column + 1 < columns && is_of(grid, column, &["$", "€", "£", "¥", "US$", "("]);
        let is_behind = column > 0 && is_of(grid, column, &["%", ")", ")%", "€", "*"]);
        if !is_before && !is_behind {
            column += 1;
            continue;
        }
        for row in grid.iter_mut() {
            let sign = row.remove(column);
            let place = if is_before { column } else { column - 1 };
            if let Some(cell) = row.get_mut(place)
                && !sign.is_empty()
            {
                *cell = if is_before { sign + cell } else { std::mem::take(cell) + &sign };
            }
        }
    }
}

/// Joins a label that goes on in the next row to the rest of it.
fn join_labels(grid: &mut Vec<Vec<String>>) {
    let says_only_label = |row: &[String]| match row {
        [label, rest @ ..] => !label.is_empty() && rest.iter().all(String::is_empty),
        [] => false,
    };
    let mut at = 0;
    while at + 1 < grid.len() {
        let goes_on = match (grid.get(at), grid.get(at + 1)) {
            (Some(row), Some(next)) => {
                let begins = next.first().is_some_and(|label| label.starts_with(char::is_lowercase));
                says_only_label(row)
                    && begins
                    && row.first().is_some_and(|label| !label.ends_with([':', '.']))
            }
            _ => false,
        };
        if goes_on {
            let above = grid.remove(at);
            if let (Some(label), Some(start)) =
                (grid.get_mut(at).and_then(|row| row.first_mut()), above.into_iter().next())
            {
                *label = format!("{start} {label}");
            }
        } else {
            at += 1;
        }
    }
}

/// Whether cells hold data rather than text that happens to stand in columns.
fn is_data(grid: &[Vec<String>]) -> bool {
    let said = || grid.iter().flatten().filter(|cell| !cell.is_empty());
    let (count, chars) = (said().count(), said().map(|cell| cell.chars().count()).sum::<usize>());
    let several = grid.iter().filter(|row| row.iter().filter(|cell| !cell.is_empty()).count() >= 2).count();
    let columns = grid.first().map_or(0, Vec::len);
    let behind = || grid.iter().flat_map(|row| row.iter().skip(1)).filter(|cell| !cell.is_empty());
    let figures = behind().filter(|cell| is_figure(cell)).count();
    let is_numeric = figures * 2 >= behind().count();
    columns >= 2
        && several >= ROWS
        && several * 2 >= grid.len()
        && chars <= MEAN_CELL * count
        // Two columns of words are as often a list with its remarks, or what was typed with tabs.
        && (is_numeric || (columns >= 3 && several * 3 >= grid.len() * 2))
}

/// Whether a cell holds a number, or stands for one that there is not.
fn is_figure(cell: &str) -> bool {
    let digits = cell.chars().filter(char::is_ascii_digit).count();
    let letters = cell.chars().filter(|c| c.is_alphabetic()).count();
    (digits > 0 && digits >= letters) || matches!(cell, "-" | "–" | "—" | "n/a" | "N/A" | "nil")
}

/// Whether a number is likely to be a year, as headers have them.
fn is_year(cell: &str) -> bool {
    cell.parse::<u16>().is_ok_and(|year| (1_900..=2_100).contains(&year))
}

/// How many rows are the header: those before the first that names something and gives a number of it.
fn header_rows(grid: &[Vec<String>]) -> usize {
    let is_body = |row: &Vec<String>| {
        row.first().is_some_and(|label| !label.is_empty())
            && row.iter().skip(1).any(|cell| is_figure(cell) && !is_year(cell))
    };
    match grid.iter().position(is_body) {
        Some(first) if first <= HEADER_ROWS => {
            // A label by itself below what heads the columns begins a group.
            let heads = |row: &Vec<String>| row.iter().skip(1).any(|cell| !cell.is_empty());
            let above = grid.get(..first).unwrap_or_default();
            let headed = above.iter().position(heads).unwrap_or(first);
            above.iter().skip(headed).position(|row| !heads(row)).map_or(first, |group| headed + group)
        }
        Some(_) => 0,
        // Where there are no numbers.
        None => 1,
    }
}

/// One text for each column: what the rows of the header say over it, from the top.
fn header(
    rows: &[Vec<ColumnCell>],
    columns: usize,
    stripes: &[ColumnStripe],
    grid: &[Vec<String>],
    joined_rows: bool,
) -> Vec<String> {
    // Signs that were joined have taken columns away, and labels rows: the joined ones are right then, if less complete.
    if columns != stripes.len() || joined_rows {
        let above = grid.get(..rows.len()).unwrap_or_default();
        return (0..columns).map(|column| joined(above.iter().filter_map(|row| row.get(column)))).collect();
    }
    let over = |column: usize| {
        rows.iter().filter_map(move |row| {
            let own = row.get(column).filter(|cell| !cell.text.is_empty());
            let spanning = || {
                let left = row.get(..column)?.iter().rev().find(|cell| !cell.text.is_empty())?;
                (left.until >= column).then_some(left)
            };
            own.or_else(spanning).map(|cell| &cell.text)
        })
    };
    (0..columns).map(|column| joined(over(column))).collect()
}

fn joined<'c>(cells: impl Iterator<Item = &'c String>) -> String {
    let said: Vec<&str> = cells.map(String::as_str).filter(|cell| !cell.is_empty()).collect();
    said.join(" ")
}

#[cfg(test)]
mod tests;
