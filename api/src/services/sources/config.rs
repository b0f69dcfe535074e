//! What is said of the place that a source is.

use std::{
    borrow::Cow,
    path::{Component, Path},
};

use lectern_derive::RequestBody;
use lectern_shared::{
    config::SyncSettings,
    egress::Egress,
    model::{
        document::SourceAuthorization,
        sync::{
            BucketConfig, FeedConfig, FolderConfig, PageDiscovery, PathFilter, SiteConfig, SyncConfig,
            SyncSecret, SyncSourceType,
        },
    },
};
use serde_json::{Map, Value, json};
use url::Url;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Ref, RefOr, Schema, schema::AnyOfBuilder},
};

use super::super::documents::{readers, schema::AuthorizationSchema};
use crate::{
    error::ApiError,
    fields::{self, FieldRule, FromFields, JsonFields},
};

/// Patterns of one list, and how long one may be, in characters.
const PATTERNS: usize = 100;
const PATTERN: usize = 500;
/// Documents of a source of which it is not said how many it may have.
const DOCUMENTS: usize = 1_000;
/// Links that are followed one after another, when nothing else is said.
const DEPTH: usize = 5;

/// Where a source is, and what of it becomes documents, by its type.
pub(crate) struct SourceConfigSchema;

impl PartialSchema for SourceConfigSchema {
    fn schema() -> RefOr<Schema> {
        // Not exactly one of them: an address alone is what a site may have, and a feed, too.
        let forms = [NewSite::name(), NewFeed::name(), NewBucket::name(), NewFolder::name()];
        let any =
            forms.into_iter().fold(AnyOfBuilder::new(), |any, form| any.item(Ref::from_schema_name(form)));
        let description = "Where a source is, and what of it becomes documents, by its type.";
        any.description(Some(description)).into()
    }
}

impl ToSchema for SourceConfigSchema {
    fn name() -> Cow<'static, str> {
        "SourceConfig".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
            schemas.push((T::name().into_owned(), T::schema()));
            T::schemas(schemas);
        }
        add::<NewSite>(schemas);
        add::<NewFeed>(schemas);
        add::<NewBucket>(schemas);
        add::<NewFolder>(schemas);
    }
}

/// A web site.
#[derive(RequestBody, ToSchema)]
#[schema(as = SiteSource, rename_all = "camelCase")]
pub(crate) struct NewSite {
    /// Where it begins: a public http or https address. Nothing but this site is read.
    #[schema(min_length = 1, max_length = 2_000)]
    #[body(with = address)]
    url: String,
    /// How its pages are found: `sitemap`, `crawl` (by their links), or `auto`: by its sitemap if it has one.
    #[schema(value_type = Option<String>)]
    #[body(default = PageDiscovery::Auto)]
    discover: PageDiscovery,
    /// Patterns of the paths of pages that become documents, in which `*` stands for anything, such as `/docs/*`; all when there is none.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[body(with = patterns, default)]
    include: Vec<String>,
    /// Patterns of the paths of pages that are left alone.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[body(with = patterns, default)]
    exclude: Vec<String>,
    /// Links that are followed one after another, at most, when pages are found by links. 5 when left out.
    #[schema(value_type = Option<usize>, minimum = 0, maximum = 50)]
    #[body(default = DEPTH)]
    max_depth: usize,
    /// Documents, at most. 1,000 when left out.
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 1_000_000)]
    #[body(default = DOCUMENTS)]
    max_documents: usize,
    /// What opens it. It is sent to the address's own origin only, kept encrypted, and never shown again.
    #[schema(value_type = Option<AuthorizationSchema>)]
    #[body(with = readers::authorization)]
    authorization: Option<SourceAuthorization>,
}

/// A feed: RSS, Atom or JSON Feed.
#[derive(RequestBody, ToSchema)]
#[schema(as = FeedSource, rename_all = "camelCase")]
pub(crate) struct NewFeed {
    /// Where it is: a public http or https address.
    #[schema(min_length = 1, max_length = 2_000)]
    #[body(with = address)]
    url: String,
    /// Whether the page that an entry links to becomes a document, rather than what the feed says of it. True when left out.
    #[schema(value_type = Option<bool>)]
    #[body(default = true)]
    full_pages: bool,
    /// Whether the document of an entry is gone when the feed has it no more. False when left out: a feed has the latest entries alone.
    #[schema(value_type = Option<bool>)]
    #[body(default = false)]
    only_current: bool,
    /// Documents, at most. 1,000 when left out.
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 1_000_000)]
    #[body(default = DOCUMENTS)]
    max_documents: usize,
    /// What opens it. It is sent to the address's own origin only, kept encrypted, and never shown again.
    #[schema(value_type = Option<AuthorizationSchema>)]
    #[body(with = readers::authorization)]
    authorization: Option<SourceAuthorization>,
}

