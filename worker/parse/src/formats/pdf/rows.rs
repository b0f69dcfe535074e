//! Rows: the pieces of a page that stand on a line with one another, and how far such rows are from one another.

use std::cmp::Ordering;

use super::fragment::TextFragment;

/// The least width of a gutter, in font sizes.
pub(super) const GUTTER: f32 = 0.6;
/// A gap of this many font sizes is a space.
pub(super) const SPACE: f32 = 0.16;
/// A gap of this many font sizes separates the cells of a table.
pub(super) const CELL: f32 = 2.0;
/// Rows further apart than this many font sizes, and than [`FAR_TYPICAL`] typical distances, are not of one band.
const FAR: f32 = 2.5;
/// See [`FAR`].
pub(super) const FAR_TYPICAL: f32 = 2.2;

/// Pieces that stand on a line with one another.
pub(super) struct TextRow {
    pub(super) base: f32,
    pub(super) size: f32,
    /// From left to right.
    pub(super) pieces: Vec<TextFragment>,
}

/// Rows from the top of the page to its bottom, each from left to right.
pub(super) fn rows(mut fragments: Vec<TextFragment>) -> Vec<TextRow> {
    fragments.sort_by(|a, b| order(b.base, a.base));
    let mut rows: Vec<TextRow> = Vec::new();
    for fragment in fragments {
        match rows.last_mut() {
            // Half a size apart is a superscript, a subscript or a crooked scan, not a line of its own.
            Some(row) if row.base - fragment.base < 0.5 * row.size.max(fragment.size) => {
                // The row stands where its largest piece does.
                if fragment.size > row.size {
                    (row.base, row.size) = (fragment.base, fragment.size);
                }
                row.pieces.push(fragment);
            }
            _ => rows.push(TextRow { base: fragment.base, size: fragment.size, pieces: vec![fragment] }),
        }
    }
    for row in &mut rows {
        row.pieces.sort_by(|a, b| order(a.left, b.left));
    }
    rows
}

fn order(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Whether there is more between two rows than between two lines of text.
pub(super) fn is_far(upper: &TextRow, lower: Option<&TextRow>) -> bool {
    lower.is_some_and(|lower| upper.base - lower.base > FAR * upper.size.max(lower.size))
}

/// The distance between most rows and the next; infinite when there is but one.
pub(super) fn typical_distance(rows: &[TextRow]) -> f32 {
    let mut distances: Vec<f32> = rows.windows(2).filter_map(distance).collect();
    distances.sort_by(|a, b| order(*a, *b));
    distances.get(distances.len() / 2).copied().unwrap_or(f32::INFINITY)
}

fn distance(rows: &[TextRow]) -> Option<f32> {
    match rows {
        [upper, lower] => Some(upper.base - lower.base),
        _ => None,
    }
}

/// The font size of most of the text.
pub(super) fn typical_size(rows: &[TextRow]) -> f32 {
    let mut sizes: Vec<(f32, usize)> =
        rows.iter().flat_map(|row| &row.pieces).map(|piece| (piece.size, piece.text.len())).collect();
    sizes.sort_by(|a, b| order(a.0, b.0));
    let half = sizes.iter().map(|(_, length)| length).sum::<usize>() / 2;
    let mut seen = 0;
    let middle = sizes.iter().find(|(_, length)| {
        seen += length;
        seen > half
    });
    middle.map_or(10.0, |(size, _)| *size)
}
