//! Whole runs against a site on loopback that answers in the shapes of the real one.

mod site;

use std::sync::atomic::{AtomicU64, Ordering};

use lectern_shared::egress::{EgressPolicy, SiteScope, parse_allow_list};
use serde_json::{Value, json};

use self::site::{FakeSite, SiteReply};
use super::*;

const ID: &str = "abc-DEF_123";
const WATCH: &str = r#"<html><script>ytcfg.set({"INNERTUBE_API_KEY":"key-1","INNERTUBE_CLIENT_VERSION":"2.99.1",
    "VISITOR_DATA":"x","client":{"visitorData":"Cgt%3D"}});</script></html>"#;
const JSON3: &str =
    r#"{"wireMagic":"pb3","events":[{"tStartMs":0,"dDurationMs":900,"segs":[{"utf8":"Hello"}]}]}"#;
const XML: &str =
    r#"<?xml version="1.0" encoding="utf-8" ?><transcript><text start="0" dur="1">Hello</text></transcript>"#;

fn playable(tracks: &Value) -> Value {
    json!({
        "playabilityStatus": {"status": "OK", "playableInEmbed": true},
        "captions": {"playerCaptionsTracklistRenderer": {
            "captionTracks": tracks, "audioTracks": [{"captionTrackIndices": [0]}], "defaultAudioTrackIndex": 0,
        }},
        "videoDetails": {"videoId": ID, "title": "How bread\nrises", "lengthSeconds": "754", "isLive": false},
    })
}

fn track(language: &str, kind: Option<&str>) -> Value {
    let kind_in_address = kind.unwrap_or_default();
    json!({
        "baseUrl": format!("/api/timedtext?v={ID}&signature=A%2CB&lang={language}&kind={kind_in_address}&fmt=srv3"),
        "name": {"runs": [{"text": language}]}, "vssId": ".x", "languageCode": language, "kind": kind,
        "isTranslatable": true,
    })
}

fn refused(status: &str, reason: &str) -> SiteReply {
    SiteReply::json(
        &json!({"playabilityStatus": {"status": status, "reason": reason}, "responseContext": {}}),
    )
}

/// Which player asks.
fn player_of(request: &str) -> &str {
    let (_, rest) = request.split_once("\"clientName\":\"").unwrap();
    rest.split('"').next().unwrap()
}

/// A site with an ordinary watch page, players that are answered by `player`, and timed text by `text`.
async fn site_with(
    player: impl Fn(&str) -> SiteReply + Send + Sync + 'static,
    text: impl Fn(&str) -> SiteReply + Send + Sync + 'static,
) -> FakeSite {
    FakeSite::start(move |request| {
        let line = request.lines().next().unwrap_or_default();
        if line.starts_with("GET /watch?v=abc-DEF_123 ") {
            SiteReply::html(WATCH).header("set-cookie: YSC=run-cookie; Domain=.example.com; Secure; HttpOnly")
        } else if line.starts_with("POST /youtubei/v1/player?") {
            player(request)
        } else if line.starts_with("GET /api/timedtext?") {
            text(line)
        } else {
            SiteReply::status(404)
        }
    })
    .await
}

async fn get(
    site: &FakeSite,
    settings: VideoSettings,
    wanted: Option<&str>,
) -> Result<VideoCaptions, VideoError> {
    get_id(site, settings, ID, wanted).await
}

async fn get_id(
    _site: &FakeSite,
    settings: VideoSettings,
    id: &str,
    wanted: Option<&str>,
) -> Result<VideoCaptions, VideoError> {
    let egress = Egress::new(EgressPolicy {
        allow: parse_allow_list("127.0.0.1").unwrap(),
        site: SiteScope::of(&settings.site),
        proxy: settings.proxy.clone(),
        ..EgressPolicy::default()
    })
    .unwrap();
    let bytes = AtomicU64::new(0);
    let run = CaptionRun {
        settings: &settings,
        egress: &egress,
        within: Duration::from_mins(1),
        max_bytes: 1 << 20,
        on_bytes: &|count| bytes.store(count, Ordering::Relaxed),
    };
    let captions = run.captions(id, wanted).await;
    if let Ok(captions) = &captions {
        assert!(bytes.load(Ordering::Relaxed) > captions.body.len() as u64, "progress was told");
    }
    captions
}

