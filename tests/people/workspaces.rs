//! Workspaces, their members and invitations to them, and what the audit log tells of all that.

use std::time::Duration;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Team, accept, api_token, assert_no_workspace, assert_refused, ingested, user_id};
use crate::support::{
    client::{Client, PASSWORD, data, envelope, id, send},
    in_both_modes,
    service::{Mode, Service},
    web::Web,
    within_deadline,
};

in_both_modes!(
    a_workspace_is_made_shown_and_renamed,
    a_workspace_is_found_by_a_path_that_is_percent_encoded,
    an_invitation_works_once_and_for_whom_it_is,
    an_invitation_can_be_withdrawn_and_is_listed_without_its_token,
    whoever_is_a_member_keeps_the_higher_role,
    there_is_always_an_owner,
    ones_own_workspace_can_neither_be_deleted_nor_left,
    a_deleted_workspace_is_gone_with_everything_in_it,
    the_audit_log_tells_who_did_what_to_what,
    deletions_exports_and_other_receivers_are_in_the_audit_log,
    the_audit_log_says_which_right_changed_and_where_things_lead,
    an_account_owns_a_hundred_workspaces_however_it_comes_to_them,
);

async fn a_workspace_is_made_shown_and_renamed(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/workspaces", &json!({ "name": " Archive " })).await;
    assert_eq!(
        (&made["name"], &made["personal"], &made["role"]),
        (&json!("Archive"), &json!(false), &json!("owner"))
    );
    let path = format!("/workspaces/{}", id(&made));
    let shown = ada.read(&path).await;
    assert_eq!((&shown["id"], &shown["createdAt"]), (&made["id"], &made["createdAt"]), "{shown:#}");
    assert_eq!(shown["used"]["documents"], 0, "{shown:#}");
    let renamed = data(ada.patch(&path, &json!({ "name": "Library" })).await);
    assert_eq!(renamed["name"], "Library", "{renamed:#}");

    let own = ada.read(&format!("/workspaces/{}", user_id(&ada))).await;
    assert_eq!((&own["personal"], &own["role"]), (&json!(true), &json!("owner")), "{own:#}");
    let listed = ada.read("/workspaces").await;
    let ids: Vec<&str> = listed.as_array().expect("a list").iter().map(id).collect();
    assert_eq!(ids, [id(&made), user_id(&ada)], "newest first");
    let team = Team { workspace: id(&made).to_owned(), owner: ada.in_workspace(id(&made)) };
    let editor = team.joined(&service, "editor", "editor").await;
    assert_eq!(editor.read(&path).await["role"], "editor");
    assert_refused(&editor.patch(&path, &json!({ "name": "Mine" })).await, 403, "role_required");
    let members = editor.read(&team.path("/members")).await;
    let members = members.as_array().expect("a list").iter();
    let members: Vec<_> = members.map(|one| (one["userId"].clone(), one["role"].clone())).collect();
    let expected = [(json!(user_id(&editor)), json!("editor")), (json!(user_id(&ada)), json!("owner"))];
    assert_eq!(members, expected);
    for name in ["", "  "] {
        assert_refused(&ada.post("/workspaces", &json!({ "name": name })).await, 422, "invalid_fields");
    }
}

async fn a_workspace_is_found_by_a_path_that_is_percent_encoded(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let encoded = team.workspace.replace('-', "%2D");
    assert_eq!(ada.read(&format!("/workspaces/{encoded}")).await["name"], "Archive");
    let invitations = format!("/workspaces/{encoded}/invitations");
    let made = ada.create(&invitations, &json!({ "role": "editor" })).await;
    assert_eq!(made["workspaceId"], team.workspace.as_str(), "{made:#}");
    assert_eq!(ada.read(&invitations).await[0]["id"], made["id"]);
}

/// Tries to accept an invitation that cannot be.
async fn assert_no_invitation(person: &Client, token: &str) {
    let answer = person.post("/invitations/accept", &json!({ "token": token })).await;
    assert_refused(&answer, 404, "not_found");
}

