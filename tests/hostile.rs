//! Sources made to do harm: each ends FAILED with a code that says what it was, within the limits, while the worker goes
//! on ingesting what others gave it.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::header::CONTENT_TYPE,
    response::IntoResponse,
};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, id},
        in_both_modes,
        pdf::{PdfBuilder, deflated_again, deflated_run, long_pdf, pdf_with_pages, text_content},
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    hostile_pdfs_fail_while_others_are_ingested,
    hostile_servers_are_left_while_others_are_read,
    hostile_files_of_other_kinds_fail_while_others_are_ingested,
);

const MIB: usize = 1024 * 1024;
/// What a service may hold at its worst, in bytes: that of tests is a debug build, and holds several documents at once.
const PEAK: u64 = 1_024 * MIB as u64;

/// What endless bodies are made of.
static RUN: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// A source, how it is called, and the codes that it may end with.
struct Case {
    r#type: &'static str,
    url: String,
    codes: &'static [&'static str],
}

fn case(r#type: &'static str, url: String, codes: &'static [&'static str]) -> Case {
    Case { r#type, url, codes }
}

async fn start(mode: Mode, settings: &[(&str, &str)]) -> (Service, Client, Web) {
    let mut setup = Service::in_mode(mode)
        .env("LECTERN_WORKER_CONCURRENCY", "4")
        .env("LECTERN_JOB_MAX_ATTEMPTS", "1")
        .env("LECTERN_PARSER_TIMEOUT", "8s");
    for (name, value) in settings {
        setup = setup.env(name, value);
    }
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    (service, client, Web::start().await)
}

/// Ingests all of them with a good document after each, and expects that every one ends as it should.
async fn assert_contained(service: &Service, client: &Client, web: &Web, cases: Vec<Case>) {
    let mut hostile = Vec::new();
    let mut good = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let Case { r#type, url, .. } = case;
        let document = client.create_document(&json!({"name": url, "type": r#type, "url": url})).await;
        hostile.push(id(&document).to_owned());
        let words = format!("The keeper of lighthouse {number} is called Ingrid.");
        let url = web.serve(&format!("/good-{number}.pdf"), "application/pdf", pdf_with_pages(&[&words]));
        let document = client.create_document(&json!({"name": words, "type": "PDF", "url": url})).await;
        good.push((id(&document).to_owned(), words));
    }
    for (document, words) in good {
        let document = client.wait_until_ingested(&document).await;
        assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
        assert_eq!(chunks(client, id(&document)).await[0]["text"], words.as_str());
    }
    let mut wrong = Vec::new();
    for (document, Case { url, codes, .. }) in hostile.iter().zip(&cases) {
        let document = client.wait_until_ingested(document).await;
        let ingestion = &document["ingestion"];
        let code = ingestion["error"]["code"].as_str().unwrap_or_default();
        if ingestion["status"] != "FAILED" || !codes.contains(&code) || document["index"] != Value::Null {
            wrong.push(format!("{url}: {codes:?} expected, not {ingestion:#}"));
        }
        if let Some(sentence) = ingestion["error"]["message"].as_str() {
            assert!(sentence.len() > 20 && sentence.ends_with('.'), "{url}: {sentence}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let peaks = (0..service.worker_count()).map(|worker| service.worker_pid(worker));
    for process in peaks.chain([service.pid()]) {
        let peak = peak_bytes(process);
        assert!(peak < PEAK, "a process held {peak} bytes");
    }
    assert!(client.is_ready().await);
}

/// The most memory that a process has held so far. Where it is not told, nothing.
fn peak_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of KiB") * 1024
}

// --- PDFs ------------------------------------------------------------------------------------------------------------

async fn hostile_pdfs_fail_while_others_are_ingested(mode: Mode) {
    // A child needs 64 MiB of stack and its own code before it has read anything.
    let (service, client, web) = start(mode, &[("LECTERN_PARSER_MEMORY", "512MiB")]).await;
    let serve = |name: &str, bytes: Vec<u8>| web.serve(&format!("/{name}.pdf"), "application/pdf", bytes);
    let whole = long_pdf(20, 20);
    let nothing_or_crash: &[&str] = &["no_extractable_text", "parser_crashed", "damaged"];
    let cases = vec![
        case("PDF", serve("nothing", Vec::new()), &["damaged"]),
        case("PDF", serve("cut-off", whole[..whole.len() / 100].to_vec()), &["damaged"]),
        case(
            "PDF",
            serve("noise", (0..=255).cycle().take(MIB).collect()),
            &["damaged", "unsupported_content_type"],
        ),
        case("PDF", serve("nested-content", nested_content()), nothing_or_crash),
        case("PDF", serve("nested-object", nested_object()), nothing_or_crash),
        case(
            "PDF",
            serve("flate-bomb", flate_bomb("/FlateDecode", &deflated_run(b' ', 1_024 * MIB))),
            nothing_or_crash,
        ),
        case(
            "PDF",
            serve(
                "flate-bomb-in-bomb",
                flate_bomb("[/FlateDecode /FlateDecode]", &deflated_again(&deflated_run(b' ', 1_024 * MIB))),
            ),
            nothing_or_crash,
        ),
        case("PDF", serve("form-loop", form_loop()), nothing_or_crash),
        case("PDF", serve("too-many-pages", empty_pages(10_000)), &["too_many_pages"]),
        case("PDF", serve("empty-pages", empty_pages(4_000)), &["no_extractable_text"]),
    ];
    assert_contained(&service, &client, &web, cases).await;
}

fn nested() -> Vec<u8> {
    [vec![b'['; 2 * MIB], vec![b']'; 2 * MIB]].concat()
}

/// Arrays in arrays, where text is expected.
fn nested_content() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    pdf.add_page("<< >>", &[b"BT ".as_slice(), &nested(), b" TJ ET"].concat());
    pdf.finish()
}

/// Arrays in arrays, where content is expected.
fn nested_object() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let array = pdf.add(nested());
    pdf.add_page_with("<< >>", &format!("{array} 0 R"));
    pdf.finish()
}

fn flate_bomb(filter: &str, data: &[u8]) -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let content = pdf.add_stream(&format!("/Filter {filter}"), data);
    pdf.add_page_with("<< >>", &format!("{content} 0 R"));
    pdf.finish()
}

/// A form that draws itself twice.
fn form_loop() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let form = pdf.next_number();
    let resources = format!("<< /XObject << /F {form} 0 R >> >>");
    let entries = format!("/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources {resources}");
    pdf.add_stream(&entries, b"/F Do /F Do");
    pdf.add_page(&resources, b"/F Do");
    pdf.finish()
}

fn empty_pages(count: usize) -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    (0..count).for_each(|_| pdf.add_empty_page());
    pdf.finish()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_given_up_is_warned_of_and_the_others_are_found() {
    let (_service, client, web) = start(Mode::Embedded, &[]).await;
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &text_content("The ferry leaves at nine."));
    pdf.add_fanning_out_page(12);
    let url = web.serve("/fan.pdf", "application/pdf", pdf.finish());
    let document = client.ingest(&json!({"name": "fan", "type": "PDF", "url": url})).await;
    let warnings = document["ingestion"]["warnings"].as_array().expect("warnings");
    assert_eq!(
        (&warnings[0]["code"], &warnings[0]["count"]),
        (&json!("unreadable_page"), &json!(1)),
        "{document:#}"
    );
    // Of the page itself as much is read as was drawn until then.
    let text = chunks(&client, id(&document)).await[0]["text"].as_str().expect("a text").to_owned();
    assert!(text.starts_with("The ferry leaves at nine.") && text.len() < 1_000, "{text}");
}

/// A PDF of so many pages whose contents all stand behind the pages, as many programs write them, and the numbers of these.
fn contents_last(pages: usize) -> (Vec<u8>, Vec<usize>) {
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    let resources = format!("<< /Font << /F1 {font} 0 R >> >>");
    let first = pdf.next_number() + pages;
    let contents: Vec<usize> = (first..first + pages).collect();
    for content in &contents {
        pdf.add_page_with(&resources, &format!("{content} 0 R"));
    }
    for page in 1..=pages {
        pdf.add_stream("", &text_content(&format!("Page {page} says when its ferry leaves the harbour.")));
    }
    (pdf.finish(), contents)
}

/// The file as far as a download came that broke off a little behind the beginning of an object.
fn broken_off_in(file: &[u8], object: usize) -> Vec<u8> {
    let begin = format!("\n{object} 0 obj\n").into_bytes();
    let at = file.windows(begin.len()).position(|window| window == begin).expect("the object");
    file[..at + begin.len() + 40].to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_a_download_lost_are_warned_of_and_the_others_are_found() {
    let (_service, client, web) = start(Mode::Embedded, &[]).await;
    let (whole, contents) = contents_last(20);
    let url = web.serve("/lost.pdf", "application/pdf", broken_off_in(&whole, contents[12]));
    let document = client.ingest(&json!({"name": "lost", "type": "PDF", "url": url})).await;
    let warnings = document["ingestion"]["warnings"].as_array().expect("warnings");
    let told: Vec<_> = warnings.iter().map(|warning| (&warning["code"], &warning["count"])).collect();
    assert_eq!(told, [(&json!("unreadable_page"), &json!(8))], "{document:#}");
    let text: String =
        chunks(&client, id(&document)).await.iter().filter_map(|chunk| chunk["text"].as_str()).collect();
    assert!(text.contains("Page 12 says when") && !text.contains("Page 13"), "{text}");

    // Of pages that are lost altogether only their number is left, in what lists them.
    let whole = long_pdf(20, 20);
    let url = web.serve("/shorter.pdf", "application/pdf", whole[..whole.len() * 3 / 5].to_vec());
    let document = client.ingest(&json!({"name": "shorter", "type": "PDF", "url": url})).await;
    let warnings = document["ingestion"]["warnings"].as_array().expect("warnings");
    let lost = warnings.iter().find(|warning| warning["code"] == "incomplete_file");
    let lost = lost.and_then(|warning| warning["count"].as_u64());
    let left = document["index"]["pages"].as_u64();
    assert_eq!(lost.zip(left).map(|(lost, left)| lost + left), Some(20), "{document:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_without_a_page_that_is_whole_is_damaged_and_no_scan() {
    let (_service, client, web) = start(Mode::Embedded, &[]).await;
    let (whole, contents) = contents_last(20);
    let url = web.serve("/nothing-left.pdf", "application/pdf", broken_off_in(&whole, contents[0]));
    let document = client.create_document(&json!({"name": "nothing left", "type": "PDF", "url": url})).await;
    let document = client.wait_until_ingested(id(&document)).await;
    let error = &document["ingestion"]["error"];
    assert_eq!(error["code"], "damaged", "{document:#}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("incomplete") && !message.contains("scanned"), "{message}");
}

// --- servers ---------------------------------------------------------------------------------------------------------

async fn hostile_servers_are_left_while_others_are_read(mode: Mode) {
    let settings = [("LECTERN_MAX_SOURCE", "8MiB"), ("LECTERN_FETCH_TIMEOUT", "3s")];
    let (service, client, web) = start(mode, &settings).await;
    let bomb = gzip_of_run(b'x', 1_024 * MIB);
    assert!(bomb.len() < 8 * MIB, "{} bytes are refused before they are unpacked", bomb.len());
    let bomb = web.serve_with_headers("/bomb.txt", "text/plain", &[("content-encoding", "gzip")], bomb);
    let sent = Arc::new(AtomicU64::new(0));
    let gigabyte = serve_stream(&web, "/gigabyte.txt", "text/plain", {
        let sent = Arc::clone(&sent);
        move || run_of(1_024 * MIB, Arc::clone(&sent))
    });
    let slow = serve_stream(&web, "/slow.txt", "text/plain", || {
        stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Bytes::from_static(b"x")
        })
    });
    let captions = serve_stream(&web, "/endless.vtt", "text/vtt", || {
        let head = Bytes::from_static(b"WEBVTT\n\n00:00.000 --> 00:09.000\n");
        stream::iter([head]).chain(stream::repeat(Bytes::from_static(&RUN)))
    });
    let cases = vec![
        case("TXT", bomb, &["too_large"]),
        case("TXT", gigabyte, &["too_large"]),
        case("TXT", slow, &["timeout"]),
        case("VIDEO", captions, &["too_large"]),
        case("PDF", web.endless("/endless.pdf", "application/pdf"), &["too_large"]),
        case("TXT", web.hang("/silent.txt"), &["timeout"]),
    ];
    assert_contained(&service, &client, &web, cases).await;
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 64 * MIB as u64, "{sent} bytes were taken from a source that may have 8 MiB");
}

/// A body of so many bytes, which notes how many of them were asked for.
fn run_of(bytes: usize, sent: Arc<AtomicU64>) -> impl Stream<Item = Bytes> + Send {
    stream::iter(0..bytes / RUN.len()).map(move |_| {
        sent.fetch_add(RUN.len() as u64, Ordering::Relaxed);
        Bytes::from_static(&RUN)
    })
}

fn serve_stream<S: Stream<Item = Bytes> + Send + 'static>(
    web: &Web,
    path: &str,
    content_type: &'static str,
    body: impl Fn() -> S + Send + Sync + 'static,
) -> String {
    web.answer_with(path, move |_| {
        let body = Body::from_stream(body().map(Ok::<_, Infallible>));
        ([(CONTENT_TYPE, content_type)], body).into_response()
    })
}

