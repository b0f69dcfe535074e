//! The secret key is changed, and the old one is not needed any more.

use std::process::{Command, Output};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::support::{
    client::{Client, PASSWORD, data, id, send},
    in_both_modes,
    model::{API_KEY, Model, Reply},
    service::{Mode, Service},
    setup::{Program, Setup},
    web::Web,
};

in_both_modes!(
    the_key_is_changed_twice_and_everything_goes_on_working,
    what_no_key_opens_is_named_and_the_rest_is_done,
    the_old_key_stays_as_long_as_a_process_writes_under_it
);

const KEY: &str = "LECTERN_SECRET_KEY";
const PREVIOUS: &str = "LECTERN_SECRET_KEY_PREVIOUS";
const HEADER: &str = "header-0123456789abcdef";
const BEARER: &str = "bearer-0123456789abcdef";
const QUERY: &str = "query-0123456789abcdef";
const NEW: [&str; 2] =
    ["the first new key, of thirty-two bytes or more", "the second new key, of as many bytes or more"];

/// Runs the command with the settings of a service, which may be running.
fn reencrypt(setup: &Setup) -> (Output, String) {
    let output = Command::new(Program::Lectern.path())
        .arg("reencrypt")
        .env_clear()
        .envs(setup.environment())
        .current_dir(setup.data_dir())
        .output()
        .expect("it starts");
    let told = [&*output.stderr, &*output.stdout].map(String::from_utf8_lossy).concat();
    (output, told)
}

/// How many values were encrypted anew, as the command says.
fn renewed(told: &str) -> u64 {
    let count = told.lines().find_map(|line| line.strip_prefix("encrypted under LECTERN_SECRET_KEY: "));
    count.unwrap_or_else(|| panic!("{told}")).parse().expect("a number")
}

/// The key that the service has now.
fn key_of(service: &Service) -> String {
    match service.sibling().environment().get(KEY) {
        Some(key) => key.to_str().expect("text").to_owned(),
        // Embedded, one was made.
        None => std::fs::read_to_string(service.data_dir().join("secret.key")).expect("a key"),
    }
}

/// What holds secrets, and where they are sent.
struct Secrets {
    model: Model,
    web: Web,
    agent: Value,
    document: Value,
    token: Value,
    webhook: Value,
    answer: String,
}

impl Secrets {
    async fn new(ada: &Client) -> Self {
        let (model, web) = (Model::start().await, Web::start().await);
        let agent =
            ada.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m")})).await;
        let api = json!({"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {
            "/pets": {"get": {"operationId": "pets", "responses": {"200": {"description": "pets"}}}},
        }});
        let address = web.serve("/openapi.json", "application/json", api.to_string());
        web.serve("/pets", "text/plain", "a cat");
        let tool = json!({"name": "api", "type": "OPENAPI", "metadata": {
            "openApiUrl": address, "headers": {"X-Key": HEADER},
        }});
        ada.create_tool_for(id(&agent), &tool).await;
        let url = web.serve("/closed.txt", "text/plain", "The gate opens at nine.");
        let document = ada
            .ingest(&json!({
                "name": "gate", "type": "TXT", "url": url, "authorization": {"type": "bearer", "token": BEARER},
            }))
            .await;
        let token = ada.create("/api-tokens", &json!({"description": "for programs"})).await;
        let url = format!("{}?key={QUERY}", web.serve("/told", "text/plain", "thanks"));
        let webhook = ada.create("/webhooks", &json!({"url": url, "events": ["document.deleted"]})).await;
        let answer = Self::create_once(ada).await;
        Self { model, web, agent, document, token, webhook, answer }
    }

    /// A request that creates a tag the first time.
    async fn create_once(ada: &Client) -> String {
        let request = ada.request(Method::POST, "/tags").header("Idempotency-Key", "once");
        let answer = send(request.json(&json!({"name": "urgent", "color": "#d73a4a"}))).await;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.text().await.expect("a body")
    }

    /// Everything that was stored is still sent and shown as it was. `ada` has any credential of hers.
    async fn assert_work(&self, ada: &Client) {
        self.model.reply(Reply::tool_calls([("api_pets", json!({}))]));
        self.model.reply(Reply::text("A cat."));
        let (status, answer) = ada
            .post(&format!("/agents/{}/predict", id(&self.agent)), &json!({"input": {"input": "Which pet?"}}))
            .await;
        assert_eq!((status, &answer["data"]), (StatusCode::OK, &json!("A cat.")), "{answer:#}");
        let asked = self.model.requests().pop().expect("a request");
        assert_eq!(asked.header("authorization"), Some(format!("Bearer {API_KEY}").as_str()));
        let called = self.web.requests("/pets").pop().expect("a call");
        assert_eq!(called.header("x-key"), Some(HEADER));

        let hits = self.web.hits("/closed.txt");
        data(ada.post(&format!("/documents/{}/ingest", id(&self.document)), &json!({})).await);
        let fetched = self.web.wait_for_hits("/closed.txt", hits + 1).await.pop().expect("a request");
        assert_eq!(fetched.header("authorization"), Some(format!("Bearer {BEARER}").as_str()));
        ada.wait_until_ingested(id(&self.document)).await;

        let told = self.web.hits("/told");
        data(ada.post(&format!("/webhooks/{}/test", id(&self.webhook)), &json!({})).await);
        let told = self.web.wait_for_hits("/told", told + 1).await.pop().expect("a delivery");
        assert_eq!(told.target, format!("/told?key={QUERY}"));
        assert_eq!(ada.read(&format!("/webhooks/{}", id(&self.webhook))).await["url"], self.webhook["url"]);

        let token = ada.read(&format!("/api-tokens/{}", id(&self.token))).await;
        assert_eq!(token["token"], self.token["token"]);
        assert_eq!(Self::create_once(ada).await, self.answer, "the kept answer");
    }
}

