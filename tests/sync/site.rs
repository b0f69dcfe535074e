//! A web site that a test changes: with a sitemap, entity tags, rules for robots, and traps.

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;

use crate::support::{loopback::Seen, web::Web};

/// Bytes of a page besides its few words: what pages have around them.
const AROUND: usize = 4_000;

struct SiteState {
    /// Which version of each page there is, by its number.
    pages: BTreeMap<i64, u32>,
    sent: AtomicU64,
}

/// The site. It stops when it is dropped.
pub(super) struct TestSite {
    web: Web,
    state: Arc<Mutex<SiteState>>,
}

impl TestSite {
    /// Starts it with so many pages.
    pub(super) async fn start(pages: i64) -> Self {
        let web = Web::start().await;
        let pages: BTreeMap<i64, u32> = (1..=pages).map(|page| (page, 1)).collect();
        let state = Arc::new(Mutex::new(SiteState { pages, sent: AtomicU64::new(0) }));
        let site = Self { web, state };
        site.web.serve(
            "/robots.txt",
            "text/plain",
            format!("User-agent: *\nDisallow: /private\nSitemap: {}\n", site.url("/maps.xml")),
        );
        let map = |path: &str| format!("<sitemap><loc>{}</loc></sitemap>", site.url(path));
        let index = format!("<sitemapindex>{}{}</sitemapindex>", map("/pages.xml"), map("/traps.xml"));
        site.web.serve("/maps.xml", "application/xml", index);
        let traps = ["/huge", "/missing", "/moved", "/private/secret"].map(|path| site.url(path));
        let outside = ["http://10.0.0.1/inside".to_owned(), "http://169.254.169.254/latest".to_owned()];
        let traps: Vec<_> =
            traps.iter().chain(&outside).map(|url| format!("<url><loc>{url}</loc></url>")).collect();
        site.web.serve("/traps.xml", "application/xml", format!("<urlset>{}</urlset>", traps.concat()));
        site.web.answer_with("/huge", |_| {
            let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 64 << 10]));
            let length = (header::CONTENT_LENGTH, HeaderValue::from(1_u64 << 30));
            ([length], Body::from_stream(endless)).into_response()
        });
        site.web.redirect("/moved", &site.page(1));
        let state = Arc::clone(&site.state);
        let url = site.url("");
        site.web.answer_with("/pages.xml", move |_| {
            let state = state.lock();
            let pages = state.pages.keys().map(|page| format!("<url><loc>{url}/pages?n={page}</loc></url>"));
            let body = format!("<urlset>{}</urlset>", pages.collect::<String>());
            state.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
            ([(header::CONTENT_TYPE, "application/xml")], body).into_response()
        });
        let state = Arc::clone(&site.state);
        site.web.answer_with("/pages", move |seen| answer(&state.lock(), seen));
        site
    }

    /// The address of a path.
    pub(super) fn url(&self, path: &str) -> String {
        self.web.url(path)
    }

    /// The address of a page.
    pub(super) fn page(&self, number: i64) -> String {
        self.url(&format!("/pages?n={number}"))
    }

    /// Bytes of pages and of lists of pages that were sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.state.lock().sent.load(Ordering::Relaxed)
    }

    /// How often a path was asked for.
    pub(super) fn asked_for(&self, path: &str) -> usize {
        self.web.hits(path)
    }

    /// Has these pages say something else.
    pub(super) fn change(&self, pages: &[i64]) {
        let mut state = self.state.lock();
        for page in pages {
            *state.pages.get_mut(page).expect("it is there") += 1;
        }
    }

    /// Takes these pages away.
    pub(super) fn remove(&self, pages: RangeInclusive<i64>) {
        let mut state = self.state.lock();
        for page in pages {
            state.pages.remove(&page).expect("it is there");
        }
    }

    /// Adds so many pages.
    pub(super) fn add(&self, count: i64) {
        let mut state = self.state.lock();
        let last = *state.pages.keys().next_back().expect("a page");
        state.pages.extend((last + 1..=last + count).map(|page| (page, 1)));
    }
}

fn answer(state: &SiteState, seen: &Seen) -> Response {
    let number = seen.target.rsplit('=').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let Some(version) = state.pages.get(&number) else { return StatusCode::NOT_FOUND.into_response() };
    let tag = format!("\"{number}-{version}\"");
    if seen.header("if-none-match") == Some(&tag) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let body = format!(
        "<html><head><title>Page {number}</title><!-- {} --></head><body><p>This is page {number} in version {version}.</p></body></html>",
        "x".repeat(AROUND)
    );
    state.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
    ([(header::CONTENT_TYPE, "text/html".to_owned()), (header::ETAG, tag)], body).into_response()
}
