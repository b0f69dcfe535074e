use super::*;

/// A zip archive's files, stored as they are, without the directory at its end.
fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in entries {
        bytes.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
        bytes.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
        bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(name.bytes());
        bytes.extend(content.bytes());
    }
    bytes
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// What something is whose name and media type are perhaps not known, which is written as an empty text.
fn of<'a>(head: &[u8], name: &'a str, content_type: &'a str) -> FileFormat {
    let given = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    FileFormat::detect(head, given(name), given(content_type), None)
}

#[test]
fn bytes_win_over_names_and_media_types() {
    let late = [&vec![b' '; PDF_BEGINS_WITHIN - 5][..], b"%PDF-1.4"].concat();
    let too_late = [&vec![b' '; PDF_BEGINS_WITHIN - 4][..], b"%PDF-1.4"].concat();
    for (head, name, content_type, format) in [
        (&b"%PDF-1.7\n\0\x01"[..], "notes.txt", "text/plain", FileFormat::Pdf),
        (b"junk before\n%PDF-1.4", "", "", FileFormat::Pdf),
        (b"HTTP/1.1 200 OK\r\n\r\n%PDF-1.4", "", "", FileFormat::Pdf),
        (b"\x1b%-12345X%PDF-1.4", "", "", FileFormat::Pdf),
        (b"\xef\xbb\xbf%PDF-1.4", "", "", FileFormat::Pdf),
        (b"A file begins with %PDF-1.4", "notes.txt", "", FileFormat::Text),
        (b"<!DOCTYPE html><pre>\n%PDF-1.4\n</pre>", "", "", FileFormat::Html),
        (b"<p>It begins with:\n%PDF-1.4\n", "", "text/html", FileFormat::Html),
        (&late, "", "", FileFormat::Pdf),
        (&too_late, "", "", FileFormat::Text),
        (b"plain words", "report.pdf", "application/pdf", FileFormat::Text),
        (b"gr\xfcn", "", "application/octet-stream", FileFormat::Text),
        (b"\x89PNG\r\n\x1a\n", "scan.pdf", "application/pdf", FileFormat::Binary),
        (b"\x1f\x8b\x08\0", "data.csv", "text/csv", FileFormat::Binary),
        (b"\xff\xfb\x90dsome sound", "notes.txt", "text/plain", FileFormat::Binary),
        (b"{\\rtf1\\ansi Words}", "notes.txt", "text/plain", FileFormat::Binary),
        (b"a\0b", "notes.txt", "text/plain", FileFormat::Binary),
        (b"MZ\x90\0\x03\0", "", "", FileFormat::Binary),
        (b"<!DOCTYPE html><p>404", "data.csv", "text/csv", FileFormat::Html),
        (b"WEBVTT\n\n00:01.000 --> 00:02.000\nHi", "talk.txt", "text/plain", FileFormat::Captions),
    ] {
        assert_eq!(of(head, name, content_type), format, "{} {name}", String::from_utf8_lossy(head));
    }
}

