//! Files that are elsewhere than they were.

use std::fs;

use serde_json::{Value, json};

use super::{
    folder::{named, opened},
    kill_when_moved, killed_often,
};
use crate::{
    support::{
        client::{Client, data, id},
        in_both_modes,
        service::Mode,
    },
    sync::{counts, found, run, run_path, settled, source, start_run, text_of},
};

in_both_modes!(
    a_file_that_is_moved_stays_the_document_that_it_is,
    a_file_is_found_again_behind_more_new_ones_than_there_is_room_for,
    what_somebody_deleted_here_stays_away_when_its_file_is_moved,
    what_is_another_file_never_becomes_a_document_that_was,
    a_file_that_turns_up_elsewhere_before_somebody_says_that_it_may_go_stays,
    killed_while_a_folder_is_renamed_a_run_loses_no_document
);

/// The id of the document with a name.
pub(super) async fn id_of(client: &Client, name: &str) -> String {
    let all = named(client).await;
    let (_, id) =
        all.iter().find(|(called, _)| called == name).unwrap_or_else(|| panic!("no {name}: {all:?}"));
    id.clone()
}

async fn a_file_that_is_moved_stays_the_document_that_it_is(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    for folder in ["a", "b", "new"] {
        fs::create_dir(open.path().join(folder)).expect("a folder");
    }
    fs::write(open.path().join("a/leave.txt"), "Thirty days of leave a year.").expect("a file");
    fs::write(open.path().join("b/travel.txt"), "Travel is paid by the mile.").expect("a file");
    let collection = client.create("/collections", &json!({"name": "Handbook"})).await;
    // It is full from the first run on, which is in nobody's way who only moves things.
    let body = json!({
        "name": "Handbook", "type": "folder", "collectionId": collection["id"],
        "config": {"path": open.path(), "maxDocuments": 2},
    });
    let source = client.create("/sources", &body).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let [leave, travel] = [id_of(&client, "a/leave.txt").await, id_of(&client, "b/travel.txt").await];
    client.wait_until_ingested(&travel).await;
    let own = json!({"name": "Travel rules", "metadata": {"team": "people"}});
    data(client.patch(&format!("/documents/{travel}"), &own).await);
    let before = client.wait_until_ingested(&travel).await;
    client.wait_until_ingested(&leave).await;

    let rename = |from: &str, to: &str| {
        fs::rename(open.path().join(from), open.path().join(to)).expect("a file that is moved");
    };
    rename("a/leave.txt", "new/leave.txt");
    rename("b/travel.txt", "new/journeys.txt");
    let dry = settled(&client, &start_run(&client, &source, json!({"dryRun": true})).await).await;
    assert_eq!((counts(&dry), &dry["moved"]), ([0; 5], &json!(2)), "{dry:#}");
    assert_eq!(id_of(&client, "a/leave.txt").await, leave, "nothing is changed");

    let moved = run(&client, &source).await;
    let told = (&moved["state"], counts(&moved), &moved["moved"], &moved["warning"]);
    assert_eq!(told, (&json!("succeeded"), [0; 5], &json!(2), &Value::Null), "{moved:#}");
    let line = |item: &str, was: &str| (item.to_owned(), "moved".to_owned(), format!("It was at {was}."));
    let lines = [line("new/journeys.txt", "b/travel.txt"), line("new/leave.txt", "a/leave.txt")];
    assert_eq!(found(&client, &moved).await, lines);
    // One is called as its file is, and the other as somebody wants it.
    let all = named(&client).await;
    assert_eq!(
        all,
        [("Travel rules".to_owned(), travel.clone()), ("new/leave.txt".to_owned(), leave.clone())]
    );
    let after = client.wait_until_ingested(&travel).await;
    for kept in ["metadata", "index", "ingestion", "createdAt"] {
        assert_eq!(after[kept], before[kept], "{kept}: {after:#}");
    }
    assert_eq!(text_of(&client, &json!({"id": leave})).await, "Thirty days of leave a year.");
    let collection = client.read(&format!("/collections/{}", id(&collection))).await;
    assert_eq!(collection["documents"], 2, "{collection:#}");

    let again = run(&client, &source).await;
    assert_eq!((counts(&again), &again["moved"]), ([0, 0, 2, 0, 0], &json!(0)), "{again:#}");
}

