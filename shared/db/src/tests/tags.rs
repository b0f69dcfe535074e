//! Tags, and which agents have them.

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, TagId, WorkspaceId},
    model::tag::Tag,
};

use crate::{
    Db, accounts, agents, tags,
    testing::{account_of, at, both, commit, finished_or_blocked, made_in, workspace},
    tests::agents::agent,
};

fn new(workspace: WorkspaceId, name: &str, now: Timestamp) -> Tag {
    Tag {
        id: TagId::generate(),
        owner: made_in(workspace),
        name: name.to_owned(),
        color: "#aBcDeF".to_owned(),
        created_at: now,
        updated_at: now,
    }
}

async fn tag(db: &Db, workspace: WorkspaceId, name: &str) -> Tag {
    let tag = new(workspace, name, at(0));
    commit!(db, |tx| tags::insert(tx, &tag));
    tag
}

async fn set(db: &Db, workspace: WorkspaceId, agent: AgentId, ids: &[TagId]) -> bool {
    let mut tx = db.begin().await.unwrap();
    let done = tags::set(&mut tx, workspace, agent, ids).await.unwrap();
    if done {
        tx.commit().await.unwrap();
    }
    done
}

/// The names of an agent's tags, as a reader and as a transaction see them.
async fn names(db: &Db, workspace: WorkspaceId, agent: AgentId) -> Vec<String> {
    let names = |tags: Vec<Tag>| tags.into_iter().map(|tag| tag.name).collect::<Vec<_>>();
    let mut read = tags::of_agents(db, workspace, &[agent]).await.unwrap();
    let read = names(read.remove(&agent).unwrap_or_default());
    assert_eq!(names(commit!(db, |tx| tags::of_agent(tx, workspace, agent))), read);
    read
}

fn end() -> TagId {
    uuid::Uuid::max().into()
}

#[tokio::test]
async fn a_tag_is_read_as_it_was_written() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        for name in ["Ä größe 🙂", "  ", &"é".repeat(1_000)] {
            let written = Tag { updated_at: at(9), ..new(workspace, name, at(3)) };
            commit!(t.db, |tx| tags::insert(tx, &written));
            assert_eq!(tags::find(&t.db, workspace, written.id).await.unwrap(), Some(written), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn tags_are_listed_newest_first_page_by_page() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(tag(&t.db, workspace, "same").await.id);
        }
        for (before, expected) in
            [(end(), vec![ids[3], ids[2], ids[1]]), (ids[2], vec![ids[1], ids[0]]), (ids[0], vec![])]
        {
            let page = tags::list(&t.db, workspace, before, 3).await.unwrap();
            assert_eq!(page.iter().map(|tag| tag.id).collect::<Vec<_>>(), expected, "{}", t.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_changes_a_tag_sees_the_change_that_another_is_just_making() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (before, other) = (tag(&t.db, workspace, "before").await, tag(&t.db, workspace, "other").await);
        let mut first = t.db.begin().await.unwrap();
        assert_eq!(
            tags::lock(&mut first, workspace, before.id).await.unwrap(),
            Some(before.clone()),
            "{}",
            t.name
        );
        let (db, id) = (t.db.clone(), before.id);
        let second = tokio::spawn(async move { commit!(db, |tx| tags::lock(tx, workspace, id)) });
        finished_or_blocked(&t.db, &second).await;
        assert!(!second.is_finished(), "{}", t.name);
        let after =
            Tag { name: "after".to_owned(), color: "#000000".to_owned(), updated_at: at(9), ..before };
        tags::update(&mut first, &after).await.unwrap();
        first.commit().await.unwrap();
        assert_eq!(second.await.unwrap(), Some(after.clone()), "{}", t.name);
        assert_eq!(tags::find(&t.db, workspace, id).await.unwrap(), Some(after), "{}", t.name);
        assert_eq!(tags::find(&t.db, workspace, other.id).await.unwrap(), Some(other), "{}", t.name);
    }
}

#[tokio::test]
async fn an_agent_has_its_tags_in_the_order_in_which_they_were_set() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, other) = (agent(&t.db, workspace, at(0)).await, agent(&t.db, workspace, at(0)).await);
        let (a, b) = (tag(&t.db, workspace, "a").await.id, tag(&t.db, workspace, "b").await.id);
        let c = tag(&t.db, workspace, "c").await.id;
        assert!(set(&t.db, workspace, other, &[b]).await, "{}", t.name);
        for (ids, expected) in [
            (vec![], vec![]),
            (vec![c, a, b], vec!["c", "a", "b"]),
            (vec![b, c], vec!["b", "c"]),
            (vec![b, c], vec!["b", "c"]),
            (vec![a], vec!["a"]),
            (vec![], vec![]),
        ] {
            assert!(set(&t.db, workspace, agent, &ids).await, "{}", t.name);
            assert_eq!(names(&t.db, workspace, agent).await, expected, "{}", t.name);
            assert_eq!(names(&t.db, workspace, other).await, ["b"], "{}", t.name);
        }
    }
}

#[tokio::test]
async fn the_tags_of_many_agents_are_read_at_once() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (a, b) = (tag(&t.db, owner, "a").await, tag(&t.db, owner, "b").await);
        let mut ids = Vec::new();
        for tags in [vec![b.id, a.id], vec![], vec![a.id]] {
            let agent = agent(&t.db, owner, at(0)).await;
            assert!(set(&t.db, owner, agent, &tags).await, "{}", t.name);
            ids.push(agent);
        }
        let mut read = tags::of_agents(&t.db, owner, &ids).await.unwrap();
        assert_eq!(read.remove(&ids[0]), Some(vec![b, a.clone()]), "{}", t.name);
        assert!(read.remove(&ids[1]).is_none_or(|tags| tags.is_empty()), "{}", t.name);
        assert_eq!(read.remove(&ids[2]), Some(vec![a]), "{}", t.name);
        assert!(read.is_empty(), "{}", t.name);
        assert!(tags::of_agents(&t.db, owner, &[]).await.unwrap().is_empty(), "{}", t.name);
        // As many as a page of a list has, and one more.
        let many: Vec<_> = (0..201).map(|_| AgentId::generate()).chain(ids).collect();
        assert_eq!(tags::of_agents(&t.db, owner, &many).await.unwrap().len(), 2, "{}", t.name);
    }
}

