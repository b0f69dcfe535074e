//! Documents of the type VIDEO, from a site on loopback that answers in the shapes of the real one.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    ingestion::chunks,
    support::{
        client::id,
        in_both_modes,
        loopback::Seen,
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    the_captions_of_a_video_are_searched_and_every_passage_names_the_time_at_which_it_is_said,
    a_video_without_captions_for_us_fails_with_a_code_and_a_way_out
);

/// Seconds that each sentence of the talk takes.
const PACE: usize = 5;
const WATCH: &str = r#"<html><script>ytcfg.set({"INNERTUBE_API_KEY":"key-1","INNERTUBE_CLIENT_VERSION":"2.99.1"});</script></html>"#;

fn sentence(number: usize) -> String {
    format!("Sentence {number} of the talk says that loaf number{number}x rises in its own good time.")
}

/// A talk of so many sentences as timed text.
fn timed_text(sentences: usize) -> String {
    let events: Vec<Value> = (0..sentences)
        .map(|number| {
            json!({
                "tStartMs": number * PACE * 1000, "dDurationMs": PACE * 1000,
                "segs": [{"utf8": sentence(number)}],
            })
        })
        .collect();
    json!({"wireMagic": "pb3", "pens": [{}], "events": events}).to_string()
}

fn track(id: &str, language: &str, kind: Option<&str>) -> Value {
    let address = format!("/api/timedtext?v={id}&lang={language}&kind={}", kind.unwrap_or_default());
    json!({"baseUrl": address, "languageCode": language, "kind": kind, "name": {"simpleText": language}})
}

/// The id that a player asks for.
fn asked_for(seen: &Seen) -> String {
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    body["videoId"].as_str().expect("an id").to_owned()
}

/// Gives the server the pages of a video site whose players are answered by `player`.
fn video_site(web: &Web, player: impl Fn(&str) -> Value + Send + Sync + 'static) {
    web.serve("/watch", "text/html; charset=utf-8", WATCH);
    web.answer_with("/youtubei/v1/player", move |seen| {
        let answer = player(&asked_for(seen));
        match answer.as_u64().and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok()) {
            Some(status) => status.into_response(),
            None => answer.to_string().into_response(),
        }
    });
}

fn playable(id: &str, tracks: &Value) -> Value {
    json!({
        "playabilityStatus": {"status": "OK"},
        "captions": {"playerCaptionsTracklistRenderer": {"captionTracks": tracks}},
        "videoDetails": {"videoId": id, "title": "How bread rises", "lengthSeconds": "754"},
    })
}

/// Settings that make `web` the video site.
fn origin(web: &Web) -> String {
    web.url("").trim_end_matches('/').to_owned()
}

/// The numbers of the sentences that are told in a text.
fn numbers(text: &str) -> Vec<usize> {
    let after = text.split("number").skip(1);
    after.filter_map(|rest| rest.split_once('x')?.0.parse().ok()).collect()
}

