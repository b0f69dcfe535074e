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
    a_list_is_looked_through_by_a_part_of_the_names,
    answers_are_looked_for_by_a_part_of_the_question,
    members_are_looked_for_by_name_and_by_e_mail,
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

async fn a_list_is_looked_through_by_a_part_of_the_names(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let searxng = json!({ "provider": "searxng", "base_url": "https://search.example.com" });
    for (list, called, body) in [
        ("/documents", "name", json!({ "type": "TXT", "content": "text" })),
        ("/agents", "name", json!({ "type": "CHATVENDOR" })),
        ("/prompts", "name", json!({ "template": "Be brief.", "input_variables": [] })),
        ("/tools", "name", json!({ "type": "SEARCH", "metadata": searxng })),
        ("/collections", "name", json!({})),
        ("/api-tokens", "description", json!({})),
    ] {
        let mut made = Vec::new();
        for name in ["Mo\u{308}bel 100%", "M\u{d6}BEL", "Zebra", "m\u{f6}bel_2"] {
            let mut body = body.clone();
            body[called] = json!(name);
            grace.create(list, &body).await;
            made.insert(0, id(&ada.create(list, &body).await).to_owned());
        }
        let found = async |name: &str| ids(&ada.read(&format!("{list}?name={name}")).await);
        for (name, places) in [
            ("m%C3%B6bel", &[0_usize, 2, 3][..]),
            ("ZEBRA", &[1]),
            ("+ebr+", &[1]),
            ("_", &[0]),
            ("%25", &[3]),
            ("nothing", &[]),
            ("", &[0, 1, 2, 3]),
        ] {
            let expected: Vec<&String> = places.iter().map(|place| &made[*place]).collect();
            assert_eq!(found(name).await.iter().collect::<Vec<_>>(), expected, "{list}?name={name}");
        }

        let (_, first) = ada.get(&format!("{list}?name=m%C3%B6bel&limit=2")).await;
        assert_eq!(ids(&first["data"]), [made[0].as_str(), &made[2]], "{list}");
        let cursor = first["nextCursor"].as_str().expect("a cursor");
        let (_, rest) = ada.get(&format!("{list}?name=m%C3%B6bel&limit=2&cursor={cursor}")).await;
        assert_eq!((ids(&rest["data"]), rest.get("nextCursor")), (vec![made[3].clone()], None), "{list}");

        let longest = "n".repeat(1_000);
        assert_eq!(found(&longest).await, [""; 0], "{list}");
        for wrong in ["%00", &format!("{longest}n")] {
            let refused = Refused::by(ada.get(&format!("{list}?name={wrong}")).await);
            assert_eq!(refused.paths(), ["name"], "{list}");
        }
    }
}

async fn answers_are_looked_for_by_a_part_of_the_question(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let mut asked = Vec::new();
    for question in ["Wann \u{d6}FFNET das Tor?", "When does the gate open?", "Who \u{f6}ffnet it?"] {
        for person in [&ada, &grace] {
            let agent = person.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
            let (status, answer) = person.predict(id(&agent), question).await;
            assert_eq!(status, StatusCode::OK, "{answer:#}");
            asked.push((id(&agent).to_owned(), id(&answer["trace"]).to_owned()));
        }
    }
    let found = async |query: &str| ids(&ada.read(&format!("/traces?{query}")).await);
    let [(first_agent, first), _, (_, second), _, (_, third), _] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(found("name=o%CC%88ffnet").await, [third.as_str(), first]);
    assert_eq!(found("name=GATE+open").await, [second.as_str()]);
    assert_eq!(found(&format!("name=%C3%B6ffnet&agentId={first_agent}")).await, [first.as_str()]);
    assert_eq!(found("name=nothing").await, [""; 0]);
    assert_eq!(found("name=").await, [third.as_str(), second, first]);
    let (_, page) = ada.get("/traces?name=%C3%B6ffnet&limit=1").await;
    assert_eq!(
        (ids(&page["data"]), page["nextCursor"].as_str()),
        (vec![third.clone()], Some(third.as_str()))
    );
    assert_eq!(Refused::by(ada.get("/traces?name=%00").await).paths(), ["name"]);
}

async fn members_are_looked_for_by_name_and_by_e_mail(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    data(grace.patch("/users/me", &json!({ "name": "H\u{f6}pper" })).await);
    let workspace = ada.create("/workspaces", &json!({ "name": "Team" })).await;
    let inside = ada.in_workspace(id(&workspace));
    let path = format!("/workspaces/{}", id(&workspace));
    let invitation = inside.create(&format!("{path}/invitations"), &json!({ "role": "asker" })).await;
    data(grace.post("/invitations/accept", &json!({ "token": invitation["token"] })).await);
    for (name, found) in [
        ("H%C3%96PP", &["grace@example.com"][..]),
        ("GRACE%40", &["grace@example.com"]),
        ("example", &["grace@example.com", "ada@example.com"]),
        ("nobody", &[]),
    ] {
        let members = inside.read(&format!("{path}/members?name={name}")).await;
        let members = members.as_array().expect("a list");
        let emails: Vec<_> = members.iter().filter_map(|member| member["email"].as_str()).collect();
        assert_eq!(emails, found, "{name}");
    }
    let refused = Refused::by(inside.get(&format!("{path}/members?name=%00")).await);
    assert_eq!(refused.paths(), ["name"]);
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
