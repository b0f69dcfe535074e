//! Agents and their links.

mod briefing;
mod deletion;
mod linkable;
mod links;

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentDocumentId, AgentId, DocumentId, PromptId, TraceId, WorkspaceId},
    model::{
        Json,
        agent::{Agent, AgentType, LlmConfig},
        prompt::Prompt,
    },
};
use serde_json::json;

use crate::{
    Db, agents, execute, on, prompts,
    testing::{at, both, commit, document, finished_or_blocked, made_in, run_in, workspace},
    traces,
    traces::StoredTrace,
};

pub(super) fn new(workspace: WorkspaceId, name: &str, now: Timestamp) -> Agent {
    let llm = LlmConfig {
        model: "m".to_owned(),
        provider: "p".to_owned(),
        base_url: None,
        temperature: Some(0.25),
        max_tokens: Some(100),
        ..LlmConfig::default()
    };
    Agent {
        id: AgentId::generate(),
        owner: made_in(workspace),
        r#type: AgentType::React,
        name: name.to_owned(),
        description: "about it".to_owned(),
        llm: Json(llm),
        llm_key_sealed: Some(b"\x00key".to_vec()),
        has_memory: true,
        rerank: false,
        prompt_id: None,
        version: 1,
        created_at: now,
        updated_at: now,
        document_id: None,
    }
}

/// Adds an agent.
pub(super) async fn agent(db: &Db, workspace: WorkspaceId, now: Timestamp) -> AgentId {
    let agent = new(workspace, "agent", now);
    commit!(db, |tx| agents::insert(tx, &agent));
    agent.id
}

async fn link(
    db: &Db,
    workspace: WorkspaceId,
    agent: AgentId,
    document: DocumentId,
) -> Option<AgentDocumentId> {
    commit!(db, |tx| agents::link(tx, made_in(workspace), agent, document, at(5))).map(|made| made.link.id)
}

pub(super) async fn version(db: &Db, agent: AgentId) -> i64 {
    on!(db, |c| sqlx::query_scalar("SELECT version FROM agents WHERE id = $1").bind(agent).fetch_one(c))
        .unwrap()
}

async fn prompt(db: &Db, workspace: WorkspaceId) -> PromptId {
    let prompt = Prompt {
        id: PromptId::generate(),
        owner: made_in(workspace),
        name: "prompt".to_owned(),
        template: "text".to_owned(),
        input_variables: Json(vec![]),
        created_at: at(0),
        updated_at: at(0),
    };
    commit!(db, |tx| prompts::insert(tx, &prompt));
    prompt.id
}

/// Adds a turn to what an agent remembers.
pub(super) async fn remember(db: &Db, workspace: WorkspaceId, agent: AgentId, session: &str) {
    commit!(db, |tx| async {
        execute!(
            tx,
            sqlx::query(
                "INSERT INTO agent_memory (id, workspace_id, agent_id, session, question, answer, tokens, created_at)
                 VALUES ($1, $2, $3, $4, 'q', 'a', 1, $5)"
            )
            .bind(uuid::Uuid::now_v7())
            .bind(workspace)
            .bind(agent)
            .bind(session)
            .bind(at(1))
        )
    });
}

pub(super) async fn turns(db: &Db, agent: AgentId, session: &str) -> i64 {
    on!(db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM agent_memory WHERE agent_id = $1 AND session = $2")
        .bind(agent)
        .bind(session)
        .fetch_one(c))
    .unwrap()
}

fn end<T: From<uuid::Uuid>>() -> T {
    uuid::Uuid::max().into()
}

