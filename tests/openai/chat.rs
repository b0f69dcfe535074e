//! Chat completions in one piece: the same run as predict's, with citations that lead to the passage.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{FACT, Harbour, PIECES, QUESTION, agent, marker_places, post, question, success};
use crate::support::{
    client::{data, send},
    in_both_modes,
    model::{INPUT_TOKENS, OUTPUT_TOKENS, Reply},
    service::Mode,
};

in_both_modes!(
    a_chat_says_what_predict_says_and_leads_to_the_passage,
    places_of_citations_count_code_points,
    a_chat_brings_its_own_history,
    values_for_the_prompt_come_with_the_metadata,
    a_long_turn_is_told_with_the_next_question,
    the_length_of_an_answer_can_be_bounded,
    two_megabytes_of_history_are_answered,
    a_prompt_that_holds_the_history_is_told_as_much_of_it_as_it_has_room_for,
    an_answer_that_a_provider_withholds_is_told_as_one,
);

async fn a_chat_says_what_predict_says_and_leads_to_the_passage(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let (_, predicted) = ada.predict(&harbour.quoting, QUESTION).await;
    let answer = success(post(ada, "/chat/completions", &question(&harbour.quoting)).await);
    assert_eq!(answer["object"], "chat.completion", "{answer:#}");
    let choice = &answer["choices"][0];
    let message = &choice["message"];
    assert_eq!(message["content"], predicted["data"], "{answer:#}");
    assert_eq!((&message["role"], &message["refusal"]), (&json!("assistant"), &Value::Null));
    assert_eq!(choice["finish_reason"], "stop");
    assert!(answer["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")), "{answer:#}");

    let first = &message["annotations"][0];
    let cited = &predicted["trace"]["citations"][0];
    for name in ["n", "documentId", "chunkId", "quote", "verified"] {
        assert_eq!(first["lectern"][name], cited[name], "{name}: {first:#}");
    }
    assert_eq!(first["lectern"]["documentId"], harbour.document.as_str());
    assert_eq!(first["url_citation"]["title"], "Harbour");
    let mut names: Vec<_> = first["url_citation"].as_object().expect("four fields").keys().collect();
    names.sort();
    assert_eq!(names, ["end_index", "start_index", "title", "url"], "clients read exactly these");
    let url = first["url_citation"]["url"].as_str().expect("an address");
    let path = url.strip_prefix(&harbour.service.base_url()).expect("an address of the service");
    let page = send(ada.request_outside(Method::GET, path)).await;
    assert_eq!(page.status(), StatusCode::OK, "{url}");
    let page = page.text().await.expect("a page");
    assert!(page.contains("half past six"), "it shows the passage: {page}");

    let trace = answer["lectern"]["traceId"].as_str().expect("a trace");
    let trace = data(ada.get(&format!("/traces/{trace}")).await);
    assert_eq!(trace["trace"]["output"], message["content"], "the run is kept as any other");
}

async fn values_for_the_prompt_come_with_the_metadata(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let prompt = json!({ "name": "Waiter", "template": "You serve {who}.", "input_variables": ["who"] });
    let prompt = ada.create("/prompts", &prompt).await;
    data(ada.patch(&format!("/agents/{}", harbour.composing), &json!({ "promptId": prompt["id"] })).await);
    let chat = question(&harbour.composing);
    let (status, refused) = post(ada, "/chat/completions", &chat).await;
    assert_eq!((status, &refused["error"]["param"]), (StatusCode::BAD_REQUEST, &json!("metadata.who")));
    let response = json!({ "model": harbour.composing, "input": QUESTION });
    for (path, mut body) in [("/chat/completions", chat), ("/responses", response)] {
        body["metadata"] = json!({ "who": "the crew", "ticket": "7" });
        success(post(ada, path, &body).await);
        let asked = harbour.model.bodies().pop().expect("a request");
        let told = asked["messages"][0]["content"].as_str().expect("a text");
        assert!(told.starts_with("You serve the crew."), "{path}: {told}");
    }
}

