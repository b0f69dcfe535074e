//! Prompts: their templates, and the variables that have to agree with them.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    bodies::Refused,
    support::{
        client::{Client, data, envelope, id, send},
        in_both_modes, on_postgres_too,
        service::{Mode, Service},
    },
};

in_both_modes!(
    a_prompt_is_made_shown_changed_and_deleted,
    a_prompt_keeps_its_text_character_by_character,
    a_template_and_its_variables_have_to_agree,
    what_is_no_template_is_refused_by_what_it_is_and_where,
    wrong_fields_are_all_named,
    a_change_has_to_agree_with_what_it_leaves_as_it_is,
    a_change_that_is_refused_or_changes_nothing_leaves_no_mark,
    changes_at_once_never_leave_a_pair_that_disagrees,
    agents_are_without_a_prompt_when_it_is_deleted,
    what_a_deleted_prompt_said_is_erased_from_earlier_versions_when_that_is_asked_for,
    another_users_prompts_do_not_exist,
    a_prompt_that_is_created_again_with_the_same_key_is_the_first_one,
);

on_postgres_too!(changes_at_once_never_leave_a_pair_that_disagrees);

fn greeting() -> Value {
    json!({
        "name": "Greeting",
        "template": "You greet {name}. {{\"tone\": \"kind\"}} {input}",
        "input_variables": ["input", "name"],
    })
}

/// The prompt with other fields than these.
fn with(base: &Value, changes: &Value) -> Value {
    let mut changed = base.clone();
    for (name, value) in changes.as_object().expect("an object") {
        changed[name] = value.clone();
    }
    changed
}

fn path(prompt: &Value) -> String {
    format!("/prompts/{}", id(prompt))
}

/// The messages of an answer that has to be 422, each behind its field's path.
fn refusals((status, answer): (StatusCode, Value)) -> Vec<String> {
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
    let fields = answer["error"]["fields"].as_array().expect("fields");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    fields.iter().map(|field| format!("{}: {}", text(&field["path"]), text(&field["message"]))).collect()
}

async fn a_prompt_is_made_shown_changed_and_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    assert_eq!(ada.read("/prompts").await, json!([]));

    let made = ada.create("/prompts", &greeting()).await;
    let mut fields: Vec<_> = made.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["createdAt", "id", "input_variables", "name", "template", "updatedAt", "userId"]);
    for (name, value) in greeting().as_object().expect("an object") {
        assert_eq!(&made[name], value, "{name}");
    }
    assert_eq!(made["userId"], ada.user()["id"]);
    assert_eq!(made["createdAt"], made["updatedAt"]);
    assert_eq!(ada.read(&path(&made)).await, made);

    let other = ada.create("/prompts", &with(&greeting(), &json!({ "name": "Another" }))).await;
    assert_eq!(ada.read("/prompts").await, json!([other, made]), "newest first");

    let change = json!({ "name": "Farewell", "template": "Bye, {name}.", "input_variables": ["name"] });
    let changed = data(ada.patch(&path(&made), &change).await);
    assert_ne!(changed["updatedAt"], made["updatedAt"]);
    let expected = with(&with(&made, &change), &json!({ "updatedAt": changed["updatedAt"] }));
    assert_eq!(changed, expected);
    assert_eq!(ada.read(&path(&made)).await, changed);
    assert_eq!(ada.read("/prompts").await, json!([other, changed]));

    assert_eq!(data(ada.delete(&path(&made)).await), Value::Null);
    for (status, answer) in [
        ada.get(&path(&made)).await,
        ada.patch(&path(&made), &json!({ "name": "late" })).await,
        ada.delete(&path(&made)).await,
    ] {
        assert_eq!(status, StatusCode::NOT_FOUND, "{answer:#}");
    }
    assert_eq!(ada.read("/prompts").await, json!([other]));
}

