//! What groups at the provider may do in a workspace.

use serde_json::{Value, json};

use super::provider::{Browser, Provider};
use crate::support::{
    client::{Client, id},
    service::{Mode, Service},
};

/// Somebody with an e-mail and groups.
fn in_groups(email: &str, groups: &Value) -> Value {
    json!({ "email": email, "email_verified": true, "groups": groups })
}

/// What somebody is in a workspace, by those who see its members.
async fn role_of(owner: &Client, workspace: &str, email: &str) -> Option<String> {
    let members = owner.read(&format!("/workspaces/{workspace}/members")).await;
    let mut members = members.as_array().expect("a list").iter();
    let member = members.find(|member| member["email"] == email)?;
    Some(member["role"].as_str().expect("a role").to_owned())
}

/// A service in which Ada has a workspace, whose roles the provider's groups decide.
async fn service(provider: &Provider, roles: &str) -> (Service, Client, String) {
    let mut before = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let ada = before.signed_up("ada@example.com").await;
    let workspace = id(&ada.create("/workspaces", &json!({ "name": "Press" })).await).to_owned();
    before.terminate().await;
    let settings = before
        .sibling()
        .env("LECTERN_OIDC_ROLE_CLAIM", "groups")
        .env("LECTERN_OIDC_ROLES", roles)
        .env("LECTERN_OIDC_WORKSPACE", &workspace);
    let service = settings.start().await;
    let ada = service.client().with_token(ada.token());
    (service, ada, workspace)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_follows_the_groups_at_every_sign_in() {
    let Some(provider) = Provider::start().await else { return };
    let (service, ada, workspace) = service(&provider, "staff=asker,writers=editor,leads=owner").await;
    for (groups, role) in [
        (json!(["staff"]), Some("asker")),
        (json!(["staff", "writers", "others"]), Some("editor")),
        (json!("leads"), Some("owner")),
        (json!(["staff"]), Some("asker")),
        (json!(["others"]), None),
        (json!(["writers"]), Some("editor")),
        (Value::Null, None),
    ] {
        provider.knows("grace", &in_groups("grace@example.com", &groups));
        let grace = Browser::new(&service).sign_in("grace").await;
        assert_eq!(role_of(&ada, &workspace, "grace@example.com").await.as_deref(), role, "{groups}");
        let joined = grace.read("/workspaces").await;
        let joined = joined.as_array().expect("a list").iter().find(|joined| id(joined) == workspace);
        assert_eq!(joined.map(|joined| joined["role"].as_str().expect("a role")), role, "{groups}");
    }
    let log = ada.read(&format!("/workspaces/{workspace}/audit")).await;
    let actions = log.as_array().expect("a list").iter().filter_map(|event| event["action"].as_str());
    let of_members: Vec<_> = actions.filter(|action| !action.starts_with("workspace_")).collect();
    let newest_first = [
        "member_removed",
        "member_joined",
        "member_removed",
        "role_changed",
        "role_changed",
        "role_changed",
        "member_joined",
    ];
    assert_eq!(of_members, newest_first);
    assert_eq!(log[0]["details"], json!({ "from": "editor" }), "what it was: {log:#}");
    let changed = log.as_array().expect("a list").iter().find(|event| event["action"] == "role_changed");
    let said = changed.map(|event| &event["details"]);
    assert_eq!(said, Some(&json!({ "from": "owner", "to": "asker" })), "{log:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_stays_and_everybody_can_have_a_role() {
    let Some(provider) = Provider::start().await else { return };
    let (service, ada, workspace) = service(&provider, "*=asker,leads=owner").await;
    provider.knows("ada", &in_groups("ada@example.com", &json!([])));
    Browser::new(&service).sign_in("ada").await;
    assert_eq!(role_of(&ada, &workspace, "ada@example.com").await.as_deref(), Some("owner"));
    provider.knows("grace", &in_groups("grace@example.com", &json!(["leads"])));
    let grace = Browser::new(&service).sign_in("grace").await;
    // Not the last one any more.
    Browser::new(&service).sign_in("ada").await;
    assert_eq!(role_of(&grace, &workspace, "ada@example.com").await.as_deref(), Some("asker"));
    provider.knows("grace", &in_groups("grace@example.com", &json!([])));
    Browser::new(&service).sign_in("grace").await;
    assert_eq!(role_of(&ada, &workspace, "grace@example.com").await.as_deref(), Some("owner"));
}
