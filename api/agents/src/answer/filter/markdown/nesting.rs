//! How deep a line is nested, by the marks that it begins with.

/// Quotations, lists and notes that one line opens or goes on with, at most.
const DEEPEST: usize = 16;
/// Columns before the last of these marks, at most: lists go deeper by them from line to line.
const WIDEST: usize = 64;

enum ContainerMarker {
    /// None begins here.
    None,
    /// One of so many bytes.
    Is(usize),
    /// It takes other lines to tell.
    Unclear,
}

/// In how many blocks a line stands at most, if it opens one; 0 if it opens none. None if they are more than anybody writes, or not
/// to be told by this line.
pub(super) fn depth(line: &str) -> Option<usize> {
    let (mut rest, mut columns, mut marks, mut deepest) = (line, 0, 0, 0);
    loop {
        let text = rest.trim_start_matches([' ', '\t']);
        let blanks = rest.bytes().take(rest.len() - text.len());
        columns += blanks.map(|blank| if blank == b'\t' { 4 } else { 1 }).sum::<usize>();
        let length = match mark(text) {
            ContainerMarker::None => return Some(deepest),
            ContainerMarker::Is(length) => length,
            ContainerMarker::Unclear => return None,
        };
        marks += 1;
        if marks > DEEPEST || columns > WIDEST {
            return None;
        }
        deepest = columns / 2 + marks;
        columns += length;
        rest = &text[length..];
    }
}

/// The mark that a text begins with.
fn mark(text: &str) -> ContainerMarker {
    let is_alone = |length: usize| matches!(text.as_bytes().get(length), None | Some(b' ' | b'\t' | b'\n'));
    match text.as_bytes() {
        [b'>', ..] => ContainerMarker::Is(1),
        [b'-' | b'*' | b'+', ..] if is_alone(1) && !is_rule(text) => ContainerMarker::Is(1),
        [b':', rest @ ..] if !rest.starts_with(b":") => ContainerMarker::Is(1),
        [b'0'..=b'9', ..] => {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let is_number = matches!(text.as_bytes().get(digits), Some(b'.' | b')')) && is_alone(digits + 1);
            if is_number { ContainerMarker::Is(digits + 1) } else { ContainerMarker::None }
        }
        [b'[', b'^', ..] => note(text),
        _ => ContainerMarker::None,
    }
}

/// The head of a note that a text may begin with. For some its name goes over lines, and what stands in the line after it belongs to
/// it without any sign: then one could stand in the other without end.
fn note(text: &str) -> ContainerMarker {
    let Some((name, rest)) = text.split_once(']') else { return ContainerMarker::Unclear };
    if name.contains('\\') {
        return ContainerMarker::Unclear;
    }
    match rest.strip_prefix(':') {
        None => ContainerMarker::None,
        Some(said) if said.trim().is_empty() => ContainerMarker::Unclear,
        Some(said) => ContainerMarker::Is(text.len() - said.len()),
    }
}

/// Whether the rest of a line is a rule, of the sign that it begins with.
fn is_rule(text: &str) -> bool {
    let sign = text.chars().next();
    let is_sign = |character: char| Some(character) == sign;
    text.ends_with('\n')
        && text.chars().all(|character| is_sign(character) || character.is_ascii_whitespace())
        && text.chars().filter(|character| is_sign(*character)).count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_not_too_deep() {
        for (line, expected) in [
            ("", 0),
            ("\n", 0),
            ("text\n", 0),
            ("                                                                          text\n", 0),
            ("- a\n", 1),
            ("    - a\n", 3),
            ("> > a\n", 3),
            ("12. a\n", 1),
            ("1990 was\n", 0),
            ("**a** b\n", 0),
            ("* * * * * * * * * * * * * * * * * * * * * * * * *\n", 0),
            ("--------------------------------------------------\n", 0),
            ("::::::::::::::::::::::::::\n", 0),
            ("[^1]: a\n", 1),
            ("[^1] says\n", 0),
        ] {
            assert_eq!(depth(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_nobody_writes_is_too_deep() {
        let indented = format!("{}- a\n", " ".repeat(65));
        let quotes = ">".repeat(17);
        let items = "+ ".repeat(7_000);
        // Other text may come, which makes no rule of it.
        let begun = "* ".repeat(17);
        for line in [&*indented, &*quotes, &*items, &*begun, "- [^a]:\n", "[^a\n", "[^a\\]b]:\n"] {
            assert_eq!(depth(line), None, "{line}");
        }
    }
}
