//! MODELHOST.

use std::{sync::Arc, time::Duration};

use lectern_shared::model::tool::ToolType::ModelHost;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

use super::{super::ToolError, support::*};

fn prediction(status: &str, output: &Value) -> Reply {
    let urls = json!({"get": "http://169.254.169.254/", "cancel": "http://169.254.169.254/"});
    Reply::Body(
        201,
        "application/json",
        json!({"id": "run-1", "status": status, "output": output, "urls": urls}).to_string().into(),
    )
}

/// A host that begins a run, and then answers what comes next when it is asked after it.
async fn host(next: Vec<Reply>) -> Site {
    let next: Shared<Vec<Reply>> = Arc::new(Mutex::new(next));
    Site::new(move |seen| {
        if seen.line.ends_with("/cancel") {
            prediction("canceled", &Value::Null)
        } else if seen.line.starts_with("POST") {
            prediction("starting", &Value::Null)
        } else {
            let mut next = next.lock();
            if next.is_empty() { prediction("processing", &Value::Null) } else { next.remove(0) }
        }
    })
    .await
}

#[tokio::test]
async fn a_run_is_created_and_asked_after_until_it_ends() {
    let next = vec![
        prediction("processing", &Value::Null),
        text(502, "a stumble"),
        prediction("succeeded", &json!(["Hello", ", ", "world"])),
    ];
    let site = host(next).await;
    let metadata = json!({
        "api_key": KEY, "base_url": site.base, "model": "owner/name",
        "input": {"temperature": 0.1, "top": 5, "prompt": "?"},
    });
    let arguments = json!({"prompt": "hi", "input": {"top": 6}});
    assert_eq!(ask(ModelHost, metadata, arguments).await.unwrap(), "Hello, world");
    let seen = site.seen();
    let lines: Vec<_> = seen.iter().map(|seen| seen.line.as_str()).collect();
    let look = "GET /v1/predictions/run-1";
    assert_eq!(lines, ["POST /v1/models/owner/name/predictions", look, look, look]);
    assert_eq!(seen[0].json(), json!({"input": {"temperature": 0.1, "top": 6, "prompt": "hi"}}));
    assert_eq!(seen[0].header("cancel-after").map(|time| time.ends_with('s')), Some(true));
    let key = format!("Bearer {KEY}");
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some(key.as_str())));
    assert!(seen.iter().all(|seen| !seen.line.contains(KEY) && !seen.body.contains(KEY)));
}

