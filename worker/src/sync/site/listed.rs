//! The pages that a site lists.

use std::collections::{HashSet, VecDeque};

use lectern_parse::protocol::{Listing, ListingKind, MAX_LISTED, SitemapListing};
use lectern_sandbox::ListOrder;
use lectern_shared::address::shown;
use url::Url;

use super::SiteReader;
use crate::sync::{
    address::is_same_site,
    failure::RunFailure,
    frontier::LISTED_EACH,
    listing,
    pages::{KnownPage, SmallFile},
    sitemap::{self, SITEMAP_BYTES},
};

/// Sitemaps of one site.
const SITEMAPS: usize = 500;
/// Bytes of the addresses that sitemaps list in all.
const LISTED_BYTES: usize = 32 << 20;

impl SiteReader<'_, '_, '_> {
    /// The pages that the site's sitemaps list; none when it has no sitemap.
    pub(super) async fn listed(&mut self) -> Result<Option<Vec<Url>>, RunFailure> {
        let mut sitemaps: VecDeque<Url> = self.client.sitemaps(&self.start).await?.into();
        if sitemaps.len() > SITEMAPS {
            sitemaps.truncate(SITEMAPS);
            self.is_complete = false;
        }
        let is_named = !sitemaps.is_empty();
        if !is_named {
            sitemaps.extend(self.start.join("/sitemap.xml"));
        }
        let (mut pages, mut read, mut room) = (None, HashSet::new(), LISTED_BYTES);
        while let Some(address) = sitemaps.pop_front() {
            if !is_same_site(&address, &self.start) || !read.insert(address.clone()) {
                continue;
            }
            let file = match self.client.small_file(&address, KnownPage::default(), SITEMAP_BYTES).await {
                Ok(file) => file,
                // Nobody said that there is one.
                Err(RunFailure::Stopped(_)) if !is_named && pages.is_none() => return Ok(None),
                Err(failure) => return Err(failure),
            };
            let SmallFile::Read { bytes, .. } = file else {
                self.is_complete = false;
                continue;
            };
            let Some(bytes) = sitemap::unpacked(bytes).await else {
                let address = shown(&address);
                return Err(RunFailure::stop(format!("The sitemap {address} is too large, or damaged")));
            };
            let order = ListOrder {
                kind: ListingKind::Sitemap,
                url: address,
                charset: None,
                texts: false,
                max_entries: MAX_LISTED,
            };
            match listing::read(self.sandbox, order, &bytes).await? {
                Some(Listing::Sitemap(SitemapListing { is_index: true, addresses, is_complete })) => {
                    let room = SITEMAPS.saturating_sub(read.len() + sitemaps.len());
                    self.is_complete &= is_complete && addresses.len() <= room;
                    sitemaps.extend(addresses.into_iter().take(room));
                    pages.get_or_insert_default();
                }
                Some(Listing::Sitemap(SitemapListing { addresses, is_complete, .. })) => {
                    self.is_complete &= is_complete;
                    let pages: &mut Vec<Url> = pages.get_or_insert_default();
                    for page in addresses.into_iter().filter(|page| is_same_site(page, &self.start)) {
                        let Some(left) = room.checked_sub(page.as_str().len()) else {
                            self.is_complete = false;
                            return Ok(Some(std::mem::take(pages)));
                        };
                        room = left;
                        pages.push(page);
                    }
                    if pages.len() > self.most.saturating_mul(LISTED_EACH) {
                        self.is_complete = false;
                        break;
                    }
                }
                _ if is_named => self.is_complete = false,
                _ => {}
            }
        }
        if pages.is_none() {
            self.is_complete = true;
        }
        Ok(pages)
    }
}
