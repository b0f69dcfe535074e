//! Tables, as Markdown tables or as `name: value` lines.

use ego_tree::{NodeRef, iter::Edge};
use scraper::{Node, node::Element};

use super::element::{attribute, is_skipped, line_of, next_edge};
use crate::formats::markdown_table;

/// Bytes of a cell's text that are kept.
const MAX_CELL: usize = 16 << 10;
/// A table whose cells have more bytes than this on average arranges a page and holds no data.
const MAX_MEAN_CELL: usize = 400;
/// Bytes of a cell that spans several rows up to which it is said again in each.
const MAX_REPEATED: usize = 200;
/// Bytes that are said again in this way in one table.
const MAX_REPEATED_IN_ALL: usize = 64 << 10;
/// Most rows that one cell can span.
const MAX_ROWS_SPANNED: usize = 200;
/// Columns up to which cells that span several are followed by empty ones, so that what is below stays below.
const MAX_COLUMNS: usize = 50;

struct HtmlCell {
    text: String,
    is_header: bool,
    columns: usize,
    rows: usize,
}

/// What a table says, if it holds data: blocks of lines, each to stand by itself.
pub(super) fn lines(table: NodeRef<'_, Node>) -> Option<Vec<String>> {
    if is_layout(table) {
        return None;
    }
    let (caption, rows) = read(table);
    let cells = rows.iter().map(Vec::len).sum::<usize>();
    let bytes = rows.iter().flatten().map(|cell| cell.text.len()).sum::<usize>();
    let is_data = rows.len() >= 2 && rows.iter().any(|row| row.len() >= 2) && bytes <= MAX_MEAN_CELL * cells;
    if !is_data {
        return None;
    }
    let mut blocks = Vec::new();
    blocks.extend(Some(caption).filter(|caption| !caption.is_empty()));
    let pairs = rows.iter().all(|row| match row.as_slice() {
        [name, value] => name.is_header && !value.is_header,
        [_] => true,
        _ => false,
    });
    blocks.extend(if pairs { named_values(&rows) } else { grid(rows) });
    Some(blocks)
}

/// Whether a table arranges a page: it says so, or holds a table, a heading or code.
fn is_layout(table: NodeRef<'_, Node>) -> bool {
    let says_so = |element: &Element| matches!(attribute(element, "role"), Some("presentation" | "none"));
    let holds = |name| matches!(name, "table" | "pre" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6");
    table.value().as_element().is_some_and(says_so)
        || table
            .descendants()
            .skip(1)
            .any(|node| node.value().as_element().is_some_and(|it| holds(it.name())))
}

/// The caption and the cells.
fn read(table: NodeRef<'_, Node>) -> (String, Vec<Vec<HtmlCell>>) {
    let mut caption = String::new();
    let mut rows: Vec<Vec<HtmlCell>> = Vec::new();
    let mut next = Some(Edge::Open(table));
    while let Some(edge) = next {
        let mut enters = true;
        if let Edge::Open(node) = edge
            && node.id() != table.id()
        {
            enters = !is_skipped(node);
            if let Node::Element(element) = node.value()
                && enters
            {
                match element.name() {
                    "caption" => caption = line_of(node, MAX_CELL),
                    "tr" => rows.push(Vec::new()),
                    name @ ("td" | "th") => {
                        if let Some(row) = rows.last_mut() {
                            row.push(HtmlCell {
                                text: line_of(node, MAX_CELL),
                                is_header: name == "th",
                                columns: span(element, "colspan").min(MAX_COLUMNS),
                                rows: span(element, "rowspan").min(MAX_ROWS_SPANNED),
                            });
                        }
                    }
                    _ => {}
                }
            }
        }
        next = next_edge(table, edge, enters);
    }
    rows.retain(|row| row.iter().any(|cell| !cell.text.is_empty()));
    (caption, rows)
}

fn span(element: &Element, name: &str) -> usize {
    attribute(element, name).and_then(|span| span.trim().parse().ok()).unwrap_or(1).max(1)
}

fn named_values(rows: &[Vec<HtmlCell>]) -> Option<String> {
    let lines: Vec<_> = rows
        .iter()
        .map(|row| match row.as_slice() {
            [name, value] if !name.text.is_empty() && !value.text.is_empty() => {
                format!("{}: {}", name.text.trim_end_matches(':'), value.text)
            }
            row => row.iter().map(|cell| cell.text.as_str()).collect(),
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A Markdown table. The first row is its header, since there is no other way to write one.
fn grid(rows: Vec<Vec<HtmlCell>>) -> Option<String> {
    let mut rows = spread(rows).into_iter();
    let header = rows.next()?;
    let rows: Vec<_> = rows.collect();
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    // Of what is missing in the header no more than columns that are kept apart.
    let columns = widest.min(header.len() + MAX_COLUMNS);
    Some(markdown_table::write(&header, rows.iter().map(Vec::as_slice), columns))
}

/// The rows with one text for every column that a cell spans, and for every row that a short one does.
fn spread(rows: Vec<Vec<HtmlCell>>) -> Vec<Vec<String>> {
    // By column: in how many further rows the text of a cell above stands.
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut budget = MAX_REPEATED_IN_ALL;
    let mut spread = Vec::with_capacity(rows.len());
    for row in rows {
        let mut texts: Vec<String> = Vec::new();
        for cell in row {
            repeat(&mut texts, &mut above, &mut budget);
            let column = texts.len();
            if column < MAX_COLUMNS && cell.rows > 1 {
                if above.len() < column + cell.columns {
                    above.resize(column + cell.columns, (0, String::new()));
                }
                let short = if cell.text.len() <= MAX_REPEATED { cell.text.clone() } else { String::new() };
                for (place, slot) in above.iter_mut().skip(column).take(cell.columns).enumerate() {
                    *slot = (cell.rows, if place == 0 { short.clone() } else { String::new() });
                }
            }
            texts.push(cell.text);
            if column < MAX_COLUMNS {
                texts.extend(std::iter::repeat_n(String::new(), cell.columns - 1));
            }
        }
        repeat(&mut texts, &mut above, &mut budget);
        for (left, _) in &mut above {
            *left = left.saturating_sub(1);
        }
        while texts.last().is_some_and(String::is_empty) {
            texts.pop();
        }
        spread.push(texts);
    }
    spread
}

/// Adds what cells above say of the next columns.
fn repeat(texts: &mut Vec<String>, above: &mut [(usize, String)], budget: &mut usize) {
    while let Some((_, text)) = above.get(texts.len()).filter(|(left, _)| *left > 0) {
        let affordable = text.len() <= *budget;
        *budget -= if affordable { text.len() } else { 0 };
        texts.push(if affordable { text.clone() } else { String::new() });
    }
}
