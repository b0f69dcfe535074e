//! Feeds, and the pages of their entries.

use axum::{
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde_json::{Value, json};

use super::moves::id_of;
use crate::{
    support::{
        client::{data, id},
        in_both_modes,
        service::Mode,
        web::Web,
    },
    sync::{counts, documents, found, run, settled, signed_up, source, start_run, text_of, urls},
};

in_both_modes!(
    a_feed_is_read_by_its_entries,
    pages_of_a_feed_are_read_anew_when_somebody_says_so,
    an_entry_that_links_elsewhere_stays_the_document_that_it_is,
    a_feed_that_numbers_what_it_lists_loses_no_document,
    what_somebody_deletes_while_its_entry_is_looked_for_elsewhere_stays_away
);

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

/// Serves a feed of entries, each with what the feed calls it and the page that it links to.
fn serve_entries(web: &Web, entries: &[(&str, &str)]) {
    let item = |(id, page): &(&str, &str)| {
        let link = web.url(page);
        format!(
            "<item><title>News of {id}</title><guid isPermaLink='false'>{id}</guid><link>{link}</link></item>"
        )
    };
    let items: String = entries.iter().map(item).collect();
    let feed = format!("<rss version='2.0'><channel><title>News</title>{items}</channel></rss>");
    web.serve("/feed.xml", "application/rss+xml", feed);
}

async fn an_entry_that_links_elsewhere_stays_the_document_that_it_is(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let tell = |page: &str, text: &str| {
        web.serve(page, "text/html", format!("<title>A page</title><p>{text}</p>"));
    };
    let config = |most: u32| json!({"url": web.url("/feed.xml"), "onlyCurrent": true, "maxDocuments": most});
    // It is full from the first run on.
    let body = json!({"name": "News", "type": "feed", "config": config(2), "deleteLimit": 100});
    let source = client.create("/sources", &body).await;
    let how = async |how: Value| {
        let ended = settled(&client, &start_run(&client, &source, how).await).await;
        assert_eq!((&ended["state"], &ended["warning"]), (&json!("succeeded"), &Value::Null), "{ended:#}");
        let told = [&ended["moved"], &ended["deletedHere"]].map(Value::as_i64);
        (counts(&ended), told, found(&client, &ended).await)
    };
    let again = async || how(json!({})).await;
    let line = |page: &str, was: &str| {
        [(web.url(page), "moved".to_owned(), format!("It was at {}.", web.url(was)))].to_vec()
    };
    tell("/one", "The whole story of one.");
    tell("/two", "The whole story of two.");
    serve_entries(&web, &[("one", "/one"), ("two", "/two")]);
    assert_eq!(again().await.0, [2, 0, 0, 0, 0]);
    let [one, two] = [id_of(&client, "News of one").await, id_of(&client, "News of two").await];
    let at = async |id: &str| client.wait_until_ingested(id).await["url"].clone();

    tell("/new/one", "The whole story of one.");
    serve_entries(&web, &[("one", "/new/one"), ("two", "/two")]);
    for dry_run in [true, false] {
        let moved = ([0, 0, 1, 0, 0], [Some(1), Some(0)], line("/new/one", "/one"));
        assert_eq!(how(json!({"dryRun": dry_run})).await, moved);
        let place = if dry_run { "/one" } else { "/new/one" };
        assert_eq!(at(&one).await, web.url(place));
    }
    // It says something else there, too.
    tell("/new/two", "The whole story of two, corrected.");
    serve_entries(&web, &[("one", "/new/one"), ("two", "/new/two")]);
    assert_eq!(again().await, ([0, 0, 1, 0, 0], [Some(1), Some(0)], line("/new/two", "/two")));
    assert_eq!(at(&two).await, web.url("/new/two"));
    assert!(text_of(&client, &json!({"id": two})).await.contains("corrected"));
    assert_eq!(again().await.0, [0, 0, 2, 0, 0]);

    // Where it cannot be had yet, it stays as it was.
    web.status("/down", 500);
    serve_entries(&web, &[("one", "/down"), ("two", "/new/two")]);
    assert_eq!(again().await.0, [0, 0, 1, 0, 1]);
    tell("/down", "The whole story of one.");
    assert_eq!(again().await, ([0, 0, 1, 0, 0], [Some(1), Some(0)], line("/down", "/new/one")));
    assert_eq!(at(&one).await, web.url("/down"));

    // What somebody deleted here stays away.
    data(client.delete(&format!("/documents/{two}")).await);
    tell("/newer/two", "The whole story of two.");
    serve_entries(&web, &[("one", "/down"), ("two", "/newer/two")]);
    for dry_run in [true, false, false] {
        let left_away = ([0, 0, 1, 0, 0], [Some(0), Some(1)], Vec::new());
        assert_eq!(how(json!({"dryRun": dry_run})).await, left_away);
    }
    // Of two entries that are called the same, neither is the former one.
    data(client.patch(&format!("/sources/{}", id(&source)), &json!({"config": config(10)})).await);
    tell("/a", "One story.");
    tell("/b", "Another story.");
    serve_entries(&web, &[("one", "/a"), ("one", "/b")]);
    let (counted, told, _) = again().await;
    assert_eq!((counted, told), ([2, 0, 0, 1, 0], [Some(0), Some(0)]));
}

async fn a_feed_that_numbers_what_it_lists_loses_no_document(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    for page in ["/a", "/b", "/c", "/d", "/e"] {
        web.serve(page, "text/html", format!("<title>A page</title><p>The story of {page}.</p>"));
    }
    let source = source(&client, "feed", json!({"url": web.url("/feed.xml")})).await;
    serve_entries(&web, &[("1", "/a"), ("2", "/b"), ("3", "/c")]);
    assert_eq!(counts(&run(&client, &source).await), [3, 0, 0, 0, 0]);
    let before = urls(&client).await;

    serve_entries(&web, &[("1", "/e"), ("2", "/d"), ("3", "/a")]);
    let ended = run(&client, &source).await;
    assert_eq!((counts(&ended), &ended["moved"]), ([2, 0, 1, 0, 0], &json!(0)), "{ended:#}");
    let after = urls(&client).await;
    assert!(after.len() == 5 && before.iter().all(|url| after.contains(url)), "{after:?}");
}

async fn what_somebody_deletes_while_its_entry_is_looked_for_elsewhere_stays_away(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let page = |text: &str| format!("<title>A page</title><p>{text}</p>");
    for name in ["/one", "/two"] {
        web.serve(name, "text/html", page(name));
    }
    serve_entries(&web, &[("one", "/one"), ("two", "/two")]);
    let source = source(&client, "feed", json!({"url": web.url("/feed.xml")})).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let one = id_of(&client, "News of one").await;

    let (_, gate) = web.gate("/new/one", "text/html", page("/one"));
    serve_entries(&web, &[("one", "/new/one"), ("two", "/two")]);
    let started = start_run(&client, &source, json!({})).await;
    gate.wait_until_reached().await;
    data(client.delete(&format!("/documents/{one}")).await);
    gate.release();
    let ended = settled(&client, &started).await;
    for ended in [ended, run(&client, &source).await] {
        let told = (counts(&ended), &ended["moved"], &ended["deletedHere"]);
        assert_eq!(told, ([0, 0, 1, 0, 0], &json!(0), &json!(1)), "{ended:#}");
    }
}
