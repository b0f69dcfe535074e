//! What readers of sources are given, and what they return.

use lectern_runtime::Runtime;
use lectern_sandbox::Sandbox;
use lectern_shared::{
    compute::ComputePool,
    model::sync::{SyncSecret, SyncSource},
};

use super::hosts::HostPacer;

/// What was looked at of a source.
pub(super) struct Enumeration {
    /// Why what was not come across is not there any more; none when that cannot be said, since not everything was looked at.
    pub(super) unseen: Option<&'static str>,
    /// Whether everything was looked at, or is known not to be part of it.
    pub(super) is_complete: bool,
    /// By what the feed is known that was read.
    pub(super) validators: Option<(Option<String>, Option<String>)>,
}

/// What a reader of sources works with.
pub(super) struct SyncContext<'a> {
    pub(super) runtime: &'a Runtime,
    /// Where lists are read, in the workspace's turns.
    pub(super) sandbox: &'a Sandbox,
    pub(super) pacer: &'a HostPacer,
    /// Where folders are looked into.
    pub(super) folders: &'a ComputePool,
    pub(super) source: &'a SyncSource,
    pub(super) secret: &'a SyncSecret,
}