#[tokio::test]
async fn an_agent_is_read_as_it_was_written() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let written = new(workspace, "Ägent", at(3));
        commit!(t.db, |tx| agents::insert(tx, &written));
        let read = agents::find(&t.db, workspace, written.id).await.unwrap().unwrap();
        assert_eq!(format!("{read:?}"), format!("{written:?}"), "{}", t.name);
        let keyless = Agent { llm_key_sealed: None, has_memory: false, ..new(workspace, "", at(3)) };
        commit!(t.db, |tx| agents::insert(tx, &keyless));
        let read = agents::find(&t.db, workspace, keyless.id).await.unwrap().unwrap();
        assert_eq!(format!("{read:?}"), format!("{keyless:?}"), "{}", t.name);
    }
}

#[tokio::test]
async fn agents_are_listed_newest_first_page_by_page() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(agent(&t.db, workspace, at(0)).await);
        }
        for (before, expected) in [
            (end(), vec![ids[4], ids[3]]),
            (ids[3], vec![ids[2], ids[1]]),
            (ids[1], vec![ids[0]]),
            (ids[0], vec![]),
        ] {
            let page: Vec<_> = agents::list(&t.db, workspace, "", before, 2)
                .await
                .unwrap()
                .iter()
                .map(|agent| agent.id)
                .collect();
            assert_eq!(page, expected, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn linking_twice_returns_the_first_link() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, document) =
            (agent(&t.db, workspace, at(0)).await, document(&t.db, workspace, "one", at(0)).await);
        let first = commit!(t.db, |tx| agents::link(tx, made_in(workspace), agent, document, at(5))).unwrap();
        assert_eq!((first.ended_unpublished, version(&t.db, agent).await), (false, 2), "{}", t.name);
        let first = first.link;
        assert_eq!(
            (first.agent_id, first.document_id, first.owner),
            (agent, document, made_in(workspace)),
            "{}",
            t.name
        );
        let second =
            commit!(t.db, |tx| agents::link(tx, made_in(workspace), agent, document, at(9))).unwrap().link;
        assert_eq!(version(&t.db, agent).await, 2, "{}: nothing has changed", t.name);
        assert_eq!((second.id, second.created_at), (first.id, at(5)), "{}", t.name);
        let links = agents::list_links(&t.db, workspace, None, end(), 10).await.unwrap();
        assert_eq!(links.iter().map(|link| link.id).collect::<Vec<_>>(), [first.id], "{}", t.name);
        let found = agents::find_link(&t.db, workspace, first.id).await.unwrap().unwrap();
        assert_eq!(format!("{found:?}"), format!("{first:?}"), "{}", t.name);

        assert!(commit!(t.db, |tx| agents::unlink(tx, workspace, first.id)), "{}", t.name);
        assert!(!commit!(t.db, |tx| agents::unlink(tx, workspace, first.id)), "{}", t.name);
        let again = link(&t.db, workspace, agent, document).await.unwrap();
        assert_ne!(again, first.id, "{}: the old link is gone", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_link_the_same_pair_at_once_get_the_same_link() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, document) =
            (agent(&t.db, workspace, at(0)).await, document(&t.db, workspace, "one", at(0)).await);
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let db = t.db.clone();
                tokio::spawn(async move { link(&db, workspace, agent, document).await })
            })
            .collect();
        let mut links = std::collections::HashSet::new();
        for task in tasks {
            links.insert(task.await.unwrap().unwrap());
        }
        assert_eq!(links.len(), 1, "{}", t.name);
    }
}

