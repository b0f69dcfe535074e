//! A creating request that is sent again creates nothing again.

use std::path::Path;

use futures::future::join_all;
use lectern_shared::secrets::hex;
use reqwest::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{
    bodies::Refused,
    support::{
        client::{Client, PASSWORD, data, envelope, id, send},
        in_both_modes, on_postgres_too,
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    a_request_that_is_sent_again_gets_the_same_answer_and_creates_nothing,
    what_is_begun_by_a_request_is_begun_once,
    without_a_key_or_with_another_one_each_request_creates,
    of_many_equal_requests_at_once_one_creates_and_all_get_its_answer,
    a_key_belongs_to_one_request,
    a_key_belongs_to_one_user,
    a_request_that_fails_does_not_use_its_key_up,
    what_is_no_key_is_refused_and_creates_nothing,
    an_answer_is_not_given_again_to_a_credential_that_was_taken_away,
    an_answer_is_not_given_again_to_a_credential_that_could_not_have_made_it,
    no_kept_answer_and_no_key_of_an_address_can_be_read_in_the_database
);

on_postgres_too!(of_many_equal_requests_at_once_one_creates_and_all_get_its_answer);

const TOKENS: &str = "/api-tokens";

/// What came back of a creating request.
#[derive(Debug, PartialEq, Eq)]
struct Created {
    body: String,
    replayed: bool,
}

impl Created {
    fn data(&self) -> Value {
        serde_json::from_str::<Value>(&self.body).expect("JSON")["data"].take()
    }
}

/// Creates something, which has to succeed.
async fn create(client: &Client, path: &str, key: &str, body: &Value) -> Created {
    let answer = send(client.request(Method::POST, path).header("Idempotency-Key", key).json(body)).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers().get(CONTENT_TYPE), Some(&HeaderValue::from_static("application/json")));
    assert!(answer.headers().contains_key("x-request-id"));
    let replayed = answer.headers().get("idempotent-replayed").map(HeaderValue::as_bytes);
    assert!(replayed.is_none_or(|value| value == b"true"), "{replayed:?}");
    Created { replayed: replayed.is_some(), body: answer.text().await.expect("a body") }
}

/// Sends a creating request, and returns the status and the envelope.
async fn post(client: &Client, path: &str, key: &str, body: &Value) -> (StatusCode, Value) {
    envelope(send(client.request(Method::POST, path).header("Idempotency-Key", key).json(body)).await).await
}

async fn count(client: &Client, path: &str) -> usize {
    client.read(path).await.as_array().expect("a list").len()
}

async fn a_request_that_is_sent_again_gets_the_same_answer_and_creates_nothing(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let things = [
        (TOKENS, json!({"description": "nightly reports"})),
        (
            "/agents",
            json!({"name": "Clerk", "type": "REACT", "llm": {"model": "m", "provider": "openai-chat"}}),
        ),
        ("/tags", json!({"name": "urgent", "color": "#ff0000"})),
    ];
    let mut first = Vec::new();
    for (path, body) in &things {
        let created = create(&ada, path, path, body).await;
        assert!(!created.replayed, "{path}: nothing was answered before");
        let again = create(&ada, path, path, body).await;
        assert!(again.replayed, "{path}: the answer says that it was given before");
        assert_eq!(again.body, created.body, "{path}: byte for byte");
        assert_eq!(count(&ada, path).await, 1, "{path}");
        first.push(created);
    }

    // Fields in another order say the same.
    let agent = r#"{ "type": "REACT", "llm": {"provider": "openai-chat", "model": "m"}, "name": "Clerk" }"#;
    let request = ada.request(Method::POST, "/agents").header("Idempotency-Key", "/agents");
    let reordered = send(request.header(CONTENT_TYPE, "application/json").body(agent)).await;
    assert_eq!(reordered.text().await.expect("a body"), first[1].body);

    // What became of the thing meanwhile does not matter, and neither does a restart.
    ada.delete(&format!("{TOKENS}/{}", id(&first[0].data()))).await;
    service.restart().await;
    for ((path, body), created) in things.iter().zip(&first) {
        assert_eq!(create(&ada, path, path, body).await.body, created.body, "{path}");
    }
    assert_eq!(count(&ada, TOKENS).await, 0, "what was deleted is not made again");
}