/// A gzip file of `count` equal bytes. Its checksum is wrong, which nobody finds out who does not unpack it whole.
fn gzip_of_run(byte: u8, count: usize) -> Vec<u8> {
    let size = u32::try_from(count).expect("less than 4 GiB").to_le_bytes();
    [b"\x1f\x8b\x08\0\0\0\0\0\0\xff".as_slice(), &raw_run(byte, count), &[0; 4], &size].concat()
}

/// Deflate data of `count` equal bytes, without what zlib puts around it.
fn raw_run(byte: u8, count: usize) -> Vec<u8> {
    let zlib = deflated_run(byte, count);
    zlib[2..zlib.len() - 4].to_vec()
}

// --- other files -----------------------------------------------------------------------------------------------------

async fn hostile_files_of_other_kinds_fail_while_others_are_ingested(mode: Mode) {
    let settings = [("LECTERN_MAX_CHARACTERS", "2000000"), ("LECTERN_PARSER_MEMORY", "1GiB")];
    let (service, client, web) = start(mode, &settings).await;
    let line = serve_stream(&web, "/line.csv", "text/csv", || {
        // 100 MB without a line's end.
        stream::iter(0..1_600).map(|_| Bytes::from_static(&RUN))
    });
    let document = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    let workbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    let unpacked: &[&str] = &["too_large", "damaged", "parser_crashed"];
    let mut caption = b"WEBVTT\n\n00:00.000 --> 00:09.000\n".to_vec();
    caption.extend(b"yak ".repeat(MIB));
    let parts = format!(
        "From: a@example.com\nContent-Type: multipart/mixed; boundary=a\n\n{}",
        "--a\n\n".repeat(MIB)
    );
    let cases = vec![
        case("TXT", web.serve("/parts.eml", "message/rfc822", parts), &["too_large"]),
        case("CSV", line, &["too_large", "parser_crashed"]),
        case("TXT", web.serve("/bomb.docx", document, zip_bomb(DOCX)), unpacked),
        case("CSV", web.serve("/bomb.xlsx", workbook, zip_bomb(XLSX)), unpacked),
        case("VIDEO", web.serve("/line.vtt", "text/vtt", caption), &["too_large"]),
    ];
    assert_contained(&service, &client, &web, cases).await;

    // What is deep without end may be read as far as it says something, or fail; it may do nothing else.
    let words = "The innermost box holds a lighthouse.";
    let divs = format!("<html><body>{}<p>{words}</p>{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    let json = format!("{}\"{words}\"{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}\"{words}\"{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for (path, content_type, bytes) in [
        ("/deep.html", "text/html", divs),
        ("/deep.json", "application/json", json),
        ("/deeper.json", "application/json", objects),
    ] {
        let url = web.serve(path, content_type, bytes);
        let document = client.create_document(&json!({"name": path, "type": "URL", "url": url})).await;
        let document = client.wait_until_ingested(id(&document)).await;
        let ingestion = &document["ingestion"];
        match ingestion["status"].as_str() {
            Some("SUCCEEDED") => {
                let passages = chunks(&client, id(&document)).await;
                // Where nothing tells where to cut, the sentence may be in two.
                let found = passages.iter().any(|passage| passage["text"].to_string().contains("lighthouse"));
                assert!(found, "{path}: {} passages", passages.len());
            }
            _ => {
                let code = ingestion["error"]["code"].as_str();
                let codes = ["damaged", "too_large", "parser_crashed", "no_extractable_text"];
                assert!(code.is_some_and(|code| codes.contains(&code)), "{path}: {ingestion:#}");
            }
        }
    }
    client.ingest(&json!({"name": "after", "type": "TXT", "content": "Still here."})).await;
}

