//! What holds for every operation, tried on every operation: the list is the service's own description of itself, and how
//! to make a request of each is a row in [`rows`]. An operation without a row fails here by its name.

mod credentials;
pub mod rows;
mod tenancy;
pub mod things;

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use self::rows::{Body, Row, rows};
use crate::support::{
    client::{Client, send},
    service::Service,
};

/// An operation as the service describes it.
pub struct Operation {
    /// Such as `GET /documents/{}`: its method and path, whose parameters have no names.
    pub name: String,
    /// Whether it wants credentials.
    pub secured: bool,
    /// Whether it takes an API token in its own header.
    pub takes_api_token: bool,
    /// The names of its query parameters.
    pub query: Vec<String>,
    /// The names of all fields of its JSON body, at any depth, if it takes one.
    pub fields: Option<BTreeSet<String>>,
}

/// Operations that need more than a service, a provider of OpenID Connect or an embedding model, and take no ids: `tests/oidc` and
/// `tests/openai` try them.
const TRIED_ELSEWHERE: [&str; 4] =
    ["GET /auth/oidc", "GET /auth/oidc/callback", "POST /auth/oidc/token", "POST /v1/embeddings"];

/// Every operation of a running service.
pub async fn operations(client: &Client) -> Vec<Operation> {
    let answer = send(client.request_outside(Method::GET, "/openapi.json")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let document: Value = answer.json().await.expect("the description in JSON");
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, described) in item.as_object().expect("operations") {
            found.push(Operation::read(&document, path, method, described));
        }
    }
    assert!(found.len() > 30, "so few operations prove nothing");
    found
}

impl Operation {
    fn read(document: &Value, path: &str, method: &str, described: &Value) -> Self {
        let security = described.get("security").unwrap_or(&document["security"]);
        let security = security.as_array().expect("a list of credentials");
        let parameters = described["parameters"].as_array().into_iter().flatten();
        let in_query = parameters.filter(|parameter| parameter["in"] == "query");
        let name = |parameter: &Value| parameter["name"].as_str().expect("a name").to_owned();
        let json = described["requestBody"]["content"].get("application/json");
        let method: Method = method.to_uppercase().parse().expect("a method");
        let part = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
        let path: Vec<String> = path.trim_start_matches("/api/v1").split('/').map(part).collect();
        Self {
            name: format!("{method} {}", path.join("/")),
            secured: !security.is_empty(),
            takes_api_token: security.iter().any(|alternative| alternative.get("apiToken").is_some()),
            query: in_query.map(name).collect(),
            fields: json.map(|content| {
                let mut fields = BTreeSet::new();
                collect_fields(document, &content["schema"], &mut fields, 16);
                fields
            }),
        }
    }
}

/// Collects the names of the fields that a schema describes, at any depth.
fn collect_fields(document: &Value, schema: &Value, fields: &mut BTreeSet<String>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match schema {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                let target = document.pointer(reference.trim_start_matches('#'));
                collect_fields(document, target.expect("a schema that is there"), fields, depth);
            }
            for name in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
                fields.insert(name.0.clone());
            }
            object.values().for_each(|inner| collect_fields(document, inner, fields, depth));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_fields(document, item, fields, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a field or parameter names another thing.
fn is_id(name: &str) -> bool {
    // The id of an account elsewhere is nobody's here.
    name != "accessKeyId" && (name.ends_with("Id") || name.ends_with("Ids") || name == "tags")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_a_row_and_every_row_an_operation() {
    let service = Service::start().await;
    let operations = operations(&service.client()).await;
    let names: BTreeSet<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
    let rows = rows();
    let covered: Vec<String> = rows.iter().map(Row::operation).collect();
    let covered: BTreeSet<&str> = covered.iter().map(String::as_str).collect();
    let is_elsewhere = |name: &&&str| TRIED_ELSEWHERE.contains(*name);
    let missing: Vec<_> = names.difference(&covered).filter(|name| !is_elsewhere(name)).collect();
    assert!(missing.is_empty(), "add a row to tests/matrix/rows.rs for each of these: {missing:#?}");
    let stale: Vec<_> = covered.difference(&names).collect();
    assert!(stale.is_empty(), "tests/matrix/rows.rs has rows for what is no operation: {stale:#?}");
}

/// An id that no row sends is one that the matrix of users says nothing about.
#[tokio::test(flavor = "multi_thread")]
async fn every_id_that_an_operation_takes_is_in_a_row() {
    let service = Service::start().await;
    let rows = rows();
    for operation in operations(&service.client()).await {
        let own: Vec<_> = rows.iter().filter(|row| row.operation() == operation.name).collect();
        // Pages and versions are named by their numbers, which are nobody's.
        let in_path = operation.name.replace("pages/{}", "").replace("versions/{}", "").matches("{}").count();
        assert!(own.iter().all(|row| row.path_nouns() == in_path), "{}: its path", operation.name);
        for name in operation.query.iter().filter(|name| is_id(name)) {
            let sent = own.iter().any(|row| row.target.contains(&format!("{name}=<")));
            assert!(sent, "{}: no row sends the parameter {name}", operation.name);
        }
        for name in operation.fields.iter().flatten().filter(|name| is_id(name)) {
            let sent =
                own.iter().any(|row| matches!(&row.body, Body::Json(body) if names_a_thing(body, name)));
            assert!(sent, "{}: no row sends {name}", operation.name);
        }
    }
}

/// Whether a body has this field, at any depth, and names something of the user's in it.
fn names_a_thing(body: &Value, field: &str) -> bool {
    match body {
        Value::Object(object) => object.iter().any(|(name, value)| {
            (name == field && value.to_string().contains("\"<")) || names_a_thing(value, field)
        }),
        Value::Array(items) => items.iter().any(|item| names_a_thing(item, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
