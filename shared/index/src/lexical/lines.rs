//! What a line of a text is by its form: an item of a list, a row of a table, a field with its name.

use std::{collections::HashMap, ops::Range};

/// The longest name of a field in characters.
const MAX_NAME_CHARS: usize = 60;

/// The most digits of an item's number. What has more is a year or an amount.
const MAX_ITEM_DIGITS: usize = 3;

/// What Chinese and Japanese number items with.
const NUMERALS: &str = "一二三四五六七八九十";

/// Whether a line is the one between the header of a table and its rows: `|---|:-:|`, or `--- | ---`.
pub(super) fn is_table_rule(line: &str) -> bool {
    line.contains('-')
        && line.contains('|')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':') || c.is_whitespace())
}

/// Whether a line is an item of a list: it begins with a mark or a number, such as `-`, `3.`, `(3)` or `三、`.
pub(super) fn is_list_item(line: &str) -> bool {
    let is_numbered = |line: &str, ends: &[&str]| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || NUMERALS.contains(c));
        (1..=MAX_ITEM_DIGITS).contains(&line[..line.len() - rest.len()].chars().count())
            && ends.iter().any(|end| rest.starts_with(end))
    };
    line.starts_with(['•', '‣', '▪', '●'])
        || ["- ", "* ", "+ ", "– ", "— "].iter().any(|mark| line.starts_with(mark))
        || is_numbered(line, &[". ", ") ", "、"])
        || line.strip_prefix(['(', '（']).is_some_and(|line| is_numbered(line, &[") ", "）"]))
}

/// What a field is called that has a line to itself: "Weight" of "Weight: 19 kg".
pub(super) fn field_name(line: &str) -> Option<&str> {
    let line = line.trim();
    let ends_name = |(at, sign): &(usize, char)| match sign {
        ':' => line[*at..].chars().nth(1).is_some_and(char::is_whitespace),
        '：' => true,
        _ => false,
    };
    let (at, colon) = line.char_indices().take(MAX_NAME_CHARS + 1).find(ends_name)?;
    let (name, value) = (&line[..at], &line[at + colon.len_utf8()..]);
    let is_name = name.contains(char::is_alphabetic)
        && !name.starts_with('#')
        && !name.contains(['|', '?', '!', ';', '？', '！', '；', '。'])
        && !is_list_item(line);
    (is_name && !value.trim().is_empty()).then_some(name)
}

/// The rows of tables that are written field by field, as bytes: blocks of lines such as "Price: 10", with an empty line between two of
/// them, that begin with the same name as another one. A question with its answer is none.
pub(super) fn records(text: &str) -> Vec<Range<usize>> {
    let named: Vec<(&str, Range<usize>)> = blocks(text)
        .into_iter()
        .filter_map(|block| Some((record_name(&text[block.clone()])?, block)))
        .collect();
    let mut counts = HashMap::<&str, usize>::new();
    for (name, _) in &named {
        *counts.entry(*name).or_default() += 1;
    }
    let is_repeated = |name: &str| counts.get(name).is_some_and(|count| *count > 1);
    named.into_iter().filter(|(name, _)| is_repeated(name)).map(|(_, block)| block).collect()
}

/// The name of the first field of a block that has several.
fn record_name(block: &str) -> Option<&str> {
    let first = field_name(block.lines().next()?)?;
    let has_several = block.lines().filter(|line| field_name(line).is_some()).nth(1).is_some();
    let asks = block.lines().any(|line| line.trim_end().ends_with(['?', '？', '؟']));
    (has_several && !asks).then_some(first)
}

/// The lines between empty ones, as bytes.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let (mut at, mut is_open) = (0, false);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        if line.trim().is_empty() {
            is_open = false;
            continue;
        }
        match all.last_mut().filter(|_| is_open) {
            Some(block) => block.end = range.end,
            None => all.push(range),
        }
        is_open = true;
    }
    all
}
