//! Tools and their links to agents.

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, AgentToolId, ToolId, WorkspaceId},
    model::{
        Json,
        tool::{AgentTool, Tool, ToolType},
    },
};
use serde_json::{Map, Value, json};

use crate::{
    Db, accounts, agents, on,
    testing::{account_of, at, both, commit, finished_or_blocked, made_in, workspace},
    tools::{self, LinkOutcome},
};

pub(super) fn new(workspace: WorkspaceId, now: Timestamp) -> Tool {
    Tool {
        id: ToolId::generate(),
        owner: made_in(workspace),
        r#type: ToolType::Search,
        name: "wéb".to_owned(),
        description: "looks things up".to_owned(),
        metadata: Json(map(&json!({"provider": "brave", "api_key": null, "deep": [{"er": 1.5}]}))),
        metadata_sealed: Some(b"\x00secrets".to_vec()),
        calls_agent: None,
        return_direct: true,
        created_at: now,
        updated_at: now,
    }
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Adds a tool; one that asks an agent, if one is named.
async fn tool(db: &Db, workspace: WorkspaceId, asked: Option<AgentId>) -> ToolId {
    let r#type = if asked.is_some() { ToolType::Agent } else { ToolType::Search };
    let tool = Tool { calls_agent: asked, r#type, ..new(workspace, at(0)) };
    commit!(db, |tx| tools::insert(tx, &tool));
    tool.id
}

async fn agent(db: &Db, workspace: WorkspaceId) -> AgentId {
    super::agents::agent(db, workspace, at(0)).await
}

async fn try_link(db: &Db, workspace: WorkspaceId, agent: AgentId, tool: ToolId) -> LinkOutcome {
    commit!(db, |tx| tools::link(tx, made_in(workspace), agent, tool, at(5)))
}

async fn link(db: &Db, workspace: WorkspaceId, agent: AgentId, tool: ToolId) -> AgentTool {
    match try_link(db, workspace, agent, tool).await {
        LinkOutcome::Yes(link) => link,
        other => panic!("{other:?}"),
    }
}

/// Lets `asking` ask `asked`, by a tool of its own, which is returned.
async fn let_ask(db: &Db, workspace: WorkspaceId, asking: AgentId, asked: AgentId) -> ToolId {
    let tool = tool(db, workspace, Some(asked)).await;
    link(db, workspace, asking, tool).await;
    tool
}

async fn would_circle(db: &Db, workspace: WorkspaceId, tool: ToolId, asked: AgentId) -> bool {
    commit!(db, |tx| async {
        tools::lock(tx, workspace, tool).await?.unwrap();
        tools::would_circle(tx, workspace, tool, asked).await
    })
}

async fn version(db: &Db, agent: AgentId) -> i64 {
    on!(db, |c| sqlx::query_scalar("SELECT version FROM agents WHERE id = $1").bind(agent).fetch_one(c))
        .unwrap()
}

fn end<T: From<uuid::Uuid>>() -> T {
    uuid::Uuid::max().into()
}

fn text(thing: &impl std::fmt::Debug) -> String {
    format!("{thing:?}")
}

// --- tools -----------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_tool_is_read_as_it_was_written_and_as_it_was_changed() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let asked = agent(&t.db, workspace).await;
        for written in [
            new(workspace, at(3)),
            Tool {
                r#type: ToolType::Agent,
                calls_agent: Some(asked),
                metadata_sealed: None,
                ..new(workspace, at(3))
            },
            Tool { description: String::new(), return_direct: false, ..new(workspace, at(3)) },
        ] {
            commit!(t.db, |tx| tools::insert(tx, &written));
            let read = tools::find(&t.db, workspace, written.id).await.unwrap();
            assert_eq!(text(&read), text(&Some(&written)), "{}", t.name);

            let changed = Tool {
                name: "other".to_owned(),
                description: "another".to_owned(),
                metadata: Json(map(&json!({"provider": "tavily"}))),
                metadata_sealed: written.metadata_sealed.is_none().then(|| b"new".to_vec()),
                calls_agent: written.calls_agent.is_none().then_some(asked),
                return_direct: !written.return_direct,
                updated_at: at(9),
                ..written
            };
            commit!(t.db, |tx| tools::update(tx, &changed));
            let read = commit!(t.db, |tx| tools::lock(tx, workspace, changed.id));
            assert_eq!(text(&read), text(&Some(&changed)), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn tools_are_listed_newest_first_page_by_page() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(tool(&t.db, workspace, None).await);
        }
        for (before, expected) in
            [(end(), vec![ids[3], ids[2], ids[1]]), (ids[2], vec![ids[1], ids[0]]), (ids[0], vec![])]
        {
            let page = tools::list(&t.db, workspace, "", before, 3).await.unwrap();
            assert_eq!(page.iter().map(|tool| tool.id).collect::<Vec<_>>(), expected, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn tools_and_links_exist_for_their_owner_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (mine, agent_mine) = (tool(&t.db, owner, None).await, agent(&t.db, owner).await);
        let (theirs, agent_theirs) = (tool(&t.db, other, None).await, agent(&t.db, other).await);
        for (who, agent, tool) in [
            (owner, agent_mine, theirs),
            (owner, agent_theirs, mine),
            (other, agent_mine, mine),
            (owner, agent_mine, ToolId::generate()),
            (owner, AgentId::generate(), mine),
        ] {
            assert!(matches!(try_link(&t.db, who, agent, tool).await, LinkOutcome::Unknown), "{}", t.name);
        }
        let first = link(&t.db, owner, agent_mine, mine).await;
        // Also when the pair is linked already.
        assert!(matches!(try_link(&t.db, other, agent_mine, mine).await, LinkOutcome::Unknown), "{}", t.name);

        assert!(tools::find(&t.db, other, mine).await.unwrap().is_none(), "{}", t.name);
        assert!(commit!(t.db, |tx| tools::lock(tx, other, mine)).is_none(), "{}", t.name);
        let listed = tools::list(&t.db, other, "", end(), 9).await.unwrap();
        assert_eq!(listed.iter().map(|tool| tool.id).collect::<Vec<_>>(), [theirs], "{}", t.name);
        assert!(tools::find_link(&t.db, other, first.id).await.unwrap().is_none(), "{}", t.name);
        for agent in [None, Some(agent_mine)] {
            let links = tools::list_links(&t.db, other, agent, end(), 9).await.unwrap();
            assert!(links.is_empty(), "{}", t.name);
        }
        assert!(!commit!(t.db, |tx| tools::owns_agent(tx, other, agent_mine)), "{}", t.name);
        assert!(commit!(t.db, |tx| tools::owns_agent(tx, owner, agent_mine)), "{}", t.name);

        let stolen = Tool { id: mine, name: "stolen".to_owned(), ..new(other, at(1)) };
        commit!(t.db, |tx| tools::update(tx, &stolen));
        assert!(!commit!(t.db, |tx| tools::unlink(tx, other, first.id)), "{}", t.name);
        assert!(!commit!(t.db, |tx| tools::delete(tx, other, mine)), "{}", t.name);
        assert_eq!(tools::find(&t.db, owner, mine).await.unwrap().unwrap().name, "wéb", "{}", t.name);
        assert!(tools::find_link(&t.db, owner, first.id).await.unwrap().is_some(), "{}", t.name);
        assert_eq!(version(&t.db, agent_mine).await, 2, "{}: raised by the link alone", t.name);
    }
}

// --- links -----------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn linking_twice_returns_the_first_link() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, tool) = (agent(&t.db, workspace).await, tool(&t.db, workspace, None).await);
        let first = link(&t.db, workspace, agent, tool).await;
        assert_eq!(
            (first.agent_id, first.tool_id, first.owner),
            (agent, tool, made_in(workspace)),
            "{}",
            t.name
        );
        let LinkOutcome::Yes(second) =
            commit!(t.db, |tx| tools::link(tx, made_in(workspace), agent, tool, at(9)))
        else {
            panic!("{}", t.name)
        };
        assert_eq!(text(&second), text(&first), "{}", t.name);
        let found = tools::find_link(&t.db, workspace, first.id).await.unwrap();
        assert_eq!(text(&found), text(&Some(&first)), "{}", t.name);

        assert!(commit!(t.db, |tx| tools::unlink(tx, workspace, first.id)), "{}", t.name);
        assert!(!commit!(t.db, |tx| tools::unlink(tx, workspace, first.id)), "{}", t.name);
        assert_ne!(
            link(&t.db, workspace, agent, tool).await.id,
            first.id,
            "{}: the old link is gone",
            t.name
        );
    }
}

#[tokio::test]
async fn links_are_listed_newest_first_for_one_agent_or_all() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (a, b) = (agent(&t.db, workspace).await, agent(&t.db, workspace).await);
        let mut links = Vec::new();
        for agent in [a, b, a, b] {
            links.push(link(&t.db, workspace, agent, tool(&t.db, workspace, None).await).await.id);
        }
        for (agent, before, limit, expected) in [
            (None, end(), 3, vec![links[3], links[2], links[1]]),
            (None, links[1], 3, vec![links[0]]),
            (Some(a), end(), 9, vec![links[2], links[0]]),
            (Some(b), links[3], 9, vec![links[1]]),
            (Some(AgentId::generate()), end(), 9, vec![]),
        ] {
            let page = tools::list_links(&t.db, workspace, agent, before, limit).await.unwrap();
            assert_eq!(page.iter().map(|link| link.id).collect::<Vec<_>>(), expected, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn an_agents_version_rises_whenever_its_tools_change() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (having, apart) = (agent(&t.db, workspace).await, agent(&t.db, workspace).await);
        let (one, other) = (tool(&t.db, workspace, None).await, tool(&t.db, workspace, None).await);
        let mut expected = 1;
        assert_eq!(version(&t.db, having).await, expected, "{}", t.name);
        let mut rose = async |what: &str, by: i64| {
            expected += by;
            assert_eq!(version(&t.db, having).await, expected, "{}: {what}", t.name);
        };
        let first = link(&t.db, workspace, having, one).await;
        rose("linked", 1).await;
        link(&t.db, workspace, having, one).await;
        rose("linked again, which changes nothing", 0).await;
        let changed = Tool { id: one, ..new(workspace, at(3)) };
        commit!(t.db, |tx| tools::update(tx, &changed));
        rose("changed", 1).await;
        let unlinked = Tool { id: other, ..new(workspace, at(3)) };
        commit!(t.db, |tx| tools::update(tx, &unlinked));
        rose("a tool that it does not have was changed", 0).await;
        assert!(commit!(t.db, |tx| tools::unlink(tx, workspace, first.id)));
        rose("unlinked", 1).await;
        link(&t.db, workspace, having, one).await;
        rose("linked anew", 1).await;
        assert!(commit!(t.db, |tx| tools::delete(tx, workspace, one)));
        rose("deleted", 1).await;
        assert_eq!(version(&t.db, apart).await, 1, "{}", t.name);
    }
}

#[tokio::test]
async fn a_tool_an_agent_and_an_account_take_their_links_with_them() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent_kept, agent_gone) = (agent(&t.db, workspace).await, agent(&t.db, workspace).await);
        let (kept, gone) = (tool(&t.db, workspace, None).await, tool(&t.db, workspace, None).await);
        let stays = link(&t.db, workspace, agent_kept, kept).await.id;
        let lost: Vec<AgentToolId> = vec![
            link(&t.db, workspace, agent_kept, gone).await.id,
            link(&t.db, workspace, agent_gone, gone).await.id,
            link(&t.db, workspace, agent_gone, kept).await.id,
        ];
        assert!(commit!(t.db, |tx| tools::delete(tx, workspace, gone)), "{}", t.name);
        assert!(!commit!(t.db, |tx| tools::delete(tx, workspace, gone)), "{}", t.name);
        assert!(commit!(t.db, |tx| agents::delete(tx, workspace, agent_gone)), "{}", t.name);
        for link in lost {
            assert!(tools::find_link(&t.db, workspace, link).await.unwrap().is_none(), "{}", t.name);
        }
        assert!(tools::find_link(&t.db, workspace, stays).await.unwrap().is_some(), "{}", t.name);
        assert!(tools::find(&t.db, workspace, kept).await.unwrap().is_some(), "{}", t.name);

        commit!(t.db, |tx| accounts::delete(tx, account_of(workspace), at(9)));
        assert!(tools::find(&t.db, workspace, kept).await.unwrap().is_none(), "{}", t.name);
        assert!(tools::find_link(&t.db, workspace, stays).await.unwrap().is_none(), "{}", t.name);
    }
}

