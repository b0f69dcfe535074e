//! The tags of agents: which, and in which order.

use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{path, plain, tag, unknown, unlinked, with};
use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, id},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    tags_keep_the_order_in_which_they_are_given,
    tags_are_replaced_as_a_whole,
    a_tag_that_is_changed_or_deleted_is_so_on_every_agent,
    every_agent_of_a_list_shows_its_own_tags,
    tags_that_do_not_exist_for_the_caller_are_unknown,
    what_names_no_tag_is_refused_where_it_stands,
    an_agent_has_at_most_a_hundred_tags,
);

fn named(name: &str, tags: &Value) -> Value {
    json!({ "name": name, "type": "CHATVENDOR", "tags": tags })
}

async fn tags<const N: usize>(client: &Client, names: [&str; N]) -> [Value; N] {
    let mut made = names.map(|_| Value::Null);
    for (made, name) in made.iter_mut().zip(names) {
        *made = tag(client, name).await;
    }
    made
}

async fn tags_keep_the_order_in_which_they_are_given(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let [a, b, c] = tags(&ada, ["a", "b", "c"]).await;
    for (given, shown) in [
        (json!([a["id"], b["id"], c["id"]]), json!([a, b, c])),
        (json!([c, a["id"], { "id": b["id"] }]), json!([c, a, b])),
        // What else an object says of a tag is not what the tag is from now on.
        (json!([{ "id": b["id"], "name": "other", "color": 5, "userId": null }]), json!([b])),
        // Each once, where it is named first.
        (json!([b["id"], a, b, a["id"], c, b["id"]]), json!([b, a, c])),
    ] {
        let made = ada.create_agent(&named("Clerk", &given)).await;
        assert_eq!(made["tags"], shown, "{given}");
        assert_eq!(ada.read(&path(&made)).await["tags"], shown, "{given}");
        assert_eq!(ada.read("/agents").await[0]["tags"], shown, "{given}");
        let changed = plain(&ada).await;
        let changed = data(ada.patch(&path(&changed), &json!({ "tags": given })).await);
        assert_eq!(changed["tags"], shown, "{given}");
        assert_eq!(ada.read(&path(&changed)).await["tags"], shown, "{given}");
    }
    assert_eq!(ada.read("/tags").await, json!([c, b, a]));
}

async fn tags_are_replaced_as_a_whole(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let [a, b, c] = tags(&ada, ["a", "b", "c"]).await;
    let agent = ada.create_agent(&named("Clerk", &json!([a, b]))).await;
    for (given, shown) in [
        (json!([b, a]), json!([b, a])),
        (json!([c, b]), json!([c, b])),
        (json!([a["id"]]), json!([a])),
        (json!([]), json!([])),
        (json!([c, a]), json!([c, a])),
        (Value::Null, json!([])),
    ] {
        let changed = data(ada.patch(&path(&agent), &json!({ "tags": given })).await);
        assert_eq!(changed["tags"], shown, "{given}");
        assert_eq!(ada.read(&path(&agent)).await["tags"], shown, "{given}");
    }
    data(ada.patch(&path(&agent), &json!({ "tags": [a, b] })).await);
    data(ada.patch(&path(&agent), &json!({ "name": "Judge" })).await);
    assert_eq!(ada.read(&path(&agent)).await["tags"], json!([a, b]), "another change leaves them");
}

async fn a_tag_that_is_changed_or_deleted_is_so_on_every_agent(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let [a, b, c] = tags(&ada, ["a", "b", "c"]).await;
    let first = ada.create_agent(&named("Clerk", &json!([c, b, a]))).await;
    let second = ada.create_agent(&named("Judge", &json!([b]))).await;
    let change = json!({ "name": "renamed", "color": "#ABCDEF" });
    let b = data(ada.patch(&format!("/tags/{}", id(&b)), &change).await);
    assert_eq!(ada.read(&path(&first)).await["tags"], json!([c, b, a]));
    assert_eq!(ada.read(&path(&second)).await["tags"], json!([b]));

    data(ada.delete(&format!("/tags/{}", id(&b))).await);
    let agents = json!([
        unlinked(&with(&second, &json!({ "tags": [] }))),
        unlinked(&with(&first, &json!({ "tags": [c, a] }))),
    ]);
    assert_eq!(ada.read("/agents").await, agents, "the others keep their order");
    unknown(ada.patch(&path(&first), &json!({ "tags": [c, b] })).await);
    assert_eq!(ada.read("/agents").await, agents);
    // An agent that goes leaves its tags.
    data(ada.delete(&path(&first)).await);
    assert_eq!(ada.read("/tags").await, json!([c, a]));
}

