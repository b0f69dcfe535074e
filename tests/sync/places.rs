//! What is found at each kind of place, and what becomes of it.

use std::{fs, path::Path};

use axum::{
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde_json::{Value, json};

use super::{
    counts, documents, found, run, run_path, settled, setup, signed_up, site::TestSite, source, start_run,
    text_of, urls,
};
use crate::support::{
    client::{data, id},
    command::{doctor, finding},
    in_both_modes,
    s3::{BUCKET, KEY_ID, S3Server, SECRET},
    service::Mode,
    web::Web,
};

in_both_modes!(
    a_large_site_is_kept_in_step_politely_and_asks_before_a_mass_deletion,
    pages_are_found_by_links_within_what_the_site_and_its_reader_allow,
    a_site_that_wants_no_robots_is_left_alone,
    what_somebody_deleted_stays_away_and_what_cannot_be_had_stays,
    a_dry_run_changes_nothing,
    links_of_a_page_that_has_not_changed_are_followed_all_or_read_anew,
    a_feed_is_read_by_its_entries,
    pages_of_a_feed_are_read_anew_when_somebody_says_so,
    a_bucket_is_kept_in_step,
    a_key_that_cannot_be_read_is_named,
    a_folder_is_kept_in_step_if_the_operator_has_opened_it,
    a_folder_that_is_not_there_is_named_and_read_once_it_is
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
fn html(title: &str, links: &[&str]) -> String {
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
    assert_eq!(counts(&run(&client, &source).await), [3, 0, 0, 0, 0]);
    let all = documents(&client).await;
    let named =
        |name: &str| all.iter().find(|document| document["name"] == name).expect("it is there").clone();
    // A name that somebody gives stays when the content changes.
    data(client.patch(&format!("/documents/{}", id(&named("b"))), &json!({"name": "Bee"})).await);
    data(client.delete(&format!("/documents/{}", id(&named("a")))).await);
    web.serve("/b", "text/html", "<title>b</title><p>Page b is another one now.</p>");
    web.status("/c", 500);
    let second = run(&client, &source).await;
    assert_eq!(counts(&second), [0, 1, 1, 0, 1], "{:?}", found(&client, &second).await);
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

async fn a_feed_is_read_by_its_entries(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let feed = |entries: &[(&str, &str)]| {
        let items: Vec<_> = entries
            .iter()
            .map(|(name, text)| {
                let link = web.url(&format!("/{name}"));
                format!("<item><title>News of {name}</title><link>{link}</link><description>&lt;p&gt;{text}&lt;/p&gt;</description></item>")
            })
            .collect();
        format!("<rss version='2.0'><channel><title>News</title>{}</channel></rss>", items.concat())
    };
    let serve_feed = |entries: &[(&str, &str)], tag: &'static str| {
        let body = feed(entries);
        web.answer_with("/feed.xml", move |seen| {
            if seen.header("if-none-match") == Some(tag) {
                return StatusCode::NOT_MODIFIED.into_response();
            }
            ([(header::CONTENT_TYPE, "application/rss+xml"), (header::ETAG, tag)], body.clone())
                .into_response()
        });
    };
    for name in ["one", "two", "three"] {
        web.serve(
            &format!("/{name}"),
            "text/html",
            format!("<title>{name}</title><p>The whole story of {name}.</p>"),
        );
    }
    serve_feed(&[("one", "Short one"), ("two", "Short two")], "\"1\"");
    let pages = source(&client, "feed", json!({"url": web.url("/feed.xml")})).await;
    assert_eq!(counts(&run(&client, &pages).await), [2, 0, 0, 0, 0]);
    let all = documents(&client).await;
    let one = all.iter().find(|document| document["name"] == "News of one").expect("it is there");
    assert!(text_of(&client, one).await.contains("The whole story of one"));
    let second = run(&client, &pages).await;
    assert_eq!((counts(&second), web.hits("/one")), ([0, 0, 2, 0, 0], 1), "nothing is asked for twice");
    // What drops off a feed is no news any more, and yet is not gone.
    serve_feed(&[("two", "Short two, corrected"), ("three", "Short three")], "\"2\"");
    web.serve("/two", "text/html", "<title>two</title><p>The whole story of two, corrected.</p>");
    assert_eq!(counts(&run(&client, &pages).await), [1, 1, 0, 0, 0]);
    assert_eq!(documents(&client).await.len(), 3);

    let config = json!({"url": web.url("/feed.xml"), "fullPages": false, "onlyCurrent": true});
    let entries = source(&client, "feed", config).await;
    assert_eq!(counts(&run(&client, &entries).await), [2, 0, 0, 0, 0]);
    assert_eq!(web.hits("/three"), 1, "what the feed says is enough");
    let all = documents(&client).await;
    let three = all.iter().find(|document| document["name"] == "News of three").expect("it is there");
    assert!(text_of(&client, three).await.contains("Short three"));
    data(client.patch(&format!("/sources/{}", id(&entries)), &json!({"deleteLimit": 50})).await);
    serve_feed(&[("three", "Short three")], "\"3\"");
    assert_eq!(counts(&run(&client, &entries).await), [0, 0, 1, 1, 0]);

    web.serve("/feed.xml", "text/html", "<html><body>Moved</body></html>");
    let failed = run(&client, &entries).await;
    assert_eq!(failed["state"], "failed");
    assert!(failed["error"].as_str().expect("why").contains("no feed"), "{failed:#}");
}

async fn pages_of_a_feed_are_read_anew_when_somebody_says_so(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let names = ["one", "two"];
    let tell = |name: &str, text: &str| {
        let page = format!("<title>{name}</title><p>{text}</p>");
        web.serve(&format!("/{name}"), "text/html", page);
    };
    let items = names.map(|name| {
        tell(name, "The whole story.");
        let link = web.url(&format!("/{name}"));
        format!("<item><title>News of {name}</title><link>{link}</link><description>In short.</description></item>")
    });
    let feed = format!("<rss version='2.0'><channel><title>News</title>{}</channel></rss>", items.concat());
    let config = |pages: bool| json!({"url": web.url("/feed.xml"), "fullPages": pages});
    web.serve("/feed.xml", "application/rss+xml", feed);
    let source = source(&client, "feed", config(true)).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let all = documents(&client).await;
    let one = all.iter().find(|document| document["name"] == "News of one").expect("it is there");

    // The feed does not say so.
    tell("one", "The whole story, corrected.");
    assert_eq!(counts(&run(&client, &source).await), [0, 0, 2, 0, 0]);
    let full = settled(&client, &start_run(&client, &source, json!({"full": true})).await).await;
    assert_eq!(counts(&full), [0, 1, 1, 0, 0], "{:?}", found(&client, &full).await);
    assert!(text_of(&client, one).await.contains("corrected"));

    let path = format!("/sources/{}", id(&source));
    for (pages, text) in [(false, "In short"), (true, "The whole story")] {
        data(client.patch(&path, &json!({"config": config(pages)})).await);
        assert_eq!(counts(&run(&client, &source).await), [0, 2, 0, 0, 0], "{text}");
        assert!(text_of(&client, one).await.contains(text), "{text}");
        assert_eq!(counts(&run(&client, &source).await), [0, 0, 2, 0, 0], "{text}");
    }
    let full = settled(&client, &start_run(&client, &source, json!({"full": true})).await).await;
    assert_eq!(counts(&full), [0, 0, 2, 0, 0], "{:?}", found(&client, &full).await);
}

async fn a_bucket_is_kept_in_step(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let store = S3Server::start().await;
    let write = |path: &str, text: &str| {
        let path = store.bucket().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("docs/leave.md", "# Leave\n\nThirty days of leave a year.");
    write("docs/deep/travel.txt", "Travel is paid by the kilometre.");
    write("docs/picture.png", "no picture");
    write("docs/draft.txt", "Not ready.");
    write("other/secret.txt", "Elsewhere.");
    let config = json!({
        "endpoint": format!("http://{}", store.address()), "bucket": BUCKET, "prefix": "docs",
        "accessKeyId": KEY_ID, "secretAccessKey": SECRET, "exclude": ["draft*"],
    });
    let source = source(&client, "s3", config).await;
    assert!(!source.to_string().contains(SECRET), "{source:#}");
    let first = run(&client, &source).await;
    assert_eq!((&first["state"], counts(&first)), (&json!("succeeded"), [2, 0, 0, 0, 0]), "{first:#}");
    let all = documents(&client).await;
    let travel = all.iter().find(|document| document["name"] == "deep/travel.txt").expect("it is there");
    assert!(text_of(&client, travel).await.contains("by the kilometre"));
    assert_eq!((counts(&run(&client, &source).await), &all.len()), ([0, 0, 2, 0, 0], &2));

    write("docs/deep/travel.txt", "Travel is paid by the mile.");
    write("docs/new.txt", "Something new.");
    fs::remove_file(store.bucket().join("docs/leave.md")).expect("a file");
    data(client.patch(&format!("/sources/{}", id(&source)), &json!({"deleteLimit": 50})).await);
    let third = run(&client, &source).await;
    assert_eq!(
        (&third["state"], counts(&third)),
        (&json!("succeeded"), [1, 1, 0, 1, 0]),
        "{:?}",
        found(&client, &third).await
    );
    assert!(text_of(&client, travel).await.contains("by the mile"));

    let wrong = json!({
        "endpoint": format!("http://{}", store.address()), "bucket": BUCKET, "prefix": "docs",
        "accessKeyId": KEY_ID, "secretAccessKey": "wrong",
    });
    data(client.patch(&format!("/sources/{}", id(&source)), &json!({"config": wrong})).await);
    let refused = run(&client, &source).await;
    assert_eq!(refused["state"], "failed", "{refused:#}");
    assert_eq!(documents(&client).await.len(), 2, "what cannot be seen is not gone");
}

async fn a_key_that_cannot_be_read_is_named(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let store = Web::start().await;
    for key in ["docs//plan.txt", "docs/../plan.txt"] {
        let object = format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>4</Size></Contents>"
        );
        let list = format!("<ListBucketResult>{object}</ListBucketResult>");
        store.serve("/documents", "application/xml", list);
        let config = json!({"endpoint": store.url(""), "bucket": "documents", "prefix": "docs"});
        let failed = run(&client, &source(&client, "s3", config).await).await;
        assert_eq!(failed["state"], "failed", "{failed:#}");
        let why = failed["error"].as_str().expect("why");
        assert!(why.contains(&format!("{key:?}")) && why.contains("prefix"), "{why}");
    }
}

async fn a_folder_is_kept_in_step_if_the_operator_has_opened_it(mode: Mode) {
    let (open, shut) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let folder = open.path().join("handbook");
    fs::create_dir_all(folder.join("deep")).expect("a folder");
    let write = |path: &str, text: &str| fs::write(folder.join(path), text).expect("a file");
    write("leave.md", "# Leave\n\nThirty days of leave a year.");
    write("deep/travel.txt", "Travel is paid by the kilometre.");
    write("empty.txt", "");
    fs::write(shut.path().join("secret.txt"), "Not for users.").expect("a file");
    std::os::unix::fs::symlink(shut.path(), folder.join("link")).expect("a link");
    let opened = open.path().to_str().expect("text").to_owned();
    let service = setup(mode).env("LECTERN_SOURCE_FOLDERS", &opened).start().await;
    let client = service.signed_up("ada@example.com").await;
    let refused = async |path: &Path| {
        let body = json!({"name": "x", "type": "folder", "config": {"path": path}});
        let (status, body) = client.post("/sources", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
        assert_eq!(body["error"]["fields"][0]["path"], "config.path", "{body:#}");
    };
    refused(shut.path()).await;
    refused(&open.path().join("../etc")).await;
    refused(Path::new("handbook")).await;

    let source = source(&client, "folder", json!({"path": folder})).await;
    let first = run(&client, &source).await;
    assert_eq!(
        (&first["state"], counts(&first)),
        (&json!("succeeded"), [2, 0, 0, 0, 1]),
        "{:?}",
        found(&client, &first).await
    );
    let all = documents(&client).await;
    let travel = all.iter().find(|document| document["name"] == "deep/travel.txt").expect("it is there");
    assert!(text_of(&client, travel).await.contains("by the kilometre"));
    write("deep/travel.txt", "Travel is paid by the mile.");
    fs::remove_file(folder.join("leave.md")).expect("a file");
    let second = run(&client, &source).await;
    assert_eq!((&second["state"], counts(&second)), (&json!("waiting"), [0, 1, 0, 1, 1]), "{second:#}");
    let cancelled = data(client.post(&format!("{}/cancel", run_path(&second)), &json!({})).await);
    assert_eq!(cancelled["state"], "cancelled");
    assert_eq!(documents(&client).await.len(), 2, "the answer was no");
    let (status, body) = client.post(&format!("{}/confirm", run_path(&second)), &json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("nothing_to_confirm")));
    assert!(text_of(&client, travel).await.contains("by the mile"));
}

async fn a_folder_that_is_not_there_is_named_and_read_once_it_is(mode: Mode) {
    let open = tempfile::tempdir().expect("a folder");
    let (there, later) = (open.path().join("there"), open.path().join("later"));
    fs::create_dir(&there).expect("a folder");
    let [there, later] = [there, later].map(|folder| folder.to_str().expect("text").to_owned());
    let service = setup(mode).env("LECTERN_SOURCE_FOLDERS", &format!("{there},{later}")).start().await;
    let client = service.signed_up("ada@example.com").await;
    let names = |event: &Value, folder: &str| event["fields"]["folder"] == folder;
    let warning = service.logged("the missing folder", |event| names(event, &later)).await;
    assert_eq!(warning["level"], "WARN", "{warning:#}");
    assert!(!service.log_events().iter().any(|event| names(event, &there)), "the other one is there");
    let (sound, report) = doctor(&service.sibling(), &[]);
    let missing = finding(&report, "folder_missing").unwrap_or_else(|| panic!("{report:#}"));
    assert!(sound && missing["severity"] == "warning" && missing["part"] == "sources", "{report:#}");
    assert!(missing["what"].as_str().is_some_and(|what| what.contains(&later)), "{report:#}");

    // It is mounted.
    fs::create_dir(&later).expect("a folder");
    fs::write(Path::new(&later).join("leave.md"), "# Leave\n\nThirty days of leave a year.").expect("a file");
    let (sound, report) = doctor(&service.sibling(), &[]);
    assert!(sound && finding(&report, "folder_missing").is_none(), "{report:#}");
    let source = source(&client, "folder", json!({ "path": later })).await;
    let first = run(&client, &source).await;
    assert_eq!(counts(&first), [1, 0, 0, 0, 0], "{:?}", found(&client, &first).await);
}
