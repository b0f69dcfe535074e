//! Where a document's text comes from: how its source is got (`fetch`, `video`) and read (`read`, `load`).
//!
//! `ingest` and `preview` come here. What runs here is the service: strangers' bytes go to the child, through
//! [`sandbox`](crate::sandbox), and come back as frames; nothing here knows how a format is read.

mod fetch;
mod load;
pub(crate) mod parts;
pub mod pdf;
mod read;
mod video;

pub(crate) use self::{
    fetch::{FetchBudget, SourceFetcher, authorization_headers, temporary_file},
    load::{DownloadedFile, FetchedSource, LoadContext, load},
    read::{ReadOutcome, SourceReading},
};
