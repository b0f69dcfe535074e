//! Percent-encoding of single parts of an address.

use std::fmt::Write as _;

/// `text` as one part of an address: everything but letters, digits, `-`, `.`, `_` and `~` is encoded, so that it can
/// neither end its part nor begin another.
pub(super) fn component(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// Undoes percent-encoding. What is no such code stays, and what is then no UTF-8 is replaced.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = code.and_then(|code| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(code[0])? * 16 + digit(code[1])?).ok()
        });
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_address_stays_one_part_and_is_read_back() {
        assert_eq!(component("a/b?c#d&e=f%g h\\é"), "a%2Fb%3Fc%23d%26e%3Df%25g%20h%5C%C3%A9");
        for text in ["", "plain-._~", "a/b?c#d&e=f%g h\\é", "%2e%2e", "100%", "%zz", "%é"] {
            assert_eq!(decode(&component(text)), text);
        }
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%4"), "%zz%4");
    }
}
