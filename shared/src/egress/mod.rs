//! The one outbound HTTP client for everything a user's data can steer: document sources, OpenAPI documents, tools and
//! base URLs.
//!
//! A service that fetches what strangers name can be made to fetch what only it can reach: the cloud's metadata
//! endpoint, the database beside it, a router's administration page. So every such request goes through [`Egress`]:
//!
//! - Only `http` and `https`, only addresses on the public internet, unless the operator has opened a network.
//! - Names are judged by what they resolve to, inside the client's own resolver: the connection goes to the address
//!   that was checked, and no second lookup can give another answer. Address literals skip resolvers, so
//!   [`Egress::check_url`] judges them.
//! - Redirects are a loop of our own: every hop is checked anew, and what the caller sent for one origin never reaches
//!   another one.
//! - Bytes (after decompression), silence and total time are bounded, and memory does not grow with what is sent.
//!
//! Hosts that come from the operator's settings are trusted and use [`operator_client`].
//!
//! No proxy is used, because a proxy would resolve and connect in our place, past every check made here. The one
//! exception is a client that is bound to a site which the operator named ([`EgressPolicy::site`]): it may be given the
//! operator's proxy for that site, and asks for nothing else.

mod address;
mod body;
mod error;
mod redirect;
mod request;
mod resolver;
mod response;
mod site;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use ipnet::IpNet;
use reqwest::header::{ACCEPT_ENCODING, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use self::{address::AddressGuard, redirect::RedirectHop, resolver::GuardedResolver};
use crate::tls;

pub use self::{
    address::parse_allow_list,
    error::{EgressError, why_unanswered},
    request::{EgressRequest, RequestLimits, is_connection_header},
    response::EgressResponse,
    site::SiteScope,
};

/// What this service calls itself unless a request says otherwise.
const USER_AGENT: &str = concat!("Lectern/", env!("CARGO_PKG_VERSION"));
/// Idle connections kept per host and for how long: enough to speak again to a tool or model at once, while ten
/// thousand sources on as many hosts do not each leave a socket behind for long.
const POOL_IDLE_PER_HOST: usize = 4;
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Added to "now" when a limit is so long that the clock cannot hold it.
const FAR_FUTURE: Duration = Duration::from_hours(24 * 365);

/// What outbound requests may reach and how patiently they connect.
#[derive(Clone, Debug)]
pub struct EgressPolicy {
    /// Networks opened by the operator besides the public internet (see [`parse_allow_list`]).
    pub allow: Vec<IpNet>,
    /// Redirects followed for one request; one more is [`EgressError::TooManyRedirects`].
    pub max_redirects: usize,
    /// Longest time for one connection: lookup, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Longest time for one DNS lookup.
    pub dns_timeout: Duration,
    /// The only site that may be asked, by redirects too; any when none.
    pub site: Option<SiteScope>,
    /// The operator's own `http://` or `https://` proxy, perhaps with a user name and password, through which
    /// everything is sent. It connects in our place, so that addresses are not judged any more: it is used together
    /// with [`EgressPolicy::site`] only.
    pub proxy: Option<SecretString>,
}

impl Default for EgressPolicy {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            max_redirects: 5,
            connect_timeout: Duration::from_secs(10),
            dns_timeout: Duration::from_secs(5),
            site: None,
            proxy: None,
        }
    }
}

/// The guarded client. Cheap to clone; clones share connections and limits on lookups.
#[derive(Clone, Debug)]
pub struct Egress {
    inner: Arc<EgressState>,
}

#[derive(Debug)]
struct EgressState {
    guard: Arc<AddressGuard>,
    site: Option<SiteScope>,
    proxied: bool,
    max_redirects: usize,
    connect_timeout: Duration,
    client: reqwest::Client,
}

impl Egress {
    /// Builds the client. It makes no connection.
    ///
    /// # Errors
    /// [`EgressError::Setup`] when TLS cannot be set up, for example because the system has no root certificates, or when
    /// there is a proxy that cannot be used.
    pub fn new(policy: EgressPolicy) -> Result<Self, EgressError> {
        let EgressPolicy { allow, max_redirects, connect_timeout, dns_timeout, site, proxy } = policy;
        let guard = Arc::new(AddressGuard::new(allow));
        let builder = client_builder(connect_timeout)?
            // Unpacking is done here (`body`), counted and with errors of its own.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd();
        let proxied = proxy.is_some();
        let builder = match proxy {
            None => builder.dns_resolver(GuardedResolver::new(Arc::clone(&guard), dns_timeout)),
            Some(_) if site.is_none() => {
                let reason = "a proxy needs a site that requests through it are bound to".to_owned();
                return Err(EgressError::Setup { reason });
            }
            // The only name that is resolved here is then the proxy's own, which is the operator's.
            Some(proxy) => {
                let refused =
                    |_| EgressError::Setup { reason: "the proxy's address is not valid".to_owned() };
                builder.proxy(reqwest::Proxy::all(proxy.expose_secret()).map_err(refused)?)
            }
        };
        let client = builder.build().map_err(|error| EgressError::setup(&error))?;
        Ok(Self {
            inner: Arc::new(EgressState { guard, site, proxied, max_redirects, connect_timeout, client }),
        })
    }

