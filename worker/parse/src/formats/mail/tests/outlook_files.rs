//! What comes of e-mails that Outlook saved.

use std::io::{Cursor, Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cfb::CompoundFile;

use super::{super::outlook, *};
use crate::formats::package;

/// 2026-11-28 in ticks since 1601.
const SENT: u64 = (1_795_852_800 + 11_644_473_600) * 10_000_000;

/// A file of these streams, in these folders, and of short properties: the number and the type of each, and its value.
fn file(folders: &[&str], streams: &[(&str, &[u8])], short: &[(u32, u64)]) -> Vec<u8> {
    let mut file = CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    for folder in folders {
        file.create_storage(folder).unwrap();
    }
    for (path, content) in streams {
        file.create_stream(path).unwrap().write_all(content).unwrap();
    }
    file.create_stream("/__properties_version1.0").unwrap().write_all(&properties(32, short)).unwrap();
    file.into_inner().into_inner()
}

/// Short properties behind so many bytes.
fn properties(head: usize, short: &[(u32, u64)]) -> Vec<u8> {
    let mut properties = vec![0; head];
    for (tag, value) in short {
        properties.extend(tag.to_le_bytes());
        properties.extend([6, 0, 0, 0]);
        properties.extend(value.to_le_bytes());
    }
    properties
}

/// A file of these streams, with the folders that they are in.
fn file_of(streams: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut file = CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    for (path, content) in streams {
        let (folder, _) = path.rsplit_once('/').unwrap();
        file.create_storage_all(format!("/{folder}")).unwrap();
        file.create_stream(path).unwrap().write_all(content).unwrap();
    }
    file.into_inner().into_inner()
}

/// The same with so many sectors of the DIFAT. Each of them names one sector of the FAT that has nothing to tell, as often as there is room.
fn with_difat_sectors(mut file: Vec<u8>, sectors: u32) -> Vec<u8> {
    const SECTOR: usize = 4_096;
    file.resize(file.len().next_multiple_of(SECTOR), 0);
    let named = u32::try_from(file.len() / SECTOR - 1).unwrap();
    file.extend([0xff; SECTOR]);
    file[68..72].copy_from_slice(&(named + 1).to_le_bytes());
    // The beginning of the DIFAT, in the header, is full then.
    for at in (80..512).step_by(4) {
        file[at..at + 4].copy_from_slice(&named.to_le_bytes());
    }
    for sector in 1..=sectors {
        file.extend(named.to_le_bytes().repeat(SECTOR / 4 - 1));
        let next = if sector < sectors { named + 1 + sector } else { 0xffff_fffe };
        file.extend(next.to_le_bytes());
    }
    file
}

/// The folder of an attachment, and of the e-mail that Outlook attached there.
fn attachment(number: usize) -> String {
    format!("/__attach_version1.0_#{number:08}")
}

fn attached(number: usize) -> String {
    format!("{}/__substg1.0_3701000D", attachment(number))
}

/// The streams of a file that is attached.
fn attached_file(number: usize, name: &str, content: &[u8]) -> [(String, Vec<u8>); 2] {
    let folder = attachment(number);
    [
        (format!("{folder}/__substg1.0_3707001F"), wide(name)),
        (format!("{folder}/__substg1.0_37010102"), content.to_vec()),
    ]
}

/// A file as it stands in an e-mail of mail servers, under these headers.
fn encoded(headers: &str, file: &[u8]) -> String {
    part(&format!("{headers}\nContent-Transfer-Encoding: base64"), &STANDARD.encode(file))
}

/// The streams of an e-mail with this subject, in a folder.
fn letter(folder: &str, subject: &str, text: &str) -> Vec<(String, Vec<u8>)> {
    let head = if folder.is_empty() { 32 } else { 24 };
    vec![
        (format!("{folder}/__properties_version1.0"), properties(head, &[(0x0039_0040, SENT)])),
        (format!("{folder}/__substg1.0_0037001F"), wide(subject)),
        (format!("{folder}/__substg1.0_1000001F"), wide(text)),
    ]
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn read(bytes: &[u8]) -> Result<ReadMail, ParseError> {
    read_as(bytes, bytes.len() as u64)
}

/// Reads a file as if it had so many bytes.
fn read_as(bytes: &[u8], size: u64) -> Result<ReadMail, ParseError> {
    let file = CompoundFile::open(Cursor::new(bytes)).unwrap();
    let options = ParseOptions::default();
    collected(options.max_chars, |output| outlook::parse(file, size, &options, output))
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
    let read = read(&file(&folders, &streams, &[(0x0039_0040, SENT)])).unwrap();
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

#[test]
fn e_mails_that_are_attached_to_one_of_outlook_are_sections_under_their_subjects() {
    let [forwarded, rtf, file] = [attached(0), attached(1), attachment(2)];
    let inner = format!("{forwarded}{}", attached(1));
    let mut streams = letter("", "Fwd", "What do you think?");
    streams.extend(letter(&forwarded, "Re: the mill", "See below."));
    streams.extend(letter(&inner, "Weir", "The weir leaks."));
    streams.extend([
        (format!("{forwarded}/__substg1.0_0C1A001F"), wide("Bob")),
        (format!("{forwarded}{}/__substg1.0_3707001F", attachment(0)), wide("plan.pdf")),
        (format!("{rtf}/__properties_version1.0"), properties(24, &[])),
        (format!("{rtf}/__substg1.0_10090102"), b"rtf".to_vec()),
        (format!("{}/__substg1.0_3001001F", attachment(1)), wide("In RTF")),
        (format!("{file}/__substg1.0_370E001F"), wide("message/rfc822")),
        (
            format!("{file}/__substg1.0_37010102"),
            b"Subject: Mail\nFrom: eve@example.com\n\nWords.\n".to_vec(),
        ),
    ]);
    let read = read(&file_of(&streams)).unwrap();
    let date = "Date: 2026-11-28T08:00:00Z";
    assert_eq!(
        read.text,
        format!(
            "Subject: Fwd\n{date}\nAttachments: In RTF\n\nWhat do you think?\n\n\
             # Re: the mill\n\nFrom: Bob\n{date}\nAttachments: plan.pdf\n\nSee below.\n\n\
             ## Weir\n\n{date}\n\nThe weir leaks.\n\n\
             # Mail\n\nFrom: eve@example.com\n\nWords."
        )
    );
    assert_eq!(read.about.structure, TextMarkup::Markdown);
    assert_eq!(read.about.title.as_deref(), Some("Fwd"));
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 2)]);
}

