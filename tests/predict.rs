//! Asking an agent: cited answers, with and without a model.

mod budgets;
mod functions;
mod memory;
mod poison;
mod prompts;
mod quotes;
mod react;
mod replay;
mod streams;
mod tools;

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    in_both_modes,
    model::{API_KEY, Model, Reply},
    on_postgres_too,
    pdf::pdf_with_pages,
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(
    an_extractive_agent_quotes_the_document_with_its_page,
    a_citation_leads_to_the_moment_of_a_video_and_nowhere_without_an_address,
    a_model_is_given_numbered_sources_and_its_quotes_are_verified
);

on_postgres_too!(an_extractive_agent_quotes_the_document_with_its_page);

const PAGES: [&str; 3] = [
    "Chapter one. The expedition left Bergen in the spring of 1911.",
    "Chapter two. Its captain, Solveig Aas, had sailed the route twice before.",
    "Chapter three. The ship returned with four hundred specimens of moss.",
];

/// An agent with the three pages as its document.
async fn agent_with_pages(client: &Client, web: &Web, llm: Option<Value>) -> Value {
    let url = web.serve("/report.pdf", "application/pdf", pdf_with_pages(&PAGES));
    // A passage a page, so that pages can be told apart.
    let splitter = json!({"type": "character", "chunk_size": 80, "chunk_overlap": 0});
    let document = json!({"name": "report.pdf", "type": "PDF", "url": url, "splitter": splitter});
    let document = client.ingest(&document).await;
    let mut agent = json!({"name": "guide", "type": "CHATVENDOR"});
    if let Some(llm) = llm {
        agent["llm"] = llm;
    }
    let agent = client.create_agent(&agent).await;
    client.link(id(&agent), id(&document)).await;
    agent
}

async fn an_extractive_agent_quotes_the_document_with_its_page(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let agent = agent_with_pages(&client, &web, None).await;

    let (status, answer) = client.predict(id(&agent), "Which captain had sailed the route before?").await;
    assert_eq!(status.as_u16(), 200);
    let text = answer["data"].as_str().expect("the answer is a string");
    assert!(text.contains("Its captain, Solveig Aas, had sailed the route twice before."), "{text}");
    assert!(text.contains("page 2"), "{text}");
    let trace = &answer["trace"];
    assert_eq!(trace["finishReason"], "extractive");
    let first = &trace["citations"][0];
    assert_eq!((&first["place"]["page"], &first["verified"]), (&json!(2), &json!(true)), "{first:#}");
    assert_eq!(first["documentName"], "report.pdf");
    let url = first["url"].as_str().expect("an address");
    assert!(url.starts_with("http") && url.ends_with("/report.pdf#page=2"), "{url}");
    assert!(text.contains(&format!("[{}]", first["n"])), "{text}");
    assert!(PAGES[1].contains(first["quote"].as_str().expect("a quote")), "{first:#}");

    let stored = client.read(&format!("/traces/{}", trace["id"].as_str().expect("an id"))).await;
    assert_eq!(&stored["trace"], trace, "what was answered is what is kept");

    let (_, answer) = client.predict(id(&agent), "zzyzx quux?").await;
    assert_eq!(answer["trace"]["finishReason"], "declined");
    assert_eq!(answer["trace"]["citations"], json!([]));
}

