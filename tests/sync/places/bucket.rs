//! Buckets of S3.

use std::fs;

use serde_json::json;

use crate::{
    support::{
        client::{data, id},
        in_both_modes,
        s3::{BUCKET, KEY_ID, S3Server, SECRET},
        service::Mode,
        web::Web,
    },
    sync::{counts, documents, found, run, signed_up, source, text_of},
};

in_both_modes!(a_bucket_is_kept_in_step, a_key_that_cannot_be_read_is_named);

async fn a_bucket_is_kept_in_step(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let store = S3Server::start().await;
    let write = |path: &str, text: &str| {
        let path = store.bucket().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
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
