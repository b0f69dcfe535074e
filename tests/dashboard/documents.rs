//! Documents in a browser: finding them, adding files, what a page says while one is read, and setting right what failed.

use reqwest::{
    Method, Response, StatusCode,
    header::{COOKIE, ORIGIN},
};
use serde_json::{Value, json};

use super::{CONFIRMED, PAGES, Visits, assert_no_complaints, file, location, service, sign_in};
use crate::support::{
    browser::{Browser, Key},
    client::{data, id, send},
    command::{download, upload},
    in_both_modes,
    pdf::pdf_with_pages,
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(
    documents_are_found_by_what_is_known_of_them_page_by_page,
    a_list_says_how_many_there_are_on_each_of_its_pages,
    a_file_is_replaced_on_the_page_of_its_document
);

async fn text_of(answer: Response) -> String {
    answer.text().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_breaks_off_is_sent_again_by_its_key_and_one_that_is_chosen_anew_is_added() {
    let Some(browser) = Browser::start().await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let note = file(folder.path(), "note.txt", b"The roof is closed in winter.");
    let hidden = file(folder.path(), ".env.txt", b"What was chosen by hand is wanted.");
    let empty = file(folder.path(), "empty.txt", b"");
    let service = Service::start().await;
    service.signed_up("ada@example.com").await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/documents/new", service.base_url())).await;
    // The first attempt ends as one does whose connection is lost.
    browser
        .script(
            "window.keys = [];
             const { send, setRequestHeader } = XMLHttpRequest.prototype;
             XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
               if (name === 'Idempotency-Key') window.keys.push(value);
               setRequestHeader.call(this, name, value);
             };
             let isLost = true;
             XMLHttpRequest.prototype.send = function (body) {
               if (!isLost) return send.call(this, body);
               isLost = false;
               this.dispatchEvent(new ProgressEvent('error'));
             };",
            vec![],
        )
        .await;
    let add = async |path: &std::path::Path, rows: usize| {
        browser.upload("#file", path).await;
        browser.click("[data-upload] button.main").await;
        let added = format!("document.querySelectorAll('[data-uploads] td a').length === {rows}");
        browser.wait_until("that it is added", &added).await;
    };
    add(&note, 1).await;
    add(&note, 2).await;
    let keys = browser.script("return window.keys", vec![]).await;
    let keys: Vec<&str> = keys.as_array().expect("keys").iter().filter_map(Value::as_str).collect();
    assert_eq!((keys.len(), keys[0]), (3, keys[1]), "the same choice keeps its key: {keys:?}");
    assert_ne!(keys[1], keys[2], "another choice has another one");
    let links =
        "return new Set([...document.querySelectorAll('[data-uploads] td a')].map((link) => link.href)).size";
    assert_eq!(browser.script(links, vec![]).await, json!(2));

    add(&hidden, 3).await;
    assert!(browser.text("[data-uploads] tbody").await.contains(".env.txt"));
    browser.upload("#file", &empty).await;
    browser.click("[data-upload] button.main").await;
    browser
        .wait_until(
            "the refusal",
            "document.querySelector('[data-uploads] tbody tr:first-child').textContent.includes('must')",
        )
        .await;
    let said = browser.text("[data-uploads] tbody").await;
    assert!(said.contains("The file must not be empty.") && !said.contains("fields"), "{said}");
    // Before those that were added, so that it is found among many.
    assert!(said.contains("Not added"), "{said}");
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_the_passages_once_they_are_there_and_keeps_what_is_being_written() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow", "text/plain", "Slow and steady.");
    let document = owner.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/documents/{}", service.base_url(), id(&document))).await;
    assert!(browser.text("#found").await.contains("There are none yet."));
    browser.fill("#description", "Half a sentence").await;
    gate.release();
    browser.wait_for("#progress .state.good").await;
    browser.wait_for("#found .card").await;
    let found = browser.text("#found").await;
    assert!(found.contains("Slow and steady.") && !found.contains("none yet"), "{found}");
    assert_eq!(browser.value("#description").await, "Half a sentence");
    let focus = browser.script("return document.activeElement.id", vec![]).await;
    assert_eq!(focus, json!("description"));
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_in_focus_or_missing_is_shown() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let report = upload(&owner, "report.pdf", &pdf_with_pages(&PAGES)).await;
    owner.wait_until_ingested(id(&report)).await;
    sign_in(&browser, &service, "ada@example.com").await;
    let base = service.base_url();

    browser.goto(&format!("{base}/documents/{}?page=2", id(&report))).await;
    let grounds = "const ground = (css) => getComputedStyle(document.querySelector(css)).backgroundColor;
        return ground('nav.row a[aria-current]') !== ground('nav.row a:not([aria-current])')";
    assert_eq!(browser.script(grounds, vec![]).await, json!(true), "which page is open");

    browser.goto(&format!("{base}/documents/new")).await;
    browser.script("document.querySelector('#file').focus()", vec![]).await;
    browser.press(&Key::Tab).await;
    browser.wait_until("the folder's input", "document.activeElement.id === 'folder'").await;
    let outline = "return getComputedStyle(document.querySelector('label[for=folder]')).outlineStyle";
    assert_eq!(browser.script(outline, vec![]).await, json!("solid"), "it shows by its label");

    // Nothing is selected: that is said where it can be set right.
    browser.goto(&format!("{base}/documents")).await;
    browser.click_text("button", "Read again").await;
    browser.wait_for("[data-bulk] .problem").await;
    assert!(browser.text("[data-bulk] .problem").await.contains("Select at least one document"));
    assert_eq!(browser.url().await, format!("{base}/documents"));
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_set_right_on_the_documents_own_page() {
    const SECRET: &str = "a-token-that-nobody-sees";
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (web, other) = (Web::start().await, Web::start().await);
    let here = web.serve("/here.txt", "text/plain", "The roof is closed in winter.");
    let there = other.serve("/there.txt", "text/plain", "The roof is open in summer.");
    let gone = json!({"name": "Note", "type": "TXT", "url": web.url("/gone.txt")});
    let document = owner.create_document(&gone).await;
    owner.wait_until_ingested(id(&document)).await;
    let path = format!("/documents/{}", id(&document));
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;

    let page = text_of(visits.get(&path).await).await;
    assert!(page.contains("Check the address") && page.contains("name=\"url\""), "{page}");
    let wrong = visits.submit(&path, &[("name", "Note"), ("url", "ftp://a.example/x")]).await;
    assert_eq!(wrong.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = text_of(wrong).await;
    assert!(page.contains("<strong>Address</strong> must begin with http:// or https://"), "{page}");

    let access = [("authorization.type", "bearer"), ("authorization.token", SECRET)];
    let form = [&[("name", "Note"), ("url", here.as_str())], &access[..]].concat();
    let saved = visits.submit(&path, &form).await;
    assert_eq!(location(&saved), format!("..{path}?said=saved"));
    let read = owner.wait_until_ingested(id(&document)).await;
    assert_eq!((&read["ingestion"]["status"], &read["url"]), (&json!("SUCCEEDED"), &json!(here)));
    let sent = web.requests("/here.txt");
    assert_eq!(sent[0].header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert!(!text_of(visits.get(&path).await).await.contains(SECRET), "it is never shown");

    // It is for the host that it was given for, and can be taken away.
    let elsewhere = [("name", "Note"), ("url", there.as_str())];
    let page = text_of(visits.submit(&path, &elsewhere).await).await;
    assert!(page.contains("new address; give it again, or take it away"), "{page}");
    let taken = [&elsewhere[..], &[("authorization:nullable", "")]].concat();
    assert_eq!(visits.submit(&path, &taken).await.status(), StatusCode::SEE_OTHER);
    let read = owner.wait_until_ingested(id(&document)).await;
    assert_eq!(read["ingestion"]["status"], "SUCCEEDED", "{read:#}");
    assert_eq!(other.requests("/there.txt")[0].header("authorization"), None);

    let report = upload(&owner, "report.pdf", &pdf_with_pages(&PAGES)).await;
    let path = format!("/documents/{}", id(&report));
    let pages = |from, to| [("name", "Report"), ("from_page:nullable", from), ("to_page:nullable", to)];
    let page = text_of(visits.submit(&path, &pages("3", "1")).await).await;
    assert!(page.contains("<strong>Last page</strong> must not be before the first page"), "{page}");
    assert_eq!(visits.submit(&path, &pages("2", "")).await.status(), StatusCode::SEE_OTHER);
    let read = owner.wait_until_ingested(id(&report)).await;
    assert_eq!((&read["from_page"], &read["to_page"]), (&json!(2), &Value::Null));
    let page = text_of(visits.get(&path).await).await;
    assert!(!page.contains("name=\"url\""), "a file has no address: {page}");
    service.assert_no_secret_in_logs(&[SECRET]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_documents_speak_of_what_is_on_them() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let note = owner.ingest(&json!({"name": "Note", "type": "TXT", "content": "The roof is closed."})).await;
    let blank = owner.create_document(&json!({"name": "Blank", "type": "TXT", "content": "  \n "})).await;
    owner.wait_until_ingested(id(&blank)).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;

    // A text without any words is no scan.
    let page = text_of(visits.get(&format!("/documents/{}", id(&blank))).await).await;
    assert!(page.contains("There is no text in it.") && !page.contains("recognition"), "{page}");
    let empty = visits.submit("/documents/new/text", &[("name", "Empty"), ("content", " ")]).await;
    assert_eq!(empty.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = text_of(empty).await;
    assert!(page.contains("<strong>Text</strong> is required") && !page.contains("Address"), "{page}");
    let added = visits.submit("/documents/new/text", &[("name", "Full"), ("content", "Words.")]).await;
    assert!(location(&added).ends_with("?said=added"), "{}", location(&added));
    // What a document is, people are told in words, and may ask for in the name that programs have for it.
    let page = text_of(visits.get("/documents?type=TXT").await).await;
    assert!(page.contains("<td data-label=\"Type\">Text</td>"), "{page}");
    assert!(page.contains("<option value=\"TXT\" selected>Text</option>"), "{page}");

    // There is no model in these tests, and the page has no modes to choose.
    let page = text_of(visits.get("/search?query=roof").await).await;
    assert!(page.contains("needs an embedding model") && !page.contains("`mode`"), "{page}");
    // What an agent finds is searched in what it is linked to.
    let other = json!({"name": "Other", "type": "TXT", "content": "The roof is open."});
    let other = owner.ingest(&other).await;
    let agent = owner.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR"})).await;
    owner.link(id(&agent), id(&other)).await;
    let found = async |path: &str| {
        let page = text_of(visits.get(path).await).await;
        [&note, &other].map(|document| page.contains(&format!("documents/{}?from=", id(document))))
    };
    assert_eq!(found("/search?query=roof").await, [true, true]);
    assert_eq!(found(&format!("/search?query=roof&agent={}", id(&agent))).await, [false, true]);
    let path = format!("/documents/{}", id(&note));
    let page = text_of(visits.get(&path).await).await;
    assert!(
        page.contains("<dt>Queued</dt><dd><time datetime="),
        "scripts show times as readers have them: {page}"
    );

    // A name of nothing but blanks is no name, and is not gone past either.
    assert!(page.contains("name=\"name:text\""), "{page}");
    let blank = visits.submit(&path, &[("name:text", "  ")]).await;
    assert_eq!(blank.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let said = text_of(blank).await;
    assert!(said.contains("<strong>Name</strong> must not be blanks only"), "{said}");
    // What is nearly JSON looks like an object to whoever wrote it.
    let nearly = visits.submit(&path, &[("metadata:object", "{year: 2026}")]).await;
    assert_eq!(nearly.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let said = text_of(nearly).await;
    assert!(said.contains("<strong>Metadata</strong> must be an object, such as"), "{said}");
    assert!(said.contains("line 1, column 2: names stand in double quotes"), "{said}");

    // Whatever links to a document leads to its receipt when it was deleted.
    data(owner.delete(&path).await);
    let led = visits.get(&path).await;
    assert_eq!((led.status(), location(&led)), (StatusCode::SEE_OTHER, format!("..{path}/receipt").as_str()));
    let page = text_of(visits.get(&format!("{path}/receipt")).await).await;
    assert!(page.contains("Note was deleted"), "{page}");
}

async fn documents_are_found_by_what_is_known_of_them_page_by_page(mode: Mode) {
    // One attempt, so that what fails does so at once.
    let service = Service::in_mode(mode).env("LECTERN_JOB_MAX_ATTEMPTS", "1").start().await;
    let owner = service.signed_up("ada@example.com").await;
    let collection = owner.create("/collections", &json!({"name": "Shelf"})).await;
    for number in 0..60 {
        let shelf = if number % 2 == 0 { json!([id(&collection)]) } else { json!([]) };
        let document = json!({
            "name": format!("Note {number:02} of 100%"), "type": "TXT", "content": format!("The number {number}."),
            "metadata": {"tens": number / 10, "department": if number < 3 { "people" } else { "sales" }}, "collectionIds": shelf,
        });
        owner.create_document(&document).await;
    }
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let names = async |visits: &Visits<'_>, query: &str| {
        let text = visits.get(&format!("/documents?{query}")).await.text().await.expect("a text");
        let names: Vec<String> = text
            .split("id=\"document-")
            .skip(1)
            .map(|row| row.split('>').nth(1).expect("a name").split('<').next().expect("its end").to_owned())
            .collect();
        let next =
            text.split("documents?").find(|part| part.contains("after=") && part.contains(">Next page"));
        (
            names,
            next.map(|next| {
                next.split('"').next().expect("a query").replace("&#38;", "&").replace("&amp;", "&")
            }),
        )
    };
    for (sort, first) in [("", "Note 59 of 100%"), ("oldest", "Note 00 of 100%"), ("name", "Note 00 of 100%")]
    {
        let (mut all, next) = names(&visits, &format!("sort={sort}")).await;
        assert_eq!((all.len(), all[0].as_str()), (50, first), "{sort}");
        let (rest, end) = names(&visits, &next.expect("another page")).await;
        assert_eq!((rest.len(), end), (10, None), "{sort}");
        all.extend(rest);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 60, "each once: {sort}");
    }
    for (query, found) in [
        ("name=NOTE+1", 10),
        ("name=%25", 50),
        ("name=_", 0),
        ("metadata=department%3Dpeople", 3),
        ("metadata=tens%3D5", 10),
        ("metadata=tens%3D5.0", 10),
        ("metadata=tens%3D6", 0),
        ("metadata=Department%3Dpeople", 0),
        ("type=PDF", 0),
        ("state=dead", 0),
    ] {
        assert_eq!(names(&visits, query).await.0.len(), found, "{query}");
    }
    // Those that failed, in each order and page by page like all others.
    let mut gone = Vec::new();
    for number in 0..3 {
        let document =
            json!({"name": format!("Gone {number}"), "type": "URL", "url": "http://127.0.0.1:9/gone"});
        gone.push(owner.create_document(&document).await);
    }
    for document in &gone {
        owner.wait_until_ingested(id(document)).await;
    }
    for (sort, first) in [("", "Gone 2"), ("oldest", "Gone 0"), ("name", "Gone 0")] {
        let (failed, _) = names(&visits, &format!("state=dead&sort={sort}")).await;
        assert_eq!((failed.len(), failed[0].as_str()), (3, first), "{sort}");
    }
    let shelf = format!("collection={}&name=Note+0", id(&collection));
    assert_eq!(names(&visits, &shelf).await.0.len(), 5);

    // What cannot be understood is not taken for no filter at all.
    let unclear = visits.get("/documents?metadata=department%3Apeople").await;
    assert_eq!(unclear.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let unclear = unclear.text().await.expect("a text");
    assert!(
        unclear.contains("must be a key and a value, such as department=people")
            && unclear.contains("aria-label=\"Pages\"")
            && unclear.contains("value=\"department:people\""),
        "in its place, with what was written: {unclear}"
    );
    assert!(!unclear.contains("data-bulk"), "nothing is shown as if it matched: {unclear}");
    let filter = "metadata=department%3Apeople";
    let form = [CONFIRMED, ("action", "delete"), ("all:boolean", "true"), ("filter", filter)];
    assert_eq!(visits.submit("/documents/bulk", &form).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(names(&visits, "name=Note+0").await.0.len(), 10);

    // What is done to all that match is done to no other.
    let filter = "metadata=department%3Dpeople&sort=oldest";
    let form = [CONFIRMED, ("action", "delete"), ("all:boolean", "true"), ("filter", filter)];
    let done = visits.submit("/documents/bulk", &form).await;
    assert_eq!(location(&done), format!("../documents?said=deleted&count=3&{filter}"));
    assert_eq!(names(&visits, "name=Note+0").await.0.len(), 7);
    let nothing = visits.submit("/documents/bulk", &[("action", "delete")]).await;
    assert_eq!(location(&nothing), "../documents?said=unselected&");
    let list = visits.get("/documents?said=unselected&").await.text().await.expect("a text");
    assert!(list.contains("Select at least one document") && list.contains("data-bulk"), "{list}");
    assert_eq!(names(&visits, "name=Note+0").await.0.len(), 7);
}

async fn a_list_says_how_many_there_are_on_each_of_its_pages(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    for number in 0..60 {
        let metadata = json!({"department": if number < 3 { "people" } else { "sales" }});
        let name = format!("Note {number:02}");
        let document = json!({"name": name, "type": "TXT", "content": name, "metadata": metadata});
        owner.create_document(&document).await;
    }
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let mut after = String::new();
    for (query, counted) in [
        ("", 60),
        ("name=Note+0", 10),
        ("metadata=department%3Dsales", 57),
        ("metadata=department%3Dpeople", 3),
        ("type=TXT", 60),
    ] {
        let list = text_of(visits.get(&format!("/documents?{query}")).await).await;
        let total = list.split("<span data-total>").nth(1).and_then(|rest| rest.split('<').next());
        assert_eq!(total, Some(format!("{counted} documents").as_str()), "{query}");
        let next = list.split("after=").nth(1).and_then(|rest| rest.split('"').next());
        after = next.map_or(after, str::to_owned);
    }
    let list = text_of(visits.get(&format!("/documents?after={after}")).await).await;
    assert!(list.contains("<span data-total>60 documents</span>"), "{list}");
    // What is done to all of them says how many they were, in the order that they were listed in.
    let form = [("action", "ingest"), ("all:boolean", "true"), ("filter", "name=Note+0&sort=name")];
    let done = visits.submit("/documents/bulk", &form).await;
    assert_eq!(location(&done), "../documents?said=queued&count=10&name=Note+0&sort=name");
    let list = text_of(visits.get("/documents?said=queued&count=10&name=Note+0&sort=name").await).await;
    assert!(list.contains("Queued 10 documents. They are read again from their sources."), "{list}");

    // What is done to some of a page leads back to it, and to the first one when nothing is left on it.
    let page = format!("/documents?after={after}");
    let list = text_of(visits.get(&page).await).await;
    assert!(list.contains(&format!("name=\"after\" value=\"{after}\"")), "{list}");
    let ids = list.split("name=\"ids:list\" value=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let ids: Vec<&str> = ids.collect();
    for some in [&ids[..9], &ids[9..]] {
        let mut form = vec![CONFIRMED, ("action", "delete"), ("after", after.as_str())];
        form.extend(some.iter().map(|id| ("ids:list", *id)));
        let done = visits.submit("/documents/bulk", &form).await;
        let count = some.len();
        assert_eq!(location(&done), format!("../documents?said=deleted&count={count}&after={after}"));
    }
    let list = text_of(visits.get(&page).await).await;
    assert!(list.contains("<span data-total>50 documents</span>"), "{list}");
}

async fn a_file_is_replaced_on_the_page_of_its_document(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let note = upload(&owner, "note.txt", b"The roof is closed in winter.").await;
    owner.wait_until_ingested(id(&note)).await;
    let text = json!({"name": "Text", "type": "TXT", "content": "A text."});
    let text = owner.create_document(&text).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = text_of(visits.get(&format!("/documents/{}", id(&note))).await).await;
    let form = page.split("<form ").find(|form| form.contains("multipart/form-data")).expect("a form");
    let value = |before: &str| form.split(before).nth(1).and_then(|rest| rest.split('"').next());
    let (action, nonce) =
        (value("action=\"").expect("an address"), value("name=\"nonce\" value=\"").expect("a nonce"));
    let submit = async |file: &str| {
        let body = format!(
            "--x\r\nContent-Disposition: form-data; name=\"nonce\"\r\n\r\n{nonce}\r\n\
             --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"new.txt\"\r\n\r\n{file}\r\n--x--\r\n"
        );
        let request = client.request_outside(Method::POST, &format!("/documents/{action}"));
        let request = request.header(COOKIE, &visits.cookies).header(ORIGIN, &visits.origin);
        send(request.header("content-type", "multipart/form-data; boundary=x").body(body)).await
    };
    let answer = submit("The roof is open in summer.").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert!(location(&answer).ends_with(&format!("documents/{}?said=saved", id(&note))));
    let read = owner.wait_until_ingested(id(&note)).await;
    assert_eq!((&read["ingestion"]["status"], &read["name"]), (&json!("SUCCEEDED"), &json!("note.txt")));
    assert_eq!(download(&owner, id(&note)).await, b"The roof is open in summer.");
    let refused = submit("").await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text_of(refused).await.contains("must not be empty"));
    let page = text_of(visits.get(&format!("/documents/{}", id(&text))).await).await;
    assert!(!page.contains("type=\"file\""), "a text has no file: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_suggests_a_name_until_somebody_writes_another() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    service.signed_up("ada@example.com").await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/documents/new", service.base_url())).await;
    browser.wait_until("the scripts", "!document.querySelector('[data-folder]').hidden").await;
    browser.fill("#url", "https://example.com/help/a%20guide/").await;
    assert_eq!(browser.value("#url-name").await, "example.com/help/a guide");
    browser.fill("#url-name", "Guide").await;
    browser.fill("#url", "https://example.com/other").await;
    assert_eq!(browser.value("#url-name").await, "Guide");
    assert_no_complaints(&browser).await;
    browser.close().await;
}