#[tokio::test]
async fn both_ends_of_a_link_belong_to_its_workspace() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (mine, document_mine) =
            (agent(&t.db, owner, at(0)).await, document(&t.db, owner, "a", at(0)).await);
        let (theirs, document_theirs) =
            (agent(&t.db, other, at(0)).await, document(&t.db, other, "b", at(0)).await);
        for (who, agent, document) in [
            (owner, mine, document_theirs),
            (owner, theirs, document_mine),
            (other, mine, document_mine),
            (owner, mine, DocumentId::generate()),
            (owner, AgentId::generate(), document_mine),
        ] {
            assert!(link(&t.db, who, agent, document).await.is_none(), "{}", t.name);
        }
        let first = link(&t.db, owner, mine, document_mine).await.unwrap();
        // Also when the pair is linked already.
        assert!(link(&t.db, other, mine, document_mine).await.is_none(), "{}", t.name);

        assert!(agents::find(&t.db, other, mine).await.unwrap().is_none(), "{}", t.name);
        assert!(agents::find_link(&t.db, other, first).await.unwrap().is_none(), "{}", t.name);
        for agent in [None, Some(mine)] {
            assert!(
                agents::list_links(&t.db, other, agent, end(), 9).await.unwrap().is_empty(),
                "{}",
                t.name
            );
        }
        assert!(agents::links(&t.db, other, mine).await.unwrap().documents.is_empty(), "{}", t.name);
        let listed = agents::list(&t.db, other, "", end(), 9).await.unwrap();
        assert_eq!(listed.iter().map(|agent| agent.id).collect::<Vec<_>>(), [theirs], "{}", t.name);
        assert!(!commit!(t.db, |tx| agents::unlink(tx, other, first)), "{}", t.name);
        assert!(!commit!(t.db, |tx| agents::delete(tx, other, mine)), "{}", t.name);
        let linked = agents::links(&t.db, owner, mine).await.unwrap().documents;
        assert_eq!(*linked, [document_mine], "{}", t.name);
    }
}

#[tokio::test]
async fn an_agent_shows_the_document_that_was_linked_first() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let older = document(&t.db, workspace, "older", at(0)).await;
        let newer = document(&t.db, workspace, "newer", at(0)).await;
        let first = link(&t.db, workspace, agent, newer).await.unwrap();
        let second = link(&t.db, workspace, agent, older).await.unwrap();
        let linked = agents::links(&t.db, workspace, agent).await.unwrap().documents;
        assert_eq!(*linked, [newer, older], "{}", t.name);
        let found = agents::find(&t.db, workspace, agent).await.unwrap().unwrap();
        let listed = agents::list(&t.db, workspace, "", end(), 9).await.unwrap();
        assert_eq!((found.document_id, listed[0].document_id), (Some(newer), Some(newer)), "{}", t.name);
        commit!(t.db, |tx| agents::unlink(tx, workspace, first));
        let found = agents::find(&t.db, workspace, agent).await.unwrap().unwrap();
        assert_eq!(found.document_id, Some(older), "{}", t.name);
        commit!(t.db, |tx| agents::unlink(tx, workspace, second));
        let found = agents::find(&t.db, workspace, agent).await.unwrap().unwrap();
        assert_eq!(found.document_id, None, "{}", t.name);
    }
}

