//! Lists and choices that are longer than a page: what is left out is counted, and there is a way to it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CONFIRMED, Visits, form_addresses, location, people::Team, service};
use crate::support::{
    client::{Client, data, envelope, id, send},
    command::meddle,
    in_both_modes,
    process::POLL,
    service::{Mode, Service},
    within_deadline,
};

in_both_modes!(of_many_collections_each_can_be_chosen_wherever_one_is);

/// As many things, each with its number in its name, the oldest first.
async fn many(owner: &Client, path: &str, count: usize, body: &Value) -> Vec<Value> {
    let mut made = Vec::with_capacity(count);
    for number in 0..count {
        let mut body = body.clone();
        body["name"] = json!(format!("Number {number}"));
        made.push(owner.create(path, &body).await);
    }
    made
}

async fn page(visits: &Visits<'_>, path: &str) -> String {
    let opened = visits.get(path).await;
    assert_eq!(opened.status(), StatusCode::OK, "{path}");
    opened.text().await.expect("a text")
}

/// The address of the page behind this one, if there is one.
fn next_page(html: &str) -> Option<String> {
    let before = html.split(">Next page</a>").next().filter(|before| before.len() < html.len())?;
    let address = before.rsplit("href=\"").next()?.split('"').next()?;
    Some(format!("/{}", address.trim_start_matches("../")))
}

/// The lines of the audit log that are of invitations, when it is asked for these alone and gone through page by page: each page asks for the
/// same as the one before, and all but the first lead back to that.
async fn count_of_invited(visits: &Visits<'_>) -> usize {
    const ASKED: &str = "/audit?action=member_invited&since=2020-01-31";
    const BACK: &str = "href=\"audit?action=member_invited&#38;since=2020-01-31\">First page</a>";
    let mut count = 0;
    let mut next = Some(ASKED.to_owned());
    while let Some(address) = next {
        assert!(address.starts_with(ASKED), "{address}");
        let html = page(visits, &address).await;
        for kept in ["value=\"member_invited\" selected", "type=\"date\" value=\"2020-01-31\""] {
            assert!(html.contains(kept), "{address}, {kept}: {html}");
        }
        let invited = html.matches("<td data-label=\"What\">member invited<").count();
        assert_eq!(html.matches("<td data-label=\"What\">").count(), invited, "no others: {html}");
        assert_eq!(html.contains(BACK), address != ASKED, "{address}: {html}");
        count += invited;
        next = next_page(&html).map(|next| next.replace("&#38;", "&"));
    }
    count
}

