//! Sources: places whose documents are kept in step with what is there, and their runs.

use std::fmt;

use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{ClaimId, CollectionId, DocumentId, SourceId, SourceRunId, SourceRunItemId, UserId, WorkspaceId},
    model::{Json, document::SourceAuthorization, text_enum, workspace::RowOwner},
};

text_enum! {
    /// What kind of place it is.
    SyncSourceType {
        /// The pages of a web site.
        Site => "site",
        /// The entries of a feed: RSS, Atom or JSON Feed.
        Feed => "feed",
        /// The objects of a bucket of S3, or of a store that speaks the same protocol.
        S3 => "s3",
        /// The files of a folder of the operator's.
        Folder => "folder",
    }
}

text_enum! {
    /// How the pages of a site are found.
    #[derive(Default)]
    PageDiscovery {
        /// By its sitemap if it has one, else by its links.
        #[default]
        Auto => "auto",
        /// By its sitemap.
        Sitemap => "sitemap",
        /// By the links of its pages.
        Crawl => "crawl",
    }
}

text_enum! {
    /// Where a run stands.
    SyncRunState {
        /// It waits for a worker.
        Queued => "queued",
        /// A worker is at it.
        Running => "running",
        /// It has found more documents gone than may be deleted without somebody saying so.
        Waiting => "waiting",
        /// It came to its end.
        Succeeded => "succeeded",
        /// It could not be done.
        Failed => "failed",
        /// Somebody stopped it.
        Cancelled => "cancelled",
    }
}

text_enum! {
    /// What became of something in a run.
    SyncOutcome {
        /// A document was made of it.
        Added => "added",
        /// Its document has its new content.
        Changed => "changed",
        /// Its document is one that was found elsewhere before.
        Moved => "moved",
        /// It is not there any more; its document is deleted at the end of the run.
        Gone => "gone",
        /// It could not be had; its document, if there is one, stays as it was.
        Failed => "failed",
        /// It was come across, and no document is made of it.
        Skipped => "skipped",
    }
}

/// Which of many are meant, by patterns of their paths in which `*` stands for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathFilter {
    /// Those that pass, all when there is none.
    pub include: Vec<String>,
    /// And of these, those that do not.
    pub exclude: Vec<String>,
}

impl PathFilter {
    /// Whether something with this path is meant.
    pub fn admits(&self, path: &str) -> bool {
        self.admits_any(&[path])
    }

    /// [`Self::admits`] of something whose path can be written in several ways: patterns may be about each of them.
    pub fn admits_any(&self, paths: &[&str]) -> bool {
        (self.include.is_empty() || any_matches(&self.include, paths)) && !self.excludes_any(paths)
    }

    /// Whether something with this path is left out whatever else is said.
    pub fn excludes(&self, path: &str) -> bool {
        self.excludes_any(&[path])
    }

    /// [`Self::excludes`] of something whose path can be written in several ways.
    pub fn excludes_any(&self, paths: &[&str]) -> bool {
        any_matches(&self.exclude, paths)
    }

    /// Whether a file is left out since it, or a folder that it is in, is hidden or the lock of an editor. One that is meant is named by a
    /// pattern with a part that begins so, too.
    pub fn hides(&self, path: &str) -> bool {
        let is_named = |part: &str| {
            let mut include = self.include.iter();
            include.any(|pattern| matches(pattern, path) && names_hidden(pattern, part))
        };
        path.split('/').any(|part| is_hidden(part) && !is_named(part))
    }

    /// Whether nothing in a folder of this name can be meant, since it is hidden.
    pub fn hides_folder(&self, name: &str) -> bool {
        is_hidden(name) && !self.include.iter().any(|pattern| names_hidden(pattern, name))
    }
}

/// Whether a name is one that lists of files leave out, or that an editor gives its locks.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || name.starts_with("~$")
}

/// Whether a part of a pattern stands for a hidden name, and for none that is not hidden.
fn names_hidden(pattern: &str, name: &str) -> bool {
    pattern.split('/').any(|part| is_hidden(part) && matches(part, name))
}

