//! Buckets of S3.

use std::fs;

use serde_json::{Value, json};

use super::{folder::named, kill_when_moved, killed_often, moves::id_of};
use crate::{
    support::{
        client::{data, id},
        in_both_modes,
        s3::{BUCKET, KEY_ID, S3Server, SECRET},
        service::Mode,
        web::Web,
    },
    sync::{counts, documents, found, run, settled, signed_up, source, start_run, text_of},
};

in_both_modes!(
    a_bucket_is_kept_in_step,
    a_key_that_cannot_be_read_is_named,
    an_object_that_is_moved_stays_the_document_that_it_is,
    of_objects_that_are_alike_none_was_moved,
    killed_while_a_prefix_is_renamed_a_run_loses_no_document
);

/// Puts an object into the bucket.
fn write(store: &S3Server, key: &str, text: &str) {
    let path = store.bucket().join(key);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// Moves an object, or all with a prefix.
fn rename(store: &S3Server, from: &str, to: &str) {
    let (from, to) = (store.bucket().join(from), store.bucket().join(to));
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
    fs::rename(from, to).expect("an object that is moved");
}

/// What is below `docs`, for so many documents.
fn config_of(store: &S3Server, documents: u32) -> Value {
    json!({
        "endpoint": format!("http://{}", store.address()), "bucket": BUCKET, "prefix": "docs",
        "accessKeyId": KEY_ID, "secretAccessKey": SECRET, "maxDocuments": documents,
    })
}

async fn a_bucket_is_kept_in_step(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let store = S3Server::start().await;
    let write = |key: &str, text: &str| write(&store, key, text);
    write("docs/leave.md", "# Leave\n\nThirty days of leave a year.");
    write("docs/deep/travel.txt", "Travel is paid by the kilometre.");
    write("docs/picture.png", "no picture");
    write("docs/draft.txt", "Not ready.");
    write("other/secret.txt", "Elsewhere.");
    let config = json!({
        "endpoint": format!("http://{}", store.address()), "bucket": BUCKET, "prefix": "docs",
        "accessKeyId": KEY_ID, "secretAccessKey": SECRET, "exclude": ["draft*"],
    });
    let source = source(&client, "s3", config).await;
    assert!(!source.to_string().contains(SECRET), "{source:#}");
    let first = run(&client, &source).await;
    assert_eq!((&first["state"], counts(&first)), (&json!("succeeded"), [2, 0, 0, 0, 0]), "{first:#}");
    let all = documents(&client).await;
    let travel = all.iter().find(|document| document["name"] == "deep/travel.txt").expect("it is there");
    assert!(text_of(&client, travel).await.contains("by the kilometre"));
    assert_eq!((counts(&run(&client, &source).await), &all.len()), ([0, 0, 2, 0, 0], &2));

    write("docs/deep/travel.txt", "Travel is paid by the mile.");
    write("docs/new.txt", "Something new.");
    fs::remove_file(store.bucket().join("docs/leave.md")).expect("a file");
    data(client.patch(&format!("/sources/{}", id(&source)), &json!({"deleteLimit": 50})).await);
    let third = run(&client, &source).await;
    assert_eq!(
        (&third["state"], counts(&third)),
        (&json!("succeeded"), [1, 1, 0, 1, 0]),
        "{:?}",
        found(&client, &third).await
    );
    assert!(text_of(&client, travel).await.contains("by the mile"));

    let wrong = json!({
        "endpoint": format!("http://{}", store.address()), "bucket": BUCKET, "prefix": "docs",
        "accessKeyId": KEY_ID, "secretAccessKey": "wrong",
    });
    data(client.patch(&format!("/sources/{}", id(&source)), &json!({"config": wrong})).await);
    let refused = run(&client, &source).await;
    assert_eq!(refused["state"], "failed", "{refused:#}");
    assert_eq!(documents(&client).await.len(), 2, "what cannot be seen is not gone");
}

async fn a_key_that_cannot_be_read_is_named(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let store = Web::start().await;
    for key in ["docs//plan.txt", "docs/../plan.txt"] {
        let object = format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>4</Size></Contents>"
        );
        let list = format!("<ListBucketResult>{object}</ListBucketResult>");
        store.serve("/documents", "application/xml", list);
        let config = json!({"endpoint": store.url(""), "bucket": "documents", "prefix": "docs"});
        let failed = run(&client, &source(&client, "s3", config).await).await;
        assert_eq!(failed["state"], "failed", "{failed:#}");
        let why = failed["error"].as_str().expect("why");
        assert!(why.contains(&format!("{key:?}")) && why.contains("prefix"), "{why}");
    }
}