async fn the_key_is_changed_twice_and_everything_goes_on_working(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let mut ada = service.signed_up("ada@example.com").await;
    let secrets = Secrets::new(&ada).await;
    let token = secrets.token["token"].as_str().expect("a value").to_owned();
    secrets.assert_work(&ada).await;
    let mut known = vec![key_of(&service)];

    for new in NEW {
        let old = known.last().expect("a key").clone();
        service.terminate().await;
        service = service.sibling().env(KEY, new).env(PREVIOUS, &old).start().await;
        ada = service.client().with_token(ada.token());
        secrets.assert_work(&ada).await;

        let (output, log) = reencrypt(&service.sibling());
        assert!(output.status.success(), "{log}");
        assert!(log.contains("LECTERN_SECRET_KEY_PREVIOUS") && log.contains("can be unset"), "{log}");
        // The token, the agent's key, the tool's header, the document's authorization, the webhook's secret and address, the kept answer,
        // the canary.
        assert_eq!(renewed(&log), 8, "{log}");
        let (output, log) = reencrypt(&service.sibling());
        assert!(output.status.success() && renewed(&log) == 0, "{log}");
        secrets.assert_work(&ada).await;

        service.terminate().await;
        service = service.sibling().without(PREVIOUS).start().await;
        let signed_in = service.client().with_token(ada.token());
        assert_eq!(signed_in.get("/users/me").await.0, StatusCode::UNAUTHORIZED, "a sign-in of the old key");
        secrets.assert_work(&service.client().with_token(&token)).await;
        ada = service.client().sign_in("ada@example.com", PASSWORD).await;
        secrets.assert_work(&ada).await;
        known.push(new.to_owned());
    }
    // Without a previous key, it looks whether everything can be opened.
    let (output, log) = reencrypt(&service.sibling());
    assert!(output.status.success() && renewed(&log) == 0, "{log}");
    let refused = service.sibling().env(KEY, &known[1]);
    service.terminate().await;
    assert!(refused.start_refused().await.log.contains(KEY), "a key of before");
}

/// Replaces the stored value of every API token with something else.
async fn damage(service: &Service) {
    let statement = "UPDATE api_tokens SET token_sealed = $1";
    let garbage = vec![1_u8; 64];
    match service.sibling().environment().get("DATABASE_URL") {
        Some(url) => {
            let mut connection =
                PgConnection::connect(url.to_str().expect("text")).await.expect("the database");
            sqlx::query(statement).bind(garbage).execute(&mut connection).await.expect("an update");
        }
        None => {
            let file = service.data_dir().join("lectern.db");
            let url = format!("sqlite://{}", file.to_str().expect("text"));
            let mut connection = SqliteConnection::connect(&url).await.expect("the database");
            sqlx::query(statement).bind(garbage).execute(&mut connection).await.expect("an update");
            connection.close().await.expect("an end");
        }
    }
}

async fn what_no_key_opens_is_named_and_the_rest_is_done(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let lost = ada.create("/api-tokens", &json!({"description": "lost"})).await;
    service.terminate().await;
    damage(&service).await;
    let old = key_of(&service);
    service = service.sibling().env(KEY, NEW[0]).env(PREVIOUS, &old).start().await;
    let ada = service.client().with_token(ada.token());
    let model = Model::start().await;
    ada.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m")})).await;

    for moved in [1, 0] {
        let (output, log) = reencrypt(&service.sibling());
        assert_eq!(output.status.code(), Some(1), "{log}");
        let named = log.lines().any(|line| line.contains("\"api_tokens\"") && line.contains(id(&lost)));
        assert!(named && log.contains("can be unset"), "{log}");
        assert!(!log.contains(lost["token"].as_str().expect("a value")) && !log.contains(&old), "{log}");
        assert_eq!(renewed(&log), moved, "the canary: {log}");
    }
    service.terminate().await;
    service.sibling().without(PREVIOUS).start().await;
}

async fn the_old_key_stays_as_long_as_a_process_writes_under_it(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let old = key_of(&service);
    let turned = service.sibling().env(KEY, NEW[0]).env(PREVIOUS, &old);
    // Nobody writes anything at the moment, and still it may be done.
    for token in ["before", "between"] {
        ada.create("/api-tokens", &json!({ "description": token })).await;
        let (output, log) = reencrypt(&turned);
        assert_eq!(output.status.code(), Some(1), "{log}");
        assert!(log.contains("restart every process") && !log.contains("can be unset"), "{log}");
        assert_eq!(renewed(&log), 0, "it could not open what is: {log}");
    }
    let last = ada.create("/api-tokens", &json!({"description": "after"})).await;
    service.terminate().await;
    service = turned.start().await;
    let (output, log) = reencrypt(&service.sibling());
    assert!(output.status.success() && log.contains("can be unset"), "{log}");
    assert_eq!(renewed(&log), 4, "three tokens and the canary: {log}");
    service.terminate().await;
    service = service.sibling().without(PREVIOUS).start().await;
    let ada = service.client().with_token(last["token"].as_str().expect("a value"));
    assert_eq!(ada.read(&format!("/api-tokens/{}", id(&last))).await["token"], last["token"]);
}
