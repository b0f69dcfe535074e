//! Where documents come from: sources that have not changed, several addresses of one document, and what each kind of source
//! keeps of the places in it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, data, id},
        in_both_modes,
        pdf::pdf_with_pages,
        process::POLL,
        service::{Mode, Service},
        web::Web,
        within_deadline,
    },
};

in_both_modes!(
    a_source_that_has_not_changed_is_not_sent_again,
    the_same_bytes_are_the_same_document_whatever_the_server_says,
    several_addresses_are_one_document_and_the_ones_that_are_gone_are_named,
    a_comma_in_an_address_parts_nothing,
    passages_of_markdown_stand_under_their_headings,
    passages_of_a_web_page_stand_under_its_headings,
    passages_of_a_table_name_the_rows_they_hold,
    a_table_of_a_header_alone_says_the_names_of_its_columns,
    passages_of_captions_name_the_seconds_in_which_they_are_said,
    a_line_that_moves_up_when_the_next_one_comes_is_said_once,
    passages_of_a_pdf_name_the_pages_they_stand_on,
    a_passage_is_found_by_the_heading_that_it_stands_under,
    an_old_splitter_name_is_understood_and_noted
);

async fn signed_up(mode: Mode) -> (Service, Client) {
    let service = Service::in_mode(mode).env("LECTERN_JOB_MAX_ATTEMPTS", "2").start().await;
    let client = service.signed_up("ada@example.com").await;
    (service, client)
}

/// Asks for another ingestion and waits for its end.
async fn ingest_again(client: &Client, document: &Value) -> Value {
    client.create(&format!("/documents/{}/ingest", id(document)), &json!({})).await;
    client.wait_until_ingested(id(document)).await
}

fn chunk_ids(passages: &[Value]) -> Vec<&str> {
    passages.iter().map(|passage| passage["chunkId"].as_str().expect("an id")).collect()
}

async fn a_source_that_has_not_changed_is_not_sent_again(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let version = Arc::new(AtomicUsize::new(1));
    let url = web.answer_with("/page.txt", {
        let version = Arc::clone(&version);
        move |seen| {
            let version = version.load(Ordering::SeqCst);
            let tag = format!("\"v{version}\"");
            if seen.headers.get(header::IF_NONE_MATCH).is_some_and(|sent| *sent == tag.as_str()) {
                return StatusCode::NOT_MODIFIED.into_response();
            }
            let text = format!("Version {version} of the page \u{fffd}.");
            ([(header::ETAG, tag), (header::CONTENT_TYPE, "text/plain".to_owned())], text).into_response()
        }
    });
    let first = client.ingest(&json!({"name": "page", "type": "TXT", "url": url})).await;
    let before = chunks(&client, id(&first)).await;

    let again = ingest_again(&client, &first).await;
    assert_eq!(again["ingestion"]["status"], "SUCCEEDED", "{again:#}");
    assert_eq!(web.requests("/page.txt")[1].headers[header::IF_NONE_MATCH], "\"v1\"");
    assert_eq!(again["ingestion"]["source"], first["ingestion"]["source"]);
    assert_eq!(again["index"]["contentHash"], first["index"]["contentHash"]);
    assert_eq!(chunk_ids(&chunks(&client, id(&first)).await), chunk_ids(&before));

    version.store(2, Ordering::SeqCst);
    ingest_again(&client, &first).await;
    assert_eq!(chunks(&client, id(&first)).await[0]["text"], "Version 2 of the page \u{fffd}.");

    // Another splitter makes other passages of the same bytes, so they are asked for without a condition.
    let path = format!("/documents/{}", id(&first));
    client.patch(&path, &json!({"splitter": {"type": "character", "chunk_size": 20}})).await;
    let cut = client.wait_until_ingested(id(&first)).await;
    assert_eq!(cut["index"]["chunks"], 2, "{cut:#}");
    let last = web.requests("/page.txt").pop().expect("a request");
    assert!(!last.headers.contains_key(header::IF_NONE_MATCH));
}

