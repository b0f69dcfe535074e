//! Responses: what was searched, the answer and its citations, in one piece and event by event.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    FACT, Harbour, PIECES, QUESTION, agent, assert_error_form, assert_refused, delete, get, id_of,
    marker_places, post, request, success,
};
use crate::support::{
    client::{Client, data, send},
    in_both_modes,
    model::{INPUT_TOKENS, OUTPUT_TOKENS, Reply},
    service::Mode,
    sse::{self, SseEvent},
};

in_both_modes!(
    a_response_shows_the_search_and_the_answer_with_both_kinds_of_citations,
    what_was_found_has_the_attributes_of_its_file_for_those_who_may_read_files,
    events_come_in_the_order_that_clients_expect,
    input_is_a_text_or_the_items_of_a_conversation,
    an_earlier_answer_can_be_referred_to_by_whoever_got_it,
    an_answer_that_is_cut_off_is_incomplete,
    vector_stores_may_be_named_that_are_all_that_the_agent_searches,
);

async fn respond(client: &Client, body: &Value) -> Value {
    success(post(client, "/responses", body).await)
}

/// The items of a response of one type.
fn items<'r>(response: &'r Value, kind: &str) -> Vec<&'r Value> {
    let output = response["output"].as_array().unwrap_or_else(|| panic!("no output in {response:#}"));
    output.iter().filter(|item| item["type"] == kind).collect()
}

async fn a_response_shows_the_search_and_the_answer_with_both_kinds_of_citations(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let body = json!({
        "model": harbour.composing, "input": QUESTION, "include": ["file_search_call.results"],
        "metadata": { "ticket": "7" }, "store": true, "tools": [{ "type": "file_search", "vector_store_ids": [] }],
    });
    let response = respond(&harbour.ada, &body).await;
    assert_eq!((&response["object"], &response["status"]), (&json!("response"), &json!("completed")));
    assert_eq!((&response["store"], &response["metadata"]), (&json!(false), &json!({ "ticket": "7" })));
    for name in ["parallel_tool_calls", "tool_choice", "tools", "created_at", "error", "incomplete_details"] {
        assert!(response.get(name).is_some(), "the SDKs' type has {name}: {response:#}");
    }
    let usage = &response["usage"];
    assert_eq!(usage["total_tokens"], INPUT_TOKENS + OUTPUT_TOKENS, "{usage:#}");
    assert!(usage["input_tokens_details"].is_object() && usage["output_tokens_details"].is_object());

    let search = items(&response, "file_search_call")[0];
    assert_eq!(search["status"], "completed");
    assert!(search["queries"].as_array().is_some_and(|queries| !queries.is_empty()), "{search:#}");
    let found = &search["results"][0];
    assert_eq!(found["file_id"], harbour.document.as_str(), "{search:#}");
    assert_eq!(found["filename"], "Harbour");
    assert!(found["text"].as_str().is_some_and(|text| text.contains(FACT)), "{search:#}");
    assert!(found["score"].is_number() && found["attributes"].is_object(), "{search:#}");

    let message = items(&response, "message")[0];
    let content = &message["content"][0];
    let text = content["text"].as_str().expect("a text");
    assert_eq!((text, &content["type"]), (PIECES.concat().as_str(), &json!("output_text")));
    let annotations = content["annotations"].as_array().expect("annotations");
    let of = |kind: &str| annotations.iter().filter(|note| note["type"] == kind).collect::<Vec<_>>();
    let place = |note: &&Value| (note["start_index"].as_u64().unwrap(), note["end_index"].as_u64().unwrap());
    let mut places: Vec<_> = of("url_citation").iter().map(place).collect();
    places.dedup();
    assert_eq!(places, marker_places(text));
    let mut starts: Vec<_> = of("file_citation").iter().map(|note| note["index"].as_u64().unwrap()).collect();
    starts.dedup();
    assert_eq!(starts, marker_places(text).iter().map(|place| place.0).collect::<Vec<_>>());
    for note in of("file_citation") {
        assert_eq!((&note["file_id"], &note["filename"]), (&json!(harbour.document), &json!("Harbour")));
    }

    let plain = respond(&harbour.ada, &json!({ "model": harbour.composing, "input": QUESTION })).await;
    let search = items(&plain, "file_search_call")[0];
    assert!(search["results"].is_null(), "results come when they are asked for: {search:#}");
    // Nothing is kept that could be asked for later.
    let path = format!("/responses/{}", response["id"].as_str().expect("an id"));
    for (status, body) in [get(&harbour.ada, &path).await, delete(&harbour.ada, &path).await] {
        assert_eq!(status.as_u16(), 404, "{body:#}");
    }
}

