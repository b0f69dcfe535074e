//! What a document, a redirect or a server's answer cannot bring about.

use lectern_shared::model::tool::ToolType::OpenApi;
use serde_json::{Value, json};

use super::{
    super::{OpenedTool, ToolError},
    pets::{THREE, TWO},
    support::*,
};

const REFUSED: &str =
    "could not be reached: it does not answer, or it is not at an address that is open to users.";

fn document(servers: &Value) -> String {
    json!({"openapi": "3.1.0", "servers": servers, "paths": {"/x": {"get": {"operationId": "get"}}}})
        .to_string()
}

/// A tool whose toolbox may reach 127.0.0.9 alone.
async fn narrow(metadata: Value) -> OpenedTool {
    toolbox("127.0.0.9").open(&stored(OpenApi, "My tool", metadata), soon()).await
}

async fn refused(opened: &OpenedTool, subject: &str) {
    let error = call(opened, 0, json!({})).await.unwrap_err().to_string();
    assert!(error.starts_with(subject) && error.ends_with(REFUSED), "{error}");
    for address in ["169.254", "10.0.0.1", "localhost"] {
        assert!(!error.contains(address), "{error}");
    }
}

#[tokio::test]
async fn a_document_is_not_fetched_from_inside() {
    let document = "The OpenAPI document could not be fetched: its server ";
    for address in [
        "http://169.254.169.254/latest",
        "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://0xa9fea9fe/",
    ] {
        refused(&narrow(json!({"openApiUrl": address})).await, document).await;
    }
    // By its name, which resolves to an address that is not open.
    let secret = Site::new(|_| text(200, THREE)).await;
    let by_name = secret.base.replace("127.0.0.1", "localhost");
    refused(&narrow(json!({"openApiUrl": by_name})).await, document).await;
    // By a redirect.
    for target in [
        "http://169.254.169.254/latest".to_owned(),
        "http://10.0.0.1/".to_owned(),
        by_name,
        secret.base.clone(),
    ] {
        let site = Site::at("127.0.0.9", move |_| Reply::To(302, target.clone())).await;
        refused(&narrow(json!({"openApiUrl": site.base})).await, document).await;
    }
    assert!(secret.seen().is_empty());
}

#[tokio::test]
async fn an_api_is_not_asked_inside_whatever_the_document_says() {
    let secret = Site::new(|_| text(200, "the inside")).await;
    let by_name = secret.base.replace("127.0.0.1", "localhost");
    let mut documents: Vec<String> = [
        "http://169.254.169.254",
        "http://10.0.0.1/v1",
        "//169.254.169.254/",
        "http://0251.0376.0251.0376/",
        by_name.as_str(),
        secret.base.as_str(),
    ]
    .into_iter()
    .map(|url| document(&json!([{"url": url}])))
    .collect();
    documents.push(document(
        &json!([{"url": "http://{host}/", "variables": {"host": {"default": "169.254.169.254"}}}]),
    ));
    documents.push(TWO.replace("HOST", "169.254.169.254"));
    documents.push(TWO.replace("HOST", by_name.trim_start_matches("http://")));
    for document in documents {
        let document = document.clone();
        let site = Site::at("127.0.0.9", move |_| text(200, &document)).await;
        let opened = narrow(json!({"openApiUrl": site.base, "operations": ["get", "getPet"]})).await;
        let arguments = json!({"path": {"petId": "1"}});
        let arguments =
            if opened.tool.functions()[0].spec.name.ends_with("getPet") { arguments } else { json!({}) };
        let error = call(&opened, 0, arguments).await.unwrap_err();
        assert_eq!(error, failure(&format!("The API {REFUSED}")));
    }
    assert!(secret.seen().is_empty());
}

#[tokio::test]
async fn an_api_that_redirects_inside_is_not_followed() {
    let secret = Site::new(|_| text(200, "the inside")).await;
    let by_name = secret.base.replace("127.0.0.1", "localhost");
    for target in
        ["http://169.254.169.254/".to_owned(), "http://10.0.0.1/".to_owned(), by_name, secret.base.clone()]
    {
        let document = document(&json!([{"url": "/"}]));
        let site = Site::at("127.0.0.9", move |seen| {
            if seen.line == "GET /x" { Reply::To(302, target.clone()) } else { text(200, &document) }
        })
        .await;
        refused(&narrow(json!({"openApiUrl": format!("{}/doc", site.base)})).await, "The API ").await;
    }
    assert!(secret.seen().is_empty());
}

