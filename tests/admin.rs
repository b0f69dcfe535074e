//! The operator's endpoints and commands: the jobs of all users, seen, retried and discarded.

use std::process::Command;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    client::{Client, PASSWORD, data, envelope, id, send},
    in_both_modes,
    service::{Mode, Service},
    setup::Program,
    web::Web,
};

in_both_modes!(
    a_job_that_died_is_found_by_its_error_and_succeeds_when_it_is_retried,
    jobs_that_died_of_one_error_are_retried_together,
    a_job_is_discarded_be_it_queued_or_running,
    only_admins_get_in_and_only_for_as_long_as_they_are,
    the_commands_work_beside_the_running_service,
);

/// A service with an admin, and with a user who is none.
async fn start(mode: Mode) -> (Service, Client, Client, Web) {
    let service = Service::in_mode(mode).env("LECTERN_WORKER_CONCURRENCY", "1").start().await;
    let operator = service.signed_up("operator@example.com").await;
    let ada = service.signed_up("ada@example.com").await;
    (service, operator, ada, Web::start().await)
}

/// Asks an endpoint outside of `/api/v1`.
async fn ask(client: &Client, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let request = client.request_anywhere(method, path);
    envelope(send(body.iter().fold(request, RequestBuilder::json)).await).await
}

async fn jobs(admin: &Client, query: &str) -> Vec<Value> {
    let listed = data(ask(admin, Method::GET, &format!("/admin/jobs{query}"), None).await);
    listed.as_array().expect("an array").clone()
}

async fn act(admin: &Client, what: &str, job: &Value) -> (StatusCode, Value) {
    ask(admin, Method::POST, &format!("/admin/jobs/{}/{what}", id(job)), None).await
}

/// Creates a document of a source and waits until its ingestion has ended, however it did.
async fn try_to_ingest(client: &Client, name: &str, url: &str) -> Value {
    let created = client.create_document(&json!({"name": name, "type": "TXT", "url": url})).await;
    client.wait_until_ingested(id(&created)).await
}

async fn status_of(client: &Client, document: &Value) -> Value {
    client.read(&format!("/documents/{}", id(document))).await["ingestion"]["status"].take()
}

async fn a_job_that_died_is_found_by_its_error_and_succeeds_when_it_is_retried(mode: Mode) {
    const NAME: &str = "Minutes of a meeting that nobody else is to know of";
    let (service, operator, ada, web) = start(mode).await;
    let url = web.status("/minutes.txt", 404);
    let document = try_to_ingest(&ada, NAME, &url).await;
    assert_eq!(document["ingestion"]["status"], "FAILED");
    operator.ingest(&json!({"name": "fine", "type": "TXT", "content": "All is well."})).await;

    for query in [
        "?state=dead",
        "?state=dead&user=ADA@example.com",
        "?code=not_found",
        "?state=dead&code=not_found&limit=1",
    ] {
        let found = jobs(&operator, query).await;
        assert_eq!(found.len(), 1, "{query}: {found:#?}");
        assert_eq!(found[0]["documentId"], document["id"], "{query}");
    }
    for query in ["?state=dead&code=forbidden", "?state=queued", "?state=dead&user=operator@example.com"] {
        assert_eq!(jobs(&operator, query).await, Vec::<Value>::new(), "{query}");
    }
    assert_eq!(jobs(&operator, "").await.len(), 2, "the jobs of all users");
    let query = format!("?document={}&user={}", id(&document), id(ada.user()));
    let job = jobs(&operator, &query).await.remove(0);
    let path = format!("/admin/jobs/{}", id(&job));
    assert_eq!(data(ask(&operator, Method::GET, &path, None).await), job);
    assert_eq!((&job["state"], &job["kind"]), (&json!("dead"), &json!("ingest")));
    assert_eq!((&job["userEmail"], &job["userId"]), (&json!("ada@example.com"), &ada.user()["id"]));
    assert_eq!(job["error"], document["ingestion"]["error"]);
    assert_eq!((&job["attempts"], &job["documentType"]), (&json!(1), &json!("TXT")));
    assert!(!job.to_string().contains(NAME), "what a user wrote is shown to the operator: {job:#}");

    web.serve("/minutes.txt", "text/plain", "The harbour closes at nine.");
    let retried = data(act(&operator, "retry", &job).await);
    assert_eq!(id(&retried), id(&job));
    let ended = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    assert_eq!(jobs(&operator, "?state=dead").await, Vec::<Value>::new());
    assert_eq!(jobs(&operator, "?state=done").await.len(), 2);

    let retried = |line: &Value| line["fields"]["message"] == "an admin retried a job";
    let line = service.logged("what the admin did", retried).await;
    assert_eq!(line["fields"]["admin"], operator.user()["id"]);
    assert_eq!(line["fields"]["job"], job["id"]);
}