fn any_matches(patterns: &[String], paths: &[&str]) -> bool {
    patterns.iter().any(|pattern| paths.iter().any(|path| matches(pattern, path)))
}

/// Whether a path is what a pattern says, in time by the product of their lengths at most.
fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The pages of a web site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteConfig {
    /// Where it begins.
    pub url: String,
    /// How its pages are found.
    pub discover: PageDiscovery,
    /// Which of them become documents, by the path of their address.
    #[serde(flatten)]
    pub filter: PathFilter,
    /// Links that are followed one after another, when its pages are found by these.
    pub max_depth: u32,
    /// Documents, at most.
    pub max_documents: u32,
}

/// The entries of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedConfig {
    /// The feed.
    pub url: String,
    /// Whether the page that an entry links to becomes a document, rather than what the feed says of it.
    pub full_pages: bool,
    /// Whether the document of an entry goes when the feed has it no more.
    pub only_current: bool,
    /// Documents, at most.
    pub max_documents: u32,
}

/// The objects of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketConfig {
    /// The store; Amazon's when none.
    pub endpoint: Option<String>,
    /// Its region.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// What the keys of the objects begin with.
    pub prefix: String,
    /// The account; everybody's when none.
    pub access_key_id: Option<String>,
    /// Whether the bucket is named in the path of an address, not in its host.
    pub path_style: bool,
    /// Which objects become documents, by their keys behind the prefix.
    #[serde(flatten)]
    pub filter: PathFilter,
    /// Documents, at most.
    pub max_documents: u32,
}

/// The files of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FolderConfig {
    /// The folder, below one that the operator has opened.
    pub path: String,
    /// Which files become documents, by their paths within it.
    #[serde(flatten)]
    pub filter: PathFilter,
    /// Documents, at most.
    pub max_documents: u32,
}

/// What a source is, by its type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SyncConfig {
    /// A web site.
    Site(SiteConfig),
    /// A feed.
    Feed(FeedConfig),
    /// A bucket.
    S3(BucketConfig),
    /// A folder.
    Folder(FolderConfig),
}

impl SyncConfig {
    /// The type of the source.
    pub fn source_type(&self) -> SyncSourceType {
        match self {
            Self::Site(_) => SyncSourceType::Site,
            Self::Feed(_) => SyncSourceType::Feed,
            Self::S3(_) => SyncSourceType::S3,
            Self::Folder(_) => SyncSourceType::Folder,
        }
    }

    /// The most documents that are made of it.
    pub fn max_documents(&self) -> u32 {
        match self {
            Self::Site(SiteConfig { max_documents, .. })
            | Self::Feed(FeedConfig { max_documents, .. })
            | Self::S3(BucketConfig { max_documents, .. })
            | Self::Folder(FolderConfig { max_documents, .. }) => *max_documents,
        }
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        match self {
            Self::Site(SiteConfig { url, .. }) | Self::Feed(FeedConfig { url, .. }) => url.clone(),
            Self::S3(BucketConfig { bucket, prefix, .. }) => format!("s3://{bucket}/{prefix}"),
            Self::Folder(FolderConfig { path, .. }) => path.clone(),
        }
    }
}

/// What opens a source.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncSecret {
    /// Of a site or a feed: what is sent to its own origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<SourceAuthorization>,
    /// Of a bucket: the secret of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<String>,
}

impl SyncSecret {
    /// Whether there is nothing to keep secret.
    pub fn is_empty(&self) -> bool {
        self.authorization.is_none() && self.secret_access_key.is_none()
    }
}

/// Without what it holds.
impl fmt::Debug for SyncSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSecret").finish_non_exhaustive()
    }
}

