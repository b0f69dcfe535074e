//! Prompts.

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, PromptId, WorkspaceId},
    model::{Json, prompt::Prompt},
};

use crate::{
    Db, accounts, agents, execute, on, prompts,
    testing::{account_of, at, both, commit, finished_or_blocked, made_in, workspace},
};

fn new(workspace: WorkspaceId, template: &str, variables: &[&str], now: Timestamp) -> Prompt {
    Prompt {
        id: PromptId::generate(),
        owner: made_in(workspace),
        name: "Fräge".to_owned(),
        template: template.to_owned(),
        input_variables: Json(variables.iter().map(|name| (*name).to_owned()).collect()),
        created_at: now,
        updated_at: now,
    }
}

async fn prompt(db: &Db, workspace: WorkspaceId) -> Prompt {
    let prompt = new(workspace, "{input}", &["input"], at(0));
    commit!(db, |tx| prompts::insert(tx, &prompt));
    prompt
}

/// Adds an agent that uses a prompt.
async fn agent(db: &Db, workspace: WorkspaceId, prompt: Option<PromptId>) -> AgentId {
    let agent = super::agents::agent(db, workspace, at(0)).await;
    use_prompt(db, agent, prompt).await;
    agent
}

async fn use_prompt(db: &Db, agent: AgentId, prompt: Option<PromptId>) {
    commit!(db, |tx| async {
        execute!(tx, sqlx::query("UPDATE agents SET prompt_id = $2 WHERE id = $1").bind(agent).bind(prompt))
    });
}

async fn version(db: &Db, agent: AgentId) -> i64 {
    on!(db, |c| sqlx::query_scalar("SELECT version FROM agents WHERE id = $1").bind(agent).fetch_one(c))
        .unwrap()
}

fn end() -> PromptId {
    uuid::Uuid::max().into()
}

#[tokio::test]
async fn a_prompt_is_read_as_it_was_written() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        for written in [
            new(workspace, "Ä {größe}\n🙂 {{\"a\": '{b}'}}", &["größe", "b"], at(3)),
            new(workspace, "no variable", &[], at(3)),
            new(workspace, &"é".repeat(100_000), &[], at(3)),
        ] {
            commit!(t.db, |tx| prompts::insert(tx, &written));
            assert_eq!(
                prompts::find(&t.db, workspace, written.id).await.unwrap(),
                Some(written),
                "{}",
                t.name
            );
        }
    }
}

