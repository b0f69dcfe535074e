//! What members see of one another, and that nothing of one workspace is seen in another.

use std::{collections::BTreeSet, time::Duration};

use futures::future::join_all;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    Team, api_token, ask, assert_no_workspace, assert_refused, ingested, question, quoting_agent, user_id,
};
use crate::{
    dashboard::Visits,
    matrix::{rows::rows, things::Things},
    receipts::closed_receipt,
    support::{
        client::{Client, data, envelope, id, send},
        command::upload,
        db::Database,
        in_both_modes,
        loopback::Gate,
        model::{Model, Reply},
        pdf::pdf_with_pages,
        process::POLL,
        service::{Mode, Service},
        web::Web,
        within_deadline,
    },
};

in_both_modes!(
    members_see_what_is_the_workspaces_by_their_roles,
    whoever_only_asks_reads_the_passages_that_were_cited_to_them,
    whoever_only_asks_sees_the_pages_that_were_cited_to_them,
    a_workspace_of_others_is_like_one_that_is_not_there,
    whoever_is_removed_finds_nothing_from_the_next_request_on,
    streams_of_whoever_is_removed_end_soon,
    streams_on_a_page_end_soon_with_what_let_their_reader_in,
    ids_of_another_workspace_are_unknown_wherever_they_stand,
    sessions_and_traces_are_ones_own,
    what_somebody_said_who_has_left_is_not_kept
);

/// How long what somebody follows may go on after they were removed.
const SOON: Duration = Duration::from_secs(5);