#[test]
fn kinds_of_text_are_told_by_name_and_then_by_media_type() {
    for (head, name, content_type, format) in [
        ("a,b\n1,2\n", "", "", FileFormat::Text),
        ("a,b\n1,2\n", "Report.CSV", "application/vnd.ms-excel", FileFormat::Table),
        ("a,b\n1,2\n", "report.txt", "text/csv", FileFormat::Table),
        ("a\tb\n1\t2\n", "export.xls", "", FileFormat::Table),
        ("<table><tr><td>a", "export.xls", "", FileFormat::Html),
        ("<meta http-equiv=\"content-type\">\n<table>", "", "application/vnd.ms-excel", FileFormat::Html),
        ("\u{feff}<!-- 1 --><STYLE>td{}</STYLE><table>", "export.XLSX", "text/csv", FileFormat::Html),
        ("<table><tr><td>a", "export.csv", "", FileFormat::Table),
        ("<tablet>,b\n1,2\n", "export.xls", "", FileFormat::Table),
        (
            "<?xml version=\"1.0\"?>\n<?mso-application progid=\"Excel.Sheet\"?>\n<Workbook xmlns=\"u\">",
            "export.xls",
            "",
            FileFormat::Text,
        ),
        ("<ss:Workbook xmlns:ss=\"u\">", "", "application/vnd.ms-excel", FileFormat::Text),
        ("a\tb\n", "export.tab", "text/plain", FileFormat::Table),
        ("# Title\n", "", "", FileFormat::Text),
        ("# Title\n", "README.md", "text/plain", FileFormat::Markdown),
        ("# Title\n", "README.md", "text/html", FileFormat::Markdown),
        ("# Title\n", "", "text/markdown", FileFormat::Markdown),
        ("[1] See below.\n", "", "", FileFormat::Text),
        ("{\"a\": 1}", "", "", FileFormat::Text),
        ("{\"a\": 1}", "", "application/ld+json", FileFormat::Json),
        ("{\"a\": 1}\n{\"a\": 2}\n", "rows.jsonl", "application/octet-stream", FileFormat::Json),
        ("Not found", "rows.json", "application/json", FileFormat::Text),
        ("<p>Not found", "rows.json", "text/html", FileFormat::Html),
        ("", "rows.json", "", FileFormat::Json),
        ("0:00:01.000,0:00:02.000\nHi", "talk.sbv", "", FileFormat::Captions),
        ("words", "", "text/vtt", FileFormat::Captions),
        ("words", "", "text/html", FileFormat::Html),
        ("words", "page.htm", "", FileFormat::Html),
        ("words", "feed.xml", "text/html", FileFormat::Text),
        ("words", "", "", FileFormat::Text),
        ("words", ".md", "", FileFormat::Markdown),
        ("words", "md", "", FileFormat::Text),
        ("%PD", "", "", FileFormat::Text),
    ] {
        assert_eq!(of(head.as_bytes(), name, content_type), format, "{head:?} {name} {content_type}");
    }
}

#[test]
fn pages_are_told_by_their_first_element_after_whatever_may_stand_before_it() {
    for (head, content_type, format) in [
        ("  <!DOCTYPE HTML PUBLIC \"-//W3C//DTD\">", "text/plain", FileFormat::Html),
        ("\u{feff}<!doctype html>", "", FileFormat::Html),
        ("<!-- saved from a site --><html lang=\"en\">", "", FileFormat::Html),
        ("<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"…\">", "", FileFormat::Html),
        (
            "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\">",
            "application/xml",
            FileFormat::Html,
        ),
        ("<HEAD><title>Old</title>", "", FileFormat::Html),
        ("<body>", "", FileFormat::Html),
        ("<header>", "", FileFormat::Text),
        ("<header>", "text/html", FileFormat::Html),
        ("<!-- a comment that does not end", "text/html", FileFormat::Html),
        ("<!-- a comment that does not end", "", FileFormat::Text),
        ("<!DOCTYPE article SYSTEM \"docbook.dtd\"><article>", "application/xml", FileFormat::Text),
        ("<?xml version=\"1.0\"?><rss version=\"2.0\">", "text/html", FileFormat::Text),
        ("<feed xmlns=\"http://www.w3.org/2005/Atom\">", "application/atom+xml", FileFormat::Text),
        ("<?xml version=\"1.0\"?><tt xmlns=\"http://www.w3.org/ns/ttml\">", "text/xml", FileFormat::Captions),
        ("<h1 align=\"center\">Project</h1>", "", FileFormat::Text),
    ] {
        assert_eq!(of(head.as_bytes(), "", content_type), format, "{head} {content_type}");
    }
}

#[test]
fn e_mails_and_web_archives_are_told_by_name_by_type_or_by_their_headers() {
    let told = "Received: from a.example\r\n\tby b.example: it\r\nMIME-Version: 1.0\r\n\r\nHi";
    let archive = "From: <Saved by Blink>\r\nMIME-Version: 1.0\r\n";
    for (head, name, content_type, format) in [
        ("From: ada@example.com\n\nHi", "Letter.EML", "application/octet-stream", FileFormat::Mail),
        ("From: ada@example.com\n\nHi", "letter.txt", "message/rfc822", FileFormat::Mail),
        ("From ada Sat Nov 28 09:00:00 2026\nTo: b@example.com\n", "letter.eml", "", FileFormat::Mail),
        ("From: ada@example.com\n\nHi", "letter.txt", "text/plain", FileFormat::Text),
        ("From: ada@example.com\n\nMIME-Version: 1.0\n", "", "", FileFormat::Text),
        ("Not found\n", "letter.eml", "message/rfc822", FileFormat::Text),
        ("<!DOCTYPE html><p>404", "letter.eml", "", FileFormat::Html),
        ("Words\nMIME-Version: 1.0\n", "", "", FileFormat::Text),
        ("From ada Sat Nov 28 09:00:00 2026\nMIME-Version: 1.0\n", "Inbox", "", FileFormat::Text),
        (told, "", "", FileFormat::Mail),
        (told, "1700000000.M1P2.host:2,S", "text/plain", FileFormat::Mail),
        (told, "notes.md", "", FileFormat::Markdown),
        (archive, "page.mht", "", FileFormat::Mail),
        (archive, "page", "multipart/related", FileFormat::Mail),
    ] {
        assert_eq!(of(head.as_bytes(), name, content_type), format, "{head:?} {name} {content_type}");
    }
}

