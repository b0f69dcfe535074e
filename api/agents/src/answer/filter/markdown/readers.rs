//! The ways in which answers are shown, and what all of them take for code.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// What a text stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockContext {
    /// No fence began where it was to begin.
    None,
    Fenced {
        is_top: bool,
    },
    Unclear,
}

/// The ways in which a text with signs of these extensions is shown: with none of them, with all but those for a document's front
/// matter, which an answer has none of, and with what is usual between. Where one extension takes away what another one sees, those
/// two do not tell what the others make of it.
pub(super) fn readers(signs: Options) -> impl Iterator<Item = Options> {
    let front_matter =
        Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let all = Options::all().difference(front_matter);
    let usual = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let newest = all.difference(Options::ENABLE_OLD_FOOTNOTES) | Options::ENABLE_FOOTNOTES;
    let readers = [
        Options::empty(),
        all,
        usual,
        newest,
        all.difference(Options::ENABLE_MATH),
        all.difference(Options::ENABLE_TABLES),
    ];
    // Of a single extension there is but with and without. Notes, of which there are two kinds, count as two.
    let count = if signs.bits().count_ones() > 1 { readers.len() } else { 2 };
    readers.into_iter().take(count)
}

/// What the text at `probe_at` stands in for all readers, if that began at `begins_at`.
pub(super) fn block_at(text: &str, signs: Options, begins_at: usize, probe_at: usize) -> BlockContext {
    let mut blocks = readers(signs).map(|options| block_for(text, options, begins_at, probe_at));
    let first = blocks.next().unwrap_or(BlockContext::Unclear);
    if blocks.all(|block| block == first) { first } else { BlockContext::Unclear }
}

/// Whether what stands at `at` is, for all readers, a code span that goes to the end of the text and that nothing after it can undo:
/// in a table only if it stands in a cell.
pub(super) fn is_span(text: &str, signs: Options, at: usize, has_cells: bool) -> bool {
    readers(signs)
        .all(|options| is_span_for(text, options, at, has_cells && options.contains(Options::ENABLE_TABLES)))
}

fn block_for(text: &str, options: Options, begins_at: usize, probe_at: usize) -> BlockContext {
    let mut depth = 0_usize;
    let mut is_in_note = false;
    let mut began = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                depth += 1;
                began = matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_))) && range.start == begins_at;
                is_in_note |= matches!(tag, Tag::FootnoteDefinition(_));
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                began = false;
                is_in_note &= tag != TagEnd::FootnoteDefinition;
            }
            Event::Text(_) if began && range.contains(&probe_at) => {
                return if is_in_note {
                    BlockContext::Unclear
                } else {
                    BlockContext::Fenced { is_top: depth == 1 }
                };
            }
            _ => {}
        }
    }
    BlockContext::None
}

fn is_span_for(text: &str, options: Options, at: usize, has_cells: bool) -> bool {
    let mut is_in_cell = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::TableCell) => is_in_cell = true,
            Event::End(TagEnd::TableCell) => is_in_cell = false,
            Event::Code(_) if range.contains(&at) => {
                // Cells and the attributes of headings end within code, and are seen only later.
                return range.end == text.len()
                    && !text[range].contains(['|', '{', '\n'])
                    && (is_in_cell || !has_cells);
            }
            _ => {}
        }
    }
    false
}