// --- circles ---------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn no_agent_can_ask_itself_by_way_of_however_many() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        for length in 1..=5 {
            let mut chain = vec![agent(&t.db, workspace).await];
            while chain.len() < length {
                let next = agent(&t.db, workspace).await;
                let_ask(&t.db, workspace, chain[chain.len() - 1], next).await;
                chain.push(next);
            }
            let (first, last) = (chain[0], chain[length - 1]);
            let back = tool(&t.db, workspace, Some(first)).await;
            assert!(
                matches!(try_link(&t.db, workspace, last, back).await, LinkOutcome::Circle),
                "{}: a circle of {length}",
                t.name
            );
            assert!(tools::list_links(&t.db, workspace, Some(last), end(), 9).await.unwrap().is_empty());

            // The same by way of a change of the agent that a linked tool asks.
            let outside = agent(&t.db, workspace).await;
            let pointed_away = let_ask(&t.db, workspace, last, outside).await;
            assert!(
                would_circle(&t.db, workspace, pointed_away, first).await,
                "{}: a circle of {length}",
                t.name
            );
            assert!(!would_circle(&t.db, workspace, pointed_away, outside).await, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn ways_that_meet_again_or_are_gone_are_no_circle() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (a, b, c, d) = (
            agent(&t.db, workspace).await,
            agent(&t.db, workspace).await,
            agent(&t.db, workspace).await,
            agent(&t.db, workspace).await,
        );
        // a asks d by way of b and of c.
        let_ask(&t.db, workspace, a, b).await;
        let_ask(&t.db, workspace, a, c).await;
        let_ask(&t.db, workspace, b, d).await;
        let c_asks_d = let_ask(&t.db, workspace, c, d).await;
        // A tool that nobody has yet may ask anybody; the tool itself is no way that a change of it has to mind.
        let loose = tool(&t.db, workspace, Some(a)).await;
        assert!(!would_circle(&t.db, workspace, loose, d).await, "{}", t.name);
        assert!(!would_circle(&t.db, workspace, c_asks_d, b).await, "{}", t.name);
        assert!(would_circle(&t.db, workspace, c_asks_d, a).await, "{}", t.name);

        assert!(matches!(try_link(&t.db, workspace, d, loose).await, LinkOutcome::Circle), "{}", t.name);
        for link in tools::list_links(&t.db, workspace, Some(a), end(), 9).await.unwrap() {
            assert!(commit!(t.db, |tx| tools::unlink(tx, workspace, link.id)));
        }
        link(&t.db, workspace, d, loose).await;
    }
}

