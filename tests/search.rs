//! Searching passages: what is found and in what order, what it is narrowed to, and that nothing is ever shown of what is not
//! there yet, not there any more, or somebody else's.

mod languages;
mod narrowed;
mod requests;
mod under_load;
mod with_model;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::{Client, data, id},
        in_both_modes, on_postgres_too,
        pdf::{PdfBuilder, pdf_with_pages, text_content},
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    a_question_finds_the_passage_that_answers_it_with_its_place,
    as_many_passages_come_as_were_asked_for_best_first,
    a_documents_name_is_searched_too,
    the_sections_of_a_pdfs_outline_are_searched_too,
    a_copy_is_named_and_takes_no_place,
    nothing_is_found_where_there_is_nothing,
    without_a_model_what_needs_one_is_refused_and_all_else_is_found_by_words
);

on_postgres_too!(a_question_finds_the_passage_that_answers_it_with_its_place);

/// The passages that a search finds.
async fn search(client: &Client, body: Value) -> Vec<Value> {
    let found = client.create("/search", &body).await;
    found.as_array().unwrap_or_else(|| panic!("no array for {body}: {found:#}")).clone()
}

/// The passages that a question finds in all documents.
async fn ask(client: &Client, question: &str) -> Vec<Value> {
    search(client, json!({ "query": question })).await
}

/// A field of each passage, in their order.
fn each<'a>(found: &'a [Value], field: &str) -> Vec<&'a str> {
    found.iter().map(|passage| passage[field].as_str().expect("text")).collect()
}

/// The names of the documents that passages are from, sorted, each once.
fn names(found: &[Value]) -> Vec<&str> {
    let mut names = each(found, "documentName");
    names.sort_unstable();
    names.dedup();
    names
}

/// A text document.
fn note(name: &str, content: &str) -> Value {
    json!({ "name": name, "type": "TXT", "content": content })
}

/// A text document whose paragraphs, of at most `longest` characters each, are its passages.
fn of_paragraphs(name: &str, longest: usize, paragraphs: &[String]) -> Value {
    let mut body = note(name, &paragraphs.join("\n\n"));
    body["splitter"] = json!({ "type": "character", "chunk_size": longest, "chunk_overlap": 0 });
    body
}

/// A document of so many passages, each about a gate of its own.
fn gates(name: &str, count: usize) -> Value {
    let paragraphs: Vec<String> =
        (0..count).map(|number| format!("Gate {number} leads to tower{number} yard.")).collect();
    of_paragraphs(name, 40, &paragraphs)
}

async fn a_question_finds_the_passage_that_answers_it_with_its_place(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let pages = [
        "Chapter one. The expedition left Bergen in the spring of 1911.",
        "Chapter two. Its captain, Solveig Aas, had sailed the route twice before.",
    ];
    let report = web.serve("/report.pdf", "application/pdf", pdf_with_pages(&pages));
    let captions = "WEBVTT\n\n00:01:23.500 --> 00:01:27.000\nThe stoker was called Nils Berg.\n";
    let talk = web.serve("/talk.vtt", "text/vtt", captions.as_bytes().to_vec());
    let page = "<html><body><main><h1>Crew</h1><h2>Below deck</h2>\
                <p>The engineer who repaired the pump was Ingrid Moe, born in Tromsø.</p></main></body></html>";
    let page = web.serve("/crew", "text/html", page);
    let splitter = json!({ "type": "character", "chunk_size": 80, "chunk_overlap": 0 });
    let of_each_type = [
        json!({ "name": "Report", "type": "PDF", "url": report, "splitter": splitter }),
        json!({ "name": "Talk", "type": "VIDEO", "url": talk }),
        json!({ "name": "Crew", "type": "URL", "url": page }),
        json!({ "name": "Stores", "type": "CSV", "content": "thing,crates\nbiscuit,40\nrope,7\n" }),
        note("Letter", "Før avreise: the cook Peder Lie came on board."),
    ];
    let mut passages = Vec::new();
    for body in &of_each_type {
        let document = client.ingest(body).await;
        passages.extend(chunks(&client, id(&document)).await);
    }

    for (question, name, place, url) in [
        (
            "Which captain had sailed the route?",
            "Report",
            json!({ "page": 2 }),
            json!(format!("{report}#page=2")),
        ),
        (
            "What was the stoker called?",
            "Talk",
            json!({ "start": 83.5, "end": 87.0 }),
            json!(format!("{talk}#t=83")),
        ),
        ("Which engineer repaired the pump?", "Crew", json!({ "heading": ["Crew"] }), json!(page)),
        ("How many crates of rope?", "Stores", json!({ "row": 1, "rowEnd": 2 }), Value::Null),
        ("Which cook came on board?", "Letter", json!({ "charStart": 0, "charEnd": 46 }), Value::Null),
    ] {
        let found = ask(&client, question).await;
        let first = &found[0];
        assert_eq!(first["documentName"], name, "{question}: {found:#?}");
        for (field, expected) in place.as_object().expect("an object") {
            assert_eq!(&first["place"][field], expected, "{field} for {question}: {first:#}");
        }
        assert_eq!(first["url"], url, "{question}");
        let chunk = passages.iter().find(|chunk| chunk["chunkId"] == first["chunkId"]);
        let chunk = chunk.unwrap_or_else(|| panic!("no passage of the document: {first:#}"));
        assert_eq!((&chunk["text"], &chunk["place"]), (&first["text"], &first["place"]), "{question}");
        let scores = &first["scores"];
        assert_eq!(scores["dense"], Value::Null, "there is no model: {first:#}");
        assert!(scores["lexical"].as_f64().is_some_and(|score| score > 0.0), "{first:#}");
        assert!(first["score"].is_number(), "{first:#}");
    }
}

