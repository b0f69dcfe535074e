//! Sources: sites, feeds, buckets and folders whose documents are kept in step with what is there.

mod deletion;
mod places;
mod secrets;
mod site;

use axum::{
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use self::site::TestSite;
use crate::support::{
    client::{Client, data, id},
    db::Database,
    in_both_modes,
    process::POLL,
    service::{Mode, Service},
    setup::Setup,
    web::Web,
    within_deadline,
};

in_both_modes!(
    killed_again_and_again_a_run_makes_every_document_once,
    a_source_runs_by_itself_and_never_twice_at_once,
    a_source_that_is_changed_while_it_runs_is_read_again,
    a_source_that_is_put_right_loses_nothing_to_what_was_asked_before,
    a_workspace_that_is_full_gets_no_more_documents,
    what_a_source_has_made_larger_leaves_less_room,
    a_quota_that_is_lowered_holds_in_the_run_that_is_under_way,
    a_feed_that_no_reader_survives_fails_alone,
    what_cannot_be_a_source_is_refused_with_what_to_change
);

/// Between two looks at a run, which has better things to do than to answer.
const GLANCE: std::time::Duration = std::time::Duration::from_millis(50);

fn setup(mode: Mode) -> Setup {
    Service::in_mode(mode).env("LECTERN_MAX_SOURCE", "4MiB")
}

async fn signed_up(mode: Mode) -> (Service, Client) {
    let service = setup(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    (service, client)
}

async fn source(client: &Client, r#type: &str, config: Value) -> Value {
    client.create("/sources", &json!({"name": "Handbook", "type": r#type, "config": config})).await
}

fn run_path(run: &Value) -> String {
    format!("/sources/{}/runs/{}", run["sourceId"].as_str().expect("an id"), id(run))
}

/// Waits until a run is in none of the states in which it goes on; not longer than it makes progress.
async fn settled(client: &Client, run: &Value) -> Value {
    let (path, source) = (run_path(run), format!("/sources/{}", run["sourceId"].as_str().expect("an id")));
    let mut seen = json!(null);
    loop {
        let progress = async {
            loop {
                let now = json!([client.read(&path).await, client.read(&source).await["documents"]]);
                if now != seen {
                    return now;
                }
                tokio::time::sleep(GLANCE).await;
            }
        };
        seen = within_deadline("the run to go on", progress).await;
        if !matches!(seen[0]["state"].as_str(), Some("queued" | "running")) {
            return seen[0].clone();
        }
    }
}

async fn start_run(client: &Client, source: &Value, how: Value) -> Value {
    client.create(&format!("/sources/{}/run", id(source)), &how).await
}

/// Has a source run, and waits for its end.
async fn run(client: &Client, source: &Value) -> Value {
    settled(client, &start_run(client, source, json!({})).await).await
}

/// `[added, changed, unchanged, gone, failed]`.
fn counts(run: &Value) -> [i64; 5] {
    ["added", "changed", "unchanged", "gone", "failed"].map(|name| run[name].as_i64().expect(name))
}

/// What a run found, as `(what, outcome, reason)`, sorted.
async fn found(client: &Client, run: &Value) -> Vec<(String, String, String)> {
    let items = client.read(&format!("{}/items", run_path(run))).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let item = |item: &Value| (text(&item["item"]), text(&item["outcome"]), text(&item["reason"]));
    let mut items: Vec<_> = items.as_array().expect("a list").iter().map(item).collect();
    items.sort();
    items
}

async fn documents(client: &Client) -> Vec<Value> {
    client.read("/documents").await.as_array().expect("a list").clone()
}

async fn urls(client: &Client) -> Vec<String> {
    let url = |document: &Value| document["url"].as_str().expect("a url").to_owned();
    let mut urls: Vec<_> = documents(client).await.iter().map(url).collect();
    urls.sort();
    urls
}

/// The text of a document, when it can be searched.
async fn text_of(client: &Client, document: &Value) -> String {
    let ended = client.wait_until_ingested(id(document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    let passages = client.read(&format!("/documents/{}/chunks", id(document))).await;
    let text = |passage: &Value| passage["text"].as_str().expect("a text").to_owned();
    passages.as_array().expect("a list").iter().map(text).collect()
}

async fn killed_again_and_again_a_run_makes_every_document_once(mode: Mode) {
    const PAGES: i64 = 60;
    let setup = setup(mode).env("LECTERN_JOB_MAX_ATTEMPTS", "50").env("LECTERN_INDEX_GRACE", "0s");
    let setup = match mode {
        // The next start knows that all leases are void.
        Mode::Embedded => setup,
        Mode::Postgres | Mode::Cluster => setup.env("LECTERN_JOB_LEASE", "6s"),
    };
    let mut service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let receiver = Web::start().await;
    let told = receiver.serve("/told", "text/plain", "");
    client.create("/webhooks", &json!({"url": told, "events": ["source.finished"]})).await;
    let site = TestSite::start(PAGES).await;
    let source = source(&client, "site", json!({"url": site.url("/"), "maxDocuments": 5_000})).await;
    let started = start_run(&client, &source, json!({})).await;
    for kills in 1..=3 {
        let wanted = kills * PAGES / 5;
        let far_enough = async {
            while client.read(&run_path(&started)).await["added"].as_i64() < Some(wanted) {
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the run to go on", far_enough).await;
        service.kill();
        service.restart().await;
    }
    let ended = settled(&client, &started).await;
    assert_eq!((&ended["state"], counts(&ended)), (&json!("succeeded"), [PAGES, 0, 0, 0, 2]), "{ended:#}");
    let urls = urls(&client).await;
    let mut once = urls.clone();
    once.dedup();
    assert_eq!([urls.len(), once.len()].map(i64::try_from), [Ok(PAGES), Ok(PAGES)]);
    let again = run(&client, &source).await;
    assert_eq!(counts(&again), [0, 0, PAGES, 0, 2]);
    let told = receiver.wait_for_hits("/told", 2).await;
    let body: Value = serde_json::from_slice(&told[0].body).expect("JSON");
    assert_eq!((&body["type"], &body["data"]["runId"]), (&json!("source.finished"), &started["id"]));
    assert_eq!((&body["data"]["added"], &body["data"]["state"]), (&json!(PAGES), &json!("succeeded")));
}

async fn a_source_runs_by_itself_and_never_twice_at_once(mode: Mode) {
    let (mut service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let (_, gate) = web.gate("/a", "text/html", "<title>a</title><p>Page a.</p>");
    web.serve("/sitemap.xml", "text/plain", web.url("/a"));
    let body = json!({"name": "Site", "type": "site", "config": {"url": web.url("/")}, "every": "30m"});
    let source = client.create("/sources", &body).await;
    assert_eq!(source["every"], "30m");
    gate.wait_until_reached().await;
    let runs = format!("/sources/{}/runs", id(&source));
    let first = client.read(&runs).await[0].clone();
    assert_eq!((&first["state"], &first["requestedBy"]), (&json!("running"), &Value::Null));
    let (status, _) = client.post(&format!("/sources/{}/run", id(&source)), &json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    gate.release();
    let first = settled(&client, &first).await;
    assert_eq!((&first["state"], counts(&first)), (&json!("succeeded"), [1, 0, 0, 0, 0]));
    let path = format!("/sources/{}", id(&source));
    let next = client.read(&path).await["nextRunAt"].clone();
    assert!(next.is_string(), "{next}");
    service.restart().await;
    let after = client.read(&path).await;
    assert_eq!((&after["nextRunAt"], &after["lastRun"]["id"]), (&next, &first["id"]));
    let changed = data(client.patch(&path, &json!({"every": null})).await);
    assert_eq!((&changed["every"], &changed["nextRunAt"]), (&Value::Null, &Value::Null));
    // Without a body it is a run like any other.
    let (status, body) = crate::support::client::envelope(
        crate::support::client::send(client.request(reqwest::Method::POST, &format!("{path}/run"))).await,
    )
    .await;
    assert_eq!(status, StatusCode::OK, "{body:#}");
    assert_eq!(counts(&settled(&client, &body["data"]).await), [0, 0, 1, 0, 0]);
}

async fn a_source_that_is_changed_while_it_runs_is_read_again(mode: Mode) {
    // Both feeds have it.
    const TAG: &str = "\"1\"";
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve_feed = |path: &str, entry: &str| {
        let item =
            format!("<item><title>{entry}</title><link>{}</link></item>", web.url(&format!("/{entry}")));
        let body = format!("<rss version='2.0'><channel><title>News</title>{item}</channel></rss>");
        web.answer_with(path, move |seen| match seen.header("if-none-match") {
            Some(TAG) => StatusCode::NOT_MODIFIED.into_response(),
            _ => ([(header::CONTENT_TYPE, "application/rss+xml"), (header::ETAG, TAG)], body.clone())
                .into_response(),
        })
    };
    let [before, after] =
        [("/before.xml", "one"), ("/after.xml", "two")].map(|(path, entry)| serve_feed(path, entry));
    let (_, gate) = web.gate("/one", "text/html", "<title>one</title><p>The whole story of one.</p>");
    web.serve("/two", "text/html", "<title>two</title><p>The whole story of two.</p>");
    let config = |url: &str| json!({"url": url, "fullPages": true, "onlyCurrent": true});
    let source = source(&client, "feed", config(&before)).await;
    let first = start_run(&client, &source, json!({})).await;
    gate.wait_until_reached().await;
    let path = format!("/sources/{}", id(&source));
    data(client.patch(&path, &json!({"config": config(&after), "deleteLimit": 100})).await);
    gate.release();
    let first = settled(&client, &first).await;
    assert_eq!((&first["state"], counts(&first)), (&json!("failed"), [1, 0, 0, 0, 0]), "{first:#}");
    assert!(first["error"].as_str().expect("why").contains("changed meanwhile"), "{first:#}");

    let runs = client.read(&format!("{path}/runs")).await;
    let [second, _] = runs.as_array().expect("a list").as_slice() else { panic!("one more run: {runs:#}") };
    assert_eq!(second["requestedBy"], client.user()["id"]);
    let second = settled(&client, second).await;
    assert_eq!((&second["state"], counts(&second)), (&json!("succeeded"), [1, 0, 0, 1, 0]), "{second:#}");
    let names: Vec<_> = documents(&client).await.iter().map(|document| document["name"].clone()).collect();
    assert_eq!(names, ["two"]);
}

async fn a_source_that_is_put_right_loses_nothing_to_what_was_asked_before(mode: Mode) {
    // One at a time, so that a run can be confirmed and yet not begin.
    let service = setup(mode).env("LECTERN_SOURCE_RUNS", "1").start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let pages = ["/docs/a", "/docs/b", "/docs/c"];
    for page in pages {
        web.serve(page, "text/html", format!("<title>{page}</title><p>Page {page}.</p>"));
    }
    let all = pages.map(|page| web.url(page));
    web.serve("/sitemap.xml", "text/plain", all.join("\n"));
    let config = |include: &str| json!({"url": web.url("/"), "include": [include]});
    let site = source(&client, "site", config("/docs/*")).await;
    let path = format!("/sources/{}", id(&site));
    let change = async |include: &str| data(client.patch(&path, &json!({"config": config(include)})).await);
    let mistyped = async || {
        change("/dcos/*").await;
        let asking = run(&client, &site).await;
        assert_eq!((&asking["state"], counts(&asking)), (&json!("waiting"), [0, 0, 0, 3, 0]), "{asking:#}");
        asking
    };
    let answer = async |run: &Value, answer: &str| {
        client.post(&format!("{}/{answer}", run_path(run)), &json!({})).await
    };
    let assert_ended = async |run: &Value| {
        let ended = client.read(&run_path(run)).await;
        let told = (&ended["state"], &ended["error"]);
        assert_eq!(told, (&json!("cancelled"), &json!("The source was changed meanwhile.")), "{ended:#}");
        let (status, body) = answer(run, "confirm").await;
        assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("nothing_to_confirm")));
        assert_eq!(data(answer(run, "cancel").await)["state"], "cancelled");
    };
    assert_eq!(counts(&run(&client, &site).await), [3, 0, 0, 0, 0]);

    let first = mistyped().await;
    data(client.patch(&path, &json!({"name": "Docs", "deleteLimit": 30})).await);
    assert_eq!(client.read(&run_path(&first)).await["state"], "waiting", "it is the same place");
    change("/docs/*").await;
    assert_ended(&first).await;
    assert_eq!(counts(&run(&client, &site).await), [0, 0, 3, 0, 0]);

    // Whoever answers it with no is not told to answer any more.
    let refused = mistyped().await;
    assert!(refused["error"].as_str().is_some_and(|asks| asks.contains("Confirm the run")), "{refused:#}");
    let kept = data(answer(&refused, "cancel").await);
    assert_eq!(kept["state"], "cancelled");
    assert!(kept["error"].as_str().is_some_and(|told| told.starts_with("What is gone there was kept here.")));
    assert_eq!(client.read(&run_path(&refused)).await["error"], kept["error"]);
    assert_eq!(urls(&client).await, all);

    let second = mistyped().await;
    let (feed, gate) = web.gate("/feed.xml", "application/rss+xml", "<rss version='2.0'><channel/></rss>");
    let other = source(&client, "feed", json!({ "url": feed })).await;
    let busy = start_run(&client, &other, json!({})).await;
    gate.wait_until_reached().await;
    assert_eq!(data(answer(&second, "confirm").await)["state"], "queued");
    change("/docs/*").await;
    assert_ended(&second).await;
    gate.release();
    settled(&client, &busy).await;
    assert_eq!(counts(&run(&client, &site).await), [0, 0, 3, 0, 0]);
    assert_eq!(urls(&client).await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_is_held_for_long_keeps_no_source_of_another_from_running() {
    let database = Database::fresh().await;
    let service = setup(Mode::Postgres).database_url(database.url()).start().await;
    let (ada, grace) =
        (service.signed_up("ada@example.com").await, service.signed_up("grace@example.com").await);
    let web = Web::start().await;
    web.serve("/a", "text/html", "<title>a</title><p>Page a.</p>");
    web.serve("/sitemap.xml", "text/plain", web.url("/a"));
    let config = json!({"url": web.url("/")});
    let body = json!({"name": "Site", "type": "site", "config": config, "every": "30m"});
    let (due, hers) = (ada.create("/sources", &body).await, source(&grace, "site", config).await);
    let path = format!("/sources/{}", id(&due));
    let runs = format!("{path}/runs");
    let first = async {
        while ada.read(&path).await["lastRun"]["state"] != "succeeded" {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the first run", first).await;

    let mut holding = PgConnection::connect(database.url()).await.expect("the service's database");
    let mut held = holding.begin().await.expect("a transaction");
    sqlx::query("SELECT id FROM workspaces WHERE id = CAST($1 AS UUID) FOR UPDATE")
        .bind(ada.user()["id"].as_str())
        .execute(&mut *held)
        .await
        .expect("a lock");
    let mut beside = PgConnection::connect(database.url()).await.expect("the service's database");
    sqlx::query("UPDATE sources SET next_run_at = 1 WHERE id = CAST($1 AS UUID)")
        .bind(id(&due))
        .execute(&mut beside)
        .await
        .expect("a source that is due");
    assert_eq!(counts(&run(&grace, &hers).await), [1, 0, 0, 0, 0]);
    held.rollback().await.expect("an end of it");
    let second = async {
        while ada.read(&runs).await.as_array().expect("a list").len() < 2 {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("a run of the other source", second).await;
}

async fn a_workspace_that_is_full_gets_no_more_documents(mode: Mode) {
    let service = setup(mode).env("LECTERN_MAX_STORAGE", "3KiB").start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    for page in ["a", "b", "c"] {
        let text = format!("<title>{page}</title><p>{}</p>", "word ".repeat(250));
        web.serve(&format!("/{page}"), "text/html", text);
    }
    web.serve("/sitemap.xml", "text/plain", ["/a", "/b", "/c"].map(|page| web.url(page)).join("\n"));
    let source = source(&client, "site", json!({"url": web.url("/")})).await;
    let first = run(&client, &source).await;
    assert_eq!(first["state"], "succeeded");
    let [added, _, _, _, failed] = counts(&first);
    assert!(added >= 1 && failed >= 1 && added + failed == 3, "{first:#}");
    let listed = found(&client, &first).await;
    assert!(
        listed.iter().any(|(_, outcome, reason)| outcome == "failed" && reason.contains("may store")),
        "{listed:?}"
    );
}

async fn what_a_source_has_made_larger_leaves_less_room(mode: Mode) {
    let service = setup(mode).env("LECTERN_MAX_STORAGE", "64KiB").start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let page = "<title>a</title><p>Page a.</p>";
    web.serve("/a", "text/html", page);
    web.serve("/sitemap.xml", "text/plain", web.url("/a"));
    let source = source(&client, "site", json!({"url": web.url("/")})).await;
    assert_eq!(counts(&run(&client, &source).await), [1, 0, 0, 0, 0]);
    web.serve("/a", "text/html", format!("{page}<!-- {} -->", "x".repeat(40_000)));
    assert_eq!(counts(&run(&client, &source).await), [0, 1, 0, 0, 0]);
    let text = json!({"name": "more", "type": "TXT", "content": "word ".repeat(6_000)});
    let (status, answer) = client.post("/documents", &text).await;
    let refused = (StatusCode::FORBIDDEN, &json!("quota_exceeded"));
    assert_eq!((status, &answer["error"]["code"]), refused, "{answer:#}");
}

async fn a_quota_that_is_lowered_holds_in_the_run_that_is_under_way(mode: Mode) {
    let service = setup(mode).start().await;
    let operator = service.signed_up("operator@example.com").await;
    let ada = service.signed_up("ada@example.com").await;
    let workspace = ada.create("/workspaces", &json!({"name": "Archive"})).await;
    let client = ada.in_workspace(id(&workspace));
    client.ingest(&json!({"name": "there before", "type": "TXT", "content": "One."})).await;
    let web = Web::start().await;
    let (_, gate) = web.gate("/a", "text/html", "<title>a</title><p>Page a.</p>");
    web.serve("/sitemap.xml", "text/plain", web.url("/a"));
    let source = source(&client, "site", json!({"url": web.url("/")})).await;
    let begun = start_run(&client, &source, json!({})).await;
    gate.wait_until_reached().await;
    let path = format!("/workspaces/{}", id(&workspace));
    data(operator.patch(&path, &json!({"quotas": {"documents": 1}})).await);
    gate.release();
    let ended = settled(&client, &begun).await;
    assert_eq!(counts(&ended), [0, 0, 0, 0, 1], "{ended:#}");
    let listed = found(&client, &ended).await;
    assert!(listed.iter().all(|(_, _, reason)| reason.contains("1 of 1 documents")), "{listed:?}");
    assert_eq!(documents(&client).await.len(), 1);
}

async fn a_feed_that_no_reader_survives_fails_alone(mode: Mode) {
    let (service, client) = signed_up(mode).await;
    let processes =
        || (service.pid(), (0..service.worker_count()).map(|at| service.worker_pid(at)).collect::<Vec<_>>());
    let before = processes();
    let web = Web::start().await;
    let rss = |items: &str| {
        format!(
            "<rss version=\"2.0\" xmlns:media=\"http://search.yahoo.com/mrss/\"><channel><title>a & b</title>{items}</channel></rss>"
        )
    };
    let deep = rss(&format!("<item>{}", "<media:content>".repeat(100_000)));
    let crowd = rss(&"<item/>".repeat(500_000));
    let base = format!("<item xml:base='https://a.example/{}'/>", "x".repeat(1 << 20));
    for (path, feed) in [("/deep.xml", deep), ("/crowd.xml", crowd), ("/base.xml", rss(&base))] {
        let config = json!({"url": web.serve(path, "application/rss+xml", feed), "fullPages": false});
        let failed = run(&client, &source(&client, "feed", config).await).await;
        assert_eq!(failed["state"], "failed", "{path}: {failed:#}");
        let why = failed["error"].as_str().expect("why");
        assert!(why.contains("no feed that can be read"), "{path}: {why}");
    }
    let entry = "<item><guid>1</guid><title>One</title><description>Words of one.</description></item>";
    let sound = rss(entry).replace(" & ", " and ");
    let config = json!({"url": web.serve("/feed.xml", "application/rss+xml", sound), "fullPages": false});
    let source = source(&client, "feed", config).await;
    assert_eq!(counts(&run(&client, &source).await), [1, 0, 0, 0, 0]);
    let again = start_run(&client, &source, json!({"full": true})).await;
    assert_eq!(counts(&settled(&client, &again).await), [0, 0, 1, 0, 0]);
    assert_eq!(processes(), before, "nothing was started anew");
}

async fn what_cannot_be_a_source_is_refused_with_what_to_change(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    for (body, path) in [
        (json!({"type": "site", "config": {"url": "https://a.example"}}), "name"),
        (json!({"name": "x", "config": {"url": "https://a.example"}}), "type"),
        (json!({"name": "x", "type": "ftp", "config": {}}), "type"),
        (json!({"name": "x", "type": "site"}), "config"),
        (json!({"name": "x", "type": "site", "config": {}}), "config.url"),
        (json!({"name": "x", "type": "site", "config": {"url": "example"}}), "config.url"),
        (json!({"name": "x", "type": "site", "config": {"url": "file:///etc/passwd"}}), "config.url"),
        (json!({"name": "x", "type": "site", "config": {"url": "http://169.254.169.254/"}}), "config.url"),
        (json!({"name": "x", "type": "site", "config": {"url": "https://me:pw@a.example"}}), "config.url"),
        (
            json!({"name": "x", "type": "site", "config": {"url": "https://a.example", "discover": "guess"}}),
            "config.discover",
        ),
        (
            json!({"name": "x", "type": "site", "config": {"url": "https://a.example", "maxDocuments": 0}}),
            "config.maxDocuments",
        ),
        (
            json!({"name": "x", "type": "site", "config": {"url": "https://a.example", "maxDocuments": 500_000}}),
            "config.maxDocuments",
        ),
        (
            json!({"name": "x", "type": "site", "config": {"url": "https://a.example", "include": "/docs"}}),
            "config.include",
        ),
        (
            json!({"name": "x", "type": "site", "config": {"url": "https://a.example"}, "every": "1m"}),
            "every",
        ),
        (
            json!({"name": "x", "type": "site", "config": {"url": "https://a.example"}, "every": "often"}),
            "every",
        ),
        (
            json!({"name": "x", "type": "site", "config": {"url": "https://a.example"}, "deleteLimit": 101}),
            "deleteLimit",
        ),
        (json!({"name": "x", "type": "feed", "config": {"url": 1}}), "config.url"),
        (json!({"name": "x", "type": "s3", "config": {"bucket": "a/b"}}), "config.bucket"),
        (
            json!({"name": "x", "type": "s3", "config": {"bucket": "b", "endpoint": "http://10.0.0.1:9000"}}),
            "config.endpoint",
        ),
        (json!({"name": "x", "type": "folder", "config": {"path": "/etc"}}), "config.path"),
    ] {
        let (status, answer) = client.post("/sources", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {answer:#}");
        assert_eq!(answer["error"]["fields"][0]["path"], path, "{body}: {answer:#}");
    }
    let elsewhere = json!({"name": "x", "type": "feed", "config": {"url": "https://a.example"}, "collectionId": client.user()["id"]});
    assert_eq!(client.post("/sources", &elsewhere).await.0, StatusCode::NOT_FOUND);
}
