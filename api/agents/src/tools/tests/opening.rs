//! Tools as the toolbox gives them out.

use lectern_shared::model::tool::ToolType;
use secrecy::ExposeSecret;
use serde_json::json;

use super::support::*;

#[tokio::test]
async fn a_tool_comes_with_every_secret_of_its_configuration() {
    let metadata = json!({
        "openApiUrl": "http://127.0.0.1:1/", "headers": {"Authorization": format!("Bearer {KEY}"), "X-Plan": "gold plan"},
        "nested": {"client_secret": "s3cret"},
    });
    let opened = open(ToolType::OpenApi, metadata).await;
    let secrets: Vec<_> = opened.secrets.iter().map(ExposeSecret::expose_secret).collect();
    for secret in [KEY, "gold plan", "gold+plan", "gold%20plan", "s3cret"] {
        assert!(secrets.contains(&secret), "{secret}");
    }
    assert!(!format!("{:?}", opened.secrets).contains(KEY));
}

#[tokio::test]
async fn a_tool_whose_secrets_cannot_be_read_says_so_when_it_is_called() {
    let toolbox = toolbox("127.0.0.0/8");
    let mut tool = stored(ToolType::Search, "Web search", json!({"provider": "brave", "api_key": KEY}));
    tool.metadata_sealed = Some(b"damaged".to_vec());
    let opened = toolbox.open(&tool, soon()).await;
    assert_eq!(opened.tool.functions()[0].spec.name, "web_search");
    let error = call(&opened, 0, json!({"query": "q"})).await.unwrap_err();
    let told = "The configuration of this tool cannot be read; its owner must set it again.";
    assert_eq!(error, failure(told));
}

#[tokio::test]
async fn a_configuration_that_lacks_something_is_told() {
    for (r#type, metadata, told) in [
        (ToolType::Search, json!({}), "no search provider"),
        (ToolType::Search, json!({"provider": "brave"}), "no `api_key`"),
        (ToolType::Search, json!({"provider": "brave", "api_key": "a\nb"}), "cannot be sent in a header"),
        (ToolType::Search, json!({"provider": "searxng"}), "no `base_url`"),
        (ToolType::ComputeAlpha, json!({}), "no `app_id`"),
        (ToolType::ModelHost, json!({"api_key": KEY}), "must be written `owner/name`"),
        (ToolType::ModelHost, json!({"api_key": KEY, "model": "../x"}), "must be written `owner/name`"),
        (ToolType::OpenApi, json!({}), "no `openApiUrl`"),
        (ToolType::Mcp, json!({}), "no `url`"),
        (ToolType::Mcp, json!({"server": "files"}), "the operator has named"),
        (ToolType::Agent, json!({"agentId": "x"}), "another agent"),
    ] {
        let error = ask(r#type, metadata.clone(), json!({})).await.unwrap_err().to_string();
        assert!(error.contains(told), "{metadata}: {error}");
    }
}

#[tokio::test]
async fn the_owners_description_comes_first() {
    let mut tool = stored(ToolType::ComputeAlpha, "Maths", json!({"app_id": KEY}));
    tool.description = " For sums. ".to_owned();
    let opened = toolbox("").open(&tool, soon()).await;
    let function = &opened.tool.functions()[0];
    assert!(function.spec.description.starts_with("For sums.\n\nComputes, and looks up facts"));
    assert_eq!(function.plain, Some("input"));
}
