//! What files are called by clients that write names otherwise than browsers do.

use serde_json::json;

use super::{Form, upload};
use crate::support::{client::data, service::Service};

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_called_by_the_name_that_has_all_its_characters() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    for (names, name, kind) in [
        // As clients of .NET write every name.
        ("filename=\"=?utf-8?B?4oKsLmNzdg==?=\"; filename*=utf-8''%E2%82%AC.csv", "€.csv", "CSV"),
        ("filename=prices.csv; filename*=utf-8''prices.csv", "prices.csv", "CSV"),
        ("filename*=UTF-8'de'%C3%BCber%20%22uns%22.csv; filename=\"_.txt\"", "über \"uns\".csv", "CSV"),
        ("filename*=UTF-8''..%2F..%2Fa%0D%0A%00.csv", "a.csv", "CSV"),
        // What is no such name leaves the other one.
        ("filename=\"plain.txt\"; filename*=UTF-8''%FF.csv", "plain.txt", "TXT"),
        ("filename=\"plain.txt\"; filename*=koi8-r''%C1.csv", "plain.txt", "TXT"),
        ("filename=\"plain.txt\"; filename*=UTF-8''", "plain.txt", "TXT"),
        ("filename=\"plain.txt\"; filename*=a.csv", "plain.txt", "TXT"),
        ("filename=\"a; filename*=UTF-8''b.csv; .txt\"", "a; filename*=UTF-8''b.csv; .txt", "TXT"),
    ] {
        let form = Form::default().part(&format!("name=\"file\"; {names}"), None, b"a,b\n1,2\n");
        let document = data(upload(&ada, form).await);
        assert_eq!((&document["name"], &document["type"]), (&json!(name), &json!(kind)), "{names}");
    }
}
