//! Letter case and accents.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Appends `c` in lower case. Final sigma becomes sigma, so that a Greek word is one word at every place.
pub(super) fn push_lower(c: char, out: &mut String) {
    if c.is_ascii() {
        out.push(c.to_ascii_lowercase());
    } else {
        out.extend(c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c }));
    }
}

/// Whether [`fold_accents`] may change this text.
pub(super) fn has_accents(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| is_foldable(c) || is_combining_mark(c))
}

/// Appends lower-case `text` to `out` without the accents of Latin, Greek and Cyrillic letters.
///
/// Marks of other scripts are kept: Japanese が is not か, and Indic vowel signs are marks too. The Cyrillic й
/// is kept as a letter of its own, while ё is commonly written е.
pub(super) fn fold_accents(text: &str, out: &mut String) {
    let mut after_foldable = false;
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
            after_foldable = c.is_ascii_alphabetic();
        } else if is_foldable(c) {
            fold_letter(c, out);
            after_foldable = true;
        } else if !(after_foldable && is_combining_mark(c)) {
            out.push(c);
            after_foldable = false;
        }
    }
}

/// Letters of the scripts whose accents are folded.
const fn is_foldable(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}')
}

/// Appends one letter without its accents; strokes and ligatures do not decompose and are listed.
fn fold_letter(c: char, out: &mut String) {
    match c {
        'й' => out.push(c),
        'ß' => out.push_str("ss"),
        'æ' => out.push_str("ae"),
        'œ' => out.push_str("oe"),
        'þ' => out.push_str("th"),
        'ø' => out.push('o'),
        'ł' => out.push('l'),
        'đ' | 'ð' => out.push('d'),
        'ħ' => out.push('h'),
        'ı' => out.push('i'),
        'ŧ' => out.push('t'),
        _ => decompose_canonical(c, |part| {
            if !is_combining_mark(part) {
                out.push(part);
            }
        }),
    }
}