#[tokio::test]
async fn a_tool_outlives_the_agent_that_it_asks() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (asking, asked) = (agent(&t.db, workspace).await, agent(&t.db, workspace).await);
        let tool = let_ask(&t.db, workspace, asking, asked).await;
        assert!(commit!(t.db, |tx| agents::delete(tx, workspace, asked)));
        let found = tools::find(&t.db, workspace, tool).await.unwrap().unwrap();
        assert_eq!(found.calls_agent, Some(asked), "{}: it still says whom it would ask", t.name);
        assert!(!commit!(t.db, |tx| tools::owns_agent(tx, workspace, asked)), "{}", t.name);
        link(&t.db, workspace, agent(&t.db, workspace).await, tool).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_links_that_close_a_circle_together_are_not_both_made() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (a, b) = (agent(&t.db, workspace).await, agent(&t.db, workspace).await);
        let (asks_a, asks_b) = (tool(&t.db, workspace, Some(a)).await, tool(&t.db, workspace, Some(b)).await);
        let mut first = t.db.begin().await.unwrap();
        assert!(matches!(
            tools::link(&mut first, made_in(workspace), a, asks_b, at(5)).await,
            Ok(LinkOutcome::Yes(_))
        ));
        let db = t.db.clone();
        let second = tokio::spawn(async move { try_link(&db, workspace, b, asks_a).await });
        finished_or_blocked(&t.db, &second).await;
        assert!(!second.is_finished(), "{}: it waits until the first is done", t.name);
        first.commit().await.unwrap();
        assert!(matches!(second.await.unwrap(), LinkOutcome::Circle), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_or_a_tool_that_goes_while_it_is_linked_is_unknown() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        for agent_goes in [true, false] {
            let (agent, tool) = (agent(&t.db, workspace).await, tool(&t.db, workspace, None).await);
            let mut deleting = t.db.begin().await.unwrap();
            let deleted = if agent_goes {
                agents::delete(&mut deleting, workspace, agent).await
            } else {
                tools::delete(&mut deleting, workspace, tool).await
            };
            assert!(deleted.unwrap(), "{}", t.name);
            let db = t.db.clone();
            let linking = tokio::spawn(async move { try_link(&db, workspace, agent, tool).await });
            finished_or_blocked(&t.db, &linking).await;
            deleting.commit().await.unwrap();
            assert!(matches!(linking.await.unwrap(), LinkOutcome::Unknown), "{}", t.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_every_kind_at_once_do_not_stop_each_other() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, tool) = (agent(&t.db, workspace).await, tool(&t.db, workspace, None).await);
        let rounds = (0..20).flat_map(|_| 0..4).map(|kind| {
            let db = t.db.clone();
            tokio::spawn(async move {
                match kind {
                    0 => {
                        try_link(&db, workspace, agent, tool).await;
                    }
                    1 => {
                        let changed = Tool { id: tool, ..new(workspace, at(3)) };
                        commit!(db, |tx| async {
                            tools::lock(tx, workspace, tool).await?.unwrap();
                            tools::update(tx, &changed).await
                        });
                    }
                    2 => {
                        for link in tools::list_links(&db, workspace, Some(agent), end(), 9).await.unwrap() {
                            commit!(db, |tx| tools::unlink(tx, workspace, link.id));
                        }
                    }
                    _ => {
                        let mut tx = db.begin().await.unwrap();
                        // Rolled back, so that there is always something to delete.
                        assert!(tools::delete(&mut tx, workspace, tool).await.unwrap());
                    }
                }
            })
        });
        for round in rounds.collect::<Vec<_>>() {
            round.await.unwrap();
        }
        link(&t.db, workspace, agent, tool).await;
    }
}
