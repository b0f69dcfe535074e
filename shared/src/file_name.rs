//! Names of files, which come from strangers and go to strangers.

use unicode_normalization::UnicodeNormalization;

/// The most characters that the name of a document has.
pub const LONGEST: usize = 1_000;
/// The name of a document that is made of a file without a usable name.
pub const NAMELESS: &str = "upload";

/// How a file is called: without folders, and without characters that cannot be seen or that turn the others around. None when
/// nothing is left.
pub fn cleaned(file_name: &str) -> Option<String> {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !is_treacherous(*c)).nfc().collect();
    match shortened(name.trim()).trim() {
        "" | "." | ".." => None,
        name => Some(name.to_owned()),
    }
}

/// A name of several parts, such as a path or the title of a page: in one line, and without such characters. None when nothing is left.
pub fn in_one_line(name: &str) -> Option<String> {
    let blank = |c: char| if c.is_whitespace() { ' ' } else { c };
    let name: String = name.chars().map(blank).filter(|c| !is_treacherous(*c)).nfc().collect();
    let words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
    Some(shortened(&words.join(" "))).filter(|name| !name.is_empty())
}

/// The ways to write the same name: as it is, and with its accents in one piece with their letters or apart, where that is another one.
pub fn spellings(name: &str) -> Vec<String> {
    let mut spellings = vec![name.to_owned()];
    let others: [String; 2] = [name.nfc().collect(), name.nfd().collect()];
    for other in others {
        if !spellings.contains(&other) {
            spellings.push(other);
        }
    }
    spellings
}

/// At most as many characters as a name may have. What is cut is not its end, which tells what the file is.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= LONGEST {
        return name.to_owned();
    }
    let end = extension(name).map_or(0, |extension| extension.len() + 1);
    name.chars().take(LONGEST - end).chain(name.chars().skip(length - end)).collect()
}

/// Control characters, and those that change the direction of text or break its line.
pub fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The end of a name that tells what the file is, in lower case.
pub fn extension(name: &str) -> Option<String> {
    let (stem, extension) = name.trim_end().rsplit_once('.')?;
    let plain =
        (1..=8).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (plain && !stem.is_empty()).then(|| extension.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_spelled_in_one_way_or_in_several() {
        for (name, all) in [
            ("é", &["é", "e\u{301}"][..]),
            ("e\u{301}", &["e\u{301}", "é"]),
            ("\u{fa19}", &["\u{fa19}", "神"]),
            ("plain 日本", &["plain 日本"]),
        ] {
            assert_eq!(spellings(name), all);
        }
    }

    #[test]
    fn a_file_is_called_as_it_was_without_folders_and_tricks() {
        let long = format!("{}.txt", "n".repeat(LONGEST + 50));
        let cut = format!("{}.txt", "n".repeat(LONGEST - 4));
        let endless = "n".repeat(LONGEST + 50);
        for (file_name, name) in [
            ("report.pdf", Some("report.pdf")),
            ("../../etc/passwd", Some("passwd")),
            (r"C:\Users\ada\notes.txt", Some("notes.txt")),
            ("evil\u{202e}fdp.exe", Some("evilfdp.exe")),
            ("a\0b\r\nc\u{7f}.txt", Some("abc.txt")),
            ("  spaced name .txt  ", Some("spaced name .txt")),
            ("u\u{308}ber.txt", Some("über.txt")),
            ("", None),
            ("..", None),
            ("folder/", None),
            ("\u{202e}\u{2066}", None),
            (&long, Some(cut.as_str())),
            (&endless, Some(&endless[..LONGEST])),
        ] {
            assert_eq!(cleaned(file_name).as_deref(), name, "{file_name:?}");
        }
    }
}
