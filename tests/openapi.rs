//! The OpenAPI document: that it says everything, and nothing that is not so.

mod answers;
mod cors;
mod pages;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use serde_json::{Value, json};

use self::schema::Schemas;
use crate::support::{
    client::{Client, send},
    service::Service,
};

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi/openapi.json");
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const JSON: &str = "application/json";
/// An id that nothing has.
const NOBODYS: &str = "019a8f40-9b1c-7d55-8e02-000000000000";

fn document() -> Value {
    serde_json::to_value(lectern_api::document()).expect("JSON")
}

/// An operation as the document describes it.
struct Operation<'a> {
    method: Method,
    path: &'a str,
    id: &'a str,
    described: &'a Value,
    document: &'a Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, described) in item.as_object().expect("operations") {
            assert!(METHODS.contains(&method.as_str()), "{method} of {path} is no operation");
            let method = method.to_uppercase().parse().expect("a method");
            let id = described["operationId"].as_str().unwrap_or_else(|| panic!("{method} {path} has no id"));
            found.push(Operation { method, path, id, described, document });
        }
    }
    assert!(found.len() > 10, "so few operations prove nothing");
    found
}

impl<'a> Operation<'a> {
    fn is_public(&self) -> bool {
        self.described.get("security").is_some_and(|security| security.as_array().expect("a list").is_empty())
    }

    fn has_parameter(&self, name: &str) -> bool {
        let parameters = self.described["parameters"].as_array();
        parameters.is_some_and(|parameters| parameters.iter().any(|parameter| parameter["name"] == name))
    }

    fn response(&self, status: &str) -> Option<&'a Value> {
        self.described["responses"].get(status).map(|response| Schemas(self.document).resolve(response))
    }

    /// Whether it answers OpenAI's clients, in their form.
    fn is_in_openai_form(&self) -> bool {
        self.path.starts_with("/v1/")
    }

    /// The path with an id that nobody has in the place of each of its ids.
    fn path_of_nothing(&self) -> String {
        let part = |part: &'a str| if part.starts_with('{') { NOBODYS } else { part };
        self.path.split('/').map(part).collect::<Vec<&str>>().join("/")
    }

    /// A request with a body of the kind that it takes, if it takes one. The bearer token comes from `client`, if it has one.
    fn request(&self, client: &Client, query: &str, body: &str) -> RequestBuilder {
        let contents = self.described["requestBody"]["content"].as_object();
        let kind = contents.and_then(|contents| contents.keys().next());
        let request = self.without_body(client, query);
        match kind.map(String::as_str) {
            None => request,
            Some(JSON) => request.header(CONTENT_TYPE, JSON).body(body.to_owned()),
            Some("multipart/form-data") => {
                request.header(CONTENT_TYPE, "multipart/form-data; boundary=x").body("--x--\r\n")
            }
            Some(kind) => panic!("{}: {kind} is not tested yet", self.id),
        }
    }

    fn without_body(&self, client: &Client, query: &str) -> RequestBuilder {
        client.request_anywhere(self.method.clone(), &format!("{}{query}", self.path_of_nothing()))
    }

    /// Sends a request, and fails when the answer is not one that the document tells of.
    async fn send(&self, request: RequestBuilder) -> (StatusCode, Value) {
        let answer = send(request).await;
        let status = answer.status();
        let about = format!("{status} from {} ({} {})", self.id, self.method, self.path);
        let described = self.response(status.as_str()).unwrap_or_else(|| panic!("{about} is not described"));
        for (name, header) in described["headers"].as_object().into_iter().flatten() {
            let always = name == "x-request-id" || (name == "Retry-After" && status == 429);
            assert!(!always || answer.headers().contains_key(name), "{about} has no {name}: {header}");
        }
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().to_owned();
        let content = &described["content"][&kind];
        assert!(content.is_object(), "{about} has the undocumented type {kind:?}");
        // A stream that is not read to its end is given up, and leaves nothing.
        let body = answer.bytes().await.expect("a body");
        if kind != JSON {
            return (status, Value::Null);
        }
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let problems = Schemas(self.document).problems(&content["schema"], &body);
        assert!(problems.is_empty(), "{about}: {problems:#?}");
        (status, body)
    }
}