async fn a_citation_leads_to_the_moment_of_a_video_and_nowhere_without_an_address(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let captions = "WEBVTT\n\n00:01:23.500 --> 00:01:27.000\nThe captain was called Solveig Aas.\n";
    let url = web.serve("/talk.vtt", "text/vtt", captions.as_bytes().to_vec());
    let moved = web.serve("/elsewhere.vtt", "text/vtt", captions.as_bytes().to_vec());
    let text = "The cook was called Peder Lie.";
    let video = client.ingest(&json!({"name": "Talk", "type": "VIDEO", "url": url})).await;
    let note = client.ingest(&json!({"name": "Note", "type": "TXT", "content": text})).await;
    let agent = client.create_agent(&json!({"name": "guide", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&video)).await;
    client.link(id(&agent), id(&note)).await;
    let cited = async |question: &str| {
        let (_, answer) = client.predict(id(&agent), question).await;
        answer["trace"]["citations"][0].clone()
    };
    let said = cited("What was the captain called?").await;
    assert_eq!(
        (&said["documentName"], &said["url"]),
        (&json!("Talk"), &json!(format!("{url}#t=83"))),
        "{said:#}"
    );
    let noted = cited("What was the cook called?").await;
    assert_eq!((&noted["documentName"], &noted["url"]), (&json!("Note"), &Value::Null), "{noted:#}");

    client.patch(&format!("/documents/{}", id(&video)), &json!({"url": moved})).await;
    client.wait_until_ingested(id(&video)).await;
    assert_eq!(cited("What was the captain called?").await["url"], format!("{moved}#t=83"));
}

async fn a_model_is_given_numbered_sources_and_its_quotes_are_verified(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    // It cites by the numbers that it was given, one quote right, one wrong, and one source that does not exist.
    let model = Model::scripted([Reply::to_request(|request| {
        let system = request["messages"][0]["content"].as_str().unwrap_or_default();
        let number_of = |words: &str| {
            let before = &system[..system.find(words).expect("the passage is in the prompt")];
            before.rsplit('[').next().and_then(|rest| rest.split(']').next()).expect("a number").to_owned()
        };
        let (captain, moss) = (number_of("Solveig Aas"), number_of("specimens of moss"));
        Reply::text(&format!(
            "\"Its captain, Solveig Aas\" [{captain}]. It brought \"five hundred specimens of moss\" [{moss}] home [77]."
        ))
    })])
    .await;
    let agent = agent_with_pages(&client, &web, Some(model.llm("qwen-max"))).await;
    assert_ne!(agent["llm"]["api_key"], API_KEY, "the key is masked");

    let (status, answer) =
        client.predict(id(&agent), "Who was captain, and how much moss did the ship bring?").await;
    assert_eq!(status.as_u16(), 200, "{answer:#}");
    let text = answer["data"].as_str().expect("the answer is a string");
    assert!(!text.contains("[77]"), "a source that does not exist is not cited: {text}");
    let citations = answer["trace"]["citations"].as_array().expect("citations");
    let shown: Vec<_> =
        citations.iter().map(|c| (&c["quote"], &c["verified"], &c["place"]["page"])).collect();
    assert_eq!(
        shown,
        [
            (&json!("Its captain, Solveig Aas"), &json!(true), &json!(2)),
            (&json!("five hundred specimens of moss"), &json!(false), &json!(3)),
        ]
    );
    let request = &model.bodies()[0];
    assert_eq!(request["model"], "qwen-max", "the name is sent as given");
    assert_eq!(answer["trace"]["finishReason"], "stop");
    assert_eq!(answer["trace"]["usage"]["source"], "provider");
    assert_eq!(model.requests()[0].header("authorization"), Some(format!("Bearer {API_KEY}").as_str()));
    assert!(!answer.to_string().contains(API_KEY));
    service.assert_no_secret_in_logs(&[API_KEY]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_is_a_gateway_error_without_its_secrets() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_MAX_SECONDS", "2s").start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let leak = json!({"error": {"message": format!("Incorrect API key provided: {API_KEY}")}});
    for (reply, status, code) in [
        (Reply::status(401, &leak), 502, "provider_unauthorized"),
        (Reply::status(400, &leak), 502, "provider_rejected"),
        (Reply::html(), 502, "provider_garbage"),
        (Reply::empty_choices(), 502, "provider_no_choices"),
        (Reply::cut_after("Half an ans"), 502, "provider_truncated"),
        (Reply::text(""), 502, "provider_empty"),
        (Reply::hang(), 504, "provider_timeout"),
    ] {
        model.reply(reply);
        let (answered, body) = client.predict(id(&agent), "Anything?").await;
        assert_eq!((answered.as_u16(), &body["error"]["code"]), (status, &json!(code)), "{body:#}");
        assert!(!body.to_string().contains(API_KEY), "{body:#}");
    }
    model.reply(Reply::status(500, &leak));
    model.reply(Reply::without_done("All is well."));
    let (_, body) = client.predict(id(&agent), "And now?").await;
    assert_eq!(body["data"], "All is well.", "a passing failure is tried again: {body:#}");
    service.assert_no_secret_in_logs(&[API_KEY]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_at_a_private_address_is_not_asked() {
    let service = Service::in_mode(Mode::Embedded).without("LECTERN_EGRESS_ALLOW").start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::scripted([Reply::text("You should not see this.")]).await;
    for base_url in [model.base_url(), model.base_url().replace("127.0.0.1", "localhost")] {
        let llm = json!({"provider": "openai-compatible", "model": "m", "base_url": base_url});
        let agent = client.create_agent(&json!({"name": "a", "type": "CHATVENDOR", "llm": llm})).await;
        let (status, body) = client.predict(id(&agent), "Anything?").await;
        assert_eq!(status.as_u16(), 502, "{body:#}");
        assert_eq!(body["error"]["code"], "provider_refused_address", "{base_url}: {body:#}");
    }
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_must_be_one() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let agent = client.create_agent(&json!({"name": "a", "type": "CHATVENDOR"})).await;
    for (body, path) in [
        (json!({}), "input"),
        (json!({"input": "text"}), "input"),
        (json!({"input": {}}), "input.input"),
        (json!({"input": {"input": "  "}}), "input.input"),
        (json!({"input": {"input": "x\u{0}y"}}), "input.input"),
    ] {
        let request = client.predict_request(id(&agent), &body).await;
        let (status, answer) =
            crate::support::client::envelope(crate::support::client::send(request).await).await;
        assert_eq!(status.as_u16(), 422, "{body}: {answer}");
        let fields = answer["error"]["fields"].as_array().expect("fields");
        assert!(fields.iter().any(|field| field["path"] == path), "{body}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_withholds_is_told_in_the_trace_and_not_given_again() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let body = json!({"input": {"input": "Well?"}, "cache_ttl": 3_600});
    model.reply(Reply::text("First of all,").finished_by("content_filter"));
    let (_, answer) = client.ask(id(&agent), &body).await;
    assert_eq!(
        (&answer["data"], &answer["trace"]["finishReason"]),
        (&json!("First of all,"), &json!("stop"))
    );
    assert_eq!(answer["trace"]["steps"][0]["error"], "The provider withheld the rest.", "{answer:#}");
    model.reply(Reply::text("First of all, hello."));
    for _ in 0..2 {
        let (_, answer) = client.ask(id(&agent), &body).await;
        assert_eq!(answer["data"], "First of all, hello.", "what is whole is given again");
        assert_eq!(answer["trace"]["steps"][0]["error"], Value::Null);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn why_an_answer_is_empty_is_told_and_kept() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    for (r#type, reason, replies, words) in [
        ("CHATVENDOR", "stop", 1, "answered with nothing"),
        ("CHATVENDOR", "length", 1, "llm.max_tokens"),
        ("CHATVENDOR", "content_filter", 1, "withheld"),
        ("REACT", "length", 2, "llm.max_tokens"),
    ] {
        let agent = json!({"name": "guide", "type": r#type, "llm": model.llm("m")});
        let agent = client.create_agent(&agent).await;
        for _ in 0..replies {
            model.reply(Reply::text("").finished_by(reason));
        }
        let (status, answer) = client.predict(id(&agent), "Well?").await;
        assert_eq!(
            (status.as_u16(), &answer["error"]["code"]),
            (502, &json!("provider_empty")),
            "{answer:#}"
        );
        let told = answer["error"]["message"].as_str().expect("a message").to_owned();
        assert!(told.contains(words), "{reason}: {told}");
        let kept = client.read(&format!("/traces?agentId={}", id(&agent))).await;
        let step = kept[0]["trace"]["steps"].as_array().and_then(|steps| steps.last()).expect("a step");
        assert_eq!(step["error"], json!(told), "{kept:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_a_key_is_not_asked() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    for provider in ["openai", "openai-chat", "anthropic", "gemini", "mistral", "groq", "cohere"] {
        let llm = json!({"provider": provider, "model": "m"});
        let agent = client.create_agent(&json!({"name": "a", "type": "CHATVENDOR", "llm": llm})).await;
        let (status, answer) = client.predict(id(&agent), "Well?").await;
        assert_eq!(
            (status.as_u16(), &answer["error"]["code"]),
            (502, &json!("provider_not_available")),
            "{answer:#}"
        );
        let told = answer["error"]["message"].as_str().expect("a message");
        assert!(told.contains("No API key is set") && told.contains(provider), "{told}");
        // Whoever looks after the agent finds what was asked, and why that was not answered.
        let kept = client.read(&format!("/traces?agentId={}", id(&agent))).await;
        let trace = &kept[0]["trace"];
        let step = &trace["steps"][0];
        assert_eq!((&trace["finishReason"], &step["error"]), (&json!("error"), &json!(told)), "{kept:#}");
        assert_eq!(step["input"], json!([{"role": "user", "content": "Well?"}]), "{kept:#}");
    }
}
