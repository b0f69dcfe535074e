//! Reading order: from pieces of text with a place on the page to the text as a person reads it.
//!
//! The page is cut into horizontal bands over which the same vertical gutters stay empty; the columns of a band are
//! read one after another, each by the same rule. A gutter counts only between columns of running text: the cells of
//! a table are read row by row. `pdf_oxide`'s own orders were tried first: they swap lines within a paragraph and read
//! across three-column pages.

use std::borrow::Borrow;

use super::{
    direction,
    fragment::TextFragment,
    rows::{CELL, FAR_TYPICAL, GUTTER, SPACE, TextRow, is_far, rows, typical_distance, typical_size},
    tables::{self, FoundTable},
};

/// The least rows of text on either side of a gutter.
const COLUMN_ROWS: usize = 4;
/// The least characters in a typical row of a column, where rows stand beside each other as in a table.
const ALIGNED_ROW_CHARS: usize = 18;
/// The same where they do not: lists and captions.
const RAGGED_ROW_CHARS: usize = 6;
/// Pieces that overlap by so many font sizes have nothing to do with one another: a form's field over its hint.
const OVERLAP: f32 = -1.0;
/// A line distance of this many typical ones separates paragraphs.
const PARAGRAPH: f32 = 1.3;
/// Depth of columns within columns.
const MAX_DEPTH: u8 = 4;

/// An empty vertical stripe.
#[derive(Debug, Clone, Copy)]
struct HorizontalRange {
    left: f32,
    right: f32,
}

/// The text of a page's pieces in reading order: lines ended by `\n`, blank lines between paragraphs, tabs between
/// the cells of a table.
pub(super) fn read(fragments: Vec<TextFragment>) -> String {
    let rtl = direction::is_rtl_line(fragments.iter().map(|fragment| fragment.text.as_str()));
    let mut out = String::new();
    read_region(fragments, rtl, MAX_DEPTH, &mut out);
    out
}

fn read_region(fragments: Vec<TextFragment>, rtl: bool, depth: u8, out: &mut String) {
    // Rows of one column, until a band with several comes.
    let mut flow: Vec<TextRow> = Vec::new();
    for mut band in bands(rows(fragments)) {
        let is_text = depth > 0 && !tables::are_figures(&band);
        let cuts = if is_text { cuts(&band) } else { Vec::new() };
        if cuts.is_empty() {
            flow.append(&mut band);
            continue;
        }
        // A title above may have hidden where the columns begin: they reach up as far as nothing crosses a gutter.
        while let Some(row) = flow.pop_if(|row| !crosses(row, &cuts) && !is_far(row, band.first())) {
            band.insert(0, row);
        }
        write_rows(std::mem::take(&mut flow), rtl, out);
        let mut columns = divide(band.into_iter().flat_map(|row| row.pieces), &cuts);
        if rtl {
            columns.reverse();
        }
        for column in columns {
            read_region(column, rtl, depth - 1, out);
        }
    }
    write_rows(flow, rtl, out);
}

fn crosses(row: &TextRow, cuts: &[f32]) -> bool {
    row.pieces.iter().any(|piece| cuts.iter().any(|cut| piece.left < *cut && *cut < piece.right))
}

/// Ends the line before. The text of one column goes on in the next, so a sentence that is not over gets no blank
/// line, and a divided word can be joined.
fn begin_block(out: &mut String) {
    if out.is_empty() {
        return;
    }
    let goes_on = out
        .trim_end()
        .ends_with(|c: char| c.is_lowercase() || matches!(c, ',' | '-' | '\u{2010}' | '\u{ad}'));
    out.push_str(if goes_on { "\n" } else { "\n\n" });
}

/// Runs of rows over which at least one common stripe stays empty, as long as such runs can be made.
fn bands(rows: Vec<TextRow>) -> Vec<Vec<TextRow>> {
    let size = typical_size(&rows);
    let region = extent(&rows);
    let typical = typical_distance(&rows);
    let mut bands: Vec<Vec<TextRow>> = Vec::new();
    let mut open: Vec<HorizontalRange> = Vec::new();
    for row in rows {
        let gaps = gaps(&row, region, size);
        let common = intersect(&open, &gaps, size);
        match bands.last_mut() {
            Some(band) if !common.is_empty() && !is_apart(band.last(), &row, typical) => {
                open = common;
                band.push(row);
            }
            _ => {
                open = gaps;
                bands.push(vec![row]);
            }
        }
    }
    bands
}

