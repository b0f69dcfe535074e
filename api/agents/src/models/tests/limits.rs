//! Memory and time stay bounded whatever a server sends.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};

use super::{
    server::{Server, endless, sse},
    *,
};
use crate::models::answer::MAX_TEXT_BYTES;

/// What an endless reply gets rid of before the client hangs up, the system's own buffers included.
const SOON: usize = 24 * 1024 * 1024;

/// Asks a server that never stops, and tells what came of it and how much it sent.
async fn against(reply: Reply) -> (Result<ChatOutcome, ChatError>, usize) {
    let server = Server::start(vec![reply]).await;
    let answer = ask(server.config("m"), &question()).await.0;
    (answer, server.sent.load(Ordering::Relaxed))
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_limit() {
    let piece = "ä".repeat(50_000) + "x";
    let body: String = std::iter::repeat_n(text(&piece), 100).collect();
    let answer = outcome(vec![sse(&(body + &finish("stop")))]).await;
    assert!((MAX_TEXT_BYTES - 1..=MAX_TEXT_BYTES).contains(&answer.text.len()), "{}", answer.text.len());
    assert_eq!(answer.finish_reason, FinishReason::Length);
}

#[tokio::test]
async fn endless_tool_calls_are_refused() {
    let part = json!([{"index": 0, "id": "x", "function": {"name": "f", "arguments": "a".repeat(600_000)}}]);
    let body = [calls(&part), calls(&part), finish("tool_calls")].concat();
    assert_eq!(failure(vec![sse(&body)]).await.0, ChatErrorKind::TooLarge);
    let many: Vec<Value> =
        (0..1000).map(|index| json!({"index": index, "function": {"name": "f"}})).collect();
    assert_eq!(failure(vec![sse(&calls(&json!(many)))]).await.0, ChatErrorKind::TooLarge);
}

#[tokio::test]
async fn an_answer_without_end_is_read_no_further_than_its_text_is_taken() {
    let (answer, sent) = against(endless("200 OK", "", &text(&"x".repeat(1000)))).await;
    let answer = answer.unwrap();
    assert_eq!((answer.text.len(), answer.finish_reason), (MAX_TEXT_BYTES, FinishReason::Length));
    assert!(sent < SOON, "{sent}");
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    let begun = text("Hi") + "data: ";
    for (beginning, kind) in [
        ("", ChatErrorKind::Garbage),
        ("data: ", ChatErrorKind::TooLarge),
        (begun.as_str(), ChatErrorKind::TooLarge),
    ] {
        let (answer, sent) = against(endless("200 OK", beginning, "xxxxxxxx")).await;
        assert_eq!(answer.unwrap_err().kind, kind);
        assert!(sent < SOON, "{sent}");
    }
}

#[tokio::test]
async fn garbage_without_end_is_given_up() {
    for garbage in ["<p>no event</p>\n", ": comment\n\n", "event: x\n\n", "data: <p>\n\n"] {
        let (answer, sent) = against(endless("200 OK", "", garbage)).await;
        assert_eq!(answer.unwrap_err().kind, ChatErrorKind::Garbage, "{garbage}");
        assert!(sent < SOON, "{sent}");
    }
}

#[tokio::test]
async fn events_that_say_nothing_come_to_an_end() {
    let nothing = frame(&json!({"choices": [], "padding": "x".repeat(60_000)}));
    assert_eq!(against(endless("200 OK", "", &nothing)).await.0.unwrap_err().kind, ChatErrorKind::TooLarge);
}

#[tokio::test]
async fn an_error_body_without_end_is_not_read_to_it() {
    for (status, kind) in [
        ("400 Bad Request", ChatErrorKind::BadRequest { status: 400 }),
        ("404 Not Found", ChatErrorKind::NotFound),
    ] {
        let (answer, sent) = against(endless(status, "", "temperature unsupporte ")).await;
        assert_eq!(answer.unwrap_err().kind, kind);
        assert!(sent < SOON, "{sent}");
    }
}

#[tokio::test]
async fn an_error_body_that_stalls_does_not_hold_up_its_error() {
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{";
    let server = Server::start(vec![server::stalled(head)]).await;
    let error = ask(server.config("m"), &question()).await.0.unwrap_err();
    assert_eq!((error.kind, error.attempts), (ChatErrorKind::BadRequest { status: 400 }, 1));
}

#[tokio::test]
async fn a_server_that_says_nothing_at_all_is_given_up() {
    let server = Server::start(vec![server::stalled(""), server::stalled(""), server::stalled("")]).await;
    let model = HttpModel::new(server.config("m")).unwrap();
    let deadline = Instant::now() + Duration::from_millis(300);
    let error = model.chat(&question(), deadline, &mut Heard(&mut String::new())).await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Timeout);
}
