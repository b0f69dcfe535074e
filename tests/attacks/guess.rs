//! Guessing passwords, and going on with what a credential opened after it has ended.

use std::{
    net::{IpAddr, Ipv4Addr},
    num::NonZero,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::available_parallelism,
};

use axum::body::Bytes;
use futures::{Stream, StreamExt, future::join_all};
use reqwest::{Method, RequestBuilder, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{
    client::{Client, PASSWORD, data, envelope, id, send},
    in_both_modes,
    loopback::Gate,
    model::{Model, Reply},
    service::{Mode, Service},
    sse::{self, SseEvent, text_of},
    web::Web,
    within_deadline,
};

in_both_modes!(
    strangers_who_guess_do_not_keep_the_owner_out_at_home,
    streams_end_soon_after_the_credential_that_opened_them,
    an_answer_that_is_not_there_yet_ends_with_its_credential_too,
    what_is_made_while_the_account_is_deleted_is_deleted_too
);

const HOME: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Another address than everybody's in the tests.
fn elsewhere(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, number)
}

/// Somebody at an address.
#[derive(Clone)]
struct Somebody {
    http: reqwest::Client,
    url: String,
    /// What a proxy says of where it is.
    forwarded: Option<&'static str>,
}

impl Somebody {
    fn at(service: &Service, address: Ipv4Addr) -> Self {
        let http = reqwest::Client::builder().no_proxy().local_address(Some(IpAddr::V4(address))).build();
        let url = format!("{}/api/v1/auth", service.base_url());
        Self { http: http.expect("a client"), url, forwarded: None }
    }

    /// Somebody behind the proxy, which is at home.
    fn behind_proxy(service: &Service, address: &'static str) -> Self {
        Self { forwarded: Some(address), ..Self::at(service, HOME) }
    }

    async fn sign_in(&self, email: &str, password: &str) -> (u16, Option<u64>) {
        self.send("sign-in", email, password).await
    }

    /// The status, and for how long one has to wait.
    async fn send(&self, what: &str, email: &str, password: &str) -> (u16, Option<u64>) {
        let body = json!({ "email": email, "password": password });
        let mut request = self.http.post(format!("{}/{what}", self.url)).json(&body);
        if let Some(address) = self.forwarded {
            request = request.header("X-Forwarded-For", address);
        }
        let answer = send(request).await;
        let wait = answer.headers().get(RETRY_AFTER);
        let wait = wait.map(|wait| wait.to_str().expect("text").parse().expect("whole seconds"));
        (envelope(answer).await.0.as_u16(), wait)
    }
}

