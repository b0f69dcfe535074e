//! What questions have to know of an agent.

use std::{collections::HashSet, sync::Arc};

use lectern_shared::{
    ids::{AgentId, DocumentId, WorkspaceId},
    model::agent::Agent,
};
use uuid::Uuid;

use crate::{Db, DbError, Result, ids_from_hex, silence};

/// [`linked`] in one value: an agent may have thousands, every question asks for them, and a row each takes most of its time.
macro_rules! linked_in_one {
    (postgres) => {
        concat!("(SELECT array_agg(document_id ORDER BY is_direct DESC, id) FROM ", linked!(), ")")
    };
    (sqlite) => {
        concat!(
            "(SELECT group_concat(hex(document_id), '' ORDER BY is_direct DESC, id) FROM ",
            linked!(),
            ")"
        )
    };
}

/// The [`AgentLinks`] of agent $1 of workspace $2, as columns, besides its documents.
macro_rules! links {
    () => {
        "EXISTS (SELECT 1 FROM agent_tools WHERE agent_id = $1 AND workspace_id = $2) AS has_tools,
         (SELECT search_epoch FROM workspaces WHERE id = $2) AS search_epoch"
    };
}

/// What an agent answers with, as of one moment.
#[derive(Clone, Debug)]
pub struct AgentLinks {
    /// The documents, each once: those linked to it, first linked first, then those of its collections.
    pub documents: Arc<[DocumentId]>,
    /// Whether tools are linked to it.
    pub has_tools: bool,
    /// The workspace's [search epoch](crate::documents::search_epoch).
    pub search_epoch: i64,
}

/// All that a question to an agent has to know of it, besides its tools.
#[derive(Clone, Debug)]
pub struct AgentBriefing {
    /// The agent.
    pub agent: Agent,
    /// The template of its prompt, if it has one.
    pub template: Option<String>,
    /// What is linked to it.
    pub links: AgentLinks,
}

/// The documents of an agent as they were, for [`brief`].
#[derive(Clone, Debug)]
pub struct KnownDocuments {
    /// When they were that.
    pub stamp: LinkStamp,
    /// The documents, as in [`AgentLinks`].
    pub documents: Arc<[DocumentId]>,
}

/// What differs once an agent may answer from other documents: whoever links or unlinks some raises its version, and whoever deletes
/// one raises the workspace's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStamp {
    /// The agent's version.
    pub version: i64,
    /// The workspace's [search epoch](crate::documents::search_epoch).
    pub search_epoch: i64,
}

impl AgentBriefing {
    /// When it was so.
    pub fn stamp(&self) -> LinkStamp {
        LinkStamp { version: self.agent.version, search_epoch: self.links.search_epoch }
    }
}

/// [`AgentLinks`] as they are read; `D` has all documents, in the form of the database.
#[derive(sqlx::FromRow)]
struct LinksRow<D> {
    documents: Option<D>,
    has_tools: bool,
    search_epoch: i64,
}

/// [`AgentBriefing`] as it is read.
#[derive(sqlx::FromRow)]
struct BriefingRow<L> {
    #[sqlx(flatten)]
    agent: Agent,
    template: Option<String>,
    #[sqlx(flatten)]
    links: L,
}

/// Documents in one value of PostgreSQL's.
type DocumentArray = Vec<Uuid>;
/// Documents in one value of SQLite's: ids in hexadecimal digits.
type DocumentDigits = String;

impl LinksRow<DocumentArray> {
    fn links(self) -> AgentLinks {
        let documents = once_each(self.documents.unwrap_or_default().into_iter().map(DocumentId::from));
        AgentLinks { documents, has_tools: self.has_tools, search_epoch: self.search_epoch }
    }
}

impl LinksRow<DocumentDigits> {
    fn links(self) -> Result<AgentLinks> {
        let documents = once_each(ids_from_hex(&self.documents.unwrap_or_default())?);
        Ok(AgentLinks { documents, has_tools: self.has_tools, search_epoch: self.search_epoch })
    }
}

fn once_each(ids: impl IntoIterator<Item = DocumentId>) -> Arc<[DocumentId]> {
    let ids = ids.into_iter();
    let mut seen = HashSet::with_capacity(ids.size_hint().0);
    ids.filter(|id| seen.insert(*id)).collect()
}

/// One of a workspace's agents, with what a question to it has to know. The documents that are `known` are not read again: an agent
/// may have thousands, which is most of what the answer to this is else.
pub async fn brief(
    db: &Db,
    workspace: WorkspaceId,
    id: AgentId,
    known: Option<&KnownDocuments>,
) -> Result<Option<AgentBriefing>> {
    /// The columns of [`AgentBriefing`].
    macro_rules! select_briefing {
        ($engine:ident) => {
            concat!(
                "SELECT ",
                agent_columns!(),
                ", (SELECT template FROM prompts
                   WHERE prompts.id = agents.prompt_id AND prompts.workspace_id = agents.workspace_id) AS template, ",
                links!(),
                ", CASE WHEN version = $3 AND (SELECT search_epoch FROM workspaces WHERE id = $2) = $4 THEN NULL ELSE ",
                linked_in_one!($engine),
                " END AS documents FROM agents WHERE id = $1 AND workspace_id = $2"
            )
        };
    }
    let (version, epoch) = known.map(|known| (known.stamp.version, known.stamp.search_epoch)).unzip();
    let mut briefing = match db {
        Db::Postgres { pool, .. } => {
            let row = sqlx::query_as(select_briefing!(postgres)).bind(id).bind(workspace);
            let row = row.bind(version).bind(epoch).fetch_optional(pool);
            let row: Option<BriefingRow<LinksRow<DocumentArray>>> = silence::answered(row).await?;
            row.map(|BriefingRow { agent, template, links }| AgentBriefing {
                agent,
                template,
                links: links.links(),
            })
        }
        Db::Sqlite { readers, .. } => {
            let row = sqlx::query_as(select_briefing!(sqlite)).bind(id).bind(workspace);
            let row: Option<BriefingRow<LinksRow<DocumentDigits>>> =
                row.bind(version).bind(epoch).fetch_optional(readers).await?;
            let briefing = |BriefingRow { agent, template, links }: BriefingRow<LinksRow<DocumentDigits>>| {
                Ok::<_, DbError>(AgentBriefing { agent, template, links: links.links()? })
            };
            row.map(briefing).transpose()?
        }
    };
    if let (Some(briefing), Some(known)) = (&mut briefing, known)
        && briefing.stamp() == known.stamp
    {
        briefing.links.documents = Arc::clone(&known.documents);
    }
    Ok(briefing)
}

/// What one of a workspace's agents answers with; nothing, when there is no such agent.
pub async fn links(db: &Db, workspace: WorkspaceId, agent: AgentId) -> Result<AgentLinks> {
    /// The columns of [`AgentLinks`].
    macro_rules! select_links {
        ($engine:ident) => {
            concat!("SELECT ", links!(), ", ", linked_in_one!($engine), " AS documents")
        };
    }
    match db {
        Db::Postgres { pool, .. } => {
            let row = sqlx::query_as(select_links!(postgres)).bind(agent).bind(workspace);
            let row: LinksRow<DocumentArray> = silence::answered(row.fetch_one(pool)).await?;
            Ok(row.links())
        }
        Db::Sqlite { readers, .. } => {
            let row = sqlx::query_as(select_links!(sqlite)).bind(agent).bind(workspace);
            let row: LinksRow<DocumentDigits> = row.fetch_one(readers).await?;
            row.links()
        }
    }
}
