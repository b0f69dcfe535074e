//! Nothing opens without good credentials, and they are looked at before anything else.

use futures::{StreamExt, stream};
use jsonwebtoken::Algorithm;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Operation, operations, rows::rows, things::Things};
use crate::support::{
    client::{Client, PASSWORD, assert_openai_form, data, envelope, id, send},
    forge::{Forge, SECRET, forged_tokens},
    in_both_modes,
    service::{Mode, Service},
    within_deadline,
};

in_both_modes!(nothing_opens_without_good_credentials);

/// Connections at once.
const AT_ONCE: usize = 16;
const BEARER: [&str; 2] = ["Authorization", "Autorization"];
const API_TOKEN: [&str; 2] = ["X_SERVICE_API_KEY", "X-Service-Api-Key"];

async fn nothing_opens_without_good_credentials(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_SECRET_KEY", SECRET).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let things = Things::of(&ada, "The gate opens at nine.").await;
    let forge = Forge::new(SECRET);

    // Whoever forges with the right key, algorithm and claims gets in: what is refused below is refused for what it says.
    let good = forge.sign(Algorithm::HS256, &forge.claims_of(&ada));
    ada.with_token(&good).read("/users/me").await;

    let token = create_token(&ada).await;
    let mut bad: Vec<(&str, String)> = forged_tokens(&forge, &ada, &grace, &token);
    bad.extend(ended_tokens(&service, &ada).await);
    let address = service.base_url().trim_start_matches("http://").to_owned();
    let described = operations(&ada).await;
    let mut attempts = Vec::new();
    for row in rows() {
        let name = row.operation();
        let operation = described.iter().find(|operation| operation.name == name);
        let operation = operation.unwrap_or_else(|| panic!("{name} is no operation"));
        let target = row.target_with(&things);
        for (what, header) in
            if operation.secured { headers(operation, &bad, &good, &token) } else { Vec::new() }
        {
            attempts.push((format!("{name} with {what}"), request(&row.method, &target, &header)));
        }
    }
    assert!(attempts.len() > 1_000, "so few attempts prove nothing");
    let attempts = attempts.into_iter().map(async |(about, request)| {
        let answer = within_deadline(&format!("an answer to {about}"), answer(&address, &request)).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 401 "), "{about}: {answer}");
        assert!(head.to_lowercase().contains("\r\nwww-authenticate: bearer\r\n"), "{about}: {head}");
        let body: Value =
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{about}: {error}: {body}"));
        if about.contains(" /v1/") {
            assert_openai_form(StatusCode::UNAUTHORIZED, &body);
            assert_eq!(body["error"]["code"], "invalid_api_key", "{about}: {body}");
            return;
        }
        assert_eq!((&body["success"], &body["data"]), (&Value::Bool(false), &Value::Null), "{about}");
        assert_eq!(body["error"]["code"], "unauthorized", "{about}: {body}");
        assert_eq!(body["error"].get("fields"), None, "{about}: {body}");
    });
    stream::iter(attempts).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    ada.with_token(&token).read("/users/me").await;
}

/// Every header with bad credentials that an operation could be tried with, and what is bad about it.
fn headers(
    operation: &Operation,
    bad: &[(&'static str, String)],
    good: &str,
    api_token: &str,
) -> Vec<(String, Vec<u8>)> {
    let mut headers = vec![("nothing".to_owned(), Vec::new())];
    let mut add = |name: &str, what: &str, value: &[u8]| {
        let line = [name.as_bytes(), b": ", value, b"\r\n"].concat();
        headers.push((format!("{what} in {name}"), line));
    };
    for name in BEARER {
        for (what, token) in bad {
            add(name, what, format!("Bearer {token}").as_bytes());
        }
        for (what, value) in [
            ("nothing", &b""[..]),
            ("a scheme alone", b"Bearer"),
            ("an empty token", b"Bearer "),
            ("another scheme", b"Basic YWRhOnBhc3N3b3Jk"),
            ("bytes that are no text", b"Bearer \xff\xfe"),
            ("a good token without a scheme", good.as_bytes()),
        ] {
            add(name, what, value);
        }
    }
    for name in API_TOKEN {
        if operation.takes_api_token {
            for (what, token) in bad {
                add(name, what, token.as_bytes());
            }
            add(name, "nothing", b"");
            add(name, "bytes that are no text", b"\xff\xfe");
        } else {
            add(name, "a good API token, which only predict takes there,", api_token.as_bytes());
        }
    }
    headers
}

/// A request with a body that is too large, of a type that is not taken, malformed, and never sent to its end.
fn request(method: &Method, target: &str, header: &[u8]) -> Vec<u8> {
    let start = format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000000\r\n"
    );
    [start.as_bytes(), header, b"\r\n{"].concat()
}

/// What is answered, once it is there to the end that its length promises.
async fn answer(address: &str, request: &[u8]) -> String {
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    connection.write_all(request).await.expect("the request is taken");
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.expect("a length").parse().expect("a number");
            if body.len() >= length {
                return text.into_owned();
            }
        }
        let read = connection.read_buf(&mut answer).await.expect("an answer");
        assert!(
            read > 0,
            "the connection was closed before the answer's end: {text}",
            text = String::from_utf8_lossy(&answer)
        );
    }
}

async fn create_token(user: &Client) -> String {
    let token = user.create("/api-tokens", &json!({ "description": "a script's" })).await;
    token["token"].as_str().expect("a value").to_owned()
}

/// Tokens that the service made, and that were good for a while.
async fn ended_tokens(service: &Service, ada: &Client) -> Vec<(&'static str, String)> {
    let revoked = ada.create("/api-tokens", &json!({ "description": "lost" })).await;
    data(ada.delete(&format!("/api-tokens/{}", id(&revoked))).await);

    let signed_out = service.signed_up("mary@example.com").await;
    signed_out.create("/auth/sign-out", &json!({})).await;

    let changed = service.signed_up("joan@example.com").await;
    let password = json!({ "password": "another password", "currentPassword": PASSWORD });
    data(changed.patch("/users/me", &password).await);

    let gone = service.signed_up("gone@example.com").await;
    let token_of_gone = create_token(&gone).await;
    let goodbye = gone.request(Method::DELETE, "/users/me").json(&json!({ "password": PASSWORD }));
    data(envelope(send(goodbye).await).await);
    vec![
        ("an API token that was deleted", revoked["token"].as_str().expect("a value").to_owned()),
        ("a sign-in that was ended", signed_out.token().to_owned()),
        ("a sign-in from before the password was changed", changed.token().to_owned()),
        ("a sign-in to an account that was deleted", gone.token().to_owned()),
        ("an API token of an account that was deleted", token_of_gone),
    ]
}
