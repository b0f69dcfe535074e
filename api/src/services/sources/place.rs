//! Where a source is, as the audit log may tell it.

use lectern_shared::{address, model::sync::SyncConfig};

/// A source's place, of addresses what holds no key.
pub(super) fn told(config: &SyncConfig) -> Option<String> {
    match config {
        SyncConfig::Site(site) => address::origin(&site.url),
        SyncConfig::Feed(feed) => address::origin(&feed.url),
        SyncConfig::S3(bucket) => {
            let store = bucket.endpoint.as_deref().and_then(address::origin);
            let name = &bucket.bucket;
            Some(store.map_or_else(|| format!("s3://{name}"), |store| format!("{store}/{name}")))
        }
        SyncConfig::Folder(folder) => Some(folder.path.clone()),
    }
}

/// Whether a source is elsewhere than before.
pub(super) fn is_another(before: &SyncConfig, after: &SyncConfig) -> bool {
    (store(before), before.place()) != (store(after), after.place())
}

fn store(config: &SyncConfig) -> Option<&str> {
    match config {
        SyncConfig::S3(bucket) => bucket.endpoint.as_deref(),
        SyncConfig::Site(_) | SyncConfig::Feed(_) | SyncConfig::Folder(_) => None,
    }
}