#[tokio::test]
async fn prompts_are_listed_newest_first_page_by_page() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(prompt(&t.db, workspace).await.id);
        }
        for (before, expected) in
            [(end(), vec![ids[3], ids[2], ids[1]]), (ids[2], vec![ids[1], ids[0]]), (ids[0], vec![])]
        {
            let page = prompts::list(&t.db, workspace, "", before, 3).await.unwrap();
            assert_eq!(page.iter().map(|prompt| prompt.id).collect::<Vec<_>>(), expected, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_change_raises_the_version_of_the_agents_that_use_the_prompt() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (changed, other) = (prompt(&t.db, workspace).await, prompt(&t.db, workspace).await);
        let using = [
            agent(&t.db, workspace, Some(changed.id)).await,
            agent(&t.db, workspace, Some(changed.id)).await,
        ];
        let apart = [agent(&t.db, workspace, Some(other.id)).await, agent(&t.db, workspace, None).await];
        let after = Prompt {
            name: "renamed".to_owned(),
            updated_at: at(9),
            ..Prompt { id: changed.id, ..new(workspace, "{a}{b}", &["b", "a"], at(0)) }
        };
        commit!(t.db, |tx| prompts::update(tx, &after));
        assert_eq!(prompts::find(&t.db, workspace, changed.id).await.unwrap(), Some(after), "{}", t.name);
        assert_eq!(prompts::find(&t.db, workspace, other.id).await.unwrap(), Some(other), "{}", t.name);
        for agent in using {
            assert_eq!(version(&t.db, agent).await, 2, "{}", t.name);
        }
        for agent in apart {
            assert_eq!(version(&t.db, agent).await, 1, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn agents_lose_a_deleted_prompt_and_their_version_rises() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (gone, kept) = (prompt(&t.db, workspace).await.id, prompt(&t.db, workspace).await.id);
        let (using, apart) =
            (agent(&t.db, workspace, Some(gone)).await, agent(&t.db, workspace, Some(kept)).await);
        assert!(commit!(t.db, |tx| prompts::delete(tx, workspace, gone)), "{}", t.name);
        assert!(!commit!(t.db, |tx| prompts::delete(tx, workspace, gone)), "{}", t.name);
        assert_eq!(prompts::find(&t.db, workspace, gone).await.unwrap(), None, "{}", t.name);
        for (agent, prompt, expected) in [(using, None, 2), (apart, Some(kept), 1)] {
            let found = agents::find(&t.db, workspace, agent).await.unwrap().unwrap();
            assert_eq!((found.prompt_id, version(&t.db, agent).await), (prompt, expected), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_prompt_exists_for_its_owner_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mine = prompt(&t.db, owner).await;
        let using = agent(&t.db, owner, Some(mine.id)).await;
        assert_eq!(prompts::find(&t.db, other, mine.id).await.unwrap(), None, "{}", t.name);
        assert!(prompts::list(&t.db, other, "", end(), 9).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| prompts::lock(tx, other, mine.id)), None, "{}", t.name);
        let theirs = Prompt { id: mine.id, ..new(other, "stolen", &[], at(1)) };
        commit!(t.db, |tx| prompts::update(tx, &theirs));
        assert!(!commit!(t.db, |tx| prompts::delete(tx, other, mine.id)), "{}", t.name);
        assert_eq!(prompts::find(&t.db, owner, mine.id).await.unwrap(), Some(mine), "{}", t.name);
        assert_eq!(version(&t.db, using).await, 1, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_changes_a_prompt_sees_the_change_that_another_is_just_making() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let before = prompt(&t.db, workspace).await;
        let mut first = t.db.begin().await.unwrap();
        assert_eq!(prompts::lock(&mut first, workspace, before.id).await.unwrap(), Some(before.clone()));
        let (db, id) = (t.db.clone(), before.id);
        let second = tokio::spawn(async move { commit!(db, |tx| prompts::lock(tx, workspace, id)) });
        finished_or_blocked(&t.db, &second).await;
        assert!(!second.is_finished(), "{}", t.name);
        let after = Prompt { template: "changed".to_owned(), input_variables: Json(vec![]), ..before };
        prompts::update(&mut first, &after).await.unwrap();
        first.commit().await.unwrap();
        assert_eq!(second.await.unwrap(), Some(after), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_that_is_just_given_the_prompt_is_not_passed_over() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        for delete in [false, true] {
            let before = prompt(&t.db, workspace).await;
            let id = before.id;
            let agent = agent(&t.db, workspace, None).await;
            let mut giving = t.db.begin().await.unwrap();
            execute!(
                giving,
                sqlx::query("UPDATE agents SET prompt_id = $2 WHERE id = $1").bind(agent).bind(id)
            )
            .unwrap();
            let db = t.db.clone();
            let changing = tokio::spawn(async move {
                if delete {
                    assert!(commit!(db, |tx| prompts::delete(tx, workspace, id)));
                } else {
                    commit!(db, |tx| async {
                        let locked = prompts::lock(tx, workspace, id).await?.unwrap();
                        prompts::update(tx, &Prompt { name: "renamed".to_owned(), ..locked }).await
                    });
                }
            });
            finished_or_blocked(&t.db, &changing).await;
            giving.commit().await.unwrap();
            changing.await.unwrap();
            assert_eq!(version(&t.db, agent).await, 2, "{}, delete: {delete}", t.name);
        }
    }
}

#[tokio::test]
async fn an_account_takes_its_prompts_with_it() {
    for t in &both().await {
        let (gone, kept) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (hers, his) = (prompt(&t.db, gone).await.id, prompt(&t.db, kept).await.id);
        agent(&t.db, gone, Some(hers)).await;
        commit!(t.db, |tx| accounts::delete(tx, account_of(gone), at(1)));
        assert_eq!(prompts::find(&t.db, gone, hers).await.unwrap(), None, "{}", t.name);
        assert!(prompts::find(&t.db, kept, his).await.unwrap().is_some(), "{}", t.name);
    }
}