async fn what_is_begun_by_a_request_is_begun_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    web.serve("/", "text/html", "<title>Home</title><p>Welcome.</p>");
    let source = json!({"name": "Site", "type": "site", "config": {"url": web.url("/")}});
    let source = format!("/sources/{}", id(&ada.create("/sources", &source).await));
    let set =
        format!("/evaluations/{}", id(&ada.create("/evaluations", &json!({"name": "Questions"})).await));
    ada.create(&format!("{set}/cases"), &json!({"question": "Who?", "expect": "decline"})).await;
    let webhook = json!({"url": web.serve("/told", "text/plain", ""), "events": ["document.failed"]});
    let webhook = format!("/webhooks/{}", id(&ada.create("/webhooks", &webhook).await));
    for (begin, begun) in [
        (format!("{source}/run"), format!("{source}/runs")),
        (format!("{set}/runs"), format!("{set}/runs")),
        (format!("{webhook}/test"), format!("{webhook}/deliveries")),
    ] {
        let first = create(&ada, &begin, &begin, &json!({})).await;
        assert!(!first.replayed, "{begin}");
        let again = create(&ada, &begin, &begin, &json!({})).await;
        assert_eq!((again.replayed, &again.body), (true, &first.body), "{begin}");
        // Nothing at all says as much as an empty object.
        let bare = send(ada.request(Method::POST, &begin).header("Idempotency-Key", &begin)).await;
        assert!(bare.headers().contains_key("idempotent-replayed"), "{begin}");
        assert_eq!(count(&ada, &begun).await, 1, "{begin}");
        let thing = &ada.read(&begun).await[0];
        assert_eq!(thing["workspaceId"], ada.user()["id"], "{thing:#}");
        assert!(thing["updatedAt"].as_str() >= thing["createdAt"].as_str(), "{thing:#}");
    }
    // A secret that was not seen is told again, and not made anew.
    let rotate = format!("{webhook}/rotate");
    let first = create(&ada, &rotate, "rotate", &json!({})).await;
    assert_eq!(create(&ada, &rotate, "rotate", &json!({})).await.body, first.body);
}

async fn without_a_key_or_with_another_one_each_request_creates(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let body = json!({"description": "nightly reports"});
    let longest = "k".repeat(255);
    for key in ["a", "A", "order 17 / try \"2\"", &longest] {
        assert!(!create(&ada, TOKENS, key, &body).await.replayed, "{key}");
    }
    for _ in 0..2 {
        ada.create(TOKENS, &body).await;
    }
    assert_eq!(count(&ada, TOKENS).await, 6);
}

async fn of_many_equal_requests_at_once_one_creates_and_all_get_its_answer(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let body = json!({"description": "nightly reports"});
    for round in 1..=3 {
        let key = format!("round {round}");
        let created = join_all((0..10).map(|_| create(&ada, TOKENS, &key, &body))).await;
        assert!(created.iter().all(|one| one.body == created[0].body), "{created:#?}");
        assert_eq!(created.iter().filter(|one| !one.replayed).count(), 1, "{created:#?}");
        assert_eq!(count(&ada, TOKENS).await, round);
    }
}

