//! The pages of published agents, and what people say of answers.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, envelope, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    an_agent_is_published_shown_replaced_and_taken_away,
    an_address_is_one_agents_alone,
    a_link_cannot_be_guessed_and_stays_good,
    wrong_fields_of_a_page_are_named,
    builders_alone_publish_and_in_their_own_workspace,
    strangers_ask_by_a_token_that_goes_with_the_page,
    a_page_without_its_token_or_agent_opens_for_nobody,
    feedback_is_given_replaced_listed_and_taken_back,
    feedback_is_given_to_answers_that_one_may_see,
    feedback_by_a_token_is_given_to_its_own_answers,
);

fn public(slug: &str) -> Value {
    json!({ "slug": slug, "access": "public" })
}

fn of_agent(agent: &str) -> String {
    format!("/agents/{agent}/publication")
}

/// Publishes an agent: the status and the whole envelope.
async fn publish(builder: &Client, agent: &str, body: &Value) -> (StatusCode, Value) {
    envelope(send(builder.request(Method::PUT, &of_agent(agent)).json(body)).await).await
}

/// An agent that needs no model.
async fn agent_of(builder: &Client, name: &str) -> String {
    id(&builder.create_agent(&json!({ "name": name, "type": "CHATVENDOR" })).await).to_owned()
}

/// Asks an agent with the credentials of the client, and returns the trace's id.
async fn asked(person: &Client, agent: &str) -> String {
    let question = json!({ "input": { "input": "When does the gate open?" } });
    let (status, answer) = person.post(&format!("/agents/{agent}/predict"), &question).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    id(&answer["trace"]).to_owned()
}

/// A workspace for several people, and whoever made it, in it.
async fn team(service: &Service) -> Client {
    let ada = service.signed_up("ada@example.com").await;
    let workspace = ada.create("/workspaces", &json!({ "name": "Archive" })).await;
    ada.in_workspace(id(&workspace))
}

/// The id of the workspace of a [`team`].
async fn workspace_of(owner: &Client) -> String {
    let workspaces = owner.read("/workspaces").await;
    let named = workspaces.as_array().expect("a list").iter().find(|one| one["name"] == "Archive");
    id(named.expect("the workspace")).to_owned()
}

/// Makes an account that joins a [`team`].
async fn joined(service: &Service, owner: &Client, role: &str) -> Client {
    let workspace = workspace_of(owner).await;
    let path = format!("/workspaces/{workspace}/invitations");
    let invitation = owner.create(&path, &json!({ "role": role })).await;
    let person = service.signed_up(&format!("{role}-{}@example.com", Uuid::now_v7())).await;
    person.create("/invitations/accept", &json!({ "token": invitation["token"] })).await;
    person.in_workspace(&workspace)
}

/// The status with which somebody without an account is shown a page.
async fn shown_to_a_stranger(client: &Client, slug: &str) -> StatusCode {
    send(client.request_outside(Method::GET, &format!("/ask/{slug}"))).await.status()
}

/// The API tokens of pages.
async fn page_tokens(owner: &Client) -> Vec<Value> {
    let tokens = owner.read("/api-tokens").await;
    let is_of_a_page =
        |token: &&Value| token["description"].as_str().is_some_and(|text| text.starts_with("Page "));
    tokens.as_array().expect("a list").iter().filter(is_of_a_page).cloned().collect()
}

#[track_caller]
fn assert_refused((status, body): &(StatusCode, Value), expected: u16, code: &str) {
    assert_eq!((status.as_u16(), &body["error"]["code"]), (expected, &json!(code)), "{body:#}");
}

// --- publications ----------------------------------------------------------------------------------------------------

