//! Accounts, and the credentials that open the service.

mod export;
pub mod shell;
mod tokens;

use std::net::Ipv4Addr;

use futures::future::join_all;
use reqwest::{Method, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    bodies::Refused,
    support::{
        client::{Client, PASSWORD, data, envelope, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    a_new_account_is_signed_in_and_its_owner_can_sign_in_again,
    the_case_of_an_e_mail_and_the_spaces_around_it_do_not_matter,
    one_e_mail_makes_one_account_however_many_ask_at_once,
    of_many_who_sign_up_at_once_only_the_first_gets_in_by_default,
    a_closed_service_takes_no_sign_ups,
    the_first_account_is_an_admin_and_later_ones_are_not,
    a_wrong_password_and_an_unknown_account_get_the_same_answer,
    sign_up_names_every_field_that_is_wrong,
    one_changes_ones_own_name_and_nothing_that_is_not_ones_to_change,
    another_e_mail_needs_the_password_and_ends_nothing,
    a_new_password_needs_the_current_one_and_ends_every_earlier_sign_in,
    signing_out_ends_every_sign_in_but_no_api_token,
    a_deleted_account_takes_everything_with_it_and_frees_its_email
);

// --- signing up ------------------------------------------------------------------------------------------------------

async fn a_new_account_is_signed_in_and_its_owner_can_sign_in_again(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let new = service.signed_up("ada@example.com").await;
    assert_eq!(new.user()["email"], "ada@example.com");
    assert_eq!(new.user()["name"], "ada", "a name is made of the e-mail when none is given");
    assert_eq!(&new.read("/users/me").await, new.user());

    let again = service.client().sign_in("ada@example.com", PASSWORD).await;
    assert_eq!(again.user(), new.user());
    assert_eq!(&again.read("/users/me").await, new.user());

    let named = json!({ "email": "grace@example.com", "password": PASSWORD, "name": " Grace Hopper " });
    let named = service.client().create("/auth/sign-up", &named).await;
    assert_eq!(named["user"]["name"], "Grace Hopper");
}

async fn the_case_of_an_e_mail_and_the_spaces_around_it_do_not_matter(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let new = service.signed_up("  Ada@Example.COM ").await;
    assert_eq!(new.user()["email"], "Ada@Example.COM", "shown as written, without the spaces");

    for spelling in ["ada@example.com", "ADA@EXAMPLE.COM", "\tAda@example.com\n"] {
        let again = service.client().sign_in(spelling, PASSWORD).await;
        assert_eq!(again.user(), new.user(), "{spelling:?}");

        let (status, refusal) = sign_up(&service, spelling).await;
        assert_eq!(status, StatusCode::CONFLICT, "{spelling:?}: {refusal:#}");
    }
}

async fn one_e_mail_makes_one_account_however_many_ask_at_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let spellings = ["ada@example.com", "Ada@example.com", "ADA@example.com", " ada@example.com"];
    let mut answers = statuses(join_all(spellings.map(|email| sign_up(&service, email))).await);
    answers.sort_unstable();
    assert_eq!(answers, [200, 409, 409, 409]);
}

async fn of_many_who_sign_up_at_once_only_the_first_gets_in_by_default(mode: Mode) {
    let mut service = Service::in_mode(mode).without("LECTERN_SIGN_UP").start().await;
    let emails = ["ada@example.com", "grace@example.com", "mary@example.com", "joan@example.com"];
    let answers = statuses(join_all(emails.map(|email| sign_up(&service, email))).await);
    let (one, others): (Vec<_>, Vec<_>) =
        emails.into_iter().zip(answers).partition(|(_, status)| *status == 200);
    let [(first, _)] = one.as_slice() else { panic!("one gets in, and not {one:?}") };
    assert!(others.iter().all(|(_, status)| *status == 403), "{others:?}");
    assert_eq!(service.client().sign_in(first, PASSWORD).await.user()["isAdmin"], true);

    service.restart().await;
    let (status, refusal) = sign_up(&service, "late@example.com").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{refusal:#}");
    service.client().sign_in(first, PASSWORD).await;
}

async fn a_closed_service_takes_no_sign_ups(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_SIGN_UP", "closed").start().await;
    let (status, refusal) = sign_up(&service, "ada@example.com").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{refusal:#}");
    let (status, _) = sign_in(&service, "ada@example.com", PASSWORD).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "no account was made");
}

async fn the_first_account_is_an_admin_and_later_ones_are_not(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    assert_eq!(service.signed_up("first@example.com").await.user()["isAdmin"], true);
    assert_eq!(service.signed_up("second@example.com").await.user()["isAdmin"], false);

    let pretender = json!({ "email": "third@example.com", "password": PASSWORD, "isAdmin": true });
    let pretender = service.client().create("/auth/sign-up", &pretender).await;
    assert_eq!(pretender["user"]["isAdmin"], false, "nobody makes an admin of themselves");
}

async fn sign_up_names_every_field_that_is_wrong(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.client();
    let refused = async |body: Value| Refused::by(client.post("/auth/sign-up", &body).await);

    assert_eq!(refused(json!({})).await.paths(), ["email", "password"]);
    let all = json!({ "email": "nobody", "password": "short", "name": 7 });
    assert_eq!(refused(all).await.paths(), ["email", "name", "password"]);
    let invisible = ["ada@example.com\u{200b}", "\u{202e}ada@example.com"];
    let emails = ["", " ", "ada", "@example.com", "ada@", "a@b@c", "a da@example.com", "ada@.example.com"];
    for email in emails.into_iter().chain(invisible) {
        let body = json!({ "email": email, "password": PASSWORD });
        assert_eq!(refused(body).await.paths(), ["email"], "{email:?}");
    }
    for password in ["a".repeat(7), "a".repeat(257), "é".repeat(7)] {
        let body = json!({ "email": "ada@example.com", "password": password });
        assert_eq!(refused(body).await.paths(), ["password"], "{password:?}");
    }
    for (email, password) in [("ada@example.com", "é".repeat(8)), ("grace@example.com", "x".repeat(256))] {
        client.sign_up(email, &password).await;
        client.sign_in(email, &password).await;
    }
}

// --- signing in ------------------------------------------------------------------------------------------------------

async fn a_wrong_password_and_an_unknown_account_get_the_same_answer(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    service.signed_up("ada@example.com").await;

    let (wrong_status, wrong) = sign_in(&service, "ada@example.com", "not the password").await;
    let (unknown_status, unknown) = sign_in(&service, "nobody@example.com", PASSWORD).await;
    assert_eq!((wrong_status, unknown_status), (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED));
    assert_eq!(wrong["error"], unknown["error"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_ten_failures_an_account_and_an_address_have_to_wait() {
    let service = Service::start().await;
    service.signed_up("ada@example.com").await;
    service.signed_up("grace@example.com").await;
    let [here, elsewhere] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)].map(|address| {
        reqwest::Client::builder().no_proxy().local_address(Some(address.into())).build().expect("a client")
    });
    let attempt = async |from: &reqwest::Client, email: &str, password: &str| {
        let request = from.post(format!("{}/api/v1/auth/sign-in", service.base_url()));
        let answer = send(request.json(&json!({ "email": email, "password": password }))).await;
        let wait = answer.headers().get(RETRY_AFTER).cloned();
        (envelope(answer).await.0.as_u16(), wait)
    };

    for failure in 1..=10 {
        let (status, wait) = attempt(&here, "ada@example.com", "not the password").await;
        assert_eq!((status, wait), (401, None), "failure {failure}");
    }
    let (status, wait) = attempt(&here, "ada@example.com", "not the password").await;
    assert_eq!(status, 429);
    let wait: u64 = wait.expect("a Retry-After").to_str().expect("text").parse().expect("seconds");
    assert!((1..=600).contains(&wait), "{wait} s");

    let (account, _) = attempt(&elsewhere, " ADA@example.com", PASSWORD).await;
    assert_eq!(account, 429, "the account waits wherever its password comes from, however it is written");
    let (address, _) = attempt(&here, "grace@example.com", PASSWORD).await;
    assert_eq!(address, 429, "the address waits whichever account it tries");
    let (neither, _) = attempt(&elsewhere, "grace@example.com", PASSWORD).await;
    assert_eq!(neither, 200, "nobody else waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_does_not_exist_has_to_wait_like_one_that_does() {
    let service = Service::start().await;
    for failure in 1..=10 {
        let (status, _) = sign_in(&service, "nobody@example.com", PASSWORD).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "failure {failure}");
    }
    let (status, _) = sign_in(&service, "nobody@example.com", PASSWORD).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
}

// --- one's own account -----------------------------------------------------------------------------------------------

async fn one_changes_ones_own_name_and_nothing_that_is_not_ones_to_change(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    service.signed_up("admin@example.com").await;
    let ada = service.signed_up("ada@example.com").await;

    let renamed = data(ada.patch("/users/me", &json!({ "name": "Ada Lovelace" })).await);
    assert_eq!(renamed["name"], "Ada Lovelace");
    assert_eq!(ada.read("/users/me").await, renamed);

    let others = json!({
        "id": Uuid::now_v7(), "isAdmin": true, "createdAt": "2000-01-01",
        "deletedAt": null, "token_version": 9, "colour": "green", "name": "Somebody Else",
    });
    let refused = Refused::by(ada.patch("/users/me", &others).await);
    let named = ["colour", "createdAt", "deletedAt", "id", "isAdmin", "token_version"];
    assert_eq!(refused.paths(), named);
    let wrong = Refused::by(ada.patch("/users/me", &json!({ "name": " " })).await);
    assert_eq!(wrong.paths(), ["name"]);
    assert_eq!(ada.read("/users/me").await, renamed, "a refused change changes nothing");
}

async fn another_e_mail_needs_the_password_and_ends_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    service.signed_up("grace@example.com").await;
    let ada = service.signed_up("ada@example.com").await;
    let elsewhere = service.client().sign_in("ada@example.com", PASSWORD).await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;
    let change = async |email: &str, password: &str| {
        ada.patch("/users/me", &json!({ "email": email, "currentPassword": password })).await
    };

    let missing = Refused::by(ada.patch("/users/me", &json!({ "email": "new@example.com" })).await);
    assert_eq!(missing.paths(), ["currentPassword"]);
    let wrong = change("new@example.com", "not the password").await;
    assert_eq!(Refused::by(wrong).paths(), ["currentPassword"]);
    for email in ["", "nobody", "new@example.com\u{200b}"] {
        assert_eq!(Refused::by(change(email, PASSWORD).await).paths(), ["email"], "{email:?}");
    }
    let (status, taken) = change(" GRACE@example.com", PASSWORD).await;
    assert_eq!(status, StatusCode::CONFLICT, "{taken:#}");
    assert_eq!(&ada.read("/users/me").await, ada.user(), "a refused change changes nothing");

    let changed = data(change(" Countess@example.com ", PASSWORD).await);
    assert_eq!(changed["email"], "Countess@example.com", "as written, without the spaces");
    for client in [&ada, &elsewhere, &ada.with_token(text(&token["token"]))] {
        assert_eq!(client.read("/users/me").await, changed, "it goes on");
    }
    assert_eq!(sign_in(&service, "ada@example.com", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    let again = service.client().sign_in("countess@EXAMPLE.com", PASSWORD).await;
    assert_eq!(again.user(), &changed);
    let log = ada.read(&format!("/workspaces/{}/audit", id(&changed))).await;
    let mut lines = log.as_array().expect("a list").iter();
    let line = lines.find(|line| line["action"] == "email_changed").expect("a line");
    let both = json!({ "from": "ada@example.com", "to": "Countess@example.com" });
    assert_eq!(line["details"], both, "{line:#}");

    let spelled = data(change("countess@example.com", PASSWORD).await);
    assert_eq!(spelled["email"], "countess@example.com", "one's own e-mail is not taken");
    let newcomer = service.signed_up("ada@example.com").await;
    assert_ne!(id(newcomer.user()), id(&changed), "the one that it had is free");
}

async fn a_new_password_needs_the_current_one_and_ends_every_earlier_sign_in(mode: Mode) {
    const NEW: &str = "a new and better password";
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let elsewhere = service.client().sign_in("ada@example.com", PASSWORD).await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;

    let missing = Refused::by(ada.patch("/users/me", &json!({ "password": NEW })).await);
    assert_eq!(missing.paths(), ["currentPassword"]);
    let wrong = json!({ "password": NEW, "currentPassword": "not the password" });
    assert_eq!(Refused::by(ada.patch("/users/me", &wrong).await).paths(), ["currentPassword"]);
    let short = json!({ "password": "short", "currentPassword": PASSWORD });
    assert_eq!(Refused::by(ada.patch("/users/me", &short).await).paths(), ["password"]);
    elsewhere.read("/users/me").await;
    service.client().sign_in("ada@example.com", PASSWORD).await;

    let changed = json!({ "password": NEW, "currentPassword": PASSWORD });
    data(ada.patch("/users/me", &changed).await);
    for before in [&ada, &elsewhere] {
        assert_eq!(before.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    }
    ada.with_token(text(&token["token"])).read("/users/me").await;
    assert_eq!(sign_in(&service, "ada@example.com", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    service.client().sign_in("ada@example.com", NEW).await.read("/users/me").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_current_password_cannot_be_guessed_without_end() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let guess = json!({ "password": "a new password", "currentPassword": "a guess" });
    for failure in 1..=10 {
        let (status, _) = ada.patch("/users/me", &guess).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "failure {failure}");
    }
    assert_eq!(ada.patch("/users/me", &guess).await.0, StatusCode::TOO_MANY_REQUESTS);
}

async fn signing_out_ends_every_sign_in_but_no_api_token(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let elsewhere = service.client().sign_in("ada@example.com", PASSWORD).await;
    let grace = service.signed_up("grace@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;

    assert_eq!(ada.create("/auth/sign-out", &json!({})).await, Value::Null);
    for before in [&ada, &elsewhere] {
        assert_eq!(before.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    }
    ada.with_token(text(&token["token"])).read("/users/me").await;
    grace.read("/users/me").await;
    service.client().sign_in("ada@example.com", PASSWORD).await.read("/users/me").await;
}

async fn a_deleted_account_takes_everything_with_it_and_frees_its_email(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_INDEX_GRACE", "0s").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let bob = service.signed_up("bob@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "t" })).await;
    let by_token = ada.with_token(text(&token["token"]));
    let document = ada.ingest(&json!({"name": "d", "type": "TXT", "content": "Ada's secret garden."})).await;
    let agent = ada.create_agent(&json!({"name": "a", "type": "CHATVENDOR"})).await;
    ada.link(id(&agent), id(&document)).await;
    let kept = bob.ingest(&json!({"name": "k", "type": "TXT", "content": "Bob's allotment."})).await;

    let remove = |client: &Client, body: Value| client.request(Method::DELETE, "/users/me").json(&body);
    let wrong = envelope(send(remove(&ada, json!({"password": "not the password"}))).await).await;
    assert_eq!(Refused::by(wrong).paths(), ["password"]);
    for request in [remove(&ada, json!({})), ada.request(Method::DELETE, "/users/me")] {
        let missing = envelope(send(request).await).await;
        assert_eq!(Refused::by(missing).paths(), ["password"]);
    }
    ada.read("/users/me").await;

    let gone = data(envelope(send(remove(&ada, json!({"password": PASSWORD}))).await).await);
    assert_eq!(gone, Value::Null);
    for client in [&ada, &by_token] {
        assert_eq!(client.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    }
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    assert_eq!(service.client().post("/auth/sign-in", &body).await.0, StatusCode::UNAUTHORIZED);

    // Whoever signs up under the same e-mail is somebody else.
    let other = service.signed_up("ada@example.com").await;
    for list in ["/documents", "/agents", "/agent-documents", "/api-tokens", "/traces"] {
        assert_eq!(other.read(list).await, json!([]), "{list}");
    }
    assert_eq!(other.get(&format!("/documents/{}", id(&document))).await.0, StatusCode::NOT_FOUND);
    assert_eq!(bob.read(&format!("/documents/{}", id(&kept))).await["index"], kept["index"]);
}

// --- plumbing --------------------------------------------------------------------------------------------------------

async fn sign_up(service: &Service, email: &str) -> (StatusCode, Value) {
    let body = json!({ "email": email, "password": PASSWORD });
    service.client().post("/auth/sign-up", &body).await
}

async fn sign_in(service: &Service, email: &str, password: &str) -> (StatusCode, Value) {
    let body = json!({ "email": email, "password": password });
    service.client().post("/auth/sign-in", &body).await
}

fn statuses(answers: Vec<(StatusCode, Value)>) -> Vec<u16> {
    answers.into_iter().map(|(status, _)| status.as_u16()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
