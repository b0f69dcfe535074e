//! Folders of the machine.

use std::{fs, path::Path};

use axum::http::StatusCode;
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    support::{
        client::{Client, data, envelope, id, send},
        command::{doctor, finding},
        in_both_modes,
        service::{Mode, Service},
    },
    sync::{counts, documents, found, run, run_path, settled, setup, source, text_of},
};

in_both_modes!(
    a_folder_is_kept_in_step_if_the_operator_has_opened_it,
    a_folder_that_is_not_there_is_named_and_read_once_it_is,
    what_is_there_again_when_somebody_says_that_it_may_go_stays,
    hidden_files_are_left_out_unless_they_are_named,
    a_folder_with_more_files_than_it_may_have_documents_says_so_and_is_followed,
    a_full_workspace_takes_a_file_that_has_changed_and_is_not_larger
);

/// Makes a folder that sources may read, and a service for somebody that may read it.
pub(super) async fn opened(mode: Mode) -> (Service, Client, TempDir) {
    let open = tempfile::tempdir().expect("a folder");
    let path = open.path().to_str().expect("text").to_owned();
    let service = setup(mode).env("LECTERN_SOURCE_FOLDERS", &path).start().await;
    let client = service.signed_up("ada@example.com").await;
    (service, client, open)
}

/// The documents, as pairs of name and id, by their names.
pub(super) async fn named(client: &Client) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let mut named: Vec<_> = documents(client)
        .await
        .iter()
        .map(|document| (text(&document["name"]), text(&document["id"])))
        .collect();
    named.sort();
    named
}

async fn what_is_there_again_when_somebody_says_that_it_may_go_stays(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    let share = open.path().join("share");
    fs::create_dir(&share).expect("a folder");
    let write = |name: &str| fs::write(share.join(name), format!("Words of {name}.")).expect("a file");
    let remove = |name: &str| fs::remove_file(share.join(name)).expect("a file");
    for name in ["a.txt", "b.txt", "c.txt"] {
        write(name);
    }
    let source = source(&client, "folder", json!({"path": share})).await;
    assert_eq!(counts(&run(&client, &source).await), [3, 0, 0, 0, 0]);
    let before = named(&client).await;
    let confirmed = async |asking: &Value| {
        assert_eq!(asking["state"], "waiting", "{asking:#}");
        data(client.post(&format!("{}/confirm", run_path(asking)), &json!({})).await);
        settled(&client, asking).await
    };

    for name in ["a.txt", "b.txt", "c.txt"] {
        remove(name);
    }
    let asking = run(&client, &source).await;
    assert_eq!(counts(&asking), [0, 0, 0, 3, 0], "{asking:#}");
    // The share is mounted again; one of its files is gone indeed.
    write("a.txt");
    write("b.txt");
    let ended = confirmed(&asking).await;
    assert_eq!((&ended["state"], counts(&ended)), (&json!("succeeded"), [0, 0, 2, 1, 0]), "{ended:#}");
    let told = "2 of the 3 documents that were gone are there again, and stay.";
    assert_eq!(ended["warning"], told, "{ended:#}");
    let listed = found(&client, &ended).await;
    assert!(
        matches!(listed.as_slice(), [(item, what, _)] if item == "c.txt" && what == "gone"),
        "{listed:?}"
    );
    assert_eq!(named(&client).await, before[..2]);
    assert_eq!(counts(&run(&client, &source).await), [0, 0, 2, 0, 0]);

    // What cannot be looked for is not deleted.
    remove("a.txt");
    remove("b.txt");
    let asking = run(&client, &source).await;
    fs::rename(&share, open.path().join("elsewhere")).expect("a folder");
    let ended = confirmed(&asking).await;
    assert_eq!(ended["state"], "failed", "{ended:#}");
    let why = ended["error"].as_str().expect("why");
    assert!(why.contains("Nothing is deleted") && why.contains("no such folder"), "{why}");
    assert_eq!(named(&client).await, before[..2]);
}

