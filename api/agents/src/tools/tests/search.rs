//! SEARCH.

use lectern_shared::model::tool::ToolType::Search;
use serde_json::{Value, json};

use super::support::*;

const EXPECTED: &str = "1. Rust & friends\nhttps://rust.example/a?b=1&c=2\nA language for \"everyone\" <3\n\n\
                        2. (no title)\nhttp://second.example/";

fn results(address: &str, snippet: &str) -> Value {
    json!([
        {"title": "Rust &amp; <b>friends</b>", address: "https://rust.example/a?b=1&c=2", snippet: "A <strong>language</strong> for\n &quot;everyone&quot; <3"},
        {"title": "no address"},
        {"title": "script", address: "javascript:alert(1)"},
        {"title": null, address: "http://second.example/"},
        {"title": "third", address: "http://third.example/"},
    ])
}

#[tokio::test]
async fn searxng_is_asked_without_a_key() {
    let site = Site::new(|_| json(&json!({"query": "q", "results": results("url", "content")}))).await;
    let base = format!("{}/sub/", site.base);
    let found = ask(
        Search,
        json!({"provider": "searxng", "base_url": base, "limit": 2, "api_key": KEY}),
        json!({"query": " what is rust? "}),
    );
    assert_eq!(found.await.unwrap(), EXPECTED);
    let seen = &site.seen()[0];
    assert_eq!(seen.line, "GET /sub/search?q=what+is+rust%3F&format=json");
    assert!(!seen.head.contains(KEY));
}

#[tokio::test]
async fn brave_gets_its_key_in_its_header() {
    let site =
        Site::new(|_| json(&json!({"query": {}, "web": {"results": results("url", "description")}}))).await;
    let metadata = json!({"provider": "brave", "base_url": site.base, "api_key": KEY, "limit": "2"});
    assert_eq!(ask(Search, metadata, json!({"query": "rust"})).await.unwrap(), EXPECTED);
    let seen = &site.seen()[0];
    assert_eq!(seen.line, "GET /res/v1/web/search?q=rust&count=2");
    assert_eq!(seen.header("x-subscription-token"), Some(KEY));
    assert_eq!(seen.head.matches(KEY).count(), 1);
}

#[tokio::test]
async fn tavily_and_serper_are_asked_with_json() {
    for (provider, results, header, value, body) in [
        (
            "tavily",
            json!({"query": "rust", "results": results("url", "content")}),
            "authorization",
            format!("Bearer {KEY}"),
            json!({"query": "rust", "max_results": 2}),
        ),
        (
            "serper",
            json!({"searchParameters": {}, "organic": results("link", "snippet")}),
            "x-api-key",
            KEY.to_owned(),
            json!({"q": "rust", "num": 2}),
        ),
    ] {
        let site = Site::new(move |_| json(&results)).await;
        let metadata = json!({"provider": provider, "base_url": site.base, "api_key": KEY, "limit": 2});
        assert_eq!(ask(Search, metadata, json!({"query": "rust"})).await.unwrap(), EXPECTED, "{provider}");
        let seen = &site.seen()[0];
        assert_eq!(seen.line, "POST /search");
        assert_eq!(seen.header(header), Some(value.as_str()), "{provider}");
        assert_eq!(seen.json(), body);
    }
}

#[tokio::test]
async fn nothing_found_is_an_answer_and_another_shape_is_not() {
    for (provider, empty) in [
        ("searxng", json!({"query": "q", "results": []})),
        ("brave", json!({"type": "search", "query": {"original": "q"}})),
        ("tavily", json!({"query": "q", "results": []})),
        ("serper", json!({"searchParameters": {"q": "q"}})),
    ] {
        let site = Site::new(move |_| json(&empty)).await;
        let metadata = json!({"provider": provider, "base_url": site.base, "api_key": KEY});
        let found = ask(Search, metadata, json!({"query": "q"})).await.unwrap();
        assert_eq!(found, "Nothing was found for this query.", "{provider}");
        for other in [
            json!({"message": "hello"}),
            json!([1]),
            json!({"query": "q", "results": 7, "organic": 7, "web": {"results": 7}}),
        ] {
            let site = Site::new(move |_| json(&other)).await;
            let metadata = json!({"provider": provider, "base_url": site.base, "api_key": KEY});
            let error = ask(Search, metadata, json!({"query": "q"})).await.unwrap_err();
            let told = "The search service answered with something that cannot be understood.";
            assert_eq!(error, failure(told), "{provider}");
        }
    }
}

#[tokio::test]
async fn searxng_that_gives_no_json_says_what_to_set() {
    let site = Site::new(|_| text(403, "Forbidden")).await;
    let error = ask(Search, json!({"provider": "searxng", "base_url": site.base}), json!({"query": "q"}));
    assert!(error.await.unwrap_err().to_string().contains("`json` must be among the `formats`"));
}

#[tokio::test]
async fn a_query_is_needed() {
    let site = Site::new(|_| Reply::Stall).await;
    let opened = open(Search, json!({"provider": "searxng", "base_url": site.base})).await;
    for arguments in [json!({}), json!({"query": 7}), json!({"query": "  "}), json!({"query": null})] {
        let error = call(&opened, 0, arguments).await.unwrap_err();
        assert!(error.to_string().starts_with("The arguments are wrong: `query` "), "{error}");
    }
    assert!(site.seen().is_empty());
}
