//! Sites: their sitemaps, and the pages that links lead to.

use axum::{
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde_json::json;

use crate::{
    support::{
        client::{data, id},
        in_both_modes,
        service::Mode,
        web::Web,
    },
    sync::{
        counts, documents, found, run, run_path, settled, signed_up, site::TestSite, source, start_run,
        text_of, urls,
    },
};

in_both_modes!(
    a_large_site_is_kept_in_step_politely_and_asks_before_a_mass_deletion,
    pages_are_found_by_links_within_what_the_site_and_its_reader_allow,
    a_site_that_wants_no_robots_is_left_alone,
    what_somebody_deleted_stays_away_and_what_cannot_be_had_stays,
    a_dry_run_changes_nothing,
    links_of_a_page_that_has_not_changed_are_followed_all_or_read_anew,
    a_run_says_what_it_went_past_and_why,
    pages_that_answer_again_stay_although_they_may_go,
    a_site_with_more_pages_than_it_may_have_documents_says_so_and_is_followed
);

async fn a_large_site_is_kept_in_step_politely_and_asks_before_a_mass_deletion(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let pages = match mode {
        Mode::Embedded => 1_000,
        Mode::Postgres | Mode::Cluster => 400,
    };
    let site = TestSite::start(pages).await;
    let collection = client.create("/collections", &json!({"name": "Site"})).await;
    let made = json!({
        "name": "Site", "type": "site", "collectionId": collection["id"],
        "config": {"url": site.url("/"), "maxDocuments": 5_000},
    });
    let source = client.create("/sources", &made).await;

    let first = run(&client, &source).await;
    assert_eq!(first["state"], "succeeded", "{first:#}");
    // One page has a gigabyte, one is not there, and one leads to another one.
    assert_eq!(counts(&first), [pages, 0, 0, 0, 2], "{:?}", found(&client, &first).await);
    assert_eq!(client.read(&format!("/collections/{}", id(&collection))).await["documents"], pages);
    let first_bytes = site.sent();

    let second = run(&client, &source).await;
    assert_eq!(counts(&second), [0, 0, pages, 0, 2]);
    let second_bytes = site.sent() - first_bytes;
    assert!(second_bytes * 10 < first_bytes, "{second_bytes} bytes after {first_bytes}");

    site.change(&[1, 2, 3]);
    site.remove(4..=5);
    site.add(1);
    let third = run(&client, &source).await;
    assert_eq!((&third["state"], counts(&third)), (&json!("succeeded"), [1, 3, pages - 5, 2, 2]));
    let of = |outcome: &str| {
        let outcome = outcome.to_owned();
        move |(_, what, _): &&(String, String, String)| *what == outcome
    };
    let listed = found(&client, &third).await;
    assert!(
        listed.iter().any(|(item, outcome, _)| outcome == "changed" && *item == site.page(1)),
        "{listed:?}"
    );
    let gone = listed.iter().find(of("gone")).expect("one that is gone");
    assert!(gone.2.contains("does not list it"), "{gone:?}");

    let left = pages - 1;
    site.remove(6..=pages / 2 + 5);
    let fourth = run(&client, &source).await;
    assert_eq!((&fourth["state"], &fourth["gone"]), (&json!("waiting"), &json!(pages / 2)), "{fourth:#}");
    assert!(fourth["error"].as_str().expect("a question").contains("20 %"), "{fourth:#}");
    let path = format!("/collections/{}", id(&collection));
    assert_eq!(client.read(&path).await["documents"], left, "nothing is deleted before somebody says so");
    let (status, body) = client.post(&format!("/sources/{}/run", id(&source)), &json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("run_under_way")));

    data(client.post(&format!("{}/confirm", run_path(&fourth)), &json!({})).await);
    let fourth = settled(&client, &fourth).await;
    assert_eq!((&fourth["state"], &fourth["confirmedBy"]), (&json!("succeeded"), &client.user()["id"]));
    assert_eq!(client.read(&path).await["documents"], left - pages / 2);
    let items = client.read(&format!("{}/items?limit=200", run_path(&fourth))).await;
    let gone = items.as_array().expect("a list").iter().find(|item| item["outcome"] == "gone").expect("one");
    let receipt =
        client.read(&format!("/documents/{}/receipt", gone["documentId"].as_str().expect("an id"))).await;
    assert_eq!(receipt["deletedBy"], client.user()["id"]);
    assert!(site.asked_for("/robots.txt") > 0 && site.asked_for("/private/secret") == 0);
}