// --- guessing --------------------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn four_hundred_guesses_at_as_many_accounts_at_once_do_not_slip_past_their_address() {
    // More connections than an address has by itself, so that it is the passwords that are bounded.
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_MAX_CONNECTIONS", "1000").start().await;
    let attacker = Somebody::at(&service, elsewhere(2));
    let guesses = (0..400).map(|account| {
        let attacker = attacker.clone();
        async move { attacker.sign_in(&format!("account-{account}@example.com"), "a guess").await }
    });
    let answers = join_all(guesses).await;
    let looked_at = answers.iter().filter(|(status, _)| *status == 401).count();
    assert!(looked_at <= 10, "{looked_at} guesses were looked at");
    let others: Vec<_> = answers.iter().filter(|(status, _)| *status != 401).collect();
    assert!(others.iter().all(|(status, wait)| *status == 429 && wait.is_some()), "{others:?}");

    // Of nobody else, whoever it was.
    service.signed_up("ada@example.com").await;
    assert_eq!(attacker.sign_in("ada@example.com", PASSWORD).await.0, 429);
    assert_eq!(Somebody::at(&service, HOME).sign_in("ada@example.com", PASSWORD).await, (200, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_passwords_from_one_address_does_not_keep_another_from_signing_in() {
    // More connections than an address has by itself, so that it is the passwords that are bounded.
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_MAX_CONNECTIONS", "1000").start().await;
    service.signed_up("ada@example.com").await;
    // Sign-ups, so that nothing else than their number makes them wait.
    let (mallory, served) = (Somebody::at(&service, elsewhere(2)), Arc::new(AtomicUsize::new(0)));
    let mut flood = JoinSet::new();
    for account in 0..300 {
        let (mallory, served) = (mallory.clone(), Arc::clone(&served));
        flood.spawn(async move {
            let (status, _) =
                mallory.send("sign-up", &format!("mallory-{account}@example.com"), PASSWORD).await;
            served.fetch_add(usize::from(status == 200), Ordering::SeqCst);
            status
        });
    }
    let begun = async {
        while served.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    within_deadline("the flood", begun).await;
    assert_eq!(Somebody::at(&service, HOME).sign_in("ada@example.com", PASSWORD).await, (200, None));
    let before = served.load(Ordering::SeqCst);
    let statuses = flood.join_all().await;
    let all = served.load(Ordering::SeqCst);
    assert!(before < all / 2, "{before} of {all} of the flood came before another's one");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
}

/// Requests that have no answer yet.
async fn in_flight(service: &Service) -> usize {
    let answer = send(service.client().request_outside(Method::GET, "/metrics")).await;
    let metrics = answer.text().await.expect("a body");
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("lectern_http_requests_in_flight "));
    count.expect("a count of requests").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_addresses_that_guess_does_not_keep_the_owner_waiting_at_home() {
    let service = Service::start().await;
    service.signed_up("ada@example.com").await;
    let (home, served) = (Somebody::at(&service, HOME), Arc::new(AtomicUsize::new(0)));
    // All of them are there before the first one guesses.
    let strangers: Vec<_> =
        (10..130).map(|address| (address, Somebody::at(&service, elsewhere(address)))).collect();
    let mut crowd = JoinSet::new();
    for (address, stranger) in strangers {
        for half in 0..2 {
            let (stranger, served) = (stranger.clone(), Arc::clone(&served));
            crowd.spawn(async move {
                // As many as an address may have wrong, so that none of them is refused before it is looked at.
                for guess in 0..5 {
                    stranger.sign_in(&format!("{address}-{half}-{guess}@example.com"), "a guess").await;
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    }
    let begun = async {
        while in_flight(&service).await < 200 {
            tokio::task::yield_now().await;
        }
    };
    within_deadline("the crowd", begun).await;
    let before = served.load(Ordering::SeqCst);
    assert_eq!(home.sign_in("ada@example.com", PASSWORD).await, (200, None));
    let meanwhile = served.load(Ordering::SeqCst) - before;
    // Those that are being looked at when the owner comes are not stopped. There are at least a hundred addresses in the line.
    let cores = available_parallelism().map_or(1, NonZero::get);
    assert!(meanwhile < 50 + 4 * cores, "{meanwhile} strangers came first");
}

async fn strangers_who_guess_do_not_keep_the_owner_out_at_home(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    service.signed_up("ada@example.com").await;
    // It is not the process that knows where ada was.
    service.restart_api().await;
    for stranger in 10..20 {
        let guess = Somebody::at(&service, elsewhere(stranger)).sign_in("ada@example.com", "a guess").await;
        assert_eq!(guess, (401, None), "stranger {stranger}");
    }
    let late = Somebody::at(&service, elsewhere(21));
    if mode == Mode::Embedded {
        // Over Redis a busy machine may count a guess elsewhere.
        assert_eq!(late.sign_in("ada@example.com", "a guess").await.0, 429, "strangers have to wait");
    }
    let home = Somebody::at(&service, HOME);
    for _ in 0..3 {
        assert_eq!(home.sign_in("ada@example.com", PASSWORD).await, (200, None));
    }
    if mode == Mode::Embedded {
        assert_eq!(late.sign_in("ada@example.com", PASSWORD).await.0, 429, "and still have to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_trusted_proxy_too_strangers_do_not_keep_the_owner_out_at_home() {
    const STRANGERS: [&str; 10] = [
        "203.0.113.10",
        "203.0.113.11",
        "203.0.113.12",
        "203.0.113.13",
        "203.0.113.14",
        "203.0.113.15",
        "203.0.113.16",
        "203.0.113.17",
        "203.0.113.18",
        "203.0.113.19",
    ];
    let service =
        Service::in_mode(Mode::Embedded).env("LECTERN_TRUSTED_PROXIES", "127.0.0.1/32").start().await;
    let home = Somebody::behind_proxy(&service, "198.51.100.7");
    assert_eq!(home.send("sign-up", "ada@example.com", PASSWORD).await, (200, None));
    for address in STRANGERS {
        let guess = Somebody::behind_proxy(&service, address).sign_in("ada@example.com", "a guess").await;
        assert_eq!(guess, (401, None), "{address}");
    }
    let elsewhere = Somebody::behind_proxy(&service, "192.0.2.1");
    assert_eq!(elsewhere.sign_in("ada@example.com", PASSWORD).await.0, 429, "nobody knows who that is");
    assert_eq!(home.sign_in("ada@example.com", PASSWORD).await, (200, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_at_home_have_an_end_too() {
    let service = Service::start().await;
    service.signed_up("ada@example.com").await;
    let home = Somebody::at(&service, HOME);
    for failure in 1..=10 {
        assert_eq!(home.sign_in("ada@example.com", "a guess").await, (401, None), "failure {failure}");
    }
    assert_eq!(home.sign_in("ada@example.com", PASSWORD).await.0, 429);
}

// --- what a credential opened ----------------------------------------------------------------------------------------

/// A stream, read as it comes.
struct Reading {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    text: String,
}

impl Reading {
    async fn of(request: RequestBuilder) -> Self {
        let answer = send(request).await;
        assert_eq!(answer.status(), StatusCode::OK);
        Self { body: Box::pin(answer.bytes_stream()), text: String::new() }
    }

    /// Reads until `what` has come.
    async fn until(mut self, what: &str) -> Self {
        let come = async {
            while !self.text.contains(what) {
                let piece = self.body.next().await.expect("more").expect("a stream that does not break");
                self.text.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
            }
        };
        within_deadline(what, come).await;
        self
    }

    /// Reads to the end.
    async fn rest(mut self) -> Vec<SseEvent> {
        let end = async {
            while let Some(piece) = self.body.next().await {
                let piece = piece.expect("a stream that ends in its own form");
                self.text.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
            }
        };
        within_deadline("the end of the stream", end).await;
        sse::parse(&self.text)
    }
}

fn assert_is_over(event: &SseEvent) {
    assert_eq!((event.name.as_str(), &event.json()["code"]), ("error", &json!("unauthorized")), "{event:?}");
}

/// Somebody's agent, whose model begins to speak and never ends, and document, whose source never comes.
struct Endless {
    web: Web,
    model: Model,
}

impl Endless {
    async fn start() -> Self {
        let endless = Self { web: Web::start().await, model: Model::start().await };
        endless.model.always(Reply::gated("Once upon", &Gate::default(), " a time."));
        endless
    }

    /// The three kinds of streams, each begun.
    async fn streams(&self, owner: &Client, client: &Client) -> [Reading; 3] {
        let url = self.web.hang("/never.txt");
        let document = owner.create_document(&json!({ "name": "A", "type": "TXT", "url": url })).await;
        let llm = self.model.llm("m");
        let agent = owner.create_agent(&json!({ "name": "guide", "type": "CHATVENDOR", "llm": llm })).await;
        let predict = |events: bool| {
            let question =
                json!({ "input": { "input": "Well?" }, "has_streaming": true, "stream_events": events });
            client.request(Method::POST, &format!("/agents/{}/predict", id(&agent))).json(&question)
        };
        let follow = client.request(Method::GET, &format!("/documents/{}/events", id(&document)));
        [
            Reading::of(follow).await.until("event: ingestion").await,
            Reading::of(predict(false)).await.until("Once").await,
            Reading::of(predict(true)).await.until("Once").await,
        ]
    }
}

/// Reads streams to their ends, and expects that each says in its own form that its credential has ended.
async fn assert_all_end([ingestion, text, events]: [Reading; 3]) {
    assert_is_over(ingestion.rest().await.last().expect("an event"));
    assert_answers_end(text, events).await;
}

async fn assert_answers_end(text: Reading, events: Reading) {
    assert_is_over(events.rest().await.last().expect("an event"));
    let text = text.rest().await;
    assert!(text_of(&text).starts_with("Once"), "{text:?}");
    assert_is_over(&text[text.len() - 2]);
}

async fn streams_end_soon_after_the_credential_that_opened_them(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let endless = Endless::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;
    let script = ada.with_token(token["token"].as_str().expect("a token"));

    let by_sign_in = endless.streams(&ada, &ada).await;
    let by_token = endless.streams(&ada, &script).await;
    ada.create("/auth/sign-out", &json!({})).await;
    assert_all_end(by_sign_in).await;

    // A sign-out ends no API token, and nothing that one has opened.
    let by_token = by_token.map(|mut stream| {
        let early = futures::FutureExt::now_or_never(stream.body.next());
        assert!(!matches!(early, Some(None)), "it has ended");
        stream
    });
    data(script.delete(&format!("/api-tokens/{}", id(&token))).await);
    assert_all_end(by_token).await;

    let ada = service.client().sign_in("ada@example.com", PASSWORD).await;
    let streams = endless.streams(&ada, &ada).await;
    let change = json!({ "password": "a new password", "currentPassword": PASSWORD });
    data(ada.patch("/users/me", &change).await);
    assert_all_end(streams).await;

    let ada = service.client().sign_in("ada@example.com", "a new password").await;
    let streams = endless.streams(&ada, &ada).await;
    let remove = ada.request(Method::DELETE, "/users/me").json(&json!({ "password": "a new password" }));
    data(envelope(send(remove).await).await);
    let [ingestion, text, events] = streams;
    let ingestion = ingestion.rest().await;
    // Its document is gone too, which may be noticed first.
    let last = ingestion.last().expect("an event");
    assert!(last.name == "deleted" || last.json()["code"] == "unauthorized", "{last:?}");
    assert_answers_end(text, events).await;
}

async fn an_answer_that_is_not_there_yet_ends_with_its_credential_too(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::gated("", &Gate::default(), "Too late."));
    let agent =
        ada.create_agent(&json!({ "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m") })).await;
    let question = json!({ "input": { "input": "Well?" } });
    let predict = ada.request(Method::POST, &format!("/agents/{}/predict", id(&agent))).json(&question);
    let asked = tokio::spawn(async move { envelope(send(predict).await).await });
    model.wait_for_requests(1).await;
    ada.create("/auth/sign-out", &json!({})).await;
    let (status, answer) = within_deadline("the answer", asked).await.expect("an answer");
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::UNAUTHORIZED, &json!("unauthorized")));
    model.wait_until_abandoned(1).await;
}

// --- what a deleted account leaves -----------------------------------------------------------------------------------

async fn what_is_made_while_the_account_is_deleted_is_deleted_too(mode: Mode) {
    use sqlx::{AssertSqlSafe, Connection};
    if mode == Mode::Embedded {
        // Its writes wait for each other, and its file is the service's alone; the repositories are tested over it.
        return;
    }
    let database = crate::support::db::Database::fresh().await;
    let service = Service::in_mode(mode).database_url(database.url()).start().await;
    for round in 0..5 {
        let email = format!("ada-{round}@example.com");
        let ada = service.signed_up(&email).await;
        let mut makers = JoinSet::new();
        for maker in 0..16 {
            let ada = ada.clone();
            makers.spawn(async move {
                let bodies: [(&str, Value); 4] = [
                    ("/tags", json!({ "name": "t", "color": "#102030" })),
                    ("/api-tokens", json!({ "description": "t" })),
                    ("/documents", json!({ "name": "d", "type": "TXT", "content": "text" })),
                    ("/agents", json!({ "name": "a", "type": "CHATVENDOR" })),
                ];
                let (path, body) = &bodies[maker % 4];
                while ada.post(path, body).await.0 == StatusCode::OK {}
            });
        }
        let remove = ada.request(Method::DELETE, "/users/me").json(&json!({ "password": PASSWORD }));
        data(envelope(send(remove).await).await);
        within_deadline("the end of the credential", makers.join_all()).await;
    }
    let mut connection = sqlx::PgConnection::connect(database.url()).await.expect("a connection");
    for (table, more) in
        [("tags", ""), ("api_tokens", ""), ("agents", ""), ("documents", "AND t.deleted_at IS NULL")]
    {
        let left = format!(
            "SELECT COUNT(*) FROM {table} t JOIN workspaces w ON w.id = t.workspace_id WHERE w.deleted_at IS NOT NULL {more}"
        );
        let left: i64 =
            sqlx::query_scalar(AssertSqlSafe(left)).fetch_one(&mut connection).await.expect("a count");
        assert_eq!(left, 0, "rows of {table} belong to accounts that are deleted");
    }
}