async fn an_object_that_is_moved_stays_the_document_that_it_is(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let store = S3Server::start().await;
    write(&store, "docs/leave.txt", "Thirty days of leave a year.");
    write(&store, "docs/secret.txt", "This is nobody's business.");
    write(&store, "docs/travel.txt", "Travel is paid by the mile.");
    let source = source(&client, "s3", config_of(&store, 3)).await;
    assert_eq!(counts(&run(&client, &source).await), [3, 0, 0, 0, 0]);
    let [leave, travel] = [id_of(&client, "leave.txt").await, id_of(&client, "travel.txt").await];
    data(client.delete(&format!("/documents/{}", id_of(&client, "secret.txt").await)).await);
    write(&store, "docs/more.txt", "More.");
    assert_eq!(counts(&run(&client, &source).await), [1, 0, 2, 0, 0]);
    let more = id_of(&client, "more.txt").await;
    client.wait_until_ingested(&travel).await;
    data(client.patch(&format!("/documents/{travel}"), &json!({"name": "Travel rules"})).await);
    let before = client.wait_until_ingested(&travel).await;

    // It is full, and there is something that is new indeed.
    for (from, to) in [("leave.txt", "new/leave.txt"), ("secret.txt", "z.txt"), ("travel.txt", "new/b/c.txt")]
    {
        rename(&store, &format!("docs/{from}"), &format!("docs/{to}"));
    }
    write(&store, "docs/another.txt", "Another one.");
    let warning = json!("The limit of 3 documents is reached: 1 left out.");
    for dry_run in [true, false] {
        let how = json!({"dryRun": dry_run});
        let ended = settled(&client, &start_run(&client, &source, how).await).await;
        let told = (counts(&ended), &ended["moved"], &ended["deletedHere"], &ended["warning"]);
        assert_eq!(told, ([0, 0, 1, 0, 0], &json!(2), &json!(1), &warning), "{ended:#}");
        let line = |item: &str, was: &str| {
            (format!("docs/{item}"), "moved".to_owned(), format!("It was at docs/{was}."))
        };
        let lines = [line("new/b/c.txt", "travel.txt"), line("new/leave.txt", "leave.txt")];
        assert_eq!(found(&client, &ended).await, lines);
    }
    let all = [("Travel rules", &travel), ("more.txt", &more), ("new/leave.txt", &leave)];
    assert_eq!(named(&client).await, all.map(|(name, id)| (name.to_owned(), id.clone())));
    let after = client.wait_until_ingested(&travel).await;
    assert_eq!((&after["index"], &after["ingestion"]), (&before["index"], &before["ingestion"]), "{after:#}");
    assert_eq!(text_of(&client, &json!({"id": leave})).await, "Thirty days of leave a year.");
    let again = run(&client, &source).await;
    let told = (counts(&again), &again["moved"], &again["deletedHere"]);
    assert_eq!(told, ([0, 0, 3, 0, 0], &json!(0), &json!(1)), "{again:#}");
}

async fn of_objects_that_are_alike_none_was_moved(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let store = S3Server::start().await;
    let body = json!({"name": "Notes", "type": "s3", "config": config_of(&store, 100), "deleteLimit": 100});
    let source = client.create("/sources", &body).await;
    let run = async || {
        let ended = run(&client, &source).await;
        assert_eq!(ended["state"], "succeeded", "{ended:#}");
        (counts(&ended), ended["moved"].as_i64().expect("a number"))
    };
    write(&store, "docs/kept.txt", "This stays.");
    write(&store, "docs/one.txt", "The same words.");
    write(&store, "docs/two.txt", "The same words.");
    assert_eq!(run().await, ([3, 0, 0, 0, 0], 0));
    // Of two that are gone it is not clear which one is there again.
    fs::remove_file(store.bucket().join("docs/one.txt")).expect("an object");
    rename(&store, "docs/two.txt", "docs/three.txt");
    assert_eq!(run().await, ([1, 0, 1, 2, 0], 0));
    // Of two that are new it is not clear which one it is.
    rename(&store, "docs/three.txt", "docs/four.txt");
    write(&store, "docs/five.txt", "The same words.");
    assert_eq!(run().await, ([2, 0, 1, 1, 0], 0));
    // A copy is none, and neither is what says something else.
    write(&store, "docs/copy.txt", "This stays.");
    fs::remove_file(store.bucket().join("docs/four.txt")).expect("an object");
    write(&store, "docs/six.txt", "Other, and more words.");
    assert_eq!(run().await, ([2, 0, 2, 1, 0], 0));
}

async fn killed_while_a_prefix_is_renamed_a_run_loses_no_document(mode: Mode) {
    const OBJECTS: usize = 40;
    let mut service = killed_often(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let store = S3Server::start().await;
    for number in 0..OBJECTS {
        // The store names no entity tags, so that their sizes tell them apart.
        write(&store, &format!("docs/former/{number:02}.txt"), &"word ".repeat(number + 1));
    }
    let source = source(&client, "s3", config_of(&store, 100)).await;
    let all = i64::try_from(OBJECTS).expect("a few");
    assert_eq!(counts(&run(&client, &source).await), [all, 0, 0, 0, 0]);
    let ids = |named: Vec<(String, String)>| named.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
    let before = ids(named(&client).await);

    rename(&store, "docs/former", "docs/renamed");
    let started = start_run(&client, &source, json!({})).await;
    kill_when_moved(&mut service, &client, &started, all / 3).await;
    let ended = settled(&client, &started).await;
    let told = (&ended["state"], counts(&ended), &ended["moved"]);
    assert_eq!(told, (&json!("succeeded"), [0; 5], &json!(OBJECTS)), "{ended:#}");
    let after = named(&client).await;
    assert!(after.iter().all(|(name, _)| name.starts_with("renamed/")), "{after:?}");
    assert_eq!(ids(after), before);
}
