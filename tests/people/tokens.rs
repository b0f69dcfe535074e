//! What API tokens may do: never more than their maker, and less if they were made so.

use std::time::Duration;

use futures::future::join_all;
use lectern_shared::clock::Clock;
use reqwest::{
    Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
        RETRY_AFTER,
    },
};
use serde_json::{Value, json};

use super::{
    Team, api_token, ask, assert_refused, expired_token, ingested, question, quoting_agent, user_id,
};
use crate::support::{
    client::{Client, data, envelope, id, send},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    a_token_may_no_more_than_its_maker,
    a_token_that_is_bound_to_an_agent_asks_that_one_alone,
    a_token_for_pages_answers_its_own_pages_alone,
    a_token_for_pages_tells_strangers_nothing_of_the_people,
    a_workspace_has_a_thousand_tokens_and_no_more,
    a_token_ends_when_it_says,
    a_token_opens_only_so_many_requests_a_minute,
    the_value_of_a_token_is_its_makers_alone,
    a_token_ends_with_the_membership_of_its_maker,
);

const PAGE: &str = "https://www.example.com";
const EVIL: &str = "https://evil.example";

async fn a_token_may_no_more_than_its_maker(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let builder = team.joined(&service, "builder", "builder").await;
    let editor = team.joined(&service, "editor", "editor").await;

    let made = team.owner.create("/api-tokens", &json!({ "description": "a script's" })).await;
    assert_eq!(made["role"], "builder", "it is so when nothing is said: {made:#}");
    let script = ada.with_token(made["token"].as_str().expect("a value"));
    let agent = quoting_agent(&script, "Clerk").await;
    assert_refused(&script.get(&team.path("/audit")).await, 403, "role_required");
    let all = ada.with_token(&api_token(&team.owner, json!({ "role": "owner" })).await);
    all.read(&team.path("/audit")).await;
    // Not even an owner's makes a workspace, or sees another one.
    assert_refused(&all.post("/workspaces", &json!({ "name": "Mine" })).await, 403, "sign_in_required");
    let own = ada.get(&format!("/workspaces/{}", user_id(&ada))).await;
    assert_eq!(own.0, StatusCode::OK);
    assert_refused(&all.get(&format!("/workspaces/{}", user_id(&ada))).await, 404, "not_found");

    let body = json!({ "description": "a script's", "role": "owner" });
    assert_refused(&builder.post("/api-tokens", &body).await, 403, "role_required");
    assert_refused(&script.post("/api-tokens", &body).await, 403, "role_required");
    let body = json!({ "description": "a script's" });
    assert_refused(&editor.post("/api-tokens", &body).await, 403, "role_required");

    let asking = ada.with_token(&api_token(&builder, json!({ "role": "asker" })).await);
    assert_eq!(ask(&asking, &agent, "Well?").await.0, StatusCode::OK);
    assert_refused(&asking.get("/documents").await, 403, "role_required");
    let building = ada.with_token(&api_token(&builder, json!({})).await);
    building.read("/prompts").await;
    team.give(&builder, "editor").await;
    assert_refused(&building.get("/prompts").await, 403, "role_required");
    building.read("/documents").await;
    team.give(&builder, "builder").await;
    building.read("/prompts").await;
}

