//! What every tool does when its service fails, answers with nonsense, or does not answer.

use std::time::Duration;

use lectern_shared::model::tool::ToolType;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{super::ToolError, support::*};

/// Each kind of tool at a server that answers what is asked before the call, and then this.
async fn each(reply: Reply) -> Vec<(&'static str, Site, ToolType, Value, Value)> {
    let mut all = Vec::new();
    for (name, subject, r#type, mut metadata, arguments) in [
        (
            "searxng",
            "The search service",
            ToolType::Search,
            json!({"provider": "searxng"}),
            json!({"query": "q"}),
        ),
        (
            "brave",
            "The search service",
            ToolType::Search,
            json!({"provider": "brave"}),
            json!({"query": "q"}),
        ),
        (
            "tavily",
            "The search service",
            ToolType::Search,
            json!({"provider": "tavily"}),
            json!({"query": "q"}),
        ),
        (
            "serper",
            "The search service",
            ToolType::Search,
            json!({"provider": "serper"}),
            json!({"query": "q"}),
        ),
        ("compute", "The computation service", ToolType::ComputeAlpha, json!({}), json!({"input": "1"})),
        ("model", "The model host", ToolType::ModelHost, json!({"model": "a/b"}), json!({"prompt": "p"})),
        (
            "actions",
            "The automation service",
            ToolType::AutomationNla,
            json!({}),
            json!({"instructions": "i"}),
        ),
    ] {
        let reply = reply.clone();
        let site = Site::new(move |seen| {
            if seen.line == "GET /api/v1/exposed/" {
                json(&json!({"results": [{"id": "1", "description": "Act"}]}))
            } else {
                reply.clone()
            }
        })
        .await;
        for key in ["api_key", "app_id", "automation_nla_api_key"] {
            metadata[key] = KEY.into();
        }
        metadata["base_url"] = site.base.clone().into();
        metadata["name of the test"] = name.into();
        all.push((subject, site, r#type, metadata, arguments));
    }
    all
}

#[tokio::test]
async fn failures_are_told_in_plain_words_without_what_the_service_wrote() {
    let told = "upstream says: ";
    for (reply, sentence) in [
        (text(401, &format!("{told}{KEY}")), "rejected the credentials of this tool."),
        (Reply::Body(401, "text/html", vec![b' '; 10_000_000]), "rejected the credentials of this tool."),
        (text(402, told), "wants its account to be paid or its plan's limit to be raised."),
        (text(429, told), "has been asked too often; try again later."),
        (text(500, told), "failed (status 500); try again later."),
        (text(418, told), "refused the request (status 418)."),
        (
            Reply::Body(200, "text/html", b"<html>upstream says: hello</html>".into()),
            "answered with something that cannot be understood.",
        ),
        (
            Reply::Body(200, "application/json", b"{\"upstream says: \"".into()),
            "answered with something that cannot be understood.",
        ),
        (
            Reply::Body(200, "application/json", "[".repeat(100_000).into()),
            "answered with something that cannot be understood.",
        ),
        (Reply::Body(200, "application/json", vec![b' '; 10_000_000]), "gave an answer that is too large."),
        (
            Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"a\""),
            "gave an answer that could not be read.",
        ),
        (Reply::Raw("nonsense\r\n\r\n"), "gave an answer that could not be read."),
        (
            Reply::To(303, "http://169.254.169.254/".to_owned()),
            "could not be reached: it does not answer, or it is not at an address that is open to users.",
        ),
    ] {
        for (subject, _site, r#type, metadata, arguments) in each(reply.clone()).await {
            let error = ask(r#type, metadata.clone(), arguments).await.unwrap_err();
            let text = error.to_string();
            assert!(!text.contains(KEY) && !text.contains("upstream"), "{metadata}: {text}");
            assert_eq!(text, format!("{subject} {sentence}"), "{metadata}");
        }
    }
}

#[tokio::test]
async fn what_is_sent_to_a_service_that_has_moved_is_not_taken_for_done() {
    let mut sent = 0;
    for (subject, site, r#type, metadata, arguments) in each(Reply::To(301, "/moved".to_owned())).await {
        let asked = ask(r#type, metadata.clone(), arguments).await;
        if site.lines().iter().any(|line| line.starts_with("POST ")) {
            sent += 1;
            let what = "answered with a redirect, and what was sent is not sent on; set `base_url` to the new address.";
            assert_eq!(asked, Err(failure(&format!("{subject} {what}"))), "{metadata}");
        }
        assert!(asked.is_err(), "{metadata}");
    }
    assert_eq!(sent, 4);
}

#[tokio::test]
async fn a_service_that_says_nothing_is_given_up_at_the_deadline() {
    for (_, _site, r#type, metadata, arguments) in each(Reply::Stall).await {
        let opened = open(r#type, metadata.clone()).await;
        let deadline = Instant::now() + Duration::from_millis(300);
        let result = opened.tool.call(0, object(arguments.clone()), deadline).await;
        assert_eq!(result, Err(ToolError::Timeout), "{metadata}");
        let result = opened.tool.call(0, object(arguments), Instant::now()).await;
        assert_eq!(result, Err(ToolError::Timeout), "{metadata}");
    }
}

#[tokio::test]
async fn a_service_that_says_nothing_is_given_up_after_the_tools_own_time() {
    for (_, _site, r#type, mut metadata, arguments) in each(Reply::Stall).await {
        metadata["timeout"] = json!(0.3);
        assert_eq!(ask(r#type, metadata.clone(), arguments).await, Err(ToolError::Timeout), "{metadata}");
    }
}

#[tokio::test]
async fn what_is_not_there_cannot_be_reached() {
    for (subject, site, r#type, mut metadata, arguments) in each(Reply::Stall).await {
        if r#type == ToolType::AutomationNla {
            continue;
        }
        drop(site);
        // Nobody listens at the first port.
        metadata["base_url"] = "http://127.0.0.1:1".into();
        let error = ask(r#type, metadata, arguments).await.unwrap_err();
        let what =
            "could not be reached: it does not answer, or it is not at an address that is open to users.";
        assert_eq!(error, failure(&format!("{subject} {what}")));
    }
}
