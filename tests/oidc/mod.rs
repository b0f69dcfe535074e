//! Signing in by OpenID Connect, at a certified provider.

mod accounts;
mod distrust;
mod passwords;
pub mod provider;
mod roles;

use reqwest::{
    Method, StatusCode,
    header::{CACHE_CONTROL, SET_COOKIE},
};
use serde_json::{Value, json};
use url::Url;

use self::provider::{Browser, CLIENT_SECRET, PUBLIC, Provider, location, verified};
use crate::support::{
    client::{PASSWORD, id},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(somebody_whom_the_provider_knows_is_signed_in_by_it);

async fn somebody_whom_the_provider_knows_is_signed_in_by_it(mode: Mode) {
    let Some(provider) = Provider::start().await else { return };
    let ada = json!({ "email": "Ada@example.com", "email_verified": true, "name": "Ada Lovelace" });
    provider.knows("ada", &ada);
    let service = provider.set(Service::in_mode(mode)).start().await;
    let mut browser = Browser::new(&service);
    let ada = browser.sign_in("ada").await;
    assert_eq!(ada.user()["email"], "Ada@example.com");
    assert_eq!(ada.user()["name"], "Ada Lovelace");
    assert_eq!(ada.user()["isAdmin"], true, "the first account is an admin's, however it was made");
    assert_eq!(&ada.read("/users/me").await, ada.user());
    assert!(!browser.has_cookie(), "what tied the steps together is not needed any more");

    // The provider's own name for somebody stays, whatever else changes.
    provider.knows("ada", &json!({ "email": "countess@example.com", "email_verified": false }));
    let again = Browser::new(&service).sign_in("ada").await;
    assert_eq!(again.user(), ada.user());

    let log = ada.read(&format!("/workspaces/{}/audit", id(ada.user()))).await;
    let actions = log.as_array().expect("a list").iter().map(|event| &event["action"]);
    assert_eq!(actions.filter(|action| *action == "signed_in").count(), 2, "{log:#}");
    service.assert_no_secret_in_logs(&[CLIENT_SECRET, ada.token()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_by_elliptic_curves_are_good_too() {
    let Some(provider) = Provider::signing("ES256").await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let ada = Browser::new(&service).sign_in("ada").await;
    assert_eq!(ada.user()["name"], "ada", "a name is made of the e-mail when the provider tells none");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_is_asked_ties_its_answer_to_this_browser() {
    let Some(provider) = Provider::start().await else { return };
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let mut asked = Vec::new();
    for _ in 0..2 {
        let begin = Url::parse(&format!("{PUBLIC}/api/v1/auth/oidc")).expect("an address");
        let answer = Browser::new(&service).send(Method::GET, &begin, None).await;
        assert_eq!(answer.status(), StatusCode::FOUND);
        assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
        let cookie = answer.headers()[SET_COOKIE].to_str().expect("text").to_owned();
        let (name_and_value, attributes) = cookie.split_once("; ").expect("attributes");
        assert!(name_and_value.starts_with("__Host-lectern_oidc_"), "{cookie}");
        assert_eq!(attributes, "Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure", "{cookie}");
        let url = location(&begin, &answer);
        assert!(url.as_str().starts_with(&format!("{}/auth?", provider.issuer)), "{url}");
        let query = |name: &str| {
            let mut pairs =
                url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            let found = pairs.next().unwrap_or_else(|| panic!("no {name} in {url}"));
            assert_eq!(pairs.next(), None, "{name} is there twice");
            found
        };
        assert_eq!(query("response_type"), "code");
        assert_eq!(query("client_id"), "lectern");
        assert_eq!(query("code_challenge_method"), "S256");
        assert_eq!(query("redirect_uri"), format!("{PUBLIC}/api/v1/auth/oidc/callback"));
        assert_eq!(query("scope"), "openid email profile groups");
        for name in ["state", "nonce", "code_challenge"] {
            let value = query(name);
            assert!(value.len() >= 43 && !name_and_value.contains(&value), "{name}: {value}");
            asked.push(value);
        }
    }
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 6, "every sign-in has its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_goes_back_to_the_page_that_one_came_from_and_to_no_other_site() {
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    for (asked, back) in [
        ("/agents%3Ftab=all", Some("?return=%2Fagents%3Ftab%3Dall")),
        ("https://evil.example/", None),
        ("//evil.example", None),
    ] {
        let from = format!("{PUBLIC}/api/v1/auth/oidc?return={asked}");
        let page = Browser::new(&service).follow(&from, "ada").await;
        let code = page.strip_prefix("/#/sign-in/").unwrap_or_else(|| panic!("{page} has no code"));
        assert_eq!(code.find('?').map(|at| &code[at..]), back, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_signs_a_browser_in_to_the_dashboard() {
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let mut browser = Browser::new(&service);
    let page = browser.visit("ada").await;
    let code = page.strip_prefix("/#/sign-in/").expect("a code").to_owned();
    let at = |path: &str| Url::parse(&format!("{PUBLIC}{path}")).expect("an address");
    let sign_in = async |browser: &mut Browser<'_>, code: &str| {
        let form = format!("code={code}&next=documents");
        browser.send(Method::POST, &at("/sign-in/code"), Some(form)).await
    };
    assert_eq!(sign_in(&mut Browser::new(&service), &code).await.status(), StatusCode::UNAUTHORIZED);
    let answer = sign_in(&mut browser, &code).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let cookie = answer.headers()[SET_COOKIE].to_str().expect("text");
    assert!(cookie.starts_with("__Host-lectern_session=") && cookie.ends_with("; Secure"), "{cookie}");
    assert!(!browser.has_cookie(), "what tied the steps together is not needed any more");
    let documents = location(&at("/sign-in/code"), &answer);
    assert_eq!(documents.as_str(), format!("{PUBLIC}/documents"));
    let shown = browser.send(Method::GET, &documents, None).await;
    assert_eq!(shown.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_in_which_somebody_signs_in_do_not_disturb_one_another() {
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let mut browser = Browser::new(&service);
    let first = browser.visit_without_return("ada").await;
    let second = browser.visit_without_return("ada").await;
    for back in [first, second] {
        let page = browser.follow(back.as_str(), "ada").await;
        let code = page.strip_prefix("/#/sign-in/").unwrap_or_else(|| panic!("{page} has no code"));
        let (status, answer) = browser.redeem(code).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
    }
    assert!(!browser.has_cookie(), "each takes its own away");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_good_once_and_in_its_own_browser() {
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    provider.knows("mallory", &verified("mallory@example.com"));
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let code = |page: String| page.strip_prefix("/#/sign-in/").expect("a code").to_owned();
    let refused = |(status, answer): (StatusCode, Value)| {
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer:#}");
        assert_eq!(answer["error"]["code"], "unauthorized");
    };
    let (mut here, mut there) = (Browser::new(&service), Browser::new(&service));
    let (ada, mallory) = (code(here.visit("ada").await), code(there.visit("mallory").await));
    refused(here.redeem(&mallory).await);
    refused(Browser::new(&service).redeem(&ada).await);
    for wrong in ["0", "00", &ada[2..], "not even digits"] {
        refused(here.redeem(wrong).await);
    }
    let (status, answer) = here.redeem(&ada).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");

    // Written otherwise it is the same one, and the browser may have kept its cookie.
    let mut kept = Browser::new(&service);
    let first = code(kept.visit("ada").await);
    let (one, other) = tokio::join!(kept.try_redeem(&first), kept.try_redeem(&first));
    let (one, other) = (one.status(), other.status());
    assert!((one == StatusCode::OK) != (other == StatusCode::OK), "{one} and {other}");
    assert_eq!(kept.try_redeem(&first.to_uppercase()).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_a_provider_has_no_such_way_in() {
    let service = Service::start().await;
    for path in ["/auth/oidc", "/auth/oidc/callback?code=1&state=2"] {
        assert_eq!(service.client().get(path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, answer) = service.client().post("/auth/oidc/token", &json!({ "code": "00" })).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer:#}");
    service.client().sign_up("ada@example.com", PASSWORD).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_for_roles_that_is_not_there_is_told_at_the_start() {
    let unknown = uuid::Uuid::now_v7().to_string();
    let service = Service::in_mode(Mode::Embedded)
        .env("LECTERN_PUBLIC_URL", PUBLIC)
        .env("LECTERN_OIDC_ISSUER", "https://login.example.com")
        .env("LECTERN_OIDC_CLIENT_ID", "lectern")
        .env("LECTERN_OIDC_ROLE_CLAIM", "groups")
        .env("LECTERN_OIDC_ROLES", "staff=asker")
        .env("LECTERN_OIDC_WORKSPACE", &unknown)
        .start()
        .await;
    let said = |event: &Value| event.to_string().contains("LECTERN_OIDC_WORKSPACE is no workspace");
    let event = service.logged("a warning about the workspace", said).await;
    assert!(event.to_string().contains(&unknown), "{event:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_needs_to_know_where_to_send_browsers_back() {
    let refusal = Service::in_mode(Mode::Embedded)
        .env("LECTERN_OIDC_ISSUER", "https://login.example.com")
        .env("LECTERN_OIDC_CLIENT_ID", "lectern")
        .start_refused()
        .await;
    assert!(refusal.log.contains("LECTERN_PUBLIC_URL"), "{}", refusal.log);
}
