//! The heading that a source of an answer stands under.

use lectern_shared::model::place::SourceSpan;
use pulldown_cmark::{Event, Parser, Tag};

/// The longest line of a heading in bytes: a longer one is a paragraph that was marked up as one.
const MAX_LINE: usize = 400;

/// The last of the headings that a passage stands under; empty without any.
pub(super) fn heading_of(place: &SourceSpan) -> String {
    place.heading.as_deref().and_then(<[String]>::last).cloned().unwrap_or_default()
}

/// The heading that quoted words stand under: the last one above them in the text that they are from, or else the one that the passage
/// stands under. A passage may begin in one section and end in another.
pub(super) fn heading_above<'a>(
    quote: &str,
    place: &SourceSpan,
    mut texts: impl Iterator<Item = &'a str>,
) -> String {
    let words: Vec<&str> = quote.split_whitespace().collect();
    // What has no headings may still have lines that begin like one, such as comments.
    let above = if words.is_empty() || place.heading.is_none() {
        None
    } else {
        let words = words.join(" ");
        texts.find_map(|text| title_above(text, &words))
    };
    above.unwrap_or_else(|| heading_of(place))
}

/// The title above these words in a text; white space is one blank, as in a quotation.
fn title_above(text: &str, words: &str) -> Option<String> {
    let (mut flat, mut titles, mut is_code) = (String::with_capacity(text.len()), Vec::new(), false);
    for line in text.lines().map(str::trim) {
        is_code ^= line.starts_with("```");
        if line.starts_with('#') && !is_code {
            titles.push((flat.len(), line));
        }
        for word in line.split_whitespace() {
            flat.push_str(word);
            flat.push(' ');
        }
    }
    let at = flat.find(words)?;
    let mut above = titles.into_iter().rev().filter(|(from, _)| *from <= at);
    above.find_map(|(_, line)| title(line))
}

/// What a line says as a heading, without its markup.
fn title(line: &str) -> Option<String> {
    if line.len() > MAX_LINE {
        return None;
    }
    let (mut title, mut is_heading) = (String::new(), false);
    for event in Parser::new(line) {
        match event {
            Event::Start(Tag::Heading { .. }) => is_heading = true,
            Event::Text(words) | Event::Code(words) => title.push_str(&words),
            _ => {}
        }
    }
    (is_heading && !title.trim().is_empty()).then(|| title.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_stand_under_the_heading_above_them_and_not_under_that_of_their_passage() {
        let place = |heading: Option<Vec<String>>| SourceSpan { heading, ..SourceSpan::default() };
        let under = place(Some(vec!["Handbook".to_owned(), "Equipment".to_owned()]));
        let text = "Laptops are replaced.\n\n# Expenses\n\nMeals are paid.\n\n```\n# a comment\nlet x = 1;\n```\n\nAsk first.\n\n\
                    ## Notice *period* ##\n\nThe notice period\nis six weeks.\n";
        let told =
            |quote: &str, place: &SourceSpan| heading_above(quote, place, ["Elsewhere.", text].into_iter());
        assert_eq!(told("The notice period is six weeks.", &under), "Notice period");
        assert_eq!(told("Meals are paid.", &under), "Expenses");
        assert_eq!(told("Ask first.", &under), "Expenses");
        assert_eq!(told("Laptops are replaced.", &under), "Equipment");
        assert_eq!(told("What it does not say.", &under), "Equipment");
        assert_eq!(told("", &under), "Equipment");
        assert_eq!(told("Meals are paid.", &place(None)), "", "it is of a kind without headings");
    }
}
