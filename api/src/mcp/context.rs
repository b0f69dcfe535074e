//! What a request brings to the tool that it calls.

use std::sync::Arc;

use axum::http::request::Parts;
use lectern_shared::{ids::WorkspaceId, shutdown::Shutdown};
use rmcp::{ErrorData, RoleServer, service::RequestContext};
use tracing::Span;

use super::{arguments::CallArguments, running::RunningCall};
use crate::{
    error::ApiError,
    public_address::PublicAddress,
    run_stream::LAST_WORDS,
    services::{
        actor::{Actor, Permission},
        citations::{CitationLinks, PassageReference},
    },
};

/// Who calls, and from where. It goes with the request through the library that reads messages.
#[derive(Clone)]
pub(super) struct CallContext {
    pub(super) actor: Arc<Actor>,
    pub(super) address: Arc<PublicAddress>,
    /// What the tool is given.
    pub(super) arguments: CallArguments,
    /// None for messages that call no tool, and for calls that can be taken back by hanging up alone.
    pub(super) running: Option<Arc<RunningCall>>,
    pub(super) shutdown: Option<Shutdown>,
    /// What is logged belongs to the request.
    pub(super) span: Span,
}

impl CallContext {
    /// What came with a message.
    ///
    /// # Errors
    /// An internal one: every message has passed the endpoint.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Result<Self, ErrorData> {
        let known = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Self>());
        known.cloned().ok_or_else(|| ErrorData::internal_error("The service failed.", None))
    }

    /// The workspace, for whoever may do this there.
    pub(super) fn workspace(&self, permission: Permission) -> Result<WorkspaceId, ApiError> {
        Ok(self.actor.may(permission)?.workspace_id)
    }

    /// The address at which a passage can be read.
    pub(super) fn link(
        &self,
        links: &CitationLinks,
        workspace: WorkspaceId,
        passage: &PassageReference,
    ) -> Result<String, ApiError> {
        Ok(self.address.link(&links.path(workspace, passage)?))
    }

    /// Waits until the client takes its call back.
    pub(super) async fn cancelled(&self) {
        match &self.running {
            Some(running) => running.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the service is asked to stop, and as long as an answer may go on then.
    pub(super) async fn stopped(&self) {
        match &self.shutdown {
            Some(shutdown) => {
                shutdown.soft().cancelled().await;
                tokio::time::sleep(LAST_WORDS).await;
            }
            None => std::future::pending().await,
        }
    }
}