async fn as_many_passages_come_as_were_asked_for_best_first(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    client.ingest(&gates("Gates", 60)).await;
    for (limit, expected) in [(json!(1), 1), (json!(2), 2), (json!(50), 50), (Value::Null, 10)] {
        let found = search(&client, json!({ "query": "Where does gate 17 lead?", "limit": limit })).await;
        assert_eq!(found.len(), expected, "limit {limit}");
        assert_eq!(found[0]["text"], "Gate 17 leads to tower17 yard.", "limit {limit}");
        let scores: Vec<f64> =
            found.iter().map(|passage| passage["score"].as_f64().expect("a number")).collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        let mut ids = each(&found, "chunkId");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), expected, "no passage comes twice");
    }
    let again = search(&client, json!({ "query": "yard", "limit": 50 })).await;
    for _ in 0..3 {
        let order = search(&client, json!({ "query": "yard", "limit": 50 })).await;
        assert_eq!(each(&order, "chunkId"), each(&again, "chunkId"), "ties break alike every time");
    }
    client.ingest(&note("Bell", "The bell rings at dawn.")).await;
    assert_eq!(ask(&client, "bell").await.len(), 1, "fewer match than were asked for");
}

async fn a_documents_name_is_searched_too(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    client.ingest(&note("Lighthouse manual", "Wind it every evening at dusk.")).await;
    client.ingest(&note("Cookbook", "Boil it every evening until soft.")).await;
    let found = ask(&client, "lighthouse").await;
    assert_eq!(each(&found, "text"), ["Wind it every evening at dusk."]);
    let found = ask(&client, "What do I do every evening with the lighthouse?").await;
    assert_eq!(found[0]["documentName"], "Lighthouse manual", "{found:#?}");

    let cookbook = ask(&client, "cookbook").await;
    let path = format!("/documents/{}", cookbook[0]["documentId"].as_str().expect("an id"));
    client.patch(&path, &json!({ "name": "Recipes" })).await;
    client.wait_until_ingested(path.trim_start_matches("/documents/")).await;
    assert_eq!(ask(&client, "cookbook").await, [] as [Value; 0], "its earlier name finds nothing");
    assert_eq!(names(&ask(&client, "recipes").await), ["Recipes"]);
}

async fn the_sections_of_a_pdfs_outline_are_searched_too(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let mut pdf = PdfBuilder::new();
    let font = pdf.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    for text in [
        "They are checked every spring.",
        "They are checked every autumn.\nPumps\nThey are greased once a month.",
    ] {
        pdf.add_page(&format!("<< /Font << /F1 {font} 0 R >> >>"), &text_content(text));
    }
    let pages = pdf.page_numbers().to_vec();
    let at = |page: usize| format!("/Dest [{} 0 R /Fit]", pages[page]);
    pdf.outline(&[
        (0, "Maintenance", at(0)),
        (1, "Boilers", at(0)),
        (1, "Chimneys", at(1)),
        (1, "Pumps", at(1)),
    ]);
    let manual = web.serve("/manual.pdf", "application/pdf", pdf.finish());
    let splitter = json!({ "type": "character", "chunk_size": 40, "chunk_overlap": 0 });
    client.ingest(&json!({ "name": "Manual", "type": "PDF", "url": manual, "splitter": splitter })).await;
    for (question, page, heading, words) in [
        ("How often are boilers checked?", 1, "Boilers", "spring"),
        ("How often are chimneys checked?", 2, "Chimneys", "autumn"),
        ("When does a pump get grease?", 2, "Pumps", "once a month"),
    ] {
        let found = ask(&client, question).await;
        let place = &found[0]["place"];
        assert_eq!(
            (&place["page"], &place["heading"]),
            (&json!(page), &json!(["Maintenance", heading])),
            "{found:#?}"
        );
        assert!(found[0]["text"].as_str().unwrap().contains(words), "{found:#?}");
    }
}

