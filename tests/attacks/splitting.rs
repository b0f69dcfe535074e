//! Texts made to be cut by the square of their length: each is cut in time, or fails with a code that says why, while others are
//! served.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, id},
        in_both_modes,
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    a_document_that_takes_too_much_processor_time_fails_for_good_while_others_are_ingested,
    deepening_quotes_are_cut_whole,
    too_many_passages_are_refused_with_what_to_change,
    texts_of_every_kind_read_alike_whether_they_are_short_or_long,
);

const MIB: usize = 1024 * 1024;

/// Lines, each of which is quoted once more than the one before.
pub fn deepening(mark: &str, bytes: usize) -> String {
    let mut text = String::from("# Quotes\n\n");
    for depth in 1.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&mark.repeat(depth));
        text.push_str("word\n");
    }
    text
}

fn filled(pattern: &str, bytes: usize) -> String {
    pattern.repeat(bytes.div_ceil(pattern.len()))
}

async fn start(mode: Mode, settings: &[(&str, &str)]) -> (Service, Client, Web) {
    let mut setup = Service::in_mode(mode);
    for (name, value) in settings {
        setup = setup.env(name, value);
    }
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    (service, client, Web::start().await)
}

async fn a_document_that_takes_too_much_processor_time_fails_for_good_while_others_are_ingested(mode: Mode) {
    let settings = [("LECTERN_PROCESSOR_TIME", "1s"), ("LECTERN_WORKER_CONCURRENCY", "2")];
    let (_service, client, web) = start(mode, &settings).await;
    let url = web.serve("/long.md", "text/markdown", filled("# A\n\n*b* [c](d) `e`\n\n", 12 * MIB));
    let long = client.create_document(&json!({"name": "long", "type": "TXT", "url": url})).await;
    client.ingest(&json!({"name": "short", "type": "TXT", "content": "The ferry leaves at nine."})).await;
    let long = client.wait_until_ingested(id(&long)).await;
    let ingestion = &long["ingestion"];
    assert_eq!(ingestion["status"], "FAILED", "{long:#}");
    assert_eq!(ingestion["error"]["code"], "timeout", "{ingestion:#}");
    assert_eq!(ingestion["error"]["retryable"], false, "{ingestion:#}");
    let message = ingestion["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("more than 1 s") && message.contains("Split it"), "{message}");
    client.ingest(&json!({"name": "after", "type": "TXT", "content": "Still here."})).await;
}

async fn deepening_quotes_are_cut_whole(mode: Mode) {
    let (_service, client, web) = start(mode, &[]).await;
    let url = web.serve("/quotes.md", "text/markdown", deepening("> ", 700_000));
    let document = client.ingest(&json!({"name": "quotes", "type": "TXT", "url": url})).await;
    let passages = chunks(&client, id(&document)).await;
    assert!(passages.len() > 100, "{}", passages.len());
    assert!(passages[0]["text"].as_str().is_some_and(|text| text.starts_with("# Quotes")));
}

async fn too_many_passages_are_refused_with_what_to_change(mode: Mode) {
    let (_service, client, _web) = start(mode, &[("LECTERN_MAX_PASSAGES", "100")]).await;
    let content = "One sentence here. ".repeat(500);
    let splitter = json!({"type": "character", "chunk_size": 20, "chunk_overlap": 10});
    let many = json!({"name": "many", "type": "TXT", "content": content, "splitter": splitter});
    let document = client.create_document(&many).await;
    let document = client.wait_until_ingested(id(&document)).await;
    let error = &document["ingestion"]["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("too_large"), &json!(false)), "{document:#}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("chunk_size")), "{error:#}");
    client.ingest(&json!({"name": "few", "type": "TXT", "content": content})).await;
}

/// What is short is read by the worker itself, and what is long in a process of its own.
async fn texts_of_every_kind_read_alike_whether_they_are_short_or_long(mode: Mode) {
    let (_service, client, web) = start(mode, &[]).await;
    let section = |n: usize| format!("## Part {n}\n\nGrün is told in part {n}, and *more* of it.\n\n");
    let cue = |n: usize| {
        format!(
            "00:{:02}:{:02}.000 --> 00:{:02}:{:02}.500\nWas said as number {n}.\n\n",
            n / 60,
            n % 60,
            n / 60,
            n % 60
        )
    };
    let markdown = |parts: usize| (0..parts).map(section).collect::<String>();
    let captions = |cues: usize| format!("WEBVTT\n\n{}", (0..cues).map(cue).collect::<String>());
    for (name, r#type, content_type, short, long) in [
        ("a.md", "TXT", "text/markdown", markdown(20), markdown(2_000)),
        ("a.vtt", "VIDEO", "text/vtt", captions(20), captions(3_000)),
        (
            "a.txt",
            "TXT",
            "text/plain",
            "Plain words of it. ".repeat(20),
            "Plain words of it. ".repeat(10_000),
        ),
    ] {
        let mut first = Vec::new();
        for (kind, text) in [("short", short), ("long", long)] {
            let url = web.serve(&format!("/{kind}/{name}"), content_type, text);
            let document = client.ingest(&json!({"name": kind, "type": r#type, "url": url})).await;
            let passage = chunks(&client, id(&document)).await.swap_remove(0);
            first.push([passage["place"]["heading"].clone(), passage["place"]["start"].clone()]);
            assert!(
                passage["text"].as_str().is_some_and(|text| !text.contains("-->")),
                "{name}: {passage:#}"
            );
        }
        assert_eq!(first[0], first[1], "{name}");
    }
}

/// What takes the most: 20 MB of each, with a minute of processor time. `scripts/attack.sh splitting` runs it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and says something only of a release build"]
async fn twenty_megabytes_of_the_worst_texts_are_cut_within_a_minute_of_processor_time() {
    let settings = [("LECTERN_PROCESSOR_TIME", "1m"), ("LECTERN_WORKER_CONCURRENCY", "1")];
    let (_service, client, web) = start(Mode::Embedded, &settings).await;
    let bytes = 19 * MIB;
    let half = bytes / 2;
    let combining = format!("a{}", "\u{301}".repeat(half / 2));
    let spaces = format!("{}{}", filled("a b c d e f g ", 2_000), " ".repeat(60_000));
    let texts = [
        ("deepening quotes", deepening("> ", bytes)),
        ("deepening lists", deepening("- ", bytes)),
        ("lazy lines under deep quotes", "> ".repeat(half / 2) + "a\n" + &filled("a\n", half)),
        ("one line without spaces", "x".repeat(bytes)),
        ("newlines", "\n".repeat(bytes)),
        ("letters on lines", filled("a\n", bytes)),
        ("headings", filled("# a\n", bytes)),
        ("a table", format!("|a|b|\n|-|-|\n{}", filled("|a|b|\n", bytes))),
        ("combining marks", combining),
        ("emphasis", filled("*a **b", bytes)),
        ("nested emphasis", filled("*a ", half) + &filled(" a*", half)),
        ("brackets", filled("[", bytes)),
        ("definitions", filled("[a]: b 'c\n", bytes)),
        ("punctuation", filled("!?.,;:", bytes)),
        ("blanks", filled(&spaces, bytes)),
        ("digits", filled("1234567890", bytes)),
        ("one sentence", filled("word and ", bytes)),
        ("quotation", filled("\"a' ", bytes)),
    ];
    let mut wrong = Vec::new();
    for (name, text) in &texts {
        let text: String = text.chars().take(19_900_000).collect();
        let url = web.serve(&format!("/{}.md", name.replace(' ', "-")), "text/markdown", text);
        for (kind, size, overlap) in [("token", 400, 60), ("token", 20, 10), ("markdown", 20_000, 10_000)] {
            let splitter = json!({"type": kind, "chunk_size": size, "chunk_overlap": overlap});
            let began = Instant::now();
            let body = json!({"name": name, "type": "TXT", "url": url, "splitter": splitter});
            let document = client.create_document(&body).await;
            let document = until_split(&client, id(&document)).await;
            let error = document["ingestion"]["error"]["code"].as_str().unwrap_or("none").to_owned();
            eprintln!("{name}, {kind} {size}/{overlap}: {:?}, error {error}", began.elapsed());
            // Passages of twenty tokens are more than one document may have.
            if !["none", "no_extractable_text", "too_large"].contains(&error.as_str()) {
                wrong.push(format!("{name}, {kind} {size}/{overlap}: {error}"));
            }
            client.delete(&format!("/documents/{}", id(&document))).await;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Waits until a document is cut, or has failed: writing passages is another matter.
async fn until_split(client: &Client, document: &str) -> Value {
    let deadline = Instant::now() + Duration::from_mins(10);
    loop {
        let document = client.read(&format!("/documents/{document}")).await;
        let ingestion = &document["ingestion"];
        let is_past = matches!(ingestion["stage"].as_str(), Some("EMBED" | "INDEX"));
        if is_past || matches!(ingestion["status"].as_str(), Some("SUCCEEDED" | "FAILED")) {
            return document;
        }
        assert!(Instant::now() < deadline, "{document:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
