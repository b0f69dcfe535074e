//! PDFs with running text, as simple as the format allows.

use std::fmt::Write as _;

/// Characters on a line, so that it fits the page.
const LINE: usize = 92;
/// Lines on a page.
const LINES: usize = 48;

/// A PDF of these paragraphs, in Helvetica, on as many pages as it takes.
pub(crate) fn of_paragraphs(paragraphs: &[String]) -> Vec<u8> {
    let mut lines = Vec::new();
    for paragraph in paragraphs {
        wrap(paragraph, &mut lines);
        lines.push(String::new());
    }
    let pages: Vec<String> = lines.chunks(LINES).map(|lines| lines.join("\n")).collect();
    of_pages(&pages)
}

/// A PDF with one page for each text; a line of it is a line of the page. What is not in ASCII becomes a question mark.
pub(crate) fn of_pages(pages: &[String]) -> Vec<u8> {
    // 1 is the catalog, 2 the tree of pages, 3 the font; then come a page and its content in turn.
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (page, text) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * page
        ));
        let content = content(text);
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (at, object) in objects.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{:010} 00000 n ", file.len());
        let _ = write!(file, "{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let (start, size) = (file.len(), objects.len() + 1);
    let _ = write!(file, "{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    file.into_bytes()
}

fn content(text: &str) -> String {
    let mut content = "BT /F1 11 Tf 15 TL 50 790 Td\n".to_owned();
    for line in text.lines() {
        content.push('(');
        for character in line.chars() {
            if matches!(character, '(' | ')' | '\\') {
                content.push('\\');
            }
            content.push(if character.is_ascii_graphic() || character == ' ' { character } else { '?' });
        }
        content.push_str(") Tj T*\n");
    }
    content.push_str("ET");
    content
}

fn wrap(paragraph: &str, lines: &mut Vec<String>) {
    let mut line = String::new();
    for word in paragraph.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > LINE {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_where_the_table_says() {
        let file = of_pages(&["One (1).\nTwo.".to_owned(), "Three.".to_owned()]);
        let text = String::from_utf8(file).unwrap();
        let table = text.rsplit_once("startxref\n").unwrap().1.lines().next().unwrap();
        let table: usize = table.parse().unwrap();
        let entries: Vec<&str> = text[table..].lines().skip(3).take(7).collect();
        for (at, entry) in entries.iter().enumerate() {
            let offset: usize = entry[..10].parse().unwrap();
            assert!(text[offset..].starts_with(&format!("{} 0 obj\n", at + 1)), "object {}", at + 1);
        }
        assert!(text.contains("/Count 2"));
        assert!(text.contains("(One \\(1\\).) Tj"));
    }

    #[test]
    fn streams_are_as_long_as_they_say() {
        let text = String::from_utf8(of_pages(&["Some text.".to_owned()])).unwrap();
        let (head, rest) = text.split_once(" >>\nstream\n").unwrap();
        let length: usize = head.rsplit_once("/Length ").unwrap().1.parse().unwrap();
        assert!(rest[length..].starts_with("\nendstream"));
    }

    #[test]
    fn long_paragraphs_are_wrapped_and_fill_several_pages() {
        let paragraph = "word ".repeat(1_500);
        let text = String::from_utf8(of_paragraphs(&[paragraph])).unwrap();
        assert!(text.contains("/Count 2"), "7,500 characters are more than one page");
        assert!(text.lines().filter(|line| line.ends_with("Tj T*")).all(|line| line.len() < LINE + 12));
    }
}
