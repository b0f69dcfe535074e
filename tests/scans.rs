//! Scanned pages: recognised with the tesseract that `TEST_TESSERACT` names, in order and in their places; without one, a
//! document says what is missing of it.

use std::{fmt::Write as _, fs::Permissions, os::unix::fs::PermissionsExt};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, id, send},
        command::upload,
        in_both_modes,
        pdf::{PdfBuilder, pdf_with_pages, text_content},
        process::POLL,
        scan::{PAGE, ScanPlace, add_photo, drawn, likeness, scan, with_tesseract},
        service::{Mode, Service, Setup},
        within_deadline,
    },
};

in_both_modes!(
    a_scan_comes_back_with_its_text_and_a_quote_is_marked_on_it,
    a_tesseract_that_takes_its_time_holds_up_documents_and_nobody_else
);

/// What the pages say that are scanned: prose with names, numbers and marks.
const PROSE: &str = "\
The Harbour Office of Eastquay, founded in 1847, keeps a register of every ship that enters.
In the winter of 1903 the clerk, Mrs. Adelaide Thornbury, wrote down 2,316 arrivals by hand.
\"No vessel,\" she noted on the first page, \"shall be left out, however small it may be.\"
Most of them were colliers from the north; 418 carried timber, and 77 came with salted fish.
A storm on 14 February sank the ketch Marigold within sight of the lighthouse (no lives lost).
Her cargo of oranges washed ashore for weeks, and children sold them at two for a penny.
The inquiry, which cost the town 36 pounds, blamed a lamp whose wick had not been trimmed.
Since then the keeper signs his name at 6, 9 and 12 o'clock, and once more before dawn.
Visitors may read the register on Thursdays between ten and four; gloves must be worn.
Copies are made for a fee: 15 pence a page, or one pound for a bound volume of a year.
The oldest leaves have suffered from damp, yet nearly all the names can still be made out.
A catalogue of ships, masters and cargoes was begun in 1988 and is complete up to 1921.
Questions about single voyages are answered by post, usually within three to five weeks.
Whoever finds a mistake is asked to report it; about forty have been corrected so far.";

/// The line of it that is quoted.
const QUOTED: usize = 6;

/// Two columns of another page.
const LEFT: &str = "\
Bees leave the hive when the
morning has warmed above ten
degrees. They fly up to three
miles for clover and lime, and
carry home a third of their own
weight. A good colony gathers
sixty pounds of honey in one
summer, of which it needs about
half to live through the winter.
The keeper takes the other half
and leaves sugar in its place.";
const RIGHT: &str = "\
Wasps build with paper. They
scrape grey wood from fences,
chew it, and spread it in thin
bands that dry within minutes.
Each band is a journey, and a
nest as large as a football has
taken a hundred thousand trips.
When frost comes the workers
die; only young queens sleep on
beneath the bark of old trees
until the sun calls them out.";

/// A document's text, put together from its passages, which overlap.
async fn text_of(client: &Client, document: &str) -> String {
    let mut text: Vec<char> = Vec::new();
    for passage in chunks(client, document).await {
        let start = usize::try_from(passage["place"]["charStart"].as_u64().expect("a number")).unwrap();
        // Only white space is left out between passages.
        text.resize(text.len().max(start), '\n');
        text.extend(passage["text"].as_str().expect("text").chars().skip(text.len() - start));
    }
    text.into_iter().collect()
}