#[test]
fn saved_e_mails_that_are_attached_as_files_are_sections_under_their_subjects() {
    let mut streams = letter("", "Re: the mill", "See below.");
    streams.extend(attached_file(0, "Weir.MSG", &file_of(&letter("", "Weir", "The weir leaks."))));
    streams.extend(attached_file(1, "gate.eml", b"Subject: Gate\n\nIt is shut.\n"));
    let forwarded = file_of(&streams);
    let rtf = file_of(&[
        ("/__properties_version1.0".to_owned(), properties(32, &[])),
        ("/__substg1.0_10090102".to_owned(), b"rtf".to_vec()),
    ]);
    let inside = [
        part("", "What do you think?"),
        encoded("Content-Type: application/vnd.ms-outlook; name=Forwarded", &forwarded),
        encoded("Content-Type: application/octet-stream; name=broken.msg", &forwarded[..100]),
        encoded("Content-Disposition: attachment; filename=\"In RTF.msg\"", &rtf),
        part("Content-Type: application/octet-stream; name=note.eml", "Subject: Note\n\nOf the mill."),
    ];
    let mail = format!("Subject: Fwd\nFrom: ada@example.com\n{}", parts("mixed", "m", &inside));
    let read = super::read(&mail).unwrap();
    let date = "Date: 2026-11-28T08:00:00Z";
    assert_eq!(
        read.text,
        format!(
            "Subject: Fwd\nFrom: ada@example.com\nAttachments: broken.msg, In RTF.msg\n\nWhat do you think?\n\n\
             # Re: the mill\n\n{date}\n\nSee below.\n\n\
             ## Weir\n\n{date}\n\nThe weir leaks.\n\n\
             ## Gate\n\nIt is shut.\n\n\
             # Note\n\nOf the mill."
        )
    );
    assert_eq!(read.about.structure, TextMarkup::Markdown);
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 2)]);
}

