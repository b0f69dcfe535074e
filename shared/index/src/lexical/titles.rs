//! Titles in plain text, where nothing but their place and their form tells them from other lines.

use super::counted::CountedSentence;

/// The longest title in characters.
const MAX_TITLE_CHARS: usize = 80;

/// What ends a sentence, or a part of one.
const ENDS: [char; 14] = ['.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '；', '؟', '۔', '।'];

/// Whether a sentence is a part of a title: of a short line below an empty one, above a text that is written in sentences, a list, or fields
/// with their names. A line that may say something by itself, such as "Weight: 19 kg" or "Deposit 20 euros", is none.
pub(super) fn is_title(text: &str, sentences: &[CountedSentence], at: usize) -> bool {
    let place = &sentences[at].line;
    let line = text[place.clone()].trim();
    // A long line has many sentences, and is looked at for each.
    if line.len() > MAX_TITLE_CHARS * char::MAX_LEN_UTF8 {
        return false;
    }
    let begins = text[..place.start].lines().next_back().is_none_or(|line| line.trim().is_empty());
    let introduces = |below: &CountedSentence| {
        below.paragraph != sentences[at].paragraph
            && (ends_as_sentence(&text[below.range.clone()]) || below.is_point(text))
    };
    begins
        && looks_like_title(line)
        && sentences[at..].iter().find(|other| other.line != *place).is_some_and(introduces)
}

/// Whether a sentence is all of a line that stands alone between empty ones, and may be a title by its words.
pub(super) fn is_lone_title(text: &str, sentence: &CountedSentence) -> bool {
    let line = &sentence.line;
    let is_empty = |line: Option<&str>| line.is_none_or(|line| line.trim().is_empty());
    let (own, said) = (text[line.clone()].trim(), &text[sentence.range.clone()]);
    own == said
        && is_empty(text[..line.start].lines().next_back())
        && is_empty(text[line.end..].lines().nth(1))
        && looks_like_title(own)
}

fn ends_as_sentence(text: &str) -> bool {
    text.trim_end_matches(['"', '”', '“', '»', '«', ')', '」']).ends_with(ENDS)
}

/// Whether a line may be a title by its words alone.
pub(super) fn looks_like_title(line: &str) -> bool {
    let begins = |c: char| c == '§' || (c.is_alphanumeric() && !c.is_lowercase());
    let words: Vec<&str> = line.trim_start_matches('§').split_whitespace().collect();
    let ends = |(at, word): (usize, &&str)| word.ends_with(ENDS) && !(at == 0 && is_number(word));
    line.starts_with(begins)
        && line.chars().count() <= MAX_TITLE_CHARS
        && !line.contains(['|', '=', '%', '€', '$', '£', '¥', '。', '！', '？', '：'])
        && !line.ends_with([',', '，', '、'])
        && !words.iter().enumerate().any(ends)
        && !has_amount(line, &words)
}

/// Whether there is a number of something: "20 euros", "20元". The number of a title stands at its beginning or its end.
fn has_amount(line: &str, words: &[&str]) -> bool {
    let is_amount = |(at, pair): (usize, &[&str])| match pair {
        [number, next] => {
            is_number(number)
                && next.contains(char::is_alphanumeric)
                && (at > 0 || next.starts_with(char::is_lowercase))
        }
        _ => false,
    };
    let is_counted =
        |(digit, next): (char, char)| digit.is_numeric() && !next.is_ascii() && next.is_alphabetic();
    words.windows(2).enumerate().any(is_amount) || line.chars().zip(line.chars().skip(1)).any(is_counted)
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_numeric() || matches!(c, '.' | ','))
}