async fn a_prompt_keeps_its_text_character_by_character(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let longest = "é".repeat(100_000);
    let hundred: Vec<String> = (0..100).map(|number| format!("v{number}")).collect();
    let uses_all = hundred.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(" ");
    let long_name = "ß".repeat(100);
    for (template, variables) in [
        ("  begins and ends with space\r\n\t", json!([])),
        ("{{\"json\": {{}}}}", json!([])),
        ("🙂 {größe} {質問} {प्रश्न} {e\u{301}}", json!(["質問", "e\u{301}", "größe", "प्रश्न"])),
        ("{a}{a}{{a}}{{{a}}}", json!(["a"])),
        // The names that agents' prompts have by custom are names like any other.
        (
            "{tools} {tool_names} {chat_history} {input} {agent_scratchpad}",
            json!(["agent_scratchpad", "input", "chat_history", "tools", "tool_names"]),
        ),
        (&longest, json!([])),
        (&uses_all, json!(hundred)),
        (&format!("{{{long_name}}}"), json!([long_name])),
    ] {
        let body = json!({ "name": "n", "template": template, "input_variables": variables });
        let made = ada.create("/prompts", &body).await;
        let read = ada.read(&path(&made)).await;
        for shown in [&made, &read] {
            assert_eq!(shown["template"], body["template"]);
            assert_eq!(shown["input_variables"], body["input_variables"], "in the order that was given");
        }
    }
}

async fn a_template_and_its_variables_have_to_agree(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let many: Vec<String> = (0..12).map(|number| format!("v{number}")).collect();
    for (template, variables, expected) in [
        (
            "{b} {a}",
            json!([]),
            &["input_variables: must name every variable of the template; it lacks: `b`, `a`"][..],
        ),
        ("text", json!(["a"]), &["input_variables: names variables that the template does not use: `a`"]),
        ("{{a}}", json!(["a"]), &["input_variables: names variables that the template does not use: `a`"]),
        (
            "{a} {b}",
            json!(["A", "b"]),
            &[
                "input_variables: must name every variable of the template; it lacks: `a`",
                "input_variables: names variables that the template does not use: `A`",
            ],
        ),
        (
            "text",
            json!(many),
            &["input_variables: names variables that the template does not use: \
               `v0`, `v1`, `v2`, `v3`, `v4`, `v5`, `v6`, `v7`, `v8`, `v9` and 2 more"],
        ),
        ("{a}", json!(["a", "a"]), &["input_variables.1: must not be given twice: `a`"]),
        (
            "{a}",
            json!(["a", "1", "a b", "{a}", "", 7, null]),
            &[
                "input_variables.1: must be letters, digits and `_`, and not begin with a digit",
                "input_variables.2: must be letters, digits and `_`, and not begin with a digit",
                "input_variables.3: must be letters, digits and `_`, and not begin with a digit",
                "input_variables.4: must be letters, digits and `_`, and not begin with a digit",
                "input_variables.5: must be a string",
                "input_variables.6: must be a string",
            ],
        ),
        ("text", json!(["a".repeat(101)]), &["input_variables.0: must have at most 100 characters"]),
        ("text", json!(vec!["a"; 101]), &["input_variables: must have at most 100 items"]),
        ("text", json!("a"), &["input_variables: must be an array of strings"]),
        ("text", json!({ "a": "a" }), &["input_variables: must be an array of strings"]),
        ("text", json!(null), &["input_variables: is required: the names that the template uses"]),
    ] {
        let body = json!({ "name": "n", "template": template, "input_variables": variables });
        assert_eq!(refusals(ada.post("/prompts", &body).await), expected, "{body}");
    }
    assert_eq!(ada.read("/prompts").await, json!([]));
}

async fn what_is_no_template_is_refused_by_what_it_is_and_where(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/prompts", &greeting()).await;
    for (template, begins, contains) in [
        ("ä {", "template: character 3:", "`{{`"),
        ("a}", "template: character 2:", "`}}`"),
        ("{}", "template: character 1:", "names no variable"),
        ("{0}", "template: character 1:", "not numbers"),
        ("{a.b}", "template: character 3:", "attributes"),
        ("{a[0]}", "template: character 3:", "items"),
        ("{a!r}", "template: character 3:", "conversions"),
        ("{a:>3}", "template: character 3:", "format specifications"),
        ("{\"a\": 1}", "template: character 1:", "letters, digits and `_`"),
    ] {
        let body = json!({ "name": "n", "template": template, "input_variables": ["a"] });
        let both = [
            ada.post("/prompts", &body).await,
            ada.patch(&path(&made), &json!({ "template": template })).await,
        ];
        for answer in both {
            let refused = refusals(answer);
            let [refusal] = &refused[..] else { panic!("{template}: {refused:?}") };
            assert!(refusal.starts_with(begins) && refusal.contains(contains), "{template}: {refusal}");
        }
    }
    assert_eq!(ada.read("/prompts").await, json!([made]));
}