#[tokio::test]
async fn a_deleted_tag_is_taken_from_the_agents_that_have_it() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let (a, b) = (tag(&t.db, workspace, "a").await.id, tag(&t.db, workspace, "b").await.id);
        let c = tag(&t.db, workspace, "c").await.id;
        assert!(set(&t.db, workspace, agent, &[c, b, a]).await, "{}", t.name);
        assert!(commit!(t.db, |tx| tags::delete(tx, workspace, b)), "{}", t.name);
        assert!(!commit!(t.db, |tx| tags::delete(tx, workspace, b)), "{}", t.name);
        assert_eq!(tags::find(&t.db, workspace, b).await.unwrap(), None, "{}", t.name);
        assert_eq!(names(&t.db, workspace, agent).await, ["c", "a"], "{}", t.name);
        assert!(!set(&t.db, workspace, agent, &[a, b]).await, "{}: it is unknown", t.name);
        assert_eq!(names(&t.db, workspace, agent).await, ["c", "a"], "{}", t.name);

        assert!(commit!(t.db, |tx| agents::delete(tx, workspace, agent)), "{}", t.name);
        assert!(
            tags::find(&t.db, workspace, a).await.unwrap().is_some(),
            "{}: a tag outlives its agents",
            t.name
        );
        assert!(names(&t.db, workspace, agent).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_tag_exists_for_its_owner_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (mine, theirs) = (tag(&t.db, owner, "mine").await, tag(&t.db, other, "theirs").await);
        let (my_agent, their_agent) = (agent(&t.db, owner, at(0)).await, agent(&t.db, other, at(0)).await);
        assert!(set(&t.db, owner, my_agent, &[mine.id]).await, "{}", t.name);

        assert_eq!(tags::find(&t.db, other, mine.id).await.unwrap(), None, "{}", t.name);
        let listed = tags::list(&t.db, other, end(), 9).await.unwrap();
        assert_eq!(listed, vec![theirs.clone()], "{}", t.name);
        assert_eq!(commit!(t.db, |tx| tags::lock(tx, other, mine.id)), None, "{}", t.name);
        let stolen = Tag { id: mine.id, ..new(other, "stolen", at(1)) };
        commit!(t.db, |tx| tags::update(tx, &stolen));
        assert!(!commit!(t.db, |tx| tags::delete(tx, other, mine.id)), "{}", t.name);
        assert!(!set(&t.db, other, their_agent, &[theirs.id, mine.id]).await, "{}", t.name);
        assert!(!set(&t.db, owner, my_agent, &[theirs.id]).await, "{}", t.name);
        assert!(tags::of_agents(&t.db, other, &[my_agent]).await.unwrap().is_empty(), "{}", t.name);
        // Whoever empties the tags of another's agent empties nothing.
        set(&t.db, other, my_agent, &[]).await;
        assert_eq!(names(&t.db, owner, my_agent).await, ["mine"], "{}", t.name);
        assert_eq!(tags::find(&t.db, owner, mine.id).await.unwrap(), Some(mine), "{}", t.name);
    }
}

#[tokio::test]
async fn an_account_takes_its_tags_with_it() {
    for t in &both().await {
        let (gone, kept) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (hers, his) = (tag(&t.db, gone, "hers").await.id, tag(&t.db, kept, "his").await.id);
        let agent = agent(&t.db, gone, at(0)).await;
        assert!(set(&t.db, gone, agent, &[hers]).await, "{}", t.name);
        commit!(t.db, |tx| accounts::delete(tx, account_of(gone), at(1)));
        assert_eq!(tags::find(&t.db, gone, hers).await.unwrap(), None, "{}", t.name);
        assert!(tags::find(&t.db, kept, his).await.unwrap().is_some(), "{}", t.name);
    }
}

/// An account goes with its agents and then its tags; a tag goes from its agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tag_and_its_owner_can_go_at_once() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (agent, tag) = (agent(&t.db, owner, at(0)).await, tag(&t.db, owner, "a").await.id);
        assert!(set(&t.db, owner, agent, &[tag]).await, "{}", t.name);
        let mut first = t.db.begin().await.unwrap();
        assert!(tags::delete(&mut first, owner, tag).await.unwrap(), "{}", t.name);
        let db = t.db.clone();
        let second =
            tokio::spawn(async move { commit!(db, |tx| accounts::delete(tx, account_of(owner), at(1))) });
        finished_or_blocked(&t.db, &second).await;
        first.commit().await.unwrap();
        second.await.unwrap();

        let owner = workspace(&t.db, at(0)).await;
        let agent = super::agents::agent(&t.db, owner, at(0)).await;
        let tag = self::tag(&t.db, owner, "a").await.id;
        assert!(set(&t.db, owner, agent, &[tag]).await, "{}", t.name);
        let mut first = t.db.begin().await.unwrap();
        accounts::delete(&mut first, account_of(owner), at(1)).await.unwrap();
        let db = t.db.clone();
        let second = tokio::spawn(async move { commit!(db, |tx| tags::delete(tx, owner, tag)) });
        finished_or_blocked(&t.db, &second).await;
        first.commit().await.unwrap();
        assert!(!second.await.unwrap(), "{}", t.name);
    }
}
