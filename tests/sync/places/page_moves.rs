//! Pages of sites that are elsewhere than they were.

use serde_json::{Value, json};

use super::{
    kill_when_moved, killed_often,
    site::{html, serve_list},
};
use crate::{
    support::{
        client::{Client, data},
        in_both_modes,
        service::Mode,
        web::Web,
    },
    sync::{counts, documents, found, run, settled, signed_up, source, start_run, text_of, urls},
};

in_both_modes!(
    a_page_that_is_moved_stays_the_document_that_it_is,
    what_somebody_deleted_here_stays_away_when_nothing_leads_to_where_it_was,
    in_a_site_that_is_full_a_page_is_followed_where_it_says_that_it_is,
    what_cannot_be_had_where_it_is_now_stays_as_it_was,
    what_a_run_does_not_come_to_where_it_is_now_stays_as_it_was,
    killed_while_a_site_is_moved_a_run_loses_no_document
);

/// The id of the document of a page.
async fn id_at(client: &Client, url: &str) -> String {
    let all = documents(client).await;
    let found = all.iter().find(|document| document["url"] == url);
    let id = found.and_then(|document| document["id"].as_str());
    id.unwrap_or_else(|| panic!("no {url}: {all:#?}")).to_owned()
}

async fn a_page_that_is_moved_stays_the_document_that_it_is(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |page: &str, title: &str| web.serve(page, "text/html", html(title, &[]));
    let pages = ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"];
    for page in pages {
        // Two have the same bytes.
        serve(page, if page == "/h" { "/g" } else { page });
    }
    serve_list(&web, &pages);
    let body = json!({
        "name": "Site", "type": "site", "deleteLimit": 100,
        "config": {"url": web.url("/"), "discover": "sitemap"},
    });
    let source = client.create("/sources", &body).await;
    assert_eq!(counts(&run(&client, &source).await), [8, 0, 0, 0, 0]);
    let mut ids = Vec::new();
    for page in ["/a", "/b", "/c", "/f"] {
        ids.push(id_at(&client, &web.url(page)).await);
    }
    let [a, b, c, f] = ids.as_slice() else { panic!("four pages") };
    client.wait_until_ingested(a).await;
    data(client.patch(&format!("/documents/{a}"), &json!({"metadata": {"team": "people"}})).await);
    data(client.delete(&format!("/documents/{f}")).await);

    // One leads there over another address, and says something else by now.
    web.redirect_for_good("/a", "/between");
    web.redirect_for_good("/between", "/new/a");
    serve("/new/a", "A, corrected");
    // One is not there any more, and its bytes are elsewhere.
    web.status("/b", 404);
    serve("/new/b", "/b");
    // One says that it is another page.
    let named = format!("<link rel=canonical href='{}'><title>", web.url("/new/c"));
    web.serve("/c", "text/html", html("/c", &[]).replace("<title>", &named));
    serve("/new/c", "C by now");
    // Two lead to one page.
    for page in ["/d", "/e"] {
        web.redirect_for_good(page, "/new/d");
    }
    serve("/new/d", "D and E");
    // Somebody deleted one here.
    web.redirect_for_good("/f", "/new/f");
    serve("/new/f", "F by now");
    // Of two pages with the same bytes it is not clear which one is elsewhere.
    for page in ["/g", "/h"] {
        web.status(page, 404);
    }
    serve("/new/g", "/g");
    serve_list(&web, &["/new/a", "/new/b", "/new/c", "/new/d", "/new/f", "/new/g"]);
    let line =
        |page: &str, was: &str| (web.url(page), "moved".to_owned(), format!("It was at {}.", web.url(was)));
    for dry_run in [true, false] {
        let how = json!({"dryRun": dry_run});
        let ended = settled(&client, &start_run(&client, &source, how).await).await;
        let mut listed = found(&client, &ended).await;
        let told = (&ended["state"], counts(&ended), &ended["moved"], &ended["deletedHere"]);
        assert_eq!(
            told,
            (&json!("succeeded"), [2, 0, 0, 4, 0], &json!(3), &json!(1)),
            "{dry_run}: {listed:#?}"
        );
        listed.retain(|(_, outcome, _)| outcome == "moved");
        assert_eq!(listed, [line("/new/a", "/a"), line("/new/b", "/b"), line("/new/c", "/c")]);
    }
    let left = ["/new/a", "/new/b", "/new/c", "/new/d", "/new/g"].map(|page| web.url(page));
    assert_eq!(urls(&client).await, left);
    for (id, page) in [(a, "/new/a"), (b, "/new/b"), (c, "/new/c")] {
        assert_eq!(id_at(&client, &web.url(page)).await, *id, "{page}");
    }
    let moved = client.wait_until_ingested(a).await;
    assert_eq!((&moved["name"], &moved["metadata"]), (&json!("A, corrected"), &json!({"team": "people"})));
    assert!(text_of(&client, &moved).await.contains("A, corrected"));
    let again = run(&client, &source).await;
    let told = (counts(&again), &again["moved"], &again["deletedHere"]);
    assert_eq!(told, ([0, 0, 5, 0, 0], &json!(0), &json!(1)), "{again:#}");
}