async fn an_invitation_works_once_and_for_whom_it_is(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = service.signed_up("bob@example.com").await;
    let grace = service.signed_up("Grace@Example.com").await;

    let token = team.invite("editor").await;
    let joined = accept(&bob, &token).await;
    assert_eq!((id(&joined), &joined["role"]), (team.workspace.as_str(), &json!("editor")), "{joined:#}");
    bob.in_workspace(&team.workspace).read("/documents").await;
    for person in [&bob, &grace] {
        assert_no_invitation(person, &token).await;
    }

    let body = json!({ "email": "grace@example.com", "role": "asker" });
    let invitation = team.owner.create(&team.path("/invitations"), &body).await;
    let token = invitation["token"].as_str().expect("a token");
    assert_eq!(invitation["email"], "grace@example.com", "{invitation:#}");
    let link = format!("{}/#/invitations/{token}", service.base_url());
    assert_eq!(invitation["url"], link, "it leads to where the request came to");
    assert_eq!(invitation["workspaceId"], team.workspace.as_str(), "{invitation:#}");
    assert_eq!(invitation["updatedAt"], invitation["createdAt"], "{invitation:#}");
    let stranger = service.signed_up("stranger@example.com").await;
    assert_no_invitation(&stranger, token).await;
    assert_eq!(accept(&grace, token).await["role"], "asker", "another's try has not used it up");

    let script = stranger.with_token(&api_token(&stranger, json!({})).await);
    let open = team.invite("asker").await;
    let answer = script.post("/invitations/accept", &json!({ "token": open })).await;
    assert_refused(&answer, 403, "sign_in_required");
    for nonsense in ["inv_", "no token", "lec_0Kq7fYxPz3WvN8sR1tLmC5hJ2bD9gXaE6uQiTnOyVwe"] {
        assert_no_invitation(&stranger, nonsense).await;
    }
    for role in [json!("admin"), json!("Owner"), Value::Null] {
        let answer = team.owner.post(&team.path("/invitations"), &json!({ "role": role })).await;
        assert_refused(&answer, 422, "invalid_fields");
    }
    service.assert_no_secret_in_logs(&[token, &open]);
}

async fn an_invitation_can_be_withdrawn_and_is_listed_without_its_token(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = service.signed_up("bob@example.com").await;
    let invitation = team.owner.create(&team.path("/invitations"), &json!({ "role": "owner" })).await;
    let token = invitation["token"].as_str().expect("a token");
    let listed = team.owner.read(&team.path("/invitations")).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed:#}");
    assert_eq!((&listed[0]["id"], &listed[0]["role"]), (&invitation["id"], &json!("owner")));
    assert!(!listed.to_string().contains(token), "{listed:#}");

    let path = team.path(&format!("/invitations/{}", id(&invitation)));
    data(team.owner.delete(&path).await);
    assert_refused(&team.owner.delete(&path).await, 404, "not_found");
    assert_no_invitation(&bob, token).await;
    assert_eq!(team.owner.read(&team.path("/invitations")).await, json!([]));
    // One that was accepted is not open any more either.
    accept(&bob, &team.invite("asker").await).await;
    assert_eq!(team.owner.read(&team.path("/invitations")).await, json!([]));
}

async fn whoever_is_a_member_keeps_the_higher_role(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = service.signed_up("bob@example.com").await;
    for (invited, has) in
        [("editor", "editor"), ("asker", "editor"), ("builder", "builder"), ("editor", "builder")]
    {
        assert_eq!(accept(&bob, &team.invite(invited).await).await["role"], has, "invited as {invited}");
    }
    assert_eq!(accept(&ada, &team.invite("asker").await).await["role"], "owner");
    let members = team.owner.read(&team.path("/members")).await;
    assert_eq!(members.as_array().map(Vec::len), Some(2), "{members:#}");
}

async fn there_is_always_an_owner(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let goodbye = json!({ "password": PASSWORD });
    assert_refused(&team.owner.delete(&team.member(&ada)).await, 409, "last_owner");
    assert_refused(
        &team.owner.patch(&team.member(&ada), &json!({ "role": "asker" })).await,
        409,
        "last_owner",
    );
    assert_refused(&ada.delete_with("/users/me", &goodbye).await, 409, "last_owner");
    assert_eq!(ada.read(&team.path("")).await["role"], "owner", "nothing of it was done");

    team.give(&bob, "owner").await;
    data(bob.delete(&team.member(&ada)).await);
    assert_no_workspace(&team.owner.get("/documents").await);
    assert_refused(&bob.delete(&team.member(&bob)).await, 409, "last_owner");
    // Whoever is alone takes the workspace along.
    data(bob.delete_with("/users/me", &goodbye).await);
    assert_no_workspace(&ada.get(&team.path("")).await);
}

