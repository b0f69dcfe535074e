//! Uploads, and other bodies, of somebody who may not send them any more when they end.

use futures::{StreamExt, stream};
use reqwest::{Body, Method, StatusCode, header::CONTENT_TYPE};
use serde_json::json;
use tokio::sync::oneshot;

use super::{BOUNDARY, part_head, wait_for_blobs};
use crate::support::{
    client::{data, envelope, id, send},
    in_both_modes,
    process::POLL,
    service::{Mode, Service},
    within_deadline,
};

in_both_modes!(
    an_upload_ends_with_the_credential_by_which_it_began,
    a_body_ends_with_the_credential_by_which_it_began
);

async fn an_upload_ends_with_the_credential_by_which_it_began(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    for (path, more) in [("/api/v1/documents/upload", ""), ("/v1/files", "assistants")] {
        let made = ada.create("/api-tokens", &json!({ "description": "a script's", "role": "editor" })).await;
        let script = ada.with_token(made["token"].as_str().expect("a value"));
        let mut begin = Vec::new();
        if !more.is_empty() {
            begin.extend(part_head("name=\"purpose\"", None).into_bytes());
            begin.extend(format!("{more}\r\n").into_bytes());
        }
        begin.extend(part_head("name=\"file\"; filename=\"slow.txt\"", Some("text/plain")).into_bytes());
        begin.extend(b"words ".repeat(20_000));
        let (finish, finished) = oneshot::channel::<()>();
        let end = async move {
            let _ = finished.await;
            format!("\r\n--{BOUNDARY}--\r\n").into_bytes()
        };
        let body = stream::once(async { begin }).chain(stream::once(end)).map(Ok::<_, std::io::Error>);
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = script.request_anywhere(Method::POST, path).header(CONTENT_TYPE, kind);
        let request = request.body(Body::wrap_stream(body));
        let sent = tokio::spawn(async move { envelope(send(request).await).await });
        wait_for_blobs(&service, 1).await;
        data(ada.delete(&format!("/api-tokens/{}", id(&made))).await);
        let (status, answer) = within_deadline("the upload to end", sent).await.expect("no panic");
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}: {answer:#}");
        drop(finish);
        wait_for_blobs(&service, 0).await;
        assert_eq!(ada.read("/documents").await, json!([]), "{path}");
    }
}

async fn a_body_ends_with_the_credential_by_which_it_began(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;
    let script = ada.with_token(made["token"].as_str().expect("a value"));
    let (finish, finished) = oneshot::channel::<()>();
    let begin = async { b"{\"name\": \"Late\", \"template\": \"{input}\"".to_vec() };
    let end = async move {
        let _ = finished.await;
        b"}".to_vec()
    };
    let body = stream::once(begin).chain(stream::once(end)).map(Ok::<_, std::io::Error>);
    let request = script.request(Method::POST, "/prompts").header(CONTENT_TYPE, "application/json");
    let sent = tokio::spawn({
        let request = request.body(Body::wrap_stream(body));
        async move { envelope(send(request).await).await }
    });
    let path = format!("/api-tokens/{}", id(&made));
    let is_known = async {
        while ada.read(&path).await["lastUsedAt"].is_null() {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the token to be looked at", is_known).await;
    data(ada.delete(&path).await);
    let (status, answer) = within_deadline("the request to end", sent).await.expect("no panic");
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer:#}");
    drop(finish);
    assert_eq!(ada.read("/prompts").await, json!([]));
}
