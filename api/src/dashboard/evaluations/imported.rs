//! What is said of cases that were added just now. It goes in the address of the page, as numbers: the text is never the address's own.

use axum::http::Uri;
use url::form_urlencoded::Serializer;

use crate::{
    dashboard::text::counted,
    error::NAMED_ERRORS,
    extract::parameter,
    services::evaluations::{ImportOutcome, QuoteProblem, QuoteReport},
};

/// What was added, and what is to be known of it.
pub(super) struct ImportedWords {
    pub(super) words: String,
    /// The class that colours it.
    pub(super) tone: &'static str,
    pub(super) warnings: Vec<String>,
}

/// What became of a file, as an address has it. A case of a form has no line.
pub(super) fn query(made: &ImportOutcome, has_lines: bool) -> Vec<u8> {
    let ImportOutcome { added, known, foreign, quotes } = made;
    let QuoteReport { lines, more, unlooked } = quotes;
    let lines = |problem: QuoteProblem| {
        let those = lines.iter().filter(|(_, other)| *other == problem);
        let those = those.map(|(line, _)| if has_lines { line.to_string() } else { "0".to_owned() });
        those.collect::<Vec<_>>().join(",")
    };
    let (unsaid, unread) = (lines(QuoteProblem::NotSaid), lines(QuoteProblem::NotSearchable));
    let mut query = Serializer::new(String::new());
    query.append_pair("said", "imported").append_pair("added", &added.to_string());
    for (name, count) in [("known", known), ("foreign", foreign), ("more", more), ("unlooked", unlooked)] {
        if *count > 0 {
            query.append_pair(name, &count.to_string());
        }
    }
    for (name, lines) in [("unsaid", &unsaid), ("unread", &unread)] {
        if !lines.is_empty() {
            query.append_pair(name, lines);
        }
    }
    query.finish().into_bytes()
}

impl ImportedWords {
    /// What the address of a page says, if it says so.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        if parameter(uri, "said")? != "imported" {
            return None;
        }
        let count = |name: &str| -> u64 {
            parameter(uri, name).and_then(|count| count.parse().ok()).unwrap_or_default()
        };
        let added = match count("added") {
            0 => "No case was added".to_owned(),
            1 => "1 case was added".to_owned(),
            added => format!("{added} cases were added"),
        };
        let left_out = [
            (count("known"), "there already"),
            (count("foreign"), "left out, since none of the documents that answer is here"),
        ];
        let left_out = left_out.into_iter().filter(|(count, _)| *count > 0);
        let left_out = left_out.map(|(count, why)| format!("{} {why}", counted(count, "was", "were")));
        let parts: Vec<String> = std::iter::once(added).chain(left_out).collect();
        let words = format!("{}.", parts.join("; "));
        let tone = if count("added") == 0 { "neutral" } else { "" };
        Some(Self { words, tone, warnings: warnings(uri, count("more"), count("unlooked")) })
    }
}

fn warnings(uri: &Uri, more: u64, unlooked: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, what) in [
        ("unsaid", "The document does not say what is quoted"),
        (
            "unread",
            "What is quoted could not be looked for, since the document cannot be searched, or not yet",
        ),
    ] {
        let given = parameter(uri, name).unwrap_or_default();
        let lines = given.split(',').filter_map(|line| line.parse().ok()).take(NAMED_ERRORS);
        let lines: Vec<u64> = lines.collect();
        match lines.as_slice() {
            [] => {}
            [0] => warnings.push(format!("{what}.")),
            [line] => warnings.push(format!("{what}: line {line}.")),
            lines => {
                let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
                warnings.push(format!("{what}: lines {}.", lines.join(", ")));
            }
        }
    }
    if more > 0 {
        warnings.push(format!("So it is in {}.", counted(more, "further line", "further lines")));
    }
    if unlooked > 0 {
        let quotes = counted(unlooked, "quotation", "quotations");
        warnings.push(format!("There was no time to look for {quotes}."));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(made: &ImportOutcome, is_file: bool) -> (String, Vec<String>) {
        let uri = format!("/evaluations/x?{}", String::from_utf8(query(made, is_file)).unwrap());
        let said = ImportedWords::of(&uri.parse().unwrap()).unwrap();
        (said.words, said.warnings)
    }

    #[test]
    fn what_was_added_and_left_out_is_counted_and_what_is_doubtful_named() {
        let (unsaid, unread) = (QuoteProblem::NotSaid, QuoteProblem::NotSearchable);
        let quotes = QuoteReport { lines: vec![(2, unsaid), (5, unread), (9, unsaid)], more: 1, unlooked: 0 };
        let made = ImportOutcome { added: 4, known: 1, foreign: 2, quotes };
        let (words, warnings) = said(&made, true);
        assert_eq!(
            words,
            "4 cases were added; 1 was there already; 2 were left out, since none of the documents that answer is here."
        );
        assert!(warnings[0].ends_with("quoted: lines 2, 9."), "{warnings:?}");
        assert!(warnings[1].ends_with("not yet: line 5."), "{warnings:?}");
        assert_eq!(warnings[2], "So it is in 1 further line.");
        let quotes = QuoteReport { lines: vec![(1, unsaid)], more: 0, unlooked: 0 };
        let (words, warnings) = said(&ImportOutcome { added: 1, known: 0, foreign: 0, quotes }, false);
        assert_eq!(words, "1 case was added.");
        assert_eq!(warnings, ["The document does not say what is quoted."]);
        let quotes = QuoteReport::default();
        let (words, warnings) = said(&ImportOutcome { added: 0, known: 1, foreign: 0, quotes }, false);
        assert_eq!((words.as_str(), warnings.len()), ("No case was added; 1 was there already.", 0));
    }

    #[test]
    fn an_address_says_nothing_of_its_own() {
        for uri in ["/evaluations/x", "/evaluations/x?said=added&unsaid=2"] {
            assert!(ImportedWords::of(&uri.parse().unwrap()).is_none(), "{uri}");
        }
        let uri = "/evaluations/x?said=imported&added=%3Cb%3E&unsaid=call%20us,7".parse().unwrap();
        let said = ImportedWords::of(&uri).unwrap();
        assert_eq!(said.words, "No case was added.");
        assert_eq!(said.warnings, ["The document does not say what is quoted: line 7."]);
    }
}
