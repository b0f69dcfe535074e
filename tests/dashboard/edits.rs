//! Forms that somebody has open while the same is changed elsewhere: what was changed meanwhile is not undone in silence.

use reqwest::StatusCode;
use serde_json::json;

use super::{
    Visits, assert_no_complaints,
    people::{Team, read},
    sign_in,
};
use crate::support::{
    browser::Browser,
    client::{Client, data, id},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(no_form_undoes_in_silence_what_was_changed_while_it_was_open);

/// What a form of a page sends as it stands there: the one that is sent to an address which has this in it.
fn fields(html: &str, address: &str) -> Vec<(String, String)> {
    let mut forms = html.split("<form ").skip(1);
    let is_meant = |form: &&str| form.split('>').next().expect("a tag").contains(address);
    let form = forms.find(is_meant).unwrap_or_else(|| panic!("no form for {address}: {html}"));
    let form = form.split("</form>").next().expect("its inputs");
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut is_first_option = false;
    for element in form.split('<').skip(1) {
        let (tag, text) = element.split_once('>').unwrap_or((element, ""));
        let value = || attribute(tag, "value").unwrap_or_default();
        match tag.split_whitespace().next().unwrap_or_default() {
            "input" if !tag.contains("type=\"checkbox\"") || tag.ends_with(" checked") => {
                fields.push((attribute(tag, "name").expect("a name"), value()));
            }
            "textarea" => fields.push((attribute(tag, "name").expect("a name"), unescaped(text))),
            "select" => {
                fields.push((attribute(tag, "name").expect("a name"), String::new()));
                is_first_option = true;
            }
            "option" => {
                if is_first_option || tag.ends_with(" selected") {
                    fields.last_mut().expect("its list").1 = value();
                }
                is_first_option = false;
            }
            _ => {}
        }
    }
    fields
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next().map(unescaped)
}

fn unescaped(text: &str) -> String {
    let characters = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    characters.iter().fold(text.to_owned(), |text, (escaped, character)| text.replace(escaped, character))
}

/// Writes something into a form.
fn write(fields: &mut [(String, String)], name: &str, text: &str) {
    let field = fields.iter_mut().find(|(field, _)| field == name).expect("the field");
    text.clone_into(&mut field.1);
}

async fn submit(visits: &mut Visits<'_>, path: &str, fields: &[(String, String)]) -> (StatusCode, String) {
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let answer = visits.submit(path, &fields).await;
    (answer.status(), answer.text().await.expect("a text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_a_colleague_changed_meanwhile_is_saved_only_on_purpose() {
    let joined = Team::with("builder").await;
    let Team { inside: team, ben, workspace, .. } = &joined;
    let formal = json!({"name": "Formal", "template": "Be formal.", "input_variables": []});
    let formal = team.create("/prompts", &formal).await;
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let agent = team.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR", "llm": llm})).await;
    let mut visits = joined.visits("ada@example.com").await;
    let path = format!("/agents/{}", id(&agent));
    let mut form = fields(&read(&visits, &path).await, &format!("action=\"{}?", id(&agent)));
    let llm =
        json!({"provider": "extractive", "model": "extractive", "temperature": 0.5, "context_window": 8000});
    let change =
        json!({"promptId": id(&formal), "description": "Of the house.", "hasMemory": true, "llm": llm});
    let before = data(ben.in_workspace(id(workspace)).patch(&path, &change).await);
    // What it answers from is in no form of it, and undone by none.
    let note = team.create_document(&json!({"name": "Note", "type": "TXT", "content": "A note."})).await;
    team.link(id(&agent), id(&note)).await;

    write(&mut form, "name:text", "Clerk & sons");
    let (status, page) = submit(&mut visits, &path, &form).await;
    assert_eq!(status, StatusCode::CONFLICT, "{page}");
    assert!(
        page.contains(
            "ben changed this: Description, Temperature, Tokens that the model has room for, Prompt, Memory."
        ),
        "{page}"
    );
    for told in [">Of the house.<", ">Formal<", ">Clerk &#38; sons</textarea>", "changed meanwhile"] {
        assert!(page.contains(told), "{told}: {page}");
    }
    assert_eq!(page.matches("You did not change it: it stays as it is now.").count(), 5, "{page}");
    assert!(page.contains(&format!("href=\"../agents/{}#change\"", id(&agent))), "{page}");
    let now = team.read(&path).await;
    for field in ["name", "description", "promptId", "hasMemory"] {
        assert_eq!(now[field], before[field], "{field}");
    }

    // It is another one again by the time that somebody decides.
    let on_top = fields(&page, &format!("action=\"../agents/{}?", id(&agent)));
    data(team.patch(&path, &json!({"description": "Of the house, of late."})).await);
    let (status, page) = submit(&mut visits, &path, &on_top).await;
    assert_eq!(status, StatusCode::CONFLICT, "{page}");
    assert!(page.contains("you, elsewhere, changed this: Description."), "{page}");
    let on_top = fields(&page, &format!("action=\"../agents/{}?", id(&agent)));
    let (status, page) = submit(&mut visits, &path, &on_top).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
    let now = team.read(&path).await;
    // What was written is saved, and what others have made of the rest stays.
    let written = json!("Clerk & sons");
    assert_eq!((&now["name"], &now["description"]), (&written, &json!("Of the house, of late.")));
    for field in ["promptId", "hasMemory", "llm"] {
        assert_eq!(now[field], before[field], "{field}");
    }
}

/// One of each thing that has a form of its own: its path, its page, and the change of it.
async fn things(owner: &Client) -> Vec<(String, String, serde_json::Value)> {
    let prompt =
        json!({"name": "Brief", "template": "Be brief for {company}.", "input_variables": ["company"]});
    let tool = json!({"name": "Expert", "type": "OPENAPI", "metadata": {"openApiUrl": "https://api.example.com/a.json"}});
    let feed =
        json!({"name": "News", "type": "feed", "config": {"url": "https://news.example.com/feed.xml"}});
    let hook = json!({"url": "https://hooks.example.com/a", "events": ["document.failed"]});
    let note = json!({"name": "Note", "type": "TXT", "content": "A note.", "metadata": {"year": 1911}});
    let mut things = Vec::new();
    for (nouns, made, change) in [
        ("prompts", prompt, json!({"template": "Be formal for {company}."})),
        ("tools", tool, json!({"description": "Knows what there is."})),
        ("collections", json!({"name": "Shelf"}), json!({"description": "Of the hall."})),
        ("sources", feed, json!({"deleteLimit": 5})),
        ("webhooks", hook, json!({"active": false})),
        ("evaluations", json!({"name": "Captains"}), json!({"name": "Mates"})),
        ("documents", note, json!({"description": "Of the house."})),
    ] {
        let path = format!("/{nouns}/{}", id(&owner.create(&format!("/{nouns}"), &made).await));
        let has_page = !matches!(nouns, "prompts" | "tools");
        things.push((path.clone(), if has_page { path } else { format!("/{nouns}") }, change));
    }
    things
}

async fn no_form_undoes_in_silence_what_was_changed_while_it_was_open(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for (path, page, change) in things(&owner).await {
        let address = format!("{}?page-workspace", path.rsplit('/').next().expect("an id"));
        let form = fields(&read(&visits, &page).await, &address);
        data(owner.patch(&path, &change).await);
        let changed = owner.read(&path).await;
        let (status, told) = submit(&mut visits, &path, &form).await;
        assert_eq!(status, StatusCode::CONFLICT, "{path}: {told}");
        assert!(
            told.contains("this was changed elsewhere: ") && told.contains("changed meanwhile"),
            "{told}"
        );
        for (field, _) in change.as_object().expect("fields") {
            assert_eq!(owner.read(&path).await[field], changed[field], "{path}: {field}");
        }
        // Nothing was written into the form: on top of that, all of it stays what it is.
        let (status, told) = submit(&mut visits, &path, &fields(&told, &address)).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{path}: {told}");
        let now = owner.read(&path).await;
        let own = [
            "name",
            "description",
            "template",
            "input_variables",
            "metadata",
            "config",
            "url",
            "events",
            "active",
        ];
        for field in own.into_iter().chain(["deleteLimit"]) {
            assert_eq!(now[field], changed[field], "{path}: {field}");
        }
        // A form that is opened now changes what there is now.
        let form = fields(&read(&visits, &page).await, &address);
        let (status, told) = submit(&mut visits, &path, &form).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{path}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_published_or_taken_away_meanwhile_is_not_replaced_in_silence() {
    let joined = Team::with("builder").await;
    let team = &joined.inside;
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let agent = team.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR", "llm": llm})).await;
    let mut visits = joined.visits("ada@example.com").await;
    let path = format!("/agents/{}/publish", id(&agent));
    let publication = format!("/agents/{}/publication", id(&agent));
    let form = [("slug", "guide"), ("access", "members"), ("title", "From here"), ("questions:lines", "")];
    let sent = |html: &str| {
        let seen =
            fields(html, "publish?").into_iter().find(|(name, _)| name == "seen").expect("what was seen");
        let form = form.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        form.chain([seen]).collect::<Vec<_>>()
    };
    let opened = sent(&read(&visits, &path).await);
    let elsewhere =
        [("slug", "guide"), ("access", "members"), ("title", "From elsewhere"), ("origins:lines", "")];
    assert_eq!(visits.submit(&path, &elsewhere).await.status(), StatusCode::SEE_OTHER);
    let (status, told) = submit(&mut visits, &path, &opened).await;
    assert_eq!(status, StatusCode::CONFLICT, "{told}");
    assert!(told.contains(">From elsewhere<"), "{told}");
    assert_eq!(team.read(&publication).await["title"], "From elsewhere");

    let opened = sent(&read(&visits, &path).await);
    assert!(team.delete(&publication).await.0.is_success());
    let (status, told) = submit(&mut visits, &path, &opened).await;
    assert_eq!(status, StatusCode::CONFLICT, "{told}");
    assert_eq!(team.get(&publication).await.0, StatusCode::NOT_FOUND, "it stays away");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_keeps_what_was_written_beside_what_was_changed_meanwhile() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let mut llm = json!({"provider": "extractive", "model": "extractive"});
    let agent = owner.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR", "llm": llm})).await;
    let path = format!("/agents/{}", id(&agent));
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}{path}", service.base_url())).await;
    llm["temperature"] = json!(0.5);
    llm["context_window"] = json!(8000);
    let change = json!({"description": "Of the house.", "hasMemory": true, "type": "REACT", "llm": llm});
    let before = data(owner.patch(&path, &change).await);
    browser.fill("#name", "Clerk").await;
    browser.click("form[data-form]:has(#name) > button.main").await;
    browser.wait_for("form .problem").await;
    let said = browser.text("form .problem").await;
    assert!(
        said.contains("Nothing was saved.") && said.contains("Description stays as it is now: Of the house."),
        "{said}"
    );
    assert_eq!(browser.value("#name").await, "Clerk");
    assert_eq!(owner.read(&path).await["name"], "Guide");
    let look = browser.attribute("form .problem a", "href").await.expect("a link");
    assert!(look.ends_with(&format!("/agents/{}#change", id(&agent))), "{look}");
    browser.click_text("button", "Save what I wrote on top of it").await;
    browser.wait_for("main > .notice").await;
    let now = owner.read(&path).await;
    assert_eq!(now["name"], "Clerk");
    for field in ["description", "hasMemory", "type", "llm"] {
        assert_eq!(now[field], before[field], "{field}");
    }
    assert_no_complaints(&browser).await;
    browser.close().await;
}
