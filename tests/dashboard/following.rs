//! Lists that follow what changes by themselves: whoever reads one or goes through it by keyboard stays where they are.

use serde_json::json;

use super::{PAGES, assert_no_complaints, sign_in};
use crate::support::{
    browser::Browser,
    client::{data, id},
    command::upload,
    pdf::pdf_with_pages,
    service::Service,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_and_in_focus_stays_so_when_an_event_is_told() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let webhook = json!({"url": "http://127.0.0.1:9/told", "events": ["document.failed"]});
    let webhook = owner.create("/webhooks", &webhook).await;
    let test = format!("/webhooks/{}/test", id(&webhook));
    data(owner.post(&test, &json!({})).await);
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/webhooks/{}", service.base_url(), id(&webhook))).await;
    browser.wait_for("#deliveries summary").await;
    let open = "const summary = document.querySelector('#deliveries summary');
        summary.parentElement.open = true;
        summary.focus();
        return summary.id";
    let first = browser.script(open, vec![]).await;
    data(owner.post(&test, &json!({})).await);
    browser.wait_until("both events", "document.querySelectorAll('#deliveries summary').length === 2").await;
    let stays = "const { activeElement } = document;
        return [activeElement.id, activeElement.parentElement.open]";
    assert_eq!(browser.script(stays, vec![]).await, json!([first, true]));
    assert_eq!(
        browser.script("return document.querySelectorAll('details[open] pre').length", vec![]).await,
        json!(1)
    );
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_keeps_the_focus_and_the_page_its_place_when_what_is_around_it_changes() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let report = upload(&owner, "report.pdf", &pdf_with_pages(&PAGES)).await;
    owner.wait_until_ingested(id(&report)).await;
    let agent = json!({"name": "Guide", "type": "CHATVENDOR", "llm": {"provider": "extractive", "model": "extractive"}});
    let agent = owner.create_agent(&agent).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/documents/{}", service.base_url(), id(&report))).await;
    let second = "document.querySelector('#found a[href=\"?page=2#pages\"]')";
    // Whoever has the focus there reads on below it.
    let focus = format!("{second}.focus(); scrollTo(0, document.body.scrollHeight); return scrollY");
    let scrolled = browser.script(&focus, vec![]).await;
    assert!(scrolled.as_f64() > Some(0.0), "the page is longer than the screen");
    owner.link(id(&agent), id(&report)).await;
    browser
        .wait_until("who answers from it", "document.querySelector('#found').textContent.includes('Guide')")
        .await;
    let stays = format!("return [document.activeElement === {second}, scrollY >= {scrolled}]");
    assert_eq!(browser.script(&stays, vec![]).await, json!([true, true]));

    // What selects all of a list is as much in it as what it selects.
    browser.goto(&format!("{}/documents", service.base_url())).await;
    browser.click("[data-select-all]").await;
    owner.create_document(&json!({"name": "Note", "type": "TXT", "content": "A note."})).await;
    browser.wait_until("both rows", "document.querySelectorAll('tbody tr').length === 2").await;
    browser.wait_until("the focus", "document.activeElement.matches('[data-select-all]')").await;
    assert_no_complaints(&browser).await;
    browser.close().await;
}