async fn an_agent_is_published_shown_replaced_and_taken_away(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = team(&service).await;
    let agent = agent_of(&ada, "Clerk").await;
    assert_refused(&ada.get(&of_agent(&agent)).await, 404, "not_found");

    let body = json!({
        "slug": "help", "access": "public", "title": "Ask the clerk", "greeting": "Ask anything.",
        "questions": ["When does the gate open?", "  Who keeps it? "], "accent": "#0A58ca",
        "origins": ["HTTPS://www.Example.com:443/"],
    });
    let made = data(publish(&ada, &agent, &body).await);
    for field in ["slug", "access", "title", "greeting", "accent"] {
        assert_eq!(made[field], body[field], "{field}: {made:#}");
    }
    assert_eq!(made["agentId"], agent.as_str());
    assert_eq!(made["workspaceId"], workspace_of(&ada).await.as_str());
    assert_eq!(made["questions"], json!(["When does the gate open?", "Who keeps it?"]));
    assert_eq!(made["origins"], json!(["https://www.example.com"]), "as browsers write it");
    assert!(made["url"].as_str().is_some_and(|url| url.ends_with("/ask/help")), "{made:#}");
    assert_eq!(made["ratePerMinute"], 60, "what holds when nothing is said: {made:#}");
    assert_eq!(made["createdAt"], made["updatedAt"]);
    assert_eq!(ada.read(&of_agent(&agent)).await, made);

    // What is left out is not kept: a page is replaced as a whole.
    let replaced = data(publish(&ada, &agent, &json!({ "slug": "ask-us", "access": "members" })).await);
    assert_eq!((&replaced["id"], &replaced["createdAt"]), (&made["id"], &made["createdAt"]));
    assert_ne!(replaced["updatedAt"], made["updatedAt"]);
    assert_eq!((&replaced["slug"], &replaced["access"]), (&json!("ask-us"), &json!("members")));
    for (field, empty) in [
        ("ratePerMinute", Value::Null),
        ("title", json!("")),
        ("greeting", json!("")),
        ("questions", json!([])),
        ("accent", json!("")),
        ("origins", json!([])),
    ] {
        assert_eq!(replaced[field], empty, "{field}");
    }
    assert_eq!(ada.read(&of_agent(&agent)).await, replaced);
    let again = data(publish(&ada, &agent, &replaced).await);
    for field in ["slug", "access", "title", "questions", "accent", "origins"] {
        assert_eq!(again[field], replaced[field], "what was read can be sent: {field}");
    }

    assert_eq!(data(ada.delete(&of_agent(&agent)).await), Value::Null);
    assert_refused(&ada.get(&of_agent(&agent)).await, 404, "not_found");
    assert_refused(&ada.delete(&of_agent(&agent)).await, 404, "not_found");
    ada.read(&format!("/agents/{agent}")).await;

    let log = ada.read(&format!("/workspaces/{}/audit?limit=200", workspace_of(&ada).await)).await;
    let lines = log.as_array().expect("a list").iter().rev();
    let told: Vec<&str> = lines
        .filter(|line| line["target"] == json!({ "kind": "agent", "id": agent }))
        .filter_map(|line| line["action"].as_str())
        .collect();
    assert_eq!(told, ["agent_created", "published", "published", "published", "unpublished"], "{log:#}");
}

async fn an_address_is_one_agents_alone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let [clerk, usher] = [agent_of(&ada, "Clerk").await, agent_of(&ada, "Usher").await];
    let hers = agent_of(&grace, "Guide").await;
    let made = data(publish(&ada, &clerk, &public("help")).await);

    let before = data(publish(&ada, &usher, &public("usher")).await);
    for (builder, agent) in [(&ada, &usher), (&grace, &hers)] {
        assert_refused(&publish(builder, agent, &public("help")).await, 409, "slug_taken");
    }
    assert_eq!(ada.read(&of_agent(&clerk)).await, made);
    assert_eq!(ada.read(&of_agent(&usher)).await, before, "it keeps the page that it had");
    assert_refused(&grace.get(&of_agent(&hers)).await, 404, "not_found");
    assert_eq!(page_tokens(&ada).await.len(), 2, "nothing is left of what was refused");
    assert_eq!(page_tokens(&grace).await.len(), 0);

    data(publish(&ada, &clerk, &public("help")).await);
    data(ada.delete(&of_agent(&clerk)).await);
    data(publish(&grace, &hers, &public("help")).await);
    data(ada.delete(&format!("/agents/{usher}")).await);
    data(publish(&grace, &hers, &public("usher")).await);
}

