//! Webhooks: what is told, to whom, signed, tried again, and not lost.

use std::{path::Path, process::Command};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    client::{Client, data, id, send},
    command::{lectern, meddle},
    in_both_modes,
    loopback::Seen,
    process::POLL,
    service::{Mode, Service},
    web::Web,
    within_deadline,
};

in_both_modes!(
    what_happens_is_told_and_signed,
    the_end_of_a_run_of_an_evaluation_is_told,
    what_is_not_taken_is_sent_again_and_what_is_gone_is_left_alone,
    an_address_from_before_they_were_encrypted_goes_on_working,
    nothing_is_lost_when_everything_is_killed,
    receivers_that_hang_keep_nobody_elses_events_waiting,
    builders_alone_have_webhooks_of_their_own_workspace
);

async fn webhook(client: &Client, url: &str, events: &[&str]) -> Value {
    client.create("/webhooks", &json!({"url": url, "events": events})).await
}

/// The deliveries to a webhook, when all that there are have ended.
async fn ended(client: &Client, webhook: &Value, count: usize) -> Vec<Value> {
    let path = format!("/webhooks/{}/deliveries", id(webhook));
    let ending = async {
        loop {
            let found = client.read(&path).await.as_array().expect("a list").clone();
            if found.len() == count && found.iter().all(|delivery| delivery["state"] != "pending") {
                return found;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the deliveries to end", ending).await
}

fn header<'a>(seen: &'a Seen, name: &str) -> &'a str {
    seen.header(name).unwrap_or_else(|| panic!("no {name}"))
}

/// Whether the published library takes a message; none where its environment is not there.
fn is_taken(secret: &str, seen: &Seen) -> Option<bool> {
    let python = std::env::var("TEST_CLIENTS_PYTHON").ok()?;
    let script = "import sys, json\nfrom standardwebhooks.webhooks import Webhook\nwh = Webhook(sys.argv[1])\nwh.verify(sys.argv[2], json.loads(sys.argv[3]))";
    let headers = json!({
        "webhook-id": header(seen, "webhook-id"),
        "webhook-timestamp": header(seen, "webhook-timestamp"),
        "webhook-signature": header(seen, "webhook-signature"),
    });
    let body = String::from_utf8(seen.body.to_vec()).expect("text");
    let program = Path::new(&python).join("bin/python");
    let ran = Command::new(program).args(["-c", script, secret, &body, &headers.to_string()]).output();
    Some(ran.expect("python").status.success())
}

fn assert_taken(secret: &str, seen: &Seen) {
    match is_taken(secret, seen) {
        Some(is_taken) => assert!(is_taken, "{:?}", seen.headers),
        None => eprintln!(
            "TEST_CLIENTS_PYTHON is not set: the signature was NOT checked by the published library"
        ),
    }
}

async fn what_happens_is_told_and_signed(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = web.serve("/told", "text/plain", "thanks");
    let every = ["document.succeeded", "document.failed", "document.deleted", "agent.failed"];
    let made = webhook(&owner, &url, &every).await;
    let secret = made["secret"].as_str().expect("it is shown once").to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert_eq!(owner.read(&format!("/webhooks/{}", id(&made))).await["secret"], Value::Null);
    let only_failures =
        webhook(&owner, &web.serve("/failures", "text/plain", ""), &["document.failed"]).await;

    let note =
        owner.ingest(&json!({"name": "Note", "type": "TXT", "content": "The gate opens at nine."})).await;
    let gone = json!({"name": "Gone", "type": "URL", "url": web.status("/gone", 404)});
    let gone = owner.create_document(&gone).await;
    owner.wait_until_ingested(id(&gone)).await;
    data(owner.delete(&format!("/documents/{}", id(&note))).await);
    let llm = json!({"provider": "openai-compatible", "model": "m", "base_url": web.url("/no-model"), "api_key": "k"});
    let agent = owner.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR", "llm": llm})).await;
    let (status, _) = owner.predict(id(&agent), "When does the gate open?").await;
    assert!(status.is_server_error(), "{status}");

    let told = ended(&owner, &made, 4).await;
    assert!(
        told.iter().all(|delivery| delivery["state"] == "delivered" && delivery["attempts"] == 1),
        "{told:#?}"
    );
    let seen = web.wait_for_hits("/told", 4).await;
    let find = |event: &str| {
        let body = |seen: &Seen| serde_json::from_slice::<Value>(&seen.body).expect("JSON");
        let found = seen.iter().find(|seen| body(seen)["type"] == event);
        let found = found.unwrap_or_else(|| panic!("{event} is not told"));
        (found, body(found))
    };
    let (_, body) = find("document.succeeded");
    assert_eq!(body["data"], json!({"documentId": id(&note), "name": "Note"}));
    assert!(body["timestamp"].as_str().is_some_and(|time| time.contains('T')), "{body}");
    let (_, body) = find("document.failed");
    assert_eq!(
        (&body["data"]["documentId"], &body["data"]["error"]["code"]),
        (&gone["id"], &json!("not_found"))
    );
    let (_, body) = find("document.deleted");
    assert_eq!(body["data"]["deletedBy"], owner.user()["id"]);
    let (failed, body) = find("agent.failed");
    assert_eq!(body["data"]["agentId"], agent["id"]);
    assert!(header(failed, "webhook-id").starts_with("msg_"));
    for seen in &seen {
        assert_taken(&secret, seen);
    }
    let forged = format!("whsec_{}", "A".repeat(44));
    assert_ne!(is_taken(&forged, &seen[0]), Some(true), "another secret fits nothing");
    assert_eq!(ended(&owner, &only_failures, 1).await[0]["event"], "document.failed");

    // With new secrets the earlier ones fit for a while, and a test is told to one that is switched off, too.
    let rotate = async || {
        let rotated = data(owner.post(&format!("/webhooks/{}/rotate", id(&made)), &json!({})).await);
        rotated["secret"].as_str().expect("it is shown once").to_owned()
    };
    let (newer, newest) = (rotate().await, rotate().await);
    data(owner.patch(&format!("/webhooks/{}", id(&made)), &json!({"active": false})).await);
    data(owner.post(&format!("/webhooks/{}/test", id(&made)), &json!({})).await);
    let seen = web.wait_for_hits("/told", 5).await;
    for one in [&secret, &newer, &newest] {
        assert_taken(one, &seen[4]);
    }
    owner.ingest(&json!({"name": "Untold", "type": "TXT", "content": "Nobody is told."})).await;
    assert_eq!(ended(&owner, &made, 5).await.len(), 5, "nothing is told to one that is off");
    service.assert_no_secret_in_logs(&[&secret, &newer, &newest]);
}

async fn the_end_of_a_run_of_an_evaluation_is_told(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let made = webhook(&owner, &web.serve("/told", "text/plain", "thanks"), &["evaluation.finished"]).await;
    let note = json!({"name": "Note", "type": "TXT", "content": "The gate opens at nine."});
    let note = owner.ingest(&note).await;
    let set = owner.create("/evaluations", &json!({"name": "Questions"})).await;
    let case = json!({"question": "When does the gate open?", "expect": [{"documentId": id(&note)}]});
    owner.create(&format!("/evaluations/{}/cases", id(&set)), &case).await;
    let run = owner.create(&format!("/evaluations/{}/runs", id(&set)), &json!({"mode": "lexical"})).await;
    let told = ended(&owner, &made, 1).await;
    assert_eq!((&told[0]["event"], &told[0]["state"]), (&json!("evaluation.finished"), &json!("delivered")));
    let data = &told[0]["body"]["data"];
    let expected = json!({
        "evaluationId": id(&set), "name": "Questions", "runId": id(&run), "state": "succeeded", "error": null,
        "cases": 1, "done": 1, "failed": 0, "metrics": data["metrics"],
    });
    assert_eq!(*data, expected);
    assert_eq!((&data["metrics"]["hit@5"], &data["metrics"]["mrr"]), (&json!(1.0), &json!(1.0)), "{data:#}");
}

async fn what_is_not_taken_is_sent_again_and_what_is_gone_is_left_alone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    // The second attempt comes after five seconds or so.
    let url = web.flaky("/flaky", 1, 503, "text/plain", "thanks");
    let made = webhook(&owner, &url, &["document.succeeded"]).await;
    data(owner.post(&format!("/webhooks/{}/test", id(&made)), &json!({})).await);
    let told = ended(&owner, &made, 1).await;
    assert_eq!((&told[0]["state"], &told[0]["attempts"]), (&json!("delivered"), &json!(2)), "{told:#?}");
    let seen = web.requests("/flaky");
    assert_eq!(header(&seen[0], "webhook-id"), header(&seen[1], "webhook-id"), "it is known again");
    assert_eq!(seen[0].body, seen[1].body);
    // Again, when somebody asks for it.
    let replay = format!("/webhooks/{}/deliveries/{}/replay", id(&made), id(&told[0]));
    data(owner.post(&replay, &json!({})).await);
    let seen = web.wait_for_hits("/flaky", 3).await;
    assert_eq!(header(&seen[0], "webhook-id"), header(&seen[2], "webhook-id"));

    // However long an answer is, its status says that the event was taken.
    let long = web.serve("/long", "text/plain", "thanks ".repeat(100_000));
    let made = webhook(&owner, &long, &["document.succeeded"]).await;
    data(owner.post(&format!("/webhooks/{}/test", id(&made)), &json!({})).await);
    let told = ended(&owner, &made, 1).await;
    assert_eq!((&told[0]["state"], &told[0]["attempts"]), (&json!("delivered"), &json!(1)), "{told:#?}");

    let gone = webhook(&owner, &web.status("/gone", 410), &["document.succeeded"]).await;
    data(owner.post(&format!("/webhooks/{}/test", id(&gone)), &json!({})).await);
    let told = ended(&owner, &gone, 1).await;
    assert_eq!((&told[0]["state"], &told[0]["status"]), (&json!("failed"), &json!(410)));
    let off = owner.read(&format!("/webhooks/{}", id(&gone))).await;
    assert_eq!(off["active"], false);
    assert!(off["disabled"].as_str().is_some_and(|why| why.contains("410")), "{off:#}");
    let on = data(owner.patch(&format!("/webhooks/{}", id(&gone)), &json!({"active": true})).await);
    assert_eq!(on["disabled"], Value::Null);

    // A redirect is not followed, and a private network is not reached.
    let moved = webhook(&owner, &web.redirect("/moved", "/told"), &["document.succeeded"]).await;
    data(owner.post(&format!("/webhooks/{}/test", id(&moved)), &json!({})).await);
    let path = format!("/webhooks/{}/deliveries", id(&moved));
    let tried = async {
        loop {
            let found = owner.read(&path).await;
            if found[0]["attempts"] == 1 && !found[0]["error"].is_null() {
                return found;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let tried = within_deadline("the first attempt", tried).await;
    assert_eq!((&tried[0]["state"], &tried[0]["status"]), (&json!("pending"), &json!(302)), "{tried:#}");
    assert_eq!(web.hits("/told"), 0);
    for refused in ["ftp://a.example", "http://user:secret@a.example/", "http://10.0.0.1/", "nowhere"] {
        let (status, _) =
            owner.post("/webhooks", &json!({"url": refused, "events": ["document.failed"]})).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    }
    for events in
        [json!([]), json!(["document.eaten"]), json!(["webhook.test"]), json!("document.failed"), json!(null)]
    {
        let (status, _) = owner.post("/webhooks", &json!({"url": url, "events": events})).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{events}");
    }
    let (status, answer) = owner.post("/webhooks", &json!({ "url": url })).await;
    assert_eq!(
        (status, &answer["error"]["fields"][0]["path"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("events")),
        "{answer:#}"
    );
}

async fn an_address_from_before_they_were_encrypted_goes_on_working(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = format!("{}?key=opens-it", web.serve("/told", "text/plain", "thanks"));
    let [kept, changed] = [
        webhook(&owner, &url, &["document.deleted"]).await,
        webhook(&owner, &url, &["document.deleted"]).await,
    ];
    let setup = service.sibling();
    let plain = async || meddle(mode, &setup, "UPDATE webhooks SET url = url WHERE url <> ''").await;
    assert_eq!(plain().await, 0);
    let before = format!("UPDATE webhooks SET url = '{url}', url_sealed = NULL");
    assert_eq!(meddle(mode, &setup, &before).await, 2);
    let works = async |one: &Value, tests: usize| {
        assert_eq!(owner.read(&format!("/webhooks/{}", id(one))).await["url"], url);
        data(owner.post(&format!("/webhooks/{}/test", id(one)), &json!({})).await);
        let told = ended(&owner, one, tests).await;
        assert!(told.iter().all(|told| told["state"] == "delivered"), "{told:#?}");
    };
    works(&kept, 1).await;
    assert_eq!(plain().await, 2);
    // Whatever is changed of it.
    let path = format!("/webhooks/{}", id(&changed));
    let answer = data(owner.patch(&path, &json!({"events": ["document.failed"]})).await);
    assert_eq!(answer["url"], url);
    assert_eq!(plain().await, 1);
    works(&changed, 1).await;
    // Those that nobody changes, when the operator has it done.
    let ran = lectern(&setup, &["reencrypt"]).well();
    assert!(ran.out.contains("encrypted under LECTERN_SECRET_KEY: 1\n"), "{ran:#?}");
    assert_eq!(plain().await, 0);
    works(&kept, 2).await;
    let seen = web.requests("/told");
    assert!(seen.len() == 3 && seen.iter().all(|seen| seen.target == "/told?key=opens-it"), "{}", seen.len());
    service.assert_no_secret_in_logs(&["opens-it"]);
}

async fn nothing_is_lost_when_everything_is_killed(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/told", "text/plain", "thanks");
    let made = webhook(&owner, &url, &["document.succeeded", "document.deleted"]).await;
    let mut documents = Vec::new();
    for number in 0..6 {
        let text = format!("The number {number}.");
        documents.push(owner.ingest(&json!({"name": "Note", "type": "TXT", "content": text})).await);
    }
    for document in &documents[..3] {
        data(owner.delete(&format!("/documents/{}", id(document))).await);
    }
    // In the middle of deliveries, which their receiver holds up.
    web.wait_for_hits("/told", 1).await;
    service.kill();
    gate.release();
    service.restart().await;
    // What a process had begun is tried again when it must have gone away: it is replayed here, as nobody waits for a minute.
    let path = format!("/webhooks/{}/deliveries", id(&made));
    let found = owner.read(&path).await;
    let found = found.as_array().expect("a list");
    assert_eq!(found.len(), 9, "each event is written with what makes it true");
    for begun in found.iter().filter(|delivery| delivery["state"] == "pending" && delivery["attempts"] != 0) {
        data(owner.post(&format!("{path}/{}/replay", id(begun)), &json!({})).await);
    }
    let told = ended(&owner, &made, 9).await;
    assert!(told.iter().all(|delivery| delivery["state"] == "delivered"), "{told:#?}");
    let secret = made["secret"].as_str().expect("a secret");
    let seen = web.requests("/told");
    let mut ids: Vec<&str> = seen.iter().map(|seen| header(seen, "webhook-id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 9, "every event, whichever came twice");
    assert_taken(secret, seen.last().expect("a request"));
}

async fn receivers_that_hang_keep_nobody_elses_events_waiting(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (ada, ben) = (service.signed_up("ada@example.com").await, service.signed_up("ben@example.com").await);
    let web = Web::start().await;
    let url = web.hang("/hang");
    let test = async |client: &Client, webhook: &Value| {
        client.post(&format!("/webhooks/{}/test", id(webhook)), &json!({})).await
    };
    // Each of the twenty has two that could be under way: more than all workspaces may have together.
    let mut hanging = Vec::new();
    for _ in 0..20 {
        let webhook = webhook(&ada, &url, &["document.failed"]).await;
        for _ in 0..2 {
            data(test(&ada, &webhook).await);
        }
        hanging.push(webhook);
    }
    web.wait_for_hits("/hang", 4).await;
    let theirs = webhook(&ben, &web.serve("/told", "text/plain", "thanks"), &["document.failed"]).await;
    data(test(&ben, &theirs).await);
    assert_eq!(ended(&ben, &theirs, 1).await[0]["state"], "delivered");
    // Four were under way in each process, and were given up after a quarter of a minute at the earliest.
    assert!(web.hits("/hang") < 16, "{} were under way", web.hits("/hang"));

    // Nor is what waits without an end.
    for _ in 2..10 {
        data(test(&ada, &hanging[19]).await);
    }
    let (status, error) = test(&ada, &hanging[19]).await;
    assert_eq!((status, error["error"]["code"].as_str()), (StatusCode::CONFLICT, Some("too_many_tests")));
    data(test(&ada, &hanging[18]).await);
}

async fn builders_alone_have_webhooks_of_their_own_workspace(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let other = service.signed_up("ben@example.com").await;
    let web = Web::start().await;
    let url = web.serve("/told", "text/plain", "");
    let made = webhook(&owner, &url, &["document.deleted"]).await;
    let of_it = format!("/webhooks/{}", id(&made));
    for (method, path) in [
        (Method::GET, of_it.clone()),
        (Method::DELETE, of_it.clone()),
        (Method::POST, format!("{of_it}/rotate")),
        (Method::POST, format!("{of_it}/test")),
        (Method::GET, format!("{of_it}/deliveries")),
    ] {
        let answer = send(other.request(method.clone(), &path).json(&json!({}))).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{method} {path}");
    }
    // What another workspace does is not told here.
    let note = other.ingest(&json!({"name": "Note", "type": "TXT", "content": "A note."})).await;
    data(other.delete(&format!("/documents/{}", id(&note))).await);
    assert_eq!(owner.read(&format!("{of_it}/deliveries")).await, json!([]));
    for _ in 1..20 {
        webhook(&owner, &url, &["document.deleted"]).await;
    }
    let (status, error) = owner.post("/webhooks", &json!({"url": url, "events": ["document.deleted"]})).await;
    assert_eq!((status, error["error"]["code"].as_str()), (StatusCode::CONFLICT, Some("too_many_webhooks")));
    data(owner.delete(&of_it).await);
    assert_eq!(owner.get(&of_it).await.0, StatusCode::NOT_FOUND);
}
