//! The scripts whose words are found by pairs of characters.

/// The scripts that are cut into bigrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GramScript {
    Han,
    Hiragana,
    Katakana,
    Hangul,
    SouthEastAsian,
}

impl GramScript {
    pub(super) const fn of(c: char) -> Option<Self> {
        if c < '\u{e00}' {
            return None;
        }
        Some(match c {
            '々' | '〇' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => {
                Self::Han
            }
            '\u{20000}'..='\u{3fffd}' => Self::Han,
            '\u{3041}'..='\u{309f}' => Self::Hiragana,
            '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => Self::Katakana,
            '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' => Self::Hangul,
            '\u{e01}'..='\u{e3a}'
            | '\u{e40}'..='\u{e4e}'
            | '\u{e81}'..='\u{ecf}'
            | '\u{1000}'..='\u{103f}'
            | '\u{1780}'..='\u{17d3}' => Self::SouthEastAsian,
            _ => return None,
        })
    }
}
