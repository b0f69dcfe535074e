//! Sign-in by OpenID Connect.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use lectern_derive::handler;

use super::auth::{self, SessionView};
use crate::{
    error::ApiError,
    extract::{ValidJson, parameter},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, data},
    services::{
        actor::RequestOrigin,
        sign_in::oidc::{
            CookieScope, OidcRedirect, OidcService, PendingCookie, ProviderAnswer, RedeemedCode, SignInCode,
        },
    },
};

/// What the names of the cookies begin with that tie the steps of a sign-in to one browser. Each sign-in has its own: several may be
/// begun, in several tabs.
const COOKIE: &str = "lectern_oidc_";
/// The same behind TLS, where a browser takes it as a promise: no other host of the same site has set them. One of those could otherwise
/// lead somebody through the last step of a sign-in of its own.
const SECURE_COOKIE: &str = "__Host-lectern_oidc_";
/// How long a browser keeps one, in seconds. What it holds says by itself how long it is good.
const KEPT: u32 = 600;
/// Of those that are shown, how many are looked at: more than a browser is ever given.
const LOOKED_AT: usize = 16;

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(begin)).routes(routes!(finish)).routes(routes!(redeem))
}

/// Sign in by OpenID Connect
///
/// Sends a browser to the provider that the operator has set, and keeps a cookie in it for ten minutes. The provider sends the browser back to
/// `/auth/oidc/callback`. When the provider is away, the browser is sent to the page for signing in at once.
#[utoipa::path(
    get,
    path = "/auth/oidc",
    tag = "Accounts",
    operation_id = "beginOidcSignIn",
    security(()),
    params((
        "return" = Option<String>,
        Query,
        description = "The page of the service's own to go back to in the end: a path that begins with `/`. Anything else is left out."
    )),
    responses(
        (
            status = 302,
            description = "To the provider, or to the page for signing in",
            headers(
                ("Location" = String, description = "Where the browser goes"),
                ("Set-Cookie" = String, description = "What ties the steps to this browser"),
            ),
        ),
        (status = 404, description = "The service has no sign-in by OpenID Connect"),
    ),
)]
#[handler]
async fn begin(State(oidc): State<OidcService>, headers: HeaderMap, uri: Uri) -> ApiResult {
    let scope = oidc.cookie_scope()?;
    let redirect = oidc.begin(parameter(&uri, "return"), &cookies(&headers, &scope)).await?;
    answer(redirect, &scope)
}

/// Come back from the provider
///
/// Takes the provider's answer from a browser, and sends that to the page for signing in, below the public address of the service:
/// `/#/sign-in/CODE` with a code for `POST /auth/oidc/token`, and `?return=` behind it if a page was named; or
/// `/#/sign-in?error=ERROR` with `oidc_refused`, `oidc_state` (begun in another browser, or too long ago), `oidc_token` (the
/// provider's answer cannot be believed), `oidc_unverified_email`, `oidc_email_taken` (the account with this e-mail is somebody
/// else's at the provider), `oidc_away`, `sign_up_closed`, or another code of the service's errors. An account is found by
/// the provider's own name for somebody; the first time by an e-mail that the provider says is verified, and made when
/// there is none and sign-ups are open.
#[utoipa::path(
    get,
    path = "/auth/oidc/callback",
    tag = "Accounts",
    operation_id = "finishOidcSignIn",
    security(()),
    params(
        ("code" = Option<String>, Query, description = "The provider's code"),
        ("state" = Option<String>, Query, description = "What the provider was sent with the browser"),
        ("iss" = Option<String>, Query, description = "The provider, if it says who it is"),
        ("error" = Option<String>, Query, description = "Why there is no code"),
    ),
    responses(
        (
            status = 302,
            description = "To the page for signing in",
            headers(("Location" = String, description = "Where the browser goes")),
        ),
        (status = 404, description = "The service has no sign-in by OpenID Connect"),
    ),
)]
#[handler]
async fn finish(
    State(oidc): State<OidcService>,
    headers: HeaderMap,
    origin: RequestOrigin,
    uri: Uri,
) -> ApiResult {
    let told = ProviderAnswer {
        code: parameter(&uri, "code"),
        state: parameter(&uri, "state"),
        issuer: parameter(&uri, "iss"),
        error: parameter(&uri, "error"),
    };
    let scope = oidc.cookie_scope()?;
    let redirect = oidc.finish(told, &cookies(&headers, &scope), origin).await?;
    answer(redirect, &scope)
}

/// Exchange a code for a bearer token
///
/// Ends a sign-in by OpenID Connect, and answers as `POST /auth/sign-in` does. The code is good for a minute, once, and in the browser that began:
/// the cookie has to come with it.
#[utoipa::path(
    post,
    path = "/auth/oidc/token",
    tag = "Accounts",
    operation_id = "redeemOidcCode",
    security(()),
    request_body(
        content = SignInCode,
        example = json!({"code": "01c3a4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091"}),
    ),
    responses(
        (
            status = 200,
            description = "A bearer token and the account that it opens",
            body = inline(SuccessResponse<SessionView>),
            example = json!({"success": true, "data": auth::example()}),
        ),
        (status = 401, description = "The code is not good, or not any more, or was given to another browser"),
        (status = 404, description = "The service has no sign-in by OpenID Connect"),
    ),
)]
#[handler]
async fn redeem(
    State(oidc): State<OidcService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    origin: RequestOrigin,
    ValidJson(code): ValidJson<SignInCode>,
) -> ApiResult {
    let scope = oidc.cookie_scope()?;
    let shown = cookies(&headers, &scope);
    let RedeemedCode { signed_in, cookie } = oidc.redeem(code, &shown, peer.ip(), origin).await?;
    let mut response = data(SessionView::from(signed_in));
    forget(&mut response, &cookie, &scope)?;
    Ok(response)
}