async fn every_agent_of_a_list_shows_its_own_tags(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let [a, b] = tags(&ada, ["a", "b"]).await;
    let [other] = tags(&grace, ["other"]).await;
    let mut expected = Vec::new();
    for given in [json!([]), json!([a]), json!([b, a]), json!([]), json!([b])] {
        expected.insert(0, ada.create_agent(&named("Clerk", &given)).await["tags"].take());
        // Made in between, by somebody else.
        grace.create_agent(&named("Judge", &json!([other]))).await;
    }
    let shown = |list: &Value| -> Vec<Value> {
        list.as_array().expect("a list").iter().map(|agent| agent["tags"].clone()).collect()
    };
    assert_eq!(shown(&ada.read("/agents").await), expected);
    let (_, page) = ada.get("/agents?limit=3").await;
    assert_eq!(shown(&page["data"]), expected[..3]);
    let cursor = page["nextCursor"].as_str().expect("a cursor");
    assert_eq!(shown(&ada.read(&format!("/agents?limit=3&cursor={cursor}")).await), expected[3..]);
    assert_eq!(shown(&grace.read("/agents").await), vec![json!([other]); 5]);
}

async fn tags_that_do_not_exist_for_the_caller_are_unknown(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let [hers] = tags(&ada, ["hers"]).await;
    let [own] = tags(&grace, ["own"]).await;
    let agent = grace.create_agent(&named("Clerk", &json!([own]))).await;
    let nobodys = json!(Uuid::now_v7().to_string());
    for wrong in [&hers, &hers["id"], &json!({ "id": nobodys }), &nobodys, &agent["id"], &json!("none")] {
        for tags in [json!([wrong]), json!([own, wrong]), json!([wrong, own])] {
            let answers = [
                grace.post("/agents", &named("Judge", &tags)).await,
                grace.patch(&path(&agent), &json!({ "tags": tags, "name": "renamed" })).await,
            ];
            for answer in answers {
                assert_eq!(unknown(answer)["message"], "There is no such tag.", "{tags}");
            }
        }
    }
    assert_eq!(grace.read("/agents").await, json!([unlinked(&agent)]), "nothing is made or changed");
    assert_eq!(ada.read("/tags").await, json!([hers]));
}

async fn what_names_no_tag_is_refused_where_it_stands(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let [own] = tags(&ada, ["own"]).await;
    let agent = ada.create_agent(&named("Clerk", &json!([own]))).await;
    for (tags, paths) in [
        (json!("urgent"), &["tags"][..]),
        (json!(own), &["tags"]),
        (json!(true), &["tags"]),
        (json!([1, own, null, [own["id"]], true]), &["tags.0", "tags.2", "tags.3", "tags.4"]),
        (json!([own["id"], {}, { "name": "urgent" }]), &["tags.1.id", "tags.2.id"]),
        (json!([{ "id": null }, { "id": 5 }]), &["tags.0.id", "tags.1.id"]),
        (json!(["a\0"]), &["tags.0"]),
    ] {
        let made = ada.post("/agents", &named("Judge", &tags)).await;
        assert_eq!(Refused::by(made).paths(), paths, "{tags}");
        let changed = ada.patch(&path(&agent), &json!({ "tags": tags })).await;
        assert_eq!(Refused::by(changed).paths(), paths, "{tags}");
    }
    assert_eq!(ada.read("/agents").await, json!([unlinked(&agent)]));
}

async fn an_agent_has_at_most_a_hundred_tags(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let names: Vec<String> = (0..101).map(|number| format!("tag {number}")).collect();
    let mut made = join_all(names.iter().map(|name| tag(&ada, name))).await;
    let too_many = json!(made);
    let agent = plain(&ada).await;
    assert_eq!(Refused::by(ada.post("/agents", &named("Judge", &too_many)).await).paths(), ["tags"]);
    let change = json!({ "tags": too_many });
    assert_eq!(Refused::by(ada.patch(&path(&agent), &change).await).paths(), ["tags"]);

    made.pop();
    let hundred = json!(made);
    assert_eq!(ada.create_agent(&named("Judge", &hundred)).await["tags"], hundred);
    let changed = data(ada.patch(&path(&agent), &json!({ "tags": hundred })).await);
    assert_eq!(changed["tags"], hundred);
    assert_eq!(ada.read(&path(&agent)).await["tags"], hundred);
}