async fn a_copy_is_named_and_takes_no_place(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = "Bicycles belong in the cellar, on the hooks along the northern wall.";
    let mut ids = Vec::new();
    for (name, text) in [
        ("Rules", text.to_owned()),
        ("Rules (copy)", text.replace(' ', "\n").to_uppercase()),
        ("Other rules", text.replace("Bicycles", "Prams")),
    ] {
        ids.push(id(&client.ingest(&note(name, &text)).await).to_owned());
    }
    let found = ask(&client, "Where in the cellar do bicycles belong?").await;
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[1]["documentName"], "Other rules");
    let shown = found[0]["documentId"].as_str().expect("an id");
    let copy = if shown == ids[0] { &ids[1] } else { &ids[0] };
    let chunk = chunks(&client, copy).await[0]["chunkId"].clone();
    assert_eq!(found[0]["alsoIn"], json!([{ "documentId": copy, "chunkId": chunk }]));
    assert_eq!(found[1]["alsoIn"], json!([]));

    data(client.delete(&format!("/documents/{shown}")).await);
    let found = ask(&client, "Where in the cellar do bicycles belong?").await;
    assert_eq!((&found[0]["documentId"], &found[0]["alsoIn"]), (&json!(copy), &json!([])), "{found:#?}");
}

async fn nothing_is_found_where_there_is_nothing(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_JOB_MAX_ATTEMPTS", "1").start().await;
    let client = service.signed_up("ada@example.com").await;
    assert_eq!(ask(&client, "gate").await, [] as [Value; 0], "no documents");
    let lost = json!({ "name": "lost gate", "type": "TXT", "url": crate::bodies::NOWHERE });
    let lost = client.wait_until_ingested(id(&client.create_document(&lost).await)).await;
    let of_lost = json!({ "query": "gate", "documentIds": [id(&lost)] });
    assert_eq!(search(&client, of_lost).await, [] as [Value; 0], "one that was never ingested");
    client.ingest(&note("Rules", "The gate is not to be left open.")).await;
    for question in
        ["the", "is it not to be?", "…", "?!", "-", "\u{1f469}\u{200d}\u{1f680}", "zzyzx", "\u{301}"]
    {
        let found = ask(&client, question).await;
        assert!(found.len() <= 1, "{question:?}: {found:#?}");
    }
    assert_eq!(ask(&client, "zzyzx quux").await, [] as [Value; 0], "words that are nowhere");
    assert_eq!(names(&ask(&client, "gate").await), ["Rules"]);
}

async fn without_a_model_what_needs_one_is_refused_and_all_else_is_found_by_words(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    client.ingest(&note("Rules", "Bicycles belong in the cellar.")).await;
    for mode in [json!("hybrid"), json!("lexical"), Value::Null] {
        let found = search(&client, json!({ "query": "Where do bicycles belong?", "mode": mode })).await;
        assert_eq!(names(&found), ["Rules"], "{mode}");
        assert_eq!(found[0]["scores"]["dense"], Value::Null, "{mode}");
    }
    let body = json!({ "query": "Where do bicycles belong?", "mode": "dense" });
    let (status, refusal) = client.post("/search", &body).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{refusal:#}");
    assert_eq!(refusal["error"]["code"], "no_embedding_model");
    let message = refusal["error"]["message"].as_str().expect("a sentence");
    assert!(message.contains("`mode`") && message.contains("lexical"), "it says what to do: {message}");
    let is_it = |line: &Value| {
        let route = line["fields"]["route"].as_str().unwrap_or_default();
        line["fields"]["status"] == 503 && route.ends_with("/search")
    };
    let line = service.logged("the refused search", is_it).await;
    assert_eq!(line["level"], "INFO", "nothing has failed: {line:#}");
}