async fn ones_own_workspace_can_neither_be_deleted_nor_left(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let own = Team { workspace: user_id(&ada).to_owned(), owner: ada.clone() };
    let bob = own.joined(&service, "bob", "owner").await;
    let name = ada.read(&own.path("")).await["name"].clone();
    for owner in [&ada, &bob] {
        let answer = owner.delete_with(&own.path(""), &json!({ "name": name })).await;
        assert_refused(&answer, 409, "personal_workspace");
        assert_refused(&owner.delete(&own.member(&ada)).await, 409, "personal_workspace");
        let answer = owner.patch(&own.member(&ada), &json!({ "role": "asker" })).await;
        assert_refused(&answer, 409, "personal_workspace");
    }
    data(bob.delete(&own.member(&bob)).await);
    assert_eq!(ada.read(&own.path("")).await["role"], "owner");
}

async fn a_deleted_workspace_is_gone_with_everything_in_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let document = ingested(&bob, "Rules", "The zephyrine valve opens at 73 degrees.").await;
    let script = ada.with_token(&api_token(&bob, json!({})).await);
    script.read("/documents").await;
    let open = team.invite("editor").await;
    assert_refused(
        &bob.delete_with(&team.path(""), &json!({ "name": "Archive" })).await,
        403,
        "role_required",
    );
    for name in ["archive", "Archives", "Library"] {
        let answer = ada.delete_with(&team.path(""), &json!({ "name": name })).await;
        assert_refused(&answer, 422, "invalid_fields");
        assert_eq!(answer.1["error"]["fields"][0]["path"], "name", "{:#}", answer.1);
    }
    bob.read(&format!("/documents/{document}")).await;

    data(ada.delete_with(&team.path(""), &json!({ "name": "Archive" })).await);
    for person in [&team.owner, &bob] {
        assert_no_workspace(&person.get("/documents").await);
        assert_no_workspace(&person.get(&team.path("")).await);
        assert_no_workspace(&person.get(&team.path("/audit")).await);
    }
    assert_eq!(script.get("/documents").await.0, StatusCode::UNAUTHORIZED);
    assert_no_invitation(&service.signed_up("late@example.com").await, &open).await;
    assert!(!ada.read("/workspaces").await.to_string().contains(&team.workspace));
    assert_eq!(ada.get(&format!("/documents/{document}")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ada.create("/search", &json!({ "query": "zephyrine valve" })).await, json!([]));
}

async fn deletions_exports_and_other_receivers_are_in_the_audit_log(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let owner = &team.owner;
    let web = Web::start().await;
    let told = |at: &str| web.serve(at, "text/plain", "");
    let webhook = json!({ "url": told("/here"), "events": ["document.deleted"] });
    let webhook = format!("/webhooks/{}", id(&owner.create("/webhooks", &webhook).await));
    data(owner.patch(&webhook, &json!({ "active": false })).await);
    data(owner.patch(&webhook, &json!({ "url": told("/there") })).await);
    let evaluation = owner.create("/evaluations", &json!({ "name": "Questions" })).await;
    let evaluation = format!("/evaluations/{}", id(&evaluation));
    let case = json!({ "question": "Who rang the bell?", "expect": "decline" });
    let cases = owner.create(&format!("{evaluation}/cases"), &case).await;
    let exported = send(owner.request(Method::GET, &format!("{evaluation}/export"))).await;
    assert!(exported.text().await.expect("lines").contains("Who rang the bell?"));
    data(owner.delete(&format!("{evaluation}/cases/{}", id(&cases[0]))).await);
    let prompt = json!({ "name": "Short", "template": "Be short.", "input_variables": [] });
    let prompt = owner.create("/prompts", &prompt).await;
    data(owner.delete(&format!("/prompts/{}", id(&prompt))).await);
    let tag = owner.create("/tags", &json!({ "name": "green", "color": "#0e8a16" })).await;
    data(owner.delete(&format!("/tags/{}", id(&tag))).await);

    let log = owner.read(&team.path("/audit?limit=200")).await;
    let told: Vec<(&str, &str)> = log
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .map(|line| (text(line, "/action"), text(line, "/target/kind")))
        .collect();
    assert_eq!(
        told,
        [
            ("workspace_created", "workspace"),
            ("webhook_created", "webhook"),
            ("webhook_disabled", "webhook"),
            ("address_changed", "webhook"),
            ("exported", "evaluation"),
            ("deleted", "evaluation_case"),
            ("deleted", "prompt"),
            ("deleted", "tag"),
        ]
    );
}