async fn jobs_that_died_of_one_error_are_retried_together(mode: Mode) {
    let (_service, operator, ada, web) = start(mode).await;
    let mut missing = Vec::new();
    for (owner, path) in [(&ada, "/a.txt"), (&operator, "/b.txt"), (&ada, "/c.txt")] {
        missing.push((owner, try_to_ingest(owner, path, &web.url(path)).await));
    }
    let private = try_to_ingest(&ada, "private", &web.status("/private.txt", 403)).await;
    for path in ["/a.txt", "/b.txt", "/c.txt", "/private.txt"] {
        web.serve(path, "text/plain", "Back again.");
    }

    let all = async |what: &str, body: Value| {
        data(ask(&operator, Method::POST, &format!("/admin/jobs/{what}"), Some(body)).await)
    };
    let of_another = json!({"state": "dead", "code": "not_found", "user": "operator@example.com"});
    assert_eq!(all("retry", of_another).await, json!({"jobs": 1}));
    assert_eq!(all("retry", json!({"state": "dead", "code": "not_found"})).await, json!({"jobs": 2}));
    for (owner, document) in &missing {
        let ended = owner.wait_until_ingested(id(document)).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    }
    assert_eq!(status_of(&ada, &private).await, "FAILED", "it died of something else");
    assert_eq!(all("discard", json!({"state": "dead", "user": id(ada.user())})).await, json!({"jobs": 1}));
    assert_eq!(status_of(&ada, &private).await, "CANCELLED");
    assert_eq!(all("discard", json!({"state": "dead"})).await, json!({"jobs": 0}));
    // A discard by mistake can be undone.
    assert_eq!(all("retry", json!({"state": "cancelled"})).await, json!({"jobs": 1}));
    assert_eq!(ada.wait_until_ingested(id(&private)).await["ingestion"]["status"], "SUCCEEDED");

    for (body, field) in [
        (json!({}), "state"),
        (json!({"state": "done"}), "state"),
        (json!({"state": "dead", "user": "nobody@example.com"}), "user"),
        (json!({"state": "dead", "code": "Not found."}), "code"),
    ] {
        let (status, answer) = ask(&operator, Method::POST, "/admin/jobs/retry", Some(body)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
        assert_eq!(answer["error"]["fields"][0]["path"], field, "{answer:#}");
    }
    for (query, field) in [
        ("?state=lost", "state"),
        ("?user=nobody@example.com", "user"),
        ("?document=1", "document"),
        ("?code=%25", "code"),
        ("?limit=201", "limit"),
        ("?cursor=019a8f50-3c77-7d02-b1e9-84a6f2c05d13", "cursor"),
    ] {
        let (status, answer) = ask(&operator, Method::GET, &format!("/admin/jobs{query}"), None).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{query}: {answer:#}");
        assert_eq!(answer["error"]["fields"][0]["path"], field, "{query}: {answer:#}");
    }

    let (mut paged, mut path) = (Vec::new(), "/admin/jobs?state=done&limit=3".to_owned());
    let next = loop {
        let (_, page) = ask(&operator, Method::GET, &path, None).await;
        paged.extend(page["data"].as_array().expect("an array").clone());
        match page["nextCursor"].as_str() {
            Some(next) => path = format!("/admin/jobs?state=done&limit=3&cursor={next}"),
            None => break page,
        }
    };
    assert_eq!(next.get("nextCursor"), None);
    assert_eq!(paged, jobs(&operator, "?state=done").await);
    assert_eq!(paged.len(), 4);
}

async fn a_job_is_discarded_be_it_queued_or_running(mode: Mode) {
    let (_service, operator, ada, web) = start(mode).await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "Slow and steady.");
    let running = ada.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    let queued = ada.create_document(&json!({"name": "next", "type": "TXT", "content": "Next."})).await;

    let held = jobs(&operator, "?state=running").await.remove(0);
    assert_eq!(held["documentId"], running["id"]);
    assert!(held["leaseUntil"].is_string() && held["worker"].is_string(), "{held:#}");
    let due = jobs(&operator, "?state=due").await.remove(0);
    assert_eq!(due["documentId"], queued["id"]);
    let (status, answer) = act(&operator, "retry", &held).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    let unchanged = data(act(&operator, "retry", &due).await);
    assert_eq!(unchanged["queuedAt"], due["queuedAt"], "it keeps its place");

    for (job, document) in [(&due, &queued), (&held, &running)] {
        let discarded = data(act(&operator, "discard", job).await);
        assert_eq!((&discarded["state"], &discarded["leaseUntil"]), (&json!("cancelled"), &Value::Null));
        assert_eq!(status_of(&ada, document).await, "CANCELLED");
    }
    gate.release();
    // Another document goes through the same worker, which has therefore looked at the first one's end.
    ada.ingest(&json!({"name": "other", "type": "TXT", "content": "Other words."})).await;
    for document in [&queued, &running] {
        let still = ada.read(&format!("/documents/{}", id(document))).await;
        assert_eq!((&still["ingestion"]["status"], &still["index"]), (&json!("CANCELLED"), &Value::Null));
    }
    for (job, document) in [(&due, &queued), (&held, &running)] {
        data(act(&operator, "retry", job).await);
        let ended = ada.wait_until_ingested(id(document)).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
        let after = data(act(&operator, "discard", job).await);
        assert_eq!(after["state"], "done", "what has ended stays as it is");
    }

    data(ada.delete(&format!("/documents/{}", id(&queued))).await);
    for what in ["retry", "discard"] {
        let (status, answer) = act(&operator, what, &due).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{answer:#}");
        assert!(answer["error"]["message"].as_str().expect("a sentence").contains("deleted"), "{answer:#}");
    }
}

async fn only_admins_get_in_and_only_for_as_long_as_they_are(mode: Mode) {
    let (service, operator, ada, _web) = start(mode).await;
    let document = ada.ingest(&json!({"name": "d", "type": "TXT", "content": "Words."})).await;
    let job = jobs(&operator, "").await.remove(0);
    assert_eq!(job["documentId"], document["id"]);
    let scripts = async |client: &Client| {
        let token = client.create("/api-tokens", &json!({ "description": "a script's" })).await;
        client.with_token(token["token"].as_str().expect("a value"))
    };
    let (by_token, hers) = (scripts(&operator).await, scripts(&ada).await);
    assert_eq!(jobs(&by_token, "").await.len(), 1);

    let requests = [
        (Method::GET, "/admin/jobs".to_owned(), None),
        (Method::GET, "/admin/jobs?state=nonsense".to_owned(), None),
        (Method::GET, format!("/admin/jobs/{}", id(&job)), None),
        (Method::GET, "/admin/jobs/none".to_owned(), None),
        (Method::POST, format!("/admin/jobs/{}/retry", id(&job)), None),
        (Method::POST, format!("/admin/jobs/{}/discard", id(&job)), None),
        (Method::POST, "/admin/jobs/retry".to_owned(), Some(json!({"state": "dead"}))),
        (Method::POST, "/admin/jobs/discard".to_owned(), Some(json!("no object"))),
    ];
    let assert_refused = async |client: &Client| {
        for (method, path, body) in &requests {
            let (status, answer) = ask(client, method.clone(), path, body.clone()).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}: {answer:#}");
            assert_eq!(answer["error"]["code"], "forbidden", "{method} {path}");
        }
    };
    for client in [&ada, &hers] {
        assert_refused(client).await;
    }
    for (method, path, _) in &requests {
        let request = service.client().request_outside(method.clone(), path);
        assert_eq!(envelope(send(request).await).await.0, StatusCode::UNAUTHORIZED, "{method} {path}");
    }

    let done = lectern(&service, &["user", "admin", "ada@example.com"]).await;
    assert_eq!(done.code, 0, "{}", done.err);
    let done = lectern(&service, &["user", "admin", "operator@example.com", "--revoke"]).await;
    assert_eq!(done.code, 0, "{}", done.err);
    let unknown = lectern(&service, &["user", "admin", "nobody@example.com"]).await;
    assert!(unknown.code == 1 && unknown.err.contains("no such account"), "{}", unknown.err);
    for client in [&operator, &by_token] {
        assert_refused(client).await;
    }
    assert_eq!(ada.read("/users/me").await["isAdmin"], true);
    assert_eq!(jobs(&hers, "").await.len(), 1);

    let goodbye = ada.request(Method::DELETE, "/users/me").json(&json!({ "password": PASSWORD }));
    data(envelope(send(goodbye).await).await);
    for client in [&ada, &hers] {
        let (status, _) = ask(client, Method::GET, "/admin/jobs", None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
}

/// How a command ended, and what it wrote.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

/// Runs a command beside the service, with all that can be logged, of which a misspelt setting is always some.
async fn lectern(service: &Service, arguments: &[&str]) -> Ended {
    let setup = service.sibling();
    let mut command = Command::new(Program::Lectern.path());
    command.args(arguments).env_clear().envs(setup.environment()).env("LECTERN_LOG", "debug");
    command.env("LECTERN_MISSPELT", "x");
    command.current_dir(setup.data_dir());
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("a thread");
    let output = output.expect("it starts");
    Ended {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

async fn the_commands_work_beside_the_running_service(mode: Mode) {
    let (service, _operator, ada, web) = start(mode).await;
    let run = async |arguments: &[&str]| lectern(&service, &[&["jobs"], arguments].concat()).await;
    let one = try_to_ingest(&ada, "one", &web.url("/one.txt")).await;
    let two = try_to_ingest(&ada, "two", &web.url("/two.txt")).await;
    let private = try_to_ingest(&ada, "private", &web.status("/private.txt", 403)).await;
    let fine = ada.ingest(&json!({"name": "fine", "type": "TXT", "content": "All is well."})).await;

    let listed = run(&["list", "--state", "dead"]).await;
    assert_eq!(listed.code, 0, "{}", listed.err);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", listed.out);
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(head, ["ID", "STATE", "ATTEMPTS", "KIND", "USER", "DOCUMENT", "AGE", "ERROR"]);
    let first: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(first[1..6], ["dead", "1/5", "ingest", "ada@example.com", id(&private)], "the last that died");
    assert_eq!(first[7], "forbidden");
    for line in &lines {
        assert_eq!(
            line.find(line.split_whitespace().last().expect("a cell")),
            lines[0].find("ERROR"),
            "{}",
            listed.out
        );
    }

    let listed = run(&["list", "--code", "not_found", "--user", "ada@example.com", "--json"]).await;
    let found: Value = serde_json::from_str(&listed.out).expect("JSON, and nothing else");
    assert!(listed.err.contains("LECTERN_MISSPELT"), "a command that logs nothing proves nothing");
    let documents: Vec<&Value> =
        found.as_array().expect("an array").iter().map(|job| &job["documentId"]).collect();
    assert_eq!(documents, [&two["id"], &one["id"]]);
    let (job_two, job_one) = (id(&found[0]).to_owned(), id(&found[1]).to_owned());
    let shown = run(&["show", &job_one, "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&shown.out).expect("JSON"), found[1]);
    let shown = run(&["show", &job_one]).await;
    assert!(
        shown.out.lines().any(|line| line.starts_with("documentId") && line.ends_with(id(&one))),
        "{}",
        shown.out
    );
    let none = run(&["list", "--state", "due"]).await;
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    let limited = run(&["list", "--limit", "1", "--json"]).await;
    let limited: Value = serde_json::from_str(&limited.out).expect("JSON");
    assert_eq!(limited[0]["documentId"], fine["id"], "the newest");
    assert_eq!(limited.as_array().map(Vec::len), Some(1));

    for path in ["/one.txt", "/two.txt", "/private.txt"] {
        web.serve(path, "text/plain", "Back again.");
    }
    let nobodys = "019a8f40-9b1c-7d55-8e02-000000000000";
    let retried = run(&["retry", &job_one, nobodys]).await;
    assert_eq!(retried.code, 1, "one of them is not there: {}", retried.err);
    assert!(retried.out.contains(&job_one) && !retried.out.contains(nobodys), "{}", retried.out);
    assert!(retried.err.contains(nobodys) && retried.err.contains("no such job"), "{}", retried.err);
    assert_eq!(ada.wait_until_ingested(id(&one)).await["ingestion"]["status"], "SUCCEEDED");
    for arguments in [["show", nobodys], ["discard", nobodys]] {
        let missing = run(&arguments).await;
        assert_eq!((missing.code, missing.out.as_str()), (1, ""), "{}", missing.err);
        assert!(missing.err.contains("no such job"), "{}", missing.err);
    }

    let retried = run(&["retry", "--dead", "--code", "not_found"]).await;
    assert_eq!((retried.code, retried.out.as_str()), (0, "due: 1\n"), "{}", retried.err);
    assert_eq!(ada.wait_until_ingested(id(&two)).await["ingestion"]["status"], "SUCCEEDED");
    let discarded = run(&["discard", "--dead", "--user", "ada@example.com"]).await;
    assert_eq!((discarded.code, discarded.out.as_str()), (0, "cancelled: 1\n"), "{}", discarded.err);
    assert_eq!(status_of(&ada, &private).await, "CANCELLED");
    let ended = run(&["discard", &job_two]).await;
    assert_eq!((ended.code, ended.out.contains("ended already")), (0, true), "{}", ended.err);

    for (arguments, named) in [
        (&["retry", "--state", "done"][..], "dead, waiting, cancelled"),
        (&["list", "--user", "nobody@example.com"], "nobody@example.com"),
        (&["retry", "--dead", "--user", "nobody@example.com"], "nobody@example.com"),
    ] {
        let refused = run(arguments).await;
        assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{arguments:?}: {}", refused.err);
        assert!(refused.err.contains(named), "{arguments:?}: {}", refused.err);
    }
    for arguments in [
        &["retry"][..],
        &["retry", "--code", "not_found"],
        &["retry", &job_one, "--dead"],
        &["retry", "--dead", "--state", "waiting"],
        &["discard", &job_one, "--user", "ada@example.com"],
        &["retry", "1"],
        &["list", "--state", "lost"],
        &["list", "--limit", "0"],
    ] {
        let refused = run(arguments).await;
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{arguments:?}: {}", refused.err);
    }
    assert!(service.client().is_ready().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_while_no_service_runs() {
    let (mut service, _operator, ada, web) = start(Mode::Embedded).await;
    let document = try_to_ingest(&ada, "one", &web.url("/one.txt")).await;
    service.terminate().await;
    web.serve("/one.txt", "text/plain", "Back again.");
    let retried = lectern(&service, &["jobs", "retry", "--dead"]).await;
    assert_eq!((retried.code, retried.out.as_str()), (0, "due: 1\n"), "{}", retried.err);
    service.restart().await;
    assert_eq!(ada.wait_until_ingested(id(&document)).await["ingestion"]["status"], "SUCCEEDED");

    let empty = Service::in_mode(Mode::Embedded);
    let mut command = Command::new(Program::Lectern.path());
    command.args(["jobs", "list"]).env_clear().envs(empty.environment()).current_dir(empty.data_dir());
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("there is no database"), "{log}");
    let made = std::fs::read_dir(empty.data_dir()).expect("its folder").count();
    assert_eq!(made, 0, "a command makes no installation");
}