async fn a_file_is_found_again_behind_more_new_ones_than_there_is_room_for(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    let write = |name: &str, text: &str| fs::write(open.path().join(name), text).expect("a file");
    write("one.txt", "The first words.");
    write("two.txt", "The second words.");
    let config = json!({"path": open.path(), "maxDocuments": 2});
    let source = source(&client, "folder", config).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let [one, two] = [id_of(&client, "one.txt").await, id_of(&client, "two.txt").await];

    fs::create_dir(open.path().join("last")).expect("a folder");
    for name in ["one.txt", "two.txt"] {
        fs::rename(open.path().join(name), open.path().join("last").join(name))
            .expect("a file that is moved");
    }
    write("a.txt", "Other words.");
    write("b.txt", "Still other words.");
    let moved = run(&client, &source).await;
    let warning = json!("The limit of 2 documents is reached: 2 left out.");
    let told = (&moved["state"], counts(&moved), &moved["moved"], &moved["warning"]);
    assert_eq!(told, (&json!("succeeded"), [0; 5], &json!(2), &warning), "{moved:#}");
    let left = [("last/one.txt".to_owned(), one), ("last/two.txt".to_owned(), two)];
    assert_eq!(named(&client).await, left);
}

async fn what_somebody_deleted_here_stays_away_when_its_file_is_moved(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    let rename = |from: &str, to: &str| {
        fs::rename(open.path().join(from), open.path().join(to)).expect("a file that is moved");
    };
    fs::write(open.path().join("kept.txt"), "This stays.").expect("a file");
    fs::write(open.path().join("one.txt"), "This is deleted.").expect("a file");
    // There is no room for it either.
    let config = json!({"path": open.path(), "maxDocuments": 2});
    let source = source(&client, "folder", config).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let [kept, one] = [id_of(&client, "kept.txt").await, id_of(&client, "one.txt").await];
    data(client.delete(&format!("/documents/{one}")).await);
    let how = async |how: Value| {
        let ended = settled(&client, &start_run(&client, &source, how).await).await;
        assert_eq!((&ended["state"], &ended["warning"]), (&json!("succeeded"), &Value::Null), "{ended:#}");
        (counts(&ended), [&ended["moved"], &ended["deletedHere"]].map(Value::as_i64))
    };

    rename("one.txt", "two.txt");
    let left_away = ([0, 0, 1, 0, 0], [Some(0), Some(1)]);
    for dry_run in [true, true, false, false] {
        assert_eq!(how(json!({"dryRun": dry_run})).await, left_away, "dry: {dry_run}");
    }
    // It is known by where it is now.
    rename("two.txt", "three.txt");
    assert_eq!(how(json!({})).await, left_away);
    assert_eq!(named(&client).await, [("kept.txt".to_owned(), kept)]);
    // Until somebody wants everything, or it says something else.
    rename("three.txt", "four.txt");
    assert_eq!(how(json!({"full": true})).await, ([1, 0, 1, 0, 0], [Some(0), Some(0)]));
    assert_ne!(id_of(&client, "four.txt").await, one);
    data(client.delete(&format!("/documents/{}", id_of(&client, "four.txt").await)).await);
    fs::remove_file(open.path().join("four.txt")).expect("a file");
    fs::write(open.path().join("five.txt"), "This is another one.").expect("a file");
    assert_eq!(how(json!({})).await, ([1, 0, 1, 0, 0], [Some(0), Some(0)]));
}

async fn what_is_another_file_never_becomes_a_document_that_was(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    let write = |name: &str, text: &str| fs::write(open.path().join(name), text).expect("a file");
    let remove = |name: &str| fs::remove_file(open.path().join(name)).expect("a file");
    let body =
        json!({"name": "Notes", "type": "folder", "config": {"path": open.path()}, "deleteLimit": 100});
    let source = client.create("/sources", &body).await;
    let run = async || {
        let ended = run(&client, &source).await;
        assert_eq!(ended["state"], "succeeded", "{ended:#}");
        (counts(&ended), ended["moved"].as_i64().expect("a number"))
    };
    write("kept.txt", "This stays.");
    write("one.txt", "The same words.");
    write("two.txt", "The same words.");
    assert_eq!(run().await, ([3, 0, 0, 0, 0], 0));
    let [kept, one] = [id_of(&client, "kept.txt").await, id_of(&client, "one.txt").await];

    // A copy is no move.
    write("copy.txt", "This stays.");
    assert_eq!(run().await, ([1, 0, 3, 0, 0], 0));
    assert_eq!(id_of(&client, "kept.txt").await, kept);
    // Of two that are gone one is there again, and it is the first.
    remove("one.txt");
    remove("two.txt");
    write("three.txt", "The same words.");
    assert_eq!(run().await, ([0, 0, 2, 1, 0], 1));
    assert_eq!(id_of(&client, "three.txt").await, one);
    // Of one that is gone there are two copies, and the first of these is it.
    remove("three.txt");
    write("five.txt", "The same words.");
    write("four.txt", "The same words.");
    assert_eq!(run().await, ([1, 0, 2, 0, 0], 1));
    assert_eq!(id_of(&client, "five.txt").await, one);
    assert_ne!(id_of(&client, "four.txt").await, one);
    // Other words are another document, and so is nothing at all.
    remove("five.txt");
    write("six.txt", "Other words.");
    write("empty.txt", "");
    assert_eq!(run().await, ([1, 0, 3, 1, 1], 0));
    assert_ne!(id_of(&client, "six.txt").await, one);
    // What is of another kind by its new name is read anew.
    let six = id_of(&client, "six.txt").await;
    client.wait_until_ingested(&six).await;
    remove("six.txt");
    write("six.md", "Other words.");
    assert_eq!(run().await, ([0, 0, 3, 0, 1], 1));
    assert_eq!(id_of(&client, "six.md").await, six);
    assert_eq!(text_of(&client, &json!({"id": six})).await, "Other words.");
}

