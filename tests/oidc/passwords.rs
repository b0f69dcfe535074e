//! What is left of passwords where people sign in by the provider.

use reqwest::{Method, StatusCode};
use serde_json::json;
use url::Url;

use super::provider::{Browser, PUBLIC, Provider, verified};
use crate::{
    accounts::shell::lectern,
    support::{
        client::{Client, PASSWORD},
        service::{Mode, Service},
    },
};

async fn sign_in(service: &Service, email: &str, password: &str) -> (StatusCode, String) {
    let body = json!({ "email": email, "password": password });
    let (status, answer) = service.client().post("/auth/sign-in", &body).await;
    (status, answer["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// A service that was filled with passwords on, and is started again with another setting.
async fn restarted(provider: &Provider, policy: &str) -> (Service, Client) {
    let mut before = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let ada = before.signed_up("ada@example.com").await;
    before.signed_up("grace@example.com").await;
    assert_eq!(ada.user()["isAdmin"], true);
    before.terminate().await;
    let service = before.sibling().env("LECTERN_PASSWORDS", policy).start().await;
    let ada = service.client().with_token(ada.token());
    (service, ada)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_passwords_off_there_is_no_other_way_in_than_the_provider() {
    let Some(provider) = Provider::start().await else { return };
    let (service, ada) = restarted(&provider, "off").await;
    let off = (StatusCode::FORBIDDEN, "passwords_off".to_owned());
    for (email, password) in
        [("ada@example.com", PASSWORD), ("grace@example.com", "wrong"), ("nobody@example.com", "x")]
    {
        assert_eq!(sign_in(&service, email, password).await, off, "{email}");
    }
    let new = json!({ "email": "new@example.com", "password": PASSWORD });
    let (status, answer) = service.client().post("/auth/sign-up", &new).await;
    assert_eq!((status, answer["error"]["code"].as_str().unwrap_or_default()), (off.0, "passwords_off"));
    let message = answer["error"]["message"].as_str().expect("a sentence");
    assert!(message.contains("single sign-on") && message.contains("/auth/oidc"), "{message}");
    let change = json!({ "password": "another password", "currentPassword": PASSWORD });
    let (status, answer) = ada.patch("/users/me", &change).await;
    assert_eq!((status, answer["error"]["code"].as_str().unwrap_or_default()), (off.0, "passwords_off"));
    ada.read("/users/me").await;
    provider.knows("grace", &verified("grace@example.com"));
    let grace = Browser::new(&service).sign_in("grace").await;
    assert_eq!(grace.user()["email"], "grace@example.com");
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_may_keep_their_passwords_for_the_day_on_which_the_provider_is_away() {
    let Some(provider) = Provider::start().await else { return };
    let (service, ada) = restarted(&provider, "admins").await;
    provider.fault(Some("away"));
    assert_eq!(sign_in(&service, "ada@example.com", PASSWORD).await.0, StatusCode::OK);
    // Only who has the right password is told that it is of no use.
    assert_eq!(sign_in(&service, "grace@example.com", "wrong").await.0, StatusCode::UNAUTHORIZED);
    let off = (StatusCode::FORBIDDEN, "passwords_off".to_owned());
    assert_eq!(sign_in(&service, "grace@example.com", PASSWORD).await, off);
    let new = json!({ "email": "new@example.com", "password": PASSWORD });
    assert_eq!(service.client().post("/auth/sign-up", &new).await.0, StatusCode::FORBIDDEN);
    let change = json!({ "password": "another password", "currentPassword": PASSWORD });
    assert_eq!(ada.patch("/users/me", &change).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_the_e_mail_of_somebody_whom_the_provider_may_still_send() {
    let Some(provider) = Provider::start().await else { return };
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let change = json!({ "email": "grace@example.com", "currentPassword": PASSWORD });
    let (status, answer) = ada.patch("/users/me", &change).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (StatusCode::FORBIDDEN, &json!("email_fixed")),
        "{answer:#}"
    );
    provider.knows("grace", &verified("grace@example.com"));
    let grace = Browser::new(&service).sign_in("grace").await;
    assert_ne!(grace.user()["id"], ada.user()["id"]);
    let email = ["user", "email", "ada@example.com", "countess@example.com"];
    let done = lectern(&email, "", service.data_dir(), &[]).await;
    assert!(done.status.success(), "{done:?}");
    assert_eq!(ada.read("/users/me").await["email"], "countess@example.com");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_switched_off_is_not_needed_to_delete_an_account() {
    let Some(provider) = Provider::start().await else { return };
    let (service, ada) = restarted(&provider, "admins").await;
    let wrong = json!({ "password": "wrong" });
    let (status, answer) = ada.delete_with("/users/me", &wrong).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "an admin's is on: {answer:#}");
    provider.knows("grace", &verified("grace@example.com"));
    let at = |path: &str| Url::parse(&format!("{PUBLIC}{path}")).expect("an address");
    let mut browser = Browser::new(&service);
    let page = browser.visit("grace").await;
    let code = page.strip_prefix("/#/sign-in/").expect("a code");
    let signed_in = browser.send(Method::POST, &at("/sign-in/code"), Some(format!("code={code}"))).await;
    assert_eq!(signed_in.status(), StatusCode::SEE_OTHER);
    let account = browser.send(Method::GET, &at("/account"), None).await.text().await.expect("a text");
    assert!(!account.contains("type=\"password\""), "{account}");
    assert!(account.contains("signed in within the last ten minutes"), "{account}");
    assert!(account.contains("ask the operator of this service to change it"), "{account}");
    let grace = Browser::new(&service).sign_in("grace").await;
    let (status, answer) = grace.delete_with("/users/me", &wrong).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(grace.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_not_switched_off_where_there_is_no_provider() {
    let refusal = Service::in_mode(Mode::Embedded).env("LECTERN_PASSWORDS", "off").start_refused().await;
    assert!(refusal.log.contains("LECTERN_OIDC_ISSUER"), "{}", refusal.log);
}
