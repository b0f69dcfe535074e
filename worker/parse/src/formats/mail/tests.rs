//! What comes of whole letters and web archives.

mod outlook_files;

use super::{
    letter::{MAX_AROUND, MAX_ATTACHMENTS, MAX_LETTERS},
    part::{MAX_DEPTH, MAX_INNER_HEAD, MAX_PART_HEAD, MAX_PARTS},
    *,
};
use crate::protocol::{ParseFrame, ParsedPart};

#[derive(Debug, Default)]
struct ReadMail {
    about: SourceMetadata,
    text: String,
    warnings: Vec<(String, u64)>,
}

/// What this hands on.
fn collected(
    max_chars: u64,
    parse: impl FnOnce(&mut ParserOutput<'_>) -> Result<(), ParseAbort>,
) -> Result<ReadMail, ParseError> {
    let mut read = ReadMail::default();
    let mut emit = |frame| {
        match frame {
            ParseFrame::About(about) => read.about = about,
            ParseFrame::Part(ParsedPart { text, .. }) => read.text.push_str(&text),
            ParseFrame::Warning(warning) => read.warnings.push((warning.code, warning.count)),
            other => panic!("{other:?}"),
        }
        Ok(())
    };
    match parse(&mut ParserOutput::new(&mut emit, max_chars)) {
        Ok(()) => Ok(read),
        Err(ParseAbort::Document(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

fn read_with(bytes: &[u8], options: &ParseOptions) -> Result<ReadMail, ParseError> {
    collected(options.max_chars, |output| parse(bytes, options, output))
}

/// Reads a letter, with the line ends of mail servers and with those of files.
fn read(mail: &str) -> Result<ReadMail, ParseError> {
    let unix = read_with(mail.as_bytes(), &ParseOptions::default());
    let wire = read_with(mail.replace('\n', "\r\n").as_bytes(), &ParseOptions::default());
    match (&unix, &wire) {
        (Ok(unix), Ok(wire)) => assert_eq!((&unix.text, &unix.warnings), (&wire.text, &wire.warnings)),
        (Err(unix), Err(wire)) => assert_eq!(unix, wire),
        _ => panic!("{unix:?} is not {wire:?}"),
    }
    unix
}

/// A part of a message: its headers and its content.
fn part(headers: &str, content: &str) -> String {
    format!("{headers}\n\n{content}\n")
}

/// The headers and the content of a part that holds others.
fn parts(kind: &str, boundary: &str, inside: &[String]) -> String {
    let inside: String = inside.iter().map(|part| ["--", boundary, "\n", part.as_str()].concat()).collect();
    part(
        &format!("Content-Type: multipart/{kind}; boundary=\"{boundary}\""),
        &format!("{inside}--{boundary}--"),
    )
}

#[test]
fn a_letter_is_who_wrote_what_to_whom_and_the_text() {
    let mail = "From ada Sat Nov 28 09:00:00 2026\n\
                Received: from a.example by b.example\n\
                Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?= from\n the mill\n\
                From: \"Ada L.\" <ada@example.com>\n\
                To: bob@example.com,\n Eve <eve@example.com>\n\
                Cc: =?iso-8859-1?Q?J=FCrgen?= <j@example.com>\n\
                Date: Sat, 28 Nov 2026 09:00:00 +0100\n\
                Content-Type: text/plain; charset=iso-8859-1\n\
                Content-Transfer-Encoding: quoted-printable\n\n\
                Das M=FChlrad dreht sich lang=\nsam.\n\n> Steht es?\n";
    let read = read(mail).unwrap();
    assert_eq!(read.about.title.as_deref(), Some("Grüße from the mill"));
    assert_eq!(read.about.structure, TextMarkup::Plain);
    assert_eq!(
        read.text,
        "Subject: Grüße from the mill\n\
         From: Ada L. <ada@example.com>\n\
         To: bob@example.com, Eve <eve@example.com>\n\
         Cc: Jürgen <j@example.com>\n\
         Date: 2026-11-28T09:00:00+01:00\n\n\
         Das Mühlrad dreht sich langsam.\n\n> Steht es?"
    );
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
}

#[test]
fn of_alternatives_the_plain_one_is_read_and_attachments_are_named() {
    let plain = part("Content-Type: text/plain; charset=utf-8", "Plain words.");
    let html = part(
        "Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64",
        "PGgyPlRpdGxlPC9oMj48cD5XaGF0IHRoZSBwYWdlIHNh\neXMuPC9wPg==\n",
    );
    let files = [
        part(
            "Content-Type: application/pdf\nContent-Disposition: attachment;\n filename*=utf-8''M%C3%BChle.pdf\n\
             Content-Transfer-Encoding: base64",
            "JVBERi0xLjQ=",
        ),
        part("Content-Type: text/plain; name=\"notes.txt\"", "What the notes say."),
    ];
    let letter = |alternatives: &[String]| {
        let inside = [&[parts("alternative", "b", alternatives)][..], &files].concat();
        format!("From: ada@example.com\n{}", parts("mixed", "a b", &inside))
    };
    let head = "From: ada@example.com\nAttachments: Mühle.pdf, notes.txt\n\n";
    let both = read(&letter(&[plain, html.clone()])).unwrap();
    assert_eq!(both.text, format!("{head}Plain words."));
    assert_eq!((both.about.structure, both.about.title), (TextMarkup::Plain, None));
    assert_eq!(both.warnings, [("unread_attachments".to_owned(), 2)]);
    let blank = part("Content-Type: text/plain", " ");
    let page = read(&letter(&[blank, html])).unwrap();
    assert_eq!(page.text, format!("{head}## Title\n\nWhat the page says."));
    assert_eq!(page.about.structure, TextMarkup::Markdown);
}

#[test]
fn letters_that_are_attached_are_sections_under_their_subjects() {
    let letter =
        |headers: &str, inside: &str| part(&format!("Content-Type: message/rfc822\n\n{headers}"), inside);
    let innermost = letter("Subject: Weir", "The weir leaks.");
    let file = part("Content-Type: application/pdf; name=plan.pdf", "JVBERi0xLjQ=");
    let body = part("Content-Type: text/plain", "See below.");
    let within = parts("mixed", "inner", &[body, file, innermost]);
    let forwarded =
        format!("Content-Type: message/rfc822\n\nSubject: Re: the mill\nFrom: bob@example.com\n{within}");
    let own = part("", "What do you think?");
    let sealed = letter(
        "Subject: Secret\nContent-Type: application/pkcs7-mime; name=smime.p7m",
        "MIAGCSqGSIb3DQEHA6CAMIACAQAx",
    );
    let inside = [own, forwarded, sealed];
    let mail = format!("Subject: Fwd\nFrom: ada@example.com\n{}", parts("mixed", "outer", &inside));
    let read = read(&mail).unwrap();
    assert_eq!(
        read.text,
        "Subject: Fwd\nFrom: ada@example.com\nAttachments: message/rfc822\n\nWhat do you think?\n\n\
         # Re: the mill\n\nFrom: bob@example.com\nAttachments: plan.pdf\n\nSee below.\n\n\
         ## Weir\n\nThe weir leaks."
    );
    assert_eq!(read.about.structure, TextMarkup::Markdown);
    assert_eq!(read.about.title.as_deref(), Some("Fwd"));
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 2)]);
    let digest = [part("", "Subject: First\n\nOne."), part("", "Subject: Second\n\nTwo.")];
    let digest = format!("From: list@example.com\n{}", parts("digest", "d", &digest));
    let read = self::read(&digest).unwrap();
    assert_eq!(read.text, "From: list@example.com\n\n# First\n\nOne.\n\n# Second\n\nTwo.");
}

#[test]
fn of_alternatives_none_is_an_attachment_but_a_file() {
    let [plain, page] = ["plain", "html"].map(|kind| part(&format!("Content-Type: text/{kind}"), "Words."));
    let alternatives = [
        plain,
        part("Content-Type: text/x-amp-html", "<p>Words.</p>"),
        page,
        part("Content-Type: text/calendar; name=invite.ics", "BEGIN:VCALENDAR"),
    ];
    let read = read(&format!("From: ada@example.com\n{}", parts("alternative", "a", &alternatives))).unwrap();
    assert_eq!(read.text, "From: ada@example.com\nAttachments: invite.ics\n\nWords.");
    assert_eq!(read.warnings, [("unread_attachments".to_owned(), 1)]);
}

#[test]
fn a_letter_that_is_written_wrongly_is_read_as_far_as_it_can_be() {
    let printable = part(
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable",
        "a=zz, 1 = 1, gr=c3=bcn and so=  \n on; 100=",
    );
    let read_with = |rest: &str| read(&format!("From: ada@example.com\n{rest}")).unwrap().text;
    assert_eq!(read_with(&printable), "From: ada@example.com\n\na=zz, 1 = 1, grün and so on; 100");
    for headers in ["multipart/mixed", "multipart/mixed; boundary=never"] {
        let letter = part(&format!("Content-Type: {headers}"), "The words.");
        assert_eq!(read_with(&letter), "From: ada@example.com\n\nThe words.", "{headers}");
    }
    // Headers that are too long to be read say nothing, and what follows those that are only odd is read.
    let long = part(&format!("X-Long: {}", "x".repeat(MAX_PART_HEAD)), "Not read.");
    let odd = part(&"Subject: =?utf-8?Q? and\n ".repeat(MAX_PART_HEAD / 100), "Odd.");
    assert_eq!(read_with(&parts("mixed", "a", &[long, odd])), "From: ada@example.com\n\nOdd.");
}

#[test]
fn all_texts_of_a_letter_are_read_and_what_belongs_to_its_page_is_not() {
    let picture = part(
        "Content-Type: image/png; name=\"logo.png\"\nContent-ID: <logo>\nContent-Transfer-Encoding: base64",
        "iVBORw0KGgo=",
    );
    let page = part("Content-Type: text/html", "<p>Gr&uuml;n<img src=\"cid:logo\"></p>");
    let footer = part("", "To leave the list, write to it.");
    let inside = [parts("related", "r", &[page, picture]), footer];
    let read = read(&format!("From: ada@example.com\n{}", parts("mixed", "m", &inside))).unwrap();
    assert_eq!(read.text, "From: ada@example.com\n\nGrün\n\nTo leave the list, write to it.");
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
}

#[test]
fn bytes_that_cannot_be_read_are_told_once_for_a_letter() {
    let odd = part(
        "Content-Type: text/plain; charset=shift_jis\nContent-Transfer-Encoding: quoted-printable",
        "a=FF",
    );
    let odd = vec![odd; 200];
    let read = read(&format!("From: ada@example.com\n{}", parts("mixed", "m", &odd))).unwrap();
    assert_eq!(read.warnings, [("undecodable_bytes".to_owned(), 200)]);
}

#[test]
fn a_web_archive_is_the_page_in_it() {
    let style = part("Content-Type: text/css\nContent-ID: <style>", "p { color: red }");
    let frame = part("Content-Type: text/html\nContent-ID: <frame>", "<p>An advertisement.</p>");
    let page = part(
        "Content-Type: text/html\nContent-ID: <page>\nContent-Transfer-Encoding: quoted-printable\n\
         Content-Location: https://example.org/mills#top",
        "<meta charset=3Diso-8859-1><h1>Mills</h1><p>The m=FChle stands =\nby the river.</p>",
    );
    let inside = [style, frame, page];
    let related = parts("related; type=\"text/html\"; start=\"<page>\"", "----x--", &inside);
    let said = |headers: &str, name: Option<&str>| {
        let options = ParseOptions { name: name.map(str::to_owned), ..ParseOptions::default() };
        read_with(format!("{headers}{related}").as_bytes(), &options).unwrap()
    };
    for (headers, name) in [
        ("From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/mills\n", None),
        ("From: \"Saved by Windows Internet Explorer 8\"\n", None),
        ("MIME-Version: 1.0\n", None),
        ("From: ada@example.com\n", Some("Mills.MHT")),
    ] {
        let ReadMail { about, text, .. } = said(&format!("{headers}Subject: Of mills\n"), name);
        assert!(text.contains("The mühle stands by the river."), "{headers}: {text}");
        assert!(!text.contains("color") && !text.contains("advertisement"), "{headers}: {text}");
        assert_eq!(about.title.as_deref(), Some("Mills"), "{headers}");
        assert_eq!(about.canonical_url.as_deref(), Some("https://example.org/mills"), "{headers}");
    }
    let letter = said("From: ada@example.com\nSubject: Of mills\n", Some("letter.eml"));
    assert!(
        letter.text.starts_with("Subject: Of mills\nFrom: ada@example.com\n\n# Mills"),
        "{}",
        letter.text
    );
}

#[test]
fn a_letter_that_broke_off_is_read_as_far_as_it_goes() {
    let whole = part("Content-Type: text/plain", "The first part.");
    let mail = format!(
        "From: ada@example.com\nContent-Type: multipart/mixed; boundary=a\n\n--a\n{whole}--a\n\
         Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nVGhlIHNlY29uZC4=\n____\nA note of the list.\n"
    );
    assert_eq!(read(&mail).unwrap().text, "From: ada@example.com\n\nThe first part.\n\nThe second.");
    let wide: Vec<u8> = "\u{feff}Subject: Wide\n\nWords.".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = read_with(&wide, &ParseOptions::default()).unwrap();
    assert_eq!(wide.text, "Subject: Wide\n\nWords.");
}

#[test]
fn what_cannot_be_read_says_why() {
    let secret = parts("encrypted", "x", &[part("Content-Type: application/pgp-encrypted", "Version: 1")]);
    let sealed = part("Content-Type: application/pkcs7-mime; name=smime.p7m", "MIAGCSqGSIb3DQEHA6CAMIACAQAx");
    for mail in [secret, sealed] {
        let error = read(&format!("From: ada@example.com\n{mail}")).unwrap_err();
        assert_eq!(error.code(), "unsupported_content_type");
        assert!(error.to_string().contains("encrypted"), "{error}");
    }
    assert_eq!(read("").unwrap_err(), ParseError::Empty);
    let few = read("Subject: =?utf-8?Q?how words =?utf-8?Q?begin\n\nWords.").unwrap();
    assert!(
        few.text.starts_with("Subject: =?utf-8?Q?how words") && few.text.ends_with("Words."),
        "{}",
        few.text
    );
    let long = format!("X-Long: {}\n\nWords.", "x".repeat(MAX_HEAD));
    let unended = format!("Subject: {}\n\nWords.", "=?utf-8?Q? ".repeat(1_000));
    for mail in [" \n\n", "\u{1}\n\nWords.", long.as_str(), unended.as_str()] {
        assert_eq!(read(mail).unwrap_err(), ParseError::Damaged, "{mail:.20}");
    }
}

#[test]
fn neither_many_parts_nor_deep_ones_take_long() {
    let many = vec![part("", "a"); MAX_PARTS + 1];
    let mut deep = part("", "a");
    for level in 0..=MAX_DEPTH {
        deep = parts("mixed", &format!("level{level}"), &[deep]);
    }
    for mail in [parts("mixed", "a", &many), deep] {
        let error = read(&format!("From: ada@example.com\n{mail}")).unwrap_err();
        assert_eq!(error.code(), "too_large", "{error}");
    }
    // Of messages within messages only the outer ones are opened, however many there are.
    let letters = "Content-Type: message/rfc822\n\n".repeat(100_000);
    let deep = read(&format!("From: ada@example.com\n{letters}")).unwrap();
    let headings = (1..=MAX_AROUND).map(|level| format!("{} Attached e-mail", "#".repeat(level)));
    let headings = headings.collect::<Vec<_>>().join("\n\n");
    assert_eq!(deep.text, format!("From: ada@example.com\n\n{headings}\n\nAttachments: message/rfc822"));
    let inside = vec![part("Content-Type: message/rfc822", "Subject: One\n\nof many"); MAX_LETTERS + 2];
    let wide = read(&format!("From: ada@example.com\n{}", parts("mixed", "m", &inside))).unwrap();
    assert_eq!(wide.text.matches("# One\n\nof many").count(), MAX_LETTERS);
    assert_eq!(wide.warnings, [("unread_attachments".to_owned(), 2)]);
    let long = format!("X-Long: {}\n\nNot read.", "x".repeat(MAX_INNER_HEAD));
    let mail = format!("From: ada@example.com\nContent-Type: message/rfc822\n\n{long}");
    assert_eq!(read(&mail).unwrap().text, "From: ada@example.com\nAttachments: message/rfc822");
    let options = ParseOptions { max_chars: 1_000, ..ParseOptions::default() };
    let long = format!("From: ada@example.com\n\n{}", "Words. ".repeat(1_000));
    assert_eq!(read_with(long.as_bytes(), &options).unwrap_err(), ParseError::TooLarge { limit: 1_000 });
}