async fn a_token_that_is_bound_to_an_agent_asks_that_one_alone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let document = ingested(&team.owner, "Rules", "The gate opens at nine.").await;
    let agent = quoting_agent(&team.owner, "Clerk").await;
    team.owner.link(&agent, &document).await;
    let other = quoting_agent(&team.owner, "Usher").await;
    let elsewhere = quoting_agent(&ada, "Elsewhere").await;
    let body = json!({ "description": "a script's", "agentId": elsewhere });
    assert_refused(&team.owner.post("/api-tokens", &body).await, 404, "not_found");

    let bound = ada.with_token(&api_token(&team.owner, json!({ "agentId": agent })).await);
    let (status, answer) = ask(&bound, &agent, "When does the gate open?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert!(answer["data"].as_str().expect("an answer").contains("nine"), "{answer:#}");
    let trace = id(&answer["trace"]).to_owned();
    bound.read(&format!("/traces/{trace}")).await;
    assert_refused(&ask(&bound, &other, "When does the gate open?").await, 403, "token_restricted");
    for path in ["/agents", "/documents", "/api-tokens", "/users/me", "/workspaces", "/agent-documents"] {
        assert_refused(&bound.get(path).await, 403, "token_restricted");
    }
    assert_refused(&bound.get(&format!("/agents/{agent}")).await, 403, "token_restricted");
    assert_refused(&bound.post("/search", &json!({ "query": "gate" })).await, 403, "token_restricted");
    // Its own header says the same as any other.
    let path = format!("/api/v1/agents/{other}/predict");
    let request = ada.request_outside(Method::POST, &path).json(&question("Well?"));
    let answer = envelope(send(request.header("X_SERVICE_API_KEY", bound.token())).await).await;
    assert_refused(&answer, 403, "token_restricted");

    let kept = team.owner.create("/api-tokens", &json!({ "description": "a script's" })).await;
    data(team.owner.delete(&format!("/agents/{agent}")).await);
    assert_refused(&bound.get(&format!("/traces/{trace}")).await, 401, "unauthorized");
    let left = team.owner.read("/api-tokens").await;
    let left: Vec<&str> = left.as_array().expect("a list").iter().map(id).collect();
    assert_eq!(left, [id(&kept)], "what was bound to the agent went with it");
    let log = team.owner.read(&team.path("/audit?limit=2")).await;
    let noted = [&log[0]["action"], &log[1]["action"]];
    assert_eq!(noted, [&json!("token_deleted"), &json!("deleted")], "{log:#}");
}

/// A question whether a page may ask an agent.
async fn preflight(client: &Client, origin: &str, agent: &str) -> Response {
    let request = client.request_outside(Method::OPTIONS, &format!("/api/v1/agents/{agent}/predict"));
    let request = request.header(ORIGIN, origin).header(ACCESS_CONTROL_REQUEST_METHOD, "POST");
    send(request.header(ACCESS_CONTROL_REQUEST_HEADERS, "content-type,x-service-api-key")).await
}

/// The origin whose pages may read an answer.
fn allowed(answer: &Response) -> Option<String> {
    let origin = answer.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN)?;
    Some(origin.to_str().expect("text").to_owned())
}

async fn a_token_for_pages_answers_its_own_pages_alone(mode: Mode) {
    let service = Service::in_mode(mode).without("LECTERN_CORS_ORIGINS").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = quoting_agent(&ada, "Clerk").await;
    let fields = json!({ "agentId": agent, "origins": ["HTTPS://www.Example.com:443/"], "role": "asker" });
    let mut body = fields.clone();
    body["description"] = json!("for our pages");
    let made = ada.create("/api-tokens", &body).await;
    assert_eq!(made["origins"], json!([PAGE]), "as browsers write it: {made:#}");
    let script = ada.with_token(made["token"].as_str().expect("a value"));

    let answer = preflight(&ada, PAGE, &agent).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    assert_eq!(allowed(&answer).as_deref(), Some(PAGE));
    for origin in [EVIL, "http://www.example.com", "https://www.example.com:8443", "null"] {
        assert_eq!(allowed(&preflight(&ada, origin, &agent).await), None, "{origin}");
    }

    let predict = || {
        let path = format!("/agents/{agent}/predict");
        script.request(Method::POST, &path).json(&question("Well?"))
    };
    let answer = send(predict().header(ORIGIN, PAGE)).await;
    assert_eq!(allowed(&answer).as_deref(), Some(PAGE));
    assert_eq!(envelope(answer).await.0, StatusCode::OK);
    for origin in [EVIL, "null", "https://www.example.com.evil.example"] {
        let answer = envelope(send(predict().header(ORIGIN, origin)).await).await;
        assert_refused(&answer, 403, "origin_refused");
    }
    assert_eq!(envelope(send(predict()).await).await.0, StatusCode::OK, "no page sends it");
    for origins in [
        json!([]),
        json!(["www.example.com"]),
        json!(["https://www.example.com/path"]),
        json!(["https://x;script-src"]),
        json!("*"),
    ] {
        let body = json!({ "description": "for our pages", "origins": origins });
        assert_refused(&ada.post("/api-tokens", &body).await, 422, "invalid_fields");
    }

    // Each once; and none that is longer than an origin can be.
    let twice = json!(["https://b.example", PAGE, "https://a.example", "https://a.example:443"]);
    let made = ada.create("/api-tokens", &json!({ "description": "for our pages", "origins": twice })).await;
    assert_eq!(made["origins"], json!(["https://a.example", "https://b.example", PAGE]));
    let long = format!("https://{}example", "a.".repeat(140));
    let body = json!({ "description": "for our pages", "origins": [PAGE, long] });
    let answer = ada.post("/api-tokens", &body).await;
    assert_refused(&answer, 422, "invalid_fields");
    let field = &answer.1["error"]["fields"][0];
    assert_eq!(field["path"], "origins.1", "{field:#}");
    assert!(field["message"].as_str().is_some_and(|message| message.contains("270 bytes")), "{field:#}");
}

