//! How many requests one caller may make.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use reqwest::{StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};

use crate::support::{
    client::{PASSWORD, envelope, send},
    service::{Mode, Service},
    within_deadline,
};

/// Five requests at once, and no other during a test.
const FIVE: &str = "5/h burst 5";

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

async fn limited_to(rate: &str) -> Service {
    Service::in_mode(Mode::Embedded).env("LECTERN_RATE_LIMIT", rate).start().await
}

/// An answer, as far as limits show in it.
struct Answer {
    status: StatusCode,
    envelope: Value,
    retry_after: Option<u64>,
}

impl Answer {
    fn is_limited(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
    }
}

/// Somebody at an address, who sends some headers with every request.
struct Somebody<'a> {
    service: &'a Service,
    http: reqwest::Client,
    headers: Vec<(&'a str, String)>,
}

impl<'a> Somebody<'a> {
    fn at(service: &'a Service, address: impl Into<IpAddr>) -> Self {
        let http = reqwest::Client::builder().no_proxy().local_address(Some(address.into())).build();
        Self { service, http: http.expect("a client"), headers: Vec::new() }
    }

    fn with(mut self, header: &'a str, value: &str) -> Self {
        self.headers = vec![(header, value.to_owned())];
        self
    }

    async fn gets(&self, path: &str) -> Answer {
        let mut request = self.http.get(format!("{}{path}", self.service.base_url()));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        self.sends(request).await
    }

