//! Typed identifiers. A document's id cannot be passed where an agent's is wanted, and what a caller sends as
//! an id is parsed once, at the edge.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text is no id that this service could have given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id")]
pub struct InvalidId;

macro_rules! decl_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// A UUIDv7, written as hyphenated lower-case text; ids made by one process sort by creation.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, sqlx::Type)]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, greater than every one made before in this process.
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }

            /// The id as a plain UUID.
            pub fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                // The other spellings that `Uuid` reads (braces, urn:, no hyphens) were never given out.
                if text.len() != 36 {
                    return Err(InvalidId);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId)
            }
        }
    )*};
}

decl_id! {
    /// An account.
    UserId;
    /// A workspace: whose data it is. That of an account alone has the account's id.
    WorkspaceId;
    /// An invitation to a workspace.
    InvitationId;
    /// A line of the audit log.
    AuditEventId;
    /// A collection of documents.
    CollectionId;
    /// A link between an agent and a collection.
    AgentCollectionId;
    /// Documents that were put into a collection at once.
    FileBatchId;
    /// An API token.
    ApiTokenId;
    /// Who asked, as far as it is known: an account, or an API token that many may hold.
    AskerId;
    /// A document.
    DocumentId;
    /// One complete, immutable ingestion of a document.
    GenerationId;
    /// A queued piece of work.
    JobId;
    /// One worker's hold on a job; new at every claim.
    ClaimId;
    /// An agent.
    AgentId;
    /// A tool.
    ToolId;
    /// A tag.
    TagId;
    /// A prompt.
    PromptId;
    /// A page on which an agent is asked.
    PublicationId;
    /// A receiver of events.
    WebhookId;
    /// An event on its way to a receiver.
    WebhookDeliveryId;
    /// A source that documents are kept in step with.
    SourceId;
    /// A run of a source.
    SourceRunId;
    /// What became of something in a run of a source.
    SourceRunItemId;
    /// A set of questions with what is to come of them.
    EvaluationId;
    /// One of these questions.
    EvaluationCaseId;
    /// A run of such a set.
    EvaluationRunId;
    /// What an agent was before it was changed.
    AgentVersionId;
    /// A link between an agent and a document.
    AgentDocumentId;
    /// A link between an agent and a tool.
    AgentToolId;
    /// The record of one predict.
    TraceId;
}

impl From<UserId> for WorkspaceId {
    /// The account's own workspace.
    fn from(user: UserId) -> Self {
        Self(user.0)
    }
}

/// The namespace of [`ChunkId`]s. Part of the data format: it never changes.
const CHUNK_NAMESPACE: Uuid = Uuid::from_u128(0x3f0d_5c1e_90a4_4c5b_8b61_7a2d_1c4e_9f30);

/// A passage of a document, the same id however often the same text is indexed at the same place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct ChunkId(Uuid);

impl ChunkId {
    /// The id of the passage `text` that stands at `place` (its JSON) as number `ordinal` of `document`: a `UUIDv5`.
    pub fn derive(document: DocumentId, ordinal: u32, text: &str, place: &str) -> Self {
        let mut name = Vec::with_capacity(16 + 4 + 8 + text.len() + place.len());
        name.extend_from_slice(document.as_uuid().as_bytes());
        name.extend_from_slice(&ordinal.to_be_bytes());
        name.extend_from_slice(&(text.len() as u64).to_be_bytes());
        name.extend_from_slice(text.as_bytes());
        name.extend_from_slice(place.as_bytes());
        Self(Uuid::new_v5(&CHUNK_NAMESPACE, &name))
    }

    /// The id as a plain UUID.
    pub fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl From<Uuid> for ChunkId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_from_its_own_text_and_from_no_other_spelling() {
        let id = DocumentId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "1", "../etc/passwd", &format!("{{{id}}}"), &id.as_uuid().simple().to_string()] {
            assert_eq!(wrong.parse::<DocumentId>(), Err(InvalidId), "{wrong}");
        }
    }

    #[test]
    fn ids_sort_by_creation() {
        let ids: Vec<_> = (0..1000).map(|_| JobId::generate()).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn a_chunk_id_depends_on_document_ordinal_text_and_place_alone() {
        let document = DocumentId::generate();
        let id = ChunkId::derive(document, 1, "text", "{}");
        assert_eq!(id, ChunkId::derive(document, 1, "text", "{}"));
        assert_ne!(id, ChunkId::derive(document, 2, "text", "{}"));
        assert_ne!(id, ChunkId::derive(document, 1, "tex", "t{}"));
        assert_ne!(id, ChunkId::derive(DocumentId::generate(), 1, "text", "{}"));
    }
}
