//! The dashboard: what its pages promise to every browser, and the ways of the three kinds of people through it.

mod accounts;
mod agents;
mod answers;
mod asked;
mod browsers;
mod choices;
mod conversations;
mod documents;
mod edits;
mod evaluations;
mod following;
mod forms;
mod languages;
mod layout;
mod pages;
mod people;
mod published;
mod said;
mod screenshots;
mod sources;
mod values;

use std::path::Path;

use reqwest::{
    Method, Response, StatusCode,
    header::{COOKIE, HeaderMap, LOCATION, ORIGIN, SET_COOKIE},
};
use serde_json::json;

use crate::support::{
    browser::Browser,
    client::{Client, PASSWORD, id, send},
    command::upload,
    pdf::pdf_with_pages,
    service::Service,
};

const PAGES: [&str; 3] = [
    "Chapter one. The expedition left Bergen in the spring of 1911.",
    "Chapter two. Its captain, Solveig Aas, had sailed the route twice before.",
    "Chapter three. The ship returned with four hundred specimens of moss.",
];
/// What scripts add to a form when somebody has answered its question, and the page in between where there are none.
const CONFIRMED: (&str, &str) = ("confirmed", "yes");
const QUESTION: &str = "Which captain had sailed the route before?";

/// The settings that all of these tests need nothing else than.
async fn service() -> Service {
    Service::start().await
}

/// A person's browser as far as a server sees it: its cookies, and where its pages say that they come from.
pub(crate) struct Visits<'a> {
    client: &'a Client,
    origin: String,
    cookies: String,
}

impl<'a> Visits<'a> {
    pub(crate) fn new(service: &Service, client: &'a Client) -> Self {
        Self { client, origin: service.base_url(), cookies: String::new() }
    }

    async fn get(&self, path: &str) -> Response {
        send(self.client.request_outside(Method::GET, path).header(COOKIE, &self.cookies)).await
    }

    /// Sends a form, and keeps the cookies that come back.
    pub(crate) async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.client.request_outside(Method::POST, path).body(body);
        let form = "application/x-www-form-urlencoded";
        let request = request.header("content-type", form).header(COOKIE, &self.cookies);
        let answer = send(request.header(ORIGIN, &self.origin)).await;
        for cookie in cookies(answer.headers()) {
            let pair = cookie.split(';').next().expect("a pair").to_owned();
            let name = pair.split('=').next().expect("a name").to_owned();
            let others = self.cookies.split("; ").filter(|other| !other.starts_with(&format!("{name}=")));
            let kept = others.filter(|other| !other.is_empty()).map(str::to_owned).chain([pair]);
            self.cookies = kept.collect::<Vec<_>>().join("; ");
        }
        answer
    }

    pub(crate) async fn sign_in(&mut self, email: &str) {
        let answer = self.submit("/sign-in", &[("email", email), ("password", PASSWORD)]).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{email}");
    }
}

fn cookies(headers: &HeaderMap) -> Vec<String> {
    headers.get_all(SET_COOKIE).iter().map(|value| value.to_str().expect("text").to_owned()).collect()
}

fn location(answer: &Response) -> &str {
    answer.headers()[LOCATION].to_str().expect("text")
}

/// The forms that are about no workspace, or about which one it is.
const FORMS_OF_NO_WORKSPACE: [&str; 7] = [
    "workspace",
    "workspaces",
    "invitations",
    "account",
    "account/sign-out-everywhere",
    "account/delete",
    "sign-out",
];

/// The addresses from the root that the forms of a page are sent to.
fn form_addresses(html: &str) -> Vec<String> {
    let tags = html.split("<form ").skip(1).map(|rest| rest.split('>').next().expect("its end"));
    let address = |tag: &str| {
        let action = tag.split("action=\"").nth(1).and_then(|rest| rest.split('"').next());
        action.expect("an address").trim_start_matches("../").to_owned()
    };
    tags.filter(|tag| tag.contains("method=\"post\"")).map(address).collect()
}

/// Fails when a form of a page would change something in whichever workspace its reader has changed to meanwhile.
fn assert_forms_name(workspace: &str, page: &str, html: &str) {
    let named = format!("?page-workspace={workspace}");
    let also = format!("{named}&");
    for address in form_addresses(html) {
        let is_exempt = FORMS_OF_NO_WORKSPACE.contains(&address.as_str());
        let names =
            address.ends_with(&named) || address.replace("&#38;", "&").replace("&amp;", "&").contains(&also);
        assert!(is_exempt || names, "{page}: {address}");
    }
}

/// An agent that quotes the report, which is linked to it.
async fn agent_with_report(client: &Client) -> (String, String) {
    let document = upload(client, "report.pdf", &pdf_with_pages(&PAGES)).await;
    client.wait_until_ingested(id(&document)).await;
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let agent = client.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR", "llm": llm})).await;
    client.link(id(&agent), id(&document)).await;
    (id(&agent).to_owned(), id(&document).to_owned())
}

/// Signs in with the form, as a person does.
async fn sign_in(browser: &Browser, service: &Service, email: &str) {
    browser.goto(&format!("{}/sign-in", service.base_url())).await;
    browser.fill("#email", email).await;
    browser.fill("#password", PASSWORD).await;
    browser.click("button.main").await;
    browser.wait_for("nav").await;
}

/// A file with these bytes, for a browser to choose.
fn file(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

/// Fails when the browser noted anything besides refusals that the test provokes.
async fn assert_no_complaints(browser: &Browser) {
    let complaints = browser.console().await;
    let unexpected: Vec<_> =
        complaints.iter().filter(|line| !line.contains("Failed to load resource")).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}