async fn the_audit_log_says_which_right_changed_and_where_things_lead(mode: Mode) {
    let (one, other) = ("https://one.example/hidden", "https://other.example/hidden");
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let owner = &team.owner;
    let bob = team.joined(&service, "bob", "editor").await;
    team.give(&bob, "builder").await;
    owner.create("/api-tokens", &json!({ "description": "a script's", "role": "asker" })).await;
    let model = |at: &str| json!({ "model": "m", "provider": "openai-compatible", "base_url": at });
    let agent = json!({ "name": "Clerk", "type": "CHATVENDOR", "llm": model(one) });
    let agent = format!("/agents/{}", id(&owner.create_agent(&agent).await));
    data(owner.patch(&agent, &json!({ "name": "Usher" })).await);
    data(owner.patch(&agent, &json!({ "llm": model(other) })).await);
    for access in ["members", "public"] {
        let page = json!({ "slug": "help", "access": access });
        let published = owner.request(Method::PUT, &format!("{agent}/publication")).json(&page);
        data(envelope(send(published).await).await);
    }
    let api = |at: &str| json!({ "openApiUrl": at });
    let tool = json!({ "name": "api", "type": "OPENAPI", "metadata": api(one) });
    let tool = format!("/tools/{}", id(&owner.create("/tools", &tool).await));
    data(owner.patch(&tool, &json!({ "metadata": api(other) })).await);
    data(owner.patch(&tool, &json!({ "metadata": api(&format!("{other}/deeper")) })).await);
    let source = json!({ "name": "Pages", "type": "site", "config": { "url": one } });
    let source = format!("/sources/{}", id(&owner.create("/sources", &source).await));
    data(owner.patch(&source, &json!({ "config": { "url": other } })).await);

    let log = owner.read(&team.path("/audit?limit=200")).await;
    assert!(!log.to_string().contains("hidden"), "the path of an address may be a key: {log:#}");
    let told: Vec<(&str, &str, Value)> = log
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .map(|line| (text(line, "/action"), text(line, "/target/kind"), line["details"].clone()))
        .collect();
    let moved = json!({ "from": "https://one.example", "to": "https://other.example" });
    // The host is the same, and the path is not for the log.
    let within = json!({
        "from": "https://other.example", "to": "https://other.example", "differs": "only what is not shown",
    });
    let asked = "openai-compatible https://one.example";
    assert_eq!(
        told,
        [
            ("workspace_created", "workspace", Value::Null),
            ("member_invited", "invitation", json!({ "to": "editor" })),
            ("member_joined", "user", json!({ "to": "editor" })),
            ("role_changed", "user", json!({ "from": "editor", "to": "builder" })),
            ("token_created", "api_token", json!({ "role": "asker" })),
            ("agent_created", "agent", json!({ "to": asked })),
            (
                "address_changed",
                "agent",
                json!({ "from": asked, "to": "openai-compatible https://other.example" })
            ),
            ("published", "agent", json!({ "to": "members" })),
            ("published", "agent", json!({ "from": "members", "to": "public" })),
            ("tool_created", "tool", json!({ "to": "https://one.example", "type": "OPENAPI" })),
            ("address_changed", "tool", moved.clone()),
            ("address_changed", "tool", within),
            ("source_created", "source", json!({ "to": "https://one.example", "type": "site" })),
            ("address_changed", "source", moved),
        ]
    );
}

async fn an_account_owns_a_hundred_workspaces_however_it_comes_to_them(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let bob = service.signed_up("bob@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let body = json!({ "name": "One of many" });
    let mut last = Value::Null;
    for _ in 0..10 {
        let made = join_all((0..10).map(|_| bob.create("/workspaces", &body))).await;
        last = made.into_iter().next_back().expect("a workspace");
    }
    assert_refused(&bob.post("/workspaces", &body).await, 403, "quota_exceeded");
    let invitation = json!({ "token": team.invite("owner").await });
    assert_refused(&bob.post("/invitations/accept", &invitation).await, 403, "quota_exceeded");
    // In any other role there is room for him.
    team.join(&bob, "builder").await;
    let promoted = team.owner.patch(&team.member(&bob), &json!({ "role": "owner" })).await;
    assert_refused(&promoted, 403, "quota_exceeded");
    data(bob.delete_with(&format!("/workspaces/{}", id(&last)), &body).await);
    // The invitation was not used up.
    data(bob.post("/invitations/accept", &invitation).await);
    assert_eq!(bob.read(&team.path("")).await["role"], "owner");
}

/// The text at a place in a line of the log; empty when there is none.
fn text<'a>(line: &'a Value, at: &str) -> &'a str {
    line.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