async fn the_same_bytes_are_the_same_document_whatever_the_server_says(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let url = web.serve("/same.csv", "text/csv", "name,city\nAda,London\nGrace,\"Arlington, VA\",extra\n");
    let first = client.ingest(&json!({"name": "people", "type": "CSV", "url": url})).await;
    let warnings = first["ingestion"]["warnings"].as_array().expect("warnings");
    assert!(!warnings.is_empty(), "a field too many is noted: {first:#}");
    let again = ingest_again(&client, &first).await;
    assert_eq!(again["index"]["contentHash"], first["index"]["contentHash"]);
    assert_eq!(again["ingestion"]["warnings"], first["ingestion"]["warnings"]);
    assert_ne!(again["index"]["indexedAt"], first["index"]["indexedAt"]);
}

async fn several_addresses_are_one_document_and_the_ones_that_are_gone_are_named(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let page = |title: &str, text: &str| {
        format!(
            "<html><head><title>{title}</title></head><body><article><h1>{title}</h1><p>{text}</p></article></body></html>"
        )
    };
    let one = web.serve(
        "/one",
        "text/html",
        page("Opening hours", "The library opens at nine in the morning on weekdays."),
    );
    let two = web.serve("/two.txt", "text/plain", "The reading room closes at ten in the evening.");
    let gone = web.url("/gone");
    let url = format!("{one}, {gone},{two}");
    let document = client.ingest(&json!({"name": "library", "type": "URL", "url": url})).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
    assert_eq!(document["url"], url);
    let warning = &document["ingestion"]["warnings"][0];
    assert_eq!(
        (&warning["code"], &warning["count"]),
        (&json!("address_left_out"), &json!(1)),
        "{document:#}"
    );
    let passages = chunks(&client, id(&document)).await;
    let text: String = passages.iter().filter_map(|passage| passage["text"].as_str()).collect();
    assert!(text.contains("opens at nine") && text.contains("closes at ten"), "{text}");
    assert_eq!(passages[0]["place"]["heading"][0], "Opening hours");
    // Each passage leads to the address that it is from.
    assert_eq!((&passages[0]["place"]["address"], &passages[1]["place"]["address"]), (&json!(1), &json!(3)));
    let found = data(client.post("/search", &json!({"query": "When does the reading room close?"})).await);
    assert_eq!(found[0]["url"], two, "{found:#}");

    let nothing = json!({"name": "gone", "type": "URL", "url": format!("{gone}, {gone}")});
    let failed = client.create_document(&nothing).await;
    let failed = client.wait_until_ingested(id(&failed)).await;
    assert_eq!(failed["ingestion"]["error"]["code"], "not_found", "{failed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_many_of_several_addresses_are_read_is_told_meanwhile() {
    let (_service, client) = signed_up(Mode::Embedded).await;
    let web = Web::start().await;
    let one = web.serve("/one.txt", "text/plain", "The library opens at nine.");
    let (two, gate) = web.gate("/two.txt", "text/plain", "The reading room closes at ten.");
    let body = json!({"name": "library", "type": "URL", "url": format!("{one}, {two}")});
    let document = client.create_document(&body).await;
    gate.wait_until_reached().await;
    let path = format!("/documents/{}", id(&document));
    let told = async {
        while client.read(&path).await["ingestion"]["progress"]
            != json!({"done": 1, "total": 2, "unit": "addresses"})
        {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the number of addresses", told).await;
    gate.release();
    let document = client.wait_until_ingested(id(&document)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
}

async fn a_comma_in_an_address_parts_nothing(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let url = web.serve("/map/@51.5,-0.1,12z", "text/plain", "The map of a town.");
    let document = client.ingest(&json!({"name": "map", "type": "URL", "url": url})).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
}

/// Sections of Markdown, each long enough for a passage of its own.
fn sections() -> String {
    let section = |n: usize| {
        format!("## Section {n}\n\n{}\n\n", format!("This is told in section {n} only. ").repeat(30))
    };
    format!(
        "# Handbook\n\nAn **introduction** of a few words.\n\n{}",
        (1..=8).map(section).collect::<String>()
    )
}

fn assert_under_headings(passages: &[Value]) {
    assert!(passages.len() >= 8, "{}", passages.len());
    for passage in passages {
        let text = passage["text"].as_str().expect("text");
        for n in (1..=8).filter(|n| text.contains(&format!("told in section {n} only"))) {
            let heading = &passage["place"]["heading"];
            // The first one may begin above the first section.
            let above = text.starts_with("# Handbook");
            let path = if above { json!(["Handbook"]) } else { json!(["Handbook", format!("Section {n}")]) };
            assert_eq!(*heading, path, "{text}");
        }
    }
}

async fn passages_of_markdown_stand_under_their_headings(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let inline = client.ingest(&json!({"name": "handbook", "type": "TXT", "content": sections()})).await;
    assert_under_headings(&chunks(&client, id(&inline)).await);
}

async fn passages_of_a_web_page_stand_under_its_headings(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let section = |n: usize| {
        let text = format!("This is told in section {n} only. ").repeat(30);
        format!("<h2>Section {n}</h2><p>{text}</p>")
    };
    let html = format!(
        "<!doctype html><html><head><title>Handbook</title><link rel=canonical href='/handbook'></head><body>
         <nav><a href=/a>Home</a> <a href=/b>Shop</a> <a href=/c>About us</a></nav>
         <main><article><h1>Handbook</h1><p>An introduction of a few words, so that there is one.</p>{}</article></main>
         <footer>Terms and cookies</footer></body></html>",
        (1..=8).map(section).collect::<String>()
    );
    let url = web.serve("/old-address", "text/html; charset=utf-8", html);
    let document = client.ingest(&json!({"name": "handbook", "type": "URL", "url": url})).await;
    let source = &document["ingestion"]["source"];
    assert_eq!(source["title"], "Handbook", "{document:#}");
    assert_eq!(source["canonicalUrl"], web.url("/handbook"));
    let passages = chunks(&client, id(&document)).await;
    assert_under_headings(&passages);
    for passage in &passages {
        let text = passage["text"].as_str().expect("text");
        assert!(!text.contains("cookies") && !text.contains("Shop"), "{text}");
    }
}

async fn passages_of_a_table_name_the_rows_they_hold(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let row = |n: usize| format!("{n};person {n}.;\"Street {n}; back yard\"\n");
    let table = format!("number;name;address\n{}", (1..=500).map(row).collect::<String>());
    let document = client.ingest(&json!({"name": "people", "type": "CSV", "content": table})).await;
    let passages = chunks(&client, id(&document)).await;
    assert!(passages.len() > 5, "{document:#}");
    let mut next = 1;
    for passage in &passages {
        let place = |name: &str| passage["place"][name].as_u64().expect("a row");
        assert_eq!(place("row"), next, "{passage:#}");
        let text = passage["text"].as_str().expect("text");
        for n in place("row")..=place("rowEnd") {
            assert!(text.contains(&format!("name: person {n}.")), "row {n} is not in {text}");
            assert!(text.contains(&format!("address: Street {n}; back yard")), "row {n} is not in {text}");
        }
        next = place("rowEnd") + 1;
    }
    assert_eq!(next, 501);
}

async fn a_table_of_a_header_alone_says_the_names_of_its_columns(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let document =
        client.ingest(&json!({"name": "people", "type": "CSV", "content": "number;name;address\n"})).await;
    let passages = chunks(&client, id(&document)).await;
    assert_eq!(passages.len(), 1, "{passages:#?}");
    assert_eq!(passages[0]["text"], "number, name, address");
    assert_eq!(passages[0]["place"]["row"], Value::Null);
}

async fn a_line_that_moves_up_when_the_next_one_comes_is_said_once(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let cues = [
        "00:00.000 --> 00:01.000\nSo\n",
        "00:01.000 --> 00:02.000\nSo today\n",
        "00:02.000 --> 00:04.000\nSo today\nwe sail\n",
        "00:04.000 --> 00:06.000\nto the harbour\n",
        "00:06.000 --> 00:08.000\nwhere the ferry\n",
        "00:08.000 --> 00:10.000\nlies at anchor\n",
        "00:10.000 --> 00:12.000\nand waits\n",
        "00:12.000 --> 00:14.000\nfor the wind\n",
        "00:14.000 --> 00:16.000\nfrom the north.\n",
    ];
    let content = format!("WEBVTT\n\n{}", cues.join("\n"));
    let document = client.ingest(&json!({"name": "talk", "type": "VIDEO", "content": content})).await;
    let passages = chunks(&client, id(&document)).await;
    assert_eq!(
        passages[0]["text"],
        "So today we sail to the harbour where the ferry lies at anchor and waits for the wind from the north."
    );
}

async fn passages_of_captions_name_the_seconds_in_which_they_are_said(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let stamp =
        |seconds: usize| format!("{:02}:{:02}:{:02}.000", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let cue = |n: usize| format!("{} --> {}\nThis is cue number {n}.\n\n", stamp(n * 4), stamp(n * 4 + 3));
    let vtt = format!("WEBVTT\n\n{}", (0..400).map(cue).collect::<String>());
    let url = web.serve("/talk.vtt", "text/vtt", vtt.clone());
    for body in [
        json!({"name": "talk", "type": "VIDEO", "url": url}),
        json!({"name": "talk", "type": "VIDEO", "content": vtt}),
    ] {
        let document = client.ingest(&body).await;
        assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
        let passages = chunks(&client, id(&document)).await;
        assert!(passages.len() > 5, "{}", passages.len());
        let mut seen = 0;
        for passage in &passages {
            let place = |name: &str| passage["place"][name].as_f64().expect("seconds");
            let (start, end) = (place("start"), place("end"));
            let text = passage["text"].as_str().expect("text");
            for n in (0..400).filter(|n| text.contains(&format!("This is cue number {n}."))) {
                let (from, to) = (f64::from(n) * 4.0, f64::from(n) * 4.0 + 3.0);
                assert!(start <= from && to <= end, "cue {n} is not between {start} and {end}");
                seen += 1;
            }
            let said = text.matches("This is cue number").count();
            let lasts = end - start;
            assert!(
                lasts <= f64::from(u32::try_from(said + 2).expect("few")) * 4.0,
                "{lasts} s for {said} cues"
            );
        }
        assert!(seen >= 390, "{seen} of 400 cues are whole in a passage");
    }
}

async fn passages_of_a_pdf_name_the_pages_they_stand_on(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let page = |n: usize| {
        (0..25)
            .map(|line| format!("Sentence {line} stands on page number {n} of it."))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let pages: Vec<String> = (1..=12).map(page).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let url = web.serve("/file.pdf", "application/pdf", pdf_with_pages(&pages));
    let body = json!({"name": "file", "type": "PDF", "url": url, "from_page": 3, "to_page": "11"});
    let document = client.ingest(&body).await;
    assert_eq!(document["index"]["pages"], 9, "{document:#}");
    for passage in chunks(&client, id(&document)).await {
        let place = |name: &str| passage["place"][name].as_u64().expect("a page");
        let (first, last) = (place("page"), place("pageEnd"));
        let text = passage["text"].as_str().expect("text");
        let on: Vec<u64> = (1..=12).filter(|n| text.contains(&format!("on page number {n} of it"))).collect();
        assert_eq!((on[0], *on.last().expect("a page")), (first, last), "{text}");
        assert!((3..=11).contains(&first) && (3..=11).contains(&last));
    }
}

async fn a_passage_is_found_by_the_heading_that_it_stands_under(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let section = |title: &str| {
        let text = "They have to be asked for in writing, two weeks before, at the front office. ".repeat(40);
        format!("## {title}\n\n{text}\n\n")
    };
    let text = format!("# Rules\n\n{}{}", section("Sabbaticals"), section("Parking permits"));
    let document = client.ingest(&json!({"name": "rules", "type": "TXT", "content": text})).await;
    let agent = client.create_agent(&json!({"name": "clerk", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&document)).await;
    let (_, answer) = client.predict(id(&agent), "Parking permits").await;
    let found = &answer["trace"]["steps"][0]["documents"][0]["place"]["heading"];
    assert_eq!(*found, json!(["Rules", "Parking permits"]), "{answer:#}");
    let passages = chunks(&client, id(&document)).await;
    let later = passages.iter().rfind(|passage| passage["place"]["heading"][1] == "Parking permits");
    let text = later.expect("a passage")["text"].as_str().expect("text");
    assert!(!text.contains("Parking"), "what can be quoted is the text alone: {text}");
}

async fn an_old_splitter_name_is_understood_and_noted(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let text = "A sentence of some words. ".repeat(100);
    let splitter = json!({"type": "RecursiveCharacterTextSplitter", "chunk_size": 200, "chunk_overlap": 0});
    let document =
        client.ingest(&json!({"name": "a", "type": "TXT", "content": text, "splitter": splitter})).await;
    assert_eq!(document["splitter"]["type"], "recursive", "{document:#}");
    assert_eq!(document["ingestion"]["warnings"][0]["code"], "legacy_splitter", "{document:#}");
    for passage in chunks(&client, id(&document)).await {
        assert!(passage["text"].as_str().expect("text").len() <= 200);
    }
}