async fn wrong_fields_are_all_named(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let too_long = "x".repeat(100_001);
    for (body, named) in [
        (json!({}), &["input_variables", "name", "template"][..]),
        (
            json!({ "name": null, "template": null, "input_variables": null }),
            &["input_variables", "name", "template"],
        ),
        (
            json!({ "name": 1, "template": [], "input_variables": 5 }),
            &["input_variables", "name", "template"],
        ),
        (json!({ "name": " ", "template": " \n", "input_variables": ["a"] }), &["name", "template"]),
        (with(&greeting(), &json!({ "template": too_long })), &["template"]),
        (with(&greeting(), &json!({ "name": "x".repeat(1_001) })), &["name"]),
        (json!({ "name": "", "template": "{a}", "input_variables": [] }), &["input_variables", "name"]),
        (
            json!({ "name": "", "template": "{", "input_variables": ["1"] }),
            &["input_variables.0", "name", "template"],
        ),
        (with(&greeting(), &json!({ "template": "a\0" })), &["input_variables", "template"]),
    ] {
        let refused = Refused::by(ada.post("/prompts", &body).await);
        assert_eq!(refused.paths(), named, "{}", body.to_string().chars().take(100).collect::<String>());
    }
    assert_eq!(ada.read("/prompts").await, json!([]));
    let made = ada.create("/prompts", &with(&greeting(), &json!({ "id": "own", "userId": "own" }))).await;
    assert_eq!(made["userId"], ada.user()["id"], "a POST passes over what it does not know");

    for (change, named) in [
        (json!({ "id": "own" }), &["id"][..]),
        (
            json!({ "userId": ada.user()["id"], "createdAt": made["createdAt"], "version": 1 }),
            &["createdAt", "userId", "version"],
        ),
        (json!({ "inputVariables": ["input"] }), &["inputVariables"]),
        (
            json!({ "name": null, "template": null, "input_variables": null }),
            &["input_variables", "name", "template"],
        ),
        (
            json!({ "name": "", "template": 5, "input_variables": "input" }),
            &["input_variables", "name", "template"],
        ),
    ] {
        let refused = Refused::by(ada.patch(&path(&made), &change).await);
        assert_eq!(refused.paths(), named, "{change}");
    }
    assert_eq!(ada.read(&path(&made)).await, made);
}

async fn a_change_has_to_agree_with_what_it_leaves_as_it_is(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/prompts", &greeting()).await;
    for (change, expected) in [
        (
            json!({ "template": "{name} {input} {place}" }),
            "template: uses variables that input_variables does not name: `place`",
        ),
        (
            json!({ "template": "{name}" }),
            "template: must use every variable that input_variables names; it lacks: `input`",
        ),
        (
            json!({ "input_variables": ["name"] }),
            "input_variables: must name every variable of the template; it lacks: `input`",
        ),
        (
            json!({ "input_variables": ["name", "input", "place"], "name": "other" }),
            "input_variables: names variables that the template does not use: `place`",
        ),
        (
            json!({ "template": "{a}", "input_variables": ["name", "a"] }),
            "input_variables: names variables that the template does not use: `name`",
        ),
    ] {
        assert_eq!(refusals(ada.patch(&path(&made), &change).await), [expected], "{change}");
        assert_eq!(ada.read(&path(&made)).await, made, "nothing of it is done");
    }

    let reworded = data(ada.patch(&path(&made), &json!({ "template": "{input}, {name}!" })).await);
    assert_eq!(reworded["template"], "{input}, {name}!");
    assert_eq!(reworded["input_variables"], made["input_variables"]);
    let reordered = data(ada.patch(&path(&made), &json!({ "input_variables": ["name", "input"] })).await);
    assert_eq!(reordered["input_variables"], json!(["name", "input"]));
    assert_eq!(reordered["template"], reworded["template"]);
}