/// A bucket of S3, or of a store that speaks the same protocol.
#[derive(RequestBody, ToSchema)]
#[schema(as = S3Source, rename_all = "camelCase")]
pub(crate) struct NewBucket {
    /// The store: a public http or https address. Amazon's when left out.
    #[schema(max_length = 2_000)]
    #[body(with = endpoint)]
    endpoint: Option<String>,
    /// The bucket's region. `us-east-1` when left out.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
    #[body(default = "us-east-1".to_owned())]
    region: String,
    /// The bucket.
    #[schema(min_length = 1, max_length = 255)]
    bucket: String,
    /// The folder that the objects are in, such as `handbook/2026`; all of the bucket when left out.
    #[schema(value_type = Option<String>, max_length = 1_000)]
    #[body(default)]
    prefix: String,
    /// The account's key id; without it, the bucket is read as everybody may.
    #[schema(min_length = 1, max_length = 255)]
    access_key_id: Option<String>,
    /// The account's secret. It is kept encrypted, and never shown again.
    #[schema(min_length = 1, max_length = 1_000)]
    secret_access_key: Option<String>,
    /// Whether the bucket is named in the path of addresses, as most stores but Amazon's want it. True with an `endpoint` when left out.
    path_style: Option<bool>,
    /// Patterns of the objects that become documents, by their keys behind the prefix, in which `*` stands for anything, such as `*.pdf`.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[body(with = patterns, default)]
    include: Vec<String>,
    /// Patterns of the objects that are left alone.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[body(with = patterns, default)]
    exclude: Vec<String>,
    /// Documents, at most. 1,000 when left out.
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 1_000_000)]
    #[body(default = DOCUMENTS)]
    max_documents: usize,
}

/// A folder where the workers run, below one that the operator has opened by `LECTERN_SOURCE_FOLDERS`.
#[derive(RequestBody, ToSchema)]
#[schema(as = FolderSource, rename_all = "camelCase")]
pub(crate) struct NewFolder {
    /// Its absolute path.
    #[schema(min_length = 1, max_length = 1_000)]
    path: String,
    /// Patterns of the files that become documents, by their paths within it, in which `*` stands for anything, such as `*.pdf`.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[body(with = patterns, default)]
    include: Vec<String>,
    /// Patterns of the files that are left alone.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[body(with = patterns, default)]
    exclude: Vec<String>,
    /// Documents, at most. 1,000 when left out.
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 1_000_000)]
    #[body(default = DOCUMENTS)]
    max_documents: usize,
}

#[expect(clippy::unnecessary_wraps, reason = "a reader gives nothing for what is missing")]
fn address(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let url = fields.text(rule.name, rule.max_length);
    check_address(fields, rule, &url);
    Some(url)
}

fn endpoint(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let url = fields.optional_text(rule.name, rule.max_length).filter(|url| !url.trim().is_empty())?;
    check_address(fields, rule, &url);
    Some(url)
}

fn check_address(fields: &mut JsonFields<'_>, rule: &FieldRule, url: &str) {
    if !fields.is_refused(rule.name) && Url::parse(url).is_err() {
        fields.refuse(rule.name, "must be an http or https address");
    }
}

