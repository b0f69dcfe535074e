//! What pages make of what people really have: invitations before accounts, narrow screens, long names, texts that are written
//! from right to left, and slips in one line of many.

use serde_json::json;

use super::{QUESTION, agent_with_report, assert_no_complaints, file, sign_in};
use crate::support::{
    browser::Browser,
    client::{PASSWORD, data, id},
    model::{Model, Reply},
    service::{Mode, Service},
    web::Web,
};

/// A phone, a window that is just wide enough for columns, and a usual screen.
const WIDTHS: [u32; 3] = [360, 700, 1_280];

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_is_invited_and_has_no_account_yet_makes_one_and_joins() {
    let Some(browser) = Browser::start().await else { return };
    let provider = Web::start().await;
    let issuer = provider.url("");
    let described = json!({
        "issuer": issuer,
        "authorization_endpoint": provider.serve("/auth", "text/html", "<h1>The provider</h1>"),
        "token_endpoint": provider.url("/token"),
        "jwks_uri": provider.serve("/keys", "application/json", r#"{"keys": []}"#),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    });
    provider.serve("/.well-known/openid-configuration", "application/json", described.to_string());
    let service = Service::in_mode(Mode::Embedded)
        .env("LECTERN_PUBLIC_URL", "http://127.0.0.1:9")
        .env("LECTERN_OIDC_ISSUER", &issuer)
        .env("LECTERN_OIDC_CLIENT_ID", "lectern")
        .start()
        .await;
    let base = service.base_url();
    let owner = service.signed_up("owner@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let path = format!("/workspaces/{}/invitations", id(&workspace));
    let invitation = team.create(&path, &json!({"role": "asker"})).await;
    let (_, hash) = invitation["url"].as_str().and_then(|url| url.split_once("/#")).expect("a hash");

    browser.goto(&format!("{base}/#{hash}")).await;
    browser.wait_until("the link", "document.querySelector('a[href*=\"#/invitations/\"]')").await;

    // Whoever goes to the provider comes back with a code, and to the invitation.
    browser.click("[data-provider]").await;
    browser.wait_until("the provider", "document.querySelector('h1')?.textContent === 'The provider'").await;
    assert!(!browser.url().await.contains("invitations"), "the secret goes to nobody");
    // Whom the provider does not let in is told so, and is invited still.
    browser.goto(&format!("{base}/sign-in#/sign-in?error=oidc_refused")).await;
    let is_told = "document.querySelector('[data-sign-in-problem]:not([hidden])')";
    browser.wait_until("why", is_told).await;
    let next = browser.value("input[name=next]").await;
    assert_eq!(next, format!("invitations#{hash}"));
    browser.goto(&format!("{base}/sign-in")).await;
    let come_back =
        "HTMLFormElement.prototype.submit = function () { window.next = this.elements.next.value; };
        location.hash = '/sign-in/code?return=%2F'";
    browser.script(come_back, vec![]).await;
    browser.wait_until("where it leads then", "window.next").await;
    assert_eq!(browser.script("return window.next", vec![]).await, json!(format!("invitations#{hash}")));

    browser.goto(&format!("{base}/#{hash}")).await;
    browser.wait_until("the link", "document.querySelector('a[href*=\"#/invitations/\"]')").await;
    assert!(browser.text("main").await.contains("You are invited to a workspace."));
    browser.click_text("a", "Make an account").await;
    let is_filled_in =
        "document.querySelector('#name') && document.querySelector('[name=next]').value.includes('#')";
    browser.wait_until("where it leads afterwards", is_filled_in).await;
    // No server is told the secret by an address.
    assert_eq!(browser.url().await, format!("{base}/sign-up?next=#{hash}"));
    let back = browser.attribute("main a", "href").await.expect("a link");
    assert!(back.ends_with(&format!("sign-in?next=#{hash}")), "{back}");
    browser.fill("#name", "Cleo").await;
    browser.fill("#email", "cleo@example.com").await;
    browser.fill("#password", PASSWORD).await;
    browser.click("button.main").await;
    browser.wait_until("the code", "document.querySelector('[data-invitation]')?.value").await;
    browser.click("main button.main").await;
    // What the invitation is to stood in a notice before.
    browser.wait_for(".notice[role=status]").await;
    assert!(browser.text(".notice[role=status]").await.contains("member of this workspace"));
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_seen_as_a_whole_on_a_phone_and_its_page_opens_in_another_tab() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.set_size(360, 640).await;
    browser.goto(&format!("{}/agents/{agent}/ask", service.base_url())).await;
    browser.fill("#question", QUESTION).await;
    browser.click(".ask-box .main").await;
    browser.wait_for("[data-answer] .cite").await;
    browser.script("document.querySelector('.cite').click()", vec![]).await;
    browser.wait_for(".source mark").await;
    browser
        .wait_until(
            "all of it on the screen",
            "(({ top, bottom }) => bottom - top > 300 && top >= 0 && bottom <= innerHeight + 1)(
                document.querySelector('.source').getBoundingClientRect())",
        )
        .await;
    let target = browser.attribute(".source figure a", "target").await;
    assert_eq!(target.as_deref(), Some("_blank"), "the conversation is not left");
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quoted_words_far_down_in_a_passage_are_in_sight_where_their_source_opens() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let before = "This rule is about the hall and the stairs. ".repeat(60);
    let text = format!("{before}Bicycles belong in the cellar.");
    let splitter = json!({"type": "character", "chunk_size": 4_000, "chunk_overlap": 0});
    let rules = json!({"name": "Rules", "type": "TXT", "content": text, "splitter": splitter});
    let rules = owner.ingest(&rules).await;
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let agent = owner.create_agent(&json!({"name": "Porter", "type": "CHATVENDOR", "llm": llm})).await;
    owner.link(id(&agent), id(&rules)).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.set_size(360, 640).await;
    browser.goto(&format!("{}/agents/{}/ask", service.base_url(), id(&agent))).await;
    browser.fill("#question", "Where do bicycles belong?").await;
    browser.click(".ask-box .main").await;
    browser.wait_for("[data-answer] .cite").await;
    let in_sight = "(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(
        document.querySelector('mark').getBoundingClientRect())";
    let open = "const link = document.querySelector('.cite'); link.click(); return link.href";
    let source = browser.script(open, vec![]).await;
    browser.wait_until("the words beside the answer", in_sight).await;
    browser.goto(source.as_str().expect("a link")).await;
    browser.wait_until("the words on the page of their source", in_sight).await;
    assert_no_complaints(&browser).await;
    browser.close().await;
}

/// Fails when the page as a whole is wider than the screen, or a column is as narrow as a letter.
async fn assert_fits(browser: &Browser, page: &str) {
    for width in WIDTHS {
        browser.set_size(width, 900).await;
        let needed = browser.script("return document.documentElement.scrollWidth", vec![]).await;
        assert!(needed.as_u64() <= Some(width.into()), "{page} needs {needed} of {width} pixels");
        let narrowest = "return Math.floor(Math.min(...[...document.querySelectorAll('tbody td')]
            .filter((cell) => cell.textContent.trim())
            .map((cell) => cell.getBoundingClientRect().width)))";
        let narrowest = browser.script(narrowest, vec![]).await;
        // Nothing where the page has no table.
        let is_wide = narrowest.is_null() || narrowest.as_u64() >= Some(40);
        assert!(is_wide, "{page}, {width} pixels wide: a column has {narrowest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_below_something_keeps_its_distance() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    service.signed_up("ada@example.com").await;
    sign_in(&browser, &service, "ada@example.com").await;
    for page in ["account", "jobs", "members", "usage"] {
        browser.goto(&format!("{}/{page}", service.base_url())).await;
        let nearest = "return Math.round(Math.min(...[...document.querySelectorAll('main > * + *')].map((block) =>
            block.getBoundingClientRect().top - block.previousElementSibling.getBoundingClientRect().bottom)))";
        let nearest = browser.script(nearest, vec![]).await;
        assert!(nearest.as_i64() >= Some(8), "{page}: {nearest} pixels");
    }
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_names_make_no_page_wider_than_the_screen() {
    let Some(browser) = Browser::start().await else { return };
    let long = "x".repeat(240);
    let folder = tempfile::tempdir().expect("a folder");
    let empty = file(folder.path(), &format!("{long}.txt"), b"");
    let service = Service::start().await;
    let base = service.base_url();
    let email = format!("{}@example.com", "a".repeat(60));
    let owner = service.signed_up(&email).await;
    data(owner.patch("/users/me", &json!({"name": long})).await);
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let origin = format!("https://{}.example.com", "x".repeat(60));
    team.create("/api-tokens", &json!({"description": long, "origins": [origin]})).await;
    let shelf = "What the department of buildings keeps in writing";
    team.create("/collections", &json!({"name": shelf})).await;
    for name in [long.as_str(), "Memo"] {
        team.create_document(&json!({"name": name, "type": "TXT", "content": "A note."})).await;
    }
    sign_in(&browser, &service, &email).await;
    browser.select("#workspace", id(&workspace)).await;
    browser.click_text("button", "Change").await;
    let is_chosen = "document.querySelector('#workspace option[selected]').text === 'Team'";
    browser.wait_until("the workspace", is_chosen).await;

    for page in ["members", "audit", "jobs"] {
        browser.goto(&format!("{base}/{page}")).await;
        browser.wait_for("tbody td").await;
        assert_fits(&browser, page).await;
        for width in WIDTHS {
            browser.set_size(width, 900).await;
            let is_whole = "const { scrollWidth, clientWidth } = document.querySelector('.scroll');
                return scrollWidth <= clientWidth";
            assert_eq!(browser.script(is_whole, vec![]).await, json!(true), "{page}, {width} pixels wide");
        }
    }
    browser.goto(&format!("{base}/tokens")).await;
    browser.wait_for("tbody button").await;
    assert_fits(&browser, "API tokens").await;

    for page in ["documents", "search"] {
        browser.goto(&format!("{base}/{page}")).await;
        browser.wait_for("#collection").await;
        assert_fits(&browser, page).await;
    }

    // What is said at length of a state takes no room from the names.
    browser.goto(&format!("{base}/documents?name=Memo")).await;
    browser.wait_for("tbody [data-label=Name]").await;
    let name = "document.querySelector('[data-label=State]').append(' why'.repeat(200));
        return document.querySelector('[data-label=Name]').getBoundingClientRect().width";
    let name = browser.script(name, vec![]).await;
    assert!(name.as_f64() >= Some(150.0), "{name} pixels");

    browser.goto(&format!("{base}/documents/new")).await;
    browser.upload("#file", &empty).await;
    browser.click("[data-upload] button.main").await;
    let is_refused =
        "document.querySelector('[data-uploads] tbody')?.textContent.includes('must not be empty')";
    browser.wait_until("the refusal", is_refused).await;
    assert!(!browser.exists("[data-uploads] td button").await, "it is as empty the next time");
    assert_fits(&browser, "adding documents").await;
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_400_per_cent_the_screen_is_left_to_what_is_read() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    for name in ["First", "Second", "Third"] {
        owner.create_document(&json!({"name": name, "type": "TXT", "content": "A note."})).await;
    }
    sign_in(&browser, &service, "ada@example.com").await;
    browser.set_size(320, 256).await;
    browser.goto(&format!("{}/agents/{agent}/ask", service.base_url())).await;
    browser.fill("#question", QUESTION).await;
    browser.click(".ask-box .main").await;
    browser.wait_for("[data-answer]").await;
    let in_sight = "(() => {
        const { top } = document.querySelector('.question').getBoundingClientRect();
        const form = document.querySelector('.ask-box').getBoundingClientRect();
        return top >= 0 && top < 64 && form.top >= innerHeight && document.activeElement.id === 'question';
    })()";
    browser.wait_until("the question, with its answer below it", in_sight).await;

    browser.goto(&format!("{}/documents", service.base_url())).await;
    browser.click("tbody input").await;
    let below = "scrollTo(0, document.body.scrollHeight);
        return document.querySelector('.selection').getBoundingClientRect().bottom < 0";
    assert_eq!(browser.script(below, vec![]).await, json!(true), "the list alone");
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_from_right_to_left_is_laid_out_so() {
    const ARABIC: &str = "من كان القبطان الذي أبحر في الطريق من قبل؟";
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let answer = "كان القبطان Solveig Aas [1].\n\nThis is in English.\n\n- البند الأول\n- the second\n";
    model.always(Reply::text(answer));
    let agent = json!({"name": "Guide", "type": "CHATVENDOR", "llm": model.llm("clockwork")});
    let agent = id(&owner.create_agent(&agent).await).to_owned();
    let report = json!({"name": "Report", "type": "TXT", "content": format!("{ARABIC} Solveig Aas.")});
    owner.link(&agent, id(&owner.ingest(&report).await)).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/agents/{agent}/ask", service.base_url())).await;
    browser.fill("#question", ARABIC).await;
    browser
        .wait_until(
            "the direction of the question",
            "getComputedStyle(document.querySelector('#question')).direction === 'rtl'",
        )
        .await;
    browser.click(".ask-box .main").await;
    browser.wait_for("[data-answer] .answer li + li").await;
    let sides = "const sideOf = (css) => {
            const block = document.querySelector(css);
            const range = document.createRange();
            range.selectNodeContents(block);
            const [text, all] = [range.getBoundingClientRect(), block.getBoundingClientRect()];
            return text.left - all.left > all.right - text.right ? 'right' : 'left';
        };
        return ['.question', '.answer p', '.answer p + p', '.answer li', '.answer li + li'].map(sideOf)";
    // Items of a list stay beside their marks.
    assert_eq!(
        browser.script(sides, vec![]).await,
        json!(["right", "right", "left", "right", "right"]),
        "the side that each begins at"
    );
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_in_two_scripts_is_written_in_the_direction_that_it_begins_with() {
    const NAME: &str = "مساعد (HR)";
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    data(owner.patch("/users/me", &json!({"name": NAME})).await);
    let workspace = owner.create("/workspaces", &json!({"name": NAME})).await;
    let team = owner.in_workspace(id(&workspace));
    let (agent, document) = agent_with_report(&team).await;
    data(team.patch(&format!("/agents/{agent}"), &json!({"name": NAME, "description": NAME})).await);
    let shelf = team.create("/collections", &json!({"name": NAME, "description": NAME})).await;
    data(team.patch(&format!("/documents/{document}"), &json!({"name": NAME})).await);
    team.create("/api-tokens", &json!({"description": NAME})).await;
    team.create("/prompts", &json!({"name": NAME, "template": "Be brief.", "input_variables": []})).await;
    browser.set_size(1_280, 900).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.select("#workspace", id(&workspace)).await;
    browser.click_text("button", "Change").await;
    let is_chosen = format!("document.querySelector('#workspace option[selected]').text === '{NAME}'");
    browser.wait_until("the workspace", &is_chosen).await;
    let (agent, shelf) = (format!("agents/{agent}"), format!("collections/{}", id(&shelf)));
    let (ask, document) = (format!("{agent}/ask"), format!("documents/{document}"));
    let pages =
        ["", "account", "agents", "collections", "documents", "members", "prompts", "tokens", "usage"];
    for page in pages.into_iter().chain([&agent, &ask, &document, &shelf].map(String::as_str)) {
        browser.goto(&format!("{}/{page}", service.base_url())).await;
        browser.wait_for("main h1").await;
        // Where the Latin letters stand beside the first one of each name that stands by itself.
        let sides = "const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const left = (node, at) => {
                const range = document.createRange();
                range.setStart(node, at);
                range.setEnd(node, at + 1);
                return range.getBoundingClientRect().left;
            };
            const sides = [];
            while (walker.nextNode()) {
                const { currentNode: node } = walker;
                if (node.data.trim() !== arguments[0] || node.parentElement.matches('option, textarea, .hidden-text')) continue;
                const begin = node.data.indexOf(arguments[0]);
                sides.push(left(node, node.data.indexOf('H')) < left(node, begin));
            }
            return [sides.length > 1, sides.every(Boolean)]";
        let written = browser.script(sides, vec![json!(NAME)]).await;
        assert_eq!(written, json!([true, true]), "{page}");
    }
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_line_is_said_at_the_field_that_it_stands_in() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/agents/{agent}/publish", service.base_url())).await;
    browser.fill("#slug", "guide").await;
    browser.fill("#origins", "first\n\nhttps://www.example.com\nthird").await;
    browser.click("form[data-form] > button.main").await;
    browser.wait_for("#origins[aria-invalid='true']").await;
    let said = browser.text("#origins-wrong").await;
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    for (line, begin) in lines.iter().zip(["“first” must be an origin", "“third” must be an origin"])
    {
        assert!(line.starts_with(begin), "{said}");
    }
    assert!(!browser.text(".problem").await.contains("origins"), "it is not said at the head");
    browser.wait_until("the field", "document.activeElement.id === 'origins'").await;

    // So is what is wrong inside of a field that is JSON.
    browser.goto(&format!("{}/tools", service.base_url())).await;
    browser.fill("#name", "sums").await;
    browser.script("document.querySelector('#type').value = 'COMPUTE_ALPHA'", vec![]).await;
    browser.fill("#description", "It does sums.").await;
    browser.fill("#metadata", "{}").await;
    browser.click_text("button", "Make it").await;
    browser.wait_for("#metadata[aria-invalid='true']").await;
    assert_eq!(browser.text("#metadata-wrong").await, "app_id is required");
    browser.wait_until("the field", "document.activeElement.id === 'metadata'").await;
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_last_is_in_sight_and_a_source_is_opened_without_losing_ones_place() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/agents/{agent}/ask", service.base_url())).await;
    for number in 1..=4 {
        browser.fill("#question", QUESTION).await;
        browser.click("[data-ask] .main").await;
        let answered = format!("document.querySelectorAll('[data-answer]').length === {number}");
        browser.wait_until("the answer", &answered).await;
        let in_sight = "(() => {
            const asked = [...document.querySelectorAll('.question')].at(-1).getBoundingClientRect();
            return asked.top >= 0 && asked.bottom <= document.querySelector('.ask-box').getBoundingClientRect().top;
        })()";
        browser.wait_until("the question, above the next one", in_sight).await;
    }
    // What gets the focus is not below the form.
    let uncovered = "(() => {
        const marks = [...document.querySelectorAll('.cite')];
        window.scrollTo(0, 0);
        return marks.every((mark) => {
            mark.focus();
            const form = document.querySelector('.ask-box').getBoundingClientRect();
            return mark.getBoundingClientRect().bottom <= form.top;
        });
    })()";
    assert_eq!(browser.script(&format!("return {uncovered}"), vec![]).await, json!(true));
    // The source of the last answer is open, and then that of the first one, which is being read.
    browser.script("[...document.querySelectorAll('.cite')].at(-1).click()", vec![]).await;
    browser.wait_for(".source mark").await;
    let first = "document.querySelector('.cite')";
    browser.script(&format!("{first}.scrollIntoView({{block: 'center'}}); {first}.click()"), vec![]).await;
    browser.wait_until("the first source", &format!("{first}.ariaExpanded === 'true'")).await;
    browser.wait_for(".source mark").await;
    let place =
        format!("(({{top, bottom}}) => top >= 0 && bottom <= innerHeight)({first}.getBoundingClientRect())");
    assert_eq!(browser.script(&format!("return {place}"), vec![]).await, json!(true));
    assert_no_complaints(&browser).await;
    browser.close().await;
}
