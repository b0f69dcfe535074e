//! Pages on which agents are asked.

use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{AgentId, ApiTokenId, PublicationId},
    model::{Json, text_enum, workspace::RowOwner},
};

text_enum! {
    /// Who may open a published agent's page.
    PublicationAccess {
        /// Members of its workspace.
        Members => "members",
        /// Whoever has its address, which nobody can guess.
        Link => "link",
        /// Anybody.
        Public => "public",
    }
}

/// A page on which one agent is asked.
#[derive(Clone, Debug, FromRow)]
pub struct Publication {
    /// Its id.
    pub id: PublicationId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// The agent.
    pub agent_id: AgentId,
    /// The last part of its address.
    pub slug: String,
    /// Who may open it.
    pub access: PublicationAccess,
    /// What stands above it; empty for the agent's name.
    pub title: String,
    /// What is said before the first question.
    pub greeting: String,
    /// Questions that can be chosen.
    pub questions: Json<Vec<String>>,
    /// The colour of its buttons, `#RRGGBB`; empty for the service's own.
    pub accent: String,
    /// The origins of pages that may show it in a frame.
    pub origins: Json<Vec<String>>,
    /// By which those ask who have no account.
    pub token_id: Option<ApiTokenId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}