#[test]
fn a_file_whose_allocation_table_is_longer_than_itself_is_not_opened() {
    let file = |sectors| with_difat_sectors(file_of(&letter("", "Weir", "The weir leaks.")), sectors);
    let attached = |sectors| {
        let inside = [
            part("", "What do you think?"),
            encoded("Content-Type: application/vnd.ms-outlook; name=weir.msg", &file(sectors)),
        ];
        super::read(&format!("Subject: Fwd\n{}", parts("mixed", "m", &inside))).unwrap()
    };
    let read = attached(1);
    assert!(read.text.ends_with("The weir leaks.") && read.warnings.is_empty(), "{read:?}");
    let read = attached(2);
    assert_eq!(read.text, "Subject: Fwd\nAttachments: weir.msg\n\nWhat do you think?");
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 1)]);
    // Nor is one that is a document of its own.
    let options = ParseOptions::default();
    let whole =
        |sectors| collected(options.max_chars, |output| package::parse(file(sectors), &options, output));
    assert!(whole(1).unwrap().text.ends_with("The weir leaks."));
    assert_eq!(whole(2).unwrap_err(), ParseError::Damaged);
}

#[test]
fn of_e_mails_within_each_other_or_beside_so_many_are_read_as_of_others() {
    let mut streams = letter("", "Top", "Words.");
    let mut folder = String::new();
    for depth in 1..=MAX_AROUND + 1 {
        folder.push_str(&attached(0));
        streams.extend(letter(&folder, &format!("Depth {depth}"), "Words."));
    }
    let read = read(&file_of(&streams)).unwrap();
    assert!(read.text.contains(&format!("Depth {MAX_AROUND}")), "{}", read.text);
    assert!(!read.text.contains(&format!("Depth {}", MAX_AROUND + 1)), "{}", read.text);
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 1)]);

    let mut streams = letter("", "Top", "Words.");
    for number in 0..MAX_LETTERS + 2 {
        streams.extend(letter(&attached(number), "Beside", "Words."));
    }
    let read = self::read(&file_of(&streams)).unwrap();
    assert_eq!(read.text.matches("# Beside").count(), MAX_LETTERS);
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 2)]);
}

#[test]
fn of_files_within_each_other_or_with_many_attachments_so_much_is_read_as_of_folders() {
    let mut file = file_of(&letter("", &format!("Depth {}", MAX_AROUND + 1), "Words."));
    for depth in (0..=MAX_AROUND).rev() {
        let mut streams = letter("", &format!("Depth {depth}"), "Words.");
        streams.extend(attached_file(0, "within.msg", &file));
        file = file_of(&streams);
    }
    let read = read(&file).unwrap();
    assert!(read.text.contains(&format!("Depth {MAX_AROUND}")), "{}", read.text);
    assert!(!read.text.contains(&format!("Depth {}", MAX_AROUND + 1)), "{}", read.text);
    assert!(read.text.contains("Attachments: within.msg"), "{}", read.text);
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 1)]);

    let mut streams = letter("", "Beside", "Words.");
    streams.extend((0..599).flat_map(|number| attached_file(number, "plan.pdf", b"%PDF")));
    streams.extend(attached_file(599, "last.eml", b"Subject: Last\n\nWords.\n"));
    let with_many = file_of(&streams);
    let mut streams = letter("", "Top", "Words.");
    streams.extend((0..2).flat_map(|number| attached_file(number, "many.msg", &with_many)));
    let read = self::read(&file_of(&streams)).unwrap();
    assert_eq!(read.text.matches("# Beside").count(), 2, "{:.500}", read.text);
    assert_eq!(read.text.matches("# Last").count(), 1, "{MAX_ATTACHMENTS} are looked at");
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 599 + 600)]);
}

#[test]
fn e_mails_that_share_what_they_say_are_not_read_to_more_than_their_file_has() {
    let long = "Words. ".repeat(1_000);
    let mut streams = letter("", "Top", "The text.");
    for number in 0..3 {
        streams.extend(letter(&attached(number), "Beside", &long));
    }
    let size = 2 * long.len() as u64 + 1_000;
    let read = read_as(&file_of(&streams), size).unwrap();
    assert!(read.text.contains("The text."), "{:.500}", read.text);
    assert_eq!(read.text.matches("# Beside").count(), 1, "{:.500}", read.text);
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 2)]);
}