/// Whether an answer names a wrong field or parameter.
fn names(body: &Value, path: &str) -> bool {
    if body["error"]["param"] == path {
        return true;
    }
    let fields = body["error"]["fields"].as_array();
    fields.is_some_and(|fields| fields.iter().any(|field| field["path"] == path))
}

/// A user whose credentials outlast a sign-out.
async fn somebody(service: &Service) -> Client {
    let user = service.signed_up("ada@example.com").await;
    let token = user.create("/api-tokens", &json!({ "description": "for every operation" })).await;
    user.with_token(token["token"].as_str().expect("the token's value"))
}

// --- the document by itself ------------------------------------------------------------------------------------------

/// Every change of the interface shows in the difference of this file. Write it anew with
/// `UPDATE_OPENAPI=1 cargo test --test e2e openapi::the_document_is_the_one_that_was_reviewed`.
#[test]
fn the_document_is_the_one_that_was_reviewed() {
    let mut made = serde_json::to_string_pretty(&document()).expect("JSON");
    made.push('\n');
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(SNAPSHOT, &made).expect("a file that can be written");
    }
    let reviewed = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    let pairs = made.lines().zip(reviewed.lines()).enumerate();
    let differs =
        pairs.filter(|(_, (made, reviewed))| made != reviewed).map(|(line, pair)| (line + 1, pair)).next();
    assert!(
        made == reviewed,
        "the interface is not as tests/openapi/openapi.json says; the first difference is {differs:?}. \
         If it is meant to be so, run this test with UPDATE_OPENAPI=1"
    );
}

#[test]
fn every_operation_has_a_name_a_summary_a_group_and_an_example() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let tags = document["tags"].as_array().expect("tags");
    let tags: BTreeSet<_> = tags.iter().map(|tag| tag["name"].as_str().expect("a name")).collect();
    let mut ids = BTreeSet::new();
    for operation in operations(&document) {
        let Operation { id, described, .. } = operation;
        assert!(ids.insert(id), "two operations are called {id}");
        let summary = described["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty() && !summary.ends_with('.'), "the summary of {id} is {summary:?}");
        assert!(described["description"].is_string(), "{id} has no description");
        let groups = described["tags"].as_array().expect("tags");
        assert!(
            groups.len() == 1 && tags.contains(groups[0].as_str().expect("a name")),
            "{id} is in {groups:?}"
        );
        let success = operation.response("200").or_else(|| operation.response("302"));
        let success = success.unwrap_or_else(|| panic!("{id} never succeeds"));
        let contents = success["content"].as_object();
        assert!(contents.is_some() || operation.response("302").is_some(), "{id} answers nothing");
        for (kind, content) in contents.into_iter().flatten() {
            let binary = content["schema"]["format"] == "binary"
                || kind == "*/*"
                || kind == "application/octet-stream";
            assert!(binary || content.get("example").is_some(), "{id} has no example of {kind}");
        }
        for (kind, content) in described["requestBody"]["content"].as_object().into_iter().flatten() {
            assert!(content.get("example").is_some(), "{id} has no example of its body ({kind})");
        }
        for parameter in described["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{id} does not explain {}", parameter["name"]);
        }
        for name in operation.path.split('/').filter_map(|part| part.strip_prefix('{')) {
            assert!(operation.has_parameter(name.trim_end_matches('}')), "{id} does not describe {name}");
        }
    }
}

