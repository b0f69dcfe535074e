//! Agents in a browser: how they are made, found and linked.

use reqwest::StatusCode;
use serde_json::json;

use super::{Visits, agent_with_report, location, service};
use crate::support::{
    client::id,
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(an_agent_shows_all_that_it_is_linked_to_and_offers_the_rest);

async fn an_agent_shows_all_that_it_is_linked_to_and_offers_the_rest(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let agent = owner.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR"})).await;
    for number in 0..25 {
        let note = json!({"name": format!("Note {number:02}"), "type": "TXT", "content": "A note."});
        let note = owner.create_document(&note).await;
        // The oldest one and the newest one are left.
        if (1..24).contains(&number) {
            owner.link(id(&agent), id(&note)).await;
        }
    }
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = async |path: &str| {
        let html = visits.get(path).await.text().await.expect("a text");
        let between = |begin: &str, end: &str| {
            let (_, rest) = html.split_once(begin).expect("its beginning");
            rest.split_once(end).expect("its end").0.to_owned()
        };
        let linked = between("<ul id=\"linked\"", "</ul>");
        let linked = linked.split("dir=\"auto\">").skip(1).filter_map(|rest| rest.split('<').next());
        let linked: Vec<String> = linked.map(str::to_owned).collect();
        let offered = between("<select id=\"document\"", "</select>");
        let mut links = html.split("href=\"").filter_map(|rest| rest.split(['"', '#']).next());
        let next = links.find(|link| link.contains("?documents="));
        (linked, offered, next.map(|next| next.replace("../", "/")))
    };
    let path = format!("/agents/{}", id(&agent));
    let (mut all, offered, next) = page(&path).await;
    assert_eq!((all.len(), all[0].as_str()), (20, "Note 23"), "{all:?}");
    assert_eq!(offered.matches("<option").count(), 2, "{offered}");
    assert!(offered.contains(">Note 24<") && offered.contains(">Note 00<"), "{offered}");
    let (rest, offered, end) = page(&next.expect("another page")).await;
    assert_eq!((rest.len(), end), (3, None), "{rest:?}");
    assert_eq!(offered.matches("<option").count(), 2, "{offered}");
    all.extend(rest);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 23, "each once: {all:?}");
    let (_, offered, _) = page(&format!("{path}?find=NOTE+24")).await;
    assert!(offered.contains(">Note 24<") && !offered.contains(">Note 00<"), "{offered}");
    // Where nothing is called so, that is said, and what was looked for stands there as text.
    let nothing = visits.get(&format!("{path}?find=%22%3E%3Cb%3E")).await.text().await.expect("a text");
    assert!(nothing.contains("No document that could be linked is called so."), "{nothing}");
    assert!(!nothing.contains("id=\"document\"") && !nothing.contains("<b>"), "{nothing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_away_of_a_later_page_leads_back_to_it_as_long_as_it_is_there() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let agent = owner.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR"})).await;
    for number in 0..22 {
        let note = json!({"name": format!("Note {number:02}"), "type": "TXT", "content": "A note."});
        let note = owner.create_document(&note).await;
        owner.link(id(&agent), id(&note)).await;
    }
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/agents/{}", id(&agent));
    let page = async |visits: &Visits<'_>, path: &str| {
        let html = visits.get(path).await.text().await.expect("a text");
        let hidden = |name: &str| {
            let before = format!("name=\"{name}\" value=\"");
            let inputs = html.split(&before).skip(1);
            inputs.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect::<Vec<_>>()
        };
        (hidden("document"), hidden("documents"), html.contains("First page"))
    };
    let (rows, places, _) = page(&visits, &path).await;
    assert_eq!((rows.len(), places.len()), (20, 0));
    let (mut rows, places, _) = page(&visits, &format!("{path}?documents={}", rows[19])).await;
    assert_eq!((rows.len(), places.len()), (2, 2), "each says on which page it stands");
    let mut take_away = async |row: &str| {
        let form = [("document", row), ("documents", places[0].as_str())];
        let done = visits.submit(&format!("{path}/unlink"), &form).await;
        let next = format!("/{}", location(&done).trim_start_matches("../"));
        page(&visits, &next).await
    };
    let (left, _, has_way_back) = take_away(&rows.remove(0)).await;
    assert_eq!((&left, has_way_back), (&rows, true), "the page that it stood on");
    let (left, places, has_way_back) = take_away(&rows[0]).await;
    assert_eq!((left.len(), places.len(), has_way_back), (20, 0, false), "the last page that there is");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_collections_those_that_are_not_offered_are_counted_and_found_by_name() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let agent = owner.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = async |path: &str| {
        let html = visits.get(path).await.text().await.expect("a text");
        let choice =
            html.split_once("<select id=\"collection\"").and_then(|(_, rest)| rest.split_once("</select>"));
        let offered = choice.map(|(options, _)| options.matches("<option").count());
        (html, offered)
    };
    owner.create("/collections", &json!({"name": "The oldest shelf"})).await;
    let path = format!("/agents/{}", id(&agent));
    let (html, offered) = page(&path).await;
    assert!(offered == Some(1) && !html.contains("find-collection"), "all are offered: {html}");
    for number in 0..201 {
        owner.create("/collections", &json!({"name": format!("Shelf {number}")})).await;
    }
    let (html, offered) = page(&path).await;
    assert_eq!(offered, Some(200));
    assert!(html.contains("Only the newest 200 of 202 collections are offered."), "{html}");
    assert!(html.contains("name=\"find-collection\"") && !html.contains("The oldest shelf"), "{html}");
    let (html, offered) = page(&format!("{path}?find-collection=OLDEST")).await;
    assert!(offered == Some(1) && html.contains(">The oldest shelf</option>"), "{html}");
    let (html, offered) = page(&format!("{path}?find-collection=nothing")).await;
    assert!(offered.is_none() && html.contains("No collection that could be chosen is called so."), "{html}");
    let (html, _) = page("/agents/new").await;
    assert!(html.contains("Only the newest 200 collections are offered."), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_made_with_its_documents_is_in_its_first_version() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    for name in ["One", "Two"] {
        owner.ingest(&json!({"name": name, "type": "TXT", "content": "A note."})).await;
    }
    let blank = owner.create_document(&json!({"name": "Blank", "type": "TXT", "content": " \n "})).await;
    let blank = owner.wait_until_ingested(id(&blank)).await;
    assert_eq!(blank["ingestion"]["status"], "FAILED", "{blank:#}");
    let shelf = owner.create("/collections", &json!({"name": "Shelf"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let form = [
        ("name", "Clerk"),
        ("type", "CHATVENDOR"),
        ("allDocuments:boolean", "true"),
        ("collectionIds:list", id(&shelf)),
    ];
    let sent = visits.submit("/agents/new", &form).await;
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    let agents = owner.read("/agents").await;
    assert_eq!(agents.as_array().map(Vec::len), Some(1), "{agents:#}");
    let versions = owner.read(&format!("/agents/{}/versions", id(&agents[0]))).await;
    assert_eq!(
        (versions.as_array().map(Vec::len), &versions[0]["version"]),
        (Some(1), &json!(1)),
        "{versions:#}"
    );
    for (links, count) in [("/agent-documents", 3), ("/agent-collections", 1)] {
        let found = owner.read(links).await;
        assert_eq!(found.as_array().map(Vec::len), Some(count), "{links}: {found:#}");
    }
    // Of what nothing could be searched is tried again.
    let again = owner.wait_until_ingested(id(&blank)).await;
    assert_ne!(again["ingestion"]["queuedAt"], blank["ingestion"]["queuedAt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_says_that_there_are_more_agents_than_it_shows() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    agent_with_report(&owner).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let home = async || visits.get("/").await.text().await.expect("a text");
    for at in 2..=24 {
        owner.create_agent(&json!({"name": format!("Guide {at}"), "type": "CHATVENDOR"})).await;
    }
    assert!(!home().await.contains("All agents"), "all of them are shown");
    owner.create_agent(&json!({"name": "One more", "type": "CHATVENDOR"})).await;
    let home = home().await;
    assert!(home.contains("All agents") && home.contains("One more"), "{home}");
}

#[tokio::test(flavor = "multi_thread")]
async fn things_of_one_name_are_told_apart_where_they_are_chosen() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let agent = json!({"name": "Guide", "type": "CHATVENDOR"});
    let agents = [owner.create_agent(&agent).await, owner.create_agent(&agent).await];
    let clerk = owner.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR"})).await;
    let shelf = json!({"name": "Shelf"});
    let shelves = [owner.create("/collections", &shelf).await, owner.create("/collections", &shelf).await];
    let prompt = json!({"name": "Brief", "template": "Be brief.", "input_variables": []});
    let prompts = [owner.create("/prompts", &prompt).await, owner.create("/prompts", &prompt).await];
    let note = json!({"name": "Note", "type": "TXT", "content": "A note."});
    let notes = [owner.ingest(&note).await, owner.ingest(&note).await];
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page_of_clerk = format!("/agents/{}", id(&clerk));
    for (path, twins) in [
        ("/search", &agents),
        ("/traces", &agents),
        ("/tokens", &agents),
        ("/evaluations", &agents),
        ("/search", &shelves),
        ("/documents", &shelves),
        ("/documents/new", &shelves),
        ("/sources/new?type=feed", &shelves),
        ("/agents/new", &prompts),
        (page_of_clerk.as_str(), &shelves),
        (page_of_clerk.as_str(), &notes),
    ] {
        let html = visits.get(path).await.text().await.expect("a text");
        for twin in twins {
            let end = &id(twin)[id(twin).len() - 6..];
            let name = twin["name"].as_str().expect("a name");
            let option = format!("<option value=\"{}\">{name} (id …{end})</option>", id(twin));
            assert!(html.contains(&option), "{path}: {option}: {html}");
        }
    }
    // A name that no other one has stands by itself.
    let html = visits.get("/search").await.text().await.expect("a text");
    assert!(html.contains(">Clerk</option>"), "{html}");
    // What has no page of its own says the same where it is kept.
    let html = visits.get("/prompts").await.text().await.expect("a text");
    for prompt in &prompts {
        let end = &id(prompt)[id(prompt).len() - 6..];
        assert!(html.contains(&format!("<summary><bdi>Brief (id …{end})</bdi></summary>")), "{html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_that_are_shown_for_a_type_of_tool_make_one() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let agent = owner.create_agent(&json!({"name": "Expert", "type": "CHATVENDOR"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = visits.get("/tools").await.text().await.expect("a text");
    let shown = page.split("<dl class=\"facts\">").nth(1).and_then(|rest| rest.split("</dl>").next());
    let kinds: Vec<&str> = shown.expect("the types").split("<dt>").skip(1).collect();
    assert_eq!(kinds.len(), page.matches("<option>").count(), "each type that can be chosen: {page}");
    for kind in kinds {
        let (kind, rest) = kind.split_once("</dt>").expect("its name");
        let sample = rest.split("<code>").nth(1).and_then(|rest| rest.split("</code>").next());
        let sample = sample.expect("its settings").replace("&#34;", "\"").replace("the id", id(&agent));
        let form = [("name", kind), ("type", kind), ("metadata:json", &sample)];
        let made = visits.submit("/tools", &form).await;
        assert_eq!(made.status(), StatusCode::SEE_OTHER, "{kind}: {sample}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_json_of_settings_is_said_and_where() {
    let service = service().await;
    service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let settings = "{\r\n  \"openApiUrl\": \"https://api.example.com/openapi.json\",\r\n}";
    let form = [("name", "Orders"), ("type", "OPENAPI"), ("metadata:json", settings)];
    let refused = visits.submit("/tools", &form).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let said = refused.text().await.expect("a text");
    assert!(
        said.contains("is not valid JSON (line 3, column 1: a comma stands before the closing bracket)"),
        "{said}"
    );
}
