//! Whose account it is that somebody at the provider signs in to.

use reqwest::{Method, StatusCode};
use serde_json::json;
use url::Url;

use super::provider::{Browser, PUBLIC, Provider, location, verified};
use crate::{
    accounts::shell::lectern,
    support::{
        client::{PASSWORD, envelope, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(an_account_is_found_by_its_verified_e_mail_the_first_time);

async fn an_account_is_found_by_its_verified_e_mail_the_first_time(mode: Mode) {
    let Some(provider) = Provider::start().await else { return };
    let service = provider.set(Service::in_mode(mode)).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    provider.knows("a-1", &verified("ADA@example.com"));
    let linked = Browser::new(&service).sign_in("a-1").await;
    assert_eq!(linked.user(), ada.user());
    // The password goes on, and so does the link when the e-mail is another's.
    service.client().sign_in("ada@example.com", PASSWORD).await;
    let links = async || {
        let log = ada.read(&format!("/workspaces/{}/audit", id(ada.user()))).await;
        log.to_string().matches("\"identity_linked\"").count()
    };
    assert_eq!(links().await, 1, "its owner can see that");
    provider.knows("a-1", &verified("grace@example.com"));
    assert_eq!(id(Browser::new(&service).sign_in("a-1").await.user()), id(ada.user()));
    assert_eq!(links().await, 1);
    // An account that nobody at the provider has is whoever's the provider says the e-mail is.
    provider.knows("g-1", &verified("grace@example.com"));
    assert_eq!(id(Browser::new(&service).sign_in("g-1").await.user()), id(grace.user()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_e_mail_that_is_given_to_somebody_new_does_not_open_the_former_ones_account() {
    let Some(provider) = Provider::start().await else { return };
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    service.signed_up("ada@example.com").await;
    provider.knows("leaver", &verified("ada@example.com"));
    let leaver = Browser::new(&service).sign_in("leaver").await;
    provider.knows("newcomer", &verified("ada@example.com"));
    let taken = "/#/sign-in?error=oidc_email_taken";
    assert_eq!(Browser::new(&service).visit("newcomer").await, taken);
    leaver.read("/users/me").await;

    let unlink = ["user", "unlink", "Ada@example.com"];
    let done = lectern(&unlink, "", service.data_dir(), &[]).await;
    assert!(done.status.success(), "{done:?}");
    assert_eq!(leaver.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    let again = lectern(&unlink, "", service.data_dir(), &[]).await;
    assert!(!again.status.success(), "nobody has it any more: {again:?}");
    let newcomer = Browser::new(&service).sign_in("newcomer").await;
    assert_eq!(id(newcomer.user()), id(leaver.user()));
    assert_eq!(Browser::new(&service).visit("leaver").await, taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_verified_e_mail_nobody_gets_an_account() {
    let Some(provider) = Provider::start().await else { return };
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    service.signed_up("ada@example.com").await;
    for claims in [
        json!({ "email": "ada@example.com", "email_verified": false }),
        json!({ "email": "ada@example.com" }),
        json!({ "email": "new@example.com", "email_verified": false }),
        json!({ "email_verified": true }),
        json!({ "email": "no address", "email_verified": true }),
        json!({}),
    ] {
        provider.knows("somebody", &claims);
        let end = Browser::new(&service).visit("somebody").await;
        assert_eq!(end, "/#/sign-in?error=oidc_unverified_email", "{claims}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gets_a_new_account_is_up_to_the_settings_for_sign_ups() {
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    provider.knows("grace", &verified("grace@example.com"));
    let first = provider.set(Service::in_mode(Mode::Embedded)).env("LECTERN_SIGN_UP", "first").start().await;
    let ada = Browser::new(&first).sign_in("ada").await;
    assert_eq!(ada.user()["isAdmin"], true);
    assert_eq!(Browser::new(&first).visit("grace").await, "/#/sign-in?error=sign_up_closed");
    Browser::new(&first).sign_in("ada").await;

    let closed =
        provider.set(Service::in_mode(Mode::Embedded)).env("LECTERN_SIGN_UP", "closed").start().await;
    assert_eq!(Browser::new(&closed).visit("ada").await, "/#/sign-in?error=sign_up_closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_the_provider_has_no_password_that_could_be_guessed() {
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let ada = Browser::new(&service).sign_in("ada").await;
    for guess in ["", " ", "any", PASSWORD] {
        let body = json!({ "email": "ada@example.com", "password": guess });
        let (status, answer) = service.client().post("/auth/sign-in", &body).await;
        assert!(
            status == StatusCode::UNAUTHORIZED || guess.is_empty() || guess == " ",
            "{guess:?}: {answer:#}"
        );
        assert!(!status.is_success(), "{guess:?}");
        let change = json!({ "password": "another password", "currentPassword": guess });
        let (status, answer) = ada.patch("/users/me", &change).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{guess:?}: {answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_without_a_password_is_deleted_by_whoever_has_just_signed_in() {
    let Some(provider) = Provider::start().await else { return };
    provider.knows("ada", &verified("ada@example.com"));
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let ada = Browser::new(&service).sign_in("ada").await;
    let at = |path: &str| Url::parse(&format!("{PUBLIC}{path}")).expect("an address");
    let mut browser = Browser::new(&service);
    let page = browser.visit("ada").await;
    let code = page.strip_prefix("/#/sign-in/").expect("a code");
    let signed_in = browser.send(Method::POST, &at("/sign-in/code"), Some(format!("code={code}"))).await;
    assert_eq!(signed_in.status(), StatusCode::SEE_OTHER);
    let account = browser.send(Method::GET, &at("/account"), None).await.text().await.expect("a text");
    assert!(
        account.contains("no password of its own") && !account.contains("type=\"password\""),
        "{account}"
    );
    let delete = at("/account/delete");
    let gone = browser.send(Method::POST, &delete, Some("nonce=1&confirmed=yes".to_owned())).await;
    assert_eq!(location(&delete, &gone), at("/sign-in?said=account-deleted"));
    assert_eq!(ada.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    let mut before = ada;
    for body in [Some(json!({ "password": "none" })), Some(json!({})), None] {
        let again = Browser::new(&service).sign_in("ada").await;
        assert_ne!(id(again.user()), id(before.user()));
        let (status, answer) = match &body {
            Some(body) => again.delete_with("/users/me", body).await,
            None => again.delete("/users/me").await,
        };
        assert_eq!(status, StatusCode::OK, "{body:?}: {answer:#}");
        assert_eq!(again.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
        before = again;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_does_not_stand_in_the_way_of_a_new_one() {
    let Some(provider) = Provider::start().await else { return };
    let service = provider.set(Service::in_mode(Mode::Embedded)).start().await;
    let ada = service.signed_up("ada@example.com").await;
    provider.knows("ada", &verified("ada@example.com"));
    assert_eq!(id(Browser::new(&service).sign_in("ada").await.user()), id(ada.user()));
    let goodbye = ada.request(Method::DELETE, "/users/me").json(&json!({ "password": PASSWORD }));
    let (status, answer) = envelope(send(goodbye).await).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    let again = Browser::new(&service).sign_in("ada").await;
    assert_ne!(id(again.user()), id(ada.user()));
    assert_eq!(again.user()["email"], "ada@example.com");
}
