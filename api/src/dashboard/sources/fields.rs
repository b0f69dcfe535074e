//! The form of a source: what is in it, and what there is to choose from.

use lectern_shared::{
    clock::Timestamp,
    model::sync::{
        BucketConfig, FeedConfig, FolderConfig, PageDiscovery, PathFilter, SiteConfig, SyncConfig,
        SyncSource, SyncSourceType,
    },
};
use serde_json::json;

use crate::{
    dashboard::{choices::NameChoice, edits::ShownFields},
    services::sources::written_every,
};

/// How often a source may run, as people choose it.
const INTERVALS: [(&str, &str); 7] = [
    ("15m", "every 15 minutes"),
    ("1h", "every hour"),
    ("6h", "every 6 hours"),
    ("12h", "every 12 hours"),
    ("1d", "every day"),
    ("7d", "every week"),
    ("30d", "every 30 days"),
];

/// The fields of a source's configuration, whatever its type, and what each is called.
pub(in crate::dashboard) const CONFIG: [(&str, &str); 15] = [
    ("config.url", "Address"),
    ("config.discover", "Its pages are found"),
    ("config.maxDepth", "Links that are followed one after another"),
    ("config.fullPages", "Whether the pages of entries are read"),
    ("config.onlyCurrent", "Whether documents go with their entries"),
    ("config.endpoint", "Address of the store"),
    ("config.bucket", "Bucket"),
    ("config.region", "Region"),
    ("config.prefix", "Folder in the bucket"),
    ("config.accessKeyId", "Key id"),
    ("config.pathStyle", "Whether the bucket is named in the path"),
    ("config.path", "Its path"),
    ("config.include", "Only what is like this becomes documents"),
    ("config.exclude", "What is like this is left alone"),
    ("config.maxDocuments", "Documents, at most"),
];

/// The fields of a source's form, with what is in them.
pub(super) struct SourceFields {
    /// What the form is made from; empty for a new source.
    pub(super) seen: String,
    pub(super) kind: SyncSourceType,
    pub(super) is_new: bool,
    pub(super) name: String,
    pub(super) config: SyncConfig,
    pub(super) has_secret: bool,
    pub(super) every: String,
    pub(super) delete_limit: i64,
    pub(super) collection: String,
    pub(super) collections: NameChoice,
    /// How often, of what can be chosen.
    pub(super) intervals: Vec<(String, String)>,
}

impl SourceFields {
    pub(super) fn new(kind: SyncSourceType, collections: NameChoice) -> Self {
        let config = empty(kind);
        Self {
            seen: String::new(),
            kind,
            is_new: true,
            name: String::new(),
            config,
            has_secret: false,
            every: "1d".to_owned(),
            delete_limit: 20,
            collection: String::new(),
            collections,
            intervals: intervals(""),
        }
    }

    pub(super) fn of(source: SyncSource, collections: NameChoice) -> Self {
        let every = written_every(&source).unwrap_or_default();
        let changed_last = source.updated_at;
        let mut fields = Self {
            seen: String::new(),
            kind: source.config.0.source_type(),
            is_new: false,
            name: source.name,
            has_secret: source.secret_sealed.is_some(),
            intervals: intervals(&every),
            every,
            delete_limit: source.delete_limit,
            collection: source.collection_id.map(|id| id.to_string()).unwrap_or_default(),
            collections,
            config: source.config.0,
        };
        fields.seen = fields.shown(changed_last).seen();
        fields
    }

    /// What the form shows of a source that was changed last at a time.
    pub(super) fn shown(&self, changed_last: Timestamp) -> ShownFields {
        let config = json!(self.config);
        let none = |name: &str| vec![(String::new(), name.to_owned())];
        let collections = [none("none"), self.collections.offered.clone()].concat();
        let intervals = [none("only by hand"), self.intervals.clone()].concat();
        let shown = CONFIG.into_iter().fold(
            ShownFields::of(changed_last).text("name", "Name", &self.name),
            |shown, (path, label)| match path.split_once('.').and_then(|(_, name)| config.get(name)) {
                Some(value) => shown.value(path, label, value),
                None => shown,
            },
        );
        shown
            .choice("collectionId", "Collection", &self.collection, &collections)
            .choice("every", "It runs", &self.every, &intervals)
            .value(
                "deleteLimit",
                "Per cent that may be deleted without a question",
                &json!(self.delete_limit),
            )
    }

    /// What of it becomes documents, where that is told by paths.
    pub(super) fn filter(&self) -> Option<&PathFilter> {
        match &self.config {
            SyncConfig::Site(SiteConfig { filter, .. })
            | SyncConfig::S3(BucketConfig { filter, .. })
            | SyncConfig::Folder(FolderConfig { filter, .. }) => Some(filter),
            SyncConfig::Feed(_) => None,
        }
    }

    pub(super) fn is_site(&self) -> bool {
        self.kind == SyncSourceType::Site
    }

    pub(super) fn takes_authorization(&self) -> bool {
        matches!(self.kind, SyncSourceType::Site | SyncSourceType::Feed)
    }
}

/// How often a source may run, with one that is none of those that can be chosen.
fn intervals(own: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        INTERVALS.iter().map(|(value, words)| ((*value).to_owned(), (*words).to_owned())).collect();
    if !own.is_empty() && all.iter().all(|(value, _)| value != own) {
        all.push((own.to_owned(), format!("every {own}")));
    }
    all
}

/// What a form begins with.
fn empty(kind: SyncSourceType) -> SyncConfig {
    let (url, max_documents, filter) = (String::new(), 1_000, PathFilter::default());
    match kind {
        SyncSourceType::Site => SyncConfig::Site(SiteConfig {
            url,
            discover: PageDiscovery::Auto,
            filter,
            max_depth: 5,
            max_documents,
        }),
        SyncSourceType::Feed => {
            SyncConfig::Feed(FeedConfig { url, full_pages: true, only_current: false, max_documents })
        }
        SyncSourceType::S3 => SyncConfig::S3(BucketConfig {
            endpoint: None,
            region: "us-east-1".to_owned(),
            bucket: String::new(),
            prefix: String::new(),
            access_key_id: None,
            path_style: false,
            filter,
            max_documents,
        }),
        SyncSourceType::Folder => {
            SyncConfig::Folder(FolderConfig { path: String::new(), filter, max_documents })
        }
    }
}
