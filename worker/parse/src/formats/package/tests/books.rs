//! EPUB.

use super::*;

fn book(encryption: &str) -> Vec<u8> {
    let opf = r#"<package><metadata><dc:title>A book</dc:title></metadata><manifest><item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/><item id="a" href="text/a%20b.xhtml" media-type="application/xhtml+xml"/><item id="b" href="text/c.xhtml" media-type="application/xhtml+xml"/><item id="m" href="no.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/><itemref idref="m"/></spine></package>"#;
    zip([
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", r#"<c><rootfile full-path="OEBPS/book.opf"/></c>"#),
        ("META-INF/encryption.xml", encryption),
        ("OEBPS/book.opf", opf),
        ("OEBPS/nav.xhtml", "<html><body><p>Contents</p></body></html>"),
        ("OEBPS/text/a b.xhtml", "<html><body><h1>Second</h1><p>It ends.</p></body></html>"),
        ("OEBPS/text/c.xhtml", "<html><body><h1>First</h1><p>It begins.</p></body></html>"),
    ])
}

fn encrypted(algorithm: &str, file: &str) -> String {
    format!(
        r#"<encryption><EncryptedData><EncryptionMethod Algorithm="{algorithm}"/><CipherData><CipherReference URI="{file}"/></CipherData></EncryptedData></encryption>"#
    )
}

#[test]
fn a_book_is_read_in_its_order_and_says_which_chapters_are_missing() {
    let read = read(book("<encryption/>")).unwrap();
    assert_eq!(read.about.title.as_deref(), Some("A book"));
    let places = ["First", "It begins.", "Second", "It ends."].map(|words| read.text.find(words).unwrap());
    assert!(places.is_sorted() && !read.text.contains("Contents"), "{}", read.text);
    assert_eq!(
        read.warnings.iter().map(|w| (w.code.as_str(), w.count)).collect::<Vec<_>>(),
        [("missing_chapter", 1)]
    );
}

#[test]
fn a_book_that_only_its_seller_can_open_is_told_from_one_with_protected_fonts() {
    let locked = encrypted("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OEBPS/text/c.xhtml");
    assert_eq!(read(book(&locked)).unwrap_err(), ParseError::PasswordRequired);
    let font = encrypted("http://www.idpf.org/2008/embedding", "OEBPS/text/c.xhtml");
    assert!(read(book(&font)).is_ok());
}