async fn a_change_that_is_refused_or_changes_nothing_leaves_no_mark(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/prompts", &greeting()).await;
    for change in [json!({}), greeting(), json!({ "name": made["name"] })] {
        assert_eq!(data(ada.patch(&path(&made), &change).await), made, "{change}");
    }
    for body in ["[]", "5", "null"] {
        let request = ada.request(Method::PATCH, &path(&made)).header("Content-Type", "application/json");
        let (status, answer) = envelope(send(request.body(body)).await).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {answer:#}");
    }
    assert_eq!(ada.read(&path(&made)).await, made);
}

async fn changes_at_once_never_leave_a_pair_that_disagrees(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = ada.create("/prompts", &greeting()).await;
    // Each of the pairs agrees, and half of one with half of another does not. Those who give one half only are right or wrong
    // by what they meet.
    let pairs = [("{a}", json!(["a"])), ("{b}", json!(["b"])), ("{a}{b}", json!(["a", "b"]))];
    for _ in 0..5 {
        let changes: Vec<Value> = pairs
            .iter()
            .flat_map(|(template, variables)| {
                [
                    json!({ "template": template, "input_variables": variables }),
                    json!({ "template": template }),
                    json!({ "input_variables": variables }),
                ]
            })
            .collect();
        let prompt = path(&made);
        let answers = join_all(changes.iter().map(|change| ada.patch(&prompt, change))).await;
        for (change, (status, answer)) in changes.iter().zip(answers) {
            let whole = change.as_object().expect("an object").len() == 2;
            let refused = status == StatusCode::UNPROCESSABLE_ENTITY && !whole;
            assert!(status == StatusCode::OK || refused, "{change}: {answer:#}");
            if status == StatusCode::OK {
                assert_agrees(&pairs, &answer["data"]);
            }
        }
        assert_agrees(&pairs, &ada.read(&prompt).await);
    }
}

fn assert_agrees(pairs: &[(&str, Value)], prompt: &Value) {
    let is = |(template, variables): &(&str, Value)| {
        prompt["template"] == *template && prompt["input_variables"] == *variables
    };
    assert!(pairs.iter().any(is), "{prompt:#}");
}

async fn agents_are_without_a_prompt_when_it_is_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (gone, kept) = (ada.create("/prompts", &greeting()).await, ada.create("/prompts", &greeting()).await);
    let agent = |prompt: &Value| json!({ "name": "Clerk", "type": "CHATVENDOR", "promptId": id(prompt) });
    let orphan = ada.create_agent(&agent(&gone)).await;
    let other = ada.create_agent(&agent(&kept)).await;
    assert_eq!(orphan["promptId"], gone["id"]);

    // Another text does not take the prompt away.
    data(ada.patch(&path(&gone), &json!({ "name": "renamed" })).await);
    assert_eq!(ada.read(&format!("/agents/{}", id(&orphan))).await["promptId"], gone["id"]);
    data(ada.delete(&path(&gone)).await);
    assert_eq!(ada.read(&format!("/agents/{}", id(&orphan))).await["promptId"], Value::Null);
    assert_eq!(ada.read(&format!("/agents/{}", id(&other))).await["promptId"], kept["id"]);
}