#[test]
fn every_example_is_what_its_schema_says() {
    let document = document();
    let schemas = Schemas(&document);
    let check = |about: &str, content: &Value| {
        for (kind, content) in content.as_object().into_iter().flatten().filter(|(kind, _)| *kind == JSON) {
            if let Some(example) = content.get("example") {
                let problems = schemas.problems(&content["schema"], example);
                assert!(problems.is_empty(), "the example of {about} ({kind}): {problems:#?}");
            }
        }
    };
    for operation in operations(&document) {
        check(operation.id, &operation.described["requestBody"]["content"]);
        for (status, response) in operation.described["responses"].as_object().expect("responses") {
            check(&format!("{} {status}", operation.id), &schemas.resolve(response)["content"]);
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk<'a>(value: &'a Value, schemas: Schemas<'a>) {
        match value {
            Value::Object(object) => {
                schemas.resolve(value);
                // What is inside an example is no reference.
                object
                    .iter()
                    .filter(|(key, _)| *key != "example")
                    .for_each(|(_, value)| walk(value, schemas));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, schemas)),
            _ => {}
        }
    }
    let document = document();
    walk(&document, Schemas(&document));
    let known = document["components"]["securitySchemes"].as_object().expect("credentials");
    let of_operations = operations(&document);
    let of_operations =
        of_operations.iter().filter_map(|operation| operation.described["security"].as_array());
    for security in of_operations.chain(document["security"].as_array()) {
        for name in security.iter().flat_map(|scheme| scheme.as_object().expect("an object").keys()) {
            assert!(known.contains_key(name), "{name} is no kind of credentials");
        }
    }
    assert_eq!(known["autorization"]["name"], "Autorization");
    assert_eq!(known["apiToken"]["name"], "X_SERVICE_API_KEY");
}

