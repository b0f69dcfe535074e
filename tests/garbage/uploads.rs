//! Forms that are none, and files whose names want to be elsewhere.

use std::path::Path;

use axum::body::Bytes;
use futures::{StreamExt, stream};
use reqwest::{
    Body, Method, StatusCode,
    header::{CONTENT_DISPOSITION, CONTENT_TYPE},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::named_fields;
use crate::support::{
    client::{Client, data, envelope, id, send},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(a_file_name_leads_nowhere);

const FORM: &str = "multipart/form-data; boundary=x";
const TEXT: &str = "The gate opens at nine.";

async fn post(user: &Client, kind: &str, body: impl Into<Body>) -> (StatusCode, Value) {
    let request = user.request(Method::POST, "/documents/upload").header(CONTENT_TYPE, kind);
    envelope(send(request.body(body)).await).await
}

/// A part of a form, with these parameters of its disposition.
fn part(parameters: &str, content: &str) -> String {
    format!("--x\r\nContent-Disposition: form-data; {parameters}\r\n\r\n{content}\r\n")
}

fn form(parts: &[String]) -> String {
    format!("{}--x--\r\n", parts.concat())
}

async fn a_file_name_leads_nowhere(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let mark = Uuid::now_v7().to_string();
    let outside = std::env::temp_dir().join(&mark);
    let outside = outside.to_str().expect("a path of plain text");
    let long = format!("{mark}{}", "x".repeat(100_000));
    for file_name in [
        &format!("../../../../../../../..{outside}"),
        outside,
        &format!("..\\..\\{mark}"),
        &format!("C:\\{mark}"),
        &format!("\\\\host\\share\\{mark}"),
        &format!("file://{outside}"),
        &format!("%2e%2e%2f%2e%2e%2f{mark}"),
        &format!("..%5c{mark}"),
        &format!("....//....//{mark}"),
        &format!("~/{mark}"),
        &format!("{mark}\u{202e}fdp.exe"),
        &format!("\u{2066}{mark}\u{2069}\u{200f}\u{feff}\u{2028}"),
        &format!("{mark}\u{85}\u{9b}2J"),
        &format!("{mark}; rm -rf /"),
        &format!("{mark}'; DROP TABLE documents; --"),
        &format!("{mark}<script>alert(1)</script>"),
        &format!("{mark}\u{1f469}\u{200d}\u{1f680}"),
        &format!("CON.{mark}"),
        &format!(".{mark}"),
        &format!("{mark}."),
        &long,
        "",
        ".",
        "..",
        "/",
        "   ",
        "\u{202e}",
    ] {
        let body = form(&[part(&format!("name=\"file\"; filename=\"{file_name}\""), TEXT)]);
        let (status, answer) = post(&ada, FORM, body).await;
        assert_eq!(status, StatusCode::OK, "{file_name:.80}: {answer:#}");
        let document = &answer["data"];
        let name = document["name"].as_str().expect("a name");
        assert!(!name.trim().is_empty() && name.chars().count() <= 1_000, "{file_name:.80}: {name}");
        assert!(name.chars().all(|c| !c.is_control() && !turns_text(c)), "{file_name:?} is kept as {name:?}");
        assert!(
            !name.contains(['/', '\\']) && ![".", ".."].contains(&name),
            "{file_name:?} is kept as {name:?}"
        );

        let path = format!("/documents/{}", id(document));
        let source = send(ada.request(Method::GET, &format!("{path}/source"))).await;
        let saved_as = source.headers().get(CONTENT_DISPOSITION).expect("a name to save it under").clone();
        let saved_as = saved_as.to_str().expect("plain text");
        assert!(saved_as.starts_with("attachment;"), "{saved_as}");
        assert!(!saved_as.contains(['/', '\\', '<']), "{file_name:?} is saved as {saved_as}");
        assert_eq!(source.text().await.expect("a body"), TEXT, "{file_name:.80}");
        // The name has no say in where it is kept.
        assert!(!Path::new(outside).exists(), "{file_name:?} has made {outside}");
        assert_eq!(files_named(service.data_dir(), &mark), Vec::<String>::new(), "{file_name:?}");
        data(ada.delete(&path).await);
    }
    assert!(service.client().is_ready().await);
}

/// Whether a character changes the order in which those around it are shown.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The files below a directory whose name contains a text.
fn files_named(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(text) {
            found.push(name);
        }
        if path.is_dir() {
            found.extend(files_named(&path, text));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_form_or_a_wrong_one_is_refused() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let file = part("name=\"file\"; filename=\"gate.txt\"", TEXT);
    let whole = form(std::slice::from_ref(&file));
    let with = |parameters: &str, content: &str| form(&[file.clone(), part(parameters, content)]);
    for (what, kind, body, status, named) in [
        ("JSON", "application/json", json!({ "file": TEXT }).to_string(), 415, None),
        ("a web form", "application/x-www-form-urlencoded", "file=text".to_owned(), 415, None),
        ("no boundary", "multipart/form-data", whole.clone(), 400, None),
        ("another boundary", "multipart/form-data; boundary=y", whole.clone(), 400, None),
        ("nothing", FORM, String::new(), 400, None),
        ("half of it", FORM, whole[..whole.len() / 2].to_owned(), 400, None),
        ("no end", FORM, file.clone(), 400, None),
        ("what is no form", FORM, "x".repeat(100_000), 400, None),
        ("a part without a name", FORM, with("filename=\"b.txt\"", "b"), 200, None),
        ("a head without end", FORM, format!("--x\r\nA: {}", "a".repeat(8 << 20)), 400, None),
        ("too many parts", FORM, form(&vec![part("name=\"a\"", "b"); 10_000]), 400, None),
        (
            "a file name that moves the cursor",
            FORM,
            form(&[part("name=\"file\"; filename=\"a\u{1b}[2J.txt\"", TEXT)]),
            400,
            None,
        ),
        ("no file", FORM, form(&[part("name=\"name\"", "Note")]), 422, Some("file")),
        ("no part", FORM, form(&[]), 422, Some("file")),
        ("metadata that is no JSON", FORM, with("name=\"metadata\"", "{"), 422, Some("metadata")),
        ("metadata that is no object", FORM, with("name=\"metadata\"", "[]"), 422, Some("metadata")),
        ("a splitter that is none", FORM, with("name=\"splitter\"", "5"), 422, Some("splitter")),
        ("a name with NUL", FORM, with("name=\"name\"", "a\0b"), 422, Some("name")),
        ("a long name", FORM, with("name=\"name\"", &"x".repeat(100_000)), 422, Some("name")),
        (
            "two names",
            FORM,
            form(&[file.clone(), part("name=\"name\"", "a"), part("name=\"name\"", "b")]),
            422,
            Some("name"),
        ),
        ("another type", FORM, with("name=\"type\"", "PDF"), 422, Some("type")),
        ("a type that is none", FORM, with("name=\"type\"", "../x"), 422, Some("type")),
        ("two files", FORM, with("name=\"file\"; filename=\"b.txt\"", "b"), 422, Some("file")),
        (
            "an archive",
            FORM,
            form(&[part("name=\"file\"; filename=\"a.zip\"", "PK\u{3}\u{4}\0\0")]),
            415,
            None,
        ),
    ] {
        let (got, answer) = post(&ada, kind, body).await;
        assert_eq!(got.as_u16(), status, "{what}: {answer:#}");
        if let Some(named) = named {
            assert!(named_fields(&answer).iter().any(|field| field == named), "{what}: {answer:#}");
        }
    }
    assert!(service.client().is_ready().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_too_large_is_refused_without_being_held_in_memory() {
    const PIECE: usize = 64 << 10;
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    post(&ada, FORM, form(&[part("name=\"file\"; filename=\"a.txt\"", TEXT)])).await;
    let before = service.rss_bytes();
    let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n";
    let pieces = std::iter::repeat_n(Bytes::from(vec![b'a'; PIECE]), (101 << 20) / PIECE);
    let pieces = [Bytes::from(head)].into_iter().chain(pieces);
    let body = Body::wrap_stream(stream::iter(pieces).map(Ok::<_, std::io::Error>));
    let (status, answer) = post(&ada, FORM, body).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer:#}");
    let grown = service.rss_bytes().saturating_sub(before);
    assert!(grown < 50 << 20, "the service has grown by {grown} bytes");
    let kept = ada.read("/documents").await;
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "what is refused is not kept: {kept:#}");
}