async fn what_a_deleted_prompt_said_is_erased_from_earlier_versions_when_that_is_asked_for(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let prompt = |secret: &str| json!({ "name": secret, "template": secret, "input_variables": [] });
    let (gone, kept) = (
        ada.create("/prompts", &prompt("Say that Ben is ill.")).await,
        ada.create("/prompts", &prompt("Be brief.")).await,
    );
    let llm = json!({ "model": "extractive", "provider": "extractive" });
    let agent = json!({ "name": "Clerk", "type": "CHATVENDOR", "llm": llm, "promptId": id(&gone) });
    let agent = format!("/agents/{}", id(&ada.create_agent(&agent).await));
    data(ada.patch(&path(&gone), &json!({ "template": "Say that Ben is well." })).await);
    data(ada.patch(&agent, &json!({ "promptId": id(&kept) })).await);
    data(ada.patch(&agent, &json!({ "promptId": null })).await);
    let versions = async || ada.read(&format!("{agent}/versions")).await;
    let first = versions().await[3]["version"].clone();
    let restore = async || ada.post(&format!("{agent}/versions/{first}/restore"), &json!({})).await;

    data(ada.delete(&path(&gone)).await);
    let told = versions().await;
    assert_eq!(told[3]["prompt"]["template"], "Say that Ben is ill.", "{told:#}");
    let erase = format!("{}?erase=true", path(&gone));
    let (status, refused) = ada.delete(&format!("{}?erase=perhaps", path(&gone))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:#}");
    // It is deleted already, and can be erased nevertheless: once.
    data(ada.delete(&erase).await);
    let (status, unknown) = ada.delete(&erase).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{unknown:#}");
    let told = versions().await;
    assert!(!told.to_string().contains("Ben"), "{told:#}");
    let nothing = json!({
        "id": id(&gone), "isErased": true, "name": "", "template": "", "input_variables": [],
    });
    assert_eq!((&told[2]["prompt"], &told[3]["prompt"]), (&nothing, &nothing), "{told:#}");
    assert_eq!(told[1]["prompt"]["template"], "Be brief.", "{told:#}");

    // Without its prompt it would be another version.
    let (status, refused) = restore().await;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::NOT_FOUND, &json!("version_not_kept")));
    let question = json!({ "input": { "input": "Who is ill?" }, "version": first });
    let (status, refused) = ada.post(&format!("{agent}/predict"), &question).await;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::NOT_FOUND, &json!("version_not_kept")));

    // At once, and with what the agent is told at that moment.
    data(ada.patch(&agent, &json!({ "promptId": id(&kept) })).await);
    data(ada.delete(&format!("{}?erase=true", path(&kept))).await);
    let told = versions().await;
    assert!(!told.to_string().contains("Be brief."), "{told:#}");
    let log = ada.read(&format!("/workspaces/{}/audit?limit=2", id(ada.user()))).await;
    let details = [json!({ "versions": "2" }), json!({ "versions": "2" })];
    assert_eq!([&log[0]["details"], &log[1]["details"]], [&details[0], &details[1]], "{log:#}");
}

async fn another_users_prompts_do_not_exist(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = ada.create("/prompts", &greeting()).await;
    assert_eq!(grace.read("/prompts").await, json!([]));
    assert_eq!(grace.read(&format!("/prompts?limit=5&cursor={}", Uuid::max())).await, json!([]));
    let nobodys = format!("/prompts/{}", Uuid::now_v7());
    // Whether the change would agree with her prompt is not told either.
    for change in [json!({ "name": "mine" }), json!({ "template": "{x}" }), json!({})] {
        let answer = unknown(grace.patch(&path(&hers), &change).await);
        assert_eq!(answer, unknown(grace.patch(&nobodys, &change).await), "{change}");
    }
    assert_eq!(unknown(grace.get(&path(&hers)).await), unknown(grace.get(&nobodys).await));
    assert_eq!(unknown(grace.delete(&path(&hers)).await), unknown(grace.delete(&nobodys).await));
    unknown(grace.get("/prompts/1").await);
    assert_eq!(ada.read("/prompts").await, json!([hers]));

    for (method, path) in [
        (Method::GET, "/prompts".to_owned()),
        (Method::POST, "/prompts".to_owned()),
        (Method::GET, path(&hers)),
    ] {
        let request = ada.signed_out().request(method, &path).json(&greeting());
        assert_eq!(send(request).await.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
}

/// What is said of something that does not exist.
fn unknown((status, mut answer): (StatusCode, Value)) -> Value {
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer:#}");
    answer["error"].take()
}

async fn a_prompt_that_is_created_again_with_the_same_key_is_the_first_one(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let create = async |client: &Client| {
        let request = client.request(Method::POST, "/prompts").header("Idempotency-Key", "once");
        data(envelope(send(request.json(&greeting())).await).await)
    };
    let made = create(&ada).await;
    assert_eq!(create(&ada).await, made);
    assert_eq!(ada.read("/prompts").await, json!([made]));
}