#[tokio::test]
async fn a_version_is_run_as_such_wherever_it_is_written() {
    for metadata in [json!({"version": "5c7d5dc6"}), json!({"model": "owner/name:5c7d5dc6"})] {
        let site = host(vec![prediction("succeeded", &json!({"a": [1, 2]}))]).await;
        let mut metadata = metadata;
        metadata["api_key"] = KEY.into();
        metadata["base_url"] = site.base.clone().into();
        let answer = ask(ModelHost, metadata, json!({"input": {"text": "Alice"}})).await.unwrap();
        assert_eq!(answer, r#"{"a":[1,2]}"#);
        let created = &site.seen()[0];
        assert_eq!(created.line, "POST /v1/predictions");
        assert_eq!(created.json(), json!({"version": "5c7d5dc6", "input": {"text": "Alice"}}));
    }
}

#[tokio::test]
async fn outputs_are_told_as_text() {
    for (output, told) in [
        (json!("text"), "text"),
        (
            json!(["https://a.example/1.png", "https://a.example/2.png"]),
            "https://a.example/1.png\nhttps://a.example/2.png",
        ),
        (json!([]), "[]"),
        (json!([1, "a"]), r#"[1,"a"]"#),
        (json!(null), "The model gave no output."),
    ] {
        let site = host(vec![prediction("succeeded", &output)]).await;
        let metadata = json!({"api_key": KEY, "base_url": site.base, "model": "owner/name"});
        assert_eq!(ask(ModelHost, metadata, json!({"prompt": "hi"})).await.unwrap(), told);
    }
}

#[tokio::test]
async fn a_run_that_fails_or_is_canceled_says_so_in_plain_words() {
    for (status, told) in [
        ("failed", "The model failed on this input."),
        ("canceled", "The run of the model was canceled at its host."),
        ("aborted", "The run of the model was canceled at its host."),
        ("dreaming", "The model host answered with something that cannot be understood."),
    ] {
        let site = host(vec![prediction(status, &json!("half"))]).await;
        let metadata = json!({"api_key": KEY, "base_url": site.base, "model": "owner/name"});
        assert_eq!(ask(ModelHost, metadata, json!({"prompt": "hi"})).await, Err(failure(told)), "{status}");
    }
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_canceled() {
    let site = host(Vec::new()).await;
    let opened = open(ModelHost, json!({"api_key": KEY, "base_url": site.base, "model": "owner/name"})).await;
    let deadline = Instant::now() + Duration::from_secs(2);
    let result = opened.tool.call(0, object(json!({"prompt": "hi"})), deadline).await;
    assert_eq!(result, Err(ToolError::Timeout));
    let canceled = site.wait(|seen| seen.line == "POST /v1/predictions/run-1/cancel").await;
    assert_eq!(canceled.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_any_more_is_canceled() {
    let site = host(Vec::new()).await;
    let opened = open(ModelHost, json!({"api_key": KEY, "base_url": site.base, "model": "owner/name"})).await;
    let asking = tokio::spawn(async move { call(&opened, 0, json!({"prompt": "hi"})).await });
    site.wait(|seen| seen.line.starts_with("GET")).await;
    asking.abort();
    site.wait(|seen| seen.line.ends_with("/cancel")).await;
}

#[tokio::test]
async fn a_run_whose_asker_went_away_while_it_was_created_is_canceled() {
    let go = Arc::new(Notify::new());
    let told = Arc::clone(&go);
    let site = Site::new(move |seen| {
        if seen.line.ends_with("/cancel") {
            return prediction("canceled", &Value::Null);
        }
        Reply::When(Arc::clone(&told), Box::new(prediction("starting", &Value::Null)))
    })
    .await;
    let opened = open(ModelHost, json!({"api_key": KEY, "base_url": site.base, "model": "owner/name"})).await;
    let asking = tokio::spawn(async move { call(&opened, 0, json!({"prompt": "hi"})).await });
    site.wait(|seen| seen.line.starts_with("POST /v1/models")).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    go.notify_one();
    site.wait(|seen| seen.line.ends_with("/cancel")).await;
}

#[tokio::test]
async fn an_id_that_would_lead_elsewhere_is_not_followed() {
    let site = Site::new(|_| json(&json!({"id": "../../admin", "status": "starting"}))).await;
    let metadata = json!({"api_key": KEY, "base_url": site.base, "model": "owner/name"});
    let error = ask(ModelHost, metadata, json!({"prompt": "hi"})).await.unwrap_err();
    assert_eq!(error, failure("The model host answered with something that cannot be understood."));
    assert_eq!(site.lines().len(), 1);
}

#[tokio::test]
async fn an_input_is_needed_and_refusals_are_told() {
    let site = Site::new(|_| text(422, "no such input")).await;
    let opened = open(ModelHost, json!({"api_key": KEY, "base_url": site.base, "model": "owner/name"})).await;
    let error = call(&opened, 0, json!({})).await.unwrap_err();
    assert!(matches!(&error, ToolError::Arguments(told) if told.contains("`prompt`")), "{error}");
    let error = call(&opened, 0, json!({"prompt": "hi"})).await.unwrap_err().to_string();
    assert!(error.contains("does not take this input"), "{error}");
    let error = ask(ModelHost, json!({"api_key": KEY, "model": "name"}), json!({})).await.unwrap_err();
    assert_eq!(error, failure("The `model` of this tool must be written `owner/name`."));
}