async fn a_key_belongs_to_one_request(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    // It would be good for either path.
    let body = json!({"description": "nightly reports", "name": "Clerk", "type": "REACT"});
    let created = create(&ada, TOKENS, "key", &body).await;

    let other = json!({"description": "weekly reports", "name": "Clerk", "type": "REACT"});
    for (path, body, what) in [
        (TOKENS, &other, "another body"),
        (TOKENS, &json!({}), "another body, which is not valid either"),
        ("/agents", &body, "another path"),
    ] {
        let (status, answer) = post(&ada, path, "key", body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{what}: {answer:#}");
        assert_eq!(answer["error"]["code"], "idempotency_key_reused", "{what}");
    }
    assert_eq!((count(&ada, TOKENS).await, count(&ada, "/agents").await), (1, 0));
    assert_eq!(
        create(&ada, TOKENS, "key", &body).await.body,
        created.body,
        "the first request keeps its key"
    );
}

async fn a_key_belongs_to_one_user(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let body = json!({"description": "nightly reports"});
    let hers = create(&ada, TOKENS, "key", &body).await;
    let other = create(&grace, TOKENS, "key", &body).await;
    assert!(!other.replayed && other.data()["token"] != hers.data()["token"]);
    assert_eq!(other.data()["userId"], grace.user()["id"]);
    assert_eq!(create(&ada, TOKENS, "key", &body).await.body, hers.body);
    // Whatever others do with the same key.
    let (status, _) = post(&grace, TOKENS, "key", &json!({"description": "weekly reports"})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!((count(&ada, TOKENS).await, count(&grace, TOKENS).await), (1, 1));
}

async fn a_request_that_fails_does_not_use_its_key_up(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let good = json!({"description": "nightly reports"});
    for bad in [json!({}), json!({"description": 7}), json!([])] {
        let (status, _) = post(&ada, TOKENS, "key", &bad).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
    let (status, _) = post(&ada.with_token("nonsense"), TOKENS, "key", &good).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(!create(&ada, TOKENS, "key", &good).await.replayed);
    assert_eq!(count(&ada, TOKENS).await, 1);
}

async fn what_is_no_key_is_refused_and_creates_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let too_long = "k".repeat(256);
    let bad: [&[&[u8]]; 5] = [&[b""], &[too_long.as_bytes()], &["clé".as_bytes()], &[b"a\tb"], &[b"a", b"b"]];
    for keys in bad {
        let mut request = ada.request(Method::POST, TOKENS).json(&json!({"description": "nightly reports"}));
        for key in keys {
            request = request.header("Idempotency-Key", HeaderValue::from_bytes(key).expect("a header"));
        }
        let refused = Refused::by(envelope(send(request).await).await);
        assert_eq!(refused.paths(), ["Idempotency-Key"], "{keys:?}");
    }
    assert_eq!(count(&ada, TOKENS).await, 0);
}

async fn an_answer_is_not_given_again_to_a_credential_that_was_taken_away(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let script = ada.create(TOKENS, &json!({"description": "of a script"})).await;
    let script_client = ada.with_token(script["token"].as_str().expect("the value"));
    let body = json!({"description": "nightly reports"});
    let created = create(&script_client, TOKENS, "key", &body).await;
    ada.delete(&format!("{TOKENS}/{}", id(&script))).await;
    let (status, _) = post(&script_client, TOKENS, "key", &body).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);

    // Not to one that could not have made it either.
    let asker = ada.create(TOKENS, &json!({"description": "asks", "role": "asker"})).await;
    let asker = ada.with_token(asker["token"].as_str().expect("the value"));
    let refused = post(&asker, TOKENS, "key", &body).await;
    assert_eq!(refused.0, StatusCode::CONFLICT);

    // The key is the user's, with whichever credential.
    assert_eq!(create(&ada, TOKENS, "key", &body).await.body, created.body);
    let (status, _) = ada.post("/auth/sign-out", &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(post(&ada, TOKENS, "key", &body).await.0, StatusCode::UNAUTHORIZED);
    let again = service.client().sign_in("ada@example.com", PASSWORD).await;
    assert_eq!(create(&again, TOKENS, "key", &body).await.body, created.body);
}

async fn an_answer_is_not_given_again_to_a_credential_that_could_not_have_made_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let with_token = async |body: Value| {
        let made = ada.create(TOKENS, &body).await;
        ada.with_token(made["token"].as_str().expect("the value"))
    };
    let refused = async |client: &Client, path: &str, key: &str, body: &Value, what: &str| {
        let (status, answer) = post(client, path, key, body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{what}: {answer:#}");
        assert_eq!(answer["error"]["code"], "idempotency_key_reused", "{what}");
    };
    let owner = with_token(json!({"description": "owns", "role": "owner"})).await;
    let builder = with_token(json!({"description": "builds"})).await;
    let other = with_token(json!({"description": "builds as well"})).await;
    let limited = with_token(json!({"description": "is slow", "ratePerMinute": 600})).await;
    let editor = with_token(json!({"description": "edits", "role": "editor"})).await;

    // What opens more than the credential does.
    let token = json!({"description": "everything", "role": "owner"});
    let invitations = format!("/workspaces/{}/invitations", id(ada.user()));
    let invitation = json!({"role": "owner"});
    for (path, body) in [(TOKENS, &token), (invitations.as_str(), &invitation)] {
        let made = create(&ada, path, path, body).await;
        assert_eq!(create(&owner, path, path, body).await.body, made.body, "{path}");
        for client in [&builder, &limited, &editor] {
            refused(client, path, path, body, path).await;
        }
    }
    let workspace = json!({"name": "Archive"});
    let made = create(&ada, "/workspaces", "workspace", &workspace).await;
    refused(&owner, "/workspaces", "workspace", &workspace, "only who is signed in makes one").await;
    assert_eq!(create(&ada, "/workspaces", "workspace", &workspace).await.body, made.body);
    let token = json!({"description": "builds without a limit"});
    let made = create(&ada, TOKENS, "builder", &token).await;
    assert_eq!(create(&builder, TOKENS, "builder", &token).await.body, made.body);
    refused(&limited, TOKENS, "builder", &token, "a limited token").await;

    // What a builder may make is told to builders, and what a token made to that token and its owner.
    let agent = json!({"name": "Clerk", "type": "CHATVENDOR"});
    let made = create(&ada, "/agents", "hers", &agent).await;
    assert_eq!(create(&builder, "/agents", "hers", &agent).await.body, made.body);
    refused(&editor, "/agents", "hers", &agent, "an editor").await;
    for (maker, key) in [(&builder, "the builder's"), (&limited, "the limited one's")] {
        let made = create(maker, "/agents", key, &agent).await;
        for again in [maker, &ada] {
            assert_eq!(create(again, "/agents", key, &agent).await.body, made.body, "{key}");
        }
        for client in [&owner, &other, &editor] {
            refused(client, "/agents", key, &agent, key).await;
        }
    }
    assert_eq!(count(&ada, "/agents").await, 3, "one for each key");
}

async fn no_kept_answer_and_no_key_of_an_address_can_be_read_in_the_database(mode: Mode) {
    const API_KEY: &str = "sk-very-secret-key-of-a-model-provider";
    const PATH: &str = "a-path-that-opens-a-door";
    const QUERIES: [&str; 2] = ["a-query-that-opened-it", "a-query-that-opens-it"];
    let mut service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let created = create(&ada, TOKENS, "a key in plain text", &json!({"description": "in plain text"})).await;
    let llm = json!({"model": "m", "provider": "openai-chat", "api_key": API_KEY});
    let agent = json!({"name": "Clerk", "type": "REACT", "llm": llm});
    create(&ada, "/agents", "an agent's", &agent).await;
    let token = created.data()["token"].as_str().expect("the value").to_owned();
    let [first, query] = QUERIES;
    let address = |key: &str| format!("https://a.example/{PATH}?key={key}");
    let told = json!({"url": address(first), "events": ["document.deleted"]});
    let webhook = create(&ada, "/webhooks", "a webhook's", &told).await.data();
    let webhook = format!("/webhooks/{}", id(&webhook));
    data(ada.patch(&webhook, &json!({"url": address(query)})).await);
    assert_eq!(ada.read(&webhook).await["url"], address(query), "whoever may change it sees it");

    let everything = match service.sibling().environment().get("DATABASE_URL") {
        Some(url) => every_row(url.to_str().expect("text")).await,
        None => {
            // So that everything is in the files.
            assert!(service.terminate().await.success());
            every_file(service.data_dir())
        }
    };
    let holds = |text: &str| everything.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(
        holds("in plain text") && holds("a key in plain text"),
        "a search that finds nothing proves nothing"
    );
    for secret in [token.as_str(), API_KEY, PATH, first, query] {
        assert!(!holds(secret) && !holds(&hex(secret.as_bytes())), "{secret} can be read");
    }
}

/// Every file below a folder.
fn every_file(folder: &Path) -> Vec<u8> {
    let mut everything = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            everything.extend(every_file(&path));
        } else {
            everything.extend(std::fs::read(&path).expect("a file"));
        }
    }
    everything
}

/// Every row of every table of a PostgreSQL database as text; binary columns in hexadecimal digits.
async fn every_row(url: &str) -> Vec<u8> {
    let mut connection = PgConnection::connect(url).await.expect("the service's database");
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'")
            .fetch_all(&mut connection)
            .await
            .expect("the tables");
    let mut everything = Vec::new();
    for table in tables {
        let rows: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT CAST(t AS TEXT) FROM \"{table}\" t")))
                .fetch_all(&mut connection)
                .await
                .expect("its rows");
        everything.extend(rows.concat().into_bytes());
    }
    everything
}
