//! Asking agents: what is answered, what is told meanwhile, and what ends a run.

use reqwest::{StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{
    MCP, Revision, agent_with_text, assert_told, call, call_request, json_of, messages, post, request,
    session_of, text_of, with_api_token,
};
use crate::support::{
    client::{Client, data, id, send},
    in_both_modes,
    loopback::Gate,
    model::{Model, Reply},
    service::{Mode, Service},
    sse::{self, SseEvent},
};

in_both_modes!(
    an_answer_comes_with_its_sources_and_links_that_open_them,
    what_a_run_does_is_told_while_it_goes_on,
    a_run_without_documents_is_reported_before_its_model_answers,
    the_model_is_told_the_history,
    values_for_the_prompt_can_be_given,
    a_client_that_goes_away_ends_the_run,
    a_call_is_taken_back_by_a_notification,
    a_client_takes_back_no_call_of_another_one_with_the_same_token,
    a_shutdown_ends_a_call_with_words,
    agents_are_listed_page_by_page,
    what_fails_is_told_in_words,
);

/// Where a session is named.
const SESSION: &str = "mcp-session-id";
const RULES: &str = "The harbour gate opens at half past six. The cellar is locked at night.";

/// An agent with a model that a test speaks for.
async fn modelled(client: &Client, model: &Model) -> String {
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m-1") });
    id(&client.create_agent(&agent).await).to_owned()
}

async fn an_answer_comes_with_its_sources_and_links_that_open_them(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (agent, document) = agent_with_text(&ada, RULES).await;
    for (revision, name) in Revision::BOTH.into_iter().zip([agent.as_str(), "Clerk"]) {
        let asked = json!({ "agent": name, "question": "When does the harbour gate open?" });
        let told = call(&ada, revision, "ask_agent", &asked).await;
        let (text, answer) = (text_of(&told), &told["structuredContent"]);
        assert!(answer["answer"].as_str().expect("an answer").contains("half past six"), "{told:#}");
        assert_eq!((&answer["agentId"], &answer["finishReason"]), (&json!(agent), &json!("extractive")));
        let source = &answer["citations"][0];
        assert_eq!((&source["n"], &source["title"]), (&json!(1), &json!("Rules")));
        assert_eq!(
            (&source["documentId"], &source["verified"]),
            (&json!(document), &json!(true)),
            "{told:#}"
        );
        assert!(RULES.contains(source["quote"].as_str().expect("a quote")), "{told:#}");
        let url = source["url"].as_str().expect("a link");
        assert!(text.contains("Sources:\n[1] Rules") && text.contains(url), "{text}");
        let path = url.strip_prefix(&service.base_url()).expect("a link to the service");
        let page = send(ada.request_outside(reqwest::Method::GET, path)).await;
        assert_eq!(page.status(), StatusCode::OK);
        assert!(page.text().await.expect("a page").contains("half past six"));
        ada.read(&format!("/traces/{}", answer["traceId"].as_str().expect("a trace"))).await;
    }
    let agents = json_of(&call(&ada, Revision::Stateless, "list_agents", &json!({})).await);
    assert_eq!(agents["agents"], json!([{ "id": agent, "name": "Clerk", "description": "" }]));
}

async fn what_a_run_does_is_told_while_it_goes_on(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = modelled(&ada, &model).await;
    let document = ada.ingest(&json!({ "name": "Rules", "type": "TXT", "content": RULES })).await;
    ada.link(&agent, id(&document)).await;
    for (revision, token) in Revision::BOTH.into_iter().zip([json!("p-1"), json!(7)]) {
        let gate = Gate::default();
        model.reply(Reply::tool_calls([("search_documents", json!({ "query": "harbour gate" }))]));
        model.reply(Reply::gated("\"The harbour gate opens ", &gate, "at half past six\" [1]."));
        let arguments = json!({ "agent": agent, "question": "When does the gate open?" });
        let params =
            json!({ "name": "ask_agent", "arguments": arguments, "_meta": { "progressToken": token } });
        let mut answer = send(request(&ada, revision, "tools/call", params)).await;
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/event-stream");
        let first = answer.chunk().await.expect("a stream").expect("something before the answer");
        assert!(String::from_utf8_lossy(&first).contains("notifications/progress"), "{first:?}");
        gate.release();
        let mut stream = String::from_utf8_lossy(&first).into_owned();
        while let Some(bytes) = answer.chunk().await.expect("a stream that ends well") {
            stream.push_str(&String::from_utf8_lossy(&bytes));
        }
        let told: Vec<Value> = sse::parse(&stream).iter().map(SseEvent::json).collect();
        let (last, reports) = told.split_last().expect("messages");
        assert!(reports.iter().all(|report| report["method"] == "notifications/progress"), "{told:#?}");
        assert!(reports.iter().all(|report| report["params"]["progressToken"] == token), "{told:#?}");
        let steps: Vec<f64> =
            reports.iter().filter_map(|report| report["params"]["progress"].as_f64()).collect();
        assert!(steps.len() >= 2 && steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
        let words = reports.iter().filter_map(|report| report["params"]["message"].as_str());
        let words = words.collect::<Vec<_>>().join("\n");
        assert!(words.contains("search_documents") && words.contains("Searched"), "{words}");
        assert_eq!(last["result"]["structuredContent"]["citations"][0]["verified"], true, "{last:#}");
        // Whoever did not ask is told nothing but the answer.
        model.reply(Reply::text("At half past six."));
        let arguments = json!({ "agent": agent, "question": "When?" });
        let (_, whole) = messages(send(call_request(&ada, revision, "ask_agent", &arguments)).await).await;
        assert_eq!(whole.len(), 1, "{whole:#?}");
    }
}

async fn a_run_without_documents_is_reported_before_its_model_answers(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = modelled(&ada, &model).await;
    for revision in Revision::BOTH {
        let gate = Gate::default();
        model.reply(Reply::gated("", &gate, "At half past six."));
        let arguments = json!({ "agent": agent, "question": "When does the gate open?" });
        let params =
            json!({ "name": "ask_agent", "arguments": arguments, "_meta": { "progressToken": "p-1" } });
        let mut answer = send(request(&ada, revision, "tools/call", params)).await;
        let first = answer.chunk().await.expect("a stream").expect("something before the answer");
        let mut stream = String::from_utf8_lossy(&first).into_owned();
        assert!(stream.contains("notifications/progress") && !stream.contains("half past six"), "{stream}");
        gate.release();
        while let Some(bytes) = answer.chunk().await.expect("a stream that ends well") {
            stream.push_str(&String::from_utf8_lossy(&bytes));
        }
        let last = sse::parse(&stream).last().expect("an answer").json();
        assert_eq!(text_of(&last["result"]), "At half past six.", "{last:#}");
    }
}

async fn the_model_is_told_the_history(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::scripted([Reply::text("Solveig Aas.")]).await;
    let agent = modelled(&ada, &model).await;
    let history = json!([{ "question": "Which ship was it?", "answer": "The Fram." }]);
    let asked = json!({ "agent": agent, "question": "Who was her captain?", "history": history });
    let told = call(&ada, Revision::Stateless, "ask_agent", &asked).await;
    assert_eq!((text_of(&told), &told["structuredContent"]["citations"]), ("Solveig Aas.", &json!([])));
    let sent = model.bodies()[0]["messages"].to_string();
    assert!(sent.contains("Which ship was it?") && sent.contains("The Fram."), "{sent}");
}

async fn a_client_that_goes_away_ends_the_run(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = modelled(&ada, &model).await;
    let mut abandoned = 0;
    for revision in Revision::BOTH {
        for meta in [json!({}), json!({ "progressToken": 1 })] {
            model.reply(Reply::silent_after("Let me think about"));
            let arguments = json!({ "agent": agent, "question": "Well?" });
            let params = json!({ "name": "ask_agent", "arguments": arguments, "_meta": meta });
            let request = request(&ada, revision, "tools/call", params);
            let asking = tokio::spawn(async move {
                let mut answer = send(request).await;
                while let Ok(Some(_)) = answer.chunk().await {}
            });
            abandoned += 1;
            model.wait_for_requests(abandoned).await;
            asking.abort();
            model.wait_until_abandoned(abandoned).await;
        }
    }
}

/// Takes a call back, in a session if there is one.
async fn take_back(person: &Client, session: Option<&str>) {
    let message =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let mut request = post(person, &message);
    if let Some(session) = session {
        request = request.header(SESSION, session);
    }
    assert_eq!(send(request).await.status(), StatusCode::ACCEPTED);
}

async fn a_call_is_taken_back_by_a_notification(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let eve = service.signed_up("eve@example.com").await;
    let model = Model::start().await;
    let agent = modelled(&ada, &model).await;
    let shared = with_api_token(&ada, json!({ "agentId": agent, "role": "asker" })).await;
    let asked = json!({ "agent": agent, "question": "Well?" });
    for (taken_back, person) in [&ada, &shared].into_iter().enumerate() {
        model.reply(Reply::silent_after("Let me think about"));
        let session = session_of(person).await;
        let request = call_request(person, Revision::Handshake, "ask_agent", &asked);
        let request = request.header(SESSION, &session);
        let asking = tokio::spawn(async move { messages(send(request).await).await });
        model.wait_for_requests(taken_back + 1).await;
        for whoever in [&eve, person] {
            assert!(!asking.is_finished(), "a stranger takes nothing back");
            take_back(whoever, Some(&session)).await;
        }
        model.wait_until_abandoned(taken_back + 1).await;
        let (_, told) = asking.await.expect("an end");
        assert_told(&told[0]["result"], "cancelled");
    }
}

async fn a_client_takes_back_no_call_of_another_one_with_the_same_token(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = modelled(&ada, &model).await;
    let token = with_api_token(&ada, json!({})).await;
    let (one, other) = (session_of(&token).await, session_of(&token).await);
    assert_ne!(one, other);
    let asked = json!({ "agent": agent, "question": "Well?" });
    for session in [Some(one.as_str()), None] {
        let gate = Gate::default();
        model.reply(Reply::gated("At half ", &gate, "past six."));
        let mut request = call_request(&token, Revision::Handshake, "ask_agent", &asked);
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let asking = tokio::spawn(async move { messages(send(request).await).await });
        gate.wait_until_reached().await;
        // All of them number their requests from 1.
        take_back(&token, Some(&other)).await;
        take_back(&token, None).await;
        gate.release();
        let (_, told) = asking.await.expect("an end");
        assert_eq!(text_of(&told[0]["result"]), "At half past six.", "{session:?}");
    }
}

async fn a_shutdown_ends_a_call_with_words(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = modelled(&ada, &model).await;
    let gate = Gate::default();
    model.reply(Reply::gated("Let me think", &gate, " no more."));
    let asked = json!({ "agent": agent, "question": "Well?" });
    let request = call_request(&ada, Revision::Stateless, "ask_agent", &asked);
    let asking = tokio::spawn(async move { messages(send(request).await).await });
    gate.wait_until_reached().await;
    service.ask_to_stop();
    let (_, told) = asking.await.expect("an answer");
    assert_told(&told[0]["result"], "The service is being stopped");
}

async fn agents_are_listed_page_by_page(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let llm = json!({ "model": "extractive", "provider": "extractive" });
    let long = "é".repeat(1_000);
    for name in ["One", "Two", "Three"] {
        let agent = json!({ "name": name, "type": "CHATVENDOR", "llm": llm, "description": long });
        ada.create_agent(&agent).await;
    }
    let first = call(&ada, Revision::Stateless, "list_agents", &json!({ "limit": 2 })).await;
    let listed = &first["structuredContent"];
    let names = |page: &Value| {
        let agents = page["agents"].as_array().expect("agents").iter();
        agents.map(|agent| agent["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(listed), ["Three", "Two"]);
    assert_eq!(listed["agents"][0]["description"], format!("{}…", "é".repeat(300)));
    let rest = json!({ "limit": 2, "cursor": listed["nextCursor"] });
    let rest = call(&ada, Revision::Handshake, "list_agents", &rest).await["structuredContent"].take();
    assert_eq!((names(&rest), rest.get("nextCursor")), (vec!["One".to_owned()], None), "{rest:#}");
    let wrong = call(&ada, Revision::Handshake, "list_agents", &json!({ "cursor": "x" })).await;
    assert_told(&wrong, "`cursor` must be the nextCursor of an earlier answer");
}

async fn values_for_the_prompt_can_be_given(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("Aye."));
    let agent = modelled(&ada, &model).await;
    let prompt = json!({ "name": "Waiter", "template": "You serve {who}.", "input_variables": ["who"] });
    let prompt = ada.create("/prompts", &prompt).await;
    data(ada.patch(&format!("/agents/{agent}"), &json!({ "promptId": prompt["id"] })).await);
    let mut arguments = json!({ "agent": agent, "question": "Well?" });
    assert_told(&call(&ada, Revision::Handshake, "ask_agent", &arguments).await, "`values.who` is required");
    arguments["values"] = json!({ "who": "the crew" });
    let told = call(&ada, Revision::Handshake, "ask_agent", &arguments).await;
    assert_eq!(told["structuredContent"]["answer"], "Aye.", "{told:#}");
    let asked = model.bodies().pop().expect("a request");
    let prompt = asked["messages"][0]["content"].as_str().expect("a text");
    assert!(prompt.starts_with("You serve the crew."), "{prompt}");
}

async fn what_fails_is_told_in_words(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = modelled(&ada, &model).await;
    model.reply(Reply::status(401, &json!({ "error": { "message": "Incorrect API key provided" } })));
    let failed =
        call(&ada, Revision::Stateless, "ask_agent", &json!({ "agent": agent, "question": "Well?" })).await;
    assert_eq!((&failed["isError"], failed.get("structuredContent")), (&json!(true), None), "{failed:#}");
    assert!(!text_of(&failed).is_empty());
    for (arguments, wrong) in [
        (json!({ "agent": "nobody", "question": "Well?" }), "There is no such agent"),
        (json!({ "question": "Well?" }), "`agent` is required"),
        (json!({ "agent": agent, "question": "" }), "`question` must not be empty"),
        (json!({ "agent": agent, "question": "Well?", "history": "x" }), "`history` must be an array"),
        (
            json!({ "agent": agent, "question": "Well?", "history": [{ "question": "a" }] }),
            "`history.0.answer` is required",
        ),
    ] {
        assert_told(&call(&ada, Revision::Handshake, "ask_agent", &arguments).await, wrong);
    }
    modelled(&ada, &model).await;
    let twice =
        call(&ada, Revision::Handshake, "ask_agent", &json!({ "agent": "guide", "question": "Well?" })).await;
    assert_told(&twice, "Several agents have this name");
    assert_eq!(
        send(ada.request_anywhere(reqwest::Method::GET, MCP)).await.status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}
