//! Lists of what a source has, which lead to documents: feeds, sitemaps and the links of web pages.
//!
//! Everything here runs in the sandboxed child. What could grow beyond the length of the bytes, or recurse, is bounded before it is
//! handed to a library; what gets past that ends the child only.

mod feed;
mod json_feed;
mod sitemap;
mod xml_feed;

use url::Url;

use crate::{
    charset,
    formats::html,
    protocol::{Listing, ListingError, ListingKind, ListingRequest, is_page},
};

/// Reads what was asked for.
pub(crate) fn read(bytes: &[u8], request: &ListingRequest) -> Result<Listing, ListingError> {
    match request.kind {
        ListingKind::Feed => feed::read(bytes, request).map(Listing::Feed),
        ListingKind::Sitemap => sitemap::read(bytes, request).map(Listing::Sitemap),
        ListingKind::Links => {
            let (text, _, _) = charset::decode(bytes, request.charset.as_deref());
            Some(Listing::Links(html::page_links(&text, Some(&request.url))))
        }
    }
    .ok_or(ListingError::Unreadable)
}

/// An address as it may be asked for, if it may be.
fn page_at(reference: &str, base: &Url) -> Option<Url> {
    let mut url = base.join(reference).ok()?;
    url.set_fragment(None);
    Some(url).filter(is_page)
}
