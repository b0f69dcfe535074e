//! The attributes of the files in which passages were found. A run does not tell them: they are read when something is found.

use std::sync::Arc;

use lectern_agents::run::RunEvent;

use super::run::ResponseRun;
use crate::{
    openai::entries::shown_attributes,
    response::ApiResult,
    services::{actor::Actor, documents::DocumentService},
};

/// Reads the attributes of files for somebody.
pub(super) struct AttributeReader {
    documents: DocumentService,
    actor: Arc<Actor>,
}

impl AttributeReader {
    pub(super) fn new(documents: DocumentService, actor: Arc<Actor>) -> Self {
        Self { documents, actor }
    }

    /// Reads those of the files that an event tells of, as far as the response does not know them yet.
    pub(super) async fn prepare(&self, run: &mut ResponseRun, event: &RunEvent) -> ApiResult<()> {
        let files = run.unknown_files(event);
        if files.is_empty() {
            return Ok(());
        }
        let read = self.documents.metadata_of(&self.actor, &files).await?;
        run.learn(read.into_iter().map(|(file, metadata)| (file, shown_attributes(metadata))));
        Ok(())
    }
}
