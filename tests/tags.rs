//! Tags: the labels themselves. Which agents have them is in `agents`.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, envelope, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    a_tag_is_made_shown_changed_and_deleted,
    a_tag_keeps_its_name_and_color_character_by_character,
    wrong_fields_of_a_tag_are_all_named,
    each_field_of_a_tag_is_changed_alone,
    changes_of_different_fields_at_once_are_all_kept,
    another_users_tags_do_not_exist,
    a_tag_that_is_created_again_with_the_same_key_is_the_first_one,
);

fn urgent() -> Value {
    json!({ "name": "urgent", "color": "#d73a4a" })
}

fn path(tag: &Value) -> String {
    format!("/tags/{}", id(tag))
}

/// What is said of something that does not exist.
fn unknown((status, mut answer): (StatusCode, Value)) -> Value {
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer:#}");
    answer["error"].take()
}

async fn a_tag_is_made_shown_changed_and_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    assert_eq!(ada.read("/tags").await, json!([]));

    let made = ada.create("/tags", &urgent()).await;
    let mut fields: Vec<_> = made.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["color", "createdAt", "id", "name", "updatedAt", "userId"]);
    assert_eq!((&made["name"], &made["color"]), (&json!("urgent"), &json!("#d73a4a")));
    assert_eq!(made["userId"], ada.user()["id"]);
    assert_eq!(made["createdAt"], made["updatedAt"]);
    assert_eq!(ada.read(&path(&made)).await, made);

    let twin = ada.create("/tags", &urgent()).await;
    assert_ne!(twin["id"], made["id"], "names need not be unique");
    let third = ada.create("/tags", &json!({ "name": "later", "color": "#0E8A16" })).await;
    assert_eq!(ada.read("/tags").await, json!([third, twin, made]), "newest first");
    let (_, page) = ada.get("/tags?limit=2").await;
    assert_eq!(page["data"], json!([third, twin]));
    let rest = format!("/tags?limit=2&cursor={}", page["nextCursor"].as_str().expect("a cursor"));
    assert_eq!(ada.read(&rest).await, json!([made]));

    let change = json!({ "name": "very urgent", "color": "#B60205" });
    let changed = data(ada.patch(&path(&made), &change).await);
    assert_eq!((&changed["name"], &changed["color"]), (&change["name"], &change["color"]));
    assert_ne!(changed["updatedAt"], made["updatedAt"]);
    for kept in ["id", "userId", "createdAt"] {
        assert_eq!(changed[kept], made[kept], "{kept}");
    }
    assert_eq!(ada.read(&path(&made)).await, changed);
    assert_eq!(ada.read("/tags").await, json!([third, twin, changed]), "it keeps its place");

    assert_eq!(data(ada.delete(&path(&made)).await), Value::Null);
    for answer in [
        ada.get(&path(&made)).await,
        ada.patch(&path(&made), &json!({ "name": "late" })).await,
        ada.patch(&path(&made), &json!({})).await,
        ada.delete(&path(&made)).await,
    ] {
        assert_eq!(unknown(answer)["message"], "There is no such tag.");
    }
    assert_eq!(ada.read("/tags").await, json!([third, twin]));
}

async fn a_tag_keeps_its_name_and_color_character_by_character(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let longest = "é".repeat(1_000);
    for (name, color) in [
        ("  with space around ", "#000000"),
        ("größe 質問 🙂 e\u{301}", "#FFFFFF"),
        ("#", "#aBcDeF"),
        (&longest, "#012345"),
    ] {
        let made = ada.create("/tags", &json!({ "name": name, "color": color })).await;
        let read = ada.read(&path(&made)).await;
        for shown in [&made, &read] {
            assert_eq!((&shown["name"], &shown["color"]), (&json!(name), &json!(color)));
        }
    }
}