async fn a_link_cannot_be_guessed_and_stays_good(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let [agent, hers] = [agent_of(&ada, "Clerk").await, agent_of(&grace, "Guide").await];
    let link = json!({ "slug": "help", "access": "link" });
    let secret = |page: &Value| {
        let slug = page["slug"].as_str().expect("a slug");
        let secret = slug.strip_prefix("help-").unwrap_or_else(|| panic!("{slug}"));
        assert!(secret.len() >= 20 && secret.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{slug}");
        secret.to_owned()
    };
    let made = data(publish(&ada, &agent, &link).await);
    let other = data(publish(&grace, &hers, &link).await);
    assert_ne!(secret(&made), secret(&other), "the same words are no conflict");

    let mut retitled = link.clone();
    retitled["title"] = json!("Ask the clerk");
    let again = data(publish(&ada, &agent, &retitled).await);
    assert_eq!(again["slug"], made["slug"], "whoever has the link keeps it");
    let moved = data(publish(&ada, &agent, &public("help")).await);
    assert_eq!(moved["slug"], "help");
    assert_ne!(secret(&data(publish(&ada, &agent, &link).await)), secret(&made));
}

async fn wrong_fields_of_a_page_are_named(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = agent_of(&ada, "Clerk").await;
    let refused = async |body: &Value| {
        let refused = Refused::by(publish(&ada, &agent, body).await);
        refused.paths().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(refused(&json!({})).await, ["access", "slug"]);
    let slugs = ["", " ", "-help", "Help", "hel p", "a/b", "a.b", "hilfe-für-alle", "a_b", &"a".repeat(61)];
    for slug in slugs {
        assert_eq!(refused(&public(slug)).await, ["slug"], "{slug:?}");
    }
    let (_, too_long) = publish(&ada, &agent, &public(&"a".repeat(61))).await;
    let said = &too_long["error"]["fields"];
    assert_eq!(*said, json!([{ "path": "slug", "message": "must have at most 60 characters" }]));
    for (field, value) in [
        ("slug", json!(5)),
        ("access", json!("everybody")),
        ("access", json!(null)),
        ("title", json!(5)),
        ("title", json!("x".repeat(201))),
        ("greeting", json!(["Welcome"])),
        ("questions", json!("Well?")),
        ("questions", json!(["x".repeat(201)])),
        ("questions", json!([" "])),
        ("questions", json!(["a", "b", "c", "d", "e", "f", "g"])),
        ("accent", json!("red")),
        ("accent", json!("#12345")),
        ("accent", json!("#12345g")),
        ("origins", json!("*")),
        ("origins", json!(vec!["https://www.example.com"; 21])),
        ("ratePerMinute", json!(0)),
        ("ratePerMinute", json!("often")),
    ] {
        let mut body = public("help");
        body[field] = value.clone();
        assert_eq!(refused(&body).await, [field], "{value}");
    }
    let mut body = public("help");
    for origin in ["www.example.com", "https://www.example.com/path", "ftp://example.com", "*"] {
        body["origins"] = json!(["https://www.example.com", origin]);
        assert_eq!(refused(&body).await, ["origins.1"], "{origin}");
    }
    // Browsers tell nobody in a frame of another site who is signed in.
    let framed = json!({ "slug": "help", "access": "members", "origins": ["https://www.example.com"] });
    assert_eq!(refused(&framed).await, ["origins"]);
    assert_refused(&ada.get(&of_agent(&agent)).await, 404, "not_found");

    let longest = json!({
        "slug": "a".repeat(60), "access": "public", "title": "é".repeat(200), "greeting": "é".repeat(2_000),
        "questions": vec!["é".repeat(200); 6], "ratePerMinute": 1,
    });
    let made = data(publish(&ada, &agent, &longest).await);
    for field in ["slug", "title", "greeting", "questions"] {
        assert_eq!(made[field], longest[field], "{field}");
    }
}

async fn builders_alone_publish_and_in_their_own_workspace(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = team(&service).await;
    let agent = agent_of(&ada, "Clerk").await;
    let path = of_agent(&agent);
    let made = data(publish(&ada, &agent, &public("help")).await);

    for role in ["asker", "editor"] {
        let person = joined(&service, &ada, role).await;
        assert_refused(&publish(&person, &agent, &public("mine")).await, 403, "role_required");
        assert_refused(&person.get(&path).await, 403, "role_required");
        assert_refused(&person.delete(&path).await, 403, "role_required");
    }
    let token = json!({ "description": "a script's", "agentId": agent, "role": "owner" });
    let token = ada.create("/api-tokens", &token).await;
    let bound = ada.signed_out().with_token(token["token"].as_str().expect("a value"));
    assert_refused(&publish(&bound, &agent, &public("mine")).await, 403, "token_restricted");
    assert_refused(&bound.get(&path).await, 403, "token_restricted");
    // A token with an end must not make something that has none.
    let token = json!({ "description": "a script's", "ratePerMinute": 1_000 });
    let token = ada.create("/api-tokens", &token).await;
    let bounded = ada.signed_out().with_token(token["token"].as_str().expect("a value"));
    assert_refused(&publish(&bounded, &agent, &public("mine")).await, 403, "token_restricted");

    let grace = service.signed_up("grace@example.com").await;
    for unknown in [path.clone(), of_agent(&Uuid::now_v7().to_string()), of_agent("1")] {
        let put = grace.request(Method::PUT, &unknown).json(&public("mine"));
        assert_refused(&envelope(send(put).await).await, 404, "not_found");
        assert_refused(&grace.get(&unknown).await, 404, "not_found");
        assert_refused(&grace.delete(&unknown).await, 404, "not_found");
    }
    let nobody = ada.signed_out();
    assert_eq!(publish(&nobody, &agent, &public("mine")).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ada.read(&path).await, made);

    let builder = joined(&service, &ada, "builder").await;
    data(publish(&builder, &agent, &public("ours")).await);
    assert_eq!(ada.read(&path).await["slug"], "ours");
    data(builder.delete(&path).await);
}

async fn strangers_ask_by_a_token_that_goes_with_the_page(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = team(&service).await;
    let agent = agent_of(&ada, "Clerk").await;

    data(publish(&ada, &agent, &json!({ "slug": "help", "access": "members" })).await);
    assert_eq!(page_tokens(&ada).await.len(), 0, "members ask for themselves");

    data(publish(&ada, &agent, &public("help")).await);
    let first = page_tokens(&ada).await;
    assert_eq!(first.len(), 1, "{first:#?}");
    assert_eq!((&first[0]["role"], &first[0]["agentId"]), (&json!("asker"), &json!(agent)));
    assert_eq!(first[0]["ratePerMinute"], 60, "when nothing is said");
    assert!(first[0]["description"].as_str().is_some_and(|text| text.ends_with("ask/help")), "{first:#?}");

    let slow = json!({ "slug": "help", "access": "link", "ratePerMinute": 5 });
    let made = data(publish(&ada, &agent, &slow).await);
    assert_eq!((&made["ratePerMinute"], ada.read(&of_agent(&agent)).await), (&json!(5), made.clone()));
    let second = page_tokens(&ada).await;
    assert_eq!((second.len(), &second[0]["ratePerMinute"]), (1, &json!(5)), "{second:#?}");
    assert_ne!(second[0]["id"], first[0]["id"], "another page, another token");

    data(publish(&ada, &agent, &json!({ "slug": "help", "access": "members" })).await);
    assert_eq!(page_tokens(&ada).await.len(), 0);
    data(publish(&ada, &agent, &public("help")).await);
    data(ada.delete(&of_agent(&agent)).await);
    assert_eq!(page_tokens(&ada).await.len(), 0, "it goes with the page");
    data(publish(&ada, &agent, &public("help")).await);
    data(ada.delete(&format!("/agents/{agent}")).await);
    assert_eq!(page_tokens(&ada).await.len(), 0, "and with the agent");
}

async fn a_page_without_its_token_or_agent_opens_for_nobody(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = team(&service).await;
    let agent = agent_of(&ada, "Clerk").await;
    assert_eq!(shown_to_a_stranger(&ada, "help").await, StatusCode::NOT_FOUND);
    let opened = async || {
        data(publish(&ada, &agent, &public("help")).await);
        assert_eq!(shown_to_a_stranger(&ada, "help").await, StatusCode::OK);
    };

    opened().await;
    let token = page_tokens(&ada).await.pop().expect("the page's token");
    data(ada.delete(&format!("/api-tokens/{}", id(&token))).await);
    assert_eq!(shown_to_a_stranger(&ada, "help").await, StatusCode::NOT_FOUND);
    opened().await;
    data(ada.delete(&of_agent(&agent)).await);
    assert_eq!(shown_to_a_stranger(&ada, "help").await, StatusCode::NOT_FOUND);

    // Whoever made it answers for it, and when they go, it is closed until somebody else makes it.
    let builder = joined(&service, &ada, "builder").await;
    data(publish(&builder, &agent, &public("help")).await);
    assert_eq!(shown_to_a_stranger(&ada, "help").await, StatusCode::OK);
    let member = format!("/workspaces/{}/members/{}", workspace_of(&ada).await, id(builder.user()));
    data(ada.delete(&member).await);
    assert_eq!(shown_to_a_stranger(&ada, "help").await, StatusCode::NOT_FOUND);
    opened().await;

    data(ada.delete(&format!("/agents/{agent}")).await);
    assert_eq!(shown_to_a_stranger(&ada, "help").await, StatusCode::NOT_FOUND);
}

// --- feedback --------------------------------------------------------------------------------------------------------

fn feedback_of(trace: &str) -> String {
    format!("/traces/{trace}/feedback")
}

/// The ids of the traces in a list.
async fn listed(person: &Client, path: &str) -> Vec<String> {
    let traces = person.read(path).await;
    traces.as_array().expect("a list").iter().map(|trace| id(trace).to_owned()).collect()
}

async fn feedback_is_given_replaced_listed_and_taken_back(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = agent_of(&ada, "Clerk").await;
    let [first, second, third] =
        [asked(&ada, &agent).await, asked(&ada, &agent).await, asked(&ada, &agent).await];
    let (path, shown) = (feedback_of(&first), format!("/traces/{first}"));
    let untouched = ada.read(&shown).await;
    assert_eq!(untouched.get("feedback"), Some(&Value::Null), "{untouched:#}");

    let said = ada.create(&path, &json!({ "rating": -1, "text": " The gate is not named. " })).await;
    let feedback = &said["feedback"];
    assert_eq!((&feedback["rating"], &feedback["text"]), (&json!(-1), &json!("The gate is not named.")));
    assert!(feedback["at"].is_string(), "{feedback:#}");
    assert_eq!(ada.read(&shown).await, said);
    let mut rest = said.clone();
    rest["feedback"] = Value::Null;
    assert_eq!(rest, untouched, "the trace is as it was");

    ada.create(&feedback_of(&second), &json!({ "rating": 1 })).await;
    assert_eq!(listed(&ada, "/traces").await, [third.as_str(), &second, &first]);
    assert_eq!(listed(&ada, "/traces?rating=-1").await, [first.as_str()]);
    assert_eq!(listed(&ada, "/traces?rating=1").await, [second.as_str()]);
    let of_agent = format!("/traces?rating=-1&agentId={agent}");
    assert_eq!(ada.read(&of_agent).await[0]["feedback"], said["feedback"]);
    assert_eq!(listed(&ada, &of_agent).await.len(), 1);
    for wrong in ["0", "2", "bad", ""] {
        let refused = Refused::by(ada.get(&format!("/traces?rating={wrong}")).await);
        assert_eq!(refused.paths(), ["rating"], "{wrong:?}");
    }

    let again = ada.create(&path, &json!({ "rating": 1 })).await;
    assert_eq!((&again["feedback"]["rating"], &again["feedback"]["text"]), (&json!(1), &Value::Null));
    assert_eq!(listed(&ada, "/traces?rating=-1").await, [""; 0], "what was said before is gone");
    assert_eq!(data(ada.delete(&path).await), untouched);
    assert_eq!(
        data(ada.delete(&path).await),
        untouched,
        "there is nothing to take back, which is no failure"
    );
    assert_eq!(listed(&ada, "/traces?rating=1").await, [second.as_str()]);

    for (body, field) in [
        (json!({}), "rating"),
        (json!({ "rating": null }), "rating"),
        (json!({ "rating": 0 }), "rating"),
        (json!({ "rating": 1.5 }), "rating"),
        (json!({ "rating": "1" }), "rating"),
        (json!({ "rating": 1, "text": 5 }), "text"),
        (json!({ "rating": 1, "text": "x".repeat(10_001) }), "text"),
    ] {
        assert_eq!(Refused::by(ada.post(&path, &body).await).paths(), [field], "{body}");
    }
    assert_eq!(ada.read(&shown).await, untouched);
    let longest = "é".repeat(10_000);
    let said = ada.create(&path, &json!({ "rating": 1, "text": longest })).await;
    assert_eq!(said["feedback"]["text"], longest.as_str());
}

async fn feedback_is_given_to_answers_that_one_may_see(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = team(&service).await;
    let agent = agent_of(&ada, "Clerk").await;
    let builder = joined(&service, &ada, "builder").await;
    let (asker, other) = (joined(&service, &ada, "asker").await, joined(&service, &ada, "asker").await);
    let stranger = service.signed_up("stranger@example.com").await;
    let (hers, owners) = (asked(&asker, &agent).await, asked(&ada, &agent).await);
    let good = json!({ "rating": 1, "text": "mine" });

    let said = asker.create(&feedback_of(&hers), &good).await;
    let nobodys = Uuid::now_v7().to_string();
    for (person, trace) in
        [(&other, &hers), (&asker, &owners), (&stranger, &hers), (&asker, &nobodys), (&ada, &nobodys)]
    {
        assert_refused(&person.post(&feedback_of(trace), &good).await, 404, "not_found");
        assert_refused(&person.delete(&feedback_of(trace)).await, 404, "not_found");
    }
    assert_refused(&ada.post(&feedback_of("1"), &good).await, 404, "not_found");
    let signed_out = ada.signed_out().post(&feedback_of(&hers), &good).await;
    assert_eq!(signed_out.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ada.read(&format!("/traces/{hers}")).await, said, "nobody else changed it");
    assert_eq!(ada.read(&format!("/traces/{owners}")).await["feedback"], Value::Null);
    assert_eq!(listed(&other, "/traces?rating=1").await, [""; 0]);

    // Whoever sees everybody's questions may judge the answers.
    let judged = builder.create(&feedback_of(&hers), &json!({ "rating": -1 })).await;
    assert_eq!(asker.read(&format!("/traces/{hers}")).await, judged);
    assert_eq!(listed(&ada, "/traces?rating=-1").await, [hers.as_str()]);
    assert_eq!(data(asker.delete(&feedback_of(&hers)).await)["feedback"], Value::Null);
}

async fn feedback_by_a_token_is_given_to_its_own_answers(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = agent_of(&ada, "Clerk").await;
    let bound = async || {
        let token = json!({ "description": "a script's", "agentId": agent });
        let token = ada.create("/api-tokens", &token).await;
        ada.with_token(token["token"].as_str().expect("a value"))
    };
    let (script, other) = (bound().await, bound().await);
    let (own, makers) = (asked(&script, &agent).await, asked(&ada, &agent).await);
    let bad = json!({ "rating": -1, "text": "The gate is not named." });

    let said = script.create(&feedback_of(&own), &bad).await;
    assert_eq!((&said["feedback"]["rating"], id(&said)), (&json!(-1), own.as_str()));
    assert_eq!(ada.read(&format!("/traces/{own}")).await, said, "its maker sees it");
    assert_eq!(listed(&ada, "/traces?rating=-1").await, [own.as_str()]);
    for (token, trace) in [(&script, &makers), (&other, &own), (&other, &makers)] {
        assert_refused(&token.post(&feedback_of(trace), &bad).await, 404, "not_found");
        assert_refused(&token.delete(&feedback_of(trace)).await, 404, "not_found");
    }
    assert_refused(&script.get("/traces?rating=-1").await, 403, "token_restricted");
    assert_eq!(ada.read(&format!("/traces/{makers}")).await["feedback"], Value::Null);
    assert_eq!(data(script.delete(&feedback_of(&own)).await)["feedback"], Value::Null);
}