/// What a video ends with when every player gets this answer.
async fn ends_with(answer: impl Fn() -> SiteReply + Send + Sync + 'static) -> (VideoError, FakeSite) {
    let site = site_with(move |_| answer(), |_| SiteReply::text(JSON3)).await;
    let error = get(&site, site.settings(), None).await.unwrap_err();
    (error, site)
}

#[tokio::test]
async fn captions_come_with_what_is_known_of_the_video() {
    let tracks = json!([track("en", Some("asr")), track("en", None), track("de", None)]);
    let site = site_with(move |_| SiteReply::json(&playable(&tracks)), |_| SiteReply::text(JSON3)).await;
    let captions = get(&site, site.settings(), None).await.unwrap();
    assert_eq!(captions.body, JSON3);
    assert_eq!(captions.title.as_deref(), Some("How bread rises"));
    assert_eq!(captions.canonical_url, format!("{}/watch?v={ID}", site.base()));
    assert_eq!((captions.language.as_str(), captions.automatic), ("en", false));
    assert_eq!(captions.duration, Some(Duration::from_secs(754)));
    assert!(!format!("{captions:?}").contains("Hello"));

    let requests = site.requests();
    assert_eq!(requests.len(), 3, "one request for each step");
    let player = &requests[1];
    assert!(player.starts_with("POST /youtubei/v1/player?prettyPrint=false&key=key-1 "), "{player}");
    for part in [
        "x-goog-visitor-id: Cgt%3D\r\n",
        "x-youtube-client-name: 3\r\n",
        "user-agent: com.google.android.youtube/20.10.38 ",
        "cookie: YSC=run-cookie\r\n",
        "\"videoId\":\"abc-DEF_123\"",
        "\"clientVersion\":\"20.10.38\"",
    ] {
        assert!(player.contains(part), "{part} in {player}");
    }
    let text = requests[2].lines().next().unwrap();
    assert!(text.contains("signature=A%2CB&lang=en&kind=&fmt=json3 "), "{text}");
}

#[tokio::test]
async fn the_wanted_language_decides_and_a_machine_may_have_written_it() {
    let tracks = json!([track("en", None), track("de", Some("asr"))]);
    let site = site_with(move |_| SiteReply::json(&playable(&tracks)), |_| SiteReply::text(JSON3)).await;
    let german = get(&site, site.settings(), Some("de-AT")).await.unwrap();
    assert_eq!((german.language.as_str(), german.automatic), ("de", true));
    let english = get(&site, site.settings(), Some("en")).await.unwrap();
    assert_eq!((english.language.as_str(), english.automatic), ("en", false));
    let own = get(&site, site.settings(), Some("fr")).await.unwrap();
    assert_eq!(own.language, "de", "what is spoken, as a machine heard it");
}

#[tokio::test]
async fn timed_text_that_is_no_json_is_taken_as_xml() {
    for without in
        [SiteReply::text("nonsense"), SiteReply::text("{\"wireMagic\":\"pb3\"}"), SiteReply::status(404)]
    {
        let site = site_with(
            |_| SiteReply::json(&playable(&json!([track("en", None)]))),
            move |line| if line.contains("fmt=json3") { without.clone() } else { SiteReply::text(XML) },
        )
        .await;
        assert_eq!(get(&site, site.settings(), None).await.unwrap().body, XML);
        assert!(!site.requests().last().unwrap().contains("fmt="), "the site's own format is asked for");
    }
}

#[tokio::test]
async fn a_player_that_is_refused_is_followed_by_the_next() {
    let site = site_with(
        |request| match player_of(request) {
            "ANDROID" => SiteReply::status(400),
            "IOS" => refused("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot"),
            _ => SiteReply::json(&playable(&json!([track("en", None)]))),
        },
        |_| SiteReply::text(JSON3),
    )
    .await;
    get(&site, site.settings(), None).await.unwrap();
    let players: Vec<_> = site.requests()[1..4].iter().map(|request| player_of(request).to_owned()).collect();
    assert_eq!(players, ["ANDROID", "IOS", "WEB"]);
    assert!(site.requests()[3].contains("\"clientVersion\":\"2.99.1\""), "the version that the page names");
}

