//! Events on their way to receivers.

use lectern_shared::{
    clock::Timestamp,
    ids::{WebhookId, WorkspaceId},
    model::webhook::{DeliveryState, Webhook, WebhookAddress, WebhookEvent},
};
use serde_json::json;

use crate::{
    Db,
    testing::{at, both, commit, finished_or_blocked, workspace},
    tests::sealed::webhook,
    webhooks::{self, AttemptResult},
};

async fn added(db: &Db, workspace: WorkspaceId) -> WebhookId {
    let webhook = webhook(workspace, Some(b"https://a.example, sealed"));
    commit!(db, |tx| webhooks::insert(tx, &webhook));
    webhook.id
}

/// Switches a webhook on or off, as whoever has it does.
async fn set_active(db: &Db, workspace: WorkspaceId, id: WebhookId, active: bool) {
    let webhook = webhooks::find(db, workspace, id).await.unwrap().unwrap();
    commit!(db, |tx| webhooks::update(tx, &Webhook { active, ..webhook }));
}

/// What is due, as the numbers that it tells, by webhook.
async fn due(db: &Db, now: Timestamp, limit: u32) -> Vec<(WebhookId, String)> {
    let number = |due: webhooks::DueDelivery| {
        let body: serde_json::Value = serde_json::from_str(&due.delivery.body).unwrap();
        (due.delivery.webhook_id, body["data"]["number"].to_string())
    };
    webhooks::due(db, now, limit).await.unwrap().into_iter().map(number).collect()
}

/// Tries everything that is due, as the receiver takes it or does not; the numbers of what was tried.
async fn try_due(db: &Db, now: Timestamp, is_there: bool, pause: u64) -> Vec<String> {
    let mut tried = Vec::new();
    loop {
        let due = webhooks::due(db, now, 100).await.unwrap();
        if due.is_empty() {
            return tried;
        }
        for delivery in due.into_iter().map(|due| due.delivery) {
            let again = now.plus(std::time::Duration::from_mins(1));
            assert!(commit!(db, |tx| webhooks::claim(tx, &delivery, again)));
            let retry_at = now.plus(std::time::Duration::from_secs(pause));
            let result = AttemptResult {
                status: is_there.then_some(200),
                error: (!is_there).then_some("it does not answer"),
                retry_at: (!is_there).then_some(retry_at),
            };
            commit!(db, |tx| webhooks::finish(tx, delivery.id, delivery.attempts + 1, &result, now));
            let body: serde_json::Value = serde_json::from_str(&delivery.body).unwrap();
            tried.push(body["data"]["number"].to_string());
        }
    }
}

#[tokio::test]
async fn a_receiver_that_was_away_for_an_hour_gets_everything_in_order() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let webhook = added(&t.db, owner).await;
        for number in 0..5 {
            let data = json!({ "number": number });
            let event = WebhookEvent::DocumentDeleted;
            commit!(t.db, |tx| webhooks::emit(tx, owner, event, &data, at(number)));
        }
        let all = ["0", "1", "2", "3", "4"];
        // The pauses of the schedule, as far as they go into the hour.
        let mut now = 10;
        for pause in [5, 5 * 60, 30 * 60, 2 * 60 * 60] {
            assert_eq!(try_due(&t.db, at(now), false, pause).await, all, "{} at {now}", t.name);
            assert!(try_due(&t.db, at(now + pause - 1), true, 0).await.is_empty(), "{} at {now}", t.name);
            now += pause;
        }
        assert!(now > 3_600);
        assert_eq!(try_due(&t.db, at(now), true, 0).await, all, "{}: none is lost", t.name);
        let told = webhooks::deliveries(&t.db, owner, webhook, uuid::Uuid::max().into(), 100).await.unwrap();
        assert!(
            told.iter().all(|told| (told.state, told.attempts) == (DeliveryState::Delivered, 5)),
            "{}: {told:#?}",
            t.name
        );
    }
}

#[tokio::test]
async fn of_each_webhook_the_two_that_wait_longest_are_due_and_of_one_that_is_off_only_tests() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (busy, off) = (added(&t.db, owner).await, added(&t.db, owner).await);
        let deliver = async |webhook, event, number: u64| {
            let data = json!({ "number": number });
            commit!(t.db, |tx| webhooks::deliver(tx, owner, webhook, event, &data, at(number)));
        };
        for number in [5, 1, 3, 2] {
            deliver(busy, WebhookEvent::DocumentDeleted, number).await;
            deliver(off, WebhookEvent::DocumentDeleted, number).await;
        }
        for number in [6, 7, 8] {
            deliver(off, WebhookEvent::Test, number).await;
        }
        set_active(&t.db, owner, off, false).await;
        let told = |webhook, number: u64| (webhook, number.to_string());
        let all = [told(busy, 1), told(busy, 2), told(off, 6), told(off, 7)];
        assert_eq!(due(&t.db, at(50), 100).await, all, "{}", t.name);
        assert_eq!(due(&t.db, at(50), 3).await, all[..3], "{}", t.name);
        assert_eq!(due(&t.db, at(1), 100).await, all[..1], "{}: the others wait", t.name);
        set_active(&t.db, owner, off, true).await;
        assert!(due(&t.db, at(50), 100).await.contains(&told(off, 1)), "{}: it was kept", t.name);
    }
}

