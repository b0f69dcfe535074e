//! Lists: everything, or page by page, newest first.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, id},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    a_list_is_everything_newest_first_and_pages_are_parts_of_it,
    pages_neither_repeat_nor_lose_anything_while_the_list_changes
);

async fn a_list_is_everything_newest_first_and_pages_are_parts_of_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    grace.create("/api-tokens", &json!({ "description": "another user's" })).await;
    // Past what the service reads at a time, and once exactly that.
    let mut newest_first = Vec::new();
    for count in [200, 400, 450] {
        while newest_first.len() < count {
            let number = newest_first.len();
            let token = ada.create("/api-tokens", &json!({ "description": number.to_string() })).await;
            newest_first.insert(0, id(&token).to_owned());
        }
        assert_eq!(ids(&ada.read("/api-tokens").await), newest_first, "a list of {count}");
    }

    for limit in [1, 7, 149, 150, 200] {
        let at_most = if limit == 1 { 3 } else { usize::MAX };
        let pages = pages(&ada, "/api-tokens", limit, at_most).await;
        let (last, full) = pages.split_last().expect("a page");
        assert!(full.iter().all(|page| page.len() == limit), "a page that is not the last one is full");
        assert!((1..=limit).contains(&last.len()), "no page is empty");
        let all = pages.concat();
        assert_eq!(all, newest_first[..all.len()], "pages of {limit}");
        assert!(at_most < usize::MAX || all.len() == newest_first.len(), "pages of {limit}");
    }

    let rest = ada.read(&format!("/api-tokens?cursor={}", newest_first[9])).await;
    assert_eq!(ids(&rest), newest_first[10..], "a cursor without a limit is the whole rest");
    let ignored = ada.read("/api-tokens?order=asc&page=2&limits=1").await;
    assert_eq!(ids(&ignored), newest_first, "parameters that mean nothing change nothing");

    for (query, named) in [
        ("limit=0", &["limit"][..]),
        ("limit=201", &["limit"]),
        ("limit=-1", &["limit"]),
        ("limit=ten", &["limit"]),
        ("limit=", &["limit"]),
        ("limit=1.5", &["limit"]),
        ("cursor=", &["cursor"]),
        ("cursor=next", &["cursor"]),
        ("limit=1000&cursor=1", &["cursor", "limit"]),
    ] {
        for list in ["/api-tokens", "/documents", "/agents", "/agent-documents", "/traces"] {
            let refused = Refused::by(ada.get(&format!("{list}?{query}")).await);
            assert_eq!(refused.paths(), named, "{list}?{query}");
        }
    }
}

async fn pages_neither_repeat_nor_lose_anything_while_the_list_changes(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let note = |number: usize| json!({ "name": format!("{number}"), "type": "TXT", "content": "text" });
    let mut newest_first = Vec::new();
    for number in 0..7 {
        newest_first.insert(0, id(&ada.create_document(&note(number)).await).to_owned());
    }
    assert_eq!(ids(&ada.read("/documents").await), newest_first);

    let (status, first) = ada.get("/documents?limit=3").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ids(&first["data"]), newest_first[..3]);
    // The page's own last row goes, which a cursor may stand on, one that is still to come, and a new one is made.
    data(ada.delete(&format!("/documents/{}", newest_first[2])).await);
    data(ada.delete(&format!("/documents/{}", newest_first[4])).await);
    ada.create_document(&note(7)).await;

    let cursor = first["nextCursor"].as_str().expect("a cursor");
    let (status, rest) = ada.get(&format!("/documents?limit=3&cursor={cursor}")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ids(&rest["data"]), [&newest_first[3..4], &newest_first[5..]].concat());
    assert_eq!(rest.get("nextCursor"), None, "the last page is exactly full, and the last all the same");
}

/// The ids of a list's pages.
async fn pages(client: &Client, list: &str, limit: usize, at_most: usize) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let (status, page) = client.get(&format!("{list}?limit={limit}{cursor}")).await;
        assert_eq!(status, StatusCode::OK, "{page:#}");
        pages.push(ids(&page["data"]));
        match page.get("nextCursor") {
            Some(next) if pages.len() < at_most => {
                cursor = format!("&cursor={}", next.as_str().expect("a cursor that is text"));
            }
            _ => return pages,
        }
    }
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|row| id(row).to_owned()).collect()
}
