//! How functions are called.

use lectern_shared::model::tool::ToolType;
use serde_json::json;

use super::{super::naming, support::*};

#[test]
fn names_are_made_of_what_every_provider_takes() {
    for (name, function) in [
        ("Web search", "web_search"),
        ("  Café -- Zürich!  ", "cafe_--_zurich"),
        ("search-web_2", "search-web_2"),
        ("日本語", "search"),
        ("--__--", "search"),
        ("2024 report", "tool_2024_report"),
        ("ﬁne", "fine"),
    ] {
        assert_eq!(naming::function(&stored(ToolType::Search, name, json!({}))), function, "{name}");
    }
    let long = naming::function(&stored(ToolType::Search, &"long name ".repeat(100), json!({})));
    assert!(long.len() <= 64 && long.starts_with("long_name_long_name"));
    let defaults = ToolType::ALL.iter().map(|r#type| naming::function(&stored(*r#type, "?", json!({}))));
    let expected = ["search", "compute_alpha", "modelhost", "automation_nla", "agent", "openapi", "mcp"];
    assert_eq!(defaults.collect::<Vec<_>>(), expected);
}

#[test]
fn members_have_names_of_their_own() {
    let tool = stored(ToolType::OpenApi, "The pet store of the whole wide world", json!({}));
    let same = "x".repeat(100);
    let names =
        naming::members(&tool, ["getPet", "get pet", "get/pet", "日本", same.as_str(), same.as_str()]);
    assert_eq!(
        names[..3],
        [
            "the_pet_store_of_the_who_getPet",
            "the_pet_store_of_the_who_get_pet",
            "the_pet_store_of_the_who_get_pet_2"
        ]
    );
    assert_eq!(names[3], "the_pet_store_of_the_who");
    assert!(names[4] != names[5] && names.iter().all(|name| name.len() <= 64));
}
