//! What agents without a model quote.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    model::{Model, Reply},
    service::{Mode, Service},
};

/// An agent without a model that has this document.
async fn quoting(client: &Client, document: &Value) -> Value {
    let document = client.ingest(document).await;
    let agent = client.create_agent(&json!({"name": "guide", "type": "CHATVENDOR", "hasMemory": true})).await;
    client.link(id(&agent), id(&document)).await;
    agent
}

/// An agent's answer. All that it quotes has to stand in its document.
async fn told(client: &Client, agent: &Value, question: &str, session: Option<&str>) -> String {
    let mut body = json!({"input": {"input": question}});
    if let Some(session) = session {
        body["session"] = json!(session);
    }
    let (_, answer) = client.ask(id(agent), &body).await;
    let citations = answer["trace"]["citations"].as_array().expect("citations");
    assert!(citations.iter().all(|citation| citation["verified"] == true), "{answer:#}");
    answer["data"].as_str().expect("the answer is a string").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_answers_is_quoted_and_not_what_introduces_it() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let table = "| Service | Fee per month | Deposit |\n|---|---|---|\n| Locker | 5 euros | 20 euros |\n\
                 | Parking | 30 euros | 100 euros |\n";
    let german = "Der Vertrag endet am 30. Juni 2027. Die Unterlagen sind bis zum 15. Mai einzureichen. \
                  Geräte, z. B. Bohrer, werden in Raum Nr. 5 ausgegeben.";
    let product = "Product X300\n\nThe pump X300 moves 75 litres a minute. It weighs 19 kg.";
    for (text, question, quotes) in [
        (
            table,
            "How much is the deposit?",
            &["| Locker | 5 euros | 20 euros |", "| Parking | 30 euros | 100 euros |"][..],
        ),
        (german, "Wann endet der Vertrag?", &["Der Vertrag endet am 30. Juni 2027."][..]),
        (
            german,
            "Wo werden die Geräte ausgegeben?",
            &["Geräte, z. B. Bohrer, werden in Raum Nr. 5 ausgegeben."][..],
        ),
        (product, "What is the weight of the pump X300?", &["The pump X300 moves 75 litres a minute."][..]),
    ] {
        let agent = quoting(&client, &json!({"name": "note", "type": "TXT", "content": text})).await;
        let answer = told(&client, &agent, question, None).await;
        assert_eq!(answer.matches('“').count(), quotes.len(), "{answer}");
        for quote in quotes {
            assert!(answer.contains(&format!("“{quote}”")), "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_a_price_list_answers_and_not_the_price_of_something_else() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let prices = "Article,Description,Unit,Price EUR,Min order\nA-100,Steel bolt M8x40,100 pcs,12.90,5\n\
                  A-102,Steel bolt M10x60,100 pcs,22.75,2\nD-400,Garden hose 25 m,1 pc,29.99,1\n";
    let agent = quoting(&client, &json!({"name": "prices.csv", "type": "CSV", "content": prices})).await;
    let questions = "Q: How much does the Pro plan cost?\nA: 19 USD per user and month.\n\n\
                     Q: Can I change my user name?\nA: No. User names cannot be changed.\n";
    let faq = json!({"name": "questions", "type": "TXT", "content": questions});
    let faq = client.ingest(&faq).await;
    client.link(id(&agent), id(&faq)).await;
    for (question, quote) in [
        (
            "How much does A-102 cost?",
            "Article: A-102 Description: Steel bolt M10x60 Unit: 100 pcs Price EUR: 22.75 Min order: 2",
        ),
        (
            "What is the price of the garden hose?",
            "Article: D-400 Description: Garden hose 25 m Unit: 1 pc Price EUR: 29.99 Min order: 1",
        ),
        ("How much is the Pro plan per month?", "A: 19 USD per user and month."),
    ] {
        let answer = told(&client, &agent, question, None).await;
        assert!(answer.contains(&format!("“{quote}”")), "{answer}");
        assert_eq!(answer.matches('“').count(), 1, "{answer}");
    }
    let answer = told(&client, &agent, "How much does A-999 cost?", None).await;
    assert!(answer.starts_with("Nothing in the linked documents"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_another_number_is_left_out() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let module =
        |n: u32| format!("To configure module {n}, set the switch of the panel to position {}.", n % 7);
    let text: Vec<String> = (80..110).map(module).collect();
    // A passage each.
    let splitter = json!({"type": "character", "chunk_size": 80, "chunk_overlap": 0});
    let document = json!({"name": "note", "type": "TXT", "content": text.join("\n\n"), "splitter": splitter});
    let agent = quoting(&client, &document).await;
    let answer = told(&client, &agent, "How do I configure module 93?", None).await;
    assert!(answer.contains(&format!("“{}”", module(93))), "{answer}");
    assert_eq!(answer.matches('“').count(), 1, "{answer}");
    // Where nothing tells of it, what is told of the others may be of use.
    let answer = told(&client, &agent, "How do I configure the panel of module 777?", None).await;
    assert!(answer.contains("To configure module"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_headings_above_a_sentence_count_for_it() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let part = |number: u32, year: u32, days: u32| {
        format!(
            "## Part {number}: rules of edition {year}\n\nThe edition {year} is valid from January {year}.\n\n\
             ### Leave\n\nNobody has to ask twice. An employee has {days} days of holiday.\n\n"
        )
    };
    let text = format!("# Handbook\n\n{}{}{}", part(1, 2024, 28), part(2, 2025, 30), part(3, 2026, 31));
    // A passage a section, so that none has the words of the heading above it.
    let splitter = json!({"type": "character", "chunk_size": 90, "chunk_overlap": 0});
    let document = json!({"name": "handbook.md", "type": "TXT", "content": text, "splitter": splitter});
    let agent = quoting(&client, &document).await;
    let question = "How many days of holiday does an employee have in edition 2026?";
    let answer = told(&client, &agent, question, None).await;
    assert!(answer.contains("“An employee has 31 days of holiday.”"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_goes_on_from_the_one_before_is_answered_in_its_session() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = "The warranty of valves is five years. The warranty of pumps is two years. Pumps are blue.";
    let agent = quoting(&client, &json!({"name": "note", "type": "TXT", "content": text})).await;
    let first = told(&client, &agent, "What is the warranty of valves?", Some("a")).await;
    assert!(first.contains("“The warranty of valves is five years.”"), "{first}");
    let next = told(&client, &agent, "And of pumps?", Some("a")).await;
    assert!(next.contains("“The warranty of pumps is two years.”"), "{next}");
    let other = told(&client, &agent, "And of pumps?", Some("b")).await;
    assert!(other.contains("“Pumps are blue.”"), "another session knows nothing of it: {other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_before_does_not_hide_what_is_asked_now() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    // More passages than are read have most words of both questions, and none of the second.
    let valve = |n: u32| format!("Valve {n}: warranty, deposit, delivery and repair are told in letter {n}.");
    let other = |n: u32| format!("Nobody has ever written anything at all about shelf number {n}.");
    let pump = |n: u32| format!("The large green pump with the number {n} stands in Bergen, in hall {n}.");
    let lines: Vec<String> = (0..40).map(valve).chain((0..10).map(other)).chain((0..40).map(pump)).collect();
    let splitter = json!({"type": "character", "chunk_size": 80, "chunk_overlap": 0});
    let document =
        json!({"name": "note", "type": "TXT", "content": lines.join("\n\n"), "splitter": splitter});
    let agent = quoting(&client, &document).await;
    let first = "Which warranty, deposit, delivery and repair do the valves have?";
    assert!(told(&client, &agent, first, Some("a")).await.contains("“Valve "));
    let next = told(&client, &agent, "Where is Bergen?", Some("a")).await;
    assert!(next.contains("stands in Bergen"), "{next}");
}

/// The quotes of an answer, with what stands before them.
async fn quotes(client: &Client, agent: &Value, question: &str) -> (String, Vec<String>) {
    let answer = told(client, agent, question, None).await;
    let quotes = answer.split('“').skip(1).filter_map(|rest| rest.split_once("” [")).map(|(quote, _)| quote);
    (answer.split("\n\n").next().unwrap_or_default().to_owned(), quotes.map(str::to_owned).collect())
}

const POLICY: &str = "# Travel\n\nEconomy class is booked for flights of up to six hours.\n\n\
    Business class may be booked for longer flights.\n\n\
    # Leave\n\nPaternity leave is ten days.\n\n\
    # Contract\n\nThe annual fee is 480 euros in 2024 and 495 euros in 2025. E-04 means that the contract has no date.\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_typing_error_is_read_as_what_was_meant_and_the_answer_says_so() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let agent = quoting(&client, &json!({"name": "policy", "type": "TXT", "content": POLICY})).await;
    let (said, quoted) = quotes(&client, &agent, "How much is bussiness class?").await;
    assert_eq!(said, "From the linked documents, with “bussiness” read as “business”:");
    assert_eq!(quoted, ["Business class may be booked for longer flights."]);
    let (said, quoted) = quotes(&client, &agent, "When may business class be booked?").await;
    assert_eq!(said, "From the linked documents:", "what stands there is right");
    assert_eq!(quoted, ["Business class may be booked for longer flights."]);
    let (said, quoted) = quotes(&client, &agent, "How long is paternty leave?").await;
    assert!(said.contains("“paternty” read as “paternity”"), "{said}");
    assert_eq!(quoted, ["Paternity leave is ten days."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_something_else_is_not_quoted_for_the_words_that_both_have() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let agent = quoting(&client, &json!({"name": "policy", "type": "TXT", "content": POLICY})).await;
    for question in [
        "What about maternity leave?",
        "What about sick leave?",
        "What is the annual fee in 2026?",
        "What is the annual fee in 2023?",
        "What does E-05 mean for the contract and its date?",
    ] {
        let answer = told(&client, &agent, question, None).await;
        assert!(answer.starts_with("Nothing in the linked documents"), "{question}: {answer}");
    }
    for question in ["What is the annual fee in 2025?", "What does E-04 mean for the contract and its date?"]
    {
        let (_, quoted) = quotes(&client, &agent, question).await;
        assert_eq!(quoted.len(), 1, "{question}: {quoted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quotation_that_is_adapted_to_the_answer_is_verified_and_told_in_the_documents_words() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let text = "Before the season begins, the keeper’s lamp has to be cleaned. The gate opens at six.";
    let document = client.ingest(&json!({"name": "note", "type": "TXT", "content": text})).await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    client.link(id(&agent), id(&document)).await;
    for (said, quote, verified) in [
        ("\"The keeper's lamp has to be cleaned\" [1].", "the keeper’s lamp has to be cleaned", true),
        ("They write \"the gate opens at six\" [1].", "The gate opens at six", true),
        ("They write \"the Gate opens at six\" [1].", "the Gate opens at six", false),
    ] {
        model.reply(Reply::text(said));
        let question = json!({"input": {"input": "When does the gate open, and what of the lamp?"}});
        let (_, answer) = client.ask(id(&agent), &question).await;
        let cited = &answer["trace"]["citations"][0];
        assert_eq!((&cited["quote"], &cited["verified"]), (&json!(quote), &json!(verified)), "{answer:#}");
    }
}
