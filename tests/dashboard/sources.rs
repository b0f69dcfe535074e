//! Sources in a browser: one is added, runs, and asks before it deletes.

use serde_json::json;

use super::{Visits, assert_no_complaints, browsers::assert_for_everybody, service, sign_in};
use crate::support::{
    browser::Browser, client::id, process::POLL, service::Service, web::Web, within_deadline,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_added_runs_and_asks() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    client.create("/collections", &json!({"name": "Site"})).await;
    let web = Web::start().await;
    let page = |name: &str| format!("<title>{name}</title><p>A page about {name}.</p>");
    web.serve("/moss", "text/html", page("moss"));
    web.serve("/lichen", "text/html", page("lichen"));
    web.serve("/sitemap.xml", "text/plain", [web.url("/moss"), web.url("/lichen")].join("\n"));
    sign_in(&browser, &service, "ada@example.com").await;

    browser.goto(&format!("{}/sources", service.base_url())).await;
    browser.click_text("a", "A web site").await;
    browser.fill("#name", "Plants").await;
    browser.fill("#url", "ftp://example.com").await;
    browser.click_text("button", "Add it").await;
    browser.wait_until("what is wrong", "document.body.innerText.includes('http')").await;
    browser.fill("#url", &web.url("/")).await;
    browser.select("#every", "").await;
    browser.click_text("button", "Add it").await;
    browser.wait_until("the source", "document.querySelector('h1')?.innerText === 'Plants'").await;
    browser.click_text("button", "Run now").await;
    browser
        .wait_until("the end of the run", "document.querySelector('#run .state.good')?.innerText === 'Done'")
        .await;
    assert!(browser.text("#run").await.contains("2 added"));
    assert!(browser.text("tbody").await.contains(&web.url("/moss")));

    web.status("/moss", 404);
    browser.click_text("a", "Plants").await;
    browser.click_text("button", "Run now").await;
    browser
        .wait_until(
            "the question",
            "document.querySelector('#run .problem')?.innerText.includes('1 of 2 documents are gone')",
        )
        .await;
    assert_for_everybody(&browser, "a question").await;
    client.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR"})).await;
    let here = browser.url().await;
    // As long as it asks it does not run again, which is said in its place.
    browser.click_text("a", "Plants").await;
    browser.wait_for("#runs .problem").await;
    browser.click_text("button", "Try it").await;
    browser.wait_for("form[action*='/run?'] .problem").await;
    let said = browser.text("form[action*='/run?'] .problem").await;
    assert!(said.contains("A run of this source is under way"), "{said}");
    browser.goto(&format!("{}/", service.base_url())).await;
    assert!(browser.text("main").await.contains("Plants: much is gone there"));
    browser.goto(&here).await;
    browser.wait_for("#run .problem").await;
    browser.script("window.confirm = () => true;", vec![]).await;
    browser.click_text("button", "Delete them").await;
    browser
        .wait_until("the end of the run", "document.querySelector('#run .state.good')?.innerText === 'Done'")
        .await;
    // What is gone leads to its receipt.
    browser.click("#run tr:has(.state.bad) a[href*='documents/']").await;
    browser
        .wait_until("its receipt", "document.querySelector('h1')?.textContent.endsWith('was deleted')")
        .await;
    browser.goto(&format!("{}/documents", service.base_url())).await;
    let listed = browser.text("tbody").await;
    assert!(listed.contains("lichen") && !listed.contains("moss"), "{listed}");

    browser.goto(&format!("{}/sources", service.base_url())).await;
    assert!(browser.text("tbody").await.contains("1 unchanged"));
    browser.click_text("a", "Plants").await;
    browser.select("#collection", client.read("/collections").await[0]["id"].as_str().expect("an id")).await;
    browser.fill("#limit", "50").await;
    browser.click_text("button", "Save").await;
    browser.wait_until("what was saved", "document.body.innerText.includes('Saved.')").await;
    let source = client.read("/sources").await[0].clone();
    assert_eq!((&source["deleteLimit"], source["collectionId"].is_string()), (&json!(50), true));
    assert_eq!((&source["config"]["discover"], &source["every"]), (&json!("auto"), &json!(null)));

    // One that cannot be read is named on the first page, with the reason, until it can be.
    let feed = json!({"name": "News", "type": "feed", "config": {"url": web.url("/nowhere.xml")}});
    let feed = client.create("/sources", &feed).await;
    let run_it = async |state: &str| {
        browser.goto(&format!("{}/sources/{}", service.base_url(), id(&feed))).await;
        browser.click_text("button", "Run now").await;
        let ended = format!("document.querySelector('#run .state')?.innerText === '{state}'");
        browser.wait_until("the end of the run", &ended).await;
        browser.goto(&format!("{}/", service.base_url())).await;
        browser.text("main").await
    };
    let home = run_it("Failed").await;
    assert!(home.contains("Sources that cannot be read") && home.contains("News: "), "{home}");
    assert_for_everybody(&browser, "the first page with a source that fails").await;
    browser.goto(&format!("{}/sources", service.base_url())).await;
    assert!(!browser.text("tbody").await.contains("could not be read"), "it says why");
    web.serve("/nowhere.xml", "application/rss+xml", "<rss version='2.0'><channel/></rss>");
    let home = run_it("Done").await;
    assert!(!home.contains("cannot be read"), "{home}");
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_would_be_and_a_limit_is_named() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let pages = ["/moss", "/lichen"];
    for page in pages {
        web.serve(page, "text/html", format!("<title>{page}</title><p>A page about {page}.</p>"));
    }
    web.serve("/sitemap.xml", "text/plain", pages.map(|page| web.url(page)).join("\n"));
    let config = json!({"url": web.url("/"), "maxDocuments": 1});
    let source = owner.create("/sources", &json!({"name": "Plants", "type": "site", "config": config})).await;
    let page = format!("/sources/{}", id(&source));
    let ran = async |how: serde_json::Value| {
        let begun = owner.create(&format!("{page}/run"), &how).await;
        let path = format!("{page}/runs/{}", id(&begun));
        let ended = async {
            while owner.read(&path).await["state"] != "succeeded" {
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the end of the run", ended).await;
        path
    };
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let shown = async |path: &str| visits.get(path).await.text().await.expect("a text");

    let dry = shown(&ran(json!({"dryRun": true})).await).await;
    assert!(dry.contains("1 would be added") && dry.contains(">Would be added<"), "{dry}");
    assert!(!dry.contains("1 added") && !dry.contains(">Added<"), "{dry}");
    let limit = "The limit of 1 documents is reached: 1 left out.";
    let real = shown(&ran(json!({})).await).await;
    assert!(real.contains("1 added") && real.contains(">Added<") && real.contains(limit), "{real}");
    assert!(shown(&page).await.contains(limit), "the page of the source says so too");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_run_of_a_source_is_told_of_soon_after_it_was_added() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    // It goes on for as long as the test looks.
    let config = json!({"url": web.hang("/news.xml")});
    let news = json!({"name": "News", "type": "feed", "every": "1h", "config": config});
    let news = owner.create("/sources", &news).await;
    let later = json!({"name": "Later", "type": "feed", "config": {"url": web.url("/later.xml")}});
    let later = owner.create("/sources", &later).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let shown = async |path: &str| visits.get(path).await.text().await.expect("a text");
    for path in [format!("/sources/{}", id(&news)), "/sources".to_owned()] {
        let page = shown(&path).await;
        assert!(page.contains("data-live=\"2\"") && !page.contains("It has not run yet."), "{path}: {page}");
    }
    let page = shown(&format!("/sources/{}", id(&later))).await;
    assert!(page.contains("data-live=\"10\"") && page.contains("It has not run yet."), "{page}");
    // How many documents it has changes with its runs, so it is in the part of the page that does.
    let (_, live) = page.split_once("data-live").expect("the part that changes");
    let (live, _) = live.split_once("id=\"change\"").expect("the form");
    assert!(live.contains("0 documents"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_of_several_buttons_cannot_do_is_said_across_the_page() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    // It goes on for as long as the test looks.
    let news = json!({"name": "News", "type": "feed", "config": {"url": web.hang("/news.xml")}});
    let news = owner.create("/sources", &news).await;
    owner.create(&format!("/sources/{}/run", id(&news)), &json!({})).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.set_size(1280, 900).await;
    browser.goto(&format!("{}/sources/{}", service.base_url(), id(&news))).await;
    browser.click_text("button", "Try it").await;
    browser.wait_for(".head .problem").await;
    let beside = "const box = document.querySelector('.head .problem').getBoundingClientRect();
        return [...document.querySelectorAll('.head button')].filter((button) => {
            const { top, bottom } = button.getBoundingClientRect();
            return top < box.bottom && bottom > box.top;
        }).length";
    assert_eq!(browser.script(beside, vec![]).await, 0, "no button stands beside what is said");
    browser.close().await;
}
