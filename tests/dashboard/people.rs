//! What pages are to people besides their work: who is invited, gives a role up, or leaves.

use std::time::Duration;

use lectern_shared::clock::Clock;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use super::{CONFIRMED, Visits, cookies, form_addresses, location, service};
use crate::support::{
    client::{Client, PASSWORD, data, id},
    process::POLL,
    service::{Mode, Service},
    within_deadline,
};

/// A workspace of Ada's with Ben in it, and the way to its pages.
pub(super) struct Team {
    pub(super) service: Service,
    /// Somebody whom the service does not know yet.
    pub(super) client: Client,
    pub(super) ada: Client,
    pub(super) ben: Client,
    pub(super) workspace: Value,
    /// Ada in it.
    pub(super) inside: Client,
}

impl Team {
    /// Ben has this role.
    pub(super) async fn with(role: &str) -> Self {
        let service = service().await;
        let ada = service.signed_up("ada@example.com").await;
        let ben = service.signed_up("ben@example.com").await;
        let workspace = ada.create("/workspaces", &json!({"name": "Team"})).await;
        let inside = ada.in_workspace(id(&workspace));
        let path = format!("/workspaces/{}/invitations", id(&workspace));
        let invitation = inside.create(&path, &json!({"role": role})).await;
        data(ben.post("/invitations/accept", &json!({"token": invitation["token"]})).await);
        let client = service.client();
        Self { service, client, ada, ben, workspace, inside }
    }

    /// The browser of one of them, in the workspace.
    pub(super) async fn visits(&self, email: &str) -> Visits<'_> {
        let mut visits = Visits::new(&self.service, &self.client);
        visits.sign_in(email).await;
        let chosen = visits.submit("/workspace", &[("workspace", id(&self.workspace))]).await;
        assert_eq!(chosen.status(), StatusCode::SEE_OTHER, "{email}");
        visits
    }
}