#[tokio::test]
async fn an_operators_player_is_the_first_that_asks() {
    let tracks = json!([track("en", None)]);
    let site = site_with(move |_| SiteReply::json(&playable(&tracks)), |_| SiteReply::text(JSON3)).await;
    for (name, version) in [("TVHTML5", "7.1"), ("WEB", "2.5")] {
        let client = Some((name.to_owned(), version.to_owned()));
        get(&site, VideoSettings { client, ..site.settings() }, None).await.unwrap();
        let requests = site.requests();
        let asked = &requests[requests.len() - 2];
        assert_eq!(player_of(asked), name);
        assert!(asked.contains(&format!("\"clientVersion\":\"{version}\"")), "{asked}");
    }
}

#[tokio::test]
async fn each_refusal_has_its_code_and_says_what_can_be_done() {
    for (reply, code, retryable) in [
        (SiteReply::json(&playable(&json!([]))), "transcripts_disabled", false),
        (refused("ERROR", "This video is unavailable"), "unavailable", false),
        (refused("LOGIN_REQUIRED", "This is a private video"), "unavailable", false),
        (refused("LOGIN_REQUIRED", "Sign in to confirm your age"), "age_restricted", false),
        (refused("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot"), "blocked", true),
        (
            refused("UNPLAYABLE", "The uploader has not made this video available in your country"),
            "unplayable",
            false,
        ),
        (SiteReply::status(429), "blocked", true),
        (SiteReply::status(503), "unreachable", true),
        (SiteReply::status(400), "unplayable", false),
        (SiteReply::text("<html>"), "bad_response", true),
    ] {
        let shown = format!("{reply:?}");
        let (error, _site) = ends_with(move || reply.clone()).await;
        assert_eq!((error.code(), error.is_retryable()), (code, retryable), "{shown}");
        let message = error.to_string();
        assert!(message.ends_with('.') && message.len() > 20, "{message}");
        let can_be_given = message.contains("Check the address") || message.contains(".vtt");
        assert!(can_be_given || code == "unreachable", "{message}");
    }
}

#[tokio::test]
async fn a_player_that_finds_no_captions_tells_more_than_one_that_is_too_old() {
    let site = site_with(
        |request| match player_of(request) {
            "IOS" => SiteReply::json(&playable(&json!([]))),
            _ => refused("UNPLAYABLE", "This content is not available on this app."),
        },
        |_| SiteReply::text(JSON3),
    )
    .await;
    assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::TranscriptsDisabled);
}

#[tokio::test]
async fn too_many_requests_end_the_run_at_once() {
    let (error, site) = ends_with(|| SiteReply::status(429)).await;
    assert_eq!((error, site.requests().len()), (VideoError::Blocked, 2));
    let site = FakeSite::start(|_| SiteReply::status(429)).await;
    assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::Blocked);
    assert_eq!(site.requests().len(), 1);
}

#[tokio::test]
async fn an_empty_text_or_an_address_that_wants_a_token_is_tried_with_every_player() {
    let mut wants_token = track("en", None);
    wants_token["baseUrl"] = json!(format!("/api/timedtext?v={ID}&lang=en&exp=xpe"));
    for tracks in [json!([track("en", None)]), json!([wants_token])] {
        let site = site_with(move |_| SiteReply::json(&playable(&tracks)), |_| SiteReply::text("")).await;
        assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::PoTokenRequired);
        let asked = site.requests().iter().filter(|request| request.starts_with("POST")).count();
        assert_eq!(asked, 3);
    }
}

#[tokio::test]
async fn captchas_and_redirects_to_another_site_are_a_block() {
    let captcha = r#"<html><form><div class="g-recaptcha" data-sitekey="x"></div></form></html>"#;
    let pages = [
        SiteReply::html(captcha),
        SiteReply::redirect("http://127.0.0.1:1/sorry/index?continue=x"),
        SiteReply::status(403),
    ];
    for page in pages {
        let site = FakeSite::start(move |_| page.clone()).await;
        assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::Blocked);
    }
    let tracks = json!([track("en", None)]);
    let site =
        site_with(move |_| SiteReply::json(&playable(&tracks)), move |_| SiteReply::html(captcha)).await;
    assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::Blocked);
}