    async fn sends(&self, request: reqwest::RequestBuilder) -> Answer {
        let answer = send(request).await;
        let retry_after = answer
            .headers()
            .get(RETRY_AFTER)
            .map(|wait| wait.to_str().expect("text").parse().expect("whole seconds"));
        let (status, envelope) = envelope(answer).await;
        Answer { status, envelope, retry_after }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_burst_an_address_has_to_wait_and_is_told_for_how_long() {
    let service = limited_to(FIVE).await;
    let somebody = Somebody::at(&service, HERE);
    for request in 1..=5 {
        let answer = somebody.gets("/api/v1/users/me").await;
        assert_eq!(
            (answer.status, answer.retry_after),
            (StatusCode::UNAUTHORIZED, None),
            "request {request}"
        );
    }
    let refused = somebody.with("x-request-id", "the-sixth").gets("/api/v1/users/me").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.envelope["error"]["code"], "rate_limited");
    assert_eq!(refused.envelope["requestId"], "the-sixth");
    let wait = refused.retry_after.expect("a Retry-After");
    assert!((1..=720).contains(&wait), "{wait} s");

    let logged = service.logged("the refusal", |event| event["fields"]["status"] == 429).await;
    assert_eq!(logged["span"]["id"], "the-sixth", "{logged:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_waits_whatever_it_asks_and_whoever_it_says_it_is() {
    let service = limited_to(FIVE).await;
    let stranger = || Somebody::at(&service, HERE);
    assert!(!stranger().gets("/api/v1/users/me").await.is_limited());
    assert!(!stranger().gets("/api/v1/no/such/path").await.is_limited());
    assert!(!stranger().with("Authorization", "Bearer one").gets("/api/v1/agents").await.is_limited());
    assert!(!stranger().with("Autorization", "Bearer other").gets("/api/v1/agents").await.is_limited());
    assert!(!stranger().with("X_SERVICE_API_KEY", "third").gets("/api/v1/agents").await.is_limited());

    assert!(stranger().with("Authorization", "Bearer fourth").gets("/api/v1/agents").await.is_limited());
    assert!(stranger().gets("/api/v1/no/such/path").await.is_limited());
    let sign_in = json!({ "email": "ada@example.com", "password": PASSWORD });
    let request = stranger().http.post(format!("{}/api/v1/auth/sign-in", service.base_url())).json(&sign_in);
    assert_eq!(stranger().sends(request).await.envelope["error"]["code"], "rate_limited");

    assert!(!Somebody::at(&service, ELSEWHERE).gets("/api/v1/agents").await.is_limited());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_credential_waits_wherever_it_is_used_and_in_whichever_header() {
    let service = limited_to(FIVE).await;
    let (here, elsewhere) = (|| Somebody::at(&service, HERE), || Somebody::at(&service, ELSEWHERE));
    let path = "/api/v1/agents";
    assert!(!here().with("Authorization", "Bearer lec_1").gets(path).await.is_limited());
    assert!(!here().with("Autorization", "bearer lec_1").gets(path).await.is_limited());
    assert!(!elsewhere().with("X_SERVICE_API_KEY", "lec_1").gets(path).await.is_limited());
    assert!(!elsewhere().with("X-Service-Api-Key", "lec_1").gets(path).await.is_limited());
    assert!(!elsewhere().with("Authorization", "Bearer lec_1").gets(path).await.is_limited());

    assert!(here().with("Authorization", "Bearer lec_1").gets(path).await.is_limited());
    assert!(elsewhere().with("X_SERVICE_API_KEY", "lec_1").gets(path).await.is_limited());
    assert!(!here().with("Authorization", "Bearer lec_2").gets(path).await.is_limited(), "another one");
    service.assert_no_secret_in_logs(&["lec_1", "lec_2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_waited_is_served_again() {
    let service = limited_to("2/s burst 1").await;
    let somebody = Somebody::at(&service, HERE);
    let refused = async { while !somebody.gets("/api/v1/users/me").await.is_limited() {} };
    within_deadline("a refusal", refused).await;
    let served = async {
        while somebody.gets("/api/v1/users/me").await.is_limited() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within_deadline("an answer", served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_about_health_are_never_refused() {
    let service = limited_to("1/h burst 1").await;
    let somebody = Somebody::at(&service, HERE);
    while !somebody.gets("/api/v1/users/me").await.is_limited() {}
    for path in ["/health/live", "/health/ready"] {
        for _ in 0..20 {
            assert_eq!(somebody.gets(path).await.status, StatusCode::OK, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_a_limit_refuses_nobody() {
    let service = limited_to("off").await;
    let somebody = Somebody::at(&service, HERE);
    // More than the burst of the default.
    for request in 1..=2_500 {
        let answer = somebody.gets("/api/v1/users/me").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "request {request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_none_stops_the_start_and_is_named() {
    for limit in ["fast", "0/s", "200/s burst"] {
        let setup = Service::in_mode(Mode::Embedded).env("LECTERN_RATE_LIMIT", limit);
        let refusal = setup.start_refused().await;
        assert_ne!(refusal.status.code(), Some(0));
        assert!(refusal.log.contains("LECTERN_RATE_LIMIT"), "the message names no setting: {}", refusal.log);
        assert!(refusal.log.contains(limit), "the message does not quote the value: {}", refusal.log);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_trusted_proxy_clients_are_told_apart() {
    let service = Service::in_mode(Mode::Embedded)
        .env("LECTERN_RATE_LIMIT", FIVE)
        .env("LECTERN_TRUSTED_PROXIES", "127.0.0.1/32")
        .start()
        .await;
    let through_proxy = |client: &str| Somebody::at(&service, HERE).with("x-forwarded-for", client);
    let (one, other) = (through_proxy("203.0.113.1"), through_proxy("203.0.113.2"));
    for _ in 0..5 {
        assert!(!one.gets("/api/v1/agents").await.is_limited());
    }
    assert!(one.gets("/api/v1/agents").await.is_limited());
    assert!(through_proxy("198.51.100.7, 203.0.113.1").gets("/api/v1/agents").await.is_limited());
    assert!(!other.gets("/api/v1/agents").await.is_limited());
    // Whoever is no proxy can say what it likes.
    for made_up in 0..5 {
        let stranger =
            Somebody::at(&service, ELSEWHERE).with("x-forwarded-for", &format!("192.0.2.{made_up}"));
        assert!(!stranger.gets("/api/v1/agents").await.is_limited());
    }
    let stranger = Somebody::at(&service, ELSEWHERE).with("x-forwarded-for", "192.0.2.99");
    assert!(stranger.gets("/api/v1/agents").await.is_limited());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_refused_too_often_gets_the_same_answer_later() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_REFUSAL_RATE", "1/h burst 1").start().await;
    let somebody = Somebody::at(&service, ELSEWHERE);
    let first = somebody.gets("/api/v1/agents").await;
    let begun = Instant::now();
    let second = somebody.gets("/api/v1/agents").await;
    assert!(begun.elapsed() >= Duration::from_secs(2), "it was not held back");
    assert_eq!(second.status, first.status);
    assert_eq!(second.envelope["error"]["code"], first.envelope["error"]["code"]);
}