#[test]
fn captions_are_told_by_a_number_and_the_times_after_it() {
    for (head, captions) in [
        ("1\n00:00:01,000 --> 00:00:02,500\nHi", true),
        ("\u{feff}1\r\n00:00:01,000 --> 00:00:02,500 X1:10 X2:20\r\nHi", true),
        ("7\n\n0:01.5-->0:02\nHi", true),
        ("WEBVTT", true),
        ("WEBVTT - a title", true),
        ("WEBVTTS are files", false),
        ("1\nA --> B\n", false),
        ("Words\n00:00:01,000 --> 00:00:02,500\n", false),
        ("1\n", false),
    ] {
        assert_eq!(of(head.as_bytes(), "", "") == FileFormat::Captions, captions, "{head:?}");
    }
}

#[test]
fn text_of_two_bytes_a_character_is_text_when_it_says_so() {
    let marked = |text: &str| [b"\xff\xfe", &wide(text)[..]].concat();
    assert_eq!(of(&marked("words"), "", ""), FileFormat::Text);
    assert_eq!(of(&marked("a,b"), "report.csv", ""), FileFormat::Table);
    assert_eq!(of(&marked("<!DOCTYPE html>"), "", ""), FileFormat::Html);
    assert_eq!(of(&wide("words"), "", ""), FileFormat::Binary);
    for charset in ["UTF-16LE", "utf-16", "UCS-2"] {
        assert_eq!(
            FileFormat::detect(&wide("words"), None, None, Some(charset)),
            FileFormat::Text,
            "{charset}"
        );
    }
    assert_eq!(FileFormat::detect(&wide("words"), None, None, Some("utf-8")), FileFormat::Binary);
    assert_eq!(FileFormat::detect(b"\x89PNG\0", None, None, Some("utf-16")), FileFormat::Binary);
}

#[test]
fn archives_are_told_by_what_is_in_them_before_they_are_by_name() {
    let types = ("[Content_Types].xml", "<Types/>");
    let sheet = zip(&[types, ("xl/workbook.xml", "<workbook/>")]);
    let text = zip(&[types, ("_rels/.rels", ""), ("word/document.xml", "")]);
    let book = zip(&[("mimetype", "application/epub+zip")]);
    let open_sheet = zip(&[("mimetype", "application/vnd.oasis.opendocument.spreadsheet")]);
    let open_text = zip(&[("mimetype", "application/vnd.oasis.opendocument.text")]);
    let unknown = zip(&[types]);
    let excel = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    for (head, name, content_type, format) in [
        (&sheet[..], "text.docx", "", FileFormat::Workbook),
        (&text, "table.xlsx", excel, FileFormat::Package),
        (&zip(&[("ppt/presentation.xml", "")]), "", "", FileFormat::Package),
        (&book, "table.xlsx", "", FileFormat::Package),
        (&open_sheet, "", "", FileFormat::Workbook),
        (&open_text, "table.ods", "", FileFormat::Package),
        (&unknown, "", "", FileFormat::Package),
        (&unknown, "Table.XLSB", "", FileFormat::Workbook),
        (&unknown, "", excel, FileFormat::Workbook),
        (&unknown, "text.docx", excel, FileFormat::Package),
        (&unknown[..6], "table.xlsx", "", FileFormat::Workbook),
        (b"PK\x05\x06\0\0", "", "", FileFormat::Package),
    ] {
        assert_eq!(of(head, name, content_type), format, "{name} {content_type}");
    }
}