async fn a_token_for_pages_tells_strangers_nothing_of_the_people(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    team.joined(&service, "bob", "builder").await;
    for role in ["asker", "owner"] {
        let page = api_token(&team.owner, json!({ "origins": [PAGE], "role": role })).await;
        let page = ada.with_token(&page);
        page.read("/agents").await;
        let own = [team.path(""), team.path("/members"), "/workspaces".to_owned(), "/traces".to_owned()];
        for path in own {
            let answer = page.get(&path).await;
            assert_refused(&answer, 403, "token_restricted");
            assert!(!answer.1.to_string().contains("@example.com"), "{path}: {:#}", answer.1);
        }
    }
    let script = ada.with_token(&api_token(&team.owner, json!({ "role": "asker" })).await);
    let members = script.read(&team.path("/members")).await;
    assert_eq!(members.as_array().map(Vec::len), Some(2), "{members:#}");
}

async fn a_workspace_has_a_thousand_tokens_and_no_more(mode: Mode) {
    const AT_ONCE: usize = 40;
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let body = json!({ "description": "a script's" });
    let mut last = Value::Null;
    for _ in 0..1_000 / AT_ONCE {
        let made = join_all((0..AT_ONCE).map(|_| ada.create("/api-tokens", &body))).await;
        last = made.into_iter().next_back().expect("a token");
    }
    assert_refused(&ada.post("/api-tokens", &body).await, 409, "too_many_tokens");
    // That of a published page does not count: it hangs on its agent.
    let agent = quoting_agent(&ada, "Clerk").await;
    let page = json!({ "slug": "clerk", "access": "public" });
    let published = ada.request(Method::PUT, &format!("/agents/{agent}/publication")).json(&page);
    data(envelope(send(published).await).await);
    data(ada.delete(&format!("/api-tokens/{}", id(&last))).await);
    ada.create("/api-tokens", &body).await;
    assert_refused(&ada.post("/api-tokens", &body).await, 409, "too_many_tokens");
}

async fn a_token_ends_when_it_says(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let now = Clock::system().now();
    let past = now.minus(Duration::from_mins(1)).to_string();
    for end in [past.as_str(), "2020-01-31T08:00:00Z", "tomorrow", ""] {
        let answer = ada.post("/api-tokens", &json!({ "description": "late", "expiresAt": end })).await;
        assert_refused(&answer, 422, "invalid_fields");
        assert_eq!(answer.1["error"]["fields"][0]["path"], "expiresAt", "{end}: {:#}", answer.1);
    }
    let end = now.plus(Duration::from_hours(1)).to_string();
    let made = ada.create("/api-tokens", &json!({ "description": "for now", "expiresAt": end })).await;
    assert_eq!(made["expiresAt"], end.as_str());
    ada.with_token(made["token"].as_str().expect("a value")).read("/agents").await;
    // Nor does what it gives outlast it.
    let team = Team::of(&ada, "Archive").await;
    let owner = api_token(&team.owner, json!({ "role": "owner", "expiresAt": end })).await;
    let (invitation, invitations) = (json!({ "role": "owner" }), team.path("/invitations"));
    let refused = team.owner.with_token(&owner).post(&invitations, &invitation).await;
    assert_refused(&refused, 403, "token_restricted");
    let owner = api_token(&team.owner, json!({ "role": "owner" })).await;
    team.owner.with_token(&owner).create(&invitations, &invitation).await;
    let ended = expired_token(&ada).await;
    assert_refused(&ada.with_token(&ended).get("/agents").await, 401, "unauthorized");
}

