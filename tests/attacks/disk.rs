//! Full disks, users that fill them, and data directories that are open to others.

use std::{
    fs::{self, File, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    oidc::provider::{Browser, Provider, verified},
    support::{
        client::{Client, PASSWORD, id, send},
        command::{lectern, try_upload as upload},
        in_both_modes,
        process::POLL,
        service::{Mode, Service},
        web::Web,
        within_deadline,
    },
};

in_both_modes!(
    a_user_stores_as_much_as_the_operator_allows_and_no_more,
    many_at_once_store_no_more_than_one_after_the_other
);

/// A disk of its own, so small that it is soon full.
struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    /// None where this user may not mount one.
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=96m", "tmpfs"]).arg(dir.path());
        let mounted = mount.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { dir });
        }
        eprintln!("SKIPPED: this user may not mount a disk of its own, so nothing was shown of a full one");
        None
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut ballast =
            File::options().create(true).append(true).open(self.path().join("ballast")).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            while ballast.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    /// Gives it back.
    fn free(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The service may not have closed its last file.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn text(name: &str, characters: usize) -> Value {
    let sentence = format!("In {name} the bicycles stand beside the lift. ");
    json!({"name": name, "type": "TXT", "content": sentence.repeat(characters / sentence.len() + 1)})
}

async fn until<F: AsyncFnMut() -> bool>(what: &str, mut holds: F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline(what, wait).await;
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_default()
}

async fn finds(client: &Client, document: &str) -> bool {
    let hits = client.create("/search", &json!({"query": "bicycles", "limit": 50})).await;
    hits.as_array().unwrap().iter().any(|hit| hit["documentId"] == document)
}

async fn readiness(client: &Client) -> (StatusCode, Value) {
    let answer = send(client.request_outside(Method::GET, "/health/ready")).await;
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_everything_but_writing_works_and_writing_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let service =
        Service::in_mode(Mode::Embedded).env("LECTERN_DATA_DIR", disk.path().to_str().unwrap()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let (kept, deleted) =
        (client.ingest(&text("kept", 300)).await, client.ingest(&text("deleted", 300)).await);
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow", "text/plain", "The lift holds eight people. ".repeat(2_000));
    let slow = client.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    web.wait_for_hits("/slow", 1).await;

    for round in 0..2 {
        disk.fill();
        let mut accepted = Vec::new();
        let refused = loop {
            match client.post("/documents", &text("more", 200_000)).await {
                (StatusCode::OK, answer) => accepted.push(id(&answer["data"]).to_owned()),
                refused => break refused,
            }
            assert!(accepted.len() < 1_000, "the disk is never full");
        };
        assert_eq!(refused.0, StatusCode::INSUFFICIENT_STORAGE, "{:#}", refused.1);
        assert_eq!(code(&refused.1), "storage_full", "{:#}", refused.1);
        until("a service that is not ready", async || readiness(&client).await.0 != StatusCode::OK).await;
        let (_, shown) = readiness(&client).await;
        assert_eq!(shown["data"]["parts"]["database"]["reason"], "storage_full", "{shown:#}");
        let (status, answer) = upload(&client, "file.txt", &vec![b'x'; 300_000]).await;
        assert_eq!((status, code(&answer)), (StatusCode::INSUFFICIENT_STORAGE, "storage_full"), "{answer:#}");

        // A job that is being worked on waits.
        if round == 0 {
            gate.release();
            let waits = async || {
                let slow = client.read(&format!("/documents/{}", id(&slow))).await;
                slow["ingestion"]["status"] == "QUEUED" && slow["ingestion"]["attempts"] == 0
            };
            until("a job that is given back", waits).await;
        }

        // Reading, searching, signing in, and deleting.
        assert!(finds(&client, id(&kept)).await);
        service.client().sign_in("ada@example.com", PASSWORD).await;
        let victim = if round == 0 { id(&deleted) } else { id(&slow) };
        let (status, answer) = client.delete(&format!("/documents/{victim}")).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        assert!(!finds(&client, victim).await);
        assert_eq!(client.get(&format!("/documents/{victim}")).await.0, StatusCode::NOT_FOUND);

        disk.free();
        let written = async || client.post("/documents", &text("after", 300)).await.0 == StatusCode::OK;
        until("a document that is stored", written).await;
        until("a service that is ready", async || readiness(&client).await.0 == StatusCode::OK).await;
        for document in accepted {
            let document = client.wait_until_ingested(&document).await;
            assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{:#}", document["ingestion"]);
            assert_eq!(document["ingestion"]["attempts"], 1, "{:#}", document["ingestion"]);
        }
        if round == 0 {
            let slow = client.wait_until_ingested(id(&slow)).await;
            assert_eq!(slow["ingestion"]["status"], "SUCCEEDED", "{:#}", slow["ingestion"]);
            assert_eq!(slow["ingestion"]["attempts"], 1, "waiting is no attempt: {:#}", slow["ingestion"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_to_a_full_disk_says_which_disk_that_is_and_leaves_nothing_there() {
    let Some(disk) = SmallDisk::mount() else { return };
    disk.fill();
    let service = Service::start().await;
    let folder = disk.path().join("backup");
    let refused = lectern(&service.sibling(), &["backup", folder.to_str().unwrap()]);
    assert!(!refused.status.success(), "{refused:#?}");
    let told = format!("the disk of {} has too little room", folder.display());
    assert!(refused.log.contains(&told), "{refused:#?}");
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 1, "the ballast alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_the_provider_knows_is_signed_in_on_a_full_disk_and_makes_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    let setup = Service::in_mode(Mode::Embedded).env("LECTERN_DATA_DIR", disk.path().to_str().unwrap());
    let service = provider.set(setup).start().await;
    let ada = Browser::new(&service).sign_in("ada").await;
    let kept = ada.ingest(&text("kept", 300)).await;
    disk.fill();
    until("a full disk", async || {
        ada.post("/documents", &text("more", 200_000)).await.0 == StatusCode::INSUFFICIENT_STORAGE
    })
    .await;
    let again = Browser::new(&service).sign_in("ada").await;
    assert_eq!(again.user(), ada.user());
    let (status, answer) = again.delete(&format!("/documents/{}", id(&kept))).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_on_a_full_disk_makes_room_for_something_else() {
    let Some(disk) = SmallDisk::mount() else { return };
    let service =
        Service::in_mode(Mode::Embedded).env("LECTERN_DATA_DIR", disk.path().to_str().unwrap()).start().await;
    let client = service.signed_up("ada@example.com").await;
    for _ in 0..5 {
        client.ingest(&text("large", 1_000_000)).await;
    }
    let agent = client.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR"})).await;
    let question = json!({"input": {"input": "How many people does the lift hold?"}});
    let (_, answer) = client.post(&format!("/agents/{}/predict", id(&agent)), &question).await;
    let feedback = format!("/traces/{}/feedback", id(&answer["trace"]));
    client.create(&feedback, &json!({"rating": -1, "text": "It holds ten."})).await;
    disk.fill();
    until("a full disk", async || {
        client.post("/documents", &text("more", 200_000)).await.0 == StatusCode::INSUFFICIENT_STORAGE
    })
    .await;
    let (status, answer) = client.delete(&feedback).await;
    assert_eq!((status, &answer["data"]["feedback"]), (StatusCode::OK, &Value::Null), "{answer:#}");
    for document in client.read("/documents").await.as_array().unwrap() {
        let (status, answer) = client.delete(&format!("/documents/{}", id(document))).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
    }
    // Nobody frees the disk from outside.
    until("room for a document", async || {
        client.post("/documents", &text("after", 10_000)).await.0 == StatusCode::OK
    })
    .await;
}

async fn a_user_stores_as_much_as_the_operator_allows_and_no_more(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_MAX_STORAGE", "1MiB").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let first = ada.ingest(&text("first", 300_000)).await;
    let refused = |(status, answer): (StatusCode, Value)| {
        assert_eq!((status, code(&answer)), (StatusCode::FORBIDDEN, "quota_exceeded"), "{answer:#}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("1048576"), "what is allowed is not told: {message}");
    };
    refused(ada.post("/documents", &text("second", 500_000)).await);
    refused(upload(&ada, "file.txt", &vec![b'x'; 500_000]).await);
    let longer = json!({"content": text("first", 900_000)["content"]});
    refused(ada.patch(&format!("/documents/{}", id(&first)), &longer).await);
    assert_eq!(ada.read("/documents").await.as_array().unwrap().len(), 1, "nothing of it is there");

    // What is fetched is not kept, and the passages made of it are.
    let web = Web::start().await;
    let url = web.serve("/page", "text/plain", text("page", 500_000)["content"].as_str().unwrap().to_owned());
    let page = ada.create_document(&json!({"name": "page", "type": "TXT", "url": url})).await;
    let page = ada.wait_until_ingested(id(&page)).await;
    let error = &page["ingestion"]["error"];
    assert_eq!((&page["ingestion"]["status"], &error["code"]), (&json!("FAILED"), &json!("quota_exceeded")));
    assert_eq!(error["retryable"], false, "{error:#}");

    // Nobody else has less, and whoever deletes has more.
    let grace = service.signed_up("grace@example.com").await;
    grace.ingest(&text("another's", 300_000)).await;
    assert_eq!(ada.patch(&format!("/documents/{}", id(&first)), &json!({"name": "renamed"})).await.0, 200);
    ada.wait_until_ingested(id(&first)).await;
    assert_eq!(ada.delete(&format!("/documents/{}", id(&first))).await.0, StatusCode::OK);
    until("the deleted document to be purged", async || {
        ada.post("/documents", &text("second", 500_000)).await.0 == StatusCode::OK
    })
    .await;
}

async fn many_at_once_store_no_more_than_one_after_the_other(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_MAX_STORAGE", "1MiB").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let note = text("note", 400_000);
    let file = note["content"].as_str().unwrap();
    let uploads = join_all((0..8).map(|_| upload(&ada, "file.txt", file.as_bytes()))).await;
    let notes = join_all((0..8).map(|_| grace.post("/documents", &note))).await;
    for answers in [uploads, notes] {
        let stored = answers.iter().filter(|(status, _)| *status == StatusCode::OK).count();
        // The first one's passages may be there before the last one comes.
        assert!((1..=2).contains(&stored), "{answers:#?}");
        for (_, answer) in answers.iter().filter(|(status, _)| *status != StatusCode::OK) {
            assert_eq!(code(answer), "quota_exceeded", "{answer:#}");
        }
    }
}

/// Every file and folder under a path, with its mode.
fn modes(path: &Path) -> Vec<(String, u32)> {
    let mut found =
        vec![(path.display().to_string(), fs::metadata(path).unwrap().permissions().mode() & 0o777)];
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            found.extend(modes(&entry.unwrap().path()));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_was_open_to_everybody_is_closed_with_all_that_is_in_it() {
    let mut service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    assert_eq!(upload(&client, "file.txt", b"The lift holds eight people.").await.0, StatusCode::OK);
    service.kill();
    for (path, mode) in modes(service.data_dir()) {
        fs::set_permissions(&path, Permissions::from_mode(mode | mode >> 3 | mode >> 6)).unwrap();
    }
    service.restart().await;
    assert_eq!(upload(&client, "file.txt", b"The lift holds nine people.").await.0, StatusCode::OK);
    let open: Vec<_> = modes(service.data_dir()).into_iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "others can read {open:?}");
}