    /// Whether a request to `url` may be tried, as far as the URL alone tells: the scheme, no credentials in it, a host of
    /// the site when there is only one, and no address literal that is refused, however it was spelt (`Url` has already
    /// normalised `0x7f.1`). Names are judged when they are resolved, so a URL that passes here can still be refused by
    /// [`Egress::send`].
    ///
    /// # Errors
    /// [`EgressError::InvalidUrl`], [`EgressError::OtherSite`] or [`EgressError::RefusedAddress`].
    pub fn check_url(&self, url: &Url) -> Result<(), EgressError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressError::InvalidUrl { reason: "only http and https addresses can be fetched" });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::InvalidUrl {
                reason: "a user name or password in a URL is not accepted; give it as authorization instead",
            });
        }
        if self.inner.site.as_ref().is_some_and(|site| !site.contains(url)) {
            return Err(EgressError::OtherSite { host: error::host_of(url) });
        }
        if self.inner.proxied {
            return Ok(());
        }
        let address = match url.host() {
            Some(Host::Domain(name)) if !name.is_empty() => return Ok(()),
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(_)) | None => {
                return Err(EgressError::InvalidUrl { reason: "the URL names no host" });
            }
        };
        if self.inner.guard.permits(address) {
            Ok(())
        } else {
            let host = error::host_of(url);
            tracing::info!(%host, "outbound request refused: the address is not public");
            Err(EgressError::RefusedAddress { host })
        }
    }

    /// Sends `request` and follows redirects if it says so. Returns when the final response's head has arrived,
    /// whatever its status: what a 404 means is the caller's to say. The body is read from the [`EgressResponse`], within
    /// the same limits.
    ///
    /// Towards another origin (scheme, host, port) everything in [`EgressRequest::headers`] is dropped, for good: a redirect
    /// back does not restore it. A redirect that leads to what cannot be requested, or would take a request body to another
    /// origin, or credentials from `https` to `http`, is refused, and so is one that would make a POST a GET, unless it says (303)
    /// that the POST was taken.
    ///
    /// # Errors
    /// Any [`EgressError`] but [`EgressError::Decode`], which only reading brings.
    pub async fn send(&self, request: EgressRequest) -> Result<EgressResponse, EgressError> {
        let limits = request.limits;
        let follow = request.follow_redirects;
        let deadline = after(Instant::now(), limits.total_timeout);
        let mut hop = RedirectHop::first(request);
        let mut redirects = 0;
        loop {
            let told = |error: EgressError| if redirects == 0 { error } else { error.of_redirect() };
            self.check_url(&hop.url).map_err(told)?;
            let response = self.exchange(&hop, deadline, limits.idle_timeout).await.map_err(told)?;
            let next = if follow { hop.redirected(response.status(), response.headers())? } else { None };
            let Some(next) = next else {
                return EgressResponse::new(response, hop.url, hop.takes_brotli, limits, deadline);
            };
            if redirects == self.inner.max_redirects {
                return Err(EgressError::TooManyRedirects { limit: self.inner.max_redirects });
            }
            redirects += 1;
            hop = next;
        }
    }

    /// One request and the head of its response.
    async fn exchange(
        &self,
        hop: &RedirectHop,
        deadline: Instant,
        idle: Duration,
    ) -> Result<reqwest::Response, EgressError> {
        let host = error::host_of(&hop.url);
        let mut request = reqwest::Request::new(hop.method.clone(), hop.url.clone());
        *request.headers_mut() = hop.outgoing_headers();
        let codings = HeaderValue::from_static(body::accept_encoding(hop.takes_brotli));
        request.headers_mut().insert(ACCEPT_ENCODING, codings);
        *request.body_mut() = hop.body.clone().map(Into::into);
        // A server that accepts and says nothing is idle from then on; connecting has its own limit inside the client.
        let silent = after(after(Instant::now(), self.inner.connect_timeout), idle);
        match timeout_at(deadline.min(silent), self.inner.client.execute(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(EgressError::from_send(host, &error)),
            Err(_) => Err(EgressError::Timeout { host }),
        }
    }
}

/// The second client, without the guard, for hosts that come from the operator's settings only (an embedding server, a
/// local model). It may reach private networks. It follows no redirect and uses no proxy, so what it sends goes to the
/// host that was configured. `read_timeout` is the longest silence.
///
/// # Errors
/// [`EgressError::Setup`] when TLS cannot be set up.
pub fn operator_client(
    connect_timeout: Duration,
    read_timeout: Duration,
) -> Result<reqwest::Client, EgressError> {
    client_builder(connect_timeout)?
        .read_timeout(read_timeout)
        .build()
        .map_err(|error| EgressError::setup(&error))
}

/// What both clients have in common.
#[expect(clippy::disallowed_methods, reason = "this module is the place that the ban points to")]
fn client_builder(connect_timeout: Duration) -> Result<reqwest::ClientBuilder, EgressError> {
    let tls = tls::client_config().map_err(|error| EgressError::Setup { reason: error.to_string() })?;
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        // A proxy would resolve and connect in our place, past every check made here. For the operator's hosts, a
        // variable that is none of our settings must not decide where keys are sent.
        .no_proxy()
        // What is read from a stranger is bounded connection by connection.
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(USER_AGENT)
        .connect_timeout(connect_timeout)
        .pool_max_idle_per_host(POOL_IDLE_PER_HOST)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT))
}

/// `start + length`, or as good as never when the clock cannot hold it.
fn after(start: Instant, length: Duration) -> Instant {
    start.checked_add(length).unwrap_or_else(|| start + FAR_FUTURE)
}
