//! What pages are to people besides their work: who is invited, gives a role up, leaves, or ends an account.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Visits, cookies, form_addresses, location, service};
use crate::support::{
    client::{Client, PASSWORD, data, id},
    service::{Mode, Service},
};

/// A workspace of somebody, with somebody else in it who looks at its pages.
async fn join(owner: &Client, member: &Client, role: &str, visits: &mut Visits<'_>) -> (Value, Client) {
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let path = format!("/workspaces/{}/invitations", id(&workspace));
    let invitation = team.create(&path, &json!({"role": role})).await;
    data(member.post("/invitations/accept", &json!({"token": invitation["token"]})).await);
    visits.sign_in(member.user()["email"].as_str().expect("an e-mail")).await;
    let chosen = visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
    assert_eq!(chosen.status(), StatusCode::SEE_OTHER);
    (workspace, team)
}

async fn read(visits: &Visits<'_>, path: &str) -> String {
    let answer = visits.get(path).await;
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.text().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gives_a_role_up_or_leaves_comes_to_a_page_that_they_may_see() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let ben = service.signed_up("ben@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    let (workspace, team) = join(&owner, &ben, "owner", &mut visits).await;

    let given_up = visits.submit(&format!("/members/{}", id(ben.user())), &[("role", "editor")]).await;
    assert_eq!(location(&given_up), "../?said=saved");
    let home = read(&visits, "/?said=saved").await;
    assert!(home.contains("Saved."), "{home}");
    assert!(
        home.contains("There are no documents yet") && !home.contains("every document was read"),
        "{home}"
    );

    let forms = form_addresses(&read(&visits, "/account").await);
    let leave = forms.iter().find(|address| address.contains("/remove?")).expect("a form for leaving");
    let left = visits.submit(&format!("/{leave}"), &[]).await;
    assert_eq!(location(&left), "../../?said=left");
    assert!(cookies(left.headers())[0].starts_with("lectern_workspace=; "), "it is taken away");
    assert!(read(&visits, "/?said=left").await.contains("You have left the workspace."));
    let members = team.read(&format!("/workspaces/{}/members", id(&workspace))).await;
    assert_eq!(members.as_array().map(Vec::len), Some(1), "{members:#}");
    let account = read(&visits, "/account").await;
    assert!(!account.contains("Leave this workspace"), "nobody leaves their own: {account}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_a_button_for_deleting_it_where_that_is_let() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let ben = service.signed_up("ben@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    let (_, team) = join(&owner, &ben, "builder", &mut visits).await;
    for (role, is_let) in [("owner", false), ("builder", true)] {
        let token = team.create("/api-tokens", &json!({"description": "for the build", "role": role})).await;
        let path = format!("tokens/{}/delete?", id(&token));
        let forms = form_addresses(&read(&visits, "/tokens").await);
        assert_eq!(forms.iter().any(|address| address.starts_with(&path)), is_let, "{role}");
        let status = visits.submit(&format!("/{path}"), &[]).await.status();
        assert_eq!(status == StatusCode::SEE_OTHER, is_let, "{role}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_signs_up_it_is_said_who_makes_accounts() {
    const NOTE: &str = "Whom you invite needs an account here";
    const HINT: &str = "Ask whoever runs this service.";
    for (sign_up, is_said) in [("first", true), ("open", false)] {
        let service = Service::in_mode(Mode::Embedded).env("LECTERN_SIGN_UP", sign_up).start().await;
        let owner = service.signed_up("ada@example.com").await;
        let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
        let client = service.client();
        let mut visits = Visits::new(&service, &client);
        assert_eq!(read(&visits, "/sign-in").await.contains(HINT), is_said, "{sign_up}");
        visits.sign_in("ada@example.com").await;
        visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
        assert_eq!(read(&visits, "/members").await.contains(NOTE), is_said, "{sign_up}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_deleted_on_its_page_by_its_password() {
    let service = service().await;
    service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    assert!(form_addresses(&read(&visits, "/account").await).contains(&"account/delete".to_owned()));
    for wrong in [("nonce", "1"), ("password", "something else")] {
        let refused = visits.submit("/account/delete", &[wrong]).await;
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{wrong:?}");
    }
    let gone = visits.submit("/account/delete", &[("password", PASSWORD)]).await;
    assert_eq!(location(&gone), "../sign-in?said=account-deleted");
    assert!(read(&visits, "/sign-in?said=account-deleted").await.contains("Your account is deleted"));
    let again = visits.submit("/sign-in", &[("email", "ada@example.com"), ("password", PASSWORD)]).await;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED);
}
