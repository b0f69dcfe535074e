//! `lectern backup` and `lectern restore`.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    command::{Ran, doctor, download, finding, lectern, replace, upload},
    service::{Mode, Service},
    setup::Setup,
    web::Web,
};

/// Runs the backup of a service into a new folder.
fn back_up(service: &Service, folder: &Path, arguments: &[&str]) -> Ran {
    let folder = folder.to_str().expect("a path of plain text");
    lectern(&service.sibling(), &[&["backup", folder], arguments].concat())
}

fn restore(setup: &Setup, folder: &Path, arguments: &[&str]) -> Ran {
    let folder = folder.to_str().expect("a path of plain text");
    lectern(setup, &[&["restore", folder], arguments].concat())
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

async fn uploaded(client: &Client, name: &str, text: &str) -> Value {
    let document = upload(client, name, text.as_bytes()).await;
    client.wait_until_ingested(id(&document)).await
}

/// Adds, uploads, replaces and deletes until it is stopped; how often.
fn bustle(client: &Client, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<u32> {
    let (client, stop) = (client.clone(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut rounds = 0;
        let notice = upload(&client, "notice.txt", b"Nothing yet.").await;
        while !stop.load(Ordering::Relaxed) {
            let text = format!("Parcel {rounds} is left with the porter. ").repeat(50);
            let added =
                client.create_document(&json!({"name": "parcel", "type": "TXT", "content": text})).await;
            let first = upload(&client, "parcel.txt", text.as_bytes()).await;
            let second = upload(&client, "other.txt", text.as_bytes()).await;
            replace(&client, id(&notice), "notice.txt", text.as_bytes()).await;
            for document in [&added, &first] {
                let (status, answer) = client.delete(&format!("/documents/{}", id(document))).await;
                assert_eq!(status, StatusCode::OK, "{answer:#}");
            }
            if rounds % 2 == 0 {
                client.delete(&format!("/documents/{}", id(&second))).await;
            }
            rounds += 1;
        }
        rounds
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_busy_service_is_whole_and_becomes_a_service_again() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_INDEX_GRACE", "0s").start().await;
    let client = service.signed_up("ada@example.com").await;
    let rules = json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."});
    let rules = client.ingest(&rules).await;
    let lift = uploaded(&client, "lift.txt", "The lift holds eight people.").await;
    let token = client.create("/api-tokens", &json!({"description": "kept"})).await;
    let token = token["token"].as_str().unwrap().to_owned();
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "The roof is closed in winter.");
    let slow = client.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    web.wait_for_hits("/slow.txt", 1).await;
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..3).map(|_| bustle(&client, &stop)).collect();

    let place = tempfile::tempdir().unwrap();
    let mut backups = Vec::new();
    for number in 0..3 {
        let folder = place.path().join(format!("backup-{number}"));
        let made = tokio::task::block_in_place(|| back_up(&service, &folder, &[])).well();
        assert!(made.out.contains("the backup is made"), "{made:#?}");
        assert!(!place.path().join(format!("backup-{number}.partial")).exists());
        backups.push(folder);
    }
    stop.store(true, Ordering::Relaxed);
    for task in busy {
        assert!(task.await.unwrap() > 0, "something went on meanwhile");
    }
    let last = backups.last().unwrap();
    let manifest: Value = serde_json::from_slice(&std::fs::read(last.join("backup.json")).unwrap()).unwrap();
    assert_eq!(manifest["format"], 1);
    assert_eq!(
        manifest["blobs"]["missing"],
        json!([]),
        "what was deleted meanwhile is not missing: {manifest:#}"
    );
    drop(gate);
    drop(service);

    for folder in &backups {
        let setup = Service::in_mode(Mode::Embedded).env("LECTERN_INDEX_GRACE", "0s");
        restore(&setup, folder, &["--verify"]).well();
        assert_eq!(count(setup.data_dir()), 0, "a look writes nothing");
        let restored = restore(&setup, folder, &[]).well();
        assert!(restored.out.contains("start it with"), "{restored:#?}");
        let (sound, report) = doctor(&setup, &["--deep"]);
        assert!(sound, "{report:#}");
        assert!(finding(&report, "orphans").is_none(), "{report:#}");

        let web_again = web.serve("/slow.txt", "text/plain", "The roof is closed in winter.");
        assert_eq!(web_again, url);
        let service = setup.start().await;
        let client = service.client().with_token(&token);
        let agent = client.create_agent(&json!({"name": "caretaker", "type": "CHATVENDOR"})).await;
        for document in [&rules, &lift, &slow] {
            client.link(id(&agent), id(document)).await;
        }
        let ended = client.wait_until_ingested(id(&slow)).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "what was running goes on: {ended:#}");
        for (question, document) in [
            ("Where do bicycles belong?", &rules),
            ("How many people does the lift hold?", &lift),
            ("When is the roof closed?", &slow),
        ] {
            let (status, answer) = client.predict(id(&agent), question).await;
            assert_eq!(status, StatusCode::OK, "{answer:#}");
            assert_eq!(answer["trace"]["citations"][0]["documentId"], document["id"], "{answer:#}");
        }
        assert_eq!(download(&client, id(&lift)).await, b"The lift holds eight people.");
        service.client().sign_in("ada@example.com", crate::support::client::PASSWORD).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_damaged_is_refused_before_anything_is_written() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    uploaded(&client, "lift.txt", "The lift holds eight people.").await;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("backup");
    back_up(&service, &folder, &[]).well();
    let setup = Service::in_mode(Mode::Embedded);
    let blob = files(&folder.join("blobs")).pop().expect("a file");

    let refused = |what: &str, words: &str| {
        for arguments in [&["--verify"][..], &[]] {
            let ran = restore(&setup, &folder, arguments);
            assert!(!ran.status.success() && ran.log.contains(words), "{what}: {ran:#?}");
            assert_eq!(count(setup.data_dir()), 0, "{what}");
        }
    };
    for (path, words) in [
        (folder.join("lectern.db"), "lectern.db"),
        (folder.join("secret.key"), "secret.key"),
        (blob, "the file of document"),
    ] {
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        refused("cut off", words);
        let mut altered = bytes.clone();
        altered[bytes.len() / 2] ^= 1;
        std::fs::write(&path, altered).unwrap();
        refused("altered", words);
        std::fs::remove_file(&path).unwrap();
        refused("missing", words);
        std::fs::write(&path, bytes).unwrap();
    }
    let manifest = folder.join("backup.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    refused("of a later program", "later than this program");
    std::fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    refused("no manifest", "is no backup");
    std::fs::write(&manifest, text).unwrap();

    std::fs::write(setup.data_dir().join("something"), "here").unwrap();
    let ran = restore(&setup, &folder, &[]);
    assert!(!ran.status.success() && ran.log.contains("is not empty"), "{ran:#?}");
    std::fs::remove_file(setup.data_dir().join("something")).unwrap();
    restore(&setup, &folder, &[]).well();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_nobody_elses_business_and_can_do_without_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    client.create("/api-tokens", &json!({"description": "kept"})).await;
    uploaded(&client, "lift.txt", "The lift holds eight people.").await;
    let place = tempfile::tempdir().unwrap();
    let (with, without) = (place.path().join("with"), place.path().join("without"));
    back_up(&service, &with, &[]).well();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&with), 0o700);
    let inside = files(&with);
    assert!(inside.len() > 3, "the database, the key, the manifest and a file: {inside:?}");
    for file in inside {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        let folder = file.parent().expect("the folder that it is in");
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    let ran = back_up(&service, &with, &[]);
    assert!(!ran.status.success() && ran.log.contains("exists already"), "{ran:#?}");

    let made = back_up(&service, &without, &["--without-key"]).well();
    assert!(made.out.contains("not in the backup: the key, which is the file secret.key"), "{made:#?}");
    assert!(!without.join("secret.key").exists(), "{made:#?}");
    let setup = Service::in_mode(Mode::Embedded);
    let made = restore(&setup, &without, &[]).well();
    assert!(made.out.contains("before the first start, put its key into"), "{made:#?}");
    let refusal = setup.clone().start_refused().await;
    assert!(refusal.log.contains("secret.key"), "{}", refusal.log);
    std::fs::copy(with.join("secret.key"), setup.data_dir().join("secret.key")).unwrap();
    let restored = setup.start().await;
    restored.client().sign_in("ada@example.com", crate::support::client::PASSWORD).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_lost_before_is_left_out_and_named() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let lift = uploaded(&client, "lift.txt", "The lift holds eight people.").await;
    uploaded(&client, "roof.txt", "The roof is closed in winter.").await;
    let blobs = service.data_dir().join("blobs");
    let shard = &id(&lift)[id(&lift).len() - 2..];
    std::fs::remove_dir_all(blobs.join(shard).join(id(&lift))).unwrap();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("backup");
    let made = back_up(&service, &folder, &[]).well();
    let says = |ran: &Ran| ran.out.contains("1 file missing or damaged") && ran.out.contains(id(&lift));
    assert!(says(&made), "{made:#?}");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(folder.join("backup.json")).unwrap()).unwrap();
    assert_eq!(manifest["blobs"]["missing"], json!([id(&lift)]), "{manifest:#}");
    assert_eq!(manifest["blobs"]["count"], 1, "{manifest:#}");
    let setup = Service::in_mode(Mode::Embedded);
    for arguments in [&["--verify"][..], &[]] {
        let ran = restore(&setup, &folder, arguments).well();
        assert!(says(&ran), "{arguments:?}: {ran:#?}");
    }
    let (sound, report) = doctor(&setup, &[]);
    assert!(!sound && finding(&report, "files_missing").unwrap()["count"] == 1, "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_that_cannot_be_marked_are_not_taken_for_anothers() {
    let service = Service::start().await;
    let place = tempfile::tempdir().unwrap();
    let (folder, blobs) = (place.path().join("backup"), place.path().join("blobs"));
    back_up(&service, &folder, &[]).well();
    // In the way of the mark, and none itself.
    std::fs::create_dir(&blobs).unwrap();
    std::os::unix::fs::symlink("nowhere", blobs.join("instance")).unwrap();
    let setup = Service::in_mode(Mode::Embedded).env("LECTERN_BLOBS", &format!("file://{}", blobs.display()));
    let ran = restore(&setup, &folder, &[]);
    assert!(!ran.status.success() && ran.log.contains("its marker"), "{ran:#?}");
    assert!(!ran.log.contains("another installation"), "{ran:#?}");
    assert_eq!(count(setup.data_dir()), 0, "what was begun is removed");

    std::fs::remove_file(blobs.join("instance")).unwrap();
    std::fs::write(blobs.join("instance"), "somebody else's").unwrap();
    let ran = restore(&setup, &folder, &[]);
    assert!(!ran.status.success() && ran.log.contains("another installation"), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_commands_answer_does_not_depend_on_the_log() {
    let service = Service::start().await;
    let quiet = service.sibling().env("LECTERN_LOG", "error");
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("backup");
    let made = lectern(&quiet, &["backup", folder.to_str().unwrap(), "--without-key"]).well();
    assert!(made.out.contains("the backup is made"), "{made:#?}");
    let verified = restore(&quiet, &folder, &["--verify"]).well();
    for words in ["the backup is whole", "not in the backup: the key"] {
        assert!(verified.out.contains(words), "{verified:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_not_called_missing() {
    let service = Service::start().await;
    let place = tempfile::tempdir().unwrap();
    // Nobody can look through a link that leads to itself, not even root.
    let endless = place.path().join("endless");
    std::os::unix::fs::symlink(&endless, &endless).unwrap();
    let setup = service.sibling().env("LECTERN_DATA_DIR", endless.to_str().unwrap());
    let ran = lectern(&setup, &["backup", place.path().join("backup").to_str().unwrap()]);
    assert!(!ran.status.success() && !ran.log.contains("there is no database"), "{ran:#?}");
    let ran = restore(&service.sibling(), &endless, &["--verify"]);
    assert!(!ran.status.success() && !ran.log.contains("is no backup"), "{ran:#?}");
    assert!(ran.log.contains("backup.json: "), "{ran:#?}");

    let key = service.data_dir().join("secret.key");
    std::fs::remove_file(&key).unwrap();
    let folder = place.path().join("backup");
    let ran = back_up(&service, &folder, &[]);
    assert!(!ran.status.success() && ran.log.contains("--without-key"), "{ran:#?}");
    back_up(&service, &folder, &["--without-key"]).well();
}

#[tokio::test(flavor = "multi_thread")]
async fn over_postgresql_it_says_how_else() {
    let service = Service::in_mode(Mode::Postgres).start().await;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("backup");
    for ran in [back_up(&service, &folder, &[]), restore(&service.sibling(), &folder, &[])] {
        let helps = ["pg_dump", "pg_restore"].iter().all(|program| ran.log.contains(program));
        assert!(!ran.status.success() && helps, "{ran:#?}");
    }
    assert!(!folder.exists());
}
