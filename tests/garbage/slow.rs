//! Clients that take their time.

use futures::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{service::Service, within_deadline};

/// Sends this, then nothing more, and reads until the service has closed the connection.
async fn fall_silent(address: &str, request: &str) -> String {
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    connection.write_all(request.as_bytes()).await.expect("the request is taken");
    let mut answer = Vec::new();
    let read = connection.read_to_end(&mut answer);
    // A connection that is reset is closed too.
    let _ = within_deadline("the connection's end", read).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_come_to_its_end_is_given_up() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let address = service.base_url().trim_start_matches("http://").to_owned();
    let post = |path: &str, kind: &str, body: &str| {
        let token = ada.token();
        format!(
            "POST /api/v1{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: {kind}\r\nContent-Length: 1000\r\n\r\n{body}"
        )
    };
    let form = "multipart/form-data; boundary=x";
    let file = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nThe gate";
    let slow = [
        ("no body", post("/documents", "application/json", "")),
        ("half a body", post("/documents", "application/json", r#"{"name": "No"#)),
        ("half a body of a stranger", post("/auth/sign-in", "application/json", r#"{"email": "#)),
        ("half a form", post("/documents/upload", form, "--x\r\nContent-Dis")),
        ("half a file", post("/documents/upload", form, file)),
    ];
    let answers = slow.iter().map(async |(what, request)| (what, fall_silent(&address, request).await));
    for (what, answer) in join_all(answers).await {
        assert!(answer.starts_with("HTTP/1.1 408 "), "{what}: {answer}");
        assert!(answer.contains(r#""success":false"#), "{what}: {answer}");
    }
    assert!(service.client().is_ready().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_finish_its_headers_is_cut_off() {
    let service = Service::start().await;
    let address = service.base_url().trim_start_matches("http://").to_owned();
    let slow = ["", "GET /", "GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: "];
    let answers = join_all(slow.map(|request| fall_silent(&address, request))).await;
    assert!(answers.iter().all(|answer| !answer.contains(" 200 ")), "{answers:?}");
    assert!(service.client().is_ready().await);
}
