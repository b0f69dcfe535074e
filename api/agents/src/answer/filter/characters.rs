//! How renderers read the characters of a text: entities, escaped signs, and what is not seen.

/// A longer entity is none.
const LONGEST_ENTITY: usize = 12;

/// What renderers decode that can be part of an address's beginning.
const ENTITIES: [(&str, char); 34] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("apos", '\''),
    ("colon", ':'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("period", '.'),
    ("commat", '@'),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("nbsp", '\u{A0}'),
    ("quest", '?'),
    ("num", '#'),
    ("percnt", '%'),
    ("excl", '!'),
    ("equals", '='),
    ("lpar", '('),
    ("rpar", ')'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("semi", ';'),
    ("plus", '+'),
    ("hyphen", '\u{2010}'),
    ("dash", '\u{2010}'),
    ("shy", '\u{AD}'),
    ("ZeroWidthSpace", '\u{200B}'),
];

/// What one character of a source text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodedChar {
    /// A character, written in so many bytes.
    Is(char, usize),
    /// It depends on what follows.
    Open,
    /// The text is over.
    Nothing,
}

/// Reads the first character of a text as a renderer does: an entity, an escaped sign, or itself.
pub(super) fn unit(text: &str, is_open: bool) -> DecodedChar {
    let Some(first) = text.chars().next() else {
        return if is_open { DecodedChar::Open } else { DecodedChar::Nothing };
    };
    match first {
        '&' => entity(text, is_open),
        '\\' => match text[1..].chars().next() {
            None if is_open => DecodedChar::Open,
            Some(next) if next.is_ascii_punctuation() => DecodedChar::Is(next, 2),
            _ => DecodedChar::Is('\\', 1),
        },
        _ => DecodedChar::Is(first, first.len_utf8()),
    }
}

fn entity(text: &str, is_open: bool) -> DecodedChar {
    let name = &text[1..];
    let length = name
        .bytes()
        .take(LONGEST_ENTITY + 1)
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'#')
        .count();
    if length == name.len() && length <= LONGEST_ENTITY && is_open {
        return DecodedChar::Open;
    }
    let (name, rest) = name.split_at(length);
    let closed = usize::from(rest.starts_with(';'));
    let read = match name.strip_prefix('#') {
        Some(number) => {
            let (digits, radix) = match number.strip_prefix(['x', 'X']) {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            // Without the sign at its end, it is one all the same in a tag.
            u32::from_str_radix(digits, radix).ok().and_then(char::from_u32)
        }
        None if closed == 1 => ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, read)| *read),
        None => None,
    };
    match read {
        Some(character) => DecodedChar::Is(character, 1 + length + closed),
        None => DecodedChar::Is('&', 1),
    }
}

/// A text without entities and escapes.
pub(super) fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut at = 0;
    while let DecodedChar::Is(character, length) = unit(&text[at..], false) {
        decoded.push(character);
        at += length;
    }
    decoded
}

/// Characters that are not seen, and that some programs drop.
pub(super) const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{180B}'..='\u{180E}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}
