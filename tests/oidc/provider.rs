//! The certified provider that the tests sign in at, and a browser with somebody before it.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Once},
};

use parking_lot::Mutex;
use reqwest::{
    Method, Response, StatusCode,
    header::{CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::{Url, form_urlencoded};

use crate::support::{
    client::{Client, envelope, send},
    process::{Log, POLL, Process, dying_with_this_thread},
    service::Service,
    setup::Setup,
    within_deadline,
};

/// Where browsers are told that the service is.
pub const PUBLIC: &str = "https://lectern.example.com/desk";
pub const CLIENT_SECRET: &str = "a secret that only these tests use";
/// Steps of a sign-in, at most.
const STEPS: usize = 20;

/// The folder with the packages that the test command names; without one it is said, once, what did not run.
fn packages() -> Option<PathBuf> {
    static MISSING: Once = Once::new();
    let named = std::env::var_os("TEST_OIDC_PROVIDER").filter(|named| !named.is_empty()).map(PathBuf::from);
    if named.is_none() {
        // Not by `eprintln!`, which is shown of failed tests only.
        MISSING.call_once(|| {
            let text = "\n!!! TEST_OIDC_PROVIDER is not set: the tests of signing in by OpenID Connect did NOT run !!!\n\n";
            let _ = std::io::stderr().write_all(text.as_bytes());
        });
    }
    named
}

/// A provider with one registered service. It ends when it is dropped.
pub struct Provider {
    pub issuer: String,
    told: Mutex<Value>,
    folder: TempDir,
    _process: Process,
}

impl Provider {
    /// Starts a provider that signs as it does by default; none without its packages.
    pub async fn start() -> Option<Self> {
        Self::signing("RS256").await
    }

    /// Starts a provider that signs in this way.
    pub async fn signing(algorithm: &str) -> Option<Self> {
        let packages = packages()?;
        let folder = tempfile::Builder::new().prefix("provider-").tempdir().expect("a temporary directory");
        let told = json!({ "accounts": {}, "fault": null });
        std::fs::write(folder.path().join("told.json"), told.to_string()).expect("a file");
        let client = json!({
            "client_id": "lectern",
            "client_secret": CLIENT_SECRET,
            "redirect_uris": [format!("{PUBLIC}/api/v1/auth/oidc/callback")],
            "id_token_signed_response_alg": algorithm,
        });
        let mut command = dying_with_this_thread("node");
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oidc/provider.mjs"))
            .env("PACKAGES", packages)
            .env("CONTROL", folder.path().join("told.json"))
            .env("CLIENT", client.to_string());
        let log = Arc::<Mutex<Log>>::default();
        let process = Process::spawn(command, &log);
        let started = async {
            loop {
                let lines: Vec<Value> =
                    log.lock().text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                if let Some(issuer) = lines.iter().find_map(|line| line["issuer"].as_str()) {
                    return issuer.to_owned();
                }
                tokio::time::sleep(POLL).await;
            }
        };
        let issuer = within_deadline("the provider to listen", started).await;
        Some(Self { issuer, told: Mutex::new(told), folder, _process: process })
    }

    /// What a service is to be started with that has this provider.
    pub fn set(&self, setup: Setup) -> Setup {
        setup
            .env("LECTERN_PUBLIC_URL", PUBLIC)
            .env("LECTERN_OIDC_ISSUER", &self.issuer)
            .env("LECTERN_OIDC_CLIENT_ID", "lectern")
            .env("LECTERN_OIDC_CLIENT_SECRET", CLIENT_SECRET)
            .env("LECTERN_OIDC_SCOPES", "openid email profile groups")
    }

    /// Knows somebody, from now on and in this way.
    pub fn knows(&self, name: &str, claims: &Value) {
        self.change(|told| told["accounts"][name] = claims.clone());
    }

    /// Does what no certified provider does, from now on; nothing of that when none is named.
    pub fn fault(&self, fault: Option<&str>) {
        self.change(|told| told["fault"] = fault.into());
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut told = self.told.lock();
        change(&mut told);
        // Aside and renamed: it may be read at this moment.
        let (fresh, file) = (self.folder.path().join("fresh.json"), self.folder.path().join("told.json"));
        std::fs::write(&fresh, told.to_string()).expect("a file");
        std::fs::rename(fresh, file).expect("a file in its place");
    }
}

/// What somebody is who has an e-mail of their own.
pub fn verified(email: &str) -> Value {
    json!({ "email": email, "email_verified": true })
}

/// A browser that follows redirects by itself, fills in the provider's forms, and ends where the service's own pages begin.
pub struct Browser<'a> {
    service: &'a Service,
    http: reqwest::Client,
    /// By host and port, and name.
    cookies: BTreeMap<(String, String), String>,
}

impl<'a> Browser<'a> {
    pub fn new(service: &'a Service) -> Self {
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        Self { service, http: http.build().expect("an HTTP client"), cookies: BTreeMap::new() }
    }

    /// Signs in at the provider under a name; the page of the service's own that this ends at, without its public address.
    pub async fn visit(&mut self, name: &str) -> String {
        self.follow(&format!("{PUBLIC}/api/v1/auth/oidc"), name).await
    }

    /// Goes on from an address to a page of the service's own.
    pub async fn follow(&mut self, from: &str, name: &str) -> String {
        let from = Url::parse(from).expect("an address");
        let end = self.walk(from, name, |url| url.as_str().starts_with(&format!("{PUBLIC}/#/"))).await;
        end.as_str().strip_prefix(PUBLIC).expect("a page of the service's own").to_owned()
    }

    /// Signs in at the provider, and stops before the way back: the address that the provider sends the browser to.
    pub async fn visit_without_return(&mut self, name: &str) -> Url {
        let begin = Url::parse(&format!("{PUBLIC}/api/v1/auth/oidc")).expect("an address");
        let away = location(&begin, &self.send(Method::GET, &begin, None).await);
        self.walk(away, name, |url| url.as_str().starts_with(PUBLIC)).await
    }

    /// Follows redirects and fills in forms until it is there.
    async fn walk(&mut self, mut url: Url, name: &str, is_there: impl Fn(&Url) -> bool) -> Url {
        for _ in 0..STEPS {
            if is_there(&url) {
                return url;
            }
            let mut answer = self.send(Method::GET, &url, None).await;
            if answer.status() == StatusCode::OK {
                let page = answer.text().await.expect("a page");
                let form = fields(between(&page, "name=\"prompt\" value=\"", "\""), name);
                url = Url::parse(between(&page, "action=\"", "\"")).expect("an address");
                answer = self.send(Method::POST, &url, Some(form)).await;
            }
            url = location(&url, &answer);
        }
        panic!("{STEPS} steps lead to no end: {url}");
    }

    /// Signs in under a name, to the end.
    pub async fn sign_in(&mut self, name: &str) -> Client {
        let page = self.visit(name).await;
        let code = page.strip_prefix("/#/sign-in/").unwrap_or_else(|| panic!("{page} has no code"));
        let (status, answer) = self.redeem(code).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        self.service.client().signed_in(&answer["data"])
    }

    /// Exchanges a code for a bearer token.
    pub async fn redeem(&mut self, code: &str) -> (StatusCode, Value) {
        let answer = self.try_redeem(code).await;
        self.keep(&Url::parse(PUBLIC).expect("an address"), &answer);
        envelope(answer).await
    }

    /// The same, and its cookies stay as they are.
    pub async fn try_redeem(&self, code: &str) -> Response {
        let public = Url::parse(PUBLIC).expect("an address");
        let request = self.service.client().request(Method::POST, "/auth/oidc/token");
        send(request.header(COOKIE, self.shown(&public)).json(&json!({ "code": code }))).await
    }

    /// Whether it has a cookie of the service.
    pub fn has_cookie(&self) -> bool {
        self.cookies.keys().any(|(_, name)| name.contains("lectern_oidc"))
    }

    /// One request, as a browser sends it.
    pub async fn send(&mut self, method: Method, url: &Url, form: Option<String>) -> Response {
        // Nobody listens at the public address but in the minds of browser and provider.
        let sent = match url.as_str().strip_prefix(PUBLIC) {
            Some(rest) => format!("{}{rest}", self.service.base_url()),
            None => url.to_string(),
        };
        let mut request = self.http.request(method, sent).header(COOKIE, self.shown(url));
        if let Some(form) = form {
            request = request.header(ORIGIN, url.origin().ascii_serialization());
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        }
        let answer = send(request).await;
        self.keep(url, &answer);
        answer
    }

    /// The cookies that it shows there.
    pub fn shown(&self, url: &Url) -> String {
        let own = self.cookies.iter().filter(|((host, _), _)| *host == host_of(url));
        own.map(|((_, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, url: &Url, answer: &Response) {
        for line in answer.headers().get_all(SET_COOKIE) {
            let pair = line.to_str().expect("text").split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a name and a value");
            let key = (host_of(url), name.to_owned());
            // Both sides take a cookie away by emptying it.
            if value.is_empty() {
                self.cookies.remove(&key);
            } else {
                self.cookies.insert(key, value.to_owned());
            }
        }
    }
}

/// Where a redirect leads.
pub fn location(from: &Url, answer: &Response) -> Url {
    assert!(answer.status().is_redirection(), "{} from {from}", answer.status());
    let to = answer.headers()[LOCATION].to_str().expect("text");
    from.join(to).unwrap_or_else(|error| panic!("{to}: {error}"))
}

fn host_of(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn fields(prompt: &str, name: &str) -> String {
    let fields = [("prompt", prompt), ("login", name), ("password", "any")];
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start:?} in {text}"));
    rest.split_once(end).expect("its end").0
}