/// A page with these links.
pub(super) fn html(title: &str, links: &[&str]) -> String {
    let links: Vec<_> = links.iter().map(|link| format!("<a href='{link}'>to {link}</a>")).collect();
    let links = links.concat();
    format!("<html><head><title>{title}</title></head><body><p>Words of {title}.</p>{links}</body></html>")
}

async fn pages_are_found_by_links_within_what_the_site_and_its_reader_allow(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    web.serve("/robots.txt", "text/plain", "User-agent: *\nDisallow: /private\n");
    let other = Web::start().await;
    let elsewhere = other.serve("/elsewhere", "text/html", html("Elsewhere", &[]));
    let links = [
        "/docs/one",
        "/private/secret",
        "/blog/post",
        &elsewhere,
        "/docs/old",
        "/docs/hidden",
        "/docs/calendar?day=1",
        "/docs/report.pdf?x=1",
        "/docs/picture.png",
        "/docs/missing",
        "mailto:me@example.com",
    ];
    let start = web.serve("/docs/", "text/html", html("Start", &links));
    web.serve(
        "/docs/one",
        "text/html; charset=windows-1252",
        b"<title>One</title><p>Caf\xe9.</p><a href=two#part>2</a>".to_vec(),
    );
    let alias = format!("<link rel=canonical href='{}'>", web.url("/docs/two"));
    web.serve(
        "/docs/two",
        "text/html",
        format!("{}{alias}", html("Two", &["/docs/two?from=nav", "/docs/one"])),
    );
    web.redirect("/docs/old", "/docs/two");
    web.serve(
        "/docs/hidden",
        "text/html",
        html("<meta name=robots content=noindex>Hidden", &["/docs/behind"])
            .replace("<title>", "<meta name=robots content=noindex><title>"),
    );
    web.serve("/docs/behind", "text/html", html("Behind", &[]));
    web.serve("/blog/post", "text/html", html("Post", &[]));
    web.serve("/private/secret", "text/html", html("Secret", &[]));
    web.serve(
        "/docs/report.pdf",
        "application/pdf",
        crate::support::pdf::pdf_with_pages(&["A report of few words."]),
    );
    // A calendar without end: each day leads to the next one.
    web.answer_with("/docs/calendar", |seen| {
        let day: u32 = seen.target.rsplit('=').next().and_then(|day| day.parse().ok()).unwrap_or_default();
        let page = format!(
            "<title>Day {day}</title><p>Nothing on day {day}.</p><a href='/docs/calendar?day={}'>next</a>",
            day + 1
        );
        ([(header::CONTENT_TYPE, "text/html")], page).into_response()
    });
    let config = json!({"url": start, "include": ["/docs/*"], "exclude": ["*/behind"], "maxDepth": 4});
    let site = source(&client, "site", config).await;
    let first = run(&client, &site).await;
    assert_eq!(first["state"], "succeeded", "{first:#}");
    let expected: Vec<String> = [
        "/docs/",
        "/docs/calendar?day=1",
        "/docs/calendar?day=2",
        "/docs/calendar?day=3",
        "/docs/calendar?day=4",
        "/docs/one",
        "/docs/report.pdf?x=1",
        "/docs/two",
    ]
    .iter()
    .map(|path| web.url(path))
    .collect();
    assert_eq!(urls(&client).await, expected, "{:?}", found(&client, &first).await);
    assert_eq!(other.hits("/elsewhere"), 0, "nothing leads to another site");
    assert_eq!(
        (web.hits("/private/secret"), web.hits("/docs/behind"), web.hits("/docs/picture.png")),
        (0, 0, 0)
    );

    let all = documents(&client).await;
    let called =
        |name: &str| all.iter().find(|document| document["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!((&called("One")["type"], &called("report.pdf")["type"]), (&json!("URL"), &json!("PDF")));
    assert!(text_of(&client, called("One")).await.contains("Café"), "in the encoding that the server names");
    assert!(text_of(&client, called("report.pdf")).await.contains("few words"));
    let answer = client.create("/search", &json!({"query": "a report of few words"})).await;
    assert_eq!(answer[0]["documentId"], called("report.pdf")["id"], "{answer:#}");

    // What nothing leads to any more is still there; what the server has no more is gone.
    web.serve("/docs/", "text/html", html("Start", &["/docs/one"]));
    web.status("/docs/report.pdf", 410);
    let second = run(&client, &site).await;
    assert_eq!(
        (&second["state"], counts(&second)),
        (&json!("succeeded"), [0, 1, 6, 1, 0]),
        "{:?}",
        found(&client, &second).await
    );
    assert!(!urls(&client).await.contains(&web.url("/docs/report.pdf?x=1")));
}

async fn links_of_a_page_that_has_not_changed_are_followed_all_or_read_anew(mode: Mode) {
    // Together, they are more than what is remembered of a page.
    const LINKS: usize = 12;
    const LONG: usize = 1_500;
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |path: &str, content_type: &'static str, tag: &'static str, body: String| {
        web.answer_with(path, move |seen| {
            if seen.header("if-none-match") == Some(tag) {
                return StatusCode::NOT_MODIFIED.into_response();
            }
            ([(header::CONTENT_TYPE, content_type), (header::ETAG, tag)], body.clone()).into_response()
        })
    };
    let paths: Vec<String> = (0..LINKS).map(|at| format!("/page-{at}-{}", "x".repeat(LONG))).collect();
    for path in &paths {
        serve(path, "text/html", "\"1\"", html("A page", &[]));
    }
    let [.., last] = paths.as_slice() else { panic!("pages") };
    let links: Vec<&str> = paths.iter().map(String::as_str).chain(["/notes.txt"]).collect();
    let start = serve("/", "text/html", "\"1\"", html("Start", &links));
    serve("/notes.txt", "text/plain", "\"1\"", "Notes of few words.".to_owned());
    let site = source(&client, "site", json!({"url": start, "discover": "crawl"})).await;
    let all = i64::try_from(LINKS + 2).expect("a few");
    let first = run(&client, &site).await;
    assert_eq!(counts(&first), [all, 0, 0, 0, 0], "{:?}", found(&client, &first).await);

    // What the last one of its links leads to is found, although the first page is as it was.
    serve(last, "text/html", "\"2\"", html("A page", &["/new"]));
    serve("/new", "text/html", "\"1\"", html("New", &[]));
    let second = run(&client, &site).await;
    assert_eq!(
        (&second["state"], counts(&second)),
        (&json!("succeeded"), [1, 1, all - 1, 0, 0]),
        "{:?}",
        found(&client, &second).await
    );
    // Of what leads nowhere, or not far, that is known.
    let unasked =
        |path: &str| web.requests(path).iter().filter(|seen| seen.header("if-none-match").is_none()).count();
    assert_eq!(counts(&run(&client, &site).await), [0, 0, all + 1, 0, 0]);
    assert_eq!([unasked("/"), unasked("/new"), unasked("/notes.txt"), unasked(last)], [3, 1, 1, 1]);
}

async fn a_site_that_wants_no_robots_is_left_alone(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    web.serve("/robots.txt", "text/plain", "User-agent: lectern\nDisallow: /\n");
    web.serve("/sitemap.xml", "text/plain", web.url("/page"));
    let closed = source(&client, "site", json!({"url": web.url("/")})).await;
    let refused = run(&client, &closed).await;
    assert_eq!(refused["state"], "failed");
    assert!(refused["error"].as_str().expect("why").contains("robots.txt"), "{refused:#}");
    assert_eq!(web.hits("/page"), 0);
}

async fn what_somebody_deleted_stays_away_and_what_cannot_be_had_stays(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    for page in ["a", "b", "c"] {
        web.serve(
            &format!("/{page}"),
            "text/html",
            format!("<title>{page}</title><p>Page {page} as it is.</p>"),
        );
    }
    web.serve("/sitemap.xml", "text/plain", ["/a", "/b", "/c"].map(|page| web.url(page)).join("\n"));
    let source = source(&client, "site", json!({"url": web.url("/"), "discover": "sitemap"})).await;
    let first = run(&client, &source).await;
    assert_eq!(counts(&first), [3, 0, 0, 0, 0]);
    let all = documents(&client).await;
    let named =
        |name: &str| all.iter().find(|document| document["name"] == name).expect("it is there").clone();
    // A name that somebody gives stays when the content changes.
    data(client.patch(&format!("/documents/{}", id(&named("b"))), &json!({"name": "Bee"})).await);
    data(client.delete(&format!("/documents/{}", id(&named("a")))).await);
    web.serve("/b", "text/html", "<title>b</title><p>Page b is another one now.</p>");
    web.status("/c", 500);
    let second = run(&client, &source).await;
    assert_eq!(counts(&second), [0, 1, 0, 0, 1], "{:?}", found(&client, &second).await);
    assert_eq!((&first["deletedHere"], &second["deletedHere"]), (&json!(0), &json!(1)), "{second:#}");
    let bee = client.wait_until_ingested(id(&named("b"))).await;
    assert_eq!((&bee["name"], &bee["url"]), (&json!("Bee"), &json!(web.url("/b"))));
    assert!(text_of(&client, &bee).await.contains("another one now"));
    assert!(text_of(&client, &named("c")).await.contains("Page c as it is"));
    let (status, _) = client.get(&format!("/documents/{}", id(&named("a")))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    web.serve("/c", "text/html", "<title>c</title><p>Page c as it is.</p>");
    let full = settled(&client, &start_run(&client, &source, json!({"full": true})).await).await;
    assert_eq!(counts(&full), [1, 0, 2, 0, 0], "{:?}", found(&client, &full).await);
    assert_eq!(urls(&client).await.len(), 3);

    // A document of a source is its own master when the source is deleted.
    data(client.delete(&format!("/sources/{}", id(&source))).await);
    assert_eq!(urls(&client).await.len(), 3);
    let (status, _) = client.get(&format!("/sources/{}/runs", id(&source))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

async fn a_dry_run_changes_nothing(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let page = |text: &str| format!("<title>{text}</title><p>{text}.</p>");
    let list = |pages: &[&str]| pages.iter().map(|page| web.url(page)).collect::<Vec<_>>().join("\n");
    web.serve("/a", "text/html", page("a"));
    web.serve("/b", "text/html", page("b"));
    web.serve("/sitemap.xml", "text/plain", list(&["/a", "/b"]));
    let source = source(&client, "site", json!({"url": web.url("/")})).await;
    let dry = json!({"dryRun": true});
    let first = settled(&client, &start_run(&client, &source, dry.clone()).await).await;
    assert_eq!((&first["dryRun"], counts(&first)), (&json!(true), [2, 0, 0, 0, 0]));
    assert!(documents(&client).await.is_empty());
    run(&client, &source).await;
    web.serve("/b", "text/html", page("b, changed"));
    web.serve("/c", "text/html", page("c"));
    web.serve("/sitemap.xml", "text/plain", list(&["/b", "/c"]));
    for _ in 0..2 {
        let again = settled(&client, &start_run(&client, &source, dry.clone()).await).await;
        assert_eq!((&again["state"], counts(&again)), (&json!("succeeded"), [1, 1, 0, 1, 0]));
        let mut outcomes: Vec<_> =
            found(&client, &again).await.into_iter().map(|(_, outcome, _)| outcome).collect();
        outcomes.sort();
        assert_eq!(outcomes, ["added", "changed", "gone"]);
    }
    assert_eq!(urls(&client).await, [web.url("/a"), web.url("/b")]);
}

/// Serves a list of pages.
pub(super) fn serve_list(web: &Web, pages: &[&str]) {
    let pages: Vec<_> = pages.iter().map(|page| web.url(page)).collect();
    web.serve("/sitemap.xml", "text/plain", pages.join("\n"));
}

async fn a_run_says_what_it_went_past_and_why(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let (web, other) = (Web::start().await, Web::start().await);
    web.serve("/robots.txt", "text/plain", "User-agent: *\nDisallow: /private\n");
    web.serve("/a", "text/html", html("A", &[]));
    web.serve("/shy", "text/html", "<meta name=robots content=noindex><p>Words.</p>");
    web.redirect("/moved", &other.url("/elsewhere"));
    web.redirect("/round", "/and-round");
    web.redirect("/and-round", "/round");
    serve_list(&web, &["/a", "/private/b", "/shy", "/moved", "/round"]);
    let source = source(&client, "site", json!({"url": web.url("/")})).await;
    let ended = run(&client, &source).await;
    assert_eq!((counts(&ended), &ended["skipped"]), ([1, 0, 0, 0, 0], &json!(5)), "{ended:#}");
    let listed = found(&client, &ended).await;
    for (page, why) in [
        ("/private/b", "robots.txt"),
        ("/shy", "asks not to be kept"),
        ("/moved", "/elsewhere"),
        ("/round", "/and-round"),
        ("/and-round", "/round"),
    ] {
        let is_told = |(item, outcome, reason): &(String, String, String)| {
            *item == web.url(page) && outcome == "skipped" && reason.contains(why)
        };
        assert!(listed.iter().any(is_told), "{page}: {listed:?}");
    }
    assert_eq!(other.hits("/elsewhere"), 0);
}

async fn pages_that_answer_again_stay_although_they_may_go(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    for page in ["/a", "/b"] {
        web.serve(page, "text/html", html(page, &[]));
    }
    serve_list(&web, &["/a", "/b"]);
    let source = source(&client, "site", json!({"url": web.url("/")})).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let before = documents(&client).await;
    for page in ["/a", "/b"] {
        web.status(page, 404);
    }
    let asking = run(&client, &source).await;
    assert_eq!((&asking["state"], counts(&asking)), (&json!("waiting"), [0, 0, 0, 2, 0]), "{asking:#}");
    web.serve("/a", "text/html", html("/a", &[]));
    data(client.post(&format!("{}/confirm", run_path(&asking)), &json!({})).await);
    let ended = settled(&client, &asking).await;
    assert_eq!((&ended["state"], counts(&ended)), (&json!("succeeded"), [0, 0, 1, 1, 0]), "{ended:#}");
    let told = ended["warning"].as_str().expect("what came back");
    assert!(told.starts_with("1 of the 2 documents"), "{told}");
    let after = documents(&client).await;
    let [kept] = after.as_slice() else { panic!("one document: {after:#?}") };
    assert_eq!(kept["url"], web.url("/a"));
    assert!(before.iter().any(|document| document["id"] == kept["id"]), "it is the same document");
}

async fn a_site_with_more_pages_than_it_may_have_documents_says_so_and_is_followed(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    for page in ["/a", "/b", "/new"] {
        web.serve(page, "text/html", html(page, &[]));
    }
    serve_list(&web, &["/a", "/b"]);
    let config = json!({"url": web.url("/"), "maxDocuments": 2});
    let body = json!({"name": "Site", "type": "site", "config": config, "deleteLimit": 50});
    let source = client.create("/sources", &body).await;
    let first = run(&client, &source).await;
    assert_eq!((counts(&first), &first["warning"]), ([2, 0, 0, 0, 0], &json!(null)), "{first:#}");
    let limit = json!("The limit of 2 documents is reached: 1 left out.");
    for (listed, expected, warning) in [
        (["/new", "/a", "/b"].as_slice(), [0, 0, 2, 0, 0], &limit),
        (["/new", "/b"].as_slice(), [0, 0, 1, 1, 0], &limit),
        (["/new", "/b"].as_slice(), [1, 0, 1, 0, 0], &json!(null)),
    ] {
        assert_eq!(web.hits("/new"), 0, "there is no room for it");
        serve_list(&web, listed);
        let ended = run(&client, &source).await;
        assert_eq!((counts(&ended), &ended["warning"]), (expected, warning), "{listed:?}: {ended:#}");
    }
    assert_eq!(urls(&client).await, [web.url("/b"), web.url("/new")]);
}