async fn of_many_collections_each_can_be_chosen_wherever_one_is(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let shelves = many(&owner, "/collections", 203, &json!({})).await;
    let oldest = id(&shelves[0]);
    let note = json!({"name": "Note", "type": "TXT", "content": "A note.", "collectionIds": [oldest]});
    let note = owner.create_document(&note).await;
    let source = json!({
        "name": "Feed", "type": "feed", "config": {"url": "https://feed.example/rss"},
        "collectionId": oldest,
    });
    let source = owner.create("/sources", &source).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let option = |shelf: &Value| format!("<option value=\"{}\">", id(shelf));
    let document = format!("/documents/{}", id(&note));
    let changed = format!("/sources/{}", id(&source));
    let new_source = "/sources/new?type=feed";
    for path in ["/documents", "/documents/new", "/search", new_source, document.as_str(), changed.as_str()] {
        let html = page(&visits, path).await;
        assert!(html.contains("Only the newest 200 of 203 collections are offered."), "{path}: {html}");
        assert!(html.contains(&option(&shelves[202])) && !html.contains(&option(&shelves[1])), "{path}");
        // What the address says besides stays.
        let path = format!("{path}{}find-collection=number+1", if path.contains('?') { '&' } else { '?' });
        let html = page(&visits, &path).await;
        assert!(html.contains(&option(&shelves[1])) && !html.contains(&option(&shelves[2])), "{path}");
        let html = page(&visits, &path.replace("number+1", "nothing")).await;
        assert!(html.contains("No collection that could be chosen is called so."), "{path}: {html}");
    }
    let html = page(&visits, "/sources/new?type=feed&find-collection=x").await;
    let kind = "<input type=\"hidden\" name=\"type\" value=\"feed\">";
    assert_eq!(html.matches(kind).count(), 2, "the source's own, and that of looking: {html}");
    assert!(html.contains("href=\"?type=feed#\">All of them</a>"), "{html}");

    // What is chosen is among them, however old it is: the form would take it away.
    let chosen = format!("<option value=\"{oldest}\" selected>Number 0</option>");
    for path in [
        format!("/documents?collection={oldest}"),
        format!("/documents/new?collection={oldest}"),
        format!("/search?collection={oldest}"),
        changed,
    ] {
        assert!(page(&visits, &path).await.contains(&chosen), "{path}");
    }
    // A document says in which it is, and is not to be put there again.
    for path in [document.clone(), format!("{document}?find-collection=number+0")] {
        let html = page(&visits, &path).await;
        assert!(
            html.contains(&format!("collections/{oldest}\" dir=\"auto\">Number 0</a>")),
            "{path}: {html}"
        );
        assert!(!html.contains(&option(&shelves[0])), "{path}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_prompts_each_can_be_given_to_an_agent_and_is_on_a_page() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let prompt = json!({"template": "Be brief.", "input_variables": []});
    let prompts = many(&owner, "/prompts", 203, &prompt).await;
    let oldest = id(&prompts[0]);
    let agent = json!({"name": "Guide", "type": "CHATVENDOR", "promptId": oldest});
    let agent = owner.create_agent(&agent).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let option = |prompt: &Value| format!("<option value=\"{}\">", id(prompt));
    let change = format!("/agents/{}", id(&agent));
    for path in ["/agents/new", change.as_str()] {
        let html = page(&visits, path).await;
        assert!(html.contains("Only the newest 200 of 203 prompts are offered."), "{path}: {html}");
        assert!(html.contains(&option(&prompts[202])) && !html.contains(&option(&prompts[1])), "{path}");
        let html = page(&visits, &format!("{path}?find-prompt=number+1")).await;
        assert!(html.contains(&option(&prompts[1])) && !html.contains(&option(&prompts[2])), "{path}");
    }
    for path in [change.clone(), format!("{change}?find-prompt=nothing")] {
        let html = page(&visits, &path).await;
        assert!(html.contains(&format!("<option value=\"{oldest}\" selected>Number 0</option>")), "{html}");
    }
    let mut next = Some("/prompts".to_owned());
    let mut listed = 0;
    while let Some(path) = next {
        let html = page(&visits, &path).await;
        listed += html.matches("<summary><bdi>Number ").count();
        next = next_page(&html);
    }
    assert_eq!(listed, 203, "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_api_tokens_and_tools_all_are_listed_page_by_page() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    for number in 0..51 {
        owner.create("/api-tokens", &json!({"description": format!("Program {number}.")})).await;
        let tool = json!({"name": format!("Tool {number}."), "type": "SEARCH", "metadata": {
            "provider": "searxng", "base_url": "https://search.example.com",
        }});
        owner.create("/tools", &tool).await;
    }
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for (path, row) in [("/tokens", "data-label=\"What for\""), ("/tools", "<summary><bdi>Tool ")] {
        let first = page(&visits, path).await;
        assert_eq!(first.matches(row).count(), 50, "{path}: {first}");
        let rest = page(&visits, &next_page(&first).expect("another page")).await;
        assert_eq!((rest.matches(row).count(), next_page(&rest)), (1, None), "{path}: {rest}");
        assert!(rest.contains(if path == "/tokens" { "Program 0." } else { "Tool 0." }), "{rest}");
    }
    // What is deleted on a page leads back to it, and to the first one when nothing is left of it.
    let second = next_page(&page(&visits, "/tokens").await).expect("another page");
    let mut forms = form_addresses(&page(&visits, &second).await).into_iter();
    let delete = forms.find(|address| address.contains("/delete?")).expect("a form").replace("&amp;", "&");
    let deleted = visits.submit(&format!("/{delete}"), &[CONFIRMED]).await;
    let back = second.replace("?after", "?said=token-deleted&after");
    assert_eq!(location(&deleted), format!("../..{back}"));
    let html = page(&visits, &back).await;
    assert_eq!(html.matches("data-label=\"What for\"").count(), 50, "{html}");
    assert!(html.contains("Deleted. What uses the token"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_looked_through_by_name_and_their_pages_keep_to_it() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    many(&owner, "/collections", 52, &json!({})).await;
    owner.create("/collections", &json!({"name": "M\u{f6}bel & \"Co\""})).await;
    let agent = owner.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR"})).await;
    owner.predict(id(&agent), "When does the gate open?").await;
    owner.create("/prompts", &json!({"name": "Brief", "template": "Be brief.", "input_variables": []})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;

    let row = "data-label=\"Name\"";
    let first = page(&visits, "/collections?name=+NUMBER+").await;
    assert_eq!(first.matches(row).count(), 50, "{first}");
    assert!(first.contains("name=\"name\" dir=\"auto\" value=\"NUMBER\""), "it stands in the field: {first}");
    let next = next_page(&first).expect("another page").replace("&#38;", "&").replace("&amp;", "&");
    let rest = page(&visits, &next).await;
    assert_eq!((rest.matches(row).count(), next_page(&rest)), (2, None), "{rest}");
    let found = page(&visits, "/collections?name=M%C3%96BEL+%26+%22").await;
    assert_eq!(found.matches(row).count(), 1, "{found}");

    for (list, name, row, none) in [
        ("collections", "co", row, "No collection is called so."),
        ("agents", "CLERK", "class=\"card\"", "No agent is called so."),
        ("prompts", "brief", "class=\"card\"", "No prompt is called so."),
        ("tokens", "", "data-label=\"What for\"", "No token is for that."),
        ("members", "ADA%40", "data-label=\"Who\"", "No member is called so."),
        ("traces", "GATE", "data-label=\"Question\"", "No answer is kept that is like that."),
    ] {
        let html = page(&visits, &format!("/{list}?name={name}")).await;
        assert_eq!(html.matches(row).count(), 1, "{list}: {html}");
        let html = page(&visits, &format!("/{list}?name=nothing")).await;
        assert_eq!((html.matches(row).count(), html.contains(none)), (0, true), "{list}: {html}");
    }
    assert!(page(&visits, "/tools?name=nothing").await.contains("No tool is called so."));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_members_and_invitations_all_are_listed_page_by_page() {
    let joined = Team::with("editor").await;
    // As many accounts as nobody waits for: each would have a password to be hashed.
    let made = "INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version, created_at, updated_at)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 201)
        SELECT unhex('ff' || printf('%030x', n)), 'p' || n, 'p' || n, 'Person ' || n || '.', 'none', FALSE, 0, 0, 0 FROM numbers";
    let taken = "INSERT INTO members (workspace_id, user_id, role, joined_at)
        SELECT w.id, u.id, 'asker', 0 FROM users u, workspaces w WHERE w.name = 'Team' AND u.password_hash = 'none'";
    for statement in [made, taken] {
        assert_eq!(meddle(Mode::Embedded, &joined.service.sibling(), statement).await, 201);
    }
    let invitations = format!("/workspaces/{}/invitations", id(&joined.workspace));
    for _ in 0..203 {
        joined.inside.create(&invitations, &json!({"role": "asker"})).await;
    }
    let mut visits = joined.visits("ada@example.com").await;
    let row = "<td data-label=\"Who\">";
    let first = page(&visits, "/members").await;
    let second = next_page(&first).expect("another page");
    let rest = page(&visits, &second).await;
    assert_eq!((first.matches(row).count(), rest.matches(row).count()), (200, 3), "{rest}");
    assert_eq!(next_page(&rest), None);
    for number in 1..=201 {
        let person = format!(">Person {number}.<");
        assert!(first.contains(&person) != rest.contains(&person), "{number}, once");
    }
    // What is done on a page leads back to it, and to the first one when nothing is left of it.
    let change = form_addresses(&rest).into_iter().find(|address| address.contains("&amp;after="));
    let change = change.expect("a form for a role").replace("&amp;", "&");
    let changed = visits.submit(&format!("/{change}"), &[("role", "editor")]).await;
    let back = second.replace("?after", "?said=saved&after");
    assert_eq!(location(&changed), format!("..{back}"));
    let behind_all = page(&visits, &format!("/members?after={}", uuid::Uuid::nil())).await;
    assert_eq!(behind_all.matches(row).count(), 200, "{behind_all}");

    let withdraw = ">Withdraw</button>";
    assert_eq!(first.matches(withdraw).count(), 200, "{first}");
    let further = first.split("#invitations\">Further invitations</a>").next().expect("a link");
    let further = further.rsplit("href=\"").next().expect("its address");
    let rest = page(&visits, &format!("/{further}")).await;
    assert_eq!(rest.matches(withdraw).count(), 3, "{rest}");
    assert!(!rest.contains("Further invitations"), "{rest}");
    let back = "href=\"members#invitations\">First invitations</a>";
    assert!(rest.contains(back) && !first.contains(back), "{rest}");
    let behind_all = page(&visits, &format!("/members?invitations={}", uuid::Uuid::nil())).await;
    assert_eq!(behind_all.matches(withdraw).count(), 200, "{behind_all}");

    // The editor's, too, which was accepted.
    assert_eq!(count_of_invited(&visits).await, 204);
    let behind_all = page(&visits, &format!("/audit?after={}", uuid::Uuid::nil())).await;
    for said in ["Nothing further has been noted.", "href=\"audit\">First page</a>"] {
        assert!(behind_all.contains(said), "{said}: {behind_all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_in_many_workspaces_comes_back_to_their_own_and_is_told_that_there_are_others() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let own = owner.read("/workspaces").await;
    let own = id(&own[0]).to_owned();
    let teams = many(&owner, "/workspaces", 52, &json!({})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let told = "Not all of your workspaces are listed.";
    let html = page(&visits, "/").await;
    assert!(html.contains(told) && html.contains(&format!("<option value=\"{own}\" selected>")), "{html}");
    // The one that is chosen is the one that is shown as chosen.
    let oldest = id(&teams[0]);
    assert!(!html.contains(oldest), "{html}");
    let chosen = visits.submit("/workspace", &[("workspace", oldest)]).await;
    assert_eq!(chosen.status(), StatusCode::SEE_OTHER, "{}", location(&chosen));
    let html = page(&visits, "/").await;
    assert!(html.contains(&format!("<option value=\"{oldest}\" selected>Number 0</option>")), "{html}");
    assert!(html.contains(&format!("<option value=\"{own}\">")), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_compared_with_one_that_many_came_after() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let text = "The warranty lasts two years.";
    let document = owner.ingest(&json!({"name": "Warranty", "type": "TXT", "content": text})).await;
    let set = owner.create("/evaluations", &json!({"name": "Questions"})).await;
    let case = json!({"question": "How long does it last?", "expect": [{"documentId": id(&document)}]});
    owner.create(&format!("/evaluations/{}/cases", id(&set)), &case).await;
    let runs = format!("/evaluations/{}/runs", id(&set));
    let run = async || {
        let run = owner.create(&runs, &json!({"mode": "lexical"})).await;
        format!("{runs}/{}", id(&run))
    };
    let succeeded = async || {
        let run = run().await;
        let ended = async {
            while owner.read(&run).await["state"] != "succeeded" {
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the end of the run", ended).await;
        run
    };
    let first = succeeded().await;
    for _ in 0..50 {
        let cancel = format!("{}/cancel", run().await);
        data(envelope(send(owner.request(Method::POST, &cancel)).await).await);
    }
    let last = succeeded().await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let option = format!("<option value=\"{}\">", first.rsplit('/').next().expect("an id"));
    let html = page(&visits, &last).await;
    assert!(!html.contains(&option), "{html}");
    let link = html.split(">Compare with an earlier run</a>").next().expect("a text");
    let query = link.rsplit("?others=").next().and_then(|rest| rest.split('#').next()).expect("a place");
    let html = page(&visits, &format!("{last}?others={query}")).await;
    assert!(html.contains(&option) && !html.contains("Compare with an earlier run"), "{html}");
}