fn is_apart(upper: Option<&TextRow>, lower: &TextRow, typical: f32) -> bool {
    upper.is_some_and(|upper| is_far(upper, Some(lower)) && upper.base - lower.base > FAR_TYPICAL * typical)
}

/// From the leftmost to the rightmost text.
fn extent(rows: &[TextRow]) -> HorizontalRange {
    let nothing = HorizontalRange { left: f32::INFINITY, right: f32::NEG_INFINITY };
    rows.iter().flat_map(|row| &row.pieces).fold(nothing, |extent, piece| HorizontalRange {
        left: extent.left.min(piece.left),
        right: extent.right.max(piece.right),
    })
}

/// The stripes of a region that a row leaves empty.
fn gaps(row: &TextRow, region: HorizontalRange, size: f32) -> Vec<HorizontalRange> {
    let mut gaps = Vec::new();
    let mut left = region.left;
    for piece in &row.pieces {
        gaps.push(HorizontalRange { left, right: piece.left });
        left = left.max(piece.right);
    }
    gaps.push(HorizontalRange { left, right: region.right });
    gaps.retain(|gap| gap.right - gap.left >= GUTTER * size);
    gaps
}

fn intersect(a: &[HorizontalRange], b: &[HorizontalRange], size: f32) -> Vec<HorizontalRange> {
    let both = |(a, b): (&HorizontalRange, &HorizontalRange)| HorizontalRange {
        left: a.left.max(b.left),
        right: a.right.min(b.right),
    };
    a.iter()
        .flat_map(|a| b.iter().map(move |b| (a, b)))
        .map(both)
        .filter(|stripe| stripe.right - stripe.left >= GUTTER * size)
        .collect()
}

/// Where a band is cut into columns: in the gutters that separate running text.
fn cuts(band: &[TextRow]) -> Vec<f32> {
    let mut cuts = gutters(band);
    while !cuts.is_empty() {
        let parts = measure(band, &cuts);
        let Some(unfit) = parts.iter().position(|part| !is_column(part, &parts)) else { break };
        // A part that is no column belongs to what stands to its right, as a bullet does; the last one to its left.
        cuts.remove(unfit.min(cuts.len() - 1));
    }
    cuts
}

/// Middles of the stripes that stay empty over the whole band and have text on both sides.
fn gutters(band: &[TextRow]) -> Vec<f32> {
    let size = typical_size(band);
    let region = extent(band);
    let empty = band.iter().fold(vec![region], |open, row| intersect(&open, &gaps(row, region, size), size));
    let inner = empty.iter().filter(|stripe| stripe.left > region.left && stripe.right < region.right);
    inner.map(|stripe| f32::midpoint(stripe.left, stripe.right)).collect()
}

fn divide<P: Borrow<TextFragment>>(pieces: impl IntoIterator<Item = P>, cuts: &[f32]) -> Vec<Vec<P>> {
    let mut parts: Vec<Vec<P>> = (0..=cuts.len()).map(|_| Vec::new()).collect();
    for piece in pieces {
        let at = cuts.partition_point(|cut| *cut < piece.borrow().left);
        if let Some(part) = parts.get_mut(at) {
            part.push(piece);
        }
    }
    parts
}

/// What is measured of a possible column: for each of its rows, where it stands, how wide and how long it is.
struct ColumnMeasure {
    rows: Vec<(f32, f32, usize)>,
    size: f32,
}

fn measure(band: &[TextRow], cuts: &[f32]) -> Vec<ColumnMeasure> {
    let size = typical_size(band);
    let mut parts: Vec<ColumnMeasure> =
        (0..=cuts.len()).map(|_| ColumnMeasure { rows: Vec::new(), size }).collect();
    for row in band {
        for (part, pieces) in parts.iter_mut().zip(divide(&row.pieces, cuts)) {
            if let (Some(first), Some(last)) = (pieces.first(), pieces.last()) {
                let chars = pieces.iter().map(|piece| piece.text.chars().count()).sum();
                part.rows.push((first.base, last.right - first.left, chars));
            }
        }
    }
    parts
}