async fn a_token_opens_only_so_many_requests_a_minute(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let slow = ada.with_token(&api_token(&ada, json!({ "ratePerMinute": 1 })).await);
    slow.read("/agents").await;
    let answer = send(slow.request(Method::GET, "/agents")).await;
    let wait = answer.headers().get(RETRY_AFTER).map(|wait| wait.to_str().expect("text").to_owned());
    let wait: u64 = wait.expect("how long to wait").parse().expect("whole seconds");
    assert!((1..=60).contains(&wait), "{wait}");
    assert_refused(&envelope(answer).await, 429, "rate_limited");
    // It is that token's limit, and nobody else's.
    ada.with_token(&api_token(&ada, json!({ "ratePerMinute": 1 })).await).read("/agents").await;
    ada.read("/agents").await;
}

async fn the_value_of_a_token_is_its_makers_alone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let carol = team.joined(&service, "carol", "builder").await;
    let made = bob.create("/api-tokens", &json!({ "description": "bob's" })).await;
    let value = made["token"].as_str().expect("a value");
    let path = format!("/api-tokens/{}", id(&made));
    assert_eq!(bob.read(&path).await["token"], value);
    for other in [&carol, &team.owner] {
        let shown = other.read(&path).await;
        assert_eq!((&shown["token"], &shown["description"]), (&json!(""), &json!("bob's")), "{shown:#}");
        let listed: Value = other.read("/api-tokens").await;
        assert!(!listed.to_string().contains(value), "{listed:#}");
    }
    // A script of the owner's may end what the owner may, and a builder what builders may.
    let of_owner = team.owner.create("/api-tokens", &json!({ "description": "hers", "role": "owner" })).await;
    let answer = carol.delete(&format!("/api-tokens/{}", id(&of_owner))).await;
    assert_refused(&answer, 403, "role_required");
    let message = answer.1["error"]["message"].as_str().expect("a sentence");
    assert!(message.contains("cannot delete"), "{message}");
    assert!(!answer.1.to_string().contains(of_owner["token"].as_str().expect("a value")));
    let gone = data(carol.delete(&path).await);
    assert_eq!(gone["token"], "", "{gone:#}");
    assert_eq!(bob.with_token(value).get("/agents").await.0, StatusCode::UNAUTHORIZED);
}

async fn a_token_ends_with_the_membership_of_its_maker(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let (of_team, own) = (
        api_token(&bob, json!({})).await,
        service.client().sign_in("bob@example.com", crate::support::client::PASSWORD).await,
    );
    let of_own = own.with_token(&api_token(&own, json!({})).await);
    let of_team = ada.with_token(&of_team);
    of_team.read("/documents").await;
    team.remove(&bob).await;
    assert_refused(&of_team.get("/documents").await, 401, "unauthorized");
    assert_eq!(team.owner.read("/api-tokens").await, json!([]), "it is gone");
    let log = team.owner.read(&team.path("/audit?limit=2")).await;
    let noted = [&log[0]["action"], &log[1]["action"]];
    assert_eq!(noted, [&json!("token_deleted"), &json!("member_removed")], "{log:#}");
    of_own.read("/documents").await;
    // Coming back brings nothing of it back.
    team.join(&own, "builder").await;
    assert_refused(&of_team.get("/documents").await, 401, "unauthorized");
}