async fn hidden_files_are_left_out_unless_they_are_named(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    fs::create_dir(open.path().join(".git")).expect("a folder");
    for name in [".env", ".git/config", "~$leave.docx", "leave.md"] {
        fs::write(open.path().join(name), format!("Words of {name}.")).expect("a file");
    }
    let names = async || named(&client).await.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let made = source(&client, "folder", json!({"path": open.path()})).await;
    let first = run(&client, &made).await;
    assert_eq!((counts(&first), &first["skipped"]), ([1, 0, 0, 0, 0], &json!(3)), "{first:#}");
    assert_eq!(names().await, ["leave.md"]);
    let listed = found(&client, &first).await;
    for hidden in [".env", ".git", "~$leave.docx"] {
        let is_told = |(item, what, why): &(String, String, String)| {
            item == hidden && what == "skipped" && why.starts_with("Hidden files")
        };
        assert!(listed.iter().any(is_told), "{hidden}: {listed:?}");
    }
    let path = format!("/sources/{}", id(&made));
    let change = async |include: Value| {
        let config = json!({"path": open.path(), "include": include});
        data(client.patch(&path, &json!({"config": config, "deleteLimit": 100})).await);
        run(&client, &made).await
    };
    assert_eq!(counts(&change(json!(["*", ".env"])).await), [1, 0, 1, 0, 0]);
    assert_eq!(names().await, [".env", "leave.md"]);
    // What is not named any more is gone, and it is said why.
    let last = change(json!(["*"])).await;
    assert_eq!(counts(&last), [0, 0, 1, 1, 0], "{last:#}");
    assert!(
        found(&client, &last)
            .await
            .iter()
            .any(|(item, what, why)| { item == ".env" && what == "gone" && why.starts_with("Hidden files") })
    );
    assert_eq!(names().await, ["leave.md"]);
}

async fn a_folder_with_more_files_than_it_may_have_documents_says_so_and_is_followed(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    for name in ["2.txt", "3.txt", "4.txt"] {
        fs::write(open.path().join(name), name).expect("a file");
    }
    let config = json!({"path": open.path(), "maxDocuments": 2});
    let body = json!({"name": "Many", "type": "folder", "config": config, "deleteLimit": 100});
    let source = client.create("/sources", &body).await;
    let limit = |left_out| json!(format!("The limit of 2 documents is reached: {left_out} left out."));
    let first = run(&client, &source).await;
    assert_eq!((counts(&first), &first["warning"]), ([2, 0, 0, 0, 0], &limit(1)), "{first:#}");
    // Be it the first of them: there are no more documents.
    fs::write(open.path().join("1.txt"), "1.txt").expect("a file");
    let second = run(&client, &source).await;
    assert_eq!((counts(&second), &second["warning"]), ([0, 0, 2, 0, 0], &limit(2)), "{second:#}");
    // And what is gone goes, which makes room.
    fs::remove_file(open.path().join("2.txt")).expect("a file");
    let third = run(&client, &source).await;
    assert_eq!((counts(&third), &third["warning"]), ([0, 0, 1, 1, 0], &limit(2)), "{third:#}");
    let fourth = run(&client, &source).await;
    assert_eq!((counts(&fourth), &fourth["warning"]), ([1, 0, 1, 0, 0], &limit(1)), "{fourth:#}");
    let names: Vec<_> = named(&client).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["1.txt", "3.txt"]);
    fs::remove_file(open.path().join("4.txt")).expect("a file");
    let last = run(&client, &source).await;
    assert_eq!((counts(&last), &last["warning"]), ([0, 0, 2, 0, 0], &json!(null)), "{last:#}");
}

async fn a_folder_is_kept_in_step_if_the_operator_has_opened_it(mode: Mode) {
    let (open, shut) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let folder = open.path().join("handbook");
    fs::create_dir_all(folder.join("deep")).expect("a folder");
    let write = |path: &str, text: &str| fs::write(folder.join(path), text).expect("a file");
    write("leave.md", "# Leave\n\nThirty days of leave a year.");
    write("deep/travel.txt", "Travel is paid by the kilometre.");
    write("empty.txt", "");
    fs::write(shut.path().join("secret.txt"), "Not for users.").expect("a file");
    std::os::unix::fs::symlink(shut.path(), folder.join("link")).expect("a link");
    let opened = open.path().to_str().expect("text").to_owned();
    let service = setup(mode).env("LECTERN_SOURCE_FOLDERS", &opened).start().await;
    let client = service.signed_up("ada@example.com").await;
    let refused = async |path: &Path| {
        let body = json!({"name": "x", "type": "folder", "config": {"path": path}});
        let (status, body) = client.post("/sources", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
        assert_eq!(body["error"]["fields"][0]["path"], "config.path", "{body:#}");
    };
    refused(shut.path()).await;
    refused(&open.path().join("../etc")).await;
    refused(Path::new("handbook")).await;

    let source = source(&client, "folder", json!({"path": folder})).await;
    let first = run(&client, &source).await;
    assert_eq!(
        (&first["state"], counts(&first)),
        (&json!("succeeded"), [2, 0, 0, 0, 1]),
        "{:?}",
        found(&client, &first).await
    );
    let all = documents(&client).await;
    let travel = all.iter().find(|document| document["name"] == "deep/travel.txt").expect("it is there");
    assert!(text_of(&client, travel).await.contains("by the kilometre"));
    let request = client.request(Method::PUT, &format!("/documents/{}/file", id(travel)));
    let form =
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nOther.\r\n--x--\r\n";
    let request = request.header(CONTENT_TYPE, "multipart/form-data; boundary=x").body(form);
    let (status, body) = envelope(send(request).await).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "what a source brings is the source's: {body:#}");
    assert_eq!(body["error"]["fields"][0]["path"], "file", "{body:#}");
    write("deep/travel.txt", "Travel is paid by the mile.");
    fs::remove_file(folder.join("leave.md")).expect("a file");
    let second = run(&client, &source).await;
    assert_eq!((&second["state"], counts(&second)), (&json!("waiting"), [0, 1, 0, 1, 1]), "{second:#}");
    let cancelled = data(client.post(&format!("{}/cancel", run_path(&second)), &json!({})).await);
    assert_eq!(cancelled["state"], "cancelled");
    assert_eq!(documents(&client).await.len(), 2, "the answer was no");
    let (status, body) = client.post(&format!("{}/confirm", run_path(&second)), &json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("nothing_to_confirm")));
    assert!(text_of(&client, travel).await.contains("by the mile"));
}