#[tokio::test]
async fn consent_is_given_once_by_the_value_of_its_form() {
    let form = r#"<html><form action="https://consent.example.com/s" method="POST">
        <input type="hidden" name="v" value="cb.20250312-14-p0.en+FX+700"></form></html>"#;
    let tracks = json!([track("en", None)]);
    let site = FakeSite::start(move |request| match request {
        request if request.starts_with("POST") => SiteReply::json(&playable(&tracks)),
        request if request.starts_with("GET /api/") => SiteReply::text(JSON3),
        request if request.contains("CONSENT=YES+cb.20250312-14-p0.en+FX+700") => SiteReply::html(WATCH),
        _ => SiteReply::html(form),
    })
    .await;
    get(&site, site.settings(), None).await.unwrap();
    let requests = site.requests();
    assert_eq!(requests.len(), 4);
    assert!(!requests[0].contains("cookie:") && requests[1].contains("SOCS=CAI"), "{requests:#?}");

    for page in [form, r#"<form action="https://consent.example.com/s"></form>"#] {
        let site = FakeSite::start(move |_| SiteReply::html(page)).await;
        assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::ConsentRequired);
        assert!(site.requests().len() <= 2, "asked for once more at most");
    }
}

#[tokio::test]
async fn a_track_that_leads_to_another_site_is_not_fetched() {
    let elsewhere = FakeSite::start(|_| SiteReply::text(JSON3)).await;
    let mut foreign = track("en", None);
    foreign["baseUrl"] = json!(format!("{}/api/timedtext?lang=en", elsewhere.base()));
    let tracks = json!([foreign]);
    let site = site_with(move |_| SiteReply::json(&playable(&tracks)), |_| SiteReply::text(JSON3)).await;
    assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::NotUnderstood);
    let away = format!("{}/x", elsewhere.base());
    let tracks = json!([track("en", None)]);
    let site =
        site_with(move |_| SiteReply::json(&playable(&tracks)), move |_| SiteReply::redirect(&away)).await;
    assert_eq!(get(&site, site.settings(), None).await.unwrap_err(), VideoError::Blocked);
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn what_is_no_id_is_not_asked_for() {
    let site = FakeSite::start(|_| SiteReply::status(500)).await;
    for id in ["", "short", "abc-DEF_1234", "../../etc/p"] {
        let error = get_id(&site, site.settings(), id, None).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), ("not_found", false), "{id}");
    }
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let tracks = json!([track("en", None)]);
    let huge = SiteReply::text(&format!("{{\"events\":[{}0]}}", "0,".repeat(600_000)));
    let site = site_with(move |_| SiteReply::json(&playable(&tracks)), move |_| huge.clone()).await;
    assert_eq!(get(&site, site.settings(), None).await.unwrap_err().code(), "too_large");
}

#[tokio::test]
async fn everything_goes_through_the_operators_proxy() {
    // The proxy answers in the site's place: the site's name exists nowhere else.
    let tracks = json!([track("en", None)]);
    let proxy = FakeSite::start(move |request| {
        let line = request.lines().next().unwrap_or_default();
        if line.contains("http://www.video.test/watch?") {
            SiteReply::html(WATCH)
        } else if line.contains("http://www.video.test/youtubei/") {
            SiteReply::json(&playable(&tracks))
        } else if line.contains("http://www.video.test/api/timedtext?") {
            SiteReply::text(JSON3)
        } else {
            SiteReply::status(502)
        }
    })
    .await;
    let settings = VideoSettings {
        site: "http://www.video.test".parse().unwrap(),
        client: None,
        proxy: Some(proxy.base().replace("http://", "http://me:hunter2@").into()),
    };
    assert_eq!(get(&proxy, settings, None).await.unwrap().body, JSON3);
    let requests = proxy.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests.iter().all(|request| request.contains("proxy-authorization: Basic bWU6aHVudGVyMg==\r\n"))
    );
}