/// Uploads a PDF and waits until it is searchable.
async fn ingested(client: &Client, pdf: PdfBuilder) -> Value {
    let created = upload(client, "scan.pdf", &pdf.finish()).await;
    let document = client.wait_until_ingested(id(&created)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{:#}", document["ingestion"]);
    document
}

/// The text of a document of one page that shows nothing but an image.
async fn recognised(client: &Client, png: &[u8], place: ScanPlace) -> String {
    let document = ingested(client, scan(png, place, 1)).await;
    text_of(client, id(&document)).await
}

/// A warning of a document, as its count and its sentence.
fn warning(document: &Value, code: &str) -> Option<(u64, String)> {
    let warnings = document["ingestion"]["warnings"].as_array().expect("an array");
    let warning = warnings.iter().find(|warning| warning["code"] == code)?;
    Some((warning["count"].as_u64().expect("a number"), warning["message"].as_str().unwrap().to_owned()))
}

/// Fails unless at least 98 % of a text was read.
fn assert_read(known: &str, read: &str, what: &str) {
    let share = likeness(known, read);
    assert!(share >= 0.98, "{what}: {share:.3} of the text was read: {read}");
}

async fn a_scan_comes_back_with_its_text_and_a_quote_is_marked_on_it(mode: Mode) {
    let Some(setup) = with_tesseract(Service::in_mode(mode)) else { return };
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let known = upload(&client, "known.pdf", &pdf_with_pages(&[PROSE])).await;
    client.wait_until_ingested(id(&known)).await;
    let png = drawn(&client, id(&known), 1).await;
    let scan = ingested(&client, scan(&png, ScanPlace::Upright, 1)).await;
    assert_eq!(warning(&scan, "ocr_pages").map(|(count, _)| count), Some(1), "{scan:#}");
    assert_eq!(warning(&scan, "pages_without_text"), None);
    let read = text_of(&client, id(&scan)).await;
    assert_read(PROSE, &read, "the scan");

    let quote = PROSE.lines().nth(QUOTED).unwrap();
    let at = read.find(quote).unwrap_or_else(|| panic!("{quote:?} is not in {read}"));
    let start = read[..at].chars().count();
    let range = format!("{start}-{}", start + quote.chars().count());
    let boxes = boxes(&client, id(&scan), &range).await;
    let [[left, top, right, bottom]] = boxes[..] else { panic!("a line has one box, not {boxes:?}") };
    // Where the builder writes: lines of 14 points from 52 points below the upper edge on, letters of 11.2 points.
    let base = 52.0 + 14.0 * f64::from(u32::try_from(QUOTED).unwrap());
    assert!((base - 14.0..base - 6.0).contains(&top), "{boxes:?}");
    assert!((base - 1.0..base + 6.0).contains(&bottom), "{boxes:?}");
    assert!((44.0..52.0).contains(&left), "{boxes:?}");
    assert!((400.0..PAGE.0).contains(&right), "{boxes:?}");
}

/// The boxes that are marked on the first page of a document, in points.
async fn boxes(client: &Client, document: &str, highlight: &str) -> Vec<[f64; 4]> {
    let path = format!("/documents/{document}/pages/1?highlight={highlight}");
    let answer = send(client.request(Method::GET, &path)).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let header =
        answer.headers().get("lectern-page-boxes").expect("boxes").to_str().expect("text").to_owned();
    let edges = |place: &str| -> Vec<f64> {
        place.split(',').map(|edge| edge.trim().parse().expect("a number")).collect()
    };
    header.split(';').map(|place| edges(place).try_into().expect("four edges")).collect()
}

#[tokio::test]
async fn columns_come_one_after_the_other_and_turned_pages_as_they_should_be_read() {
    let Some(setup) = with_tesseract(Service::in_mode(Mode::Embedded)) else { return };
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let mut known = PdfBuilder::new();
    let font = known.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    let resources = format!("<< /Font << /F1 {font} 0 R >> >>");
    known.add_page(&resources, &text_content(PROSE));
    known.add_page(&resources, columns().as_bytes());
    let known = ingested(&client, known).await;

    let png = drawn(&client, id(&known), 2).await;
    let read = recognised(&client, &png, ScanPlace::Upright).await;
    assert_read(&format!("{LEFT} {RIGHT}"), &read, "two columns");
    let png = drawn(&client, id(&known), 1).await;
    let places = [90, 180, 270].map(ScanPlace::Turned);
    for place in places.into_iter().chain([ScanPlace::UprightOnTurnedPage]) {
        assert_read(PROSE, &recognised(&client, &png, place).await, &format!("{place:?}"));
    }
}

/// Content with both columns beside each other, line by line.
fn columns() -> String {
    let mut content = "BT /F1 13 Tf\n".to_owned();
    for (row, (left, right)) in LEFT.lines().zip(RIGHT.lines()).enumerate() {
        let y = 760 - 17 * row;
        writeln!(content, "1 0 0 1 60 {y} Tm ({left}) Tj 1 0 0 1 320 {y} Tm ({right}) Tj").unwrap();
    }
    content + "ET"
}

#[tokio::test]
async fn a_photo_says_nothing_and_the_document_tells_so() {
    let Some(setup) = with_tesseract(Service::in_mode(Mode::Embedded)) else { return };
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &text_content(PROSE));
    add_photo(&mut pdf);
    let document = ingested(&client, pdf).await;
    let read = text_of(&client, id(&document)).await;
    // Not a letter more.
    assert!(likeness(PROSE, &read) > 0.9999, "{read}");
    let (count, message) = warning(&document, "pages_without_text").expect("a warning");
    assert_eq!(count, 1);
    assert!(message.starts_with("1 of 2 pages has no text"), "{message}");
    assert_eq!(warning(&document, "ocr_pages"), None);
}

#[tokio::test]
async fn without_recognition_a_document_says_how_many_of_its_pages_have_no_text() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_OCR", "off").start().await;
    let client = service.signed_up("ada@example.com").await;
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &text_content(PROSE));
    add_photo(&mut pdf);
    pdf.add_empty_page();
    add_photo(&mut pdf);
    let document = ingested(&client, pdf).await;
    let (count, message) = warning(&document, "pages_without_text").expect("a warning");
    assert_eq!(count, 2);
    assert!(message.starts_with("2 of 4 pages have no text"), "{message}");
    assert!(message.contains("LECTERN_OCR"), "{message}");

    let mut pdf = PdfBuilder::new();
    (0..3).for_each(|_| add_photo(&mut pdf));
    let created = upload(&client, "scans.pdf", &pdf.finish()).await;
    let document = client.wait_until_ingested(id(&created)).await;
    assert_eq!(document["ingestion"]["error"]["code"], "no_extractable_text", "{document:#}");
}

