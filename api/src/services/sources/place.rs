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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bucket(endpoint: Option<&str>, name: &str) -> SyncConfig {
        let config = json!({
            "type": "s3", "endpoint": endpoint, "region": "eu-1", "bucket": name, "prefix": "a", "accessKeyId": null,
            "pathStyle": false, "include": [], "exclude": [], "maxDocuments": 1,
        });
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn a_bucket_is_told_by_its_store_and_its_name() {
        let [amazons, own] =
            [bucket(None, "manuals"), bucket(Some("https://s3.example:9000/key"), "manuals")];
        assert_eq!(told(&amazons).as_deref(), Some("s3://manuals"));
        assert_eq!(told(&own).as_deref(), Some("https://s3.example:9000/manuals"));
        assert!(is_another(&amazons, &own) && is_another(&amazons, &bucket(None, "others")));
        assert!(!is_another(&own, &own));
    }
}