async fn a_file_that_turns_up_elsewhere_before_somebody_says_that_it_may_go_stays(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    let write = |name: &str, text: &str| fs::write(open.path().join(name), text).expect("a file");
    for name in ["a.txt", "b.txt", "c.txt", "x.txt"] {
        write(name, &format!("Words of {name}."));
    }
    let source = source(&client, "folder", json!({"path": open.path()})).await;
    assert_eq!(counts(&run(&client, &source).await), [4, 0, 0, 0, 0]);
    let [first, third] = [id_of(&client, "a.txt").await, id_of(&client, "c.txt").await];
    data(client.delete(&format!("/documents/{}", id_of(&client, "x.txt").await)).await);
    for name in ["a.txt", "b.txt"] {
        fs::remove_file(open.path().join(name)).expect("a file");
    }
    let asking = run(&client, &source).await;
    assert_eq!((&asking["state"], counts(&asking)), (&json!("waiting"), [0, 0, 1, 2, 0]), "{asking:#}");
    write("d.txt", "Words of a.txt.");
    // What was there when somebody was asked may have been moved meanwhile, too, and so may what somebody deleted.
    for (from, to) in [("c.txt", "e.txt"), ("x.txt", "y.txt")] {
        fs::rename(open.path().join(from), open.path().join(to)).expect("a file that is moved");
    }
    data(client.post(&format!("{}/confirm", run_path(&asking)), &json!({})).await);
    let ended = settled(&client, &asking).await;
    let told = (&ended["state"], counts(&ended), &ended["moved"], &ended["deletedHere"]);
    assert_eq!(told, (&json!("succeeded"), [0, 0, 1, 1, 0], &json!(2), &json!(1)), "{ended:#}");
    let left = [("d.txt".to_owned(), first), ("e.txt".to_owned(), third)];
    assert_eq!(named(&client).await, left);
}

async fn killed_while_a_folder_is_renamed_a_run_loses_no_document(mode: Mode) {
    const FILES: i64 = 60;
    let open = tempfile::tempdir().expect("a folder");
    let path = open.path().to_str().expect("text").to_owned();
    let setup = killed_often(mode).env("LECTERN_SOURCE_FOLDERS", &path);
    let mut service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let (former, renamed) = (open.path().join("former"), open.path().join("renamed"));
    fs::create_dir(&former).expect("a folder");
    for number in 0..FILES {
        let name = format!("{number:02}.txt");
        fs::write(former.join(&name), format!("Words of {name}.")).expect("a file");
    }
    let source = source(&client, "folder", json!({"path": open.path()})).await;
    assert_eq!(counts(&run(&client, &source).await), [FILES, 0, 0, 0, 0]);
    let ids = |named: Vec<(String, String)>| named.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
    let before = ids(named(&client).await);

    fs::rename(&former, &renamed).expect("a folder that is renamed");
    let started = start_run(&client, &source, json!({})).await;
    for wanted in [FILES / 4, FILES / 2] {
        kill_when_moved(&mut service, &client, &started, wanted).await;
    }
    let ended = settled(&client, &started).await;
    let told = (&ended["state"], counts(&ended), &ended["moved"]);
    assert_eq!(told, (&json!("succeeded"), [0; 5], &json!(FILES)), "{ended:#}");
    let after = named(&client).await;
    assert!(after.iter().all(|(name, _)| name.starts_with("renamed/")), "{after:?}");
    assert_eq!(ids(after), before);
}
