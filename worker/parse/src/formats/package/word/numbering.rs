//! The numbers that a text document's lists and headings get, which are not in its text: "what does clause 4.2 say" must find them.

use std::collections::BTreeMap;

use super::styles::ListPlace;
use crate::{
    formats::package::xml::{ElementVisit, PartXmlReader},
    protocol::ParseError,
};

/// Levels of a list.
const LEVELS: usize = 9;
/// Largest number that is written in letters or Roman numerals; those beyond are written in digits.
const MAX_LETTERS: u32 = 780;

/// The lists by their numbers, and how far each has counted.
#[derive(Debug, Default, Clone)]
pub(super) struct ListNumbering {
    /// How lists are numbered, by id.
    schemes: BTreeMap<String, NumberingScheme>,
    /// Schemes by the list style that they define.
    by_style: BTreeMap<String, String>,
    lists: BTreeMap<String, NumberedList>,
    /// How far each scheme has counted on each level: lists of the same scheme go on with each other.
    counted: BTreeMap<String, [Option<u32>; LEVELS]>,
}

#[derive(Debug, Default, Clone)]
struct NumberingScheme {
    levels: BTreeMap<usize, ListLevel>,
    /// The list style that says how, if not the scheme itself.
    style: Option<String>,
}

#[derive(Debug, Default, Clone)]
struct ListLevel {
    format: String,
    start: Option<u32>,
    text: String,
    /// The paragraph style that puts paragraphs on this level.
    style: Option<String>,
    only_digits: bool,
}

#[derive(Debug, Default, Clone)]
struct NumberedList {
    scheme: String,
    /// Levels that begin anew with the list's first paragraph, and with which number.
    restarts: BTreeMap<usize, u32>,
}

impl ListNumbering {
    /// Reads the part with the lists.
    pub(super) fn read(part: &str) -> Result<Self, ParseError> {
        let mut numbering = Self::default();
        let (mut scheme, mut list, mut level) = (None, None, 0);
        PartXmlReader::new(part).visit(|element| {
            let value = || element.attribute("val");
            let level_of =
                || element.attribute("ilvl").and_then(|level| level.parse().ok()).unwrap_or(LEVELS);
            match element.name() {
                "abstractNum" => {
                    scheme = element.attribute("abstractNumId");
                    list = None;
                }
                "num" => {
                    list = element.attribute("numId");
                    scheme = None;
                }
                "rPr" | "pPr" => return ElementVisit::Skip,
                name => {
                    if let Some(id) = &scheme {
                        let entry = numbering.schemes.entry(id.clone()).or_default();
                        match name {
                            "styleLink" => {
                                numbering.by_style.extend(value().map(|style| (style, id.clone())));
                            }
                            "numStyleLink" => entry.style = value(),
                            "lvl" => level = level_of(),
                            _ if level < LEVELS => entry.levels.entry(level).or_default().read(name, value),
                            _ => {}
                        }
                    } else if let Some(id) = &list {
                        let entry = numbering.lists.entry(id.clone()).or_default();
                        match name {
                            "abstractNumId" => entry.scheme = value().unwrap_or_default(),
                            "lvlOverride" => level = level_of(),
                            "startOverride" if level < LEVELS => {
                                entry
                                    .restarts
                                    .extend(value().and_then(|start| Some((level, start.parse().ok()?))));
                            }
                            "lvl" => return ElementVisit::Skip,
                            _ => {}
                        }
                    }
                }
            }
            ElementVisit::Into
        })?;
        Ok(numbering)
    }

    /// Counts a paragraph of these styles in its list: how deep it stands and what stands before it, `-` for a bullet. `None` when it
    /// is in no list.
    pub(super) fn count(&mut self, list: &ListPlace, styles: &[String]) -> Option<(usize, String)> {
        let number = list.number.as_ref()?;
        let listed = self.lists.get_mut(number)?;
        let mut id = &listed.scheme;
        if let Some(style) = self.schemes.get(id).and_then(|scheme| scheme.style.as_ref()) {
            id = self.by_style.get(style)?;
        }
        let levels = &self.schemes.get(id)?.levels;
        let of_style = |level: &ListLevel| level.style.as_ref().is_some_and(|style| styles.contains(style));
        let depth = list
            .level
            .or_else(|| levels.iter().find(|(_, level)| of_style(level)).map(|(depth, _)| *depth))
            .unwrap_or(0);
        let level = levels.get(&depth)?;
        let counted = self.counted.entry(id.clone()).or_default();
        // Once: the next paragraph of this list goes on.
        let restart = listed.restarts.remove(&depth);
        let start = |depth: usize| levels.get(&depth).and_then(|level| level.start).unwrap_or(1);
        for (number, count) in counted.iter_mut().enumerate() {
            *count = match (*count, number) {
                (_, number) if number > depth => None,
                (Some(count), number) if number == depth => {
                    Some(restart.unwrap_or_else(|| count.saturating_add(1)))
                }
                (None, number) if number == depth => Some(restart.unwrap_or_else(|| start(number))),
                (count, number) => Some(count.unwrap_or_else(|| start(number))),
            };
        }
        if level.format == "bullet" {
            return Some((depth, "-".to_owned()));
        }
        let mut marker = level.text.clone();
        for (number, count) in counted.iter().enumerate() {
            let own = levels.get(&number).filter(|_| !level.only_digits);
            let format = own.map_or("decimal", |level| level.format.as_str());
            marker = marker.replace(&format!("%{}", number + 1), &written(count.unwrap_or(0), format));
        }
        Some((depth, marker.trim().to_owned()))
    }
}

impl ListLevel {
    fn read(&mut self, name: &str, value: impl Fn() -> Option<String>) {
        match name {
            "start" => self.start = value().and_then(|start| start.parse().ok()),
            "numFmt" => self.format = value().unwrap_or_default(),
            "lvlText" => self.text = value().unwrap_or_default(),
            "pStyle" => self.style = value(),
            "isLgl" => self.only_digits = true,
            _ => {}
        }
    }
}

fn written(number: u32, format: &str) -> String {
    match format {
        "none" => String::new(),
        "decimalZero" => format!("{number:02}"),
        "lowerLetter" if (1..=MAX_LETTERS).contains(&number) => letters(number),
        "upperLetter" if (1..=MAX_LETTERS).contains(&number) => letters(number).to_uppercase(),
        "lowerRoman" if (1..=MAX_LETTERS).contains(&number) => roman(number),
        "upperRoman" if (1..=MAX_LETTERS).contains(&number) => roman(number).to_uppercase(),
        _ => number.to_string(),
    }
}

/// a to z, then aa, bb to zz, and so on.
fn letters(number: u32) -> String {
    let (times, letter) = ((number - 1) / 26 + 1, (number - 1) % 26);
    let letter = ('a'..='z').nth(letter as usize).unwrap_or('z');
    std::iter::repeat_n(letter, times as usize).collect()
}

fn roman(mut number: u32) -> String {
    const NUMERALS: [(u32, &str); 13] = [
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    let mut numerals = String::new();
    for (value, numeral) in NUMERALS {
        while number >= value {
            numerals.push_str(numeral);
            number -= value;
        }
    }
    numerals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_word_writes_them() {
        for (number, format, expected) in [
            (4, "decimal", "4"),
            (7, "decimalZero", "07"),
            (28, "lowerLetter", "bb"),
            (3, "upperLetter", "C"),
            (1, "none", ""),
            (494, "lowerRoman", "cdxciv"),
            (9, "upperRoman", "IX"),
            (u32::MAX, "lowerLetter", "4294967295"),
        ] {
            assert_eq!(written(number, format), expected);
        }
    }
}
