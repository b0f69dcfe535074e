//! Sizes in tokens when no model is there to count them.

/// Counts the tokens of a text roughly as the word-piece vocabularies of sentence encoders do, without having one: a
/// short Latin word is one token, a longer one a token for every six letters, other alphabets a token for every three,
/// Chinese, Japanese and Korean one a character, digits one for every three, everything else that is not blank one each.
///
/// Deterministic, linear, and the same on every machine; used when no model is loaded.
pub fn approximate_tokens(text: &str) -> usize {
    #[derive(Clone, Copy, PartialEq)]
    enum CharacterRun {
        None,
        Latin,
        Alphabet,
        Digits,
    }
    let cost = |run: CharacterRun, length: usize| match run {
        CharacterRun::None => 0,
        CharacterRun::Latin => length.div_ceil(6),
        CharacterRun::Alphabet | CharacterRun::Digits => length.div_ceil(3),
    };
    let (mut tokens, mut run, mut length) = (0, CharacterRun::None, 0_usize);
    for c in text.chars() {
        let kind = match c {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => CharacterRun::Latin,
            '0'..='9' => CharacterRun::Digits,
            // Scripts written without blanks, in which a vocabulary has single characters.
            '\u{2e80}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => {
                tokens += 1;
                CharacterRun::None
            }
            c if c.is_alphanumeric() => CharacterRun::Alphabet,
            c if c.is_whitespace() => CharacterRun::None,
            _ => {
                tokens += 1;
                CharacterRun::None
            }
        };
        if kind == run {
            length += 1;
        } else {
            tokens += cost(run, length);
            (run, length) = (kind, 1);
        }
    }
    tokens + cost(run, length)
}

#[cfg(test)]
mod tests {
    use super::approximate_tokens;

    #[test]
    fn words_numbers_marks_and_ideographs_are_counted_as_vocabularies_do() {
        for (text, tokens) in [
            ("", 0),
            ("   \n ", 0),
            ("The cat sat.", 4),
            ("internationalization", 4),
            ("1234", 2),
            ("東京都", 3),
            ("Привет", 2),
            ("a-b", 3),
        ] {
            assert_eq!(approximate_tokens(text), tokens, "{text:?}");
        }
    }
}