async fn members_see_what_is_the_workspaces_by_their_roles(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let builder = team.joined(&service, "builder", "builder").await;
    let editor = team.joined(&service, "editor", "editor").await;
    let asker = team.joined(&service, "asker", "asker").await;

    let document = ingested(&editor, "Rules", "The gate opens at nine.").await;
    let seen = team.owner.read(&format!("/documents/{document}")).await;
    assert_eq!(seen["userId"], user_id(&editor), "it shows who made it: {seen:#}");
    assert_eq!(builder.read("/documents").await[0]["id"], document.as_str());
    assert_refused(&asker.get("/documents").await, 403, "role_required");
    for elsewhere in [&ada, &service.signed_up("stranger@example.com").await] {
        assert_eq!(elsewhere.get(&format!("/documents/{document}")).await.0, StatusCode::NOT_FOUND);
        assert_eq!(elsewhere.read("/documents").await, json!([]));
    }

    let agent = quoting_agent(&team.owner, "Clerk").await;
    builder.link(&agent, &document).await;
    let shown = builder.read(&format!("/agents/{agent}")).await;
    assert_eq!(shown["llm"]["provider"], "extractive", "{shown:#}");
    for listed in [asker.read(&format!("/agents/{agent}")).await, asker.read("/agents").await[0].clone()] {
        let fields: BTreeSet<&str> =
            listed.as_object().expect("an agent").keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["id", "name", "description"]), "{listed:#}");
        assert_eq!((id(&listed), &listed["name"]), (agent.as_str(), &json!("Clerk")));
    }
    let (status, answer) = ask(&asker, &agent, "When does the gate open?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["documentId"], document.as_str(), "{answer:#}");
}

async fn whoever_only_asks_reads_the_passages_that_were_cited_to_them(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let (asker, other) =
        (team.joined(&service, "asker", "asker").await, team.joined(&service, "other", "asker").await);
    let gate = ingested(&team.owner, "Rules", "The gate opens at nine.").await;
    let bread = ingested(&team.owner, "Bread", "Bread is baked at four.").await;
    let agent = quoting_agent(&team.owner, "Clerk").await;
    team.owner.link(&agent, &gate).await;
    let chunks = |document: &str| format!("/documents/{document}/chunks");
    assert_refused(&asker.get(&chunks(&gate)).await, 404, "not_found");

    let (_, answer) = ask(&asker, &agent, "When does the gate open?").await;
    let cited = asker.read(&chunks(&gate)).await;
    assert_eq!(cited[0]["text"], "The gate opens at nine.", "{cited:#}");
    assert_eq!(cited[0]["chunkId"], answer["trace"]["citations"][0]["chunkId"], "{cited:#}");
    for (person, document) in [(&other, &gate), (&asker, &bread)] {
        assert_refused(&person.get(&chunks(document)).await, 404, "not_found");
    }

    let baker = quoting_agent(&team.owner, "Baker").await;
    team.owner.link(&baker, &bread).await;
    for _ in 0..11 {
        let asked = (0..10).map(|_| ask(&asker, &baker, "When is bread baked?"));
        for (status, answer) in join_all(asked).await {
            assert_eq!(status, StatusCode::OK, "{answer:#}");
        }
    }
    assert_eq!(asker.read(&chunks(&gate)).await, cited, "questions about other things do not push it out");
}

async fn whoever_only_asks_sees_the_pages_that_were_cited_to_them(mode: Mode) {
    const PAGES: [&str; 3] = [
        "The gate of the lighthouse opens at nine in the morning, all year.",
        "Bread bakes slowly inside ovens near harbours, says our old cook.",
        "Seven ships were painted green before winter came to these islands.",
    ];
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let (asker, other) =
        (team.joined(&service, "asker", "asker").await, team.joined(&service, "other", "asker").await);
    let uploaded = upload(&team.owner, "handbook.pdf", &pdf_with_pages(&PAGES)).await;
    let path = format!("/documents/{}", id(&uploaded));
    team.owner.wait_until_ingested(id(&uploaded)).await;
    // A passage a page.
    let splitter = json!({ "type": "character", "chunk_size": 80, "chunk_overlap": 0 });
    data(team.owner.patch(&path, &json!({ "splitter": splitter })).await);
    let document = team.owner.wait_until_ingested(id(&uploaded)).await;
    assert_eq!(document["index"]["chunks"], 3, "{document:#}");
    let agent = quoting_agent(&team.owner, "Clerk").await;
    team.owner.link(&agent, id(&uploaded)).await;
    let bound = ada.with_token(&api_token(&team.owner, json!({ "agentId": agent })).await);

    let pages = format!("{path}/pages");
    for reader in [&asker, &bound] {
        for path in [pages.clone(), format!("{pages}/1")] {
            assert_refused(&reader.get(&path).await, 404, "not_found");
        }
        let (status, answer) = ask(reader, &agent, "When does the gate open?").await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        let cited = answer["trace"]["citations"][0]["chunkId"].as_str().expect("a citation");
        let listed = reader.read(&pages).await;
        let numbers: Vec<&Value> =
            listed.as_array().expect("a list").iter().map(|page| &page["page"]).collect();
        // A source is shown with the passage that follows it.
        assert_eq!(numbers, [&json!(1), &json!(2)], "{listed:#}");
        let image = send(reader.request(Method::GET, &format!("{pages}/1?highlight={cited}"))).await;
        assert_eq!(image.status(), StatusCode::OK);
        assert!(image.headers().contains_key("lectern-page-boxes"), "what was cited is marked");
        assert_refused(&reader.get(&format!("{pages}/3")).await, 404, "not_found");
    }
    for path in [pages.clone(), format!("{pages}/1")] {
        assert_refused(&other.get(&path).await, 404, "not_found");
    }
}

async fn a_workspace_of_others_is_like_one_that_is_not_there(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let script = grace.with_token(&api_token(&grace, json!({})).await);
    for named in [team.workspace.as_str(), user_id(&ada), &Uuid::now_v7().to_string(), "no id", ""] {
        let answer = grace.in_workspace(named).get("/agents").await;
        assert_refused(&answer, 404, "workspace");
        assert_no_workspace(&answer);
        let answer = script.in_workspace(named).get("/agents").await;
        assert_refused(&answer, 422, "invalid_fields");
        assert_eq!(answer.1["error"]["fields"][0]["path"], "X-Workspace", "{:#}", answer.1);
    }
    for path in ["", "/members", "/invitations", "/audit"] {
        let answer = grace.get(&team.path(path)).await;
        assert_refused(&answer, 404, "not_found");
        assert_no_workspace(&answer);
    }
    assert_no_workspace(&grace.patch(&team.path(""), &json!({ "name": "Mine" })).await);
    assert_no_workspace(&grace.delete_with(&team.path(""), &json!({ "name": "Archive" })).await);
    // One's own may be named as well as left out, by whatever one signs in with.
    for own in [&grace, &script] {
        own.in_workspace(user_id(&grace)).read("/agents").await;
    }
    let listed = grace.read("/workspaces").await;
    let ids: Vec<&str> = listed.as_array().expect("a list").iter().map(id).collect();
    assert_eq!(ids, [user_id(&grace)]);
}

/// A request that is answered as before when it is sent again.
fn keyed(client: &Client) -> RequestBuilder {
    let agent = json!({ "name": "Usher", "type": "CHATVENDOR" });
    client.request(Method::POST, "/agents").header("Idempotency-Key", "only-once").json(&agent)
}

async fn whoever_is_removed_finds_nothing_from_the_next_request_on(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let document = ingested(&bob, "Rules", "The gate opens at nine.").await;
    let agent = quoting_agent(&bob, "Clerk").await;
    bob.link(&agent, &document).await;
    let script = bob.with_token(&api_token(&bob, json!({})).await);
    let made = id(&data(envelope(send(keyed(&bob)).await).await)).to_owned();
    assert_eq!(id(&data(envelope(send(keyed(&bob)).await).await)), made, "it is kept");
    let predict = format!("/agents/{agent}/predict");
    let cached = json!({ "input": { "input": "When does the gate open?" }, "cache_ttl": 3_600 });
    for _ in 0..2 {
        assert_eq!(bob.post(&predict, &cached).await.0, StatusCode::OK);
    }

    // Whoever may less is not shown again what was made when they might more.
    team.give(&bob, "asker").await;
    let (status, answer) = envelope(send(keyed(&bob)).await).await;
    assert_ne!(status, StatusCode::OK, "{answer:#}");
    assert!(!answer.to_string().contains(&made), "{answer:#}");
    assert_refused(&script.get("/documents").await, 403, "role_required");

    team.give(&bob, "builder").await;
    script.read("/documents").await;
    team.remove(&bob).await;
    assert_no_workspace(&envelope(send(keyed(&bob)).await).await);
    assert_no_workspace(&bob.post(&predict, &cached).await);
    assert_no_workspace(&bob.get(&format!("/documents/{document}")).await);
    assert_no_workspace(&bob.get(&team.path("")).await);
    assert_eq!(script.get("/documents").await.0, StatusCode::UNAUTHORIZED, "a token goes with its maker");
    assert_eq!(team.owner.read("/documents").await[0]["id"], document.as_str(), "what was made stays");
}

/// Reads what still comes, to the end or until it is cut off.
async fn ended(mut answer: Response) {
    while let Ok(Some(_)) = answer.chunk().await {}
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_removed_is_not_shown_again_what_they_made_there() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let ben = service.signed_up("ben@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    team.join(&ben, "owner").await;
    // The path names the workspace, and no header does.
    let invite = async || {
        let request = ben.request(Method::POST, &team.path("/invitations"));
        let request = request.header("Idempotency-Key", "for the new one");
        envelope(send(request.json(&json!({ "role": "asker" }))).await).await
    };
    let (status, made) = invite().await;
    assert_eq!(status, StatusCode::OK, "{made:#}");
    assert_eq!(invite().await, (StatusCode::OK, made), "the same request is answered again");
    data(team.owner.delete(&team.member(&ben)).await);
    let (status, refused) = invite().await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{refused:#}");
}

async fn streams_of_whoever_is_removed_end_soon(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let (web, model, gate) = (Web::start().await, Model::start().await, Gate::default());
    let url = web.hang("/never.txt");
    let document = bob.create_document(&json!({ "name": "A", "type": "TXT", "url": url })).await;
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m") });
    let agent = id(&bob.create_agent(&agent).await).to_owned();
    let script = bob.with_token(&api_token(&bob, json!({})).await);
    model.always(Reply::gated("Let me think", &gate, " no more."));
    let mut streams = Vec::new();
    for client in [&bob, &script] {
        let events = client.request(Method::GET, &format!("/documents/{}/events", id(&document)));
        let mut body = question("Well?");
        body["has_streaming"] = json!(true);
        let predict = client.request(Method::POST, &format!("/agents/{agent}/predict")).json(&body);
        for request in [events, predict] {
            let answer = send(request).await;
            assert_eq!(answer.status(), StatusCode::OK);
            streams.push(answer);
        }
    }
    gate.wait_until_reached().await;
    team.remove(&bob).await;
    let ends = tokio::time::timeout(SOON, join_all(streams.into_iter().map(ended))).await;
    assert!(ends.is_ok(), "a stream of somebody who was removed goes on");
    gate.release();
}

async fn streams_on_a_page_end_soon_with_what_let_their_reader_in(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "asker").await;
    let (model, gate) = (Model::start().await, Gate::default());
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m") });
    let agent = id(&team.owner.create_agent(&agent).await).to_owned();
    model.always(Reply::gated("Let me think", &gate, " no more."));
    // His browser is in his own workspace, and stays signed in all along.
    let browser = service.client();
    let mut visits = Visits::new(&service, &browser);
    visits.sign_in("bob@example.com").await;
    let publication = format!("/agents/{agent}/publication");
    for access in ["members", "public"] {
        let page = json!({ "slug": "guide", "access": access });
        let published = team.owner.request(Method::PUT, &publication).json(&page);
        data(envelope(send(published).await).await);
        let answer = visits.submit("/ask/guide/stream", &[("question", "Well?")]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{access}");
        match access {
            "members" => team.remove(&bob).await,
            _ => assert_eq!(data(team.owner.delete(&publication).await), Value::Null),
        }
        let end = tokio::time::timeout(SOON, ended(answer)).await;
        assert!(end.is_ok(), "{access}: a stream goes on without what let its reader in");
    }
    gate.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_removed_at_this_moment_leaves_neither_a_page_nor_a_token_behind() {
    let database = Database::fresh().await;
    let service = Service::in_mode(Mode::Postgres).database_url(database.url()).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let agent = quoting_agent(&bob, "Clerk").await;
    let connect = async || PgConnection::connect(database.url()).await.expect("the service's database");
    let (mut holding, mut beside) = (connect().await, connect().await);
    let mut held = holding.begin().await.expect("a transaction");
    sqlx::query("SELECT id FROM workspaces WHERE id = CAST($1 AS UUID) FOR UPDATE")
        .bind(team.workspace.as_str())
        .execute(&mut *held)
        .await
        .expect("a lock");
    let page = json!({ "slug": "guide", "access": "public" });
    let publish = bob.request(Method::PUT, &format!("/agents/{agent}/publication")).json(&page);
    let token = json!({ "description": "a script's" });
    let removal = async {
        let both_wait = async {
            loop {
                let waiting: i64 = sqlx::query_scalar(
                    "SELECT COUNT(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock'",
                )
                .fetch_one(&mut beside)
                .await
                .expect("a number");
                if waiting >= 2 {
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("both requests to wait for the workspace", both_wait).await;
        sqlx::query(
            "DELETE FROM members WHERE workspace_id = CAST($1 AS UUID) AND user_id = CAST($2 AS UUID)",
        )
        .bind(team.workspace.as_str())
        .bind(user_id(&bob))
        .execute(&mut *held)
        .await
        .expect("a removal");
        held.commit().await.expect("an end of it");
    };
    let published = async { envelope(send(publish).await).await };
    let (published, made, ()) = tokio::join!(published, bob.post("/api-tokens", &token), removal);
    assert_no_workspace(&published);
    assert_no_workspace(&made);
    assert_eq!(team.owner.read("/api-tokens").await, json!([]));
    let page = team.owner.get(&format!("/agents/{agent}/publication")).await;
    assert_refused(&page, 404, "not_found");
}

async fn ids_of_another_workspace_are_unknown_wherever_they_stand(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    service.signed_up("operator@example.com").await;
    // Even to somebody who is a member of both: a request is about one.
    let ada = service.signed_up("ada@example.com").await;
    let here = Team::of(&ada, "Archive").await;
    let there = Team::of(&ada, "Library").await;
    let of_here = Things::of(&here.owner, "The gate opens at nine.").await;
    let of_there = Things::of(&there.owner, "The gate closes at six.").await;
    let mut swapped = 0;
    for row in rows() {
        // A workspace is named by its path there, whatever the request is about.
        if row.is_for_admins() || row.target.starts_with("/workspaces") {
            continue;
        }
        for (team, own, others) in [(&here, &of_here, &of_there), (&there, &of_there, &of_here)] {
            for noun in row.nouns() {
                let things = own.with(noun, others.id(noun));
                let request = row.request(&team.owner, &things).bearer_auth(team.owner.token());
                let request = request.header("X-Workspace", &team.workspace);
                let (status, answer) = envelope(send(request).await).await;
                let about = format!("{} with the {noun} of another workspace: {answer:#}", row.operation());
                assert_eq!(status, StatusCode::NOT_FOUND, "{about}");
                swapped += 1;
            }
        }
    }
    assert!(swapped > 100, "so few ids prove nothing: {swapped}");
    for list in ["/documents", "/agents", "/traces", "/agent-documents", "/tags", "/prompts", "/tools"] {
        let seen = here.owner.read(list).await.to_string();
        for noun in ["document", "agent", "trace", "agent-document", "tag", "prompt", "tool"] {
            assert!(!seen.contains(of_there.id(noun)), "{list} shows a {noun} of another workspace: {seen}");
        }
    }
}

/// Asks in a session, and returns the id of the trace.
async fn say(person: &Client, agent: &str, text: &str) -> String {
    let mut body = question(text);
    body["session"] = json!("a");
    let (status, answer) = person.post(&format!("/agents/{agent}/predict"), &body).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    id(&answer["trace"]).to_owned()
}

/// The ids of the traces that somebody sees, in order.
async fn traces(person: &Client) -> BTreeSet<String> {
    let traces = person.read("/traces?limit=200").await;
    traces.as_array().expect("a list").iter().map(|trace| id(trace).to_owned()).collect()
}

async fn sessions_and_traces_are_ones_own(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let builder = team.joined(&service, "builder", "builder").await;
    let editor = team.joined(&service, "editor", "editor").await;
    let asker = team.joined(&service, "asker", "asker").await;
    let model = Model::start().await;
    model.always(Reply::text("I see."));
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "hasMemory": true, "llm": model.llm("m") });
    let agent = id(&builder.create_agent(&agent).await).to_owned();

    let red = say(&asker, &agent, "I like red.").await;
    let blue = say(&editor, &agent, "I like blue.").await;
    let asked = say(&asker, &agent, "What do I like?").await;
    let told = model.bodies().pop().expect("a request").to_string();
    assert!(told.contains("red") && !told.contains("blue"), "{told}");
    // Erasing a session of the same name is erasing one's own.
    data(editor.delete(&format!("/agents/{agent}/sessions/a")).await);
    let again = say(&asker, &agent, "What was it?").await;
    let told: Value = model.bodies().pop().expect("a request");
    assert!(told.to_string().contains("red"), "{told:#}");

    let of_asker = BTreeSet::from([red.clone(), asked, again]);
    assert_eq!(traces(&asker).await, of_asker);
    assert_eq!(traces(&editor).await, BTreeSet::from([blue.clone()]));
    for (person, others) in [(&asker, &blue), (&editor, &red)] {
        assert_refused(&person.get(&format!("/traces/{others}")).await, 404, "not_found");
        assert_refused(&person.post(&format!("/traces/{others}/replay"), &json!({})).await, 404, "not_found");
    }
    let mut all = of_asker;
    all.insert(blue.clone());
    for person in [&builder, &team.owner] {
        assert_eq!(traces(person).await, all);
        person.read(&format!("/traces/{blue}")).await;
    }
}

async fn what_somebody_said_who_has_left_is_not_kept(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let person = service.signed_up("asker@example.com").await;
    let asker = team.join(&person, "asker").await;
    let model = Model::start().await;
    model.always(Reply::text("I see."));
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "hasMemory": true, "llm": model.llm("m") });
    let agent = id(&team.owner.create_agent(&agent).await).to_owned();
    say(&team.owner, &agent, "I like blue.").await;
    say(&asker, &agent, "I like red.").await;
    data(asker.delete(&team.member(&person)).await);
    // Housekeeping that purges this has looked at what is remembered first.
    let document = ingested(&team.owner, "Rules", "The gate opens at nine.").await;
    data(team.owner.delete(&format!("/documents/{document}")).await);
    closed_receipt(&team.owner, &document).await;
    let asker = team.join(&person, "asker").await;
    for (person, knows) in [(&asker, false), (&team.owner, true)] {
        say(person, &agent, "What do I like?").await;
        let told = model.bodies().pop().expect("a request").to_string();
        assert_eq!(told.contains("I like red.") || told.contains("I like blue."), knows, "{told}");
    }
}
