//! What a browser keeps of this service: its sign-in, in a cookie that no script can read, and the workspace that was chosen in it.

use axum::http::{HeaderMap, HeaderValue, header};
use lectern_shared::ids::WorkspaceId;

use crate::{error::ApiError, public_address::PublicAddress};

/// The cookies of a browser, under the names that they have where the service is reached so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CookieNames {
    session: &'static str,
    workspace: &'static str,
    is_secure: bool,
}

impl CookieNames {
    /// Behind TLS a browser takes the prefix as a promise: no other host of the same site has set them.
    pub(super) fn at(address: &PublicAddress) -> Self {
        if address.is_secure() {
            Self { session: "__Host-lectern_session", workspace: "__Host-lectern_workspace", is_secure: true }
        } else {
            Self { session: "lectern_session", workspace: "lectern_workspace", is_secure: false }
        }
    }

    /// The sign-in and the workspace that were chosen in a browser.
    pub(super) fn read(self, headers: &HeaderMap) -> (Option<&str>, Option<&str>) {
        (cookie(headers, self.session), cookie(headers, self.workspace))
    }

    /// Keeps a sign-in in the browser for as long as it lasts.
    pub(super) fn sign_in(self, token: &str, seconds: u64) -> Result<HeaderValue, ApiError> {
        self.line(self.session, token, seconds)
    }

    /// Takes the sign-in out of the browser. What was chosen stays, for pages that are still open and whoever signs in again.
    pub(super) fn sign_out(self) -> Result<HeaderValue, ApiError> {
        self.line(self.session, "", 0)
    }

    /// Keeps which workspace the pages are about; none for the account's own.
    pub(super) fn choose(self, workspace: Option<WorkspaceId>) -> Result<HeaderValue, ApiError> {
        const A_YEAR: u64 = 31_536_000;
        match workspace {
            Some(id) => self.line(self.workspace, &id.to_string(), A_YEAR),
            None => self.line(self.workspace, "", 0),
        }
    }

    fn line(self, name: &str, value: &str, seconds: u64) -> Result<HeaderValue, ApiError> {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let line = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(line).map_err(|error| {
            tracing::error!(%error, "a cookie cannot be written into a header");
            ApiError::internal()
        })
    }
}

/// A cookie that the browser shows, if it has it.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(found, value)| (found == name && !value.is_empty()).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> CookieNames {
        CookieNames::at(&PublicAddress::of(Some(&url.parse().unwrap()), &HeaderMap::new(), false))
    }

    #[test]
    fn cookies_are_for_the_server_alone_and_promise_what_tls_lets_them() {
        let plain = at("http://127.0.0.1:8080");
        let line = plain.sign_in("a.b.c", 60).unwrap();
        assert_eq!(line, "lectern_session=a.b.c; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
        let secure = at("https://kb.example");
        let line = secure.sign_in("a.b.c", 60).unwrap();
        assert_eq!(line, "__Host-lectern_session=a.b.c; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
        let line = "lectern_session=x; __Host-lectern_session=y;lectern_workspace=";
        let shown: HeaderMap = [(header::COOKIE, HeaderValue::from_static(line))].into_iter().collect();
        assert_eq!(plain.read(&shown), (Some("x"), None));
        assert_eq!(secure.read(&shown), (Some("y"), None));
    }
}