#[tokio::test]
async fn links_are_listed_newest_first_for_one_agent_or_all() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (a, b) = (agent(&t.db, workspace, at(0)).await, agent(&t.db, workspace, at(0)).await);
        let mut links = Vec::new();
        for agent in [a, b, a, b] {
            let document = document(&t.db, workspace, "one", at(0)).await;
            links.push(link(&t.db, workspace, agent, document).await.unwrap());
        }
        for (agent, before, limit, expected) in [
            (None, end(), 3, vec![links[3], links[2], links[1]]),
            (None, links[1], 3, vec![links[0]]),
            (Some(a), end(), 9, vec![links[2], links[0]]),
            (Some(b), links[3], 9, vec![links[1]]),
            (Some(AgentId::generate()), end(), 9, vec![]),
        ] {
            let page: Vec<_> = agents::list_links(&t.db, workspace, agent, before, limit)
                .await
                .unwrap()
                .iter()
                .map(|link| link.id)
                .collect();
            assert_eq!(page, expected, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn an_agent_takes_its_links_and_traces_with_it_and_nothing_else() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (gone, kept) = (agent(&t.db, workspace, at(0)).await, agent(&t.db, workspace, at(0)).await);
        let document = document(&t.db, workspace, "one", at(0)).await;
        let mut rows = Vec::new();
        for agent in [gone, kept] {
            let trace = StoredTrace {
                id: TraceId::generate(),
                agent_id: agent,
                session: None,
                question: None,
                created_at: at(0),
                complete: true,
                body: Json(json!({})),
                rating: None,
                feedback: None,
                feedback_at: None,
                user_id: None,
                token_id: None,
            };
            commit!(t.db, |tx| traces::insert(tx, run_in(workspace), &trace, None, at(100)));
            rows.push((link(&t.db, workspace, agent, document).await.unwrap(), trace.id));
        }
        assert!(commit!(t.db, |tx| agents::delete(tx, workspace, gone)), "{}", t.name);
        assert!(!commit!(t.db, |tx| agents::delete(tx, workspace, gone)), "{}", t.name);
        commit!(t.db, |tx| agents::forget(tx, gone));
        assert!(agents::find(&t.db, workspace, gone).await.unwrap().is_none(), "{}", t.name);
        for ((link, trace), there) in rows.into_iter().zip([false, true]) {
            assert_eq!(
                agents::find_link(&t.db, workspace, link).await.unwrap().is_some(),
                there,
                "{}",
                t.name
            );
            assert_eq!(
                traces::find(&t.db, workspace, None, trace, at(1)).await.unwrap().is_some(),
                there,
                "{}",
                t.name
            );
        }
        assert!(crate::documents::find(&t.db, workspace, document).await.unwrap().is_some(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_change_is_written_whole_and_raises_the_version() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (before, other) = (new(workspace, "before", at(0)), new(workspace, "other", at(0)));
        commit!(t.db, |tx| agents::insert(tx, &before));
        commit!(t.db, |tx| agents::insert(tx, &other));
        let prompt = prompt(&t.db, workspace).await;
        let llm = LlmConfig {
            model: "n".to_owned(),
            base_url: Some("http://x".to_owned()),
            temperature: None,
            ..before.llm.0.clone()
        };
        let changed = Agent {
            r#type: AgentType::ChatVendor,
            name: "after".to_owned(),
            description: String::new(),
            llm: Json(llm),
            llm_key_sealed: None,
            has_memory: false,
            rerank: false,
            prompt_id: Some(prompt),
            updated_at: at(7),
            ..before.clone()
        };
        for (round, after) in [(2, changed), (3, Agent { updated_at: at(9), ..before.clone() })] {
            let locked = commit!(t.db, |tx| agents::lock(tx, workspace, before.id)).unwrap();
            assert_eq!(Some(locked), agents::find(&t.db, workspace, before.id).await.unwrap(), "{}", t.name);
            commit!(t.db, |tx| agents::update(tx, &after));
            let after = Agent { version: round, ..after };
            assert_eq!(agents::find(&t.db, workspace, before.id).await.unwrap(), Some(after), "{}", t.name);
            assert_eq!(version(&t.db, before.id).await, round, "{}", t.name);
        }
        assert_eq!(
            agents::find(&t.db, workspace, other.id).await.unwrap(),
            Some(other.clone()),
            "{}",
            t.name
        );
        assert_eq!(version(&t.db, other.id).await, 1, "{}", t.name);
    }
}

#[tokio::test]
async fn an_agent_is_changed_by_its_owner_alone_and_has_its_owners_prompts() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mine = new(owner, "mine", at(0));
        commit!(t.db, |tx| agents::insert(tx, &mine));
        remember(&t.db, owner, mine.id, "s").await;
        assert_eq!(commit!(t.db, |tx| agents::lock(tx, other, mine.id)), None, "{}", t.name);
        let stolen = Agent { owner: made_in(other), name: "stolen".to_owned(), ..mine.clone() };
        commit!(t.db, |tx| agents::update(tx, &stolen));
        assert!(
            !commit!(t.db, |tx| agents::erase_session(tx, run_in(other), mine.id, "s", at(2))),
            "{}",
            t.name
        );
        assert_eq!(turns(&t.db, mine.id, "s").await, 1, "{}", t.name);
        let (id, version_before) = (mine.id, version(&t.db, mine.id).await);
        assert_eq!(agents::find(&t.db, owner, id).await.unwrap(), Some(mine), "{}", t.name);
        assert_eq!(version_before, 1, "{}", t.name);

        let prompt = prompt(&t.db, owner).await;
        for (workspace, prompt, owns) in
            [(owner, prompt, true), (other, prompt, false), (owner, PromptId::generate(), false)]
        {
            assert_eq!(commit!(t.db, |tx| agents::owns_prompt(tx, workspace, prompt)), owns, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn links_that_come_or_go_raise_the_version_and_nothing_else_does() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (changed, other) = (agent(&t.db, workspace, at(0)).await, agent(&t.db, workspace, at(0)).await);
        let document = document(&t.db, workspace, "one", at(0)).await;
        let first = link(&t.db, workspace, changed, document).await.unwrap();
        assert_eq!(version(&t.db, changed).await, 2, "{}", t.name);
        assert_eq!(link(&t.db, workspace, changed, document).await, Some(first), "{}", t.name);
        assert_eq!(version(&t.db, changed).await, 2, "{}: it was linked already", t.name);
        assert!(commit!(t.db, |tx| agents::unlink(tx, workspace, first)), "{}", t.name);
        assert!(!commit!(t.db, |tx| agents::unlink(tx, workspace, first)), "{}", t.name);
        assert_eq!(version(&t.db, changed).await, 3, "{}", t.name);
        remember(&t.db, workspace, changed, "s").await;
        assert!(
            commit!(t.db, |tx| agents::erase_session(tx, run_in(workspace), changed, "s", at(2))),
            "{}",
            t.name
        );
        assert_eq!(version(&t.db, changed).await, 3, "{}", t.name);
        assert_eq!(version(&t.db, other).await, 1, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_that_goes_while_it_is_linked_or_changed_is_unknown() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let document = document(&t.db, workspace, "one", at(0)).await;
        for linked in [false, true] {
            let agent = agent(&t.db, workspace, at(0)).await;
            let mut deleting = t.db.begin().await.unwrap();
            assert!(agents::delete(&mut deleting, workspace, agent).await.unwrap(), "{}", t.name);
            let db = t.db.clone();
            let late = tokio::spawn(async move {
                if linked {
                    link(&db, workspace, agent, document).await.is_some()
                } else {
                    commit!(db, |tx| agents::lock(tx, workspace, agent)).is_some()
                }
            });
            finished_or_blocked(&t.db, &late).await;
            deleting.commit().await.unwrap();
            assert!(!late.await.unwrap(), "{}", t.name);
        }
    }
}

/// Both take the agent before its links.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_link_and_its_agent_can_go_at_once() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let document = document(&t.db, workspace, "one", at(0)).await;
        for agent_first in [true, false] {
            let agent = agent(&t.db, workspace, at(0)).await;
            let link = link(&t.db, workspace, agent, document).await.unwrap();
            let mut first = t.db.begin().await.unwrap();
            let done = if agent_first {
                agents::delete(&mut first, workspace, agent).await
            } else {
                agents::unlink(&mut first, workspace, link).await
            };
            assert!(done.unwrap(), "{}", t.name);
            let db = t.db.clone();
            let second = tokio::spawn(async move {
                if agent_first {
                    commit!(db, |tx| agents::unlink(tx, workspace, link))
                } else {
                    commit!(db, |tx| agents::delete(tx, workspace, agent))
                }
            });
            finished_or_blocked(&t.db, &second).await;
            first.commit().await.unwrap();
            assert_eq!(second.await.unwrap(), !agent_first, "{}: a link goes with its agent", t.name);
        }
    }
}