/// What a document needs to be taken for one, and the part in it that is the bomb.
type Package = (&'static [(&'static str, &'static str)], &'static str);

const DOCX: Package = (
    &[
        (
            "[Content_Types].xml",
            r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#,
        ),
        (
            "_rels/.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"#,
        ),
    ],
    "word/document.xml",
);

const XLSX: Package = (
    &[
        (
            "[Content_Types].xml",
            r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"#,
        ),
        (
            "_rels/.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
        ),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#,
        ),
        (
            "xl/workbook.xml",
            r#"<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
        ),
    ],
    "xl/worksheets/sheet1.xml",
);

/// A package of which one part is a gigabyte of blanks.
fn zip_bomb((parts, bomb): Package) -> Vec<u8> {
    const SIZE: usize = 1_024 * MIB;
    let mut zip = Zip::default();
    for (name, text) in parts {
        zip.add(name, 0, crc32(text.as_bytes()), text.len(), text.as_bytes());
    }
    // As in the gzip bomb, whoever gets as far as the checksum has been had already.
    zip.add(bomb, 8, 0, SIZE, &raw_run(b' ', SIZE));
    zip.finish()
}

/// Writes a zip archive.
#[derive(Default)]
struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl Zip {
    /// Adds data that is stored (method 0) or deflated (8) already.
    fn add(&mut self, name: &str, method: u16, crc: u32, size: usize, data: &[u8]) {
        let four = |number: usize| u32::try_from(number).expect("less than 4 GiB").to_le_bytes();
        let length = u16::try_from(name.len()).expect("a short name").to_le_bytes();
        let fields = [
            b"\x14\0\0\0".as_slice(),
            &method.to_le_bytes(),
            &[0, 0, 0x21, 0],
            &crc.to_le_bytes(),
            &four(data.len()),
            &four(size),
            &length,
            &[0; 2],
        ]
        .concat();
        let at = four(self.bytes.len());
        self.bytes.extend([b"PK\x03\x04".as_slice(), &fields, name.as_bytes(), data].concat());
        self.directory
            .extend([b"PK\x01\x02\x14\0".as_slice(), &fields, &[0; 10], &at, name.as_bytes()].concat());
        self.entries += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        let four = |number: usize| u32::try_from(number).expect("less than 4 GiB").to_le_bytes();
        let (at, length) = (four(self.bytes.len()), four(self.directory.len()));
        self.bytes.append(&mut self.directory);
        let count = self.entries.to_le_bytes();
        self.bytes.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count, &length, &at, &[0; 2]].concat());
        self.bytes
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1)))
    })
}