async fn a_folder_that_is_not_there_is_named_and_read_once_it_is(mode: Mode) {
    let open = tempfile::tempdir().expect("a folder");
    let (there, later) = (open.path().join("there"), open.path().join("later"));
    fs::create_dir(&there).expect("a folder");
    let [there, later] = [there, later].map(|folder| folder.to_str().expect("text").to_owned());
    let service = setup(mode).env("LECTERN_SOURCE_FOLDERS", &format!("{there},{later}")).start().await;
    let client = service.signed_up("ada@example.com").await;
    let names = |event: &Value, folder: &str| event["fields"]["folder"] == folder;
    let warning = service.logged("the missing folder", |event| names(event, &later)).await;
    assert_eq!(warning["level"], "WARN", "{warning:#}");
    assert!(!service.log_events().iter().any(|event| names(event, &there)), "the other one is there");
    let (sound, report) = doctor(&service.sibling(), &[]);
    let missing = finding(&report, "folder_missing").unwrap_or_else(|| panic!("{report:#}"));
    assert!(sound && missing["severity"] == "warning" && missing["part"] == "sources", "{report:#}");
    assert!(missing["what"].as_str().is_some_and(|what| what.contains(&later)), "{report:#}");

    // It is mounted.
    fs::create_dir(&later).expect("a folder");
    fs::write(Path::new(&later).join("leave.md"), "# Leave\n\nThirty days of leave a year.").expect("a file");
    let (sound, report) = doctor(&service.sibling(), &[]);
    assert!(sound && finding(&report, "folder_missing").is_none(), "{report:#}");
    let source = source(&client, "folder", json!({ "path": later })).await;
    let first = run(&client, &source).await;
    assert_eq!(counts(&first), [1, 0, 0, 0, 0], "{:?}", found(&client, &first).await);
}

async fn a_full_workspace_takes_a_file_that_has_changed_and_is_not_larger(mode: Mode) {
    let (_service, client, open) = opened(mode).await;
    let write = |text: &str| fs::write(open.path().join("notice.txt"), text).expect("a file");
    write("The notice period is six months.");
    let source = source(&client, "folder", json!({"path": open.path()})).await;
    assert_eq!(counts(&run(&client, &source).await), [1, 0, 0, 0, 0]);
    let document = documents(&client).await.remove(0);
    assert_eq!(text_of(&client, &document).await, "The notice period is six months.");
    // The first account is the operator's, who sets quotas.
    let workspace = format!("/workspaces/{}", client.user()["id"].as_str().expect("an id"));
    let used = client.read(&workspace).await["used"]["bytes"].clone();
    data(client.patch(&workspace, &json!({"quotas": {"bytes": used}})).await);

    write("The notice period is two months.");
    let changed = run(&client, &source).await;
    assert_eq!(counts(&changed), [0, 1, 0, 0, 0], "{changed:#}");
    assert_eq!(text_of(&client, &document).await, "The notice period is two months.");
    write("The notice period is two months, and a day.");
    let larger = run(&client, &source).await;
    assert_eq!(counts(&larger), [0, 0, 0, 0, 1], "{larger:#}");
    assert_eq!(text_of(&client, &document).await, "The notice period is two months.");
}