#[tokio::test]
async fn a_service_that_must_read_scans_does_not_start_without_tesseract() {
    // Nothing is there but what the tests start the service with.
    let folder = tempfile::tempdir().unwrap();
    let all = std::env::var_os("PATH").unwrap();
    let setpriv =
        std::env::split_paths(&all).map(|folder| folder.join("setpriv")).find(|path| path.is_file());
    std::os::unix::fs::symlink(setpriv.expect("setpriv"), folder.path().join("setpriv")).unwrap();
    let path = folder.path().to_str().unwrap();
    let setup = Service::in_mode(Mode::Embedded).env("LECTERN_OCR", "on").env("PATH", path);
    let refusal = setup.start_refused().await;
    assert!(!refusal.status.success());
    assert!(refusal.log.contains("apt-get install tesseract-ocr"), "{}", refusal.log);
}

/// A service with a tesseract that says which languages it has when there is a file `go` in this folder, and has made a file `asked` there
/// before. A page may take it longer than a test is patient. It ends with the folder, whoever has been killed meanwhile.
fn with_slow_tesseract(mode: Mode) -> (TempDir, Setup) {
    let folder = tempfile::tempdir().unwrap();
    let (program, place) = (folder.path().join("tesseract"), folder.path().display());
    let script = format!(
        "#!/bin/sh\ncd {place} && : > asked\nuntil [ -e go ] || [ ! -e asked ]; do sleep 0.05; done\n\
         echo 'List of available languages (1):'\necho eng\n"
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{place}:{}", std::env::var("PATH").unwrap());
    let setup = Service::in_mode(mode).env("PATH", &path).env("LECTERN_OCR_TIMEOUT", "1h");
    (folder, setup)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_waits_for_tesseract_can_be_stopped() {
    let (folder, setup) = with_slow_tesseract(Mode::Embedded);
    let mut service = setup.env("LECTERN_OCR", "on").begin().await;
    let asked = async {
        while !folder.path().join("asked").exists() {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("tesseract to be asked", asked).await;
    let status = service.terminate().await;
    assert_eq!(status.code(), Some(0), "{status}");
}

async fn a_tesseract_that_takes_its_time_holds_up_documents_and_nobody_else(mode: Mode) {
    let (folder, setup) = with_slow_tesseract(mode);
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let note = json!({"name": "note", "type": "TXT", "content": "Bicycles belong in the cellar."});
    let created = client.create_document(&note).await;
    let shown = client.read(&format!("/documents/{}", id(&created))).await;
    assert_eq!(shown["ingestion"]["status"], "QUEUED", "{shown:#}");

    std::fs::write(folder.path().join("go"), "").unwrap();
    let document = client.wait_until_ingested(id(&created)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
}

/// `TEST_SCAN_PAGES` makes it more pages: 200 of them take some minutes.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn many_scans_at_once_keep_to_the_number_of_jobs_and_to_the_memory_setting() {
    use crate::support::{DEADLINE, process::POLL};

    const DOCUMENTS: usize = 4;
    const JOBS: usize = 2;
    const MEMORY: u64 = 640 << 20;
    let Some(setup) = with_tesseract(Service::in_mode(Mode::Embedded)) else { return };
    let setup = setup.env("LECTERN_WORKER_CONCURRENCY", &JOBS.to_string());
    let service = setup.env("LECTERN_PARSER_MEMORY", &format!("{MEMORY}B")).start().await;
    let client = service.signed_up("ada@example.com").await;
    let pages: usize = std::env::var("TEST_SCAN_PAGES").map_or(8, |pages| pages.parse().expect("a number"));
    let known = upload(&client, "known.pdf", &pdf_with_pages(&[PROSE])).await;
    client.wait_until_ingested(id(&known)).await;
    let png = drawn(&client, id(&known), 1).await;
    let mut created = Vec::new();
    for _ in 0..DOCUMENTS {
        let pdf = scan(&png, ScanPlace::Upright, pages / DOCUMENTS);
        created.push(id(&upload(&client, "scans.pdf", &pdf.finish()).await).to_owned());
    }
    let (mut most, mut largest) = (0, 0);
    let ended = async {
        for document in &created {
            loop {
                let running = recognisers(service.pid());
                most = most.max(running.len());
                largest = running.into_iter().fold(largest, u64::max);
                let document = client.read(&format!("/documents/{document}")).await;
                let status = document["ingestion"]["status"].as_str().expect("a status").to_owned();
                if matches!(status.as_str(), "SUCCEEDED" | "FAILED" | "CANCELLED") {
                    assert_eq!(status, "SUCCEEDED", "{document:#}");
                    let (count, _) = warning(&document, "ocr_pages").expect("a warning");
                    assert_eq!(usize::try_from(count).unwrap(), pages / DOCUMENTS);
                    break;
                }
                tokio::time::sleep(POLL).await;
            }
        }
    };
    let patience = DEADLINE * u32::try_from(pages.div_ceil(8)).unwrap();
    tokio::time::timeout(patience, ended).await.expect("all of them end");
    assert!((1..=JOBS).contains(&most), "{most} recognisers at once");
    assert!((1..=MEMORY).contains(&largest), "a recogniser had {largest} bytes");
}

/// The recognisers that a service runs at this moment, by the most address space that each had.
#[cfg(target_os = "linux")]
fn recognisers(service: u32) -> Vec<u64> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        // One that ends meanwhile is no matter.
        let Ok(status) = std::fs::read_to_string(process.path().join("status")) else { continue };
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if value("Name:") != Some("tesseract") || value("PPid:") != Some(service.to_string().as_str()) {
            continue;
        }
        let size = value("VmPeak:").and_then(|size| size.trim_end_matches(" kB").parse::<u64>().ok());
        found.extend(size.map(|kib| kib << 10));
    }
    found
}