async fn the_captions_of_a_video_are_searched_and_every_passage_names_the_time_at_which_it_is_said(
    mode: Mode,
) {
    let web = Web::start().await;
    video_site(&web, |id| {
        playable(id, &json!([track(id, "en", Some("asr")), track(id, "en", None), track(id, "de", None)]))
    });
    web.answer_with("/api/timedtext", |seen: &Seen| -> Response {
        let text =
            if seen.target.contains("lang=en&kind=&fmt=json3") { timed_text(120) } else { String::new() };
        text.into_response()
    });
    let service = Service::in_mode(mode).env("LECTERN_VIDEO_SITE", &origin(&web)).start().await;
    let client = service.signed_up("ada@example.com").await;
    let body = json!({
        "name": "talk", "type": "VIDEO", "url": "https://youtu.be/abc-DEF_123?t=4",
        "metadata": {"language": "en"},
    });
    let video = client.ingest(&body).await;
    let source = &video["ingestion"]["source"];
    assert_eq!(source["title"], "How bread rises");
    assert_eq!(source["canonicalUrl"], format!("{}/watch?v=abc-DEF_123", origin(&web)));

    let passages = chunks(&client, id(&video)).await;
    assert!(passages.len() > 3, "{passages:#?}");
    let mut told = Vec::new();
    for passage in &passages {
        let numbers = numbers(passage["text"].as_str().expect("a text"));
        let (first, last) = (numbers[0], *numbers.last().expect("a sentence"));
        let second = |name: &str| passage["place"][name].as_f64().expect("seconds");
        // A passage may begin and end within a sentence whose number it does not hold.
        let at = |number: usize| f64::from(u32::try_from(number * PACE).expect("small"));
        assert!((at(first.saturating_sub(1))..=at(first)).contains(&second("start")), "{passage:#}");
        assert!((at(last + 1)..=at(last + 2)).contains(&second("end")), "{passage:#}");
        told.extend(numbers);
    }
    told.dedup();
    assert!((0..120).all(|number| told.contains(&number)), "no sentence is lost: {told:?}");

    let agent = client.create_agent(&json!({"name": "baker", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&video)).await;
    let (_, answer) = client.predict(id(&agent), "What does the talk say of loaf number77x?").await;
    assert!(answer["data"].as_str().expect("an answer").contains("number77x"), "{answer:#}");
}

async fn a_video_without_captions_for_us_fails_with_a_code_and_a_way_out(mode: Mode) {
    let web = Web::start().await;
    let refused =
        |status: &str, reason: &str| json!({"playabilityStatus": {"status": status, "reason": reason}});
    video_site(&web, move |id| match id {
        "disabled___" => playable(id, &json!([])),
        "gone_______" => refused("ERROR", "Video unavailable"),
        "for_adults_" => refused("LOGIN_REQUIRED", "Sign in to confirm your age"),
        "bot_check__" => refused("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot"),
        "too_many___" => json!(429),
        "members____" => refused("UNPLAYABLE", "Join this channel to get access to members-only content"),
        _ => playable(id, &json!([track(id, "en", None)])),
    });
    web.serve("/api/timedtext", "text/plain", "");
    let form = r#"<form action="https://consent.example.com/s"><input name="v" value="cb.1"></form>"#;
    web.serve("/watch?v=consent____", "text/html", form);
    let service = Service::in_mode(mode)
        .env("LECTERN_VIDEO_SITE", &origin(&web))
        .env("LECTERN_JOB_MAX_ATTEMPTS", "2")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let cases = [
        ("disabled___", "transcripts_disabled"),
        ("gone_______", "unavailable"),
        ("for_adults_", "age_restricted"),
        ("bot_check__", "blocked"),
        ("too_many___", "blocked"),
        ("members____", "unplayable"),
        ("wants_token", "po_token_required"),
        ("consent____", "consent_required"),
        ("malformed", "not_found"),
    ];
    let mut created = Vec::new();
    for (video, code) in cases {
        let url = web.url(&format!("/watch?v={video}"));
        let document = client.create_document(&json!({"name": video, "type": "VIDEO", "url": url})).await;
        created.push((id(&document).to_owned(), video, code));
    }
    for (document, video, code) in created {
        let document = client.wait_until_ingested(&document).await;
        let ingestion = &document["ingestion"];
        assert_eq!(
            (&ingestion["status"], &ingestion["error"]["code"]),
            (&json!("FAILED"), &json!(code)),
            "{video}"
        );
        let message = ingestion["error"]["message"].as_str().expect("a message");
        assert!(message.contains(".vtt") || message.contains("Check the address"), "{video}: {message}");
        let attempts = if code == "blocked" { 2 } else { 1 };
        assert_eq!(ingestion["attempts"], attempts, "{video}: {message}");
        assert_eq!(document["index"], Value::Null);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_proxy_and_player_are_used_for_the_video_site_and_for_nothing_else() {
    let proxy = Web::start().await;
    video_site(&proxy, |id| playable(id, &json!([track(id, "en", Some("asr"))])));
    proxy.serve("/api/timedtext", "application/json", timed_text(3));
    let web = Web::start().await;
    let notes = web.serve("/notes.txt", "text/plain", "Fetched without a detour.");
    // The site's name exists nowhere: only what knows the way to it can have answered.
    let service = Service::in_mode(Mode::Embedded)
        .env("LECTERN_VIDEO_SITE", "http://www.video.test")
        .env("LECTERN_VIDEO_CLIENT", "TVHTML5/7.1")
        .env("LECTERN_VIDEO_PROXY", &origin(&proxy).replace("http://", "http://me:hunter2pass@"))
        .env("LECTERN_LOG", "debug")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let url = "http://m.video.test/shorts/abc-DEF_123";
    client.ingest(&json!({"name": "talk", "type": "VIDEO", "url": url})).await;
    client.ingest(&json!({"name": "notes", "type": "TXT", "url": notes})).await;

    for path in ["/watch", "/youtubei/v1/player", "/api/timedtext"] {
        let requests = proxy.requests(path);
        assert_eq!(requests.len(), 1, "{path}");
        assert_eq!(requests[0].header("host"), Some("www.video.test"));
        assert_eq!(requests[0].header("proxy-authorization"), Some("Basic bWU6aHVudGVyMnBhc3M="));
    }
    let player: Value = serde_json::from_slice(&proxy.requests("/youtubei/v1/player")[0].body).expect("JSON");
    let asked_as = &player["context"]["client"];
    assert_eq!((&asked_as["clientName"], &asked_as["clientVersion"]), (&json!("TVHTML5"), &json!("7.1")));
    assert_eq!((web.hits("/notes.txt"), proxy.hits("/notes.txt")), (1, 0));
    service.assert_no_secret_in_logs(&["hunter2pass", "bWU6aHVudGVyMnBhc3M=", &sentence(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_address_of_a_video_is_read_as_one() {
    let web = Web::start().await;
    video_site(&web, |id| playable(id, &json!([track(id, "de", Some("asr"))])));
    web.serve("/api/timedtext", "application/json", timed_text(3));
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_VIDEO_SITE", &origin(&web)).start().await;
    let client = service.signed_up("ada@example.com").await;
    let url = web.url("/watch?v=abc-DEF_123");
    let page = client.ingest(&json!({"name": "page", "type": "URL", "url": url})).await;
    let passages = chunks(&client, id(&page)).await;
    assert_eq!(numbers(passages[0]["text"].as_str().expect("a text")), [0, 1, 2]);
    assert_eq!((&passages[0]["place"]["start"], &passages[0]["place"]["end"]), (&json!(0.0), &json!(15.0)));
}
