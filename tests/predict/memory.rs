//! What agents remember.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    client::{Client, data, id},
    in_both_modes,
    loopback::Gate,
    model::{Model, Reply},
    service::{Mode, Service},
};

in_both_modes!(
    an_agent_knows_what_was_said_and_no_other_session_does,
    a_failed_run_leaves_no_half_turn,
    a_session_that_is_erased_while_it_is_answered_stays_erased,
    an_agent_that_is_deleted_while_it_answers_answers_and_leaves_nothing,
    two_sessions_at_once_do_not_mix
);

async fn setting(service: &Service) -> (Client, Model, Value) {
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "hasMemory": true, "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    (client, model, agent)
}

async fn say(client: &Client, agent: &Value, session: Option<&str>, text: &str) -> Value {
    let mut body = json!({"input": {"input": text}});
    if let Some(session) = session {
        body["session"] = json!(session);
    }
    client.ask(id(agent), &body).await.1
}

/// What was said in the conversation, without the system's message.
fn said(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().expect("messages").iter();
    messages.filter(|m| m["role"] != "system").map(|m| m["content"].as_str().expect("a text")).collect()
}

async fn an_agent_knows_what_was_said_and_no_other_session_does(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    for (text, answer) in
        [("I am Solveig.", "Hello [1] Solveig."), ("It rains.", "Oh."), ("It is cold.", "Brr.")]
    {
        model.reply(Reply::text(answer));
        say(&client, &agent, Some("a"), text).await;
    }
    model.reply(Reply::text("You are Solveig."));
    say(&client, &agent, Some("a"), "Who am I?").await;
    let last = model.bodies().pop().expect("a request");
    assert_eq!(
        said(&last),
        ["I am Solveig.", "Hello Solveig.", "It rains.", "Oh.", "It is cold.", "Brr.", "Who am I?"]
    );
    for session in [Some("b"), None] {
        model.reply(Reply::text("I do not know."));
        say(&client, &agent, session, "Who am I?").await;
        assert_eq!(said(&model.bodies().pop().expect("a request")), ["Who am I?"], "{session:?}");
    }
    client.delete(&format!("/agents/{}/sessions/a", id(&agent))).await;
    model.reply(Reply::text("I have forgotten."));
    say(&client, &agent, Some("a"), "Who am I?").await;
    assert_eq!(said(&model.bodies().pop().expect("a request")), ["Who am I?"]);
}

async fn a_failed_run_leaves_no_half_turn(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    model.reply(Reply::cut_after("Half an"));
    assert_eq!(say(&client, &agent, Some("a"), "First?").await["success"], false);
    model.reply(Reply::text("Yes."));
    // A stream is remembered as well as any other answer.
    let body = json!({"input": {"input": "Second?"}, "session": "a", "has_streaming": true});
    let answer = crate::support::client::send(client.predict_request(id(&agent), &body).await).await;
    crate::support::sse::events(answer).await;
    model.reply(Reply::text("Yes."));
    say(&client, &agent, Some("a"), "Third?").await;
    assert_eq!(said(&model.bodies().pop().expect("a request")), ["Second?", "Yes.", "Third?"]);
}

async fn a_session_that_is_erased_while_it_is_answered_stays_erased(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    // The first turn of a session, and one that goes on from others.
    for turns in 0..2 {
        for _ in 0..turns {
            model.reply(Reply::text("Hello."));
            say(&client, &agent, Some("a"), "I am Solveig.").await;
        }
        let gate = Gate::default();
        model.reply(Reply::gated("Oh, ", &gate, "I see."));
        let asking = tokio::spawn({
            let (client, agent) = (client.clone(), agent.clone());
            async move { say(&client, &agent, Some("a"), "I live on the third floor.").await }
        });
        gate.wait_until_reached().await;
        client.delete(&format!("/agents/{}/sessions/a", id(&agent))).await;
        gate.release();
        assert_eq!(asking.await.expect("an answer")["data"], "Oh, I see.");
        model.reply(Reply::text("I do not know."));
        say(&client, &agent, Some("a"), "Where do I live?").await;
        assert_eq!(said(&model.bodies().pop().expect("a request")), ["Where do I live?"], "{turns}");
        // What is said from then on is remembered.
        model.reply(Reply::text("You asked."));
        say(&client, &agent, Some("a"), "What did I ask?").await;
        let last = model.bodies().pop().expect("a request");
        assert_eq!(said(&last), ["Where do I live?", "I do not know.", "What did I ask?"], "{turns}");
        client.delete(&format!("/agents/{}/sessions/a", id(&agent))).await;
    }
}

