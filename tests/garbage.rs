//! Whatever is sent, the answer is a proper refusal, nothing fails inside, and the service goes on. The bodies are made of
//! those in [`rows`], so that every operation that takes one is tried.

mod slow;
mod uploads;

use reqwest::{Method, RequestBuilder, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::{
    matrix::{
        rows::{Row, rows},
        things::{Things, answer},
    },
    support::{
        client::{Client, envelope, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(no_field_of_any_body_can_break_the_service);

const JSON: &str = "application/json";

/// A user who has one of everything.
struct Tried {
    service: Service,
    user: Client,
    things: Things,
}

impl Tried {
    async fn start(mode: Mode) -> Self {
        let service = Service::in_mode(mode).start().await;
        let ada = service.signed_up("ada@example.com").await;
        let things = Things::of(&ada, "The gate opens at nine.").await;
        // A credential that outlasts a sign-out.
        let token =
            ada.create("/api-tokens", &json!({ "description": "for all of it", "role": "owner" })).await;
        let user = ada.with_token(token["token"].as_str().expect("a value"));
        Self { service, user, things }
    }

    /// The requests that carry JSON, and the JSON with this user's ids.
    fn bodies(&self) -> Vec<(Row, Value)> {
        let with_body = |row: Row| row.json_with(&self.things).map(|body| (row, body));
        rows().into_iter().filter_map(with_body).collect()
    }

    /// The row's request without its body.
    fn request(&self, row: &Row) -> RequestBuilder {
        let target = row.target_with(&self.things);
        self.user.request_outside(row.method.clone(), &target).bearer_auth(self.user.token())
    }

    async fn send(&self, row: &Row, body: impl Into<reqwest::Body>) -> (StatusCode, Value) {
        let request = self.request(row).header(CONTENT_TYPE, JSON).body(body);
        envelope(send(request).await).await
    }

    /// Fails unless the service still works, and nothing went wrong in it.
    async fn goes_on(self) {
        assert!(self.service.client().is_ready().await, "it is not ready any more");
        let errors: Vec<_> =
            self.service.log_events().into_iter().filter(|event| event["level"] == "ERROR").collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_malformed_whatever_it_is_sent_to() {
    let tried = Tried::start(Mode::Embedded).await;
    for (row, body) in tried.bodies() {
        let whole = body.to_string();
        let middle = (0..=whole.len() / 2).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or_default();
        let mut not_text = whole.clone().into_bytes();
        not_text[1] = 0xff;
        // Of a stranger no more is read.
        let deep = if row.operation().starts_with("POST /auth/sign-") { 3_000 } else { 100_000 };
        for (what, body) in [
            ("nothing", Vec::new()),
            ("half of it", whole[..middle].into()),
            ("all but its end", whole[..whole.len() - 1].into()),
            ("two of it", whole.repeat(2).into()),
            ("what is no text", not_text),
            ("half a character", br#"{"name":"\ud83d"}"#.to_vec()),
            ("the other half of a character", br#"{"name":"\udcd6"}"#.to_vec()),
            ("halves the wrong way around", br#"{"name":"\udcd6\ud83d"}"#.to_vec()),
            ("deep arrays", b"[".repeat(deep)),
            ("deep objects", br#"{"a":"#.repeat(deep)),
            ("deep arrays that end", [b"[".repeat(deep), b"]".repeat(deep)].concat()),
            ("a deep field", format!(r#"{{"name":{}{}}}"#, "[".repeat(deep), "]".repeat(deep)).into()),
        ] {
            // A body that may be left out.
            let may_be_left_out = ["DELETE /users/me", "POST /sources/{}/run", "POST /evaluations/{}/runs"];
            if body.is_empty() && may_be_left_out.contains(&row.operation().as_str()) {
                continue;
            }
            let (status, answer) = tried.send(&row, body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{what} to {}: {answer:#}", row.operation());
            assert_eq!(answer["error"]["code"], "malformed_json", "{what} to {}", row.operation());
        }
    }
    tried.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_object_is_invalid_whatever_it_is_sent_to() {
    let tried = Tried::start(Mode::Embedded).await;
    for (row, body) in tried.bodies() {
        for wrong in [json!([]), json!([body]), json!("{}"), json!(5), json!(-0.5), json!(true), Value::Null]
        {
            let (status, answer) = tried.send(&row, wrong.to_string()).await;
            let about = format!("{wrong} to {}: {answer:#}", row.operation());
            assert_eq!(status, invalid(&row), "{about}");
            assert_eq!(answer["error"]["code"], "invalid_fields", "{about}");
        }
    }
    tried.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_or_of_another_type_is_refused_whatever_it_is_sent_to() {
    let tried = Tried::start(Mode::Embedded).await;
    for (row, body) in tried.bodies() {
        let mut large = body.clone();
        large["padding"] = "x".repeat(3 << 20).into();
        let spaces = format!("{body}{}", " ".repeat(3 << 20));
        for (what, body) in [("a large field", large.to_string()), ("spaces", spaces)] {
            let (status, answer) = tried.send(&row, body).await;
            assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{what} to {}: {answer:#}", row.operation());
        }
        for kind in [
            None,
            Some(""),
            Some("text/plain"),
            Some("application/xml"),
            Some("application/json5"),
            Some("json"),
        ] {
            let request = tried.request(&row).body(body.to_string());
            let request = kind.into_iter().fold(request, |request, kind| request.header(CONTENT_TYPE, kind));
            let (status, answer) = envelope(send(request).await).await;
            let about = format!("{kind:?} to {}: {answer:#}", row.operation());
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{about}");
        }
    }
    tried.goes_on().await;
}

/// Each value in each body, replaced by each of these.
async fn no_field_of_any_body_can_break_the_service(mode: Mode) {
    let tried = Tried::start(mode).await;
    // Longer than any name, and short enough for what strangers may send.
    let long = "x".repeat(10_000);
    let values = [
        json!("a\0b"),
        json!(long),
        json!("\u{202e}gpj.exe\u{2066}\u{feff}"),
        json!("' OR 1=1; DROP TABLE users; --"),
        json!("{input} {0.__class__} {{{ }"),
        json!("\u{1f469}\u{200d}\u{1f680}"),
        json!(""),
        json!(" \n\t "),
        json!(0),
        json!(-1),
        json!(1.5e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(true),
        json!([]),
        json!({}),
        json!([[], {}, null, "a\0b"]),
        json!({ "a\0b": "c", "": null, "__proto__": {} }),
        Value::Null,
    ];
    for (row, body) in tried.bodies() {
        for pointer in pointers(&body) {
            for value in &values {
                let mut changed = body.clone();
                *changed.pointer_mut(&pointer).expect("a value") = value.clone();
                let (status, answer) = tried.send(&row, changed.to_string()).await;
                let shown: String = value.to_string().chars().take(60).collect();
                let about = format!("{shown} as {pointer} to {}: {answer:#}", row.operation());
                // Wrong passwords are a 401, and after some of them a 429. What needs a sign-in is a 403.
                let is_known = matches!(status.as_u16(), 200 | 401 | 403 | 404 | 409 | 429);
                assert!(is_known || status == invalid(&row), "{status}: {about}");
                let named = named_fields(&answer);
                assert_eq!(!named.is_empty(), status == invalid(&row), "{status}: {about}");
                let field = pointer[1..].replace('/', ".");
                if value == "a\0b" {
                    assert!(named.contains(&field), "{status}: {about}");
                }
                if value == long.as_str() && field == "name" && !row.is_in_openai_form() {
                    assert!(named.contains(&field), "{status}: {about}");
                }
            }
        }
        let mut unknown = body.clone();
        for (at, value) in values.iter().enumerate() {
            unknown[format!("unknown {at}")] = value.clone();
        }
        let (status, answer) = tried.send(&row, unknown.to_string()).await;
        assert_eq!(status, invalid(&row), "{}: {answer:#}", row.operation());
    }
    tried.goes_on().await;
}

/// What wrong fields are answered with. OpenAI's clients know no 422.
fn invalid(row: &Row) -> StatusCode {
    if row.is_in_openai_form() { StatusCode::BAD_REQUEST } else { StatusCode::UNPROCESSABLE_ENTITY }
}

/// Where there is a value in a body, at any depth.
fn pointers(value: &Value) -> Vec<String> {
    let below = |step: String, value: &Value| {
        let inner = pointers(value).into_iter().map(|rest| format!("/{step}{rest}"));
        [format!("/{step}")].into_iter().chain(inner).collect::<Vec<_>>()
    };
    match value {
        Value::Object(object) => object.iter().flat_map(|(name, value)| below(name.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(at, item)| below(at.to_string(), item)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The fields that a refusal names; to OpenAI's clients, that is in its sentence.
fn named_fields(answer: &Value) -> Vec<String> {
    if answer["error"]["param"].is_string() && answer["error"]["code"] == "invalid_fields" {
        let sentence = answer["error"]["message"].as_str().expect("a sentence");
        let named = sentence.split('`').skip(1).step_by(2);
        return named.map(|path| path.replace('[', ".").replace(']', "")).collect();
    }
    let fields = answer["error"]["fields"].as_array().into_iter().flatten();
    fields.map(|field| field["path"].as_str().expect("a path").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_query_can_break_the_service() {
    let tried = Tried::start(Mode::Embedded).await;
    let long = format!("?{}=1", "a".repeat(8_000));
    let reads = |row: &Row| row.method == Method::GET && !row.target.contains('?') && !row.needs_sign_in();
    for row in rows().into_iter().filter(reads) {
        for query in [
            "?",
            "?limit=0",
            "?limit=-1",
            "?limit=201",
            "?limit=1e3",
            "?limit=",
            "?limit=99999999999999999999",
            "?limit=%00",
            "?limit[]=1",
            "?limit=1&limit=x",
            "?cursor=",
            "?cursor=..%2f..%2fetc",
            "?cursor=%00",
            "?cursor=%ff%fe",
            "?cursor=' OR 1=1 --",
            "?limit=200&cursor=ffffffff-ffff-ffff-ffff-ffffffffffff",
            "?agentId=",
            "?agentId=%00",
            "?agentId[a]=1",
            "?%00=%00",
            "?&&=&;=",
            "?__proto__[a]=b&constructor=1",
            &long,
        ] {
            let target = format!("{}{query}", row.target_with(&tried.things));
            let request = tried.user.request_outside(Method::GET, &target).bearer_auth(tried.user.token());
            let (status, _, answer) = answer(request).await;
            let about = format!("{} with {query:.60}: {answer:#}", row.operation());
            assert!(matches!(status.as_u16(), 200 | 404) || status == invalid(&row), "{status}: {about}");
            let named = named_fields(&answer);
            assert_eq!(!named.is_empty(), status == invalid(&row), "{status}: {about}");
            let is_sent = |name: &String| query.contains(name.as_str());
            assert!(named.is_empty() || named.iter().any(is_sent), "{about}");
        }
    }
    tried.goes_on().await;
}
