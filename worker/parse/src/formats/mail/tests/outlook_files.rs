//! What comes of e-mails that Outlook saved.

use std::io::{Cursor, Write};

use cfb::CompoundFile;

use super::{super::outlook, *};

/// A file of these streams, in these folders, and of short properties: the number and the type of each, and its value.
fn file(folders: &[&str], streams: &[(&str, &[u8])], short: &[(u32, u64)]) -> Vec<u8> {
    let mut file = CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    for folder in folders {
        file.create_storage(folder).unwrap();
    }
    for (path, content) in streams {
        file.create_stream(path).unwrap().write_all(content).unwrap();
    }
    let mut properties = vec![0; 32];
    for (tag, value) in short {
        properties.extend(tag.to_le_bytes());
        properties.extend([6, 0, 0, 0]);
        properties.extend(value.to_le_bytes());
    }
    file.create_stream("/__properties_version1.0").unwrap().write_all(&properties).unwrap();
    file.into_inner().into_inner()
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn read(bytes: &[u8]) -> Result<ReadMail, ParseError> {
    let file = CompoundFile::open(Cursor::new(bytes)).unwrap();
    let options = ParseOptions::default();
    collected(options.max_chars, |output| outlook::parse(file, &options, output))
}

#[test]
fn an_e_mail_of_outlook_is_read_as_others_are() {
    let streams = [
        ("/__substg1.0_0037001F", wide("Grüße from\r\nthe mill")),
        ("/__substg1.0_0C1A001F", wide("Ada L.")),
        // An address within an organisation is nobody's.
        ("/__substg1.0_0C1F001F", wide("/O=MILL/CN=ADA")),
        ("/__substg1.0_0065001F", wide("ada@example.com")),
        ("/__substg1.0_0E04001F", wide("Bob; Eve\0")),
        ("/__substg1.0_1000001F", wide("The weir leaks.\r\n\r\n> Does it?\r\n")),
        ("/__substg1.0_10130102", b"<p>The weir leaks.<img src=\"cid:logo@1\"></p>".to_vec()),
        ("/__attach_version1.0_#00000000/__substg1.0_3707001F", wide("Plan der Mühle.pdf")),
        ("/__attach_version1.0_#00000001/__substg1.0_3707001F", wide("logo.png")),
        ("/__attach_version1.0_#00000001/__substg1.0_3712001F", wide("logo@1")),
    ];
    let streams: Vec<(&str, &[u8])> = streams.iter().map(|(path, bytes)| (*path, bytes.as_slice())).collect();
    let folders = ["/__attach_version1.0_#00000000", "/__attach_version1.0_#00000001"];
    // 2026-11-28 in ticks since 1601.
    let sent = (1_795_852_800 + 11_644_473_600) * 10_000_000;
    let read = read(&file(&folders, &streams, &[(0x0039_0040, sent)])).unwrap();
    assert_eq!(
        read.text,
        "Subject: Grüße from the mill\n\
         From: Ada L. <ada@example.com>\n\
         To: Bob, Eve\n\
         Date: 2026-11-28T08:00:00Z\n\
         Attachments: Plan der Mühle.pdf\n\n\
         The weir leaks.\n\n> Does it?"
    );
    assert_eq!(read.about.title.as_deref(), Some("Grüße from the mill"));
    assert_eq!(read.about.structure, TextMarkup::Plain);
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 1)]);
}

#[test]
fn texts_are_in_the_encoding_that_an_e_mail_of_outlook_names() {
    let streams: [(&str, &[u8]); 2] = [
        ("/__substg1.0_0037001E", b"\xcf\xf0\xe8\xe2\xe5\xf2"),
        ("/__substg1.0_10130102", b"<h2>M\xfchle</h2><p>Gr\xfcn.</p>"),
    ];
    let read = read(&file(&[], &streams, &[(0x3ffd_0003, 1_251), (0x3fde_0003, 28_591)])).unwrap();
    assert_eq!(read.text, "Subject: Привет\n\n## Mühle\n\nGrün.");
    assert_eq!(read.about.structure, TextMarkup::Markdown);
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
}

#[test]
fn an_e_mail_of_outlook_names_all_its_receivers_and_loses_nothing_of_its_text() {
    let people: Vec<String> = (1..=150).map(|number| format!("Person {number}")).collect();
    let to = wide(&people.join("; "));
    let text = wide(&"Words. ".repeat(50_000));
    let streams: [(&str, &[u8]); 2] = [("/__substg1.0_0E04001F", &to), ("/__substg1.0_1000001F", &text)];
    let read = read(&file(&[], &streams, &[])).unwrap();
    assert!(read.text.contains(&format!("To: {}\n", people.join(", "))), "{:.500}", read.text);
    assert_eq!(read.text.matches("Words.").count(), 50_000);
}

#[test]
fn an_e_mail_of_outlook_without_a_text_that_can_be_read_says_why() {
    let sealed = wide("IPM.Note.SMIME");
    for (stream, content, what) in [
        ("/__substg1.0_10090102", &b"rtf"[..], "RTF"),
        ("/__substg1.0_001A001F", sealed.as_slice(), "encrypted"),
    ] {
        let error = read(&file(&[], &[(stream, content)], &[])).unwrap_err();
        assert_eq!(error.code(), "unsupported_content_type");
        assert!(error.to_string().contains(what), "{error}");
    }
    let whole = file(&[], &[("/__substg1.0_1000001E", &b"Words."[..])], &[]);
    assert_eq!(read(&whole).unwrap().text, "Words.");
}
