//! Requests to the video site, for one run: bounded, with the cookies that the site set in it and nothing else of it kept.

use std::collections::BTreeMap;

use lectern_shared::egress::{Egress, EgressRequest, EgressResponse, RequestLimits};
use reqwest::{
    Method,
    header::{
        ACCEPT_LANGUAGE, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE, USER_AGENT,
    },
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Duration, Instant};
use url::Url;

use super::{
    constants::{self, MAX_COOKIE, MAX_COOKIES, SILENCE},
    error::VideoError,
};

/// Told how many bytes have come, so that a run that moves is not taken for one that hangs.
pub(super) type OnBytes<'a> = &'a (dyn Fn(u64) + Send + Sync);

/// What one run asks the site with.
pub(super) struct SiteClient<'a> {
    egress: &'a Egress,
    deadline: Instant,
    on_bytes: OnBytes<'a>,
    received: u64,
    cookies: BTreeMap<String, SecretString>,
}

/// An answer, read to its end.
pub(super) struct SiteAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// Where redirects led.
    pub(super) url: Url,
}

impl<'a> SiteClient<'a> {
    /// Everything that is asked takes `within` together.
    pub(super) fn new(egress: &'a Egress, within: Duration, on_bytes: OnBytes<'a>) -> Self {
        let now = Instant::now();
        let deadline = now.checked_add(within).unwrap_or(now + Duration::from_hours(24));
        Self { egress, deadline, on_bytes, received: 0, cookies: BTreeMap::new() }
    }

    /// Sends a cookie from now on.
    pub(super) fn set_cookie(&mut self, name: &str, value: &str) {
        let is_known = self.cookies.contains_key(name);
        if name.len() + value.len() <= MAX_COOKIE && (is_known || self.cookies.len() < MAX_COOKIES) {
            self.cookies.insert(name.to_owned(), SecretString::from(value));
        }
    }

    pub(super) async fn get(
        &mut self,
        url: Url,
        user_agent: Option<&str>,
        max_bytes: u64,
    ) -> Result<SiteAnswer, VideoError> {
        self.send(Method::GET, url, headers(user_agent), None, max_bytes).await
    }

    pub(super) async fn post_json(
        &mut self,
        url: Url,
        user_agent: Option<&str>,
        more: &[(&'static str, &str)],
        body: &serde_json::Value,
        max_bytes: u64,
    ) -> Result<SiteAnswer, VideoError> {
        let mut headers = headers(user_agent);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in more {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        self.send(Method::POST, url, headers, Some(body.to_string()), max_bytes).await
    }

    async fn send(
        &mut self,
        method: Method,
        url: Url,
        mut headers: HeaderMap,
        body: Option<String>,
        max_bytes: u64,
    ) -> Result<SiteAnswer, VideoError> {
        let total_timeout = self.deadline.saturating_duration_since(Instant::now());
        let mut request = EgressRequest::new(
            method,
            url,
            RequestLimits { max_bytes, total_timeout, idle_timeout: SILENCE },
        );
        headers.extend(self.cookie_header().map(|value| (COOKIE, value)));
        request.headers = headers;
        request
            .portable_headers
            .insert(ACCEPT_LANGUAGE, HeaderValue::from_static(constants::ACCEPT_LANGUAGE));
        request.body = body.map(Into::into);
        let mut response = self.egress.send(request).await?;
        self.keep_cookies(&response);
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            body.extend_from_slice(&piece);
            self.received += piece.len() as u64;
            (self.on_bytes)(self.received);
        }
        Ok(SiteAnswer { status: response.status, body, url: response.final_url })
    }

    fn cookie_header(&self) -> Option<HeaderValue> {
        let pairs: Vec<_> =
            self.cookies.iter().map(|(name, value)| format!("{name}={}", value.expose_secret())).collect();
        let mut value = HeaderValue::from_str(&pairs.join("; ")).ok().filter(|value| !value.is_empty())?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Every answer is the site's own, so that no cookie can come from, or go, elsewhere.
    fn keep_cookies(&mut self, response: &EgressResponse) {
        let set = response.headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs: Vec<(String, String)> = set
            .filter_map(|cookie| {
                let (name, value) = cookie.split(';').next()?.split_once('=')?;
                let (name, value) = (name.trim(), value.trim());
                (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
            })
            .collect();
        for (name, value) in pairs {
            self.set_cookie(&name, &value);
        }
    }
}

fn headers(user_agent: Option<&str>) -> HeaderMap {
    let value = user_agent.and_then(|text| HeaderValue::from_str(text).ok());
    value.map(|value| (USER_AGENT, value)).into_iter().collect()
}