async fn the_audit_log_tells_who_did_what_to_what(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "asker").await;
    team.give(&bob, "builder").await;
    let token = bob.create("/api-tokens", &json!({ "description": "a script's" })).await;
    let script = bob.with_token(token["token"].as_str().expect("a value"));
    let document = ingested(&bob, "Rules", "The gate opens at nine.").await;
    data(script.delete(&format!("/documents/{document}")).await);
    data(bob.delete(&format!("/api-tokens/{}", id(&token))).await);
    let invitation = team.owner.create(&team.path("/invitations"), &json!({ "role": "asker" })).await;
    data(team.owner.delete(&team.path(&format!("/invitations/{}", id(&invitation)))).await);
    data(team.owner.patch(&team.path(""), &json!({ "name": "Library" })).await);
    assert_refused(&bob.get(&team.path("/audit")).await, 403, "role_required");
    team.remove(&bob).await;

    let log = ada.read(&team.path("/audit?limit=200")).await;
    let log: Vec<&Value> = log.as_array().expect("a list").iter().rev().collect();
    let told: Vec<(&str, &str, &str)> = log
        .iter()
        .map(|line| {
            assert!(line["id"].is_string() && line["at"].is_string(), "{line:#}");
            assert_eq!(line["address"], "127.0.0.1", "{line:#}");
            assert!(line["requestId"].as_str().is_some_and(|id| !id.is_empty()), "{line:#}");
            (text(line, "/actor/userId"), text(line, "/action"), text(line, "/target/kind"))
        })
        .collect();
    let (hers, his) = (user_id(&ada), user_id(&bob));
    assert_eq!(
        told,
        [
            (hers, "workspace_created", "workspace"),
            (hers, "member_invited", "invitation"),
            (his, "member_joined", "user"),
            (hers, "role_changed", "user"),
            (his, "token_created", "api_token"),
            (his, "deleted", "document"),
            (his, "token_deleted", "api_token"),
            (hers, "member_invited", "invitation"),
            (hers, "invitation_withdrawn", "invitation"),
            (hers, "workspace_changed", "workspace"),
            (hers, "member_removed", "user"),
        ]
    );
    assert_eq!(log[5]["target"]["id"], document.as_str());
    assert_eq!(log[5]["actor"]["tokenId"], token["id"], "it was a script: {:#}", log[5]);
    assert_eq!(log[6]["actor"].get("tokenId").unwrap_or(&Value::Null), &Value::Null, "{:#}", log[6]);
    assert_eq!(log[9]["details"], json!({ "name.from": "Archive", "name.to": "Library" }));
    assert_eq!(log[10]["target"]["id"], his);
    assert_eq!(log[10]["details"], json!({ "from": "builder" }), "which role it had");

    for (query, count) in [
        (format!("actor={his}"), 4),
        (format!("actor={his}&action=deleted&target={document}"), 1),
        (format!("target={his}&since=2020-01-31"), 3),
        ("until=2020-01-31T09:00:00Z".to_owned(), 0),
    ] {
        let found = ada.read(&team.path(&format!("/audit?{query}"))).await;
        assert_eq!(found.as_array().map(Vec::len), Some(count), "{query}: {found:#}");
    }
    for query in ["actor=bob", "action=danced", "target=1", "since=yesterday", "until=2026-02-30"] {
        assert_refused(&ada.get(&team.path(&format!("/audit?{query}"))).await, 422, "invalid_fields");
    }

    let first = ada.read(&team.path("/audit?limit=1")).await;
    let next = ada.read(&team.path(&format!("/audit?limit=1&cursor={}", id(&first[0])))).await;
    assert_eq!(
        (&first[0]["action"], &next[0]["action"]),
        (&json!("member_removed"), &json!("workspace_changed"))
    );
    // A sign-in is noted where the account itself is.
    service.client().sign_in("ada@example.com", PASSWORD).await;
    let path = format!("/workspaces/{}/audit", user_id(&ada));
    let sign_ins = async || ada.read(&path).await.to_string().matches("\"signed_in\"").count();
    // Nobody who signs in waits for the note of it. Signing up was one.
    let noted = async {
        while sign_ins().await < 2 {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    within_deadline("a note of the sign-in", noted).await;
    let log = ada.read(&path).await;
    let first = log.as_array().expect("a list").last().expect("a line");
    assert_eq!(text(first, "/action"), "account_created", "{log:#}");
    assert_eq!((&first["target"]["id"], &first["actor"]["userId"]), (&ada.user()["id"], &ada.user()["id"]));
}
