//! `lectern doctor`: it names what somebody broke, and mends what can be mended.

use reqwest::StatusCode;
use serde_json::{Value, json};
use url::Url;

use crate::support::{
    client::{Client, id},
    command::{blobs_of, doctor, finding, lectern, meddle, named, upload},
    db::PostgresServer,
    in_both_modes,
    qdrant::QdrantServer,
    service::{Mode, Service},
    web::Web,
    within_deadline,
};

in_both_modes!(
    a_sound_installation_has_no_errors,
    what_was_deleted_is_named_and_what_can_be_mended_is,
    an_index_that_is_gone_is_filled_again_by_the_next_start,
    documents_and_jobs_that_nobody_would_take_up_are_taken_up,
    what_belongs_to_nobody_goes,
    a_key_that_only_a_webhook_needs_still_is_named,
    a_qdrant_that_lost_its_data_is_filled_again_while_the_service_runs
);

/// Waits until a document answers from another generation than it did.
async fn indexed_anew(client: &Client, before: &Value) -> Value {
    let path = format!("/documents/{}", id(before));
    let anew = async {
        loop {
            let shown = client.read(&path).await;
            let generation = &shown["index"]["generation"];
            if generation.is_string() && *generation != before["index"]["generation"] {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    within_deadline("a new generation", anew).await
}

async fn uploaded(client: &Client, name: &str, text: &str) -> Value {
    let document = upload(client, name, text.as_bytes()).await;
    let document = client.wait_until_ingested(id(&document)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
    document
}

/// Asks a new agent over these documents, and expects the first citation to be of `expected`.
async fn assert_cited(client: &Client, documents: &[&Value], question: &str, expected: &Value) {
    let agent = client.create_agent(&json!({"name": "caretaker", "type": "CHATVENDOR"})).await;
    for document in documents {
        client.link(id(&agent), id(document)).await;
    }
    let (status, answer) = client.predict(id(&agent), question).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["documentId"], expected["id"], "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["verified"], true, "{answer:#}");
}

fn sorted(documents: &[&Value]) -> Vec<String> {
    let mut ids: Vec<String> = documents.iter().map(|document| id(document).to_owned()).collect();
    ids.sort();
    ids
}

async fn a_sound_installation_has_no_errors(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    client
        .ingest(&json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."}))
        .await;
    uploaded(&client, "hours.txt", "Quiet hours begin at ten.").await;
    // The house is kept for the first time some seconds after the start.
    let kept = async {
        while doctor(&service.sibling(), &[]).1["running"] != true {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    within_deadline("the service to be noticed", kept).await;
    for arguments in [&[][..], &["--deep"], &["--repair"]] {
        let (sound, report) = doctor(&service.sibling(), arguments);
        assert!(sound, "{report:#}");
        // A warning on the sandbox is about the machine that the tests run on.
        let is_bad = |finding: &&Value| finding["severity"] != "ok" && finding["part"] != "sandbox";
        let bad = report["findings"].as_array().unwrap().iter().find(is_bad);
        assert_eq!(bad, None, "{report:#}");
        assert_eq!(report["queued"], 0);
        assert_eq!(report["running"], true, "{report:#}");
    }
    let words = lectern(&service.sibling(), &["doctor"]).well().out;
    assert!(words.contains("2 documents are searchable") && words.contains("the key is right"), "{words}");
    assert!(!words.contains("rules") && !words.contains("hours"), "names of documents: {words}");
}

async fn what_was_deleted_is_named_and_what_can_be_mended_is(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_INDEX_GRACE", "0s").start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let text = |name: &str, content: &str| json!({"name": name, "type": "TXT", "content": content});
    let whole = client.ingest(&text("whole", "Parcels are left with the porter.")).await;
    let unindexed = client.ingest(&text("unindexed", "Bicycles belong in the cellar.")).await;
    let rowless = client.ingest(&text("rowless", "Quiet hours begin at ten.")).await;
    let emptied = client.ingest(&text("emptied", "The laundry opens on weekdays.")).await;
    let url = web.serve("/roof.txt", "text/plain", "The roof is closed in winter.");
    let fetched = client.ingest(&json!({"name": "fetched", "type": "TXT", "url": url})).await;
    let kept = uploaded(&client, "kept.txt", "The lift holds eight people.").await;
    let lost = uploaded(&client, "lost.txt", "The safe opens with a key.").await;
    let setup = service.sibling();

    // Somebody with a shell.
    let (folder, mark) = blobs_of(&service);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    for statement in [
        "DELETE FROM index_segments WHERE generation_id IN (SELECT active_generation FROM documents WHERE name = 'unindexed')",
        "DELETE FROM generations WHERE id IN (SELECT active_generation FROM documents WHERE name = 'rowless')",
        "DELETE FROM chunks WHERE document_id IN (
             SELECT id FROM documents WHERE name IN ('emptied', 'fetched', 'lost.txt', 'lost'))",
    ] {
        assert!(meddle(mode, &setup, statement).await > 0, "{statement}");
    }

    let (sound, report) = doctor(&setup, &[]);
    assert!(!sound);
    let unmarked = finding(&report, "unmarked").unwrap_or_else(|| panic!("{report:#}"));
    assert!(unmarked["todo"].as_str().unwrap().contains(&mark), "{report:#}");
    assert_eq!(named(&report, "passages_unclear"), sorted(&[&lost]), "{report:#}");
    // The files are lost for good; the operator does what it says.
    std::fs::write(folder.join("instance"), &mark).unwrap();

    let (sound, report) = doctor(&setup, &[]);
    assert!(!sound);
    for (code, documents) in [
        ("generation_missing", &[&rowless][..]),
        ("passages_missing", &[&emptied, &fetched]),
        ("passages_lost", &[&lost]),
        ("files_missing", &[&kept, &lost]),
    ] {
        assert_eq!(named(&report, code), sorted(documents), "{code}: {report:#}");
        assert!(finding(&report, code).unwrap()["todo"].is_string(), "{report:#}");
    }
    assert_eq!(finding(&report, "files_missing").unwrap()["repairable"], false);
    // The service may have come across what the index has lost, and have mended it, by itself.
    let missing = named(&report, "entries_missing");
    assert!(missing.is_empty() || missing == sorted(&[&unindexed]), "{report:#}");

    let (_, report) = doctor(&setup, &["--repair"]);
    assert!([Some(4), Some(5)].contains(&report["queued"].as_u64()), "{report:#}");
    assert!(
        finding(&report, "passages_missing").is_none(),
        "what is queued is not wrong any more: {report:#}"
    );
    let mut mended = Vec::new();
    for before in [&unindexed, &rowless, &emptied, &fetched] {
        let after = indexed_anew(&client, before).await;
        assert_eq!(after["index"]["chunks"], before["index"]["chunks"], "{after:#}");
        mended.push(after);
    }
    let failed = client.wait_until_ingested(id(&lost)).await;
    assert_eq!(failed["ingestion"]["status"], "FAILED", "{failed:#}");
    assert_eq!(failed["ingestion"]["error"]["code"], "not_found", "{failed:#}");
    assert_eq!(failed["index"], Value::Null, "it does not claim to be searchable: {failed:#}");
    let all = [&whole, &unindexed, &rowless, &emptied, &fetched, &kept];
    for (question, document) in [
        ("Where are parcels left?", &whole),
        ("Where do bicycles belong?", &unindexed),
        ("When do quiet hours begin?", &rowless),
        ("When does the laundry open?", &emptied),
        ("When is the roof closed?", &fetched),
        ("How many people does the lift hold?", &kept),
    ] {
        assert_cited(&client, &all, question, document).await;
    }

    let (sound, report) = doctor(&setup, &["--deep"]);
    assert!(!sound && named(&report, "files_missing") == sorted(&[&kept, &lost]), "{report:#}");
    for document in [&kept, &lost] {
        let (status, _) = client.delete(&format!("/documents/{}", id(document))).await;
        assert_eq!(status, StatusCode::OK);
    }
    let (sound, report) = doctor(&setup, &["--deep"]);
    assert!(sound, "{report:#}");
}

async fn an_index_that_is_gone_is_filled_again_by_the_next_start(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let rules = json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."});
    let before = client.ingest(&rules).await;
    service.terminate().await;
    let setup = service.sibling();
    assert!(meddle(mode, &setup, "DELETE FROM index_segments").await > 0);

    let words = lectern(&setup, &["doctor", "--repair"]).well().out;
    assert!(words.contains("1 document was queued"), "{words}");
    if mode == Mode::Embedded {
        assert!(words.contains("does not run: start it"), "{words}");
    }
    service.restart().await;
    let after = indexed_anew(&client, &before).await;
    assert_cited(&client, &[&after], "Where do bicycles belong?", &after).await;
    let (sound, report) = doctor(&setup, &[]);
    assert!(sound, "{report:#}");
}

async fn documents_and_jobs_that_nobody_would_take_up_are_taken_up(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = |name: &str| json!({"name": name, "type": "TXT", "content": "Bicycles belong in the cellar."});
    let jobless = client.ingest(&text("jobless")).await;
    let held = client.ingest(&text("held")).await;
    let waiting = client.ingest(&text("waiting")).await;
    service.terminate().await;
    let setup = service.sibling();
    for statement in [
        "DELETE FROM jobs WHERE document_id IN (SELECT id FROM documents WHERE name = 'jobless')",
        "UPDATE jobs SET state = 'running', lease_until = 1, claimed_revision = 0
         WHERE document_id IN (SELECT id FROM documents WHERE name = 'held')",
        "UPDATE jobs SET state = 'queued', run_at = 1, from_stored = TRUE
         WHERE document_id IN (SELECT id FROM documents WHERE name = 'waiting')",
    ] {
        assert_eq!(meddle(mode, &setup, statement).await, 1, "{statement}");
    }

    let (sound, report) = doctor(&setup, &[]);
    assert!(!sound);
    assert_eq!(named(&report, "no_job"), sorted(&[&jobless]), "{report:#}");
    assert_eq!(finding(&report, "stale_leases").unwrap()["count"], 1, "{report:#}");
    let late = finding(&report, "late").unwrap_or_else(|| panic!("{report:#}"));
    assert!(late["todo"].as_str().unwrap().contains("start the service"), "{report:#}");

    let (sound, report) = doctor(&setup, &["--repair"]);
    assert!(sound && finding(&report, "stale_leases").is_none(), "{report:#}");
    service.restart().await;
    for before in [&jobless, &held, &waiting] {
        let after = indexed_anew(&client, before).await;
        assert_eq!(after["ingestion"]["status"], "SUCCEEDED", "{after:#}");
    }
}

async fn a_key_that_only_a_webhook_needs_still_is_named(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let webhook = json!({"url": "http://127.0.0.1:9/told", "events": ["document.deleted"]});
    client.create("/webhooks", &webhook).await;
    let setup = service.sibling();
    let old = match setup.environment().get("LECTERN_SECRET_KEY") {
        Some(key) => key.to_str().expect("text").to_owned(),
        // Embedded, one was made.
        None => std::fs::read_to_string(service.data_dir().join("secret.key")).expect("a key"),
    };
    let setup = setup
        .env("LECTERN_SECRET_KEY", "a new key, of thirty-two bytes or more")
        .env("LECTERN_SECRET_KEY_PREVIOUS", &old);
    let (_, report) = doctor(&setup, &[]);
    // The webhook's secret and its address, and what a wrong key is noticed by.
    let told = "3 of 3 secrets need LECTERN_SECRET_KEY_PREVIOUS still";
    assert!(report.to_string().contains(told), "{report:#}");
}

async fn what_belongs_to_nobody_goes(mode: Mode) {
    let mut service = Service::in_mode(mode).env("LECTERN_INDEX_GRACE", "0s").start().await;
    let client = service.signed_up("ada@example.com").await;
    client
        .ingest(&json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."}))
        .await;
    client.ingest(&json!({"name": "gone", "type": "TXT", "content": "Quiet hours begin at ten."})).await;
    let kept = uploaded(&client, "kept.txt", "The lift holds eight people.").await;
    let (folder, _) = blobs_of(&service);
    service.terminate().await;
    let setup = service.sibling();
    for statement in [
        "DELETE FROM generations WHERE id IN (SELECT active_generation FROM documents WHERE name = 'gone')",
        "DELETE FROM jobs WHERE document_id IN (SELECT id FROM documents WHERE name = 'gone')",
        "DELETE FROM documents WHERE name = 'gone'",
    ] {
        assert_eq!(meddle(mode, &setup, statement).await, 1, "{statement}");
    }
    let stray = |name: &str| folder.join("00").join("01890000-0000-7000-8000-000000000000").join(name);
    std::fs::create_dir_all(stray("").as_path()).unwrap();
    let hour = std::time::Duration::from_hours(1);
    for (name, age) in [("0a", hour * 2), ("0b", hour / 2), ("0c", hour * 2)] {
        let file = std::fs::File::create(stray(name)).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap() - age;
        file.set_modified(modified).unwrap();
    }

    // One that was replaced just before the service stopped.
    let replaced =
        "INSERT INTO loose_files (blob_key, purge_at) VALUES ('01890000-0000-7000-8000-000000000000/0c', 0)";
    assert_eq!(meddle(mode, &setup, replaced).await, 1);

    let (sound, report) = doctor(&setup, &[]);
    assert!(sound, "nothing is wrong: {report:#}");
    let leftovers = finding(&report, "leftovers").unwrap_or_else(|| panic!("{report:#}"));
    assert!(leftovers["what"].as_str().unwrap().contains("1 passages, 1 parts of the index"), "{report:#}");
    assert_eq!(finding(&report, "orphans").unwrap()["count"], 1, "{report:#}");
    let (sound, report) = doctor(&setup, &["--repair"]);
    assert!(sound, "{report:#}");
    assert!(!stray("0a").exists() && stray("0b").exists(), "a young one may get its document yet");
    assert!(stray("0c").exists(), "the service sees to it");
    service.restart().await;
    let gone = async {
        while meddle(mode, &setup, "UPDATE generations SET chunks = chunks WHERE state = 'removing'").await
            > 0
        {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    within_deadline("the leftovers to be purged", gone).await;
    let removed = async {
        while stray("0c").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    within_deadline("the replaced file to be removed", removed).await;
    let (sound, report) = doctor(&setup, &[]);
    assert!(sound && finding(&report, "leftovers").is_none(), "{report:#}");
    assert_cited(&client, &[&kept], "How many people does the lift hold?", &kept).await;
}

async fn a_qdrant_that_lost_its_data_is_filled_again_while_the_service_runs(mode: Mode) {
    let Some(qdrant) = QdrantServer::named() else { return };
    let service = qdrant.used_by(Service::in_mode(mode), qdrant.url()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let rules = json!({"name": "rules", "type": "TXT", "content": "Bicycles belong in the cellar."});
    let before = client.ingest(&rules).await;
    let setup = service.sibling();
    let (sound, report) = doctor(&setup, &[]);
    assert!(sound, "{report:#}");
    qdrant.forget(&service).await;

    let (sound, report) = doctor(&setup, &[]);
    assert!(!sound && finding(&report, "collection_missing").is_some(), "{report:#}");
    // The service may have come across it by itself, and have queued the document: then it waits for its collection.
    let missing = named(&report, "entries_missing");
    let told = if missing.is_empty() { named(&report, "under_way") } else { missing };
    assert_eq!(told, sorted(&[&before]), "{report:#}");
    let (sound, report) = doctor(&setup, &["--repair"]);
    assert!(sound && [Some(0), Some(1)].contains(&report["queued"].as_u64()), "{report:#}");
    let after = indexed_anew(&client, &before).await;
    assert_cited(&client, &[&after], "Where do bicycles belong?", &after).await;
    qdrant.forget(&service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_key_is_named_and_no_other_is_made_in_its_place() {
    let mut service = Service::start().await;
    service.signed_up("ada@example.com").await;
    service.terminate().await;
    let key = service.data_dir().join("secret.key");
    let saved = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();

    let (sound, report) = doctor(&service.sibling(), &[]);
    assert!(!sound);
    let lost = finding(&report, "lost").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(lost["part"], "secret", "{report:#}");
    let refusal = service.sibling().start_refused().await;
    assert!(refusal.log.contains("secret.key") && refusal.log.contains("backup"), "{}", refusal.log);
    assert!(!key.exists(), "a fresh key would only hide what is wrong");

    std::fs::write(&key, "quite another key, that is long enough for one").unwrap();
    let (sound, report) = doctor(&service.sibling(), &[]);
    let wrong = finding(&report, "wrong").unwrap_or_else(|| panic!("{report:#}"));
    assert!(!sound && wrong.to_string().contains("secret.key"), "{report:#}");
    let refusal = service.sibling().start_refused().await;
    assert!(refusal.log.contains("secret.key does not hold the key"), "{}", refusal.log);
    std::fs::write(&key, "half of a key").unwrap();
    let refusal = service.sibling().start_refused().await;
    assert!(refusal.log.contains("secret.key: the secret key must have"), "{}", refusal.log);
    std::fs::write(&key, saved).unwrap();
    service.restart().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_where_nothing_is() {
    let setup = Service::in_mode(Mode::Embedded);
    let (sound, report) = doctor(&setup, &["--repair"]);
    assert!(!sound && finding(&report, "no_database").is_some(), "{report:#}");
    assert_eq!(std::fs::read_dir(setup.data_dir()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_a_finding_like_any_other() {
    let mut service = Service::start().await;
    service.terminate().await;
    std::fs::write(
        service.data_dir().join("lectern.db"),
        "no database at all, but long enough to be looked at",
    )
    .unwrap();
    let (sound, report) = doctor(&service.sibling(), &[]);
    assert!(!sound, "{report:#}");
    let part = report["findings"].as_array().unwrap().iter().find(|finding| finding["severity"] == "error");
    assert_eq!(part.unwrap()["part"], "database", "{report:#}");
    assert!(part.unwrap()["todo"].as_str().unwrap().contains("restore"), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn that_postgresql_has_no_connection_left_is_told_with_what_to_do() {
    let server = PostgresServer::start().await;
    let setup = Service::in_mode(Mode::Postgres).database_url(&server.url());
    meddle(Mode::Postgres, &setup, "CREATE ROLE crowded LOGIN PASSWORD 'crowded' CONNECTION LIMIT 0").await;
    let mut url = Url::parse(&server.url()).expect("an address");
    url.set_username("crowded").expect("a name");
    url.set_password(Some("crowded")).expect("a password");
    let (sound, report) = doctor(&setup.database_url(url.as_str()), &[]);
    assert!(!sound, "{report:#}");
    let todo = finding(&report, "unreachable").expect("a finding")["todo"].as_str().unwrap_or_default();
    assert!(todo.contains("CONNECTION LIMIT"), "{report:#}");
}
