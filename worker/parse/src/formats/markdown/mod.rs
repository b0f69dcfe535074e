//! Markdown: whether a text is, and where its headings are; and what keeps its parser from taking long ([`blocks`],
//! [`flattened`]), for the worker's splitter, too.

mod nesting;
mod parted;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

pub use self::{nesting::flattened, parted::blocks};
use crate::protocol::{MAX_HEADINGS, MarkKind, TextMark};

/// Characters from the beginning of a text by which it is judged.
const JUDGED: usize = 64 << 10;
/// Of so many lines that say something at least one must be marked up.
const LINES_PER_SIGN: usize = 20;

/// Whether a text that nobody calls Markdown is: it has headings, and enough else that is written so.
///
/// A shell script's comments, or a list in a letter, do not make a text Markdown: nothing is lost when a text is taken
/// for plain, but a heading that is none misleads.
pub(super) fn looks_like(text: &str) -> bool {
    let end = text.char_indices().nth(JUDGED).map_or(text.len(), |(end, _)| end);
    let head = text.get(..end).unwrap_or_default();
    let (mut lines, mut headings, mut others, mut in_fence, mut blank_before) = (0, 0, 0, false, true);
    for line in head.lines() {
        let line = line.trim_end();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_fence = !in_fence;
            others += usize::from(in_fence);
        } else if !in_fence && !line.is_empty() {
            lines += 1;
            headings += usize::from(blank_before && is_heading(line));
            others += usize::from(is_marked_up(line));
        }
        blank_before = line.is_empty();
    }
    let enough = (headings + others) * LINES_PER_SIGN >= lines;
    enough && headings > 0 && (headings > 1 || others > 0)
}

fn is_heading(line: &str) -> bool {
    let depth = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(depth..).unwrap_or_default();
    (1..=6).contains(&depth) && title.starts_with(' ') && title.chars().any(char::is_alphanumeric)
}

fn is_marked_up(line: &str) -> bool {
    let start = line.trim_start();
    let bullet = ["- ", "* ", "+ ", "> ", "| "].iter().any(|sign| start.starts_with(sign));
    let emphasis = line.matches("**").count() >= 2 || line.matches('`').count() >= 2;
    bullet || emphasis || line.contains("](")
}

/// The headings of a Markdown text, where they begin, in order. What is nested beyond all measure is not looked into, and a text with
/// more of them than [`MAX_HEADINGS`] has none: they tell nobody where something stands.
pub(super) fn headings(text: &str) -> Vec<TextMark> {
    let mut headings = Vec::new();
    let mut before = 0;
    for block in blocks(text, true) {
        let block = text.get(block).unwrap_or_default();
        let within = headings_of_block(&flattened(block)).into_iter();
        headings.extend(within.map(|mark| TextMark { at: before + mark.at, ..mark }));
        before += block.chars().count() as u64;
        if headings.len() > MAX_HEADINGS {
            return Vec::new();
        }
    }
    headings
}

fn headings_of_block(text: &str) -> Vec<TextMark> {
    let mut headings = Vec::new();
    let (mut bytes, mut characters) = (0, 0_u64);
    let mut open: Option<(u64, String)> = None;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                characters +=
                    text.get(bytes..range.start).map_or(0, |skipped| skipped.chars().count() as u64);
                bytes = range.start;
                open = Some((characters, String::new()));
            }
            Event::End(TagEnd::Heading(level)) => {
                if let Some((at, title)) = open.take() {
                    let level = match level {
                        HeadingLevel::H1 => 1,
                        HeadingLevel::H2 => 2,
                        HeadingLevel::H3 => 3,
                        HeadingLevel::H4 => 4,
                        HeadingLevel::H5 => 5,
                        HeadingLevel::H6 => 6,
                    };
                    headings.push(TextMark { at, what: MarkKind::Heading { level, title } });
                }
            }
            Event::Text(said) | Event::Code(said) => {
                if let Some((_, title)) = &mut open {
                    title.push_str(&said);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, title)) = &mut open {
                    title.push(' ');
                }
            }
            _ => {}
        }
    }
    headings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_found_where_they_stand() {
        let text = "grün\n\n# The *first* `one`\n\ntext\n\n```\n# no heading\n```\n\nSecond\n------\n";
        let found: Vec<_> = headings(text)
            .into_iter()
            .map(|TextMark { at, what }| match what {
                MarkKind::Heading { level, title } => (at, level, title),
                other => panic!("{other:?}"),
            })
            .collect();
        let second =
            text.chars().collect::<Vec<_>>().windows(6).position(|w| w == ['S', 'e', 'c', 'o', 'n', 'd']);
        assert_eq!(
            found,
            [(6, 1, "The first one".to_owned()), (second.unwrap() as u64, 2, "Second".to_owned())]
        );
    }

    #[test]
    fn a_text_that_is_all_headings_has_none() {
        assert_eq!(headings(&"# a\n".repeat(MAX_HEADINGS)).len(), MAX_HEADINGS);
        assert!(headings(&"# a\n".repeat(MAX_HEADINGS + 1)).is_empty());
    }

    #[test]
    fn markdown_is_told_from_letters_and_scripts() {
        for (text, expected) in [
            ("# Title\n\nText with **weight**.\n\n## Part\n\n- one\n- two\n", true),
            ("# Title\n\nSome words.\n\n## Part\n\nMore words.\n", true),
            ("#!/bin/sh\nset -e\n# copy it\ncp a b\n", false),
            ("Dear all,\n\n- one\n- two\n\nYours\n", false),
            ("Just a text. With sentences.\n", false),
            ("Ticket # 12 is open.\n# 13 is not.\n", false),
            ("", false),
        ] {
            assert_eq!(looks_like(text), expected, "{text:?}");
        }
    }
}