async fn what_was_found_has_the_attributes_of_its_file_for_those_who_may_read_files(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let described = json!({ "metadata": { "year": 2026, "kind": "sea", "tags": ["a"] } });
    data(harbour.ada.patch(&format!("/documents/{}", harbour.document), &described).await);
    let asker = harbour.script(json!({ "role": "asker" })).await;
    let attributes = json!({ "year": 2026, "kind": "sea" });
    for (client, expected) in [(&harbour.ada, &attributes), (&asker, &json!({}))] {
        for is_streamed in [false, true] {
            let body = json!({
                "model": harbour.composing, "input": QUESTION, "stream": is_streamed,
                "include": ["file_search_call.results"],
            });
            let response = if is_streamed {
                let answer = send(request(client, Method::POST, "/responses").json(&body)).await;
                let events = sse::events(answer).await;
                events.last().expect("an event").json()["response"].take()
            } else {
                respond(client, &body).await
            };
            let found = &items(&response, "file_search_call")[0]["results"][0];
            assert!(found["text"].as_str().is_some_and(|text| text.contains(FACT)), "{response:#}");
            assert_eq!(&found["attributes"], expected, "{response:#}");
        }
    }
}

async fn events_come_in_the_order_that_clients_expect(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let body = json!({ "model": harbour.composing, "input": QUESTION, "stream": true });
    let events = sse::events(send(request(&harbour.ada, Method::POST, "/responses").json(&body)).await).await;
    let mut names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.file_search_call.in_progress",
            "response.file_search_call.searching",
            "response.file_search_call.completed",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.annotation.added",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (number, event) in events.iter().enumerate() {
        let told = event.json();
        assert_eq!(told["type"], event.name.as_str(), "{told:#}");
        assert_eq!(told["sequence_number"], number, "{told:#}");
    }
    let of =
        |name: &str| events.iter().filter(|event| event.name == name).map(SseEvent::json).collect::<Vec<_>>();
    let deltas = of("response.output_text.delta");
    let text: String = deltas.iter().map(|event| event["delta"].as_str().expect("a delta")).collect();
    assert_eq!(text, PIECES.concat(), "the text is sent once");
    assert!(deltas.iter().all(|event| event["output_index"] == 1 && event["content_index"] == 0));
    let whole = &of("response.completed")[0]["response"];
    let content = &items(whole, "message")[0]["content"][0];
    assert_eq!(content["text"], text.as_str());
    let added: Vec<_> =
        of("response.output_text.annotation.added").iter().map(|event| event["annotation"].clone()).collect();
    assert_eq!(json!(added), content["annotations"]);
    assert_eq!(of("response.created")[0]["response"]["id"], whole["id"]);

    harbour.model.reply(Reply::cut_after("Half an answer"));
    let events = sse::events(send(request(&harbour.ada, Method::POST, "/responses").json(&body)).await).await;
    let last = events.last().expect("an event");
    match last.name.as_str() {
        "response.failed" => assert_eq!(last.json()["response"]["status"], "failed", "{last:?}"),
        "error" => assert!(last.json()["message"].is_string(), "{last:?}"),
        _ => assert_error_form(&last.json()),
    }
}

