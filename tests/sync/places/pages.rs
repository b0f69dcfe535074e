//! What becomes of the pages of a site by what they say of themselves, and by how they are called.

use serde_json::json;

use super::site::{html, serve_list};
use crate::{
    support::{
        client::{data, id},
        in_both_modes,
        service::Mode,
        web::Web,
    },
    sync::{counts, documents, found, run, signed_up, source, urls},
};

in_both_modes!(
    a_page_that_nothing_stands_for_is_kept_whatever_it_says_that_it_is,
    patterns_are_written_as_people_read_addresses,
    a_page_that_is_called_like_a_script_is_one,
    a_document_that_nobody_named_is_called_as_its_page_is_by_now
);

async fn a_page_that_nothing_stands_for_is_kept_whatever_it_says_that_it_is(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |page: &str, canonical: &str| {
        let body =
            html(page, &[]).replace("<title>", &format!("<link rel=canonical href='{canonical}'><title>"));
        web.serve(page, "text/html", body)
    };
    // The address that it names leads back to it, fails, is not there, says that it is this one, is not wanted, is a page, and is not for
    // robots.
    serve("/back/", "/back");
    web.redirect("/back", "/back/");
    serve("/down/", "/down");
    web.status("/down", 500);
    serve("/nothing/", "/nothing");
    serve("/one", "/one/");
    serve("/one/", "/one");
    serve("/out/", "/out");
    serve("/out", "/out");
    serve("/page?from=list", "/page");
    serve("/page", "/page");
    serve("/shut/", "/shut");
    serve("/shut", "/shut");
    web.serve("/robots.txt", "text/plain", "User-agent: *\nDisallow: /shut$\n");
    let listed = ["/back/", "/down/", "/nothing/", "/one", "/one/", "/out/", "/page?from=list", "/shut/"];
    serve_list(&web, &listed);
    let source = source(&client, "site", json!({"url": web.url("/"), "exclude": ["/out"]})).await;
    let kept = |first: &str| {
        [first, "/down/", "/nothing/", "/one", "/out/", "/page", "/shut/"].map(|page| web.url(page))
    };
    let expected = kept("/back/");
    let first = run(&client, &source).await;
    let listed = found(&client, &first).await;
    assert_eq!(
        (&first["state"], urls(&client).await),
        (&json!("succeeded"), expected.to_vec()),
        "{listed:?}"
    );
    for page in ["/one/", "/page?from=list"] {
        let is_told = |(item, outcome, reason): &(String, String, String)| {
            *item == web.url(page) && outcome == "skipped" && reason.contains("says that it is")
        };
        assert!(listed.iter().any(is_told), "{page}: {listed:?}");
    }
    let second = run(&client, &source).await;
    assert_eq!(counts(&second), [0, 0, 7, 0, 2], "{:?}", found(&client, &second).await);

    // What gets a page of its own under the other address is there once, and is the same document.
    serve("/back", "/back");
    let body = json!({"deleteLimit": 100});
    data(client.patch(&format!("/sources/{}", id(&source)), &body).await);
    let third = run(&client, &source).await;
    let told = (counts(&third), &third["moved"]);
    assert_eq!(told, ([0, 0, 6, 0, 2], &json!(1)), "{:?}", found(&client, &third).await);
    assert_eq!(urls(&client).await, kept("/back"));
}

async fn patterns_are_written_as_people_read_addresses(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let pages = ["/%C3%BCber/a", "/%C3%BCber/b%20c", "/andere/d"];
    for page in pages {
        web.serve(page, "text/html", html("A page", &[]));
    }
    // A file cannot say it by itself.
    let (notes, noindex) = ("/%C3%BCber/notes.txt", [("x-robots-tag", "noindex")]);
    web.serve_with_headers(notes, "text/plain", &noindex, "Notes that are not to be kept.");
    let mut listed = pages.to_vec();
    listed.push(notes);
    serve_list(&web, &listed);
    for (include, exclude, expected) in [
        ("/über/*", "/x", &pages[..2]),
        ("/%C3%BCber/*", "/über/b c", &pages[..1]),
        ("*", "/über/*", &pages[2..]),
    ] {
        let config = json!({"url": web.url("/"), "include": [include], "exclude": [exclude]});
        let site = source(&client, "site", config).await;
        let ended = run(&client, &site).await;
        let mut added = found(&client, &ended).await;
        added.retain(|(_, outcome, _)| outcome == "added");
        let added: Vec<_> = added.into_iter().map(|(item, ..)| item).collect();
        let expected: Vec<_> = expected.iter().map(|page| web.url(page)).collect();
        assert_eq!(added, expected, "{include} without {exclude}");
    }
}

async fn a_page_that_is_called_like_a_script_is_one(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let start = web.serve("/", "text/html", html("Start", &["/wiki/Node.js", "/assets/app.js"]));
    web.serve("/wiki/Node.js", "text/html", html("Node.js", &["/wiki/deno"]));
    web.serve("/wiki/deno", "text/html", html("Deno", &[]));
    web.serve("/assets/app.js", "text/javascript", "const answer = 42;");
    let source = source(&client, "site", json!({"url": start, "discover": "crawl"})).await;
    let ended = run(&client, &source).await;
    assert_eq!(counts(&ended), [3, 0, 0, 0, 0], "{:?}", found(&client, &ended).await);
    assert_eq!(urls(&client).await, ["/", "/wiki/Node.js", "/wiki/deno"].map(|page| web.url(page)));
}

async fn a_document_that_nobody_named_is_called_as_its_page_is_by_now(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let web = Web::start().await;
    let serve = |page: &str, title: &str| {
        let body = html(&format!("{title} | The shop"), &[]);
        let graph = format!("<meta property='og:title' content='{title}'><title>");
        web.serve(page, "text/html", body.replace("<title>", &graph))
    };
    serve("/a", "Prices 2025");
    serve("/b", "Hours 2025");
    // What is no page is called by the name of its file.
    let serve_file = |name: &str| {
        let disposition = format!("attachment; filename*=UTF-8''..%2F{name}%00");
        let headers = [("content-disposition", disposition.as_str())];
        web.serve_with_headers("/c", "text/plain", &headers, format!("What is in {name}."));
    };
    serve_file("rules-2025.txt");
    serve_list(&web, &["/a", "/b", "/c"]);
    let source = source(&client, "site", json!({"url": web.url("/")})).await;
    assert_eq!(counts(&run(&client, &source).await), [3, 0, 0, 0, 0]);
    for document in documents(&client).await {
        client.wait_until_ingested(id(&document)).await;
        if document["name"] == "Hours 2025" {
            let name = json!({"name": "When to come"});
            data(client.patch(&format!("/documents/{}", id(&document)), &name).await);
            client.wait_until_ingested(id(&document)).await;
        }
    }
    serve("/a", "Prices 2026");
    serve("/b", "Hours 2026");
    serve_file("rules-2026.txt");
    assert_eq!(counts(&run(&client, &source).await), [0, 3, 0, 0, 0]);
    let mut names = Vec::new();
    for document in documents(&client).await {
        let document = client.wait_until_ingested(id(&document)).await;
        names.push(document["name"].as_str().expect("a name").to_owned());
    }
    names.sort();
    assert_eq!(names, ["Prices 2026", "When to come", "rules-2026.txt"]);
    let answer = client.create("/search", &json!({"query": "prices 2026"})).await;
    assert_eq!(answer[0]["documentName"], "Prices 2026", "{answer:#}");
}