async fn places_of_citations_count_code_points(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let answer = success(post(&harbour.ada, "/chat/completions", &question(&harbour.composing)).await);
    let message = &answer["choices"][0]["message"];
    let text = message["content"].as_str().expect("an answer");
    assert_eq!(text, PIECES.concat());
    let annotations = message["annotations"].as_array().expect("annotations");
    let place = |annotation: &Value| {
        let cited = &annotation["url_citation"];
        (cited["start_index"].as_u64().expect("a start"), cited["end_index"].as_u64().expect("an end"))
    };
    let mut places: Vec<_> = annotations.iter().map(place).collect();
    assert!(places.is_sorted(), "{annotations:#?}");
    places.dedup();
    assert_eq!(places, marker_places(text), "{annotations:#?}");
    assert_eq!(annotations[0]["lectern"]["quote"], FACT.trim_end_matches('.'));
    assert_eq!(annotations[0]["lectern"]["verified"], true);
    let usage = &answer["usage"];
    let told = ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| usage[name].as_u64());
    let total = INPUT_TOKENS + OUTPUT_TOKENS;
    assert_eq!(told, [INPUT_TOKENS, OUTPUT_TOKENS, total].map(Some), "{usage:#}");
}

async fn a_chat_brings_its_own_history(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let body = json!({ "model": harbour.composing, "messages": [
        { "role": "system", "content": "Speak like a keeper." },
        { "role": "user", "content": "Who is the keeper?" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "call_1", "type": "function",
            "function": { "name": "of_the_client", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "call_1", "content": "a result of the client's own" },
        { "role": "assistant", "content": [{ "type": "text", "text": "Solveig Aas is." }] },
        { "role": "user", "content": [{ "type": "text", "text": QUESTION }] },
    ], "tools": [], "tool_choice": "none", "temperature": 0.1, "user": "u-1", "metadata": {}, "of_tomorrow": [1] });
    success(post(&harbour.ada, "/chat/completions", &body).await);
    let sent = harbour.model.bodies().pop().expect("a request to the model");
    let messages = sent["messages"].as_array().expect("messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    assert!(text(&messages[0]).contains("Speak like a keeper."), "{sent:#}");
    let turns: Vec<_> = messages.iter().filter(|message| message["role"] != "system").collect();
    let roles: Vec<_> = turns.iter().map(|turn| turn["role"].as_str().expect("a role")).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "{sent:#}");
    for (turn, said) in turns.iter().zip(["Who is the keeper?", "Solveig Aas is.", QUESTION]) {
        assert!(text(turn).contains(said), "{said}: {sent:#}");
    }
    assert!(!sent.to_string().contains("a result of the client's own"), "{sent:#}");

    success(post(&harbour.ada, "/chat/completions", &question(&harbour.composing)).await);
    let sent = harbour.model.bodies().pop().expect("a request to the model").to_string();
    assert!(
        !sent.contains("Who is the keeper?"),
        "nothing is remembered that a client does not tell: {sent}"
    );
}

async fn a_long_turn_is_told_with_the_next_question(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let mut llm = harbour.model.llm("m");
    llm["context_window"] = json!(2_000);
    let narrow = agent(&harbour.ada, "Narrow", &llm).await;
    // A sentence has seven tokens: about 5,000 fit, about 70,000 are too many for every agent without a window.
    for (agent, sentences, is_whole) in
        [(&harbour.composing, 700, true), (&harbour.composing, 10_000, false), (&narrow, 700, false)]
    {
        let sea = "The sea was calm that day. ".repeat(sentences);
        let long = format!("The watchword is heron. {sea}The lamp is green.");
        let body = json!({ "model": agent, "messages": [
            { "role": "user", "content": long },
            { "role": "assistant", "content": "Noted." },
            { "role": "user", "content": QUESTION },
        ] });
        success(post(&harbour.ada, "/chat/completions", &body).await);
        let sent = harbour.model.bodies().pop().expect("a request to the model")["messages"].to_string();
        for words in ["The watchword is heron.", "The lamp is green.", "Noted."] {
            assert!(sent.contains(words), "{words:?} of {sentences} sentences is missing");
        }
        assert_eq!(sent.contains(&long), is_whole, "{sentences} sentences");
        assert_eq!(sent.contains(" … "), !is_whole, "{sentences} sentences");
    }
}

async fn the_length_of_an_answer_can_be_bounded(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    for field in ["max_tokens", "max_completion_tokens"] {
        harbour.model.reply(Reply::text("The gate opens at").finished_by("length"));
        let mut body = question(&harbour.composing);
        body[field] = json!(7);
        let answer = success(post(&harbour.ada, "/chat/completions", &body).await);
        assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer:#}");
        let sent = harbour.model.bodies().pop().expect("a request to the model");
        let asked = [&sent["max_tokens"], &sent["max_completion_tokens"]];
        assert!(asked.contains(&&json!(7)), "{sent:#}");
    }
}

async fn two_megabytes_of_history_are_answered(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let long = "The sea was calm that day. ".repeat(700);
    let mut messages: Vec<Value> = (0..100)
        .map(|turn| json!({ "role": if turn % 2 == 0 { "user" } else { "assistant" }, "content": long }))
        .collect();
    messages.push(json!({ "role": "user", "content": QUESTION }));
    for agent in [&harbour.quoting, &harbour.composing] {
        let body = json!({ "model": agent, "messages": messages });
        let answer = success(post(&harbour.ada, "/chat/completions", &body).await);
        let text = answer["choices"][0]["message"]["content"].as_str().expect("an answer");
        assert!(text.contains(FACT.trim_end_matches('.')), "{text}");
    }
    let sent = harbour.model.bodies().pop().expect("a request to the model");
    let last = sent["messages"].as_array().and_then(|messages| messages.last()).expect("a message");
    assert!(last["content"].as_str().is_some_and(|text| text.contains(QUESTION)), "{last:#}");
    let mut body = question(&harbour.quoting);
    body["messages"][0]["content"] = json!("x".repeat(3 << 20));
    let (status, body) = post(&harbour.ada, "/chat/completions", &body).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{body:#}");
}

async fn a_prompt_that_holds_the_history_is_told_as_much_of_it_as_it_has_room_for(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let prompt = json!({
        "name": "Keeper",
        "template": "Before: {chat_history}\nOnce more: {chat_history}\nNow: {input}",
        "input_variables": ["chat_history", "input"],
    });
    let prompt = ada.create("/prompts", &prompt).await;
    let mut llm = harbour.model.llm("m");
    llm["context_window"] = json!(1_000_000);
    let wide = agent(ada, "Wide", &llm).await;
    data(ada.patch(&format!("/agents/{wide}"), &json!({ "promptId": prompt["id"] })).await);
    // A model of such a size has room for all of it, and so has none that counts by words for blanks.
    for filler in ["The sea was calm that day. ".repeat(3_000), " ".repeat(100_000)] {
        let mut messages: Vec<Value> = (0..16)
            .map(|turn| {
                let role = if turn % 2 == 0 { "user" } else { "assistant" };
                json!({ "role": role, "content": format!("Said as number {turn}.{filler}") })
            })
            .collect();
        messages.push(json!({ "role": "user", "content": QUESTION }));
        success(post(ada, "/chat/completions", &json!({ "model": wide, "messages": messages })).await);
        let sent = harbour.model.bodies().pop().expect("a request to the model").to_string();
        assert_eq!(sent.matches("Said as number 15.").count(), 2, "the newest turn is told");
        assert!(!sent.contains("Said as number 0."), "the oldest one has no room");
    }
}

async fn an_answer_that_a_provider_withholds_is_told_as_one(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let reply = || Reply::text("The gate opens at").finished_by("content_filter");
    harbour.model.reply(reply());
    let answer = success(post(&harbour.ada, "/chat/completions", &question(&harbour.composing)).await);
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("content_filter"), &json!("The gate opens at"))
    );
    harbour.model.reply(reply());
    let body = json!({ "model": harbour.composing, "input": QUESTION });
    let response = success(post(&harbour.ada, "/responses", &body).await);
    assert_eq!(response["status"], "incomplete", "{response:#}");
    assert_eq!(response["incomplete_details"]["reason"], "content_filter", "{response:#}");
}