async fn input_is_a_text_or_the_items_of_a_conversation(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let body = json!({ "model": harbour.composing, "instructions": "Speak like a keeper.", "input": [
        { "role": "user", "content": "Who is the keeper?" },
        { "type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["keeper"], "results": null },
        { "type": "reasoning", "id": "rs_1", "summary": [] },
        { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
          "content": [{ "type": "output_text", "text": "Solveig Aas is.", "annotations": [] }] },
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": QUESTION }] },
    ] });
    respond(&harbour.ada, &body).await;
    let sent = harbour.model.bodies().pop().expect("a request to the model");
    let messages = sent["messages"].as_array().expect("messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    assert!(text(&messages[0]).contains("Speak like a keeper."), "{sent:#}");
    let turns: Vec<_> = messages.iter().filter(|message| message["role"] != "system").collect();
    assert_eq!(turns.len(), 3, "{sent:#}");
    for (turn, said) in turns.iter().zip(["Who is the keeper?", "Solveig Aas is.", QUESTION]) {
        assert!(text(turn).contains(said), "{said}: {sent:#}");
    }
}

async fn an_earlier_answer_can_be_referred_to_by_whoever_got_it(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let first = respond(&harbour.ada, &json!({ "model": harbour.composing, "input": "Is it open?" })).await;
    let refer = |id: &Value| json!({ "type": "item_reference", "id": id });
    let second = |model: &str, answer: &Value| {
        json!({ "model": model, "store": true, "input": [
            { "role": "user", "content": "Is it open?" },
            refer(&items(&first, "file_search_call")[0]["id"]),
            refer(answer),
            { "role": "user", "content": [{ "type": "input_text", "text": QUESTION }] },
        ] })
    };
    let answer = &items(&first, "message")[0]["id"];
    respond(&harbour.ada, &second(&harbour.composing, answer)).await;
    let sent = harbour.model.bodies().pop().expect("a request to the model");
    let messages = sent["messages"].as_array().expect("messages");
    let turns: Vec<_> = messages.iter().filter(|message| message["role"] != "system").collect();
    assert_eq!(turns.len(), 3, "{sent:#}");
    for (turn, (role, said)) in turns.iter().zip([
        ("user", "Is it open?"),
        ("assistant", "gate opens at half past six"),
        ("user", QUESTION),
    ]) {
        assert_eq!(turn["role"], role, "{sent:#}");
        assert!(turn["content"].as_str().is_some_and(|text| text.contains(said)), "{said}: {sent:#}");
    }

    // Of very many, the last 100.
    let turn = |n: usize| [json!({ "role": "user", "content": format!("Question {n}?") }), refer(answer)];
    let question = json!({ "role": "user", "content": QUESTION });
    let input: Vec<Value> = (0..150).flat_map(turn).chain([question]).collect();
    respond(&harbour.ada, &json!({ "model": harbour.composing, "input": input })).await;
    let sent = harbour.model.bodies().pop().expect("a request to the model").to_string();
    assert!(sent.contains("Question 50?") && !sent.contains("Question 49?"), "{sent}");

    let asked = harbour.model.requests().len();
    let eve = harbour.service.signed_up("eve@example.com").await;
    let eves = agent(&eve, "Spy", &harbour.model.llm("m")).await;
    let unknown = json!("msg_019a8f5277d07b1e8c3541a6d90f2e18");
    for (person, agent, answer) in [(&eve, &eves, answer), (&harbour.ada, &harbour.composing, &unknown)] {
        let refused = post(person, "/responses", &second(agent, answer)).await;
        assert_refused(&refused, 400, "invalid_fields");
        assert_eq!(refused.1["error"]["param"], "input.2.id", "{:#}", refused.1);
        let message = refused.1["error"]["message"].as_str().expect("words");
        assert!(message.contains("`store: false`"), "{message}");
    }
    assert_eq!(harbour.model.requests().len(), asked, "no model is asked");
}

async fn an_answer_that_is_cut_off_is_incomplete(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    harbour.model.reply(Reply::text("The gate opens at").finished_by("length"));
    let body = json!({ "model": harbour.composing, "input": QUESTION, "max_output_tokens": 16 });
    let response = respond(&harbour.ada, &body).await;
    assert_eq!(response["status"], "incomplete", "{response:#}");
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens", "{response:#}");
}

async fn vector_stores_may_be_named_that_are_all_that_the_agent_searches(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let (mut stores, mut agents) = (Vec::new(), Vec::new());
    for name in ["Tower", "Quay"] {
        let made = json!({ "name": name, "file_ids": [harbour.document] });
        stores.push(id_of(post(ada, "/vector_stores", &made).await));
        agents.push(agent(ada, name, &harbour.model.llm("m")).await);
    }
    let link = async |agent: &str, store: &str| {
        ada.create("/agent-collections", &json!({ "agentId": agent, "collectionId": store })).await
    };
    link(agents[0].as_str(), stores[0].as_str()).await;
    for store in &stores {
        link(agents[1].as_str(), store.as_str()).await;
    }
    let ask = async |agent: &str, stores: &Value| {
        let search = json!({ "type": "file_search", "vector_store_ids": stores });
        post(ada, "/responses", &json!({ "model": agent, "input": QUESTION, "tools": [search] })).await
    };
    let both = json!([stores[1], stores[0]]);
    for (agent, named) in [(&agents[0], json!([stores[0]])), (&agents[1], both.clone())] {
        assert_eq!(success(ask(agent.as_str(), &named).await)["status"], "completed");
    }
    // Others, more, fewer, and those of an agent that is linked to a document itself.
    for (agent, named) in [
        (&agents[0], json!([stores[1]])),
        (&agents[0], both),
        (&agents[1], json!([stores[0]])),
        (&harbour.composing, json!([stores[0]])),
    ] {
        let (status, answer) = ask(agent.as_str(), &named).await;
        let refused = (status.as_u16(), &answer["error"]["param"]);
        assert_eq!(refused, (400, &json!("tools.0.vector_store_ids")), "{named}: {answer:#}");
    }
}
