//! The page of one's own account: another password, another e-mail, and its end.

use reqwest::StatusCode;

use super::{CONFIRMED, Visits, form_addresses, location, people::read, service};
use crate::support::client::PASSWORD;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_is_said_to_be_set_where_somebody_signs_in_again() {
    const NEW: &str = "another battery staple";
    let service = service().await;
    let ada = service.signed_up("ada@example.com").await;
    let client = service.client();
    let (mut visits, mut elsewhere) = (Visits::new(&service, &client), Visits::new(&service, &client));
    for browser in [&mut visits, &mut elsewhere] {
        browser.sign_in("ada@example.com").await;
    }
    let renamed = visits.submit("/account", &[("name:text", "Ada Lovelace")]).await;
    assert_eq!(location(&renamed), "./account?said=saved");
    let form = [("currentPassword", PASSWORD), ("password", NEW)];
    let changed = visits.submit("/account", &form).await;
    assert_eq!(location(&changed), "./sign-in?next=account&said=password-changed");
    let page = read(&visits, "/sign-in?next=account&said=password-changed").await;
    assert!(page.contains("Your password is changed. Every sign-in has ended"), "{page}");
    assert!(page.contains("name=\"next\" value=\"account\""), "{page}");
    for browser in [&visits, &elsewhere] {
        assert_eq!(location(&browser.get("/account").await), "./sign-in?next=account", "it has ended");
    }
    assert_eq!(ada.get("/users/me").await.0, StatusCode::UNAUTHORIZED);
    let sign_in = [("email", "ada@example.com"), ("password", NEW), ("next", "account")];
    assert_eq!(location(&visits.submit("/sign-in", &sign_in).await), "./account");
    assert!(read(&visits, "/account").await.contains("Ada Lovelace"));
    service.assert_no_secret_in_logs(&[PASSWORD, NEW]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_e_mail_is_changed_on_the_page_of_the_account_by_the_password() {
    let service = service().await;
    service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let form =
        |password: &'static str| [("email:text", "countess@example.com"), ("currentPassword", password)];
    let refused = visits.submit("/account", &form("not the password")).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(read(&visits, "/account").await.contains("<dd>ada@example.com</dd>"));
    let changed = visits.submit("/account", &form(PASSWORD)).await;
    assert_eq!(location(&changed), "./account?said=saved");
    assert!(read(&visits, "/account").await.contains("<dd>countess@example.com</dd>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_deleted_on_its_page_by_its_password() {
    let service = service().await;
    service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    assert!(form_addresses(&read(&visits, "/account").await).contains(&"account/delete".to_owned()));
    for wrong in [("nonce", "1"), ("password", "something else")] {
        let refused = visits.submit("/account/delete", &[CONFIRMED, wrong]).await;
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{wrong:?}");
    }
    let gone = visits.submit("/account/delete", &[CONFIRMED, ("password", PASSWORD)]).await;
    assert_eq!(location(&gone), "../sign-in?said=account-deleted");
    assert!(read(&visits, "/sign-in?said=account-deleted").await.contains("Your account is deleted"));
    let again = visits.submit("/sign-in", &[("email", "ada@example.com"), ("password", PASSWORD)]).await;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED);
}