/// The cookies that the browser shows of sign-ins that were begun in it.
pub(crate) fn cookies<'a>(headers: &'a HeaderMap, scope: &CookieScope) -> Vec<PendingCookie<'a>> {
    let begin = begin_of_names(scope);
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let own =
        pairs.filter_map(|(name, value)| Some(PendingCookie { name: name.strip_prefix(begin)?, value }));
    // Names are sent back, so nothing is one that was not given out.
    own.filter(|cookie| cookie.name.bytes().all(|byte| byte.is_ascii_hexdigit())).take(LOOKED_AT).collect()
}

/// What the names of the cookies begin with where browsers show them so.
fn begin_of_names(scope: &CookieScope) -> &'static str {
    if scope.is_secure { SECURE_COOKIE } else { COOKIE }
}

/// Sends a browser on. What it is sent to is for itself alone.
fn answer(redirect: OidcRedirect, scope: &CookieScope) -> ApiResult {
    let location = HeaderValue::try_from(redirect.location).map_err(|error| {
        tracing::error!(%error, "an address cannot be written into a header");
        ApiError::internal()
    })?;
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    let mut response = (StatusCode::FOUND, headers).into_response();
    if let Some((name, value)) = &redirect.keeps {
        keep(&mut response, name, value, KEPT, scope)?;
    }
    for name in &redirect.forgets {
        forget(&mut response, name, scope)?;
    }
    Ok(response)
}

/// Takes a cookie away from a browser.
pub(crate) fn forget(response: &mut Response, name: &str, scope: &CookieScope) -> Result<(), ApiError> {
    keep(response, name, "", 0, scope)
}

/// Gives a browser a cookie, for so many seconds; takes it away with none. A browser that comes from the provider shows it, since a person
/// has followed a link; other sites' requests come without.
fn keep(
    response: &mut Response,
    name: &str,
    value: &str,
    seconds: u32,
    scope: &CookieScope,
) -> Result<(), ApiError> {
    let CookieScope { path, is_secure } = scope;
    let secure = if *is_secure { "; Secure" } else { "" };
    let begin = begin_of_names(scope);
    let line =
        format!("{begin}{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    let line = HeaderValue::try_from(line).map_err(|error| {
        tracing::error!(%error, "a cookie cannot be written into a header");
        ApiError::internal()
    })?;
    response.headers_mut().append(header::SET_COOKIE, line);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookies_are_found_among_others() {
        let shown_by = |is_secure: bool, lines: &[&str]| -> Vec<(String, String)> {
            let pairs = lines.iter().map(|line| (header::COOKIE, HeaderValue::from_str(line).unwrap()));
            let headers: HeaderMap = pairs.collect();
            let found = cookies(&headers, &CookieScope { path: "/".to_owned(), is_secure }).into_iter();
            found.map(|cookie| (cookie.name.to_owned(), cookie.value.to_owned())).collect()
        };
        let shown = |lines: &[&str]| shown_by(false, lines);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(shown(&["lectern_oidc_1=0a"]), [pair("1", "0a")]);
        let two = [pair("1", "0a"), pair("f2", "0b")];
        assert_eq!(shown(&["a=b; lectern_oidc_1=0a; c; lectern_oidc_f2=0b"]), two);
        assert_eq!(shown(&["a=b;lectern_oidc_1=0a", "lectern_oidc_f2=0b"]), two);
        assert_eq!(shown(&["xlectern_oidc_1=0a; lectern_oidc=0b; LECTERN_OIDC_1=0c; lectern_oidc_x=0d"]), []);
        assert_eq!(shown(&[]), []);
        let many: Vec<String> = (0..100).map(|number| format!("lectern_oidc_{number}=0a")).collect();
        assert_eq!(shown(&[&many.join("; ")]).len(), LOOKED_AT);
        // Other hosts of the same site can set a cookie by any name that has no such prefix.
        let both = ["lectern_oidc_1=0a; __Host-lectern_oidc_2=0b; lectern_oidc___Host-3=0c"];
        assert_eq!(shown_by(true, &both), [pair("2", "0b")]);
        assert_eq!(shown(&both), [pair("1", "0a")]);
    }

    #[test]
    fn a_browser_shows_a_cookie_to_this_service_alone_and_forgets_what_is_of_no_use() {
        let written = |is_secure| -> Vec<String> {
            let path = if is_secure { "/" } else { "/lectern/" };
            let scope = CookieScope { path: path.to_owned(), is_secure };
            let redirect = OidcRedirect {
                location: "https://x.example/".to_owned(),
                keeps: Some(("1f".to_owned(), "0a".to_owned())),
                forgets: vec!["2f".to_owned()],
            };
            let response = answer(redirect, &scope).unwrap();
            assert_eq!(response.status(), StatusCode::FOUND);
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
            let lines = response.headers().get_all(header::SET_COOKIE).iter();
            lines.map(|line| line.to_str().unwrap().to_owned()).collect()
        };
        let kept = "lectern_oidc_1f=0a; Path=/lectern/; Max-Age=600; HttpOnly; SameSite=Lax";
        let gone = "lectern_oidc_2f=; Path=/lectern/; Max-Age=0; HttpOnly; SameSite=Lax";
        assert_eq!(written(false), [kept, gone]);
        // A browser takes no other path, and nothing without TLS, under such a name.
        let kept = "__Host-lectern_oidc_1f=0a; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
        let gone = "__Host-lectern_oidc_2f=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(written(true), [kept, gone]);
    }
}
