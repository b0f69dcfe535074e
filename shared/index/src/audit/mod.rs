//! Whether what was promised is there: what the store and the search index hold of documents that answer, compared with what they
//! should hold. The sweeper asks this all the time, the doctor when it is told to; over all workspaces.

mod damage;

use std::collections::HashMap;

pub use self::damage::{DocumentDamage, is_under_way};
use lectern_db::{
    Db,
    checkup::{self, SearchableDocument},
};
use lectern_shared::ids::GenerationId;

use self::damage::{GenerationAudit, expected};
use crate::{ExpectedEntries, IndexError, SearchIndex};

/// A document that answers, and what is wrong with it, if anything is.
#[derive(Debug)]
pub struct AuditedDocument {
    /// The document.
    pub document: SearchableDocument,
    /// The worst that is wrong with it.
    pub damage: Option<DocumentDamage>,
}

impl AuditedDocument {
    /// How many passages it should have.
    pub fn expected(&self) -> i64 {
        expected(&self.document)
    }
}

/// Compares documents with what is held of them. Without an index, which may be away, only the store is asked.
pub async fn compare(
    db: &Db,
    index: Option<&dyn SearchIndex>,
    documents: Vec<SearchableDocument>,
) -> Result<Vec<AuditedDocument>, IndexError> {
    let generations: Vec<GenerationId> = documents.iter().map(|document| document.generation).collect();
    let entries = match index {
        Some(index) => index.mismatched(&wanted(&documents)).await?.into_iter().collect(),
        None => HashMap::new(),
    };
    let holdings = GenerationAudit { passages: checkup::passages(db, &generations).await?, entries };
    let audited = |document| AuditedDocument { damage: damage::damage(&document, &holdings), document };
    Ok(documents.into_iter().map(audited).collect())
}

fn wanted(documents: &[SearchableDocument]) -> Vec<ExpectedEntries> {
    let wanted = |document: &SearchableDocument| ExpectedEntries {
        generation: document.generation,
        entries: u64::try_from(expected(document)).unwrap_or(0),
        space: document.embedding_space,
    };
    documents.iter().map(wanted).collect()
}
