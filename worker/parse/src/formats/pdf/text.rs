//! The clean-up of a page's text: one spelling for each character, no debris of typesetting, lines that join.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// Makes a page's raw text fit to be stored, searched and quoted.
///
/// Ligatures and presentation forms become letters (NFKC); NUL, control and other invisible characters go, `\n` and
/// `\t` excepted; line ends are `\n`, without spaces before them; runs of spaces are one; at most one blank line stays
/// between two lines; soft hyphens go, and those at a line's end become hyphens. Words divided at a line's end stay so:
/// they are joined when headers and footers no longer stand between their halves.
pub(super) fn clean(raw: &str) -> String {
    tidy_lines(&normalise(&strip(raw)))
}

fn strip(raw: &str) -> String {
    let mut stripped = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                stripped.push('\n');
            }
            '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => stripped.push('\n'),
            '\n' | '\t' => stripped.push(c),
            // At a line's end it divides a word just as a hyphen does. U+0002 is pdfium's mark for one that does.
            '\u{ad}' | '\u{2}' => {
                if matches!(chars.peek(), None | Some('\n' | '\r')) {
                    stripped.push('-');
                }
            }
            _ if c.is_control() || is_invisible(c) => {}
            _ => stripped.push(c),
        }
    }
    stripped
}

/// Characters that nobody sees and that make equal words unequal. The joiners U+200C and U+200D stay: Persian and
/// Indic spelling needs them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}'
    ) || u32::from(c) & 0xfffe == 0xfffe
}

/// NFKC, except where it would change what is said: 10⁵ is not 105, ½ after a 2 is not 21⁄2.
fn normalise(text: &str) -> String {
    if is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        return text.to_owned();
    }
    text.split_inclusive(is_meaningful_form).fold(String::with_capacity(text.len()), |mut out, piece| {
        match piece.char_indices().next_back() {
            Some((at, last)) if is_meaningful_form(last) => {
                out.extend(piece.get(..at).unwrap_or_default().nfkc());
                out.push(last);
            }
            _ => out.extend(piece.nfkc()),
        }
        out
    })
}

/// Superscripts, subscripts, vulgar fractions and the signs of trade and service marks.
fn is_meaningful_form(c: char) -> bool {
    matches!(
        c,
        '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{bc}'..='\u{be}' | '\u{2070}'..='\u{209c}' | '\u{2120}' | '\u{2122}'
            | '\u{2150}'..='\u{215f}' | '\u{2189}'
    )
}

fn tidy_lines(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut blank = false;
    for line in text.split('\n').map(str::trim_end) {
        if line.is_empty() {
            blank = true;
            continue;
        }
        if !tidy.is_empty() {
            tidy.push_str(if blank { "\n\n" } else { "\n" });
        }
        blank = false;
        let mut after_space = false;
        for c in line.chars() {
            if c != ' ' || !after_space {
                tidy.push(c);
            }
            after_space = c == ' ';
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn ligatures_become_letters() {
        assert_eq!(clean("the o\u{fb03}ce \u{fb01}les"), "the office files");
    }

    #[test]
    fn superscripts_and_fractions_keep_their_meaning() {
        assert_eq!(
            clean("10\u{2075} m\u{b2}, 2\u{bd} \u{fb01}sh\u{2122}"),
            "10\u{2075} m\u{b2}, 2\u{bd} fish\u{2122}"
        );
    }

    #[test]
    fn accents_written_apart_are_composed() {
        assert_eq!(clean("cafe\u{301}"), "café");
    }

    #[test]
    fn nul_and_control_characters_go_and_tabs_stay() {
        assert_eq!(clean("a\0b\u{7}c\u{200b}d\te\u{202e}f\u{fffe}"), "abcd\tef");
    }

    #[test]
    fn every_kind_of_line_end_is_one_newline() {
        assert_eq!(clean("a\r\nb\rc\u{c}d"), "a\nb\nc\nd");
    }

    #[test]
    fn spaces_at_line_ends_and_repeated_blank_lines_go() {
        assert_eq!(clean("\n\n a  b \u{a0}\n \n\n\nc\n\n"), " a b\n\nc");
    }

    #[test]
    fn the_marks_of_division_that_engines_leave_are_hyphens_at_line_ends_only() {
        assert_eq!(clean("syntacti\u{2}\r\ncally syn\u{2}tax"), "syntacti-\ncally syntax");
        assert_eq!(clean("cut at the page's e\u{ad}"), "cut at the page's e-");
    }

    #[test]
    fn soft_hyphens_inside_a_line_go() {
        assert_eq!(clean("trans\u{ad}late"), "translate");
    }
}
