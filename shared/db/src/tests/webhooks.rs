//! Events on their way to receivers.

use lectern_shared::{
    clock::Timestamp,
    ids::{WebhookId, WorkspaceId},
    model::{
        Json,
        webhook::{DeliveryState, Webhook, WebhookEvent},
    },
};
use serde_json::json;

use crate::{
    Db,
    testing::{at, both, commit, made_in, workspace},
    webhooks::{self, AttemptResult},
};

async fn added(db: &Db, workspace: WorkspaceId) -> WebhookId {
    let webhook = Webhook {
        id: WebhookId::generate(),
        owner: made_in(workspace),
        url: "https://a.example".to_owned(),
        events: Json(vec![WebhookEvent::DocumentDeleted]),
        active: true,
        secret_sealed: b"sealed".to_vec(),
        disabled: None,
        created_at: at(0),
        updated_at: at(0),
    };
    commit!(db, |tx| webhooks::insert(tx, &webhook));
    webhook.id
}

/// Tries everything that is due, as the receiver takes it or does not; the numbers of what was tried.
async fn try_due(db: &Db, now: Timestamp, is_there: bool, pause: u64) -> Vec<String> {
    let mut tried = Vec::new();
    loop {
        let due = webhooks::due(db, now, 2, 100).await.unwrap();
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