/// Whether a part is running text rather than the cells of a table's column.
fn is_column(part: &ColumnMeasure, all: &[ColumnMeasure]) -> bool {
    if part.rows.len() < COLUMN_ROWS {
        return false;
    }
    let mut chars: Vec<usize> = part.rows.iter().map(|row| row.2).collect();
    chars.sort_unstable();
    let typical = chars.get(chars.len() / 2).copied().unwrap_or(0);
    let others = || all.iter().filter(|other| !std::ptr::eq(*other, part)).flat_map(|other| &other.rows);
    let beside = |base: f32| others().any(|other| (other.0 - base).abs() < 0.1 * part.size);
    let aligned = part.rows.iter().filter(|row| beside(row.0)).count();
    if aligned * 2 < part.rows.len() {
        return typical >= RAGGED_ROW_CHARS;
    }
    let widest = part.rows.iter().map(|row| row.1).fold(0.0, f32::max);
    let full = part.rows.iter().filter(|row| row.1 >= 0.6 * widest).count();
    typical >= ALIGNED_ROW_CHARS && full * 2 >= part.rows.len()
}

/// Writes rows one below the other, those of a table as one.
fn write_rows(rows: Vec<TextRow>, rtl: bool, out: &mut String) {
    let has_rtl = rtl || rows.iter().flat_map(|row| &row.pieces).any(|piece| direction::has_rtl(&piece.text));
    let tables = if has_rtl { Vec::new() } else { tables::find(&rows) };
    let typical = typical_distance(&rows);
    let mut rows = rows.into_iter();
    let mut written = 0;
    for FoundTable { rows: range, text } in tables {
        write_lines(rows.by_ref().take(range.start - written), typical, rtl, out);
        out.truncate(out.trim_end().len());
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(&text);
        rows.by_ref().take(range.len()).for_each(drop);
        written = range.end;
    }
    write_lines(rows, typical, rtl, out);
}

/// Writes rows as lines, with a blank line where the distance or the size of the letters jumps.
fn write_lines(rows: impl Iterator<Item = TextRow>, typical: f32, rtl: bool, out: &mut String) {
    let mut above: Option<(f32, f32)> = None;
    for row in rows {
        if let Some((base, size)) = above {
            let apart = base - row.base > (PARAGRAPH * typical).max(size.min(row.size));
            let resized = (row.size / size).max(size / row.size) > 1.15;
            out.push_str(if apart || resized { "\n\n" } else { "\n" });
        } else {
            begin_block(out);
        }
        above = Some((row.base, row.size));
        write_row(row.pieces, rtl, out);
    }
}

