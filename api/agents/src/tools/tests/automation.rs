//! `AUTOMATION_NLA`.

use lectern_shared::model::tool::ToolType::AutomationNla;
use serde_json::{Value, json};

use super::{super::naming, support::*};

fn listing() -> Value {
    json!({
        "configuration_link": "https://elsewhere.example/",
        "results": [
            {"id": "01A/..", "operation_id": "x", "description": "Gmail: Send Email", "params": {"Body": "str", "Start & End": "str", "instructions": "str"}},
            {"id": "01B", "description": "Gmail: Send Email"},
            {"id": "", "description": "no id"},
            {"id": "..", "description": "no id either"},
        ],
    })
}

#[tokio::test]
async fn each_action_is_a_function() {
    let result = json!({"status": "success", "action_used": "x", "result": {"id": "1", "to": "me"}, "additional_results": []});
    let site =
        Site::new(move |seen| if seen.line.starts_with("GET") { json(&listing()) } else { json(&result) })
            .await;
    let opened = open(AutomationNla, json!({"automation_nla_api_key": KEY, "base_url": site.base})).await;
    let names: Vec<_> = opened.tool.functions().iter().map(|one| one.spec.name.as_str()).collect();
    assert_eq!(names, ["my_tool_Gmail_Send_Email", "my_tool_Gmail_Send_Email_2"]);
    let (at, function) = function(&opened, "my_tool_Gmail_Send_Email");
    assert!(function.spec.description.contains("Gmail: Send Email"));
    let parameters = &function.spec.parameters;
    assert_eq!(parameters["required"], json!(["instructions"]));
    let known: Vec<_> = parameters["properties"].as_object().unwrap().keys().collect();
    assert_eq!(known, ["instructions", "Body", "Start_End"]);
    assert_eq!(function.plain, Some("instructions"));

    let arguments = json!({"instructions": "send it", "Start_End": "now", "Body": null, "other": "x"});
    assert_eq!(call(&opened, at, arguments).await.unwrap(), r#"{"id":"1","to":"me"}"#);
    let seen = site.seen();
    assert_eq!(seen[0].line, "GET /api/v1/exposed/");
    assert_eq!(seen[1].line, "POST /api/v1/exposed/01A%2F../execute/");
    assert_eq!(seen[1].json(), json!({"instructions": "send it", "Start & End": "now"}));
    assert!(seen.iter().all(|seen| seen.header("x-api-key") == Some(KEY) && !seen.line.contains(KEY)));
}

#[tokio::test]
async fn results_are_told_as_they_are() {
    for (answer, told) in [
        (json!({"status": "success", "result": "done"}), Ok("done")),
        (json!({"status": "success", "result": null}), Ok("The action ran. It gave no result.")),
        (json!({"status": "empty", "result": null}), Ok("The action ran and found nothing.")),
        (
            json!({"result": {"a": 1}, "additional_results": [{"a": 2}]}),
            Ok(r#"{"result":{"a":1},"additional_results":[{"a":2}]}"#),
        ),
        (
            json!({"status": "error", "error": format!("bad {KEY}"), "result": {}}),
            Err("The automation service could not run the action."),
        ),
        (json!(["?"]), Err("The automation service answered with something that cannot be understood.")),
    ] {
        let site = Site::new(
            move |seen| {
                if seen.line.starts_with("GET") { json(&listing()) } else { json(&answer) }
            },
        )
        .await;
        let metadata = json!({"automation_nla_api_key": KEY, "base_url": site.base});
        let result = ask(AutomationNla, metadata, json!({"instructions": "go"})).await;
        assert_eq!(result, told.map(str::to_owned).map_err(failure));
    }
}

#[tokio::test]
async fn without_a_server_of_its_own_it_says_that_the_vendor_has_retired_the_service() {
    let opened = open(AutomationNla, json!({"automation_nla_api_key": KEY})).await;
    assert_eq!(opened.tool.functions().len(), 1);
    let told = call(&opened, 0, json!({"input": "send it"})).await.unwrap_err().to_string();
    assert!(told.contains("retired") && told.contains("`base_url`"), "{told}");
}

#[tokio::test]
async fn a_server_without_actions_or_with_thousands_of_them_is_no_trouble() {
    let site = Site::new(|_| json(&json!({"results": []}))).await;
    let metadata = json!({"automation_nla_api_key": KEY, "base_url": site.base});
    let error = ask(AutomationNla, metadata, json!({})).await.unwrap_err();
    assert!(error.to_string().contains("exposes no action"), "{error}");

    let many: Vec<_> =
        (0..2_000).map(|n| json!({"id": n.to_string(), "description": "x".repeat(200)})).collect();
    let site = Site::new(move |_| json(&json!({"results": many}))).await;
    let opened = open(AutomationNla, json!({"automation_nla_api_key": KEY, "base_url": site.base})).await;
    let mut names: Vec<_> = opened.tool.functions().iter().map(|one| one.spec.name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 64);
    assert!(names.iter().all(|name| name.len() <= 64 && name.starts_with("my_tool")));
}

#[tokio::test]
async fn the_list_of_actions_is_asked_for_once_until_the_tool_changes() {
    let site = Site::new(|_| json(&listing())).await;
    let toolbox = toolbox("127.0.0.0/8");
    let mut tool =
        stored(AutomationNla, "My tool", json!({"automation_nla_api_key": KEY, "base_url": site.base}));
    for _ in 0..3 {
        toolbox.open(&tool, soon()).await;
    }
    assert_eq!(site.lines().len(), 1);
    tool.updated_at = tool.updated_at.plus(std::time::Duration::from_micros(1));
    toolbox.clone().open(&tool, soon()).await;
    assert_eq!(site.lines().len(), 2);
    assert_eq!(naming::function(&tool), "my_tool");
}
