//! Times of day as captions write them, in milliseconds.

/// Reads `h:mm:ss.mmm`, `mm:ss,mmm` or `ss.mmm`, with any number of digits. A time before the beginning is the beginning.
pub(super) fn clock(text: &str) -> Option<u32> {
    let text = text.trim();
    let (negative, text) = text.strip_prefix(['-', '\u{2212}']).map_or((false, text), |text| (true, text));
    let (whole, fraction) = match text.split_once(['.', ',', ';']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let parts: Vec<&str> = whole.splitn(5, ':').collect();
    let (hours, minutes, seconds, fraction) = match (parts.as_slice(), fraction) {
        ([seconds], Some(fraction)) => ("0", "0", *seconds, fraction),
        ([minutes, seconds], fraction) => ("0", *minutes, *seconds, fraction.unwrap_or("0")),
        ([hours, minutes, seconds], fraction) => (*hours, *minutes, *seconds, fraction.unwrap_or("0")),
        // A colon in place of the decimal sign; with fewer digits they would be frames of an unknown length.
        ([hours, minutes, seconds, fraction], None) if fraction.len() == 3 => {
            (*hours, *minutes, *seconds, *fraction)
        }
        _ => return None,
    };
    let whole = number(hours)?.checked_mul(60)?.checked_add(number(minutes)?)?;
    let whole = whole.checked_mul(60)?.checked_add(number(seconds)?)?;
    let time = whole.checked_mul(1_000)?.checked_add(milliseconds(fraction)?)?;
    Some(if negative { 0 } else { time })
}

/// The digits after a decimal sign, in thousandths.
fn milliseconds(fraction: &str) -> Option<u32> {
    let fraction = fraction.trim();
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut digits = fraction.bytes().map(|byte| u32::from(byte - b'0')).chain(std::iter::repeat(0));
    Some((0..3).fold(0, |sum, _| sum * 10 + digits.next().unwrap_or(0)))
}

fn number(digits: &str) -> Option<u32> {
    let digits = digits.trim();
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_however_they_are_written() {
        for (text, expected) in [
            ("00:00:01.000", Some(1_000)),
            ("00:00:01,250", Some(1_250)),
            ("01:02.5", Some(62_500)),
            ("1:2:3", Some(3_723_000)),
            ("123:00:00.001", Some(442_800_001)),
            ("00:00:01:250", Some(1_250)),
            ("00:00:01.123456", Some(1_123)),
            ("00:00:01.", Some(1_000)),
            ("12.5", Some(12_500)),
            ("00: 00: 01, 250", Some(1_250)),
            ("-00:00:01.000", Some(0)),
            ("90:61", Some(5_461_000)),
            ("12", None),
            ("", None),
            (":", None),
            ("00:0", Some(0)),
            ("00:00:01:12", None),
            ("1:2:3:4:5", None),
            ("aa:bb", None),
            ("00:00:1a", None),
            ("00:00:01.x", None),
            ("99999999999:00", None),
            ("4294967295:00:00", None),
        ] {
            assert_eq!(clock(text), expected, "{text:?}");
        }
    }
}
