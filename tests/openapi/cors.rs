//! Pages of other sites, in browsers.

use reqwest::{
    Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
        ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName, ORIGIN, VARY,
    },
};

use crate::support::{
    client::send,
    service::{Mode, Service},
};

const APP: &str = "https://app.example.com";
const SENT: [&str; 8] = [
    "Authorization",
    "Autorization",
    "X_SERVICE_API_KEY",
    "X-Service-Api-Key",
    "Content-Type",
    "Idempotency-Key",
    "X-Request-Id",
    "X-Workspace",
];

async fn open_to(origins: &str) -> Service {
    Service::in_mode(Mode::Embedded).env("LECTERN_CORS_ORIGINS", origins).start().await
}

/// A browser's question whether a page may send a request.
async fn preflight(service: &Service, origin: &str, method: &str, path: &str) -> Response {
    let request = service.client().request_outside(Method::OPTIONS, path);
    let request = request.header(ORIGIN, origin).header(ACCESS_CONTROL_REQUEST_METHOD, method);
    send(request.header(ACCESS_CONTROL_REQUEST_HEADERS, SENT.join(",").to_lowercase())).await
}

async fn get(service: &Service, origin: &str, path: &str) -> Response {
    send(service.client().request_outside(Method::GET, path).header(ORIGIN, origin)).await
}

/// The words of a header that is a list, in lower case.
fn list(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let values = headers.get_all(name).into_iter().map(|value| value.to_str().expect("text"));
    values.flat_map(|value| value.split(',')).map(|word| word.trim().to_lowercase()).collect()
}

fn allowed(headers: &HeaderMap) -> Option<&str> {
    assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS), "there are no cookies");
    headers.get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|origin| origin.to_str().expect("text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_an_allowed_origin_may_send_every_request_that_there_is() {
    let service = open_to("https://other.example.com, HTTPS://App.example.com:443").await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let answer = preflight(&service, APP, method, "/api/v1/documents").await;
        assert_eq!(answer.status(), StatusCode::OK, "without credentials");
        let headers = answer.headers();
        assert_eq!(allowed(headers), Some(APP));
        assert!(list(headers, ACCESS_CONTROL_ALLOW_METHODS).contains(&method.to_lowercase()), "{headers:?}");
        let names = list(headers, ACCESS_CONTROL_ALLOW_HEADERS);
        let missing: Vec<_> = SENT.iter().filter(|name| !names.contains(&name.to_lowercase())).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(headers[ACCESS_CONTROL_MAX_AGE], "7200");
        assert_eq!(list(headers, VARY), ["origin"]);
        assert!(headers.contains_key("x-request-id"), "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_of_the_interface_is_one_that_pages_may_use() {
    let service = open_to(APP).await;
    let answer = preflight(&service, APP, "GET", "/").await;
    let methods = list(answer.headers(), ACCESS_CONTROL_ALLOW_METHODS);
    let document = super::document();
    for operation in super::operations(&document) {
        assert!(methods.contains(&operation.method.as_str().to_lowercase()), "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_may_read_answers_and_failures_alike() {
    let service = open_to(APP).await;
    for (path, status) in [
        ("/health/live", StatusCode::OK),
        ("/openapi.json", StatusCode::OK),
        ("/api/v1/agents", StatusCode::UNAUTHORIZED),
        ("/api/v1/nothing", StatusCode::NOT_FOUND),
    ] {
        let answer = get(&service, APP, path).await;
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(allowed(answer.headers()), Some(APP), "{path}");
        assert!(list(answer.headers(), VARY).contains(&"origin".to_owned()), "{path}");
        let exposed = list(answer.headers(), ACCESS_CONTROL_EXPOSE_HEADERS);
        for name in ["x-request-id", "retry-after", "idempotent-replayed", "etag", "lectern-page-boxes"] {
            assert!(exposed.contains(&name.to_owned()), "{path}: {exposed:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_any_other_origin_may_not() {
    let service = open_to(APP).await;
    for origin in [
        "https://evil.example",
        "https://app.example.com.evil.example",
        "https://evil-app.example.com",
        "http://app.example.com",
        "https://app.example.com:8443",
        "null",
    ] {
        let question = preflight(&service, origin, "POST", "/api/v1/agents").await;
        assert_eq!(allowed(question.headers()), None, "{origin}");
        let answer = get(&service, origin, "/health/live").await;
        assert_eq!(allowed(answer.headers()), None, "{origin}");
        // So that a cache does not give this answer to a page that may read it, or the other way round.
        assert!(list(answer.headers(), VARY).contains(&"origin".to_owned()), "{origin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_star_every_page_may() {
    let service = open_to("*").await;
    let question = preflight(&service, "https://anything.example", "PATCH", "/api/v1/tags/1").await;
    assert_eq!(allowed(question.headers()), Some("*"));
    let answer = get(&service, "https://anything.example", "/api/v1/agents").await;
    assert_eq!(allowed(answer.headers()), Some("*"));
    assert!(!list(answer.headers(), VARY).contains(&"origin".to_owned()), "every page gets the same answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_no_page_may() {
    let service = Service::start().await;
    let question = preflight(&service, APP, "GET", "/api/v1/agents").await;
    assert_eq!((question.status(), allowed(question.headers())), (StatusCode::OK, None));
    let answer = get(&service, APP, "/health/live").await;
    assert_eq!(allowed(answer.headers()), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_browsers_are_answered_whatever_the_limit_and_a_page_is_told_that_it_has_to_wait() {
    let setup = Service::in_mode(Mode::Embedded).env("LECTERN_RATE_LIMIT", "1/h burst 1");
    let service = setup.env("LECTERN_CORS_ORIGINS", APP).start().await;
    get(&service, APP, "/api/v1/agents").await;
    let refused = get(&service, APP, "/api/v1/agents").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(allowed(refused.headers()), Some(APP));
    assert!(refused.headers().contains_key("retry-after"));
    for _ in 0..5 {
        let question = preflight(&service, APP, "GET", "/api/v1/agents").await;
        assert_eq!((question.status(), allowed(question.headers())), (StatusCode::OK, Some(APP)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_is_none_stops_the_start_and_is_named() {
    for origin in ["app.example.com", "https://app.example.com/", "https://*.example.com"] {
        let refusal =
            Service::in_mode(Mode::Embedded).env("LECTERN_CORS_ORIGINS", origin).start_refused().await;
        assert_ne!(refusal.status.code(), Some(0));
        assert!(
            refusal.log.contains("LECTERN_CORS_ORIGINS"),
            "the message names no setting: {}",
            refusal.log
        );
        assert!(refusal.log.contains(origin), "the message does not quote the value: {}", refusal.log);
    }
}
