//! Pages of PDFs as pictures, with what is quoted marked where it stands; what read a document, and reading it again.

use std::fmt::Write as _;

use reqwest::{
    Method, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, envelope, id, send},
        command::{lectern, meddle, upload},
        in_both_modes,
        pdf::{PdfBuilder, fanning_out_pdf, pdf_with_pages},
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    a_page_is_drawn_with_a_quote_marked_where_it_stands,
    a_citation_shows_its_page_to_whoever_has_the_link,
    what_an_engine_read_is_told_and_read_again_when_the_operator_says_so
);

/// Lines 16 points apart, the first 60 points from the top of a page of 595 by 842.
const LINES: [&str; 4] = [
    "The lighthouse of Eastquay was lit for the first time in 1847.",
    "Its keeper, Solveig Aas, trimmed the wick every four hours.",
    "In the storm of 14 February the ketch Marigold went down.",
    "The register of arrivals is kept in the harbour office.",
];
const LEFT: f64 = 72.0;
const FIRST: f64 = 60.0;
const APART: f64 = 16.0;

/// A document of two pages with these lines on the second.
fn report() -> Vec<u8> {
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    let resources = format!("<< /Font << /F1 {font} 0 R >> >>");
    pdf.add_page(&resources, b"BT /F1 12 Tf 72 700 Td (A title page that says nothing of ships.) Tj ET");
    let mut content = "BT /F1 12 Tf\n".to_owned();
    for (at, line) in LINES.iter().enumerate() {
        let y = 842.0 - FIRST - APART * f64::from(u32::try_from(at).unwrap());
        writeln!(content, "1 0 0 1 {LEFT} {y} Tm ({line}) Tj").unwrap();
    }
    content.push_str("ET");
    pdf.add_page(&resources, content.as_bytes());
    pdf.finish()
}

