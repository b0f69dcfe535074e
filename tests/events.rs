//! Following an ingestion.

use futures::{StreamExt, future::join_all};
use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::support::{
    client::{Client, data, envelope, id, send},
    in_both_modes,
    service::{Mode, Service},
    web::Web,
    within_deadline,
};

in_both_modes!(
    an_ingestion_is_followed_until_it_has_succeeded,
    an_ingestion_is_followed_until_it_has_failed_or_was_cancelled,
    all_who_follow_are_told_of_their_own_however_many_they_are,
    a_stream_ends_when_its_document_is_deleted,
    another_users_ingestion_cannot_be_followed,
    a_shutdown_does_not_wait_for_followers
);

/// The events of a document, read as they come.
struct Events {
    body: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<axum::body::Bytes>> + Send>>,
    text: String,
}

impl Events {
    async fn of(client: &Client, document: &str) -> Self {
        let answer = send(client.request(Method::GET, &format!("/documents/{document}/events"))).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/event-stream");
        assert_eq!(answer.headers()["x-accel-buffering"], "no", "a proxy would gather them to the end");
        Self { body: Box::pin(answer.bytes_stream()), text: String::new() }
    }

    /// The next event: its name and its data. `None` at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        let event = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let (event, rest) = (event.to_owned(), rest.to_owned());
                    self.text = rest;
                    if !event.starts_with(':') {
                        return Some(event);
                    }
                } else {
                    let part = self.body.next().await?.expect("a stream that does not break");
                    self.text.push_str(std::str::from_utf8(&part).expect("UTF-8"));
                }
            }
        };
        let event = within_deadline("an event", event).await?;
        let (name, data) = event.split_once('\n').expect("a name and data");
        let name = name.strip_prefix("event: ").expect("a name");
        let data = data.strip_prefix("data: ").expect("data");
        Some((name.to_owned(), serde_json::from_str(data).expect("JSON")))
    }

    /// Everything that is still to come.
    async fn rest(mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn statuses(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(_, data)| data["status"].as_str().expect("a status")).collect()
}

async fn an_ingestion_is_followed_until_it_has_succeeded(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "The text.");
    let document = ada.create_document(&json!({ "name": "A", "type": "TXT", "url": url })).await;
    web.wait_for_hits("/slow.txt", 1).await;

    let mut events = Events::of(&ada, id(&document)).await;
    let (name, first) = events.next().await.expect("one at once");
    assert_eq!((name.as_str(), &first["status"]), ("ingestion", &json!("RUNNING")));
    gate.release();
    let events = events.rest().await;
    assert!(events.iter().all(|(name, _)| name == "ingestion"), "{events:?}");
    assert!(events.windows(2).all(|pair| pair[0] != pair[1]), "only what changed is sent: {events:?}");
    let (last, earlier) = events.split_last().expect("an end");
    assert!(statuses(earlier).iter().all(|status| *status == "RUNNING"), "{earlier:?}");
    assert_eq!(last.1["status"], "SUCCEEDED");
    let document = ada.read(&format!("/documents/{}", id(&document))).await;
    assert_eq!(last.1, document["ingestion"], "it is what the document shows");

    let finished = Events::of(&ada, id(&document)).await.rest().await;
    assert_eq!(statuses(&finished), ["SUCCEEDED"], "one that has ended is told at once");
}

async fn an_ingestion_is_followed_until_it_has_failed_or_was_cancelled(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let gone = web.status("/gone.txt", 404);
    let document = ada.create_document(&json!({ "name": "A", "type": "TXT", "url": gone })).await;
    let events = Events::of(&ada, id(&document)).await.rest().await;
    let (_, last) = events.last().expect("an event");
    assert_eq!((&last["status"], &last["error"]["code"]), (&json!("FAILED"), &json!("not_found")));

    let (url, gate) = web.gate("/slow.txt", "text/plain", "The text.");
    let document = ada.create_document(&json!({ "name": "B", "type": "TXT", "url": url })).await;
    web.wait_for_hits("/slow.txt", 1).await;
    let mut events = Events::of(&ada, id(&document)).await;
    events.next().await.expect("one at once");
    data(ada.post(&format!("/documents/{}/cancel", id(&document)), &json!({})).await);
    let events = events.rest().await;
    assert_eq!(statuses(&events).last(), Some(&"CANCELLED"), "{events:?}");
    gate.release();
}

async fn all_who_follow_are_told_of_their_own_however_many_they_are(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let web = Web::start().await;
    let (slow, gate) = web.gate("/slow.txt", "text/plain", "The text.");
    let document = ada.create_document(&json!({ "name": "A", "type": "TXT", "url": slow })).await;
    let never = web.hang("/never.txt");
    let other = grace.create_document(&json!({ "name": "B", "type": "TXT", "url": never })).await;
    web.wait_for_hits("/slow.txt", 1).await;
    let mut hers = Events::of(&grace, id(&other)).await;
    hers.next().await.expect("one at once");
    let mut followers = join_all((0..20).map(|_| Events::of(&ada, id(&document)))).await;
    for follower in &mut followers {
        follower.next().await.expect("one at once");
    }
    gate.release();
    for events in join_all(followers.into_iter().map(Events::rest)).await {
        assert_eq!(statuses(&events).last(), Some(&"SUCCEEDED"), "{events:?}");
    }
    data(grace.delete(&format!("/documents/{}", id(&other))).await);
    let hers = hers.rest().await;
    let (last, earlier) = hers.split_last().expect("an end");
    assert!(!statuses(earlier).contains(&"SUCCEEDED"), "{earlier:?}");
    assert_eq!((last.0.as_str(), &last.1["id"]), ("deleted", &other["id"]));
}

async fn a_stream_ends_when_its_document_is_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "The text.");
    let document = ada.create_document(&json!({ "name": "A", "type": "TXT", "url": url })).await;
    web.wait_for_hits("/slow.txt", 1).await;
    let mut events = Events::of(&ada, id(&document)).await;
    events.next().await.expect("one at once");
    data(ada.delete(&format!("/documents/{}", id(&document))).await);
    let events = events.rest().await;
    let (name, said) = events.last().expect("an event");
    assert_eq!((name.as_str(), &said["id"]), ("deleted", &document["id"]));
    gate.release();
}

async fn another_users_ingestion_cannot_be_followed(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let document = ada.create_document(&json!({ "name": "A", "type": "TXT", "content": "text" })).await;
    let path = format!("/documents/{}/events", id(&document));
    let (status, _) = grace.get(&path).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = envelope(send(ada.signed_out().request(Method::GET, &path)).await).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

async fn a_shutdown_does_not_wait_for_followers(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = web.hang("/never.txt");
    let document = ada.create_document(&json!({ "name": "A", "type": "TXT", "url": url })).await;
    web.wait_for_hits("/never.txt", 1).await;
    let mut events = Events::of(&ada, id(&document)).await;
    events.next().await.expect("one at once");
    service.ask_to_stop();
    // The stream ends in order, as one that is cut off would not.
    events.rest().await;
    assert!(service.terminate().await.success());
}