#[tokio::test]
async fn the_owners_headers_go_to_one_origin_only() {
    let thief = Site::new(|_| json(&json!({}))).await;
    let headers = json!({"Authorization": format!("Bearer {KEY}")});
    // Named by the document.
    let other = document(&json!([{"url": thief.base}]));
    let site = Site::new(move |_| text(200, &other)).await;
    let opened = open(OpenApi, json!({"openApiUrl": site.base, "headers": headers})).await;
    let error = call(&opened, 0, json!({})).await.unwrap_err().to_string();
    assert!(error.contains("another origin") && error.contains("`base_url`"), "{error}");
    // Named by one operation among others.
    let mixed = json!({
        "openapi": "3.1.0",
        "paths": {
            "/here": {"get": {"operationId": "here"}},
            "/there": {"get": {"operationId": "there", "servers": [{"url": thief.base}]}},
        },
    });
    let site =
        Site::new(move |seen| if seen.line == "GET /doc" { json(&mixed) } else { json(&json!({})) }).await;
    let metadata = json!({"openApiUrl": format!("{}/doc", site.base), "headers": headers});
    let opened = open(OpenApi, metadata).await;
    call(&opened, function(&opened, "my_tool_here").0, json!({})).await.unwrap();
    let error = call(&opened, function(&opened, "my_tool_there").0, json!({})).await.unwrap_err();
    assert!(error.to_string().contains("another origin"), "{error}");
    // With one of the right origin to choose, that one is taken.
    let choice = json!({
        "openapi": "3.1.0",
        "servers": [{"url": thief.base}, {"url": "/v1"}],
        "paths": {"/here": {"get": {}}},
    });
    let site =
        Site::new(move |seen| if seen.line == "GET /doc" { json(&choice) } else { json(&json!({})) }).await;
    let metadata = json!({"openApiUrl": format!("{}/doc", site.base), "headers": headers});
    call(&open(OpenApi, metadata).await, 0, json!({})).await.unwrap();
    assert_eq!(site.lines(), ["GET /doc", "GET /v1/here"]);
    assert!(thief.seen().is_empty());
    // By a redirect of the document or of the API: there they arrive without them.
    let target = thief.base.clone();
    let site = Site::new(move |_| Reply::To(302, format!("{target}/doc"))).await;
    open(OpenApi, json!({"openApiUrl": site.base, "headers": headers})).await;
    let (target, doc) = (thief.base.clone(), document(&json!([])));
    let site = Site::new(move |seen| {
        if seen.line == "GET /doc" { text(200, &doc) } else { Reply::To(307, format!("{target}/stolen")) }
    })
    .await;
    let metadata = json!({"openApiUrl": format!("{}/doc", site.base), "headers": headers});
    call(&open(OpenApi, metadata).await, 0, json!({})).await.unwrap();
    assert_eq!(thief.lines(), ["GET /doc", "GET /stolen"]);
    assert!(
        thief.seen().iter().all(|seen| !seen.head.contains(KEY) && seen.header("authorization").is_none())
    );
}

#[tokio::test]
async fn a_model_cannot_set_or_see_the_owners_headers() {
    let names = [
        "X-Own",
        "x-OWN",
        "Authorization",
        "Cookie",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "X-Forwarded-For",
        "Proxy-Thing",
        "X-HTTP-Method-Override",
        "bad name",
        "X-Fine",
    ];
    let parameters: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "in": "header", "schema": {"type": "string"}}))
        .collect();
    let document = json!({"openapi": "3.0.0", "paths": {"/x": {"get": {"operationId": "get", "parameters": parameters}}}});
    let site =
        Site::new(move |seen| if seen.line == "GET /doc" { json(&document) } else { json(&json!({})) }).await;
    let opened =
        open(OpenApi, json!({"openApiUrl": format!("{}/doc", site.base), "headers": {"X-Own": KEY}})).await;
    let spec = format!("{:?}", opened.tool.functions());
    assert!(!spec.contains(KEY));
    let offered = &opened.tool.functions()[0].spec.parameters["properties"]["header"]["properties"];
    assert_eq!(offered.as_object().unwrap().keys().collect::<Vec<_>>(), ["X-Fine"]);
    for name in &names[..names.len() - 1] {
        let error = call(&opened, 0, json!({"header": {*name: "mine"}})).await.unwrap_err();
        assert!(matches!(error, ToolError::Arguments(_)), "{name}: {error}");
    }
    call(&opened, 0, json!({"header": {"X-Fine": "mine"}})).await.unwrap();
    let seen = site.seen().pop().unwrap();
    assert_eq!((seen.header("x-own"), seen.header("x-fine")), (Some(KEY), Some("mine")));
}
