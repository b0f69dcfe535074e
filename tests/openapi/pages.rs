//! The pages that show the document.

use reqwest::{
    Method, StatusCode,
    header::{
        CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, LOCATION,
        X_CONTENT_TYPE_OPTIONS,
    },
};

use crate::support::{
    client::{envelope, send},
    service::Service,
};

async fn get(service: &Service, path: &str) -> (StatusCode, HeaderMap, String) {
    let answer = send(service.client().request_outside(Method::GET, path)).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.text().await.expect("a body"))
}

/// The values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let after = page.split(attribute).skip(1);
    after.map(|rest| rest.split('"').next().expect("a part")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_load_from_the_service_and_from_nowhere_else() {
    let service = Service::start().await;
    let (status, headers, _) = get(&service, "/docs").await;
    assert_eq!(status, StatusCode::PERMANENT_REDIRECT);
    assert_eq!(headers[LOCATION], "docs/");

    let (status, headers, page) = get(&service, "/docs/").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
    let scripts = values(&page, "src=\"");
    let all = [values(&page, "href=\""), scripts.clone()].concat();
    assert!(scripts.len() >= 2 && all.len() > scripts.len(), "{page}");
    for file in all {
        assert!(!file.contains(':') && !file.contains('/'), "{file} is elsewhere");
        let (status, headers, content) = get(&service, &format!("/docs/{file}")).await;
        assert_eq!(status, StatusCode::OK, "{file}");
        assert!(!content.is_empty(), "{file}");
        let kind = headers[CONTENT_TYPE].to_str().expect("text");
        let expected = match file.rsplit_once('.').expect("an extension").1 {
            "js" => "text/javascript",
            "css" => "text/css",
            "png" => "image/png",
            other => panic!("{other} is not tested yet"),
        };
        assert!(kind.starts_with(expected), "{file} is {kind}");
        assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff", "{file}");
        // Whatever a script of the pages may try, the browser lets it reach this service only.
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
        let sources = policy.split(';').flat_map(|directive| directive.split_whitespace().skip(1));
        let foreign: Vec<_> =
            sources.filter(|source| !["'none'", "'self'", "data:"].contains(source)).collect();
        assert_eq!(foreign, Vec::<&str>::new());
    }
    let (_, _, start) = get(&service, "/docs/start.js").await;
    assert!(
        start.contains("validatorUrl: 'none'"),
        "a badge would send the document's address to another host"
    );
    assert!(start.contains("url: '../openapi.json'"), "{start}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_leads_out_of_the_pages() {
    let service = Service::start().await;
    for name in [
        "nothing.js",
        "swagger-ui.css.map",
        "oauth2-redirect.html",
        "..%2fCargo.toml",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "%5c..%5cCargo.toml",
        "swagger-ui.css%00",
        "a/swagger-ui.css",
        "%ff",
    ] {
        let path = format!("/docs/{name}");
        let (status, body) = envelope(send(service.client().request_outside(Method::GET, &path)).await).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(body["error"]["code"], "not_found", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_browser_has_is_not_sent_again() {
    let service = Service::start().await;
    for path in ["/openapi.json", "/docs/", "/docs/swagger-ui-bundle.js"] {
        let (_, headers, _) = get(&service, path).await;
        let etag = headers[ETAG].to_str().expect("text");
        for (known, expected) in [
            (etag.to_owned(), StatusCode::NOT_MODIFIED),
            (format!("\"other\", W/{etag}"), StatusCode::NOT_MODIFIED),
            ("\"other\"".to_owned(), StatusCode::OK),
        ] {
            let request = service.client().request_outside(Method::GET, path).header(IF_NONE_MATCH, &known);
            assert_eq!(send(request).await.status(), expected, "{path} with {known}");
        }
    }
}