/// A place whose documents are kept in step with what is there.
#[derive(Clone, Debug, FromRow)]
pub struct SyncSource {
    /// Its id.
    pub id: SourceId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// What it is called.
    pub name: String,
    /// The collection that its documents go into.
    pub collection_id: Option<CollectionId>,
    /// What it is.
    pub config: Json<SyncConfig>,
    /// [`SyncSecret`] as JSON, sealed.
    pub secret_sealed: Option<Vec<u8>>,
    /// Seconds between its runs; none when it runs when somebody says so.
    pub every_seconds: Option<i64>,
    /// How many of its documents may be deleted in one run without a question, in per cent.
    pub delete_limit: i64,
    /// When it runs next by itself.
    pub next_run_at: Option<Timestamp>,
    /// By what the feed is known that was read last.
    pub etag: Option<String>,
    /// When that was last changed, as its server wrote it.
    pub last_modified: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How many documents it has.
    #[sqlx(default)]
    pub documents: i64,
}

/// A run of a source.
#[derive(Clone, Debug, FromRow)]
pub struct SyncRun {
    /// Its id.
    pub id: SourceRunId,
    /// The workspace that it is of.
    pub workspace_id: WorkspaceId,
    /// The source.
    pub source_id: SourceId,
    /// Where it stands.
    pub state: SyncRunState,
    /// Who asked for it; none for the schedule.
    pub requested_by: Option<UserId>,
    /// Who said that so many documents may be deleted.
    pub confirmed_by: Option<UserId>,
    /// Whether nothing is changed.
    pub dry_run: bool,
    /// Whether everything is read anew, and documents are made again that somebody deleted.
    pub is_full: bool,
    /// The claim of the worker that is at it.
    pub claim_id: Option<ClaimId>,
    /// How often a worker has taken it up.
    pub attempts: i64,
    /// What was found.
    #[sqlx(flatten)]
    pub counts: SyncCounts,
    /// How many things it came across of which no document is made, as far as they are named.
    pub skipped: i64,
    /// Why it failed, or what it asks.
    pub error: Option<String>,
    /// What is to be known of it although it did not fail.
    pub warning: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When a worker took it up.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl SyncRun {
    /// When it last came further: was asked for, taken up, or ended.
    pub fn updated_at(&self) -> Timestamp {
        self.finished_at.or(self.started_at).unwrap_or(self.created_at)
    }
}

/// What was found in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct SyncCounts {
    /// New ones.
    pub added: i64,
    /// Those with another content than before.
    pub changed: i64,
    /// Those that were elsewhere before.
    pub moved: i64,
    /// Those that are as they were.
    pub unchanged: i64,
    /// Those that somebody deleted here, and that are left away.
    pub deleted_here: i64,
    /// Those that are not there any more.
    pub gone: i64,
    /// Those that could not be had.
    pub failed: i64,
    /// Bytes that were received.
    pub bytes: i64,
}

/// What is known of something that a document was made of.
#[derive(Clone, Debug, FromRow)]
pub struct SyncItem {
    /// Its address, or its path.
    pub item_key: String,
    /// The document.
    pub document_id: DocumentId,
    /// What the source last called the document; none when that was before this was noted.
    pub name: Option<String>,
    /// The entity tag that it had.
    pub etag: Option<String>,
    /// When it was last changed, as its server wrote it.
    pub last_modified: Option<String>,
    /// SHA-256 of it, in hexadecimal.
    pub sha256: Option<String>,
    /// Where it links to.
    pub links: Option<Json<Vec<String>>>,
    /// What its feed calls it, whatever page it links to.
    pub entry_id: Option<String>,
    /// The run that saw it last.
    pub seen_run: Option<SourceRunId>,
    /// Whether its document is still there: somebody may have deleted it.
    pub is_alive: bool,
    /// Bytes of that document's file.
    pub bytes: Option<i64>,
}

/// What was found of something in a run.
#[derive(Clone, Debug, FromRow)]
pub struct SyncRunItem {
    /// Its id.
    pub id: SourceRunItemId,
    /// Its address, or its path.
    pub item_key: String,
    /// What became of it.
    pub outcome: SyncOutcome,
    /// Why.
    pub reason: Option<String>,
    /// Its document.
    pub document_id: Option<DocumentId>,
}

#[cfg(test)]
mod tests;