async fn an_agent_that_is_deleted_while_it_answers_answers_and_leaves_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    for session in [Some("a"), None] {
        let agent = json!({"name": "guide", "type": "CHATVENDOR", "hasMemory": true, "llm": model.llm("m")});
        let agent = client.create_agent(&agent).await;
        let gate = Gate::default();
        model.reply(Reply::gated("Oh, ", &gate, "I see."));
        let asking = tokio::spawn({
            let (client, agent) = (client.clone(), agent.clone());
            async move { say(&client, &agent, session, "I live on the third floor.").await }
        });
        gate.wait_until_reached().await;
        data(client.delete(&format!("/agents/{}", id(&agent))).await);
        gate.release();
        let answer = asking.await.expect("an answer");
        assert_eq!(answer["data"], "Oh, I see.", "{answer:#}");
        let trace = id(&answer["trace"]);
        let (status, _) = client.get(&format!("/traces/{trace}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{session:?}");
        let is_told = |event: &Value| {
            event["fields"]["trace"] == trace
                && event["fields"]["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("was deleted while it answered"))
        };
        service.logged("that nothing is kept", is_told).await;
    }
    let errors: Vec<_> = service.log_events().into_iter().filter(|event| event["level"] == "ERROR").collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

async fn two_sessions_at_once_do_not_mix(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (client, model, agent) = setting(&service).await;
    let gates = [Gate::default(), Gate::default()];
    model.always(Reply::to_request({
        let gates = gates.clone();
        move |request| {
            let asked = said(request).pop().expect("a question").to_owned();
            let gate = if asked.contains("red") { &gates[0] } else { &gates[1] };
            Reply::gated("You like ", gate, if asked.contains("red") { "red." } else { "blue." })
        }
    }));
    let speak = |session: &'static str, text: &'static str| {
        let (client, agent) = (client.clone(), agent.clone());
        tokio::spawn(async move { say(&client, &agent, Some(session), text).await })
    };
    let (red, blue) = (speak("a", "I like red."), speak("b", "I like blue."));
    for gate in &gates {
        gate.wait_until_reached().await;
    }
    gates[1].release();
    assert_eq!(blue.await.expect("an answer")["data"], "You like blue.");
    gates[0].release();
    assert_eq!(red.await.expect("an answer")["data"], "You like red.");
    model.always(Reply::text("I know."));
    for (session, mine, other) in [("a", "red", "blue"), ("b", "blue", "red")] {
        say(&client, &agent, Some(session), "What do I like?").await;
        let request = model.bodies().pop().expect("a request").to_string();
        assert!(request.contains(mine) && !request.contains(other), "{session}: {request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_a_name_that_can_be_erased_again() {
    let service = Service::start().await;
    let (client, _, agent) = setting(&service).await;
    for session in ["", ".", ".."] {
        let (status, answer) =
            client.ask(id(&agent), &json!({"input": {"input": "Well?"}, "session": session})).await;
        assert_eq!(
            (status.as_u16(), &answer["error"]["fields"][0]["path"]),
            (422, &json!("session")),
            "{session:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_little_room_is_told_the_last_turns_only() {
    let service = Service::start().await;
    let (client, model, agent) = setting(&service).await;
    let mut llm = model.llm("m");
    llm["context_window"] = json!(400);
    client.patch(&format!("/agents/{}", id(&agent)), &json!({"llm": llm})).await;
    model.always(Reply::text("Yes."));
    for turn in ["first", "second", "third"] {
        say(&client, &agent, Some("a"), &format!("{turn} {}", "word ".repeat(60))).await;
    }
    let request = model.bodies().pop().expect("a request").to_string();
    assert!(request.contains("second") && !request.contains("first"), "{request}");
}