pub(super) async fn read(visits: &Visits<'_>, path: &str) -> String {
    let answer = visits.get(path).await;
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.text().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gives_a_role_up_or_leaves_comes_to_a_page_that_they_may_see() {
    let joined = Team::with("owner").await;
    let Team { ben, workspace, inside: team, .. } = &joined;
    let mut visits = joined.visits("ben@example.com").await;

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
    let left = visits.submit(&format!("/{leave}"), &[CONFIRMED]).await;
    assert_eq!(location(&left), "../../?said=left");
    assert!(cookies(left.headers())[0].starts_with("lectern_workspace=; "), "it is taken away");
    assert!(read(&visits, "/?said=left").await.contains("You have left the workspace."));
    let members = team.read(&format!("/workspaces/{}/members", id(workspace))).await;
    assert_eq!(members.as_array().map(Vec::len), Some(1), "{members:#}");
    let account = read(&visits, "/account").await;
    assert!(!account.contains("Leave this workspace"), "nobody leaves their own: {account}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_members_to_its_workspace_and_tells_nobody_what_there_is() {
    const OFFER: &str = "Is it in another workspace?";
    let joined = Team::with("editor").await;
    let Team { service, client, ada, workspace, inside: team, .. } = &joined;
    let eve = service.signed_up("eve@example.com").await;
    let note = team.create_document(&json!({"name": "Note", "type": "TXT", "content": "A note."})).await;
    let link = format!("documents/{}?page=2", id(&note));
    let missing = async |visits: &Visits<'_>, path: &str| {
        let answer = visits.get(path).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        answer.text().await.expect("a text")
    };

    // Signed in anew, somebody is in their own workspace, and opens a link that a colleague sent.
    let mut visits = Visits::new(service, client);
    let sign_in = [("email", "ben@example.com"), ("password", PASSWORD), ("next", link.as_str())];
    assert_eq!(location(&visits.submit("/sign-in", &sign_in).await), format!("./{link}"));
    let page = missing(&visits, &format!("/{link}&said=saved")).await;
    let choice = format!("<option value=\"{}\">Team</option>", id(workspace));
    assert!(page.contains(OFFER) && page.contains(&choice), "{page}");
    assert!(page.contains(&format!("name=\"next\" value=\"{link}\"")), "{page}");
    let chosen = visits.submit("/workspace", &[("workspace", id(workspace)), ("next", link.as_str())]).await;
    assert_eq!(location(&chosen), format!("./{link}"));
    assert!(read(&visits, &format!("/{link}")).await.contains("Note"));
    // An address of elsewhere is not followed.
    let form = [("workspace", id(workspace)), ("next", "https://evil.example/")];
    assert_eq!(location(&visits.submit("/workspace", &form).await), "./");

    // Whoever is no member reads the same of what there is as of what there is not.
    let other = eve.create("/workspaces", &json!({"name": "Other"})).await;
    let mut visits = Visits::new(service, client);
    visits.sign_in("eve@example.com").await;
    let mut told = Vec::new();
    for document in [id(&note).to_owned(), uuid::Uuid::now_v7().to_string()] {
        let page = missing(&visits, &format!("/documents/{document}")).await;
        assert!(page.contains(OFFER) && page.contains(id(&other)), "{page}");
        assert!(!page.contains(id(workspace)) && !page.contains("Team"), "{page}");
        // The id of the request is another one each time.
        let (page, _) = page.split_once("Request ").expect("the id of the request");
        told.push(page.replace(&document, ""));
    }
    assert_eq!(told[0], told[1]);
    // With one workspace alone there is nothing to offer.
    let mut visits = Visits::new(service, client);
    visits.sign_in("ada@example.com").await;
    data(ada.delete_with(&format!("/workspaces/{}", id(workspace)), &json!({"name": "Team"})).await);
    let page = missing(&visits, &format!("/{link}")).await;
    assert!(page.contains("There is nothing here") && !page.contains(OFFER), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_is_told_the_name_of_the_workspace() {
    let joined = Team::with("editor").await;
    let mut visits = joined.visits("ada@example.com").await;
    let refused = visits.submit("/account/delete", &[CONFIRMED, ("password", PASSWORD)]).await;
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    let page = refused.text().await.expect("a text");
    // The menu beside it has the workspaces to choose from, by their ids.
    let (_, said) = page.split_once("<main").expect("what is said");
    assert!(said.contains("“Team”") && !said.contains(id(&joined.workspace)), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_of_invitations_are_written_as_all_dates_are() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let path = format!("/workspaces/{}/invitations", id(&workspace));
    let invitation = owner.in_workspace(id(&workspace)).create(&path, &json!({"role": "asker"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
    let until = invitation["expiresAt"].as_str().expect("a time");
    let page = read(&visits, "/members").await;
    assert!(page.contains(&format!("until <time datetime=\"{until}\" data-day=\"yes\">")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_a_button_for_deleting_it_where_that_is_let() {
    let joined = Team::with("builder").await;
    let mut visits = joined.visits("ben@example.com").await;
    for (role, is_let) in [("owner", false), ("builder", true)] {
        let token =
            joined.inside.create("/api-tokens", &json!({"description": "for the build", "role": role})).await;
        let path = format!("tokens/{}/delete?", id(&token));
        let forms = form_addresses(&read(&visits, "/tokens").await);
        assert_eq!(forms.iter().any(|address| address.starts_with(&path)), is_let, "{role}");
        let status = visits.submit(&format!("/{path}"), &[CONFIRMED]).await.status();
        assert_eq!(status == StatusCode::SEE_OTHER, is_let, "{role}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_for_tokens_bounds_them_and_the_list_tells_which_is_which() {
    let joined = Team::with("builder").await;
    let mut visits = joined.visits("ben@example.com").await;
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let agent = json!({"name": "Guide", "type": "CHATVENDOR", "llm": llm});
    let agent = joined.inside.create_agent(&agent).await;
    let form = |description: &'static str, agent, origins, last_day, rate| {
        [
            ("description", description),
            ("role", "asker"),
            ("agentId", agent),
            ("origins:given-lines", origins),
            ("expiresAt:day", last_day),
            ("ratePerMinute:number", rate),
        ]
    };
    let origins = "https://www.example.com/\r\n\r\n https://Docs.example.com";
    for form in
        [form("for the site", id(&agent), origins, "2999-12-31", "1"), form("for the build", "", " ", "", "")]
    {
        assert_eq!(visits.submit("/tokens", &form).await.status(), StatusCode::OK, "{form:?}");
    }
    let tokens = joined.inside.read("/api-tokens").await;
    let bounds = |description: &str| {
        let mut tokens = tokens.as_array().expect("a list").iter();
        let token = tokens.find(|token| token["description"] == description).expect("a token");
        json!([token["agentId"], token["origins"], token["expiresAt"], token["ratePerMinute"]])
    };
    let sites = ["https://docs.example.com", "https://www.example.com"];
    let end = "2999-12-31T23:59:59.000000+00:00";
    assert_eq!(bounds("for the site"), json!([id(&agent), sites, end, 1]));
    assert_eq!(bounds("for the build"), json!([null, null, null, null]));

    let soon = Clock::system().now().plus(Duration::from_secs(1)).to_string();
    let brief = json!({"description": "for a moment", "expiresAt": soon});
    joined.inside.create("/api-tokens", &brief).await;
    let row = async |description: &str| {
        let page = read(&visits, "/tokens").await;
        let mut rows = page.split("<tr>").skip(1).filter_map(|rest| rest.split("</tr>").next());
        rows.find(|row| row.contains(&format!(">{description}<"))).expect("a row").to_owned()
    };
    let site = row("for the site").await;
    let asks = format!("ask <a href=\"agents/{}\" dir=\"auto\">Guide</a> alone", id(&agent));
    let until = format!("<time datetime=\"{end}\">2999-12-31 23:59 UTC</time></td>");
    for told in [asks.as_str(), sites[0], sites[1], until.as_str(), "at most 1 request a minute", "made by"] {
        assert!(site.contains(told), "{told}: {site}");
    }
    let build = row("for the build").await;
    for told in [">asker<", ">asks agents<", ">programs<", ">when it is deleted<"] {
        assert!(build.contains(told), "{told}: {build}");
    }
    assert!(!build.contains("a minute") && !build.contains("agents/"), "{build}");
    let ended = async {
        while !row("for a moment").await.contains(">Over<") {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the end of the token", ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_bounds_of_a_token_is_told_by_the_names_of_its_fields() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let sites = "https://www.example.com\r\n\r\nexample.com\r\nhttps://www.example.com/path";
    let wrong = [
        ("description", "for the site"),
        ("origins:given-lines", sites),
        ("expiresAt:day", "31.12.2999"),
        ("ratePerMinute:number", "0"),
    ];
    let past = [("description", "for the site"), ("expiresAt:day", "2020-01-31")];
    let told = [
        "<strong>Site 2</strong> must be an origin",
        "<strong>Site 3</strong> must be an origin",
        "<strong>Last day</strong> must be a day such as 2026-01-31<",
        "<strong>Requests a minute</strong> must be",
    ];
    let late = ["<strong>Last day</strong> must be today or a later day<"];
    for (form, told) in [(&wrong[..], &told[..]), (&past[..], &late[..])] {
        let refused = visits.submit("/tokens", form).await;
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{form:?}");
        let page = refused.text().await.expect("a text");
        for words in told {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!page.contains("Site 1<") && page.contains("what you wrote is still there"), "{page}");
    }
    assert_eq!(owner.read("/api-tokens").await, json!([]), "nothing was made");
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
        let page = visits.get("/sign-up?next=documents").await;
        assert_eq!(page.status() == StatusCode::FORBIDDEN, is_said, "{sign_up}: {}", page.status());
        let page = page.text().await.expect("a page");
        assert_eq!(page.contains("ask the operator of this service for an account"), is_said, "{page}");
        assert_eq!(form_addresses(&page).is_empty(), is_said, "{page}");
        assert!(page.contains("sign-in?next=documents"), "{page}");
        visits.sign_in("ada@example.com").await;
        visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
        assert_eq!(read(&visits, "/members").await.contains(NOTE), is_said, "{sign_up}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_let_into_ones_own_workspace_and_out_of_it_again() {
    const OWN: &str = "This is your own workspace.";
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let ben = service.signed_up("ben@example.com").await;
    let (ada_id, ben_id) = (id(owner.user()), id(ben.user()));
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let starts = |forms: &[String], path: &str| forms.iter().any(|address| address.starts_with(path));

    let page = read(&visits, "/members").await;
    let forms = form_addresses(&page);
    assert!(page.contains(OWN) && !page.contains("nobody else"), "{page}");
    assert!(starts(&forms, "members?"), "somebody can be invited: {forms:?}");
    assert!(!starts(&forms, "members/") && !starts(&forms, "workspace/delete"), "{forms:?}");
    let invited = read_invitation(visits.submit("/members", &[("role", "owner")]).await).await;
    let page = read(&visits, "/members").await;
    assert!(starts(&form_addresses(&page), "members/invitations/"), "it can be withdrawn: {page}");
    data(ben.post("/invitations/accept", &json!({"token": invited})).await);

    // Another owner sees whose it is, and cannot take it away.
    let mut others = Visits::new(&service, &client);
    others.sign_in("ben@example.com").await;
    others.submit("/workspace", &[("workspace", ada_id)]).await;
    for (browser, is_own) in [(&visits, true), (&others, false)] {
        let page = read(browser, "/members").await;
        let forms = form_addresses(&page);
        assert_eq!(page.contains(OWN), is_own, "{page}");
        assert!(starts(&forms, &format!("members/{ben_id}?")), "{forms:?}");
        assert!(starts(&forms, &format!("members/{ben_id}/remove?")), "{forms:?}");
        assert!(!starts(&forms, &format!("members/{ada_id}")), "{forms:?}");
        assert!(!starts(&forms, "workspace/delete"), "{forms:?}");
    }
    let changed = visits.submit(&format!("/members/{ben_id}"), &[("role", "asker")]).await;
    assert_eq!(location(&changed), "../members?said=saved");
    let removed = visits.submit(&format!("/members/{ben_id}/remove"), &[CONFIRMED]).await;
    assert_eq!(location(&removed), "../../members?said=removed");
    let members = owner.read(&format!("/workspaces/{ada_id}/members")).await;
    assert_eq!(members.as_array().map(Vec::len), Some(1), "{members:#}");
}

/// The secret of the invitation whose link a page shows.
async fn read_invitation(answer: Response) -> String {
    assert_eq!(answer.status(), StatusCode::OK);
    let page = answer.text().await.expect("a text");
    let secret = page.split("/#/invitations/").nth(1).and_then(|rest| rest.split('"').next());
    secret.expect("a link").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_deletes_a_workspace_by_its_name_and_the_account_after_it() {
    let joined = Team::with("editor").await;
    let Team { ada, workspace, .. } = &joined;
    let mut visits = joined.visits("ada@example.com").await;
    let page = read(&visits, "/members").await;
    let path = format!("workspace/delete?page-workspace={}", id(workspace));
    assert!(form_addresses(&page).contains(&path), "{page}");
    let path = format!("/{path}");
    let refused = visits.submit(&path, &[CONFIRMED, ("name:text", "Another")]).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let said = refused.text().await.expect("a text");
    assert!(said.contains("<strong>Name</strong> is not the workspace"), "{said}");
    let gone = visits.submit(&path, &[CONFIRMED, ("name:text", "Team")]).await;
    assert_eq!(location(&gone), "../?said=workspace-deleted");
    assert!(read(&visits, "/?said=workspace-deleted").await.contains("The workspace is deleted"));
    let left = ada.read("/workspaces").await;
    assert!(left.as_array().is_some_and(|all| all.iter().all(|one| id(one) != id(workspace))), "{left:#}");
    let gone = visits.submit("/account/delete", &[CONFIRMED, ("password", PASSWORD)]).await;
    assert_eq!(location(&gone), "../sign-in?said=account-deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_invited_is_told_where_to_as_what_and_by_whom_before_they_join() {
    let service = service().await;
    let ada = service.signed_up("ada@example.com").await;
    for email in ["ben@example.com", "eve@example.com"] {
        service.signed_up(email).await;
    }
    let workspace = ada.create("/workspaces", &json!({"name": "Team & friends"})).await;
    let inside = ada.in_workspace(id(&workspace));
    let path = format!("/workspaces/{}/invitations", id(&workspace));
    let invitation = inside.create(&path, &json!({"role": "editor", "email": "ben@example.com"})).await;
    let token = invitation["token"].as_str().expect("a token").to_owned();
    let client = service.client();
    let (mut ben, mut eve) = (Visits::new(&service, &client), Visits::new(&service, &client));
    ben.sign_in("ben@example.com").await;
    eve.sign_in("eve@example.com").await;
    assert!(read(&ben, "/invitations").await.contains("formaction=\"invitations/look\""));
    let told = ben.submit("/invitations/look", &[("token", &token)]).await;
    assert_eq!(told.status(), StatusCode::OK);
    let told = told.text().await.expect("a text");
    let words = "<bdi>ada</bdi> invites you to the workspace “<bdi>Team &#38; friends</bdi>”, with the role editor, which asks, and keeps documents.";
    for words in [words, "Join “<bdi>Team &#38; friends</bdi>”", &format!("value=\"{token}\"")] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let members = inside.read(&format!("/workspaces/{}/members", id(&workspace))).await;
    assert_eq!(members.as_array().map(Vec::len), Some(1), "nobody has joined yet: {members:#}");
    // Nobody else is told anything, and afterwards nobody is.
    for (visits, code, email) in
        [(&mut eve, token.as_str(), "eve@example.com"), (&mut ben, "inv_no-such-code", "ben@example.com")]
    {
        let told = visits.submit("/invitations/look", &[("token", code)]).await;
        assert_eq!(told.status(), StatusCode::NOT_FOUND);
        let told = told.text().await.expect("a text");
        assert!(!told.contains("friends"), "{told}");
        // Many have two accounts, and are signed in to the other one.
        assert!(told.contains(&format!("You cannot accept this invitation as {email}")), "{told}");
    }
    assert_eq!(location(&ben.submit("/invitations", &[("token", &token)]).await), "./?said=joined");
    let told = ben.submit("/invitations/look", &[("token", &token)]).await;
    assert_eq!(told.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_first_is_led_to_the_first_account_where_they_may_make_it() {
    const WORDS: &str = "Nobody has an account here yet.";
    for (sign_up, page) in
        [("first", "./sign-up?next="), ("open", "./sign-up?next="), ("closed", "./sign-in?next=")]
    {
        let service = Service::in_mode(Mode::Embedded).env("LECTERN_SIGN_UP", sign_up).start().await;
        let client = service.client();
        let mut visits = Visits::new(&service, &client);
        assert_eq!(location(&visits.get("/").await), page, "{sign_up}");
        let sign_in = read(&visits, "/sign-in?next=documents").await;
        let is_open = sign_up != "closed";
        assert_eq!(sign_in.contains(WORDS), is_open, "{sign_up}: {sign_in}");
        assert_eq!(sign_in.contains("href=\"sign-up?next=documents\""), is_open, "{sign_up}: {sign_in}");
        // Whoever follows a link is asked to sign in, as ever.
        assert_eq!(location(&visits.get("/agents").await), "./sign-in?next=agents");
        if is_open {
            let account = [("email", "ada@example.com"), ("password", PASSWORD), ("next", "")];
            assert_eq!(
                visits.submit("/sign-up", &account).await.status(),
                StatusCode::SEE_OTHER,
                "{sign_up}"
            );
            let stranger = Visits::new(&service, &client);
            assert_eq!(location(&stranger.get("/").await), "./sign-in?next=", "{sign_up}");
            assert!(!read(&stranger, "/sign-in").await.contains(WORDS), "{sign_up}");
        }
    }
}
