//! What is not believed of the provider, of what stands between, and of browsers.

use reqwest::{Method, StatusCode, header::COOKIE};
use serde_json::json;
use url::Url;

use super::provider::{Browser, CLIENT_SECRET, PUBLIC, Provider, verified};
use crate::support::{
    client::{envelope, send},
    service::{Mode, Service},
};

/// A service with a provider that knows Ada.
async fn service(provider: &Provider) -> Service {
    provider.knows("ada", &verified("ada@example.com"));
    provider.set(Service::in_mode(Mode::Embedded)).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_the_providers_for_this_sign_in_signs_nobody_in() {
    let Some(provider) = Provider::start().await else { return };
    let service = service(&provider).await;
    for fault in [
        "nonce",
        "issuer",
        "audience",
        "audiences",
        "subject",
        "expired",
        "unsigned",
        "secret",
        "forged",
        "unknown_key",
        "no_token",
    ] {
        provider.fault(Some(fault));
        let mut browser = Browser::new(&service);
        assert_eq!(browser.visit("ada").await, "/#/sign-in?error=oidc_token", "{fault}");
        assert_eq!(browser.redeem("00").await.0, StatusCode::UNAUTHORIZED, "{fault}");
    }
    provider.fault(None);
    // The first account is still to be had: none of these made one.
    let ada = Browser::new(&service).sign_in("ada").await;
    assert_eq!(ada.user()["isAdmin"], true);
    service.assert_no_secret_in_logs(&[CLIENT_SECRET]);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_keys_of_the_provider_are_asked_for_when_one_is_not_known() {
    let Some(provider) = Provider::start().await else { return };
    let service = service(&provider).await;
    Browser::new(&service).sign_in("ada").await;
    provider.fault(Some("rotated"));
    Browser::new(&service).sign_in("ada").await;
    // And now the old ones are those that are not known.
    provider.fault(None);
    Browser::new(&service).sign_in("ada").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_or_is_another_is_told_of() {
    const AWAY: &str = "/#/sign-in?error=oidc_away";
    let Some(provider) = Provider::start().await else { return };
    let service = service(&provider).await;
    for fault in ["document", "away"] {
        provider.fault(Some(fault));
        assert_eq!(Browser::new(&service).visit("ada").await, AWAY, "{fault}");
    }
    provider.fault(None);
    let mut browser = Browser::new(&service);
    let back = browser.visit_without_return("ada").await;
    provider.fault(Some("away"));
    assert_eq!(browser.follow(back.as_str(), "ada").await, AWAY, "it goes away between the steps");
    provider.fault(None);
    assert!(service.client().is_ready().await, "passwords go on");
    Browser::new(&service).sign_in("ada").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_taken_only_in_the_browser_that_asked_and_only_as_it_was_asked() {
    const STATE: &str = "/#/sign-in?error=oidc_state";
    let Some(provider) = Provider::start().await else { return };
    let service = service(&provider).await;
    let mut browser = Browser::new(&service);
    let back = browser.visit_without_return("ada").await;
    let with = |name: &str, value: Option<&str>| {
        let mut url = back.clone();
        let others = back.query_pairs().filter(|(key, _)| key != name);
        url.query_pairs_mut().clear().extend_pairs(others);
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, value);
        }
        url.to_string()
    };
    // Somebody is led to the answer for somebody else.
    assert_eq!(Browser::new(&service).follow(back.as_str(), "ada").await, STATE);
    let mut other = Browser::new(&service);
    other.visit_without_return("ada").await;
    assert_eq!(other.follow(back.as_str(), "ada").await, STATE);
    for (name, value) in
        [("state", None), ("state", Some("")), ("state", Some("x")), ("iss", Some("https://evil.example"))]
    {
        assert_eq!(browser.follow(&with(name, value), "ada").await, STATE, "{name} {value:?}");
    }
    for url in [with("code", None), format!("{back}&error=access_denied")] {
        assert_eq!(browser.follow(&url, "ada").await, "/#/sign-in?error=oidc_refused", "{url}");
    }
    assert_eq!(browser.follow(&with("code", Some("x")), "ada").await, "/#/sign-in?error=oidc_token");
    let good = browser.follow(back.as_str(), "ada").await;
    assert!(good.starts_with("/#/sign-in/"), "{good}");
    // The provider takes its code once.
    let again = browser.follow(back.as_str(), "ada").await;
    assert_eq!(again, "/#/sign-in?error=oidc_token");
}

/// A host of the same site can give somebody's browser a cookie, and lead it to the code of an account of its own. It cannot give it one
/// by a name with the prefix.
#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_that_another_host_of_the_site_has_set_signs_nobody_in() {
    let Some(provider) = Provider::start().await else { return };
    let service = service(&provider).await;
    let mut browser = Browser::new(&service);
    let page = browser.visit("ada").await;
    let code = page.strip_prefix("/#/sign-in/").expect("a code");
    let shown = browser.shown(&Url::parse(PUBLIC).expect("an address"));
    let set_elsewhere = shown.strip_prefix("__Host-").expect("the prefix");
    let request = service.client().request(Method::POST, "/auth/oidc/token").header(COOKIE, set_elsewhere);
    let (status, answer) = envelope(send(request.json(&json!({ "code": code }))).await).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer:#}");
    assert_eq!(browser.redeem(code).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_no_at_the_provider_is_not_signed_in() {
    let Some(provider) = Provider::start().await else { return };
    let service = service(&provider).await;
    let mut browser = Browser::new(&service);
    let begin = Url::parse(&format!("{PUBLIC}/api/v1/auth/oidc")).expect("an address");
    let asked = super::provider::location(&begin, &browser.send(reqwest::Method::GET, &begin, None).await);
    let form = super::provider::location(&asked, &browser.send(reqwest::Method::GET, &asked, None).await);
    let abort = format!("{form}/abort");
    assert_eq!(browser.follow(&abort, "ada").await, "/#/sign-in?error=oidc_refused");
}