fn patterns(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<String>> {
    let texts = fields.texts(rule.name, PATTERNS, "patterns")?;
    for (at, _) in texts.iter().enumerate().filter(|(_, text)| text.chars().count() > PATTERN) {
        fields.refuse(&format!("{}.{at}", rule.name), format_args!("must have at most {PATTERN} characters"));
    }
    let patterns = texts.into_iter().map(str::trim).filter(|pattern| !pattern.is_empty());
    Some(patterns.map(str::to_owned).collect())
}

/// What was said of a source's place.
pub(super) struct GivenConfig {
    pub(super) config: SyncConfig,
    /// Whether anything was said of its secret, be it that there is none.
    pub(super) says_secret: bool,
    authorization: Option<SourceAuthorization>,
    secret_access_key: Option<String>,
}

impl GivenConfig {
    /// Reads what a new source says of it, or a change.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(
        r#type: SyncSourceType,
        config: &Map<String, Value>,
        is_change: bool,
        settings: &SyncSettings,
        egress: &Egress,
    ) -> Result<Self, ApiError> {
        let says_secret = config.contains_key("authorization") || config.contains_key("secretAccessKey");
        let body = json!({ "config": config });
        let given = fields::read(&body, |fields| {
            if is_change {
                fields.begin_change(&["config"]);
            }
            match r#type {
                SyncSourceType::Site => within(fields, Self::of_site),
                SyncSourceType::Feed => within(fields, Self::of_feed),
                SyncSourceType::S3 => within(fields, Self::of_bucket),
                SyncSourceType::Folder => within(fields, Self::of_folder),
            }
        })?;
        let given = Self { says_secret, ..given.ok_or_else(ApiError::internal)? };
        given.check(settings, egress)?;
        Ok(given)
    }

    fn of_site(site: NewSite) -> Self {
        let config = SyncConfig::Site(SiteConfig {
            url: site.url,
            discover: site.discover,
            filter: PathFilter { include: site.include, exclude: site.exclude },
            max_depth: count(site.max_depth),
            max_documents: count(site.max_documents),
        });
        Self { config, says_secret: false, authorization: site.authorization, secret_access_key: None }
    }

    fn of_feed(feed: NewFeed) -> Self {
        let config = SyncConfig::Feed(FeedConfig {
            url: feed.url,
            full_pages: feed.full_pages,
            only_current: feed.only_current,
            max_documents: count(feed.max_documents),
        });
        Self { config, says_secret: false, authorization: feed.authorization, secret_access_key: None }
    }

    fn of_bucket(bucket: NewBucket) -> Self {
        let config = SyncConfig::S3(BucketConfig {
            path_style: bucket.path_style.unwrap_or(bucket.endpoint.is_some()),
            endpoint: bucket.endpoint,
            region: bucket.region,
            bucket: bucket.bucket,
            prefix: bucket.prefix,
            access_key_id: bucket.access_key_id,
            filter: PathFilter { include: bucket.include, exclude: bucket.exclude },
            max_documents: count(bucket.max_documents),
        });
        Self { config, says_secret: false, authorization: None, secret_access_key: bucket.secret_access_key }
    }

    fn of_folder(folder: NewFolder) -> Self {
        let config = SyncConfig::Folder(FolderConfig {
            path: folder.path,
            filter: PathFilter { include: folder.include, exclude: folder.exclude },
            max_documents: count(folder.max_documents),
        });
        Self { config, says_secret: false, authorization: None, secret_access_key: None }
    }

    /// Refuses what the service may not read.
    fn check(&self, settings: &SyncSettings, egress: &Egress) -> Result<(), ApiError> {
        if self.config.max_documents() > settings.items {
            let message = format!("must be at most {}, as the operator has set it", settings.items);
            return Err(ApiError::invalid_field("config.maxDocuments", &message));
        }
        let (name, url) = match &self.config {
            SyncConfig::Site(site) => ("config.url", Some(&site.url)),
            SyncConfig::Feed(feed) => ("config.url", Some(&feed.url)),
            SyncConfig::S3(bucket) => {
                check_bucket(bucket)?;
                ("config.endpoint", bucket.endpoint.as_ref())
            }
            SyncConfig::Folder(folder) => {
                check_folder(&folder.path, settings)?;
                return Ok(());
            }
        };
        let Some(url) = url else { return Ok(()) };
        let checked = Url::parse(url).map_err(|_| "must be an http or https address".to_owned());
        let checked = checked.and_then(|url| egress.check_url(&url).map_err(|error| error.to_string()));
        checked.map_err(|message| ApiError::invalid_field(name, &message))
    }

    /// What opens the source, as far as it is said.
    pub(super) fn secret(&self) -> SyncSecret {
        SyncSecret {
            authorization: self.authorization.clone(),
            secret_access_key: self.secret_access_key.clone(),
        }
    }

    /// Whether a secret that is kept, since none is said, may open the changed source.
    ///
    /// # Errors
    /// When it would be sent somewhere else: whoever may change the source could have it sent to a host of their own, and read what is
    /// never shown.
    pub(super) fn check_kept_secret(&self, before: &SyncConfig) -> Result<(), ApiError> {
        if destination(before) == destination(&self.config) {
            return Ok(());
        }
        let name = match self.config {
            SyncConfig::S3(_) => "config.secretAccessKey",
            _ => "config.authorization",
        };
        let message = "was given for another host or account; send it again, or null to do without";
        Err(ApiError::invalid_field(name, message))
    }
}

fn within<T: FromFields>(
    fields: &mut JsonFields<'_>,
    make: impl FnOnce(T) -> GivenConfig,
) -> Option<GivenConfig> {
    fields.nested("config", T::from_fields).map(make)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Where a secret is sent to, and with what.
fn destination(config: &SyncConfig) -> (Option<String>, Option<&str>) {
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin().ascii_serialization());
    match config {
        SyncConfig::Site(site) => (origin(&site.url), None),
        SyncConfig::Feed(feed) => (origin(&feed.url), None),
        SyncConfig::S3(bucket) => {
            (bucket.endpoint.as_deref().and_then(origin), bucket.access_key_id.as_deref())
        }
        SyncConfig::Folder(_) => (None, None),
    }
}

fn check_bucket(bucket: &BucketConfig) -> Result<(), ApiError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !bucket.bucket.chars().all(is_name) {
        return Err(ApiError::invalid_field("config.bucket", "must be the name of a bucket"));
    }
    if !bucket.region.chars().all(is_name) {
        return Err(ApiError::invalid_field("config.region", "must be a region such as eu-central-1"));
    }
    Ok(())
}

fn check_folder(path: &str, settings: &SyncSettings) -> Result<(), ApiError> {
    let refuse = |message: &str| Err(ApiError::invalid_field("config.path", message));
    if settings.folders.is_empty() {
        return refuse("cannot be read: the operator has opened no folder (LECTERN_SOURCE_FOLDERS)");
    }
    let path = Path::new(path);
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !is_plain {
        return refuse("must be an absolute path such as /srv/documents");
    }
    if !settings.folders.iter().any(|folder| path.starts_with(folder)) {
        return refuse("must be within a folder that the operator has opened (LECTERN_SOURCE_FOLDERS)");
    }
    Ok(())
}