fn write_row(pieces: Vec<TextFragment>, rtl_page: bool, out: &mut String) {
    let mut line = String::new();
    let has_rtl = pieces.iter().any(|piece| direction::has_rtl(&piece.text));
    let mut before: Option<TextFragment> = None;
    let mut cells: Vec<String> = Vec::new();
    for piece in pieces {
        if let Some(before) = &before {
            // Bold is often the same text written twice, a hair apart.
            let doubled = before.text == piece.text && (piece.left - before.left).abs() < 0.1 * piece.size;
            if doubled {
                continue;
            }
            let gap = (piece.left - before.right) / before.size.max(piece.size);
            if gap >= CELL {
                cells.push(std::mem::take(&mut line));
            } else if !(OVERLAP..SPACE).contains(&gap) || before.spaced.1 || piece.spaced.0 {
                line.push(' ');
            }
        }
        line.push_str(&piece.text);
        before = Some(piece);
    }
    cells.push(line);
    if has_rtl {
        let rtl = direction::is_rtl_line(cells.iter().map(String::as_str)) || (rtl_page && cells.len() > 1);
        if rtl {
            cells.reverse();
        }
        for cell in &mut cells {
            *cell = direction::logical(cell, rtl);
        }
    }
    out.push_str(&cells.join("\t"));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: f32 = 10.0;

    /// A line of text, half a size to a character.
    fn line(text: &str, left: f32, base: f32) -> TextFragment {
        let width = f32::from(u16::try_from(text.chars().count()).unwrap()) * SIZE * 0.5;
        TextFragment::new(text, left, left + width, base, SIZE).unwrap()
    }

    fn column(name: &str, left: f32, top: f32, rows: u8) -> Vec<TextFragment> {
        (0..rows)
            .map(|row| {
                line(&format!("{name} {row} is a line of running text"), left, top - f32::from(row) * 12.0)
            })
            .collect()
    }

    fn position(text: &str, needle: &str) -> usize {
        text.find(needle).unwrap_or_else(|| panic!("{needle} is missing in {text}"))
    }

    #[test]
    fn three_columns_are_read_one_after_another() {
        let mut page = vec![line(
            "A headline over all of the three columns of this page, wide and set in one line for once",
            50.0,
            700.0,
        )];
        for (at, name) in [(0_u8, "left"), (1, "middle"), (2, "right")] {
            page.extend(column(name, 50.0 + f32::from(at) * 180.0, 660.0 - f32::from(at), 8));
        }
        let text = read(page);
        let places = ["headline", "left 0", "left 7", "middle 0", "middle 7", "right 0", "right 7"]
            .map(|line| position(&text, line));
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn lines_come_from_top_to_bottom_whatever_order_they_were_drawn_in() {
        let mut page = column("line", 50.0, 700.0, 6);
        page.reverse();
        let text = read(page);
        assert!((0..6).map(|row| position(&text, &format!("line {row}"))).is_sorted(), "{text}");
        assert!(!text.contains("\n\n"), "{text}");
    }

    #[test]
    fn a_table_is_read_row_by_row() {
        let rows =
            [("Name", "Colour"), ("Apple", "red"), ("Plum", "blue"), ("Pear", "green"), ("Lemon", "yellow")];
        let mut page = Vec::new();
        for (row, (name, colour)) in (0_u8..).zip(rows) {
            let base = 700.0 - f32::from(row) * 14.0;
            page.extend([line(name, 50.0, base), line(colour, 250.0, base)]);
        }
        assert_eq!(read(page), "Name\tColour\nApple\tred\nPlum\tblue\nPear\tgreen\nLemon\tyellow");
    }

    #[test]
    fn a_list_keeps_its_numbers_beside_its_items() {
        let mut page = Vec::new();
        for row in 0..6_u8 {
            let base = 700.0 - f32::from(row) * 12.0;
            page.extend([
                line(&format!("{row}."), 50.0, base),
                line("an item with a fairly long description", 72.0, base),
            ]);
        }
        assert!(read(page).starts_with("0. an item with a fairly long description\n1. an item"));
    }

    #[test]
    fn a_wider_gap_between_lines_is_a_paragraph() {
        let mut page = column("first", 50.0, 700.0, 3);
        page.extend(column("second", 50.0, 640.0, 3));
        assert!(read(page).contains("text\n\nsecond 0"));
    }

    #[test]
    fn a_superscript_stays_in_its_line() {
        let mut page = column("line", 50.0, 700.0, 2);
        let end = page[0].right;
        page.push(TextFragment::new("1", end, end + 3.0, 703.0, 6.0).unwrap());
        assert!(read(page).starts_with("line 0 is a line of running text1\nline 1"));
    }

    #[test]
    fn text_drawn_twice_for_boldness_is_read_once() {
        assert_eq!(read(vec![line("Heading", 50.0, 700.0), line("Heading", 50.3, 700.0)]), "Heading");
    }

    #[test]
    fn right_to_left_lines_come_out_in_the_order_they_were_written() {
        let visual: String = "שלום עולם".chars().rev().collect();
        let page = (0_u16..).zip(visual.chars()).filter(|(_, c)| *c != ' ');
        let page = page.map(|(at, c)| line(&c.to_string(), 50.0 + f32::from(at) * 5.0, 700.0)).collect();
        assert_eq!(read(page), "שלום עולם");
    }

    #[test]
    fn places_that_are_no_numbers_are_left_out() {
        assert!(TextFragment::new("x", f32::NAN, 1.0, 1.0, 1.0).is_none());
        assert_eq!(read(Vec::new()), "");
    }
}
