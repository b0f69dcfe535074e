//! Files, which are the workspace's documents.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Harbour, delete, get, ids, request, success, try_upload, upload};
use crate::support::{
    client::{data, id, send},
    in_both_modes,
    service::Mode,
};

in_both_modes!(
    a_file_is_a_document_and_comes_back_as_it_was,
    files_are_listed_page_by_page_in_both_orders,
    another_workspaces_files_do_not_exist,
);

async fn a_file_is_a_document_and_comes_back_as_it_was(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let text = "Grüße vom Leuchtturm.";
    let file = upload(ada, "gruß.txt", text).await;
    let bytes = u64::try_from(text.len()).expect("a length");
    assert_eq!((&file["object"], &file["filename"]), (&json!("file"), &json!("gruß.txt")), "{file:#}");
    assert_eq!((&file["bytes"], &file["purpose"]), (&json!(bytes), &json!("assistants")), "{file:#}");
    let document = ada.wait_until_ingested(id(&file)).await;
    assert_eq!(document["name"], "gruß.txt");
    let path = format!("/files/{}", id(&file));
    assert_eq!(success(get(ada, &path).await)["status"], "processed");
    let content = send(request(ada, Method::GET, &format!("{path}/content"))).await;
    assert_eq!(content.status(), StatusCode::OK);
    assert_eq!(content.text().await.expect("a text"), text);
    // What was not uploaded is a file too.
    let inline = success(get(ada, &format!("/files/{}", harbour.document)).await);
    assert_eq!(inline["filename"], "Harbour", "{inline:#}");

    let gone = success(delete(ada, &path).await);
    assert_eq!(gone, json!({ "id": file["id"], "object": "file", "deleted": true }));
    for answer in
        [get(ada, &path).await, delete(ada, &path).await, get(ada, &format!("{path}/content")).await]
    {
        assert_eq!(answer.0, StatusCode::NOT_FOUND, "{:#}", answer.1);
    }
    assert_eq!(ada.get(&format!("/documents/{}", id(&file))).await.0, StatusCode::NOT_FOUND);
    let kept = [
        ("purpose", "assistants"),
        ("expires_after[anchor]", "created_at"),
        ("expires_after[seconds]", "3600"),
    ];
    let (status, answer) = try_upload(ada, &kept, Some(("a.txt", "One."))).await;
    assert_eq!(status.as_u16(), 400, "nothing is promised that is not kept: {answer:#}");
}

async fn files_are_listed_page_by_page_in_both_orders(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let mut made = vec![harbour.document.clone()];
    for number in 0..4 {
        made.push(id(&upload(ada, &format!("{number}.txt"), "A note.").await).to_owned());
    }
    let newest_first: Vec<String> = made.iter().rev().cloned().collect();
    assert_eq!(ids(&success(get(ada, "/files").await)), newest_first);
    assert_eq!(ids(&success(get(ada, "/files?purpose=assistants").await)), newest_first);
    assert_eq!(ids(&success(get(ada, "/files?purpose=user_data").await)), newest_first, "they are the same");
    for (order, expected) in [("desc", &newest_first), ("asc", &made)] {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = success(get(ada, &format!("/files?limit=2&order={order}{after}")).await);
            let ids = ids(&page);
            assert_eq!(page["first_id"], json!(ids.first()), "{page:#}");
            assert_eq!(page["last_id"], json!(ids.last()), "{page:#}");
            after = format!("&after={}", ids.last().expect("a page that is not empty"));
            seen.extend(ids);
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(&seen, expected, "{order}");
    }
    for query in ["limit=0", "limit=10001", "limit=x", "order=sideways", "after=x"] {
        let (status, answer) = get(ada, &format!("/files?{query}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {answer:#}");
    }
}

async fn another_workspaces_files_do_not_exist(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let grace = harbour.service.signed_up("grace@example.com").await;
    assert_eq!(success(get(&grace, "/files").await)["data"], json!([]));
    let mut messages: Vec<Value> = Vec::new();
    for file in [harbour.document.clone(), Uuid::now_v7().to_string()] {
        let path = format!("/files/{file}");
        for (status, body) in [
            get(&grace, &path).await,
            get(&grace, &format!("{path}/content")).await,
            delete(&grace, &path).await,
        ] {
            assert_eq!(status, StatusCode::NOT_FOUND, "{body:#}");
            messages.push(body["error"]["message"].clone());
        }
    }
    let (others, nobodys) = messages.split_at(3);
    assert_eq!(others, nobodys, "they are answered alike");
    data(harbour.ada.get(&format!("/documents/{}", harbour.document)).await);
}