async fn uploaded(client: &Client, name: &str, bytes: &[u8]) -> Value {
    let made = upload(client, name, bytes).await;
    let document = client.wait_until_ingested(id(&made)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
    document
}

async fn page(client: &Client, document: &Value, rest: &str) -> Response {
    send(client.request(Method::GET, &format!("/documents/{}/pages/{rest}", id(document)))).await
}

/// The boxes of an image that was answered: left, top, right, bottom.
fn boxes(answer: &Response) -> Vec<[f64; 4]> {
    let Some(header) = answer.headers().get("lectern-page-boxes") else { return Vec::new() };
    let edges = |place: &str| -> [f64; 4] {
        let edges: Vec<f64> = place.split(',').map(|edge| edge.parse().expect("a number")).collect();
        edges.try_into().expect("four edges")
    };
    header.to_str().expect("text").split(';').map(edges).collect()
}

/// Whether a box covers a line of the report, and none of the lines beside it.
fn covers(place: [f64; 4], line: usize) -> bool {
    let [left, top, right, bottom] = place;
    let base = FIRST + APART * f64::from(u32::try_from(line).unwrap());
    // Helvetica's letters at 12 points are nearly 5 points wide on average.
    let width = 4.7 * f64::from(u32::try_from(LINES[line].len()).unwrap());
    (LEFT - 3.0..=LEFT + 1.0).contains(&left)
        && right >= LEFT + width
        && (base - APART..base - 7.0).contains(&top)
        && (base..base + APART / 2.0).contains(&bottom)
}

/// One sentence a page: all of them are one passage.
const SLIDES: [&str; 12] = [
    "Welcome to the yearly report of the port.",
    "Our new crane lifts twenty tons at once.",
    "Rain fell on ninety days of the past season.",
    "Every ferry now carries a second engine.",
    "A library for sailors was opened in June.",
    "Two piers were built anew with oak beams.",
    "Fees for small boats stay as they are.",
    "The old signal mast is a monument since May.",
    "Forty herring boats were counted before noon.",
    "School classes may visit the dock on Mondays.",
    "Night watch is kept by three guards and a dog.",
    "Thanks go to all who mended the broken quay.",
];

#[tokio::test(flavor = "multi_thread")]
async fn words_of_a_passage_over_many_pages_are_cited_on_their_own_page() {
    const QUESTION: &str = "How many herring boats were counted?";
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let file = pdf_with_pages(&SLIDES);
    let document = uploaded(&client, "slides.pdf", &file).await;
    let passages = chunks(&client, id(&document)).await;
    let place = &passages[0]["place"];
    assert_eq!((passages.len(), &place["page"], &place["pageEnd"]), (1, &json!(1), &json!(12)), "{place:#}");
    assert_eq!(place["pageStarts"].as_array().map(Vec::len), Some(11), "{place:#}");

    let agent = client.create_agent(&json!({"name": "guide", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&document)).await;
    let body = json!({"model": id(&agent), "messages": [{"role": "user", "content": QUESTION}]});
    let request = client.request_anywhere(Method::POST, "/v1/chat/completions").json(&body);
    let answer: Value = send(request).await.json().await.expect("JSON");
    let message = &answer["choices"][0]["message"];
    let text = message["content"].as_str().expect("a text");
    assert!(text.contains("(slides.pdf, page 9)"), "{text}");
    let annotation = &message["annotations"][0];
    assert_eq!(annotation["lectern"]["page"], 9, "{annotation:#}");
    assert_eq!(annotation["lectern"]["place"]["pageEnd"], 12, "the passage's own place stays");
    let link = annotation["url_citation"]["url"].as_str().expect("a link");
    let path = format!("/cite/{}", link.split_once("/cite/").expect("a link of a citation").1);
    let shown = send(client.request_outside(Method::GET, &path)).await.text().await.expect("a page");
    assert!(shown.contains("alt=\"Page 9, with the quoted words marked"), "{shown}");
    assert!(shown.contains("<p class=\"place\">Page 9</p>"), "{shown}");
    let image = send(client.request_outside(Method::GET, &format!("{path}/page.png"))).await;
    assert_eq!(boxes(&image).len(), 1, "the words are marked");

    // Each page has what stands on it, and nothing of the others.
    let passage = passages[0]["chunkId"].as_str().expect("an id");
    let of_passage = page(&client, &document, &format!("9?width=1200&highlight={passage}")).await;
    assert_eq!(boxes(&of_passage), boxes(&image));
    let start = place["pageStarts"][7].as_u64().expect("where page 9 begins");
    let range = format!("{start}-{}", start + 20);
    assert_eq!(boxes(&page(&client, &document, &format!("9?highlight={range}")).await).len(), 1);
    assert!(boxes(&page(&client, &document, &format!("1?highlight={range}")).await).is_empty());

    // At an address, the link leads to the page.
    let web = Web::start().await;
    let url = web.serve("/slides.pdf", "application/pdf", file);
    let linked = client.ingest(&json!({"name": "linked.pdf", "type": "PDF", "url": url})).await;
    let other = client.create_agent(&json!({"name": "other", "type": "CHATVENDOR"})).await;
    client.link(id(&other), id(&linked)).await;
    let (_, answer) = client.predict(id(&other), QUESTION).await;
    let citation = &answer["trace"]["citations"][0];
    assert_eq!(
        (&citation["page"], &citation["url"]),
        (&json!(9), &json!(format!("{url}#page=9"))),
        "{citation:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_words_those_are_marked_that_a_range_names() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = "Agreement\nThis Agreement is made by two parties.\nThey end the Agreement in writing.";
    let document = uploaded(&client, "contract.pdf", &pdf_with_pages(&[text, "The schedule of fees."])).await;
    let passages = chunks(&client, id(&document)).await;
    let read = passages[0]["text"].as_str().expect("a text");
    let begins = passages[0]["place"]["charStart"].as_u64().expect("where it begins");
    let mut tops = Vec::new();
    for (at, word) in read.match_indices("Agreement") {
        let start = begins + read[..at].chars().count() as u64;
        let range = format!("{start}-{}", start + word.len() as u64);
        let marked = boxes(&page(&client, &document, &format!("1?highlight={range}")).await);
        assert_eq!(marked.len(), 1, "{range}: {marked:?}");
        tops.push(marked[0][1]);
        let twice = page(&client, &document, &format!("1?highlight={range},{range}")).await;
        assert_eq!(boxes(&twice), marked, "once, however often it is named");
    }
    assert_eq!(tops.len(), 3, "{read}");
    assert!(tops.windows(2).all(|pair| pair[0] + 5.0 < pair[1]), "each on its own line: {tops:?}");
}

async fn a_page_is_drawn_with_a_quote_marked_where_it_stands(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = uploaded(&client, "report.pdf", &report()).await;
    assert_eq!(document["index"]["engine"], "hayro", "{document:#}");
    let pages = client.read(&format!("/documents/{}/pages", id(&document))).await;
    assert_eq!(pages.as_array().expect("pages").len(), 2);
    assert_eq!((&pages[1]["page"], &pages[1]["hasText"]), (&json!(2), &json!(true)));
    assert_eq!((&pages[1]["width"], &pages[1]["height"]), (&json!(595.0), &json!(842.0)));
    assert!(pages[1]["chars"].as_u64() > Some(200), "{pages:#}");

    // By characters of the text, which is what the passages hold.
    let chunks = chunks(&client, id(&document)).await;
    let chunk =
        chunks.iter().find(|chunk| chunk["text"].as_str().unwrap().contains(LINES[2])).expect("it is there");
    let begin = chunk["place"]["charStart"].as_u64().unwrap();
    let before = chunk["text"].as_str().unwrap().split(LINES[2]).next().unwrap().chars().count() as u64;
    let start = begin + before;
    let range = format!("{start}-{}", start + LINES[2].chars().count() as u64);
    let answer = page(&client, &document, &format!("2?width=800&highlight={range}")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()[CONTENT_TYPE], "image/png");
    assert_eq!(answer.headers()[CACHE_CONTROL], "private, no-cache");
    let [place] = boxes(&answer)[..] else { panic!("one line is marked: {:?}", boxes(&answer)) };
    assert!(covers(place, 2), "{place:?}");
    let tag = answer.headers()[ETAG].clone();
    let image = answer.bytes().await.expect("bytes");
    assert!(image.starts_with(b"\x89PNG"));
    // Width and height stand behind the first chunk's name.
    let side = |at: usize| u32::from_be_bytes(image[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (800, 1_132));

    // The whole passage: every line of the page has a box.
    let passage = chunk["chunkId"].as_str().unwrap();
    let answer = page(&client, &document, &format!("2?highlight={passage}")).await;
    let marked = boxes(&answer);
    assert!((0..LINES.len()).all(|line| marked.iter().any(|place| covers(*place, line))), "{marked:?}");
    assert_ne!(answer.headers()[ETAG], tag);
    // Without anything to mark, and as WebP.
    let plain = page(&client, &document, "1?format=webp").await;
    assert_eq!(plain.headers()[CONTENT_TYPE], "image/webp");
    assert!(boxes(&plain).is_empty());
    assert_eq!(plain.bytes().await.expect("bytes").get(8..12), Some(b"WEBP".as_slice()));

    let path = format!("/documents/{}/pages/2?width=800&highlight={range}", id(&document));
    let again = send(client.request(Method::GET, &path).header(IF_NONE_MATCH, &tag)).await;
    assert_eq!((again.status(), &again.headers()[ETAG]), (StatusCode::NOT_MODIFIED, &tag));
}

#[tokio::test]
async fn what_cannot_be_shown_is_told_with_what_to_change() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = uploaded(&client, "report.pdf", &report()).await;
    for (rest, status, words) in [
        ("3", StatusCode::NOT_FOUND, "2 pages"),
        ("0", StatusCode::NOT_FOUND, "page"),
        ("x", StatusCode::NOT_FOUND, "page"),
        ("1?width=199", StatusCode::UNPROCESSABLE_ENTITY, "200 and 2400"),
        ("1?width=x", StatusCode::UNPROCESSABLE_ENTITY, "200 and 2400"),
        ("1?format=gif", StatusCode::UNPROCESSABLE_ENTITY, "png or webp"),
        ("1?highlight=9-3", StatusCode::UNPROCESSABLE_ENTITY, "start-end"),
    ] {
        let (told, body) = envelope(page(&client, &document, rest).await).await;
        assert_eq!(told, status, "{rest}: {body:#}");
        assert!(body["error"].to_string().contains(words), "{rest}: {body:#}");
    }
    let text = uploaded(&client, "note.txt", b"The gate is green.").await;
    let linked = client.ingest(&json!({"name": "Note", "type": "TXT", "content": "The gate."})).await;
    let broken = upload(&client, "broken.pdf", b"%PDF-1.7\n1 0 obj\n<<").await;
    let broken = client.wait_until_ingested(id(&broken)).await;
    assert_eq!(broken["ingestion"]["error"]["code"], "damaged", "{broken:#}");
    let request = client.request(Method::GET, &format!("/documents/{}/pages", id(&broken)));
    let (status, body) = envelope(send(request).await).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::NOT_FOUND, &json!("no_page_images")));
    assert!(body["error"].to_string().contains("could not be read"), "{body:#}");
    for (document, words) in [(&text, "no PDF"), (&linked, "only PDFs have them that were uploaded")] {
        for path in ["pages", "pages/1"] {
            let request = client.request(Method::GET, &format!("/documents/{}/{path}", id(document)));
            let (status, body) = envelope(send(request).await).await;
            assert_eq!((status, &body["error"]["code"]), (StatusCode::NOT_FOUND, &json!("no_page_images")));
            assert!(body["error"].to_string().contains(words), "{body:#}");
        }
    }
    // Another's is not there.
    let other = service.signed_up("eve@example.com").await;
    let (status, body) = envelope(page(&other, &document, "1").await).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::NOT_FOUND, &json!("not_found")), "{body:#}");
    // A passage of nobody's marks nothing.
    let answer = page(&client, &document, &format!("2?highlight={}", uuid::Uuid::nil())).await;
    assert_eq!((answer.status(), boxes(&answer).len()), (StatusCode::OK, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_takes_too_long_is_given_up_and_keeps_nobody_waiting() {
    let setup = Service::in_mode(Mode::Embedded).env("LECTERN_PAGE_IMAGE_TIMEOUT", "2s");
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let other = service.signed_up("bob@example.com").await;
    // Each form draws the next one ten times: more than anybody waits for.
    let endless = uploaded_any(&client, "endless.pdf", &fanning_out_pdf(12)).await;
    let fine = uploaded(&other, "report.pdf", &report()).await;
    let slow = tokio::spawn({
        let (client, endless) = (client.clone(), endless.clone());
        async move { envelope(page(&client, &endless, "1").await).await }
    });
    // Both of the two places cannot be taken by one workspace.
    let answer = page(&other, &fine, "2").await;
    assert_eq!(answer.status(), StatusCode::OK);
    let (status, body) = slow.await.expect("it ends");
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    assert_eq!(body["error"]["code"], "page_not_drawn", "{body:#}");
    assert!(body["error"].to_string().contains("than is allowed"), "{body:#}");
}

/// Uploads a file that may have no text.
async fn uploaded_any(client: &Client, name: &str, bytes: &[u8]) -> Value {
    let made = upload(client, name, bytes).await;
    client.wait_until_ingested(id(&made)).await
}

async fn a_citation_shows_its_page_to_whoever_has_the_link(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = uploaded(&client, "report.pdf", &report()).await;
    let agent = client.create_agent(&json!({"name": "guide", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&document)).await;
    let question = "Who was the keeper that trimmed the wick?";
    let body = json!({"model": id(&agent), "messages": [{"role": "user", "content": question}]});
    let request = client.request_anywhere(Method::POST, "/v1/chat/completions").json(&body);
    let answer: Value = send(request).await.json().await.expect("JSON");
    let link = &answer["choices"][0]["message"]["annotations"][0]["url_citation"]["url"];
    let link = link.as_str().unwrap_or_else(|| panic!("nothing is cited: {answer:#}"));
    let path = format!("/cite/{}", link.split_once("/cite/").expect("a link of a citation").1);
    let shown = send(client.request_outside(Method::GET, &path)).await.text().await.expect("a page");
    let token = path.rsplit('/').next().unwrap();
    assert!(
        shown.contains(&format!("<img src=\"{token}/page.png\" width=\"595\" height=\"842\" alt=\"")),
        "{shown}"
    );
    let image = send(client.request_outside(Method::GET, &format!("{path}/page.png"))).await;
    assert_eq!(
        (image.status(), &image.headers()[CONTENT_TYPE]),
        (StatusCode::OK, &"image/png".parse().unwrap())
    );
    let marked = boxes(&image);
    assert!(marked.iter().any(|place| covers(*place, 1)), "the words are marked: {marked:?}");
    let changed = send(client.request_outside(Method::GET, &format!("/cite/x{token}/page.png"))).await;
    assert_eq!(changed.status(), StatusCode::NOT_FOUND);
    let deleted = send(client.request(Method::DELETE, &format!("/documents/{}", id(&document)))).await;
    assert_eq!(deleted.status(), StatusCode::OK);
    let gone = send(client.request_outside(Method::GET, &format!("{path}/page.png"))).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND, "what is deleted is not shown, drawn before or not");
}

async fn what_an_engine_read_is_told_and_read_again_when_the_operator_says_so(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = uploaded(&client, "report.pdf", &pdf_with_pages(&["one page", "and another"])).await;
    let note = client.ingest(&json!({"name": "Note", "type": "TXT", "content": "The gate."})).await;
    assert_eq!((&document["index"]["engine"], &note["index"]["engine"]), (&json!("hayro"), &Value::Null));
    // What the command is asked for is not a line of the log.
    let setup = service.sibling().env("LECTERN_LOG", "warn");
    let ran = |arguments: &[&str]| lectern(&setup, arguments).well().out;
    assert!(ran(&["reingest", "--engine", "pdf_oxide"]).starts_with("queued: 0;"));
    assert_eq!(ran(&["reingest", "--engine", "hayro", "--dry-run"]), "would be read again: 1\n");
    assert_eq!(client.read(&format!("/documents/{}", id(&document))).await["index"], document["index"]);

    // As what version 0.1 had read.
    let former = document["index"]["generation"].as_str().unwrap();
    let forget = async |statement: &str| meddle(mode, &setup, statement).await;
    assert_eq!(forget("UPDATE generations SET engine = NULL WHERE engine IS NOT NULL").await, 1);
    assert_eq!(forget("DELETE FROM pages").await, 2);
    assert!(ran(&["reingest", "--engine", "unknown"]).starts_with("queued: 1;"));
    let read = client.wait_until_ingested(id(&document)).await;
    assert_ne!(read["index"]["generation"], former);
    assert_eq!(read["index"]["engine"], "hayro", "{read:#}");
    let pages = client.read(&format!("/documents/{}/pages", id(&document))).await;
    assert_eq!(pages.as_array().expect("pages").len(), 2);
    let refused = lectern(&setup, &["reingest", "--engine", "poppler"]);
    assert!(!refused.status.success() && refused.log.contains("hayro, pdf_oxide, pdfium, unknown, all"));
}