async fn wrong_fields_of_a_tag_are_all_named(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let too_long = "x".repeat(1_001);
    for (body, named) in [
        (json!({}), &["color", "name"][..]),
        (json!({ "name": null, "color": null }), &["color", "name"]),
        (json!({ "name": 1, "color": 2 }), &["color", "name"]),
        (json!({ "name": " \n", "color": "" }), &["color", "name"]),
        (json!({ "name": "a\0", "color": "#000000\0" }), &["color", "name"]),
        (json!({ "name": too_long, "color": "#000000" }), &["name"]),
    ] {
        assert_eq!(Refused::by(ada.post("/tags", &body).await).paths(), named, "{body}");
    }
    let made = ada.create("/tags", &urgent()).await;
    for color in [
        "red",
        "d73a4a",
        "#d73a4",
        "#d73a4a0",
        "#fff",
        "#d73a4g",
        "# 73a4a",
        " #d73a4a",
        "#d73a4a\n",
        "##73a4a",
        "#+73a4a",
        "#ｄ73a4a",
        "#éééé",
        "rgb(1,2,3)",
        "",
    ] {
        let body = json!({ "name": "urgent", "color": color });
        assert_eq!(Refused::by(ada.post("/tags", &body).await).paths(), ["color"], "{color:?}");
        let change = json!({ "color": color });
        assert_eq!(Refused::by(ada.patch(&path(&made), &change).await).paths(), ["color"], "{color:?}");
    }
    assert_eq!(ada.read("/tags").await, json!([made]), "what is refused is not made");

    let mut own = urgent();
    for (name, value) in [("id", "own"), ("userId", "own"), ("createdAt", "now"), ("colour", "red")] {
        own[name] = value.into();
    }
    let other = ada.create("/tags", &own).await;
    assert_ne!(other["id"], "own", "a POST passes over what it does not know");
    assert_eq!((&other["userId"], other.get("colour")), (&ada.user()["id"], None));

    for (change, named) in [
        (json!({ "id": made["id"] }), &["id"][..]),
        (
            json!({ "userId": made["userId"], "createdAt": made["createdAt"], "updatedAt": made["updatedAt"] }),
            &["createdAt", "updatedAt", "userId"],
        ),
        (json!({ "colour": "#000000", "name": "renamed" }), &["colour"]),
        (json!({ "name": null, "color": null }), &["color", "name"]),
        (json!({ "name": "", "color": 5, "position": 1 }), &["color", "name", "position"]),
    ] {
        assert_eq!(Refused::by(ada.patch(&path(&made), &change).await).paths(), named, "{change}");
    }
    assert_eq!(ada.read(&path(&made)).await, made);
}

async fn each_field_of_a_tag_is_changed_alone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/tags", &urgent()).await;
    assert_eq!(data(ada.patch(&path(&made), &json!({})).await), made, "nothing of it, the time neither");
    assert_eq!(ada.read(&path(&made)).await, made);

    let renamed = data(ada.patch(&path(&made), &json!({ "name": "soon" })).await);
    assert_eq!((&renamed["name"], &renamed["color"]), (&json!("soon"), &made["color"]));
    let recolored = data(ada.patch(&path(&made), &json!({ "color": "#0e8a16" })).await);
    assert_eq!((&recolored["name"], &recolored["color"]), (&json!("soon"), &json!("#0e8a16")));
    assert!(made["updatedAt"].as_str() < renamed["updatedAt"].as_str());
    assert!(renamed["updatedAt"].as_str() < recolored["updatedAt"].as_str());
    assert_eq!(ada.read(&path(&made)).await, recolored);
}

async fn changes_of_different_fields_at_once_are_all_kept(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/tags", &urgent()).await;
    for round in 0..8 {
        let (name, color) = (format!("round {round}"), format!("#00000{round}"));
        let changes = [json!({ "name": name }), json!({ "color": color })];
        let tag = path(&made);
        join_all(changes.iter().map(async |change| data(ada.patch(&tag, change).await))).await;
        let read = ada.read(&tag).await;
        assert_eq!((&read["name"], &read["color"]), (&json!(name), &json!(color)));
    }
}

async fn another_users_tags_do_not_exist(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = ada.create("/tags", &urgent()).await;
    assert_eq!(grace.read("/tags").await, json!([]));
    assert_eq!(grace.read(&format!("/tags?limit=5&cursor={}", Uuid::max())).await, json!([]));
    let nobodys = format!("/tags/{}", Uuid::now_v7());
    assert_eq!(unknown(grace.get(&path(&hers)).await), unknown(grace.get(&nobodys).await));
    for change in [json!({ "name": "mine" }), json!({ "color": "#000000" }), json!({})] {
        let answer = unknown(grace.patch(&path(&hers), &change).await);
        assert_eq!(answer, unknown(grace.patch(&nobodys, &change).await), "{change}");
    }
    assert_eq!(unknown(grace.delete(&path(&hers)).await), unknown(grace.delete(&nobodys).await));
    unknown(grace.get("/tags/1").await);
    assert_eq!(ada.read("/tags").await, json!([hers]));

    for (method, path) in [
        (Method::GET, "/tags".to_owned()),
        (Method::POST, "/tags".to_owned()),
        (Method::GET, path(&hers)),
        (Method::PATCH, path(&hers)),
        (Method::DELETE, path(&hers)),
    ] {
        let request = ada.signed_out().request(method, &path).json(&urgent());
        assert_eq!(send(request).await.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
}

async fn a_tag_that_is_created_again_with_the_same_key_is_the_first_one(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let create = async |client: &Client| {
        let request = client.request(Method::POST, "/tags").header("Idempotency-Key", "once");
        data(envelope(send(request.json(&urgent())).await).await)
    };
    let made = create(&ada).await;
    assert_eq!(create(&ada).await, made);
    assert_eq!(ada.read("/tags").await, json!([made]));
}
