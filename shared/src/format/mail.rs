//! E-mails, and web archives, which are written like them: headers, a blank line, and the rest.

/// What programs write into the headers of what has parts or is encoded.
const MIME: &[u8] = b"mime-version";

/// Whether a text begins with a header, or with the line that parts the letters of a mailbox and a header after it.
pub(super) fn begins(text: &[u8]) -> bool {
    headers(text).next().is_some_and(|line| name(line).is_some())
}

/// Whether a text is one whatever it is called: it begins with headers and nothing else, and one of them says that it is one. A mailbox is
/// none: of many letters only the first would be read.
pub(super) fn is_told(text: &[u8]) -> bool {
    if is_of_mailbox(text) {
        return false;
    }
    for (at, line) in headers(text).enumerate() {
        let goes_on = at > 0 && (line.starts_with(b" ") || line.starts_with(b"\t"));
        match name(line).filter(|_| !goes_on) {
            Some(name) if name.eq_ignore_ascii_case(MIME) => return true,
            None if !goes_on => return false,
            Some(_) | None => {}
        }
    }
    false
}

/// The lines up to the first blank one, without that of a mailbox.
fn headers(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.skip(usize::from(is_of_mailbox(text))).take_while(|line| !line.is_empty())
}

/// Whether a text begins with the line that parts the letters of a mailbox.
fn is_of_mailbox(text: &[u8]) -> bool {
    text.starts_with(b"From ") || text.starts_with(b">From ")
}

/// The name of the header that a line begins with.
fn name(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|byte| *byte == b':')?;
    let name = line.get(..end)?;
    (!name.is_empty() && name.iter().all(u8::is_ascii_graphic)).then_some(name)
}
