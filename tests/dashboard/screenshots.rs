//! Pictures of the pages for docs/dashboard.md, made when `TEST_SCREENSHOTS` names the folder for them.

use std::path::Path;

use serde_json::json;

use super::{PAGES, QUESTION, agent_with_report, sign_in};
use crate::{
    matrix::things::asked,
    support::{
        browser::Browser,
        client::{data, id},
        service::{Mode, Service},
    },
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it makes pictures for the documentation; scripts/screenshots.sh runs it"]
async fn pages_are_pictured() {
    let folder = std::env::var("TEST_SCREENSHOTS").expect("TEST_SCREENSHOTS names a folder");
    let folder = Path::new(&folder);
    let browser = Browser::start().await.expect("a browser");
    // What fails is pictured as failed: nobody waits for its attempts.
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_JOB_MAX_ATTEMPTS", "1").start().await;
    let base = service.base_url();
    let picture = async |name: &str, height: u32| {
        browser.set_size(1_100, height).await;
        browser.screenshot(&folder.join(format!("{name}.png"))).await;
    };
    let owner = service.signed_up("ada@example.com").await;
    data(owner.patch("/users/me", &json!({"name": "Ada"})).await);
    sign_in(&browser, &service, "ada@example.com").await;
    picture("first-run", 620).await;
    let (agent, document) = agent_with_report(&owner).await;
    let shelf = owner.create("/collections", &json!({"name": "Expeditions"})).await;
    for (name, url) in [("Ship's log", "http://127.0.0.1:9/log"), ("Crew list", "http://127.0.0.1:9/crew")] {
        let document = json!({"name": name, "type": "URL", "url": url, "collectionIds": [id(&shelf)]});
        owner.create_document(&document).await;
    }
    for page in PAGES {
        let name = page.split('.').next().expect("a title");
        owner.ingest(&json!({"name": name, "type": "TXT", "content": page})).await;
    }
    browser.goto(&format!("{base}/documents")).await;
    browser.wait_until("the failures", "document.querySelectorAll('.state.bad').length === 2").await;
    picture("documents", 760).await;
    browser.goto(&format!("{base}/documents/{document}?page=2")).await;
    browser.wait_until("the picture", "document.querySelector('figure img').naturalWidth > 500").await;
    picture("document", 900).await;
    browser.goto(&format!("{base}/agents/{agent}")).await;
    picture("agent", 900).await;
    browser.goto(&format!("{base}/agents/{agent}/ask")).await;
    browser.fill("#question", QUESTION).await;
    browser.click(".ask-box .main").await;
    browser.wait_for(".cite").await;
    browser.click(".cite").await;
    browser.wait_until("its page", "document.querySelector('.source img')?.naturalWidth > 500").await;
    picture("answer", 760).await;
    browser.prefers_dark(true).await;
    picture("answer-dark", 760).await;
    browser.prefers_dark(false).await;
    browser.goto(&format!("{base}/traces")).await;
    browser.click("tbody a").await;
    browser.wait_for("svg.chart").await;
    picture("trace", 760).await;
    browser.goto(&format!("{base}/search?query=captain")).await;
    picture("search", 620).await;
    let (source, _) = asked(&owner).await;
    browser.goto(&format!("{base}/sources/{source}")).await;
    browser.wait_for("#runs .problem").await;
    picture("source", 620).await;
    let evaluation = owner.create("/evaluations", &json!({"name": "Expeditions", "agentId": agent})).await;
    let evaluation = format!("evaluations/{}", id(&evaluation));
    let gold = json!([{"documentId": document}]);
    let cases = [QUESTION, "Where did the ship winter?", "Who cooked?"]
        .map(|question| json!({"question": question, "expect": gold}));
    owner.create(&format!("/{evaluation}/cases"), &json!({"cases": cases})).await;
    browser.goto(&format!("{base}/{evaluation}")).await;
    browser.click_text("button", "Run it").await;
    browser.wait_until("the run", "document.querySelector('#run .state.good')?.innerText === 'Done'").await;
    picture("evaluation", 900).await;
    browser.goto(&format!("{base}/usage")).await;
    picture("usage", 620).await;
    browser.close().await;
}
