//! Where blobs are, as the settings say it.

use std::{fmt, path::PathBuf};

use secrecy::SecretString;
use url::Url;

/// Where blobs are. Shown as the path, or as `s3://bucket/prefix`.
#[derive(Clone, Debug)]
pub enum BlobLocation {
    /// A folder, of this machine or shared by several.
    Folder(PathBuf),
    /// A bucket.
    S3(S3Location),
}

/// A bucket of an S3-compatible store, and how to get at it.
#[derive(Clone)]
pub struct S3Location {
    /// The bucket.
    pub bucket: String,
    /// What the names of all objects begin with, without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
    /// The store's address; unset, Amazon's for the region. Plain `http` is used when it says so.
    pub endpoint: Option<Url>,
    /// The region; unset, `us-east-1`, which stores without regions take for their own.
    pub region: Option<String>,
    /// The account's key id. Without it, credentials are those of the role of the instance on which this runs.
    pub access_key_id: Option<String>,
    /// The account's secret key.
    pub secret_access_key: Option<SecretString>,
    /// The third part of temporary credentials.
    pub session_token: Option<SecretString>,
    /// Whether the bucket is named in the path, instead of in the host name.
    pub path_style: bool,
}

impl fmt::Display for BlobLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::S3(s3) => s3.fmt(f),
        }
    }
}

impl fmt::Display for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl fmt::Debug for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Location")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            // Only the origin: people write passwords into addresses.
            .field("endpoint", &self.endpoint.as_ref().map(|url| url.origin().ascii_serialization()))
            .field("region", &self.region)
            .field("access_key_id", &self.access_key_id.as_ref().map(|_| "set"))
            .field("secret_access_key", &self.secret_access_key.as_ref().map(|_| "set"))
            .field("session_token", &self.session_token.as_ref().map(|_| "set"))
            .field("path_style", &self.path_style)
            .finish()
    }
}

/// The endpoint of an S3-compatible store as its clients want it: with the bucket in the host name, unless that goes into the path. None
/// when the bucket cannot be part of it.
pub fn bucket_address(endpoint: &Url, bucket: &str, path_style: bool) -> Option<String> {
    let mut url = endpoint.clone();
    if !path_style {
        let host = format!("{bucket}.{}", endpoint.domain()?);
        url.set_host(Some(&host)).ok()?;
    }
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}