#[test]
fn old_office_files_are_told_apart_by_what_is_in_them_and_by_name() {
    let ole2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0\0".to_vec();
    let both = [ole2.clone(), wide("Workbook\0__properties_version1.0\0")].concat();
    let excel = "application/vnd.ms-excel";
    for (head, name, content_type, format) in [
        (ole2.clone(), "", "", FileFormat::LegacyOffice),
        (ole2.clone(), "letter.doc", excel, FileFormat::LegacyOffice),
        (ole2.clone(), "table.XLS", "", FileFormat::Workbook),
        (ole2.clone(), "", excel, FileFormat::Workbook),
        (ole2.clone(), "letter.msg", "", FileFormat::Package),
        (ole2.clone(), "", "application/vnd.ms-outlook", FileFormat::Package),
        ([ole2.clone(), wide("__properties_version1.0\0")].concat(), "", "", FileFormat::Package),
        // The subject of an e-mail.
        ([ole2.clone(), wide("Workbook\0")].concat(), "Workbook.msg", "", FileFormat::Package),
        (both.clone(), "", "", FileFormat::Package),
        (both, "table.xls", "", FileFormat::Workbook),
        ([ole2, wide("Workbook\0")].concat(), "letter.doc", "", FileFormat::Workbook),
    ] {
        assert_eq!(of(&head, name, content_type), format, "{name} {content_type}");
    }
}

#[test]
fn a_files_media_type_is_told_by_its_name_and_then_by_its_sender() {
    let excel = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    for (format, name, content_type, media_type) in [
        (FileFormat::Pdf, "called.txt", "text/plain", "application/pdf"),
        (FileFormat::Text, "notes", "text/html", "text/plain"),
        (FileFormat::Text, "feed.xml", "", "application/xml"),
        (FileFormat::Table, "table.TSV", "text/plain", "text/tab-separated-values"),
        (FileFormat::Table, "table", "text/x-csv", "text/x-csv"),
        (FileFormat::Captions, "talk.srt", "text/plain", "application/x-subrip"),
        (FileFormat::Captions, "talk", "", "text/vtt"),
        (FileFormat::Mail, "page.mht", "message/rfc822", "multipart/related"),
        (FileFormat::Mail, "letter.txt", "text/plain", "message/rfc822"),
        (FileFormat::Workbook, "table", excel, excel),
        (FileFormat::Workbook, "table", "", "application/octet-stream"),
        (FileFormat::Package, "letter.zip", "", "application/zip"),
        (FileFormat::Package, "letter.msg", "", "application/vnd.ms-outlook"),
        (FileFormat::Package, "book.epub", "application/zip", "application/epub+zip"),
        (FileFormat::Binary, "scan.png", "image/png", "application/octet-stream"),
    ] {
        assert_eq!(format.media_type(Some(name), Some(content_type)), media_type, "{format:?} {name}");
    }
    assert_eq!(extensions("text/csv"), ["csv"]);
    assert_eq!(extensions("message/rfc822"), ["eml"]);
    assert!(extensions("text/plain").is_empty());
}

#[test]
fn the_media_type_that_a_format_is_given_leads_back_to_it() {
    for (head, name, content_type) in [
        ("a,b", "", "text/csv"),
        ("a,b", "report.xls", ""),
        ("<table>", "report.xls", ""),
        ("<Workbook>", "report.xls", "application/vnd.ms-excel"),
        ("# T", "", "text/x-markdown"),
        ("{}", "", "application/json"),
        ("{}", "", "application/ld+json"),
        ("<p>", "", "text/html"),
        ("words", "", "text/vtt"),
        ("words", "talk.sbv", ""),
        ("PK\u{3}\u{4}", "", "application/vnd.ms-excel.sheet.macroenabled.12"),
        ("words", "notes.txt", "application/octet-stream"),
        ("From: a@b.example\n", "", "message/rfc822"),
        ("MIME-Version: 1.0\n", "letter.txt", ""),
        ("MIME-Version: 1.0\n", "page.mht", ""),
    ] {
        let format = of(head.as_bytes(), name, content_type);
        let media_type = format.media_type(Some(name), Some(content_type));
        assert_eq!(of(head.as_bytes(), name, media_type), format, "{head} {name} {content_type}");
    }
}

#[test]
fn whoever_sends_what_cannot_be_read_is_told_what_can() {
    let refusal = FileIdentity::of(b"a\0b", Some("a.bin"), None, None).unwrap_err();
    for format in
        ["PDF", "CSV", "XLSX", "ODS", "DOCX", "PPTX", "ODT", "ODP", "EPUB", "EML", "MSG", "MHT", "VTT"]
    {
        assert!(refusal.contains(format), "{format}: {refusal}");
    }
}
