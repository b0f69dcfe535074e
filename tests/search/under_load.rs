//! Documents that change and go while others search: every search sees one state, and the latest one.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
};

use futures::{StreamExt, future, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{each, note, of_paragraphs, search};
use crate::support::{
    client::{data, id},
    in_both_modes, on_postgres_too,
    service::{Mode, Service},
};

in_both_modes!(
    while_a_document_is_ingested_again_each_search_finds_exactly_one_edition_of_it,
    no_search_finds_what_was_deleted_before_it_began
);

on_postgres_too!(
    while_a_document_is_ingested_again_each_search_finds_exactly_one_edition_of_it,
    no_search_finds_what_was_deleted_before_it_began
);

/// Searches at a time.
const SEARCHERS: usize = 4;
/// How often the document is ingested again.
const EDITIONS: usize = 50;
/// What the passages of every edition are about, each of another thing.
const SUBJECTS: [&str; 5] = ["harbour", "lantern", "cellar", "orchard", "granary"];
/// Documents that are deleted.
const DOCUMENTS: usize = 40;

/// Searches again and again, several times at once, until `work` is done; how many searches there were.
async fn while_searching<S>(work: impl Future<Output = ()>, search: impl Fn() -> S) -> usize
where
    S: Future<Output = ()>,
{
    let done = AtomicBool::new(false);
    let searcher = async || {
        let mut searches = 0;
        while !done.load(Ordering::Relaxed) {
            search().await;
            searches += 1;
        }
        searches
    };
    let work = async {
        work.await;
        done.store(true, Ordering::Relaxed);
    };
    let ((), searches) = future::join(work, future::join_all((0..SEARCHERS).map(|_| searcher()))).await;
    searches.into_iter().sum()
}

/// The passages of an edition, each of which says which one it is.
fn edition(number: usize) -> Value {
    let paragraphs = SUBJECTS.map(|subject| format!("The warden of the {subject} signed edition{number}."));
    of_paragraphs("Almanac", 60, &paragraphs)
}

/// The one edition that all of it was found of.
fn edition_of(found: &[Value]) -> usize {
    let text = each(found, "text").join(" ");
    for subject in SUBJECTS {
        assert_eq!(text.matches(subject).count(), 1, "{subject} in {text:?}");
    }
    let number = |rest: &str| rest[..rest.find('.').expect("an end")].parse::<usize>().expect("a number");
    let editions: BTreeSet<usize> = text.split("edition").skip(1).map(number).collect();
    assert_eq!(editions.len(), 1, "{text:?}");
    editions.into_iter().next().expect("an edition")
}

async fn while_a_document_is_ingested_again_each_search_finds_exactly_one_edition_of_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let almanac = id(&client.ingest(&edition(0)).await).to_owned();
    // The latest edition that anybody has seen: nobody who searches from then on finds an earlier one.
    let seen = Mutex::new(0);
    let work = async {
        for number in 1..=EDITIONS {
            let change = json!({ "content": edition(number)["content"] });
            data(client.patch(&format!("/documents/{almanac}"), &change).await);
            let ingested = client.wait_until_ingested(&almanac).await;
            assert_eq!(ingested["ingestion"]["status"], "SUCCEEDED", "{ingested:#}");
            *seen.lock() = number;
        }
    };
    let searches = while_searching(work, || async {
        let before = *seen.lock();
        let found = search(&client, json!({ "query": "What did the warden sign?", "limit": 50 })).await;
        let edition = edition_of(&found);
        assert!(edition >= before, "edition {edition} after {before}");
        let mut seen = seen.lock();
        *seen = edition.max(*seen);
    })
    .await;
    assert!(searches > EDITIONS, "so few searches prove nothing: {searches}");
    assert_eq!(*seen.lock(), EDITIONS);
}

async fn no_search_finds_what_was_deleted_before_it_began(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let documents: Vec<String> = stream::iter(0..DOCUMENTS)
        .map(|number| {
            let client = &client;
            let body = note("Keys", &format!("The warden keeps key{number} of tower{number}."));
            async move { id(&client.ingest(&body).await).to_owned() }
        })
        .buffered(8)
        .collect()
        .await;
    // Those whose deletion was asked for, and those whose deletion was answered.
    let (going, gone) = (Mutex::new(0), Mutex::new(BTreeSet::new()));
    let look = async |limit: usize| {
        let before = gone.lock().clone();
        let found =
            search(&client, json!({ "query": "Which keys does the warden keep?", "limit": limit })).await;
        let found = each(&found, "documentId").into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        let deleted: Vec<_> = found.intersection(&before).collect();
        assert!(deleted.is_empty(), "found although they were deleted before: {deleted:?}");
        let left = DOCUMENTS - *going.lock();
        assert!(found.len() >= limit.min(left), "{} of {left} were found, {limit} asked for", found.len());
        found
    };
    let work = async {
        for document in &documents {
            *going.lock() += 1;
            data(client.delete(&format!("/documents/{document}")).await);
            gone.lock().insert(document.clone());
            look(50).await;
        }
    };
    let searches = while_searching(work, async || {
        look(10).await;
    })
    .await;
    assert!(searches > 0);
    assert!(look(50).await.is_empty());
}
