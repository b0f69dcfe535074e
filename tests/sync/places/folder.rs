//! Folders of the machine.

use std::{fs, path::Path};

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::{
    support::{
        client::data,
        command::{doctor, finding},
        in_both_modes,
        service::Mode,
    },
    sync::{counts, documents, found, run, run_path, setup, source, text_of},
};

in_both_modes!(
    a_folder_is_kept_in_step_if_the_operator_has_opened_it,
    a_folder_that_is_not_there_is_named_and_read_once_it_is
);

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
