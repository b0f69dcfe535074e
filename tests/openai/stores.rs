//! Vector stores, which are the workspace's collections: what is put into them, and how it is found.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Harbour, delete, get, id_of, ids, post, read, request, settled, success, upload};
use crate::support::{
    client::{Client, data, id, send},
    in_both_modes,
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(
    a_vector_store_is_a_collection,
    files_have_attributes_and_searches_filter_by_them,
    attributes_that_a_file_is_given_replace_the_earlier_ones_and_null_takes_them_away,
    what_is_put_there_again_under_one_key_is_answered_as_the_first_time,
    a_batch_ends_when_all_of_its_files_do,
    a_batch_that_is_cancelled_stops,
    stores_and_their_files_are_listed_page_by_page,
    another_workspaces_stores_do_not_exist,
);

async fn store(client: &Client, name: &str) -> String {
    id_of(post(client, "/vector_stores", &json!({ "name": name })).await)
}

async fn what_is_put_there_again_under_one_key_is_answered_as_the_first_time(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let store = store(ada, "Tower").await;
    for (what, body) in [
        ("files", json!({ "file_id": harbour.document })),
        ("file_batches", json!({ "file_ids": [harbour.document] })),
    ] {
        let path = format!("/vector_stores/{store}/{what}");
        let put = async || {
            let put = request(ada, Method::POST, &path).header("Idempotency-Key", what).json(&body);
            let answer = send(put).await;
            let is_replayed = answer.headers().contains_key("idempotent-replayed");
            (is_replayed, success(read(answer).await))
        };
        let ((first_replayed, first), (replayed, again)) = (put().await, put().await);
        assert_eq!((first_replayed, replayed), (false, true), "{what}");
        assert_eq!(first, again, "{what}");
        assert!(first["id"].is_string(), "{first:#}");
    }
}

async fn a_vector_store_is_a_collection(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let body =
        json!({ "name": "Lighthouse", "metadata": { "season": "spring" }, "file_ids": [harbour.document] });
    let made = success(post(ada, "/vector_stores", &body).await);
    assert_eq!((&made["object"], &made["name"]), (&json!("vector_store"), &json!("Lighthouse")), "{made:#}");
    assert_eq!(made["metadata"], json!({ "season": "spring" }));
    let path = format!("/vector_stores/{}", id(&made));
    let shown = settled(ada, &path).await;
    let counts = json!({ "in_progress": 0, "completed": 1, "failed": 0, "cancelled": 0, "total": 1 });
    assert_eq!((&shown["status"], &shown["file_counts"]), (&json!("completed"), &counts), "{shown:#}");
    let collection = ada.read(&format!("/collections/{}", id(&made))).await;
    assert_eq!((&collection["name"], &collection["documents"]), (&json!("Lighthouse"), &json!(1)));

    let changed =
        success(post(ada, &path, &json!({ "name": "Tower", "metadata": { "year": "2026" } })).await);
    assert_eq!((&changed["name"], &changed["metadata"]), (&json!("Tower"), &json!({ "year": "2026" })));
    let many: serde_json::Map<String, Value> = (0..17).map(|key| (key.to_string(), json!("x"))).collect();
    for (field, value) in [
        ("expires_after", json!({ "anchor": "last_active_at", "days": 1 })),
        ("metadata", json!(many)),
        ("metadata", json!({ "year": 2026 })),
        ("file_ids", json!("x")),
        ("name", json!(5)),
    ] {
        let (status, answer) = post(ada, "/vector_stores", &json!({ field: value })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field}: {answer:#}");
    }
    let gone = success(delete(ada, &path).await);
    assert_eq!(gone, json!({ "id": made["id"], "object": "vector_store.deleted", "deleted": true }));
    assert_eq!(get(ada, &path).await.0, StatusCode::NOT_FOUND);
    success(get(ada, &format!("/files/{}", harbour.document)).await);
}

async fn files_have_attributes_and_searches_filter_by_them(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let store = store(&ada, "Lighthouse").await;
    let path = format!("/vector_stores/{store}");
    let mut files = Vec::new();
    for (name, attributes) in [
        ("one.txt", json!({ "kind": "sea", "year": 2024, "checked": true })),
        ("two.txt", json!({ "kind": "land", "year": 2026 })),
        ("three.txt", json!({})),
    ] {
        let file = upload(&ada, name, &format!("The zephyrine lamp of {name} is lit at dusk.")).await;
        let body = json!({ "file_id": file["id"], "attributes": attributes });
        let put = success(post(&ada, &format!("{path}/files"), &body).await);
        assert_eq!((&put["object"], &put["vector_store_id"]), (&json!("vector_store.file"), &json!(store)));
        assert_eq!((&put["id"], &put["attributes"]), (&file["id"], &attributes), "{put:#}");
        let file_path = format!("{path}/files/{}", id(&file));
        assert_eq!(settled(&ada, &file_path).await["status"], "completed");
        files.push(id(&file).to_owned());
    }
    let found = async |filters: Value| {
        let body = json!({ "query": "zephyrine lamp", "filters": filters, "max_num_results": 50 });
        let page = success(post(&ada, &format!("{path}/search"), &body).await);
        assert_eq!(page["object"], "vector_store.search_results.page", "{page:#}");
        assert_eq!(page["search_query"], json!(["zephyrine lamp"]), "{page:#}");
        let hits = page["data"].as_array().expect("hits");
        assert!(
            hits.iter()
                .all(|hit| hit["content"][0]["text"].as_str().is_some_and(|text| text.contains("lamp")))
        );
        let place =
            |hit: &Value| files.iter().position(|file| hit["file_id"] == *file).expect("a file of the store");
        let mut places: Vec<usize> = hits.iter().map(place).collect();
        places.sort_unstable();
        places
    };
    let is = |kind: &str, key: &str, value: Value| json!({ "type": kind, "key": key, "value": value });
    let all = |filters: Value| json!({ "type": "and", "filters": filters });
    let any = |filters: Value| json!({ "type": "or", "filters": filters });
    for (filters, expected) in [
        (Value::Null, vec![0, 1, 2]),
        (is("eq", "kind", json!("sea")), vec![0]),
        (is("ne", "kind", json!("sea")), vec![1, 2]),
        (is("eq", "checked", json!(true)), vec![0]),
        (is("gt", "year", json!(2024)), vec![1]),
        (is("gte", "year", json!(2024)), vec![0, 1]),
        (is("lt", "year", json!(2024.5)), vec![0]),
        (is("lte", "year", json!(2026)), vec![0, 1]),
        (is("in", "kind", json!(["sea", "air"])), vec![0]),
        (is("nin", "kind", json!(["sea", "air"])), vec![1, 2]),
        // Values of another type are neither equal nor in an order, and texts are in that of their letters.
        (is("eq", "year", json!("2024")), vec![]),
        (is("lt", "kind", json!(5)), vec![]),
        (is("gt", "kind", json!("land")), vec![0]),
        (is("nin", "year", json!([2024, 2025])), vec![1, 2]),
        (
            any(json!([all(json!([is("lt", "year", json!(2026))])), is("in", "kind", json!(["land"]))])),
            vec![0, 1],
        ),
        (all(json!([is("gte", "year", json!(2024)), is("eq", "kind", json!("land"))])), vec![1]),
        (any(json!([is("eq", "kind", json!("sea")), is("eq", "kind", json!("land"))])), vec![0, 1]),
        (all(json!([is("eq", "kind", json!("sea")), is("eq", "kind", json!("land"))])), vec![]),
    ] {
        assert_eq!(found(filters.clone()).await, expected, "{filters}");
    }
    let strict = json!({ "query": "zephyrine lamp", "ranking_options": { "score_threshold": 0.99 } });
    let page = success(post(&ada, &format!("{path}/search"), &strict).await);
    assert_eq!(page["data"].as_array().map(Vec::len), Some(3), "no score is low in itself: {page:#}");
    for filters in
        [json!("x"), json!({}), json!({ "type": "like", "key": "kind", "value": "s" }), all(json!("x"))]
    {
        let body = json!({ "query": "lamp", "filters": filters });
        let (status, answer) = post(&ada, &format!("{path}/search"), &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{filters}: {answer:#}");
    }
    for (field, value) in [("max_num_results", json!(0)), ("max_num_results", json!(51)), ("query", json!(5))]
    {
        let mut body = json!({ "query": "lamp" });
        body[field] = value;
        let (status, answer) = post(&ada, &format!("{path}/search"), &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {answer:#}");
    }

    let first = format!("{path}/files/{}", files[0]);
    let changed = success(post(&ada, &first, &json!({ "attributes": { "kind": "air" } })).await);
    assert_eq!(changed["attributes"]["kind"], "air", "{changed:#}");
    assert_eq!(found(is("eq", "kind", json!("air"))).await, [0], "it counts at once");
    let content = success(get(&ada, &format!("{first}/content")).await);
    assert_eq!(content["data"][0]["text"], "The zephyrine lamp of one.txt is lit at dusk.", "{content:#}");
    let out = success(delete(&ada, &first).await);
    assert_eq!(out, json!({ "id": files[0], "object": "vector_store.file.deleted", "deleted": true }));
    assert_eq!(found(Value::Null).await, [1, 2]);
    success(get(&ada, &format!("/files/{}", files[0])).await);
}

async fn attributes_that_a_file_is_given_replace_the_earlier_ones_and_null_takes_them_away(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let store = store(&ada, "Lighthouse").await;
    let (path, file) = (format!("/vector_stores/{store}"), upload(&ada, "one.txt", "The lamp is lit.").await);
    let (of_store, document) = (format!("{path}/files/{}", id(&file)), format!("/documents/{}", id(&file)));
    let put = async |attributes: Value| {
        let body = json!({ "file_id": file["id"], "attributes": attributes });
        success(post(&ada, &format!("{path}/files"), &body).await)
    };
    let finds = async |kind: &str| {
        let filters = json!({ "type": "eq", "key": "kind", "value": kind });
        let body = json!({ "query": "lamp", "filters": filters });
        let page = success(post(&ada, &format!("{path}/search"), &body).await);
        page["data"].as_array().is_some_and(|hits| !hits.is_empty())
    };
    put(json!({ "kind": "sea", "year": 2024 })).await;
    assert_eq!(settled(&ada, &of_store).await["status"], "completed");
    let metadata = json!({ "kind": "sea", "year": 2024, "tags": ["a", "b"] });
    data(ada.patch(&document, &json!({ "metadata": metadata })).await);
    assert!(finds("sea").await);

    let changed = success(post(&ada, &of_store, &json!({ "attributes": { "kind": "fog" } })).await);
    assert_eq!(changed["attributes"], json!({ "kind": "fog" }), "none of the earlier ones is left");
    let metadata = ada.read(&document).await["metadata"].take();
    assert_eq!(metadata, json!({ "kind": "fog", "tags": ["a", "b"] }), "a list is no attribute");
    assert_eq!((finds("sea").await, finds("fog").await), (false, true));
    let kept = success(post(&ada, &of_store, &json!({})).await);
    assert_eq!(kept["attributes"], json!({ "kind": "fog" }), "what is left out stays");
    for none in [json!({ "attributes": null }), json!({ "attributes": {} })] {
        let added = put(json!({ "year": 2026 })).await;
        assert_eq!(added["attributes"]["year"], 2026, "{added:#}");
        let cleared = success(post(&ada, &of_store, &none).await);
        assert_eq!(cleared["attributes"], json!({}), "{none}");
        assert!(!finds("fog").await, "{none}");
    }
}

async fn a_batch_ends_when_all_of_its_files_do(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let store = store(&ada, "Lighthouse").await;
    let good = upload(&ada, "good.txt", "The lamp is lit at dusk.").await;
    let bad = upload(&ada, "bad.pdf", "%PDF-1.7\nand nothing that a PDF has").await;
    let path = format!("/vector_stores/{store}/file_batches");
    let files = json!({ "files": [
        { "file_id": good["id"], "attributes": { "kind": "sea" } },
        { "file_id": bad["id"] },
    ] });
    let batch = success(post(&ada, &path, &files).await);
    assert_eq!(
        (&batch["object"], &batch["vector_store_id"]),
        (&json!("vector_store.files_batch"), &json!(store))
    );
    assert_eq!(batch["file_counts"]["total"], 2, "{batch:#}");
    let path = format!("{path}/{}", id(&batch));
    let ended = settled(&ada, &path).await;
    assert_eq!(ended["file_counts"]["completed"], 1, "{ended:#}");
    assert_eq!(ended["file_counts"]["failed"], 1, "{ended:#}");
    let listed = success(get(&ada, &format!("{path}/files")).await);
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(2), "{listed:#}");
    let failed = success(get(&ada, &format!("{path}/files?filter=failed")).await);
    assert_eq!(ids(&failed), [id(&bad)]);
    let error = &failed["data"][0]["last_error"];
    let codes = ["server_error", "unsupported_file", "invalid_file"];
    assert!(error["code"].as_str().is_some_and(|code| codes.contains(&code)), "{failed:#}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{failed:#}");
    for body in [
        json!({}),
        json!({ "file_ids": [] }),
        json!({ "file_ids": "x" }),
        json!({ "file_ids": [good["id"], good["id"]] }),
    ] {
        let (status, answer) = post(&ada, &format!("/vector_stores/{store}/file_batches"), &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {answer:#}");
    }
    let unknown = json!({ "file_ids": [good["id"], Uuid::now_v7()] });
    let (status, answer) = post(&ada, &format!("/vector_stores/{store}/file_batches"), &unknown).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer:#}");
}

async fn a_batch_that_is_cancelled_stops(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "Slowly.");
    let document = ada.create_document(&json!({ "name": "Slow", "type": "TXT", "url": url })).await;
    gate.wait_until_reached().await;
    let store = store(&ada, "Lighthouse").await;
    let path = format!("/vector_stores/{store}/file_batches");
    let batch = id_of(post(&ada, &path, &json!({ "file_ids": [document["id"]] })).await);
    let path = format!("{path}/{batch}");
    let going = send(request(&ada, Method::GET, &path)).await;
    let pause = going.headers().get("openai-poll-after-ms").and_then(|pause| pause.to_str().ok());
    assert!(pause.is_some_and(|pause| pause.parse::<u64>().is_ok_and(|pause| pause > 0)), "{pause:?}");
    assert_eq!(read(going).await.1["status"], "in_progress");
    success(post(&ada, &format!("{path}/cancel"), &json!({})).await);
    let ended = settled(&ada, &path).await;
    assert_eq!(ended["status"], "cancelled", "{ended:#}");
    assert_eq!(ended["file_counts"]["cancelled"], 1, "{ended:#}");
    let file = success(get(&ada, &format!("/vector_stores/{store}/files/{}", id(&document))).await);
    assert_eq!(file["status"], "cancelled", "{file:#}");
    gate.release();

    // Whoever puts it there again wants it after all.
    let files = format!("/vector_stores/{store}/files");
    let again = success(post(&ada, &files, &json!({ "file_id": document["id"] })).await);
    assert_eq!(again["status"], "in_progress", "{again:#}");
    let done = settled(&ada, &format!("{files}/{}", id(&document))).await;
    assert_eq!(done["status"], "completed", "{done:#}");
}

async fn stores_and_their_files_are_listed_page_by_page(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let mut stores = Vec::new();
    for number in 0..5 {
        stores.push(store(ada, &format!("Store {number}")).await);
    }
    let newest_first: Vec<String> = stores.iter().rev().cloned().collect();
    for (order, expected) in [("desc", &newest_first), ("asc", &stores)] {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = success(get(ada, &format!("/vector_stores?limit=2&order={order}{after}")).await);
            let ids = ids(&page);
            after = format!("&after={}", ids.last().expect("a page that is not empty"));
            seen.extend(ids);
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(&seen, expected, "{order}");
    }
    let before = success(get(ada, &format!("/vector_stores?order=asc&before={}", stores[2])).await);
    assert_eq!(ids(&before), stores[..2], "{before:#}");

    let path = format!("/vector_stores/{}/files", stores[0]);
    let mut files = Vec::new();
    for number in 0..3 {
        let file = upload(ada, &format!("{number}.txt"), "A note.").await;
        success(post(ada, &path, &json!({ "file_id": file["id"] })).await);
        files.push(id(&file).to_owned());
    }
    let mut seen = Vec::new();
    let mut after = String::new();
    while seen.len() < files.len() {
        let page = success(get(ada, &format!("{path}?limit=1&order=asc{after}")).await);
        let ids = ids(&page);
        assert_eq!(ids.len(), 1, "{page:#}");
        after = format!("&after={}", ids[0]);
        seen.extend(ids);
        assert_eq!(page["has_more"], seen.len() < files.len(), "{page:#}");
    }
    seen.sort();
    files.sort();
    assert_eq!(seen, files);
    for query in ["limit=0", "limit=101", "order=sideways", "after=x"] {
        for list in ["/vector_stores", &path] {
            let (status, answer) = get(ada, &format!("{list}?{query}")).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{list}?{query}: {answer:#}");
        }
    }
}

async fn another_workspaces_stores_do_not_exist(mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let ada = &harbour.ada;
    let hers = store(ada, "Lighthouse").await;
    let files = json!({ "file_ids": [harbour.document] });
    let batch = id_of(post(ada, &format!("/vector_stores/{hers}/file_batches"), &files).await);
    let grace = harbour.service.signed_up("grace@example.com").await;
    let own = store(&grace, "Tower").await;
    let document = &harbour.document;
    assert_eq!(ids(&success(get(&grace, "/vector_stores").await)), [own.as_str()]);
    for path in [
        format!("/vector_stores/{hers}"),
        format!("/vector_stores/{hers}/files"),
        format!("/vector_stores/{hers}/files/{document}"),
        format!("/vector_stores/{hers}/files/{document}/content"),
        format!("/vector_stores/{own}/files/{document}"),
        format!("/vector_stores/{hers}/file_batches/{batch}"),
        format!("/vector_stores/{hers}/file_batches/{batch}/files"),
        format!("/vector_stores/{own}/file_batches/{batch}"),
        format!("/vector_stores/{own}/file_batches/{batch}/files"),
    ] {
        let (status, answer) = get(&grace, &path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "GET {path}: {answer:#}");
    }
    for (path, body) in [
        (format!("/vector_stores/{hers}"), json!({ "name": "Mine" })),
        (format!("/vector_stores/{hers}/search"), json!({ "query": "gate" })),
        (format!("/vector_stores/{hers}/files"), json!({ "file_id": document })),
        (format!("/vector_stores/{own}/files"), json!({ "file_id": document })),
        (format!("/vector_stores/{hers}/files/{document}"), json!({ "attributes": { "a": "b" } })),
        (format!("/vector_stores/{own}/file_batches"), files),
        (format!("/vector_stores/{own}/file_batches/{batch}/cancel"), json!({})),
        ("/vector_stores".to_owned(), json!({ "name": "Mine", "file_ids": [document] })),
    ] {
        let (status, answer) = post(&grace, &path, &body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "POST {path}: {answer:#}");
    }
    for path in [
        format!("/vector_stores/{hers}"),
        format!("/vector_stores/{hers}/files/{document}"),
        format!("/vector_stores/{own}/files/{document}"),
    ] {
        let (status, answer) = delete(&grace, &path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "DELETE {path}: {answer:#}");
    }
    assert_eq!(success(get(ada, &format!("/vector_stores/{hers}")).await)["name"], "Lighthouse");
}