// --- the document and the service ------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn a_path_takes_the_methods_that_are_described_and_no_other() {
    let service = Service::start().await;
    let document = document();
    let mut expected: BTreeMap<&str, (String, BTreeSet<String>)> = BTreeMap::new();
    for operation in operations(&document) {
        let (_, methods) =
            expected.entry(operation.path).or_insert_with(|| (operation.path_of_nothing(), BTreeSet::new()));
        methods.insert(operation.method.to_string());
        if operation.method == Method::GET {
            methods.insert("HEAD".to_owned());
        }
    }
    let unheard_of = Method::from_bytes(b"PROPFIND").expect("a method");
    for (path, (sent, methods)) in expected {
        let answer = send(service.client().request_outside(unheard_of.clone(), &sent)).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        let allow = answer.headers()[ALLOW].to_str().expect("text");
        let served: BTreeSet<_> = allow.split(',').map(|method| method.trim().to_owned()).collect();
        assert_eq!(served, methods, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_is_the_document() {
    let service = Service::start().await;
    let answer = send(service.client().request_outside(Method::GET, "/openapi.json")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()[CONTENT_TYPE], JSON);
    let served: Value = serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
    assert_eq!(served, document());
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_asked_for_where_the_document_says_so() {
    let service = Service::start().await;
    let (stranger, document) = (service.client(), document());
    for operation in operations(&document) {
        let (status, _) = operation.send(operation.request(&stranger, "", "{}")).await;
        let asked = status == StatusCode::UNAUTHORIZED;
        assert_eq!(asked, !operation.is_public(), "{status} from {}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_in_may_name_a_workspace_and_one_of_nobodys_is_not_found() {
    let service = Service::start().await;
    let (ada, document) = (service.signed_up("ada@example.com").await.in_workspace(NOBODYS), document());
    for operation in operations(&document) {
        assert_eq!(operation.has_parameter("X-Workspace"), !operation.is_public(), "{}", operation.id);
        if !operation.is_public() {
            // A role or a token that does not reach is told everywhere, too.
            assert!(operation.response("403").is_some(), "{}", operation.id);
            let (status, _) = operation.send(operation.request(&ada, "", "{}")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{}", operation.id);
        }
    }
}

/// Caches know one of the headers that credentials are read from, and give what came with the others to whoever asks next.
#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_for_a_cache_that_serves_many() {
    let service = Service::start().await;
    let (user, stranger, document) = (somebody(&service).await, service.client(), document());
    let kept_as = async |request: RequestBuilder| {
        let answer = send(request).await;
        assert_eq!(answer.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff", "no browser is to guess what it is");
        let kept = answer.headers().get(CACHE_CONTROL).map(|kept| kept.to_str().expect("text").to_owned());
        (answer.status(), kept.unwrap_or_default())
    };
    for operation in operations(&document) {
        for client in [&user, &stranger] {
            let (status, kept) = kept_as(operation.request(client, "", "{}")).await;
            assert_eq!(kept, "private, no-store", "{status} from {}", operation.id);
        }
    }
    for path in ["/api/v1/documents", "/v1/models", "/admin/jobs", "/api/v1/nothing", "/mcp"] {
        let bearer = format!("Bearer {}", user.token());
        let request = stranger.request_outside(Method::GET, path).header("Autorization", bearer);
        let (status, kept) = kept_as(request).await;
        assert_eq!(kept, "private, no-store", "{status} from {path}");
    }
    let (_, kept) = kept_as(stranger.request_outside(Method::GET, "/openapi.json")).await;
    assert_eq!(kept, "no-cache", "what is everybody's keeps its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_found_where_an_id_is_in_the_path() {
    let service = Service::start().await;
    let (user, document) = (somebody(&service).await, document());
    for operation in operations(&document) {
        let takes_no_body = operation.described.get("requestBody").is_none();
        if takes_no_body && operation.path.contains('{') {
            let (status, _) = operation.send(operation.request(&user, "", "")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_json_is_refused_as_described() {
    let service = Service::start().await;
    let (user, document) = (somebody(&service).await, document());
    for operation in operations(&document) {
        if operation.described["requestBody"]["content"].get(JSON).is_some() {
            let (status, _) = operation.send(operation.request(&user, "", "{")).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{}", operation.id);
            let request = operation.without_body(&user, "").header(CONTENT_TYPE, "text/plain").body("{}");
            let (status, _) = operation.send(request).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_comes_in_pages_where_the_document_says_so() {
    let service = Service::start().await;
    let (user, document) = (somebody(&service).await, document());
    let mut pages = 0;
    for operation in operations(&document) {
        if operation.method != Method::GET {
            assert!(!operation.has_parameter("limit"), "{}", operation.id);
            continue;
        }
        let (_, body) = operation.send(operation.request(&user, "?limit=0", "")).await;
        assert_eq!(names(&body, "limit"), operation.has_parameter("limit"), "{}", operation.id);
        let cursor = if operation.is_in_openai_form() { "after" } else { "cursor" };
        assert_eq!(operation.has_parameter(cursor), operation.has_parameter("limit"), "{}", operation.id);
        pages += usize::from(operation.has_parameter("limit"));
        if operation.response("200").is_some_and(|response| response["content"].get(JSON).is_some()) {
            let success = &operation.response("200").expect("a success")["content"][JSON]["schema"];
            let next = if operation.is_in_openai_form() { "last_id" } else { "nextCursor" };
            let has_cursor = Schemas(&document).resolve(success)["properties"].get(next).is_some();
            assert_eq!(has_cursor, operation.has_parameter("limit"), "{}", operation.id);
        }
    }
    assert!(pages > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_can_be_sent_again_where_the_document_says_so() {
    let service = Service::start().await;
    let (user, document) = (somebody(&service).await, document());
    let too_long = "k".repeat(256);
    let mut keyed = 0;
    for operation in operations(&document).iter().filter(|operation| operation.method == Method::POST) {
        let request = operation.request(&user, "", "{}").header("Idempotency-Key", &too_long);
        let (_, body) = operation.send(request).await;
        let documented = operation.has_parameter("Idempotency-Key");
        assert_eq!(names(&body, "Idempotency-Key"), documented, "{}: {body:#}", operation.id);
        keyed += usize::from(documented);
    }
    assert!(keyed > 0);
}
