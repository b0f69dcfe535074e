//! What is secret about a source: kept, sent to nobody else, and not told.

use axum::{http::StatusCode, response::IntoResponse};
use serde_json::json;

use super::{counts, found, run, signed_up, source};
use crate::support::{
    client::{data, id},
    in_both_modes,
    loopback::Seen,
    service::Mode,
    web::Web,
};

in_both_modes!(secrets_of_sources_are_kept_and_go_nowhere_else, an_address_is_told_without_the_key_in_it);

async fn secrets_of_sources_are_kept_and_go_nowhere_else(mode: Mode) {
    let (service, client) = signed_up(mode).await;
    let (web, other) = (Web::start().await, Web::start().await);
    let answer = |seen: &Seen| match seen.header("authorization") {
        Some("Bearer open-sesame-open-sesame") => "<title>In</title><p>You are in.</p>".into_response(),
        _ => StatusCode::UNAUTHORIZED.into_response(),
    };
    web.answer_with("/in", answer);
    web.redirect("/out", &other.url("/in"));
    other.answer_with("/in", answer);
    web.serve("/sitemap.xml", "text/plain", [web.url("/in"), web.url("/out")].join("\n"));
    let authorization = json!({"type": "bearer", "token": "open-sesame-open-sesame"});
    let source = source(&client, "site", json!({"url": web.url("/"), "authorization": authorization})).await;
    assert_eq!(source["hasSecret"], true);
    assert!(!source.to_string().contains("sesame"), "{source:#}");
    assert_eq!(counts(&run(&client, &source).await), [1, 0, 0, 0, 0]);
    assert!(other.requests("/in").is_empty(), "nothing leads to another host");

    let path = format!("/sources/{}", id(&source));
    let (status, body) = client.patch(&path, &json!({"config": {"url": other.url("/")}})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    assert_eq!(body["error"]["fields"][0]["path"], "config.authorization");
    let kept =
        data(client.patch(&path, &json!({"config": {"url": web.url("/in"), "discover": "crawl"}})).await);
    assert_eq!((&kept["hasSecret"], &kept["config"]["discover"]), (&json!(true), &json!("crawl")));
    assert_eq!(counts(&run(&client, &source).await), [0, 0, 1, 0, 0]);
    let elsewhere = json!({"config": {"url": other.url("/in"), "discover": "crawl", "authorization": null}});
    assert_eq!(data(client.patch(&path, &elsewhere).await)["hasSecret"], false);
    let refused = run(&client, &source).await;
    assert_eq!(refused["state"], "failed", "{refused:#}");
    service.assert_no_secret_in_logs(&["open-sesame-open-sesame"]);
}

async fn an_address_is_told_without_the_key_in_it(mode: Mode) {
    const KEY: &str = "open-sesame-open-sesame";
    let (service, client) = signed_up(mode).await;
    let web = Web::start().await;
    web.status("/feed.xml", 500);
    let keyed = |path: &str| format!("{}?key={KEY}", web.url(path));
    let feed = source(&client, "feed", json!({"url": keyed("/feed.xml")})).await;
    let failed = run(&client, &feed).await;
    let why = failed["error"].as_str().expect("why");
    assert!(why.contains(&web.url("/feed.xml?key=…")) && !why.contains(KEY), "{failed:#}");

    web.serve("/a", "text/html", "<title>a</title><p>Page a.</p>");
    web.serve("/sitemap.xml", "text/plain", web.url("/a"));
    let site = source(&client, "site", json!({"url": web.url("/")})).await;
    assert_eq!(counts(&run(&client, &site).await), [1, 0, 0, 0, 0]);
    web.redirect("/a", &keyed("/b"));
    let second = run(&client, &site).await;
    let told = found(&client, &second).await;
    let place = web.url("/b?key=…");
    assert!(told.iter().any(|(_, _, reason)| reason.contains(&place)), "{told:?}");
    assert!(told.iter().all(|(_, _, reason)| !reason.contains(KEY)), "{told:?}");
    service.assert_no_secret_in_logs(&[KEY]);
}
