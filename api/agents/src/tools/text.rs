//! Text on its way from a service to a model.

use quick_xml::escape::resolve_html5_entity;

/// Most bytes of text that a tool gives back. A run cuts further, to what a model is given.
pub(super) const MOST: usize = 64 * 1024;
/// How far before the limit a line or word may end for the cut to be made there, as a part of the limit.
const REACH: usize = 8;
/// Most bytes that are looked at for each character of a line.
const LOOKED_AT: usize = 16;
/// Most bytes of HTML that are looked at: a few times what is shown of the longest.
const HTML: usize = 16 * 1024;
/// Longest tag, in bytes.
const TAG: usize = 4 * 1024;
/// Longest name of a character reference, in bytes.
const LONGEST_ENTITY: usize = 32;

/// Elements that search services mark words up with, or leave in when they cut a page: their tags are taken out.
/// Anything else in angle brackets is text, such as the type `Vec<String>`.
const ELEMENTS: [&str; 42] = [
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "cite",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "td",
    "th",
    "tr",
    "tt",
    "u",
    "ul",
];

/// `text`, or its beginning with a note when it has more than `most` bytes. It ends with a line or a word where there is
/// one near the limit, and never within a character.
pub(super) fn cut(text: String, most: usize) -> String {
    let whole = text.len();
    if whole <= most { text } else { beginning(text, most, &whole.to_string()) }
}

/// The same for a text that is itself the beginning of a longer one.
pub(super) fn cut_again(text: String, most: usize) -> String {
    let read = text.len();
    beginning(text, most, &format!("more than {read}"))
}

/// At most so many bytes of a text, with a note that says of how many they are the beginning.
fn beginning(mut text: String, most: usize, whole: &str) -> String {
    let limit = text.floor_char_boundary(most);
    let near = text.floor_char_boundary(limit - limit / REACH);
    let end = text[near..limit]
        .rfind('\n')
        .or_else(|| text[near..limit].rfind(char::is_whitespace))
        .map_or(limit, |at| near + at);
    text.truncate(end);
    format!("{text}\n[The rest was left out: this is the beginning, {end} of {whole} bytes.]")
}

/// The first `most` characters of `text`, in one line, with an ellipsis when there were more. It is not searched for
/// words without end.
pub(super) fn line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let seen = &text[..text.floor_char_boundary(LOOKED_AT * (most + 1))];
    for word in seen.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count >= most {
                line.push('…');
                return line;
            }
            line.push(c);
            count += 1;
        }
    }
    if seen.len() < text.len() && !line.is_empty() {
        line.push('…');
    }
    line
}

/// Text without the tags and character references of HTML. Of very much HTML it is the beginning.
pub(super) fn plain(html: &str) -> String {
    let html = &html[..html.floor_char_boundary(HTML)];
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = if rest.starts_with('<') { tag(rest) } else { entity(rest, &mut out) };
        if taken == 0 {
            out.push_str(&rest[..1]);
        } else if rest.starts_with('<') && !inline(rest) {
            out.push(' ');
        }
        rest = &rest[taken.max(1)..];
    }
    out.push_str(rest);
    out
}

fn element(rest: &str) -> &str {
    let name = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
    &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())]
}

/// Whether the words on both sides of this tag belong together.
fn inline(rest: &str) -> bool {
    let name = element(rest).to_ascii_lowercase();
    [
        "a", "abbr", "b", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup",
        "tt", "u",
    ]
    .contains(&name.as_str())
}

/// How many bytes the tag at the beginning has; 0 when it is none.
fn tag(rest: &str) -> usize {
    let name = element(rest).to_ascii_lowercase();
    let after = rest.as_bytes().get(1 + usize::from(rest[1..].starts_with('/')) + name.len());
    let ends = after.is_some_and(|byte| matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace());
    if !ends || !ELEMENTS.contains(&name.as_str()) {
        return 0;
    }
    rest[..rest.floor_char_boundary(TAG)].find('>').map_or(0, |end| end + 1)
}

/// Writes the character that the reference at the beginning stands for, and says how many bytes it has; 0 when it is none.
fn entity(rest: &str, out: &mut String) -> usize {
    let window = &rest.as_bytes()[1..rest.len().min(LONGEST_ENTITY + 2)];
    let Some(length) = window.iter().position(|byte| *byte == b';') else { return 0 };
    let Some(name) = rest.get(1..=length) else { return 0 };
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        match code.ok().and_then(char::from_u32).filter(|c| *c != '\0') {
            Some(c) => out.push(c),
            None => return 0,
        }
    } else {
        match resolve_html5_entity(name) {
            Some(text) => out.push_str(text),
            None => return 0,
        }
    }
    length + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_ends_with_a_line_or_a_word_and_says_so() {
        assert_eq!(cut("short".to_owned(), 5), "short");
        let lines = format!("{}\n{}", "a".repeat(95), "b".repeat(50));
        assert!(cut(lines, 100).starts_with(&format!("{}\n[The rest was left out", "a".repeat(95))));
        let words = format!("{} {}", "a".repeat(95), "b".repeat(50));
        assert!(cut(words, 100).starts_with(&format!("{}\n[The rest", "a".repeat(95))));
        let letters = "é".repeat(100);
        assert!(cut(letters, 101).starts_with(&format!("{}\n[", "é".repeat(50))));
        assert!(cut("x".repeat(200), 100).ends_with("100 of 200 bytes.]"));
        assert!(cut_again("x".repeat(200), 100).ends_with("100 of more than 200 bytes.]"));
    }

    #[test]
    fn tags_and_character_references_become_text() {
        for (html, text) in [
            ("Rust&#39;s <strong>borrow</strong> checker &amp; you", "Rust's borrow checker & you"),
            ("one<br/>two<p class=\"x\">three", "one two three"),
            ("&lt;b&gt; stays, &hellip; and &#x2014; too", "<b> stays, … and — too"),
            (
                "a < b && c > d, Vec<String>, AT&T; &nosuch; &",
                "a < b && c > d, Vec<String>, AT&T; &nosuch; &",
            ),
            ("<b", "<b"),
            ("&#0; &#xFFFFFFFF; &#x110000;", "&#0; &#xFFFFFFFF; &#x110000;"),
            ("&é;<é>", "&é;<é>"),
        ] {
            assert_eq!(plain(html), text, "{html}");
        }
    }

    #[test]
    fn html_is_looked_at_only_so_far() {
        assert_eq!(plain(&"é".repeat(HTML)).len(), HTML);
        let tag = |length: usize| format!("<b{}>bold</b>", " ".repeat(length - 3));
        assert_eq!(plain(&tag(TAG)), "bold");
        assert_eq!(plain(&tag(TAG + 1)).len(), TAG + 1 + "bold".len());
        assert_eq!(plain(&"<a ".repeat(HTML)).len(), HTML);
    }

    #[test]
    fn a_line_is_looked_for_only_so_far() {
        let far = " ".repeat(LOOKED_AT * 11);
        assert_eq!(line(&format!("{far}a"), 10), "");
        assert_eq!(line(&format!("a{far}b"), 10), "a…");
        assert_eq!(line(&format!("a{}b", &far[..LOOKED_AT * 10]), 10), "a b");
    }

    #[test]
    fn a_line_has_no_breaks_and_no_control_characters() {
        assert_eq!(line(" a\n b\u{7}c\t d ", 20), "a b c d");
        assert_eq!(line("abcdef", 3), "abc…");
        assert_eq!(line("abc", 3), "abc");
    }
}
