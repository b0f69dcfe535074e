//! The SDK for JavaScript in a browser's page: what it sends must be allowed, and what it reads must be shown to it.

use reqwest::{
    Method,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
        ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName, ORIGIN,
    },
};

use super::{read, request};
use crate::support::{
    client::send,
    service::{Mode, Service},
};

const APP: &str = "https://app.example.com";
/// What the SDK sends with a request, here or there.
const SENT: [&str; 15] = [
    "accept",
    "authorization",
    "content-type",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "x-stainless-arch",
    "x-stainless-custom-poll-interval",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-poll-helper",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
];
/// What it reads of an answer.
const READ: [&str; 6] = [
    "x-request-id",
    "openai-processing-ms",
    "openai-poll-after-ms",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
];

/// The words of a header that is a list, in lower case.
fn list(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let values = headers.get_all(name).into_iter().map(|value| value.to_str().expect("text"));
    values.flat_map(|value| value.split(',')).map(|word| word.trim().to_lowercase()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_may_send_what_the_sdk_sends_and_read_what_it_reads() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_CORS_ORIGINS", APP).start().await;
    let ada = service.signed_up("ada@example.com").await;
    // Not every browser sends these by itself, and the time-out only some requests have.
    let sent: Vec<&str> = SENT.into_iter().chain(["x-stainless-timeout"]).collect();
    for (method, path) in [("POST", "/v1/chat/completions"), ("DELETE", "/v1/files/x"), ("GET", "/v1/models")]
    {
        let question = service.client().request_outside(Method::OPTIONS, path);
        let question = question.header(ORIGIN, APP).header(ACCESS_CONTROL_REQUEST_METHOD, method);
        let answer = send(question.header(ACCESS_CONTROL_REQUEST_HEADERS, sent.join(","))).await;
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        assert_eq!(answer.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], APP, "{path}");
        let allowed = list(answer.headers(), ACCESS_CONTROL_ALLOW_HEADERS);
        // A page may send `Accept` whatever is allowed.
        let missing: Vec<_> = sent
            .iter()
            .filter(|name| **name != "accept" && !allowed.contains(&(**name).to_owned()))
            .collect();
        assert!(missing.is_empty(), "{path}: {missing:?}");
    }
    for client in [&ada, &ada.with_token("sk-nobody")] {
        let answer = send(request(client, Method::GET, "/models").header(ORIGIN, APP)).await;
        assert_eq!(answer.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], APP);
        let exposed = list(answer.headers(), ACCESS_CONTROL_EXPOSE_HEADERS);
        let missing: Vec<_> =
            READ.into_iter().filter(|name| !exposed.contains(&(*name).to_owned())).collect();
        assert!(missing.is_empty(), "{missing:?}");
        read(answer).await;
    }
}
