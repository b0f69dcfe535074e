//! Webhooks of somebody who is a member no more, or may build nothing any more.

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Team, ingested};
use crate::support::{
    client::{Client, PASSWORD, data, id},
    in_both_modes,
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(
    what_a_removed_member_set_up_tells_nothing_until_somebody_answers_for_it,
    a_webhook_stops_with_the_account_and_with_whoever_leaves,
    a_webhook_stops_with_the_role_that_builds,
    no_webhook_is_on_whose_maker_went_while_it_was_made,
);

/// Makes a webhook, and returns its path.
async fn webhook(maker: &Client, url: &str) -> String {
    let made = maker.create("/webhooks", &json!({ "url": url, "events": ["document.deleted"] })).await;
    format!("/webhooks/{}", id(&made))
}

/// Whether a webhook is on, and why it is off.
async fn state(owner: &Client, webhook: &str) -> (bool, Option<String>) {
    let shown = owner.read(webhook).await;
    (shown["active"].as_bool().expect("on or off"), shown["disabled"].as_str().map(str::to_owned))
}

/// Has something happen, and returns how much a webhook was told of, or is to be.
async fn told_of_another_deletion(owner: &Client, webhook: &str) -> usize {
    let document = ingested(owner, "Note", "The gate opens at nine.").await;
    data(owner.delete(&format!("/documents/{document}")).await);
    owner.read(&format!("{webhook}/deliveries")).await.as_array().expect("a list").len()
}

#[track_caller]
fn assert_off((active, why): &(bool, Option<String>)) {
    assert!(!active);
    assert!(why.as_deref().is_some_and(|why| why.contains("member no more")), "{why:?}");
}

async fn what_a_removed_member_set_up_tells_nothing_until_somebody_answers_for_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let owner = &team.owner;
    let web = Web::start().await;
    let [hers, his] = ["/hers", "/his"].map(|at| web.serve(at, "text/plain", ""));
    let made_by_him = webhook(&bob, &his).await;
    let pointed_by_him = webhook(owner, &hers).await;
    data(bob.patch(&pointed_by_him, &json!({ "url": his })).await);
    let pointed_by_her = webhook(&bob, &his).await;
    data(owner.patch(&pointed_by_her, &json!({ "url": hers })).await);
    // What was off already stays so, without a word.
    let off_before = webhook(&bob, &his).await;
    data(bob.patch(&off_before, &json!({ "active": false })).await);

    team.remove(&bob).await;
    for stopped in [&made_by_him, &pointed_by_him] {
        assert_off(&state(owner, stopped).await);
    }
    assert_eq!(state(owner, &pointed_by_her).await, (true, None));
    assert_eq!(state(owner, &off_before).await, (false, None));
    let log = owner.read(&team.path("/audit?limit=3")).await;
    let noted: Vec<&Value> = log.as_array().expect("a list").iter().map(|line| &line["action"]).collect();
    assert_eq!(noted, ["webhook_disabled", "webhook_disabled", "member_removed"], "{log:#}");
    assert_eq!(told_of_another_deletion(owner, &made_by_him).await, 0);
    assert_eq!(told_of_another_deletion(owner, &pointed_by_her).await, 2);

    // Why it is off stays to be read, whatever else is changed.
    data(owner.patch(&made_by_him, &json!({ "events": ["document.deleted"], "active": false })).await);
    assert_off(&state(owner, &made_by_him).await);
    data(owner.patch(&made_by_him, &json!({ "active": true })).await);
    assert_eq!(state(owner, &made_by_him).await, (true, None));
    assert_eq!(owner.read(&team.path("/audit?limit=1")).await[0]["action"], "webhook_enabled");
    assert_eq!(told_of_another_deletion(owner, &made_by_him).await, 1);
    // Whoever switched it on answers for it from then on, though its maker comes and goes.
    let again = service.client().sign_in("bob@example.com", PASSWORD).await;
    team.join(&again, "builder").await;
    team.remove(&bob).await;
    assert_eq!(state(owner, &made_by_him).await, (true, None));
}

async fn a_webhook_stops_with_the_account_and_with_whoever_leaves(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let carol = team.joined(&service, "carol", "builder").await;
    let web = Web::start().await;
    let url = web.serve("/told", "text/plain", "");
    let (of_bob, of_carol) = (webhook(&bob, &url).await, webhook(&carol, &url).await);
    data(bob.delete(&team.member(&bob)).await);
    assert_off(&state(&team.owner, &of_bob).await);
    assert_eq!(state(&team.owner, &of_carol).await, (true, None));
    data(carol.delete_with("/users/me", &json!({ "password": PASSWORD })).await);
    assert_off(&state(&team.owner, &of_carol).await);
}

async fn a_webhook_stops_with_the_role_that_builds(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let bob = team.joined(&service, "bob", "builder").await;
    let owner = &team.owner;
    let web = Web::start().await;
    let url = web.serve("/told", "text/plain", "");
    let (his, hers) = (webhook(&bob, &url).await, webhook(owner, &url).await);
    for role in ["owner", "builder"] {
        team.give(&bob, role).await;
        assert_eq!(state(owner, &his).await, (true, None), "{role}");
    }
    team.give(&bob, "editor").await;
    let (active, why) = state(owner, &his).await;
    assert!(!active && why.as_deref().is_some_and(|why| why.contains("builds here no more")), "{why:?}");
    assert_eq!(state(owner, &hers).await, (true, None));
    let log = owner.read(&team.path("/audit?limit=2")).await;
    let noted = [&log[0]["action"], &log[1]["action"]];
    assert_eq!(noted, ["webhook_disabled", "role_changed"], "{log:#}");
    assert_eq!(told_of_another_deletion(owner, &his).await, 0);
    // Whoever builds again answers for it by switching it on.
    team.give(&bob, "builder").await;
    assert!(!state(owner, &his).await.0);
    data(bob.patch(&his, &json!({ "active": true })).await);
    assert_eq!(state(owner, &his).await, (true, None));
}

async fn no_webhook_is_on_whose_maker_went_while_it_was_made(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let web = Web::start().await;
    let made = json!({ "url": web.serve("/told", "text/plain", ""), "events": ["document.deleted"] });
    let mut makers = Vec::new();
    for number in 0..8 {
        makers.push(team.joined(&service, &format!("maker-{number}"), "builder").await);
    }
    let (team, made) = (&team, &made);
    join_all(makers.iter().enumerate().map(|(number, maker)| async move {
        let end = async {
            if number % 2 == 0 {
                team.remove(maker).await;
            } else {
                team.give(maker, "editor").await;
            }
        };
        let ((status, body), ()) = tokio::join!(maker.post("/webhooks", made), end);
        let known = [StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND];
        assert!(known.contains(&status), "{status}: {body:#}");
    }))
    .await;
    let left = team.owner.read("/webhooks").await;
    assert!(left.as_array().expect("a list").iter().all(|webhook| webhook["active"] == false), "{left:#}");
}
