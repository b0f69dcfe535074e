//! What requests are refused, and how: bodies, fields, paths, methods, request ids.

mod fields;

use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{
    client::{PASSWORD, envelope, id, send},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(a_text_with_nul_is_refused_wherever_it_stands);

/// Where nothing listens: documents whose ingestion is of no interest.
pub const NOWHERE: &str = "http://127.0.0.1:1/source";

// --- bodies that cannot be read --------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_malformed_and_what_is_no_object_is_invalid() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    for body in [
        &b""[..],
        b" ",
        b"{",
        b"nope",
        b"{'name': 'x'}",
        br#"{"name":}"#,
        br#"{"name":"x"} {}"#,
        br#"{"name":"x",}"#,
        br#"{"name":"\ud800"}"#,
        br#"{"name":1e999}"#,
        br#"{"name":NaN}"#,
        b"{\"name\":\"\xff\"}",
        b"{\"name\":\"a\nb\"}",
        b"\xef\xbb\xbf",
        b"{\xef\xbb\xbf}",
    ] {
        for path in ["/documents", "/auth/sign-in"] {
            let request = ada.request(Method::POST, path).header(CONTENT_TYPE, "application/json");
            let (status, answer) = envelope(send(request.body(body)).await).await;
            let body = String::from_utf8_lossy(body);
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?} to {path}: {answer:#}");
        }
    }
    for body in ["[]", "\"name\"", "5", "true", "null"] {
        let request = ada.request(Method::POST, "/documents").header(CONTENT_TYPE, "application/json");
        let refused = Refused::by(envelope(send(request.body(body)).await).await);
        assert_eq!(refused.paths(), ["body"], "well-formed, but no object: {body}");
    }
    assert_eq!(ada.read("/documents").await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_nested_without_end_is_malformed() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    for (depth, open, close) in
        [(200, "[", "]"), (1_000_000, "[", "]"), (200, r#"{"a":"#, "}"), (300_000, r#"{"a":"#, "}")]
    {
        let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        let body = format!(r#"{{"name":"Note","type":"TXT","content":"text","metadata":{{"a":{nested}}}}}"#);
        let request = ada.request(Method::POST, "/documents").header(CONTENT_TYPE, "application/json");
        let (status, answer) = envelope(send(request.body(body)).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{depth} times {open}: {answer:#}");
    }
    assert!(service.client().is_ready().await, "and the service goes on");

    let deep = (0..50).fold(json!("here"), |inner, _| json!([inner]));
    let body = json!({ "name": "Note", "type": "TXT", "content": "text", "metadata": { "deep": deep } });
    let document = ada.create_document(&body).await;
    assert_eq!(document["metadata"], body["metadata"], "what is nested within reason is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_json_by_its_content_type() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let body = json!({ "description": "for the build" }).to_string();
    let answer = async |content_type: Option<&str>| {
        let request = ada.request(Method::POST, "/api-tokens").body(body.clone());
        let request = match content_type {
            Some(content_type) => request.header(CONTENT_TYPE, content_type),
            None => request,
        };
        envelope(send(request).await).await
    };
    for wrong in [
        None,
        Some(""),
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
        Some("text/json"),
        Some("application/jsonp"),
    ] {
        let (status, answer) = answer(wrong).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{wrong:?}: {answer:#}");
    }
    for right in [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "application/json; charset=us-ascii",
        // What programs name without a thought: JSON is UTF-8.
        "application/json; charset=ISO-8859-1",
        "Application/JSON",
    ] {
        let (status, answer) = answer(Some(right)).await;
        assert_eq!(status, StatusCode::OK, "{right}: {answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_comes_as_it_is_and_may_begin_with_a_mark_of_its_encoding() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let form =
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nWords.\r\n--x--\r\n";
    for (path, kind, body) in [
        ("/api-tokens", "application/json", "{\"description\": \"for the build\"}"),
        ("/documents/upload", "multipart/form-data; boundary=x", form),
    ] {
        let coded = async |coding: &'static str| {
            let request = ada.request(Method::POST, path).header(CONTENT_TYPE, kind);
            envelope(send(request.header(CONTENT_ENCODING, coding).body(body)).await).await
        };
        let (status, answer) = coded("identity").await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer:#}");
        for coding in ["gzip", "identity, br"] {
            let (status, answer) = coded(coding).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{path} {coding}: {answer:#}");
            let message = answer["error"]["message"].as_str().expect("text");
            assert!(message.contains("without Content-Encoding"), "{message}");
        }
    }
    let request = ada.request(Method::POST, "/api-tokens").header(CONTENT_TYPE, "application/json");
    let marked = "\u{feff}{\"description\": \"from Windows\"}";
    let (status, answer) = envelope(send(request.body(marked)).await).await;
    assert_eq!(
        (status, &answer["data"]["description"]),
        (StatusCode::OK, &json!("from Windows")),
        "{answer:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_have_two_mebibytes_and_not_a_byte_more() {
    const LIMIT: usize = 2 * 1024 * 1024;
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let post = async |length: usize| {
        let body = json!({ "description": "padded" }).to_string();
        let body = format!("{body}{}", " ".repeat(length - body.len()));
        let request = ada.request(Method::POST, "/api-tokens").header(CONTENT_TYPE, "application/json");
        envelope(send(request.body(body)).await).await
    };
    let (status, answer) = post(LIMIT).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    let (status, answer) = post(LIMIT + 1).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer:#}");
}

async fn a_text_with_nul_is_refused_wherever_it_stands(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    let predict = format!("/agents/{}/predict", id(&agent));

    let document = json!({
        "name": "a\0", "type": "TXT", "content": "\0", "description": "\0b",
        "metadata": { "plain": "text", "nested": [{ "here": ["fine", "not\0fine"] }] },
    });
    let refused = Refused::by(ada.post("/documents", &document).await);
    let named = ["content", "description", "metadata.nested.0.here.1", "name"];
    assert_eq!(refused.paths(), named);
    let key = json!({ "name": "a", "type": "TXT", "content": "text", "metadata": { "k\0": 1 } });
    assert_eq!(Refused::by(ada.post("/documents", &key).await).paths().len(), 1);

    for (path, body, named) in [
        ("/auth/sign-up", json!({ "email": "a\0@example.com", "password": PASSWORD }), "email"),
        ("/auth/sign-up", json!({ "email": "a@example.com", "password": "\0\0\0\0\0\0\0\0" }), "password"),
        ("/auth/sign-up", json!({ "email": "a@example.com", "password": PASSWORD, "name": "\0" }), "name"),
        ("/auth/sign-in", json!({ "email": "ada@example.com\0", "password": PASSWORD }), "email"),
        ("/api-tokens", json!({ "description": "\0" }), "description"),
        ("/agents", json!({ "name": "Cl\0erk", "type": "REACT" }), "name"),
        (
            "/agents",
            json!({ "name": "A", "type": "REACT", "llm": { "provider": "openai", "model": "\0" } }),
            "llm.model",
        ),
        ("/agent-documents", json!({ "agentId": "\0", "documentId": id(&agent) }), "agentId"),
        (&predict, json!({ "input": { "input": "What\0?" } }), "input.input"),
        (&predict, json!({ "input": { "input": "What?" }, "session": "\0" }), "session"),
    ] {
        let refused = Refused::by(ada.post(path, &body).await);
        assert!(refused.paths().contains(&named), "{body} to {path}: {refused:?}");
    }
    assert_eq!(Refused::by(ada.patch("/users/me", &json!({ "name": "\0" })).await).paths(), ["name"]);

    for path in ["/documents/%00", "/agents/%00", "/traces/a%00b", "/traces?agentId=%00"] {
        let (status, answer) = ada.get(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {answer:#}");
    }
    assert_eq!(Refused::by(ada.get("/documents?cursor=%00").await).paths(), ["cursor"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_reaches_a_client_that_sends_its_whole_body_first() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let address = service.base_url().trim_start_matches("http://").to_owned();
    let bearer = format!("Authorization: Bearer {}\r\n", ada.token());
    let body = vec![b'x'; 8 << 20];
    for (headers, status) in [
        ("Content-Type: application/json\r\n".to_owned(), "401"),
        (format!("{bearer}Content-Type: text/plain\r\n"), "415"),
        (format!("{bearer}Content-Type: application/json\r\n"), "413"),
    ] {
        for _ in 0..5 {
            let mut stream = TcpStream::connect(&address).await.expect("a connection");
            let head = format!(
                "POST /api/v1/documents HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.expect("the head is taken");
            stream.write_all(&body).await.expect("the body is taken to its end");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("the answer is read to its end");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
    }
}

// --- paths, methods, request ids -------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_are_told_in_words_to_whoever_typed_them() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let client = service.client();
    for (path, accept, is_page) in [
        ("/nope", "text/html,application/xhtml+xml,*/*;q=0.8", true),
        ("/nope/deeper", "text/html", true),
        ("/nope", "application/json", false),
        ("/nope", "*/*", false),
        ("/api/v1/nope", "text/html", false),
        ("/admin/nope", "text/html", false),
    ] {
        let request = client.request_outside(Method::GET, path).header(ACCEPT, accept);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path} {accept}");
        let kind = answer.headers()[CONTENT_TYPE].to_str().expect("text").to_owned();
        assert_eq!(kind.starts_with("text/html"), is_page, "{path} {accept}: {kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_are_answered_in_the_one_form() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    for path in [
        "/nothing",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v1/nothing",
        "/api/v2/documents",
        "/api/v1/documents/",
        "/api/v1/documents/a/b/c",
        "/%ff",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let request = ada.request_outside(method.clone(), path).bearer_auth(ada.token());
            let (status, answer) = envelope(send(request).await).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {answer:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_is_answered_with_the_right_ones() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    for (method, path, right) in [
        (Method::PUT, "/api/v1/documents", &["GET", "HEAD", "POST"][..]),
        (Method::DELETE, "/api/v1/documents", &["GET", "HEAD", "POST"]),
        (Method::GET, "/api/v1/auth/sign-in", &["POST"]),
        (Method::GET, "/api/v1/agents/00000000-0000-0000-0000-000000000000/predict", &["POST"]),
        (Method::TRACE, "/api/v1/users/me", &["DELETE", "GET", "HEAD", "PATCH"]),
        (Method::POST, "/health/live", &["GET", "HEAD"]),
    ] {
        let answer = send(ada.request_outside(method.clone(), path).bearer_auth(ada.token())).await;
        let allowed = answer.headers().get(ALLOW).map(|value| value.to_str().expect("text").to_owned());
        let (status, answer) = envelope(answer).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}: {answer:#}");
        let allowed = allowed.unwrap_or_else(|| panic!("{method} {path}: no Allow"));
        let mut allowed: Vec<_> = allowed.split(',').map(str::trim).collect();
        allowed.sort_unstable();
        assert_eq!(allowed, right, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sane_request_id_is_taken_over_and_any_other_is_replaced() {
    let service = Service::start().await;
    let client = service.client();
    let ask = async |path: &str, sent: Option<&[u8]>| {
        let request = client.request_outside(Method::GET, path);
        let request = match sent {
            Some(sent) => {
                request.header("x-request-id", HeaderValue::from_bytes(sent).expect("a header's value"))
            }
            None => request,
        };
        let answer = send(request).await;
        let got = answer.headers().get("x-request-id").expect("an id").to_str().expect("text").to_owned();
        let (status, answer) = envelope(answer).await;
        if !status.is_success() {
            assert_eq!(answer["requestId"], got, "the body names the same id");
        }
        got
    };
    for path in ["/health/live", "/nothing", "/api/v1/documents", "/api/v1/auth/sign-in"] {
        let longest = "x".repeat(128);
        let of_a_balancer = "Root=1-67891233-abcdef012345678912345678";
        for sane in ["1", "a-b_c.d:E9/+", of_a_balancer, "0193f2c4-7a5e-7000-8000-000000000000", &longest] {
            assert_eq!(ask(path, Some(sane.as_bytes())).await, sane, "{path}");
        }
        let too_long = "x".repeat(129);
        for insane in [
            &b""[..],
            b"two words",
            b"a\\b",
            b"<b>",
            b"\"",
            b"a=b;c",
            b"a\tb",
            b"\xc3\xa9",
            b"\xff",
            too_long.as_bytes(),
        ] {
            let got = ask(path, Some(insane)).await;
            let sent = String::from_utf8_lossy(insane);
            assert!(!got.is_empty() && got != sent, "{sent:?} is answered {got:?} by {path}");
        }
        assert_ne!(ask(path, None).await, ask(path, None).await, "every request has its own");
    }
}

// --- plumbing --------------------------------------------------------------------------------------------------------

/// The fields that an answer of 422 names, each with what it says of it.
#[derive(Debug)]
pub struct Refused(Vec<(String, String)>);

impl Refused {
    /// Reads an answer that has to be 422.
    pub fn by((status, answer): (StatusCode, Value)) -> Self {
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
        let fields = answer["error"]["fields"].as_array().unwrap_or_else(|| panic!("no fields: {answer:#}"));
        assert!(!fields.is_empty(), "{answer:#}");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        Self(fields.iter().map(|field| (text(&field["path"]), text(&field["message"]))).collect())
    }

    /// The paths, sorted, each once.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<_> = self.0.iter().map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// What is said of one field.
    pub fn message(&self, path: &str) -> &str {
        let said = self.0.iter().find(|(named, _)| named == path);
        let (_, message) = said.unwrap_or_else(|| panic!("{path} is not named: {self:?}"));
        message
    }
}
