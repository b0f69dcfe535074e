//! Markdown: whether a text is, and where its headings are; and how it is parsed ([`options`], [`front_matter`]) without taking
//! long ([`blocks`], [`flattened`]), for the worker's splitter, too.

mod metadata;
mod nesting;
mod parted;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

pub use self::{metadata::front_matter, nesting::flattened, parted::blocks};
use crate::protocol::{MAX_HEADINGS, MarkKind, TextMark};

/// Characters from the beginning of a text by which it is judged.
const JUDGED: usize = 64 << 10;
/// Of so many lines that say something at least one must be marked up.
const LINES_PER_SIGN: usize = 20;

/// What is Markdown: all that the parser knows, but for metadata, which it takes any two lines of dashes for, with the headings
/// between them.
pub fn options() -> Options {
    let metadata =
        Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    Options::all().difference(metadata)
}

/// Whether a text that nobody calls Markdown is: it has headings, and enough else that is written so.
///
/// The comments of a shell script or of a file with settings, or a list in a letter, do not make a text Markdown: nothing is
/// lost when a text is taken for plain, but a heading that is none misleads. So only those count that stand by themselves.
pub(super) fn looks_like(text: &str) -> bool {
    let text = text.get(front_matter(text)..).unwrap_or_default();
    let end = text.char_indices().nth(JUDGED).map_or(text.len(), |(end, _)| end);
    let head = text.get(..end).unwrap_or_default();
    let (mut lines, mut headings, mut others, mut in_fence, mut blank_before) = (0, 0, 0, false, true);
    let mut may_be_heading = false;
    for line in head.lines() {
        let line = line.trim_end();
        headings += usize::from(may_be_heading && line.is_empty());
        may_be_heading = false;
        if line.starts_with("```") || line.starts_with("~~~") {
            in_fence = !in_fence;
            others += usize::from(in_fence);
        } else if !in_fence && !line.is_empty() {
            lines += 1;
            let depth = heading_depth(line).filter(|_| blank_before);
            // Comments have one sign as a rule.
            headings += usize::from(depth > Some(1));
            may_be_heading = depth == Some(1);
            others += usize::from(is_marked_up(line));
        }
        blank_before = line.is_empty();
    }
    headings += usize::from(may_be_heading);
    let enough = (headings + others) * LINES_PER_SIGN >= lines;
    enough && headings > 0 && (headings > 1 || others > 0)
}

fn heading_depth(line: &str) -> Option<usize> {
    let depth = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(depth..).unwrap_or_default();
    let is_heading =
        (1..=6).contains(&depth) && title.starts_with(' ') && title.chars().any(char::is_alphanumeric);
    is_heading.then_some(depth)
}

fn is_marked_up(line: &str) -> bool {
    let start = line.trim_start();
    let bullet = ["- ", "* ", "+ ", "> ", "| "].iter().any(|sign| start.starts_with(sign));
    let emphasis = line.matches("**").count() >= 2 || line.matches('`').count() >= 2;
    bullet || emphasis || line.contains("](")
}

/// The headings of a Markdown text, where they begin, in order. What is nested beyond all measure, and the metadata before the text,
/// are not looked into, and a text with more of them than [`MAX_HEADINGS`] has none: they tell nobody where something stands.
pub(super) fn headings(text: &str) -> Vec<TextMark> {
    let mut headings = Vec::new();
    let (metadata, text) = text.split_at(front_matter(text));
    let mut before = metadata.chars().count() as u64;
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

/// The options without those that make other characters of those in a title, or take some out of it: they change nothing about
/// what is a heading.
fn options_of_titles() -> Options {
    options().difference(
        Options::ENABLE_SMART_PUNCTUATION
            | Options::ENABLE_HEADING_ATTRIBUTES
            | Options::ENABLE_MATH
            | Options::ENABLE_SUPERSCRIPT
            | Options::ENABLE_SUBSCRIPT,
    )
}

/// A title without the name and the classes that it is given in braces: `{#name .class}`. The parser would take other braces as
/// well, such as those of `GET /users/{id}`.
fn without_attributes(title: &str) -> &str {
    let parted = title.trim_end().strip_suffix('}').and_then(|title| title.rsplit_once('{'));
    let Some((before, attributes)) = parted else { return title };
    // Some put a colon before them.
    let first = attributes.trim_start_matches([':', ' ']).split(' ').next().unwrap_or_default();
    if first.len() > 1 && first.starts_with(['#', '.']) { before.trim_end() } else { title }
}

fn headings_of_block(text: &str) -> Vec<TextMark> {
    let mut headings = Vec::new();
    let (mut bytes, mut characters) = (0, 0_u64);
    let mut open: Option<(u64, String)> = None;
    for (event, range) in Parser::new_ext(text, options_of_titles()).into_offset_iter() {
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
                    let title = without_attributes(&title).to_owned();
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

    fn titles(text: &str) -> Vec<String> {
        let title = |mark: TextMark| match mark.what {
            MarkKind::Heading { title, .. } => title,
            other => panic!("{other:?}"),
        };
        headings(text).into_iter().map(title).collect()
    }

    #[test]
    fn what_a_program_keeps_before_a_text_is_no_heading_and_all_headings_behind_it_are() {
        let text = "---\ntitle: \"Grün\"\n# told by nobody\ntags:\n- a\n---\n\n# First\n\n---\n## Between\n---\n\n## Last\n";
        assert_eq!(titles(text), ["First", "Between", "Last"]);
        let place = text.chars().take(usize::try_from(headings(text)[0].at).unwrap()).collect::<String>();
        assert!(text[place.len()..].starts_with("# First"), "{place}");
    }

    #[test]
    fn titles_are_as_their_readers_see_them() {
        for (line, title) in [
            ("# Setup {#setup .wide key=value}", "Setup"),
            ("# Setup {: #setup}", "Setup"),
            ("## Setup {.unnumbered} ##", "Setup"),
            ("Setup {#a_b_c}\n=====", "Setup"),
            ("# GET /users/{id}", "GET /users/{id}"),
            ("# The set {}", "The set {}"),
            ("# C {#}", "C {#}"),
            (
                "# From $5 to 2^10 and 2^20, \"about\" -- ~5 to ~6",
                "From $5 to 2^10 and 2^20, \"about\" -- ~5 to ~6",
            ),
            ("# Terms[^1] of ~~old~~ **use**", "Terms of old use"),
        ] {
            assert_eq!(titles(line), [title], "{line}");
        }
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
            ("# Title\n\nWords.\n\n## Part", true),
            ("# Title\nWords.\n\n## Part\nMore words.\n\n## Part\nThe last ones.\n", true),
            ("---\ntitle: A\n---\n# Title\n\nWords.\n\n## Part\n\nMore.\n", true),
            ("#!/bin/sh\nset -e\n# copy it\ncp a b\n", false),
            ("#!/bin/sh\n\n# Copies it.\ncp a b\n\n# And back.\ncp b a\n", false),
            ("# Settings of the server\n\n# The port\nport = 80\n\n# The host\nhost = a\n", false),
            ("Dear all,\n\n- one\n- two\n\nYours\n", false),
            ("Just a text. With sentences.\n", false),
            ("Ticket # 12 is open.\n# 13 is not.\n", false),
            ("", false),
        ] {
            assert_eq!(looks_like(text), expected, "{text:?}");
        }
    }
}