/// A page that links to two others. Returns its address.
fn serve_two_pages(web: &Web) -> String {
    for page in ["/one", "/two"] {
        web.serve(page, "text/html", html(page, &[]));
    }
    web.serve("/", "text/html", html("/", &["/one", "/two"]))
}

async fn what_somebody_deleted_here_stays_away_when_nothing_leads_to_where_it_was(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |page: &str, links: &[&str]| web.serve(page, "text/html", html(page, links));
    let start = serve_two_pages(&web);
    let source = source(&client, "site", json!({"url": start, "discover": "crawl"})).await;
    assert_eq!(counts(&run(&client, &source).await), [3, 0, 0, 0, 0]);
    let delete = async |page: &str| {
        data(client.delete(&format!("/documents/{}", id_at(&client, &web.url(page)).await)).await);
    };
    let told = async |how: Value| {
        let ended = settled(&client, &start_run(&client, &source, how).await).await;
        (counts(&ended), [&ended["moved"], &ended["deletedHere"]].map(Value::as_i64))
    };

    delete("/one").await;
    serve("/", &["/new/one", "/two"]);
    web.redirect_for_good("/one", "/new/one");
    serve("/new/one", &[]);
    for dry_run in [true, false] {
        let how = json!({"dryRun": dry_run});
        assert_eq!(told(how).await, ([0, 1, 1, 0, 0], [Some(0), Some(1)]), "dry: {dry_run}");
    }
    assert_eq!(urls(&client).await, ["/", "/two"].map(|page| web.url(page)));
    // Of this one nothing is left that could be moved.
    delete("/").await;
    delete("/two").await;
    serve("/", &["/new/one", "/new/two"]);
    web.redirect_for_good("/two", "/new/two");
    serve("/new/two", &[]);
    for _ in 0..2 {
        assert_eq!(told(json!({})).await, ([0; 5], [Some(0), Some(3)]));
    }
    assert!(documents(&client).await.is_empty());
}

async fn in_a_site_that_is_full_a_page_is_followed_where_it_says_that_it_is(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |page: &str, links: &[&str]| web.serve(page, "text/html", html(page, links));
    let start = serve_two_pages(&web);
    let config = json!({"url": start, "discover": "crawl", "maxDocuments": 3});
    let source = source(&client, "site", config).await;
    assert_eq!(counts(&run(&client, &source).await), [3, 0, 0, 0, 0]);
    let [one, two] = [id_at(&client, &web.url("/one")).await, id_at(&client, &web.url("/two")).await];

    serve("/", &["/other", "/new/one", "/two"]);
    serve("/other", &[]);
    serve("/new/one", &["/behind"]);
    serve("/behind", &[]);
    web.redirect_for_good("/one", "/new/one");
    // One leads there over another address.
    web.redirect_for_good("/two", "/new/two");
    web.redirect_for_good("/new/two", "/new/two/");
    serve("/new/two/", &[]);
    let ended = run(&client, &source).await;
    let warning = json!("The limit of 3 documents is reached: 2 or more left out.");
    let told = (&ended["state"], counts(&ended), &ended["moved"], &ended["warning"]);
    assert_eq!(told, (&json!("succeeded"), [0, 1, 0, 0, 0], &json!(2), &warning), "{ended:#}");
    assert_eq!((web.hits("/other"), web.hits("/behind")), (0, 0), "there is no room for them");
    assert_eq!(id_at(&client, &web.url("/new/one")).await, one);
    assert_eq!(id_at(&client, &web.url("/new/two/")).await, two);
}

