//! `COMPUTE_ALPHA`.

use lectern_shared::model::tool::ToolType::ComputeAlpha;
use serde_json::json;

use super::support::*;

#[tokio::test]
async fn an_answer_comes_as_it_was_written() {
    let site = Site::new(|_| text(200, "Query:\n2+2\n\nResult:\n4\n")).await;
    let answer =
        ask(ComputeAlpha, json!({"app_id": KEY, "base_url": site.base}), json!({"input": "2+2 = ?"}));
    assert_eq!(answer.await.unwrap(), "Query:\n2+2\n\nResult:\n4");
    let seen = &site.seen()[0];
    assert_eq!(seen.line, format!("GET /api/v1/llm-api?input=2%2B2+%3D+%3F&appid={KEY}&maxchars=7500"));
    assert!(!seen.head.contains(KEY));
}

#[tokio::test]
async fn what_was_not_understood_comes_back_with_its_suggestion_and_without_the_id() {
    let body = format!("Things to try instead:\n mass of the Moon\n(asked by {KEY})");
    let site = Site::new(move |_| text(501, &body)).await;
    let metadata = json!({"app_id": KEY, "base_url": site.base});
    let error = ask(ComputeAlpha, metadata, json!({"input": "moon heavy?"})).await.unwrap_err();
    assert_eq!(
        error,
        failure(
            "The computation service did not understand the input; put it more simply. It says: Things to try instead: mass \
             of the Moon (asked by …)"
        )
    );
    let site = Site::new(|_| Reply::Body(501, "text/html", "<p>Not implemented</p>".into())).await;
    let metadata = json!({"app_id": KEY, "base_url": site.base});
    let error = ask(ComputeAlpha, metadata, json!({"input": "moon heavy?"})).await.unwrap_err();
    assert!(error.to_string().ends_with("put it more simply."), "{error}");
}
