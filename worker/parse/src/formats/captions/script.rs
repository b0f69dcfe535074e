//! Scripts that are written without spaces.

/// Whether a character belongs to a script that is written without spaces: Chinese or Japanese, with their punctuation.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{30FF}' | '\u{31F0}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE4F}' | '\u{FF00}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}