async fn what_cannot_be_had_where_it_is_now_stays_as_it_was(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |page: &str| web.serve(page, "text/html", html(page, &[]));
    serve("/a");
    serve("/b");
    serve_list(&web, &["/a", "/b"]);
    let config = json!({"url": web.url("/"), "discover": "sitemap"});
    let body = json!({"name": "Site", "type": "site", "config": config, "deleteLimit": 100});
    let source = client.create("/sources", &body).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let a = id_at(&client, &web.url("/a")).await;

    web.redirect_for_good("/a", "/new/a");
    web.status("/new/a", 500);
    for listed in [["/a", "/b"], ["/new/a", "/b"]] {
        serve_list(&web, &listed);
        let ended = run(&client, &source).await;
        assert_eq!(counts(&ended), [0, 0, 1, 0, 1], "{listed:?}: {:?}", found(&client, &ended).await);
        assert_eq!(id_at(&client, &web.url("/a")).await, a);
    }
    serve("/new/a");
    let ended = run(&client, &source).await;
    let told = (counts(&ended), &ended["moved"]);
    assert_eq!(told, ([0, 0, 1, 0, 0], &json!(1)), "{:?}", found(&client, &ended).await);
    assert_eq!(id_at(&client, &web.url("/new/a")).await, a);
}

async fn what_a_run_does_not_come_to_where_it_is_now_stays_as_it_was(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |page: &str, links: &[&str]| web.serve(page, "text/html", html(page, links));
    let config = json!({"url": serve("/", &["/a"]), "discover": "crawl", "maxDocuments": 3});
    serve("/a", &[]);
    let body = json!({"name": "Site", "type": "site", "config": config, "deleteLimit": 100});
    let source = client.create("/sources", &body).await;
    assert_eq!(counts(&run(&client, &source).await), [2, 0, 0, 0, 0]);
    let a = id_at(&client, &web.url("/a")).await;

    // There is nothing at more addresses than a run asks for.
    let nothing: Vec<_> = (0..200).map(|number| format!("/nothing/{number}")).collect();
    let links: Vec<_> = ["/a"].into_iter().chain(nothing.iter().map(String::as_str)).collect();
    serve("/", &links);
    web.redirect_for_good("/a", "/new/a");
    serve("/new/a", &[]);
    let ended = run(&client, &source).await;
    let warning = json!("Not everything was looked at. Deletions are not followed.");
    let told = (&ended["state"], counts(&ended), &ended["moved"], &ended["warning"]);
    assert_eq!(told, (&json!("succeeded"), [0, 1, 0, 0, 1], &json!(0), &warning), "{ended:#}");
    assert_eq!((id_at(&client, &web.url("/a")).await, web.hits("/new/a")), (a.clone(), 0));

    serve("/", &["/a"]);
    let ended = run(&client, &source).await;
    assert_eq!((counts(&ended), &ended["moved"]), ([0, 1, 0, 0, 0], &json!(1)), "{ended:#}");
    assert_eq!(id_at(&client, &web.url("/new/a")).await, a);
}

async fn killed_while_a_site_is_moved_a_run_loses_no_document(mode: Mode) {
    const PAGES: usize = 40;
    let mut service = killed_often(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let paths = |folder: &str| (0..PAGES).map(|at| format!("/{folder}/{at:02}")).collect::<Vec<_>>();
    let (former, now) = (paths("former"), paths("now"));
    let serve_start = |pages: &[String]| {
        let links: Vec<&str> = pages.iter().map(String::as_str).collect();
        web.serve("/", "text/html", html("Start", &links))
    };
    for page in &former {
        web.serve(page, "text/html", html(page, &[]));
    }
    let all = i64::try_from(PAGES).expect("a few");
    // It is full from the first run on.
    let config = json!({"url": serve_start(&former), "discover": "crawl", "maxDocuments": all + 1});
    let source = source(&client, "site", config).await;
    assert_eq!(counts(&run(&client, &source).await), [all + 1, 0, 0, 0, 0]);
    let ids = async || {
        let mut pairs: Vec<_> = documents(&client)
            .await
            .iter()
            .map(|document| [&document["url"], &document["id"]].map(Value::to_string))
            .collect();
        pairs.sort();
        pairs.into_iter().map(|[_, id]| id).collect::<Vec<_>>()
    };
    let before = ids().await;

    for (from, to) in former.iter().zip(&now) {
        web.redirect_for_good(from, to);
        web.serve(to, "text/html", html(&format!("What is at {to}"), &[]));
    }
    serve_start(&now);
    let started = start_run(&client, &source, json!({})).await;
    for wanted in [all / 4, all / 2] {
        kill_when_moved(&mut service, &client, &started, wanted).await;
    }
    let ended = settled(&client, &started).await;
    let told = (&ended["state"], counts(&ended), &ended["moved"], &ended["warning"]);
    assert_eq!(told, (&json!("succeeded"), [0, 1, 0, 0, 0], &json!(all), &Value::Null), "{ended:#}");
    assert_eq!(ids().await, before);
    let moved: Vec<_> = ["/".to_owned()].into_iter().chain(now).map(|page| web.url(&page)).collect();
    assert_eq!(urls(&client).await, moved);
}