#[tokio::test]
async fn many_receivers_of_one_workspace_that_hang_hide_nothing_of_anothers() {
    for t in &both().await {
        let (ours, theirs) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let deliver = async |owner, webhook, number: u64| {
            let (event, data) = (WebhookEvent::DocumentDeleted, json!({ "number": number }));
            commit!(t.db, |tx| webhooks::deliver(tx, owner, webhook, event, &data, at(number)));
        };
        let mut hanging = Vec::new();
        for number in 0..20 {
            let webhook = added(&t.db, ours).await;
            for later in [0, 20, 40] {
                deliver(ours, webhook, number + later).await;
            }
            hanging.push(webhook);
        }
        let newcomer = added(&t.db, theirs).await;
        deliver(theirs, newcomer, 90).await;
        let told = |webhook, number: u64| (webhook, number.to_string());
        let oldest = [0, 1, 2, 3].map(|number| told(hanging[number], number as u64));
        let mut expected = oldest.to_vec();
        expected.push(told(newcomer, 90));
        assert_eq!(due(&t.db, at(100), 10).await, expected, "{}", t.name);
        // Those that are under way leave their places to the next.
        for delivery in webhooks::due(&t.db, at(100), 4).await.unwrap() {
            assert!(commit!(t.db, |tx| webhooks::claim(tx, &delivery.delivery, at(200))), "{}", t.name);
        }
        let next = due(&t.db, at(100), 10).await;
        assert_eq!((next.len(), next.last()), (5, expected.last()), "{}: {next:?}", t.name);
        assert!(oldest.iter().all(|begun| !next.contains(begun)), "{}: {next:?}", t.name);
    }
}

#[tokio::test]
async fn tests_that_wait_are_counted_until_they_have_ended() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (tried, other) = (added(&t.db, owner).await, added(&t.db, owner).await);
        for (webhook, event) in [
            (tried, WebhookEvent::Test),
            (tried, WebhookEvent::DocumentDeleted),
            (tried, WebhookEvent::Test),
            (other, WebhookEvent::Test),
        ] {
            let data = json!({ "number": 1 });
            commit!(t.db, |tx| webhooks::deliver(tx, owner, webhook, event, &data, at(1)));
        }
        assert_eq!(commit!(t.db, |tx| webhooks::waiting_tests(tx, tried)), 2, "{}", t.name);
        // One that is tried again waits.
        try_due(&t.db, at(2), false, 5).await;
        assert_eq!(commit!(t.db, |tx| webhooks::waiting_tests(tx, tried)), 2, "{}", t.name);
        try_due(&t.db, at(60), true, 0).await;
        assert_eq!(commit!(t.db, |tx| webhooks::waiting_tests(tx, tried)), 0, "{}", t.name);
    }
}

/// Else whatever waits for one webhook that is off or away would be read after each delivery to another.
#[tokio::test]
async fn what_is_due_is_found_without_reading_all_that_waits() {
    let plan = both().await[0].query_plan(webhooks::DUE).await;
    // Its first entry, by the index, is where the next webhook is found.
    let first = "SCAN webhook_deliveries USING ";
    let reads = |step: &&String| {
        ["SCAN d", "SCAN p", "SCAN w"].iter().any(|scan| step.starts_with(scan))
            && !(step.starts_with(first) && step.contains("webhook_deliveries_next"))
            && !step.starts_with("SCAN waiting")
    };
    assert_eq!(plan.iter().find(reads), None, "{plan:#?}");
    for index in ["webhook_deliveries_next (webhook_id=?", "webhook_deliveries_tests (webhook_id=?"] {
        assert!(plan.iter().any(|step| step.contains(index)), "{index}: {plan:#?}");
    }
}

#[tokio::test]
async fn a_receiver_that_is_gone_switches_off_no_webhook_that_has_another_by_now() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let id = added(&t.db, owner).await;
        let state = async || {
            let webhook = webhooks::find(&t.db, owner, id).await.unwrap().unwrap();
            (webhook.active, webhook.disabled)
        };
        let off = (false, Some("410".to_owned()));
        let sealed = |text: &[u8]| WebhookAddress { url: String::new(), url_sealed: Some(text.to_vec()) };
        let plain = |url: &str| WebhookAddress { url: url.to_owned(), url_sealed: None };
        for before in [sealed(b"https://before.example, sealed"), plain("https://a.example"), plain("")] {
            commit!(t.db, |tx| webhooks::disable(tx, id, &before, "410", at(1)));
            assert_eq!(state().await, (true, None), "{}", t.name);
        }
        let now = sealed(b"https://a.example, sealed");
        commit!(t.db, |tx| webhooks::disable(tx, id, &now, "410", at(1)));
        assert_eq!(state().await, off, "{}", t.name);
        // As those from before addresses were sealed are.
        let old = webhook(owner, None);
        commit!(t.db, |tx| webhooks::insert(tx, &old));
        let is_active = async || webhooks::find(&t.db, owner, old.id).await.unwrap().unwrap().active;
        for (address, active) in
            [(now, true), (plain("https://before.example"), true), (plain("https://a.example"), false)]
        {
            commit!(t.db, |tx| webhooks::disable(tx, old.id, &address, "410", at(1)));
            assert_eq!(is_active().await, active, "{}", t.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_happens_while_a_webhook_is_deleted_happens_and_is_told_to_the_others() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (gone, kept) = (added(&t.db, owner).await, added(&t.db, owner).await);
        let mut deleting = t.db.begin().await.unwrap();
        assert!(webhooks::delete(&mut deleting, owner, gone).await.unwrap(), "{}", t.name);
        let telling = tokio::spawn({
            let db = t.db.clone();
            async move {
                let data = json!({ "number": 1 });
                commit!(db, |tx| webhooks::emit(tx, owner, WebhookEvent::DocumentDeleted, &data, at(1)));
            }
        });
        finished_or_blocked(&t.db, &telling).await;
        deleting.commit().await.unwrap();
        telling.await.unwrap();
        assert_eq!(due(&t.db, at(1), 9).await, [(kept, "1".to_owned())], "{}", t.name);
    }
}
