//! Collections, and what is each member's own in a workspace that several share.

mod files;

use lectern_shared::{
    ids::{AgentCollectionId, ApiTokenId, CollectionId, DocumentId, TraceId, UserId, WorkspaceId},
    model::{
        Json,
        collection::{Collection, CollectionDefaults},
        workspace::{RowOwner, RunOwner},
    },
};
use serde_json::json;
use uuid::Uuid;

use super::agents::{agent, version};
use crate::{
    Db, agents, collections, documents, locks,
    memory::{self, ConversationTurn},
    testing::{at, both, commit, document, made_in, plain, run_in, workspace},
    traces::{self, StoredTrace, TraceFilter},
};

/// Adds an empty collection.
pub(super) async fn collection(db: &Db, owner: RowOwner, name: &str) -> CollectionId {
    let collection = new_collection(owner, name);
    commit!(db, |tx| collections::insert(tx, &collection));
    collection.id
}

fn new_collection(owner: RowOwner, name: &str) -> Collection {
    let defaults = CollectionDefaults {
        metadata: json!({"ß": [1, null]}).as_object().cloned(),
        language: Some("de".to_owned()),
        ..CollectionDefaults::default()
    };
    Collection {
        id: CollectionId::generate(),
        owner,
        name: name.to_owned(),
        description: "about it".to_owned(),
        defaults: Some(Json(defaults)),
        metadata: json!({"ß": "\u{0}"}).as_object().cloned().map(Json),
        created_at: at(1),
        updated_at: at(1),
        documents: 0,
    }
}

pub(super) async fn add(
    db: &Db,
    workspace: WorkspaceId,
    collection: CollectionId,
    documents: &[DocumentId],
) -> usize {
    let mut tx = db.begin().await.unwrap();
    locks::lock_workspace(&mut tx, workspace).await.unwrap();
    let added = collections::add_documents(&mut tx, workspace, collection, documents).await.unwrap();
    tx.commit().await.unwrap();
    added
}

async fn content(db: &Db, workspace: WorkspaceId, ids: &[CollectionId]) -> Vec<DocumentId> {
    collections::documents_of(db, workspace, ids).await.unwrap()
}

#[tokio::test]
async fn a_collection_is_read_as_it_was_written_in_its_workspace_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut made = new_collection(RowOwner::new(owner, UserId::generate()), "Näme");
        commit!(t.db, |tx| collections::insert(tx, &made));
        assert_eq!(collections::find(&t.db, owner, made.id).await.unwrap(), Some(made.clone()), "{}", t.name);
        assert_eq!(collections::find(&t.db, other, made.id).await.unwrap(), None, "{}", t.name);
        assert_eq!(commit!(t.db, |tx| collections::lock(tx, other, made.id)), None, "{}", t.name);

        let stolen = Collection { owner: made_in(other), name: "stolen".to_owned(), ..made.clone() };
        commit!(t.db, |tx| collections::update(tx, &stolen));
        assert!(!commit!(t.db, |tx| collections::delete(tx, other, made.id)), "{}", t.name);
        (made.name, made.description, made.defaults) = ("new".to_owned(), String::new(), None);
        made.metadata = None;
        made.updated_at = at(5);
        commit!(t.db, |tx| collections::update(tx, &made));
        assert_eq!(
            commit!(t.db, |tx| collections::lock(tx, owner, made.id)),
            Some(made.clone()),
            "{}",
            t.name
        );

        let second = collection(&t.db, made_in(owner), "second").await;
        let theirs = collection(&t.db, made_in(other), "theirs").await;
        let end = CollectionId::from(Uuid::max());
        for (workspace, before, expected) in [
            (owner, end, vec![second]),
            (owner, second, vec![made.id]),
            (owner, made.id, vec![]),
            (other, end, vec![theirs]),
        ] {
            let page = collections::list(&t.db, workspace, "", before, 1).await.unwrap();
            assert_eq!(page.iter().map(|one| one.id).collect::<Vec<_>>(), expected, "{}", t.name);
        }
        for (ids, has) in [
            (vec![], true),
            (vec![made.id, second, made.id], true),
            (vec![made.id, theirs], false),
            (vec![CollectionId::generate()], false),
        ] {
            assert_eq!(collections::has_all(&t.db, owner, &ids).await.unwrap(), has, "{}: {ids:?}", t.name);
        }
    }
}

#[tokio::test]
async fn a_thousand_documents_are_added_at_once_and_none_of_another_workspace() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (first, second) =
            (collection(&t.db, made_in(owner), "a").await, collection(&t.db, made_in(owner), "b").await);
        let mut tx = t.db.begin().await.unwrap();
        let mut ids = Vec::new();
        for number in 0..1000 {
            let name = number.to_string();
            let document = plain(owner, &name);
            documents::insert(&mut tx, &document, at(1)).await.unwrap();
            ids.push(document.id);
        }
        tx.commit().await.unwrap();
        assert_eq!(add(&t.db, owner, first, &ids).await, 1000, "{}", t.name);
        assert_eq!(content(&t.db, owner, &[first]).await, ids, "{}", t.name);
        let shown = collections::find(&t.db, owner, first).await.unwrap().unwrap();
        assert_eq!(shown.documents, 1000, "{}", t.name);

        let theirs = document(&t.db, other, "theirs", at(1)).await;
        let some = [ids[0], theirs, ids[0], DocumentId::generate()];
        assert_eq!(add(&t.db, owner, second, &some).await, 1, "{}", t.name);
        assert_eq!(add(&t.db, owner, second, &[theirs]).await, 0, "{}", t.name);
        assert_eq!(add(&t.db, owner, second, &[]).await, 0, "{}", t.name);
        assert_eq!(add(&t.db, owner, second, &ids[..2]).await, 2, "{}: one was in it", t.name);
        assert_eq!(content(&t.db, owner, &[second]).await, ids[..2], "{}", t.name);
        assert_eq!(content(&t.db, owner, &[second, first]).await, ids, "{}: each once", t.name);
        assert_eq!(content(&t.db, owner, &[]).await, [], "{}", t.name);
        assert_eq!(content(&t.db, other, &[first, second]).await, [], "{}", t.name);
        let named = collections::of_document(&t.db, owner, ids[0]).await.unwrap();
        assert_eq!(named, [(second, "b".to_owned()), (first, "a".to_owned())], "{}", t.name);
        assert!(collections::of_document(&t.db, other, ids[0]).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_new_document_goes_into_collections_that_are_all_of_its_workspace() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (first, second) =
            (collection(&t.db, made_in(owner), "a").await, collection(&t.db, made_in(owner), "b").await);
        let theirs = collection(&t.db, made_in(other), "c").await;
        let linked = agent(&t.db, owner, at(0)).await;
        commit!(t.db, |tx| collections::link(tx, made_in(owner), linked, second, at(1))).unwrap();
        let last = version(&t.db, linked).await;

        let lock = async |ids: &[CollectionId]| {
            let locked = commit!(t.db, |tx| collections::lock_all(tx, owner, ids));
            locked.map(|locked| locked.iter().map(|one| one.id).collect::<Vec<_>>())
        };
        assert_eq!(lock(&[]).await, Some(vec![]), "{}", t.name);
        assert_eq!(lock(&[second, first, second]).await, Some(vec![second, first]), "{}", t.name);
        assert_eq!(lock(&[first, theirs]).await, None, "{}", t.name);
        assert_eq!(lock(&[CollectionId::generate()]).await, None, "{}", t.name);

        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(document(&t.db, owner, name, at(1)).await);
        }
        commit!(t.db, |tx| collections::put_document(tx, owner, ids[0], &[]));
        assert_eq!(version(&t.db, linked).await, last, "{}: nothing changed", t.name);
        commit!(t.db, |tx| collections::put_document(tx, owner, ids[0], &[second, first]));
        assert!(version(&t.db, linked).await > last, "{}", t.name);
        commit!(t.db, |tx| collections::put_document(tx, owner, ids[2], &[second]));
        let end = DocumentId::from(Uuid::max());
        for (workspace, collection, before, expected) in [
            (owner, second, end, vec![ids[2], ids[0]]),
            (owner, second, ids[2], vec![ids[0]]),
            (owner, first, end, vec![ids[0]]),
            (other, second, end, vec![]),
        ] {
            let page = collections::list_documents(&t.db, workspace, collection, before, 2).await.unwrap();
            let ids: Vec<_> = page.iter().map(|details| details.document.id).collect();
            assert_eq!(ids, expected, "{}", t.name);
        }
        let page = collections::list_documents(&t.db, owner, second, end, 1).await.unwrap();
        assert_eq!(page.len(), 1, "{}", t.name);
    }
}

#[tokio::test]
async fn what_changes_a_collection_raises_the_versions_of_its_agents_alone() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (linked, unlinked) = (agent(&t.db, owner, at(0)).await, agent(&t.db, owner, at(0)).await);
        let set = collection(&t.db, made_in(owner), "set").await;
        let id = document(&t.db, owner, "one", at(0)).await;
        let raised = async |last: i64| {
            let now = version(&t.db, linked).await;
            assert!(now > last, "{}: {now}", t.name);
            now
        };
        let link = commit!(t.db, |tx| collections::link(tx, made_in(owner), linked, set, at(2))).unwrap();
        let mut last = raised(1).await;
        add(&t.db, owner, set, &[id]).await;
        last = raised(last).await;
        let remove = async || commit!(t.db, |tx| collections::remove_document(tx, owner, set, id));
        assert!(remove().await, "{}", t.name);
        last = raised(last).await;
        assert!(!remove().await, "{}", t.name);
        assert_eq!(content(&t.db, owner, &[set]).await, [], "{}", t.name);
        last = last.max(version(&t.db, linked).await);

        assert!(commit!(t.db, |tx| collections::unlink(tx, owner, link.id)), "{}", t.name);
        assert!(!commit!(t.db, |tx| collections::unlink(tx, owner, link.id)), "{}", t.name);
        last = raised(last).await;
        add(&t.db, owner, set, &[id]).await;
        assert_eq!(version(&t.db, linked).await, last, "{}: it does not answer from it", t.name);
        commit!(t.db, |tx| collections::link(tx, made_in(owner), linked, set, at(2))).unwrap();
        last = raised(last).await;
        assert!(commit!(t.db, |tx| collections::delete(tx, owner, set)), "{}", t.name);
        raised(last).await;
        assert_eq!(version(&t.db, unlinked).await, 1, "{}", t.name);
    }
}

#[tokio::test]
async fn an_agent_and_a_collection_of_one_workspace_are_linked_once() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (mine, theirs) = (agent(&t.db, owner, at(0)).await, agent(&t.db, other, at(0)).await);
        let (set, their_set) =
            (collection(&t.db, made_in(owner), "a").await, collection(&t.db, made_in(other), "b").await);
        let link = async |workspace, agent, collection, now| {
            commit!(t.db, |tx| collections::link(tx, made_in(workspace), agent, collection, at(now)))
        };
        let first = link(owner, mine, set, 2).await.unwrap();
        assert_eq!((first.agent_id, first.collection_id), (mine, set), "{}", t.name);
        assert_eq!((first.owner, first.created_at), (made_in(owner), at(2)), "{}", t.name);
        let before = version(&t.db, mine).await;
        assert_eq!(link(owner, mine, set, 3).await.as_ref(), Some(&first), "{}", t.name);
        assert_eq!(version(&t.db, mine).await, before, "{}: it answers from what it answered from", t.name);
        for (workspace, agent, collection) in
            [(owner, theirs, set), (owner, mine, their_set), (other, mine, set), (other, theirs, set)]
        {
            assert_eq!(link(workspace, agent, collection, 3).await, None, "{}", t.name);
        }
        let other_agent = agent(&t.db, owner, at(0)).await;
        let second = link(owner, other_agent, set, 4).await.unwrap();
        let end = AgentCollectionId::from(Uuid::max());
        for (workspace, agent, before, expected) in [
            (owner, None, end, vec![second.clone(), first.clone()]),
            (owner, None, second.id, vec![first.clone()]),
            (owner, Some(mine), end, vec![first.clone()]),
            (other, None, end, vec![]),
        ] {
            let page = collections::list_links(&t.db, workspace, agent, before, 2).await.unwrap();
            assert_eq!(page, expected, "{}", t.name);
        }
        assert_eq!(
            collections::find_link(&t.db, owner, first.id).await.unwrap(),
            Some(first.clone()),
            "{}",
            t.name
        );
        assert_eq!(collections::find_link(&t.db, other, first.id).await.unwrap(), None, "{}", t.name);
        assert!(!commit!(t.db, |tx| collections::unlink(tx, other, first.id)), "{}", t.name);
        assert!(commit!(t.db, |tx| agents::delete(tx, owner, mine)), "{}", t.name);
        assert_eq!(collections::find_link(&t.db, owner, first.id).await.unwrap(), None, "{}", t.name);
        assert!(commit!(t.db, |tx| collections::delete(tx, owner, set)), "{}", t.name);
        assert_eq!(collections::find_link(&t.db, owner, second.id).await.unwrap(), None, "{}", t.name);
    }
}

#[tokio::test]
async fn a_deleted_document_is_in_no_collection_and_a_deleted_collection_takes_no_document() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let set = collection(&t.db, made_in(owner), "set").await;
        let mut ids = Vec::new();
        for name in ["a", "b"] {
            ids.push(document(&t.db, owner, name, at(0)).await);
        }
        add(&t.db, owner, set, &ids).await;
        commit!(t.db, |tx| documents::delete(tx, owner, ids[0], at(1), at(2)));
        assert_eq!(content(&t.db, owner, &[set]).await, ids[1..], "{}", t.name);
        let shown = collections::find(&t.db, owner, set).await.unwrap().unwrap();
        assert_eq!(shown.documents, 1, "{}", t.name);
        assert_eq!(add(&t.db, owner, set, &ids[..1]).await, 0, "{}", t.name);

        assert!(commit!(t.db, |tx| collections::delete(tx, owner, set)), "{}", t.name);
        assert!(!commit!(t.db, |tx| collections::delete(tx, owner, set)), "{}", t.name);
        assert!(collections::find(&t.db, owner, set).await.unwrap().is_none(), "{}", t.name);
        assert_eq!(content(&t.db, owner, &[set]).await, [], "{}", t.name);
        assert!(documents::find(&t.db, owner, ids[1]).await.unwrap().is_some(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_session_and_its_traces_are_of_the_member_who_asked() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let own = run_in(workspace);
        let shared = RunOwner { token: Some(ApiTokenId::generate()), ..own };
        let people = [own, RunOwner { user: UserId::generate(), ..own }, shared];
        let mut ids = Vec::new();
        for (owner, question) in people.into_iter().zip(["hers", "his", "anybody's"]) {
            let turn = ConversationTurn {
                question: question.to_owned(),
                answer: String::new(),
                tokens: 1,
                trace: None,
            };
            for _ in 0..2 {
                commit!(t.db, |tx| memory::add(tx, owner, agent, "s", &turn, at(1), 2));
            }
            let trace = StoredTrace {
                id: TraceId::generate(),
                agent_id: agent,
                session: Some("s".to_owned()),
                question: None,
                created_at: at(1),
                complete: true,
                body: Json(json!({})),
                rating: None,
                feedback: None,
                feedback_at: None,
                user_id: None,
                token_id: None,
            };
            commit!(t.db, |tx| traces::insert(tx, owner, &trace, None, at(100)));
            ids.push(trace.id);
        }
        let said = async |owner| {
            let turns = memory::latest(&t.db, owner, agent, "s", 9).await.unwrap();
            turns.into_iter().map(|turn| turn.question).collect::<Vec<_>>()
        };
        assert_eq!(said(people[0]).await, ["hers", "hers"], "{}: the other's turns push none out", t.name);
        assert_eq!(said(people[1]).await, ["his", "his"], "{}", t.name);
        assert_eq!(said(shared).await, ["anybody's"; 2], "{}: whoever holds her token is not her", t.name);
        commit!(t.db, |tx| agents::erase_session(tx, people[1], agent, "s", at(2)));
        assert_eq!((said(people[0]).await.len(), said(people[1]).await.len()), (2, 0), "{}", t.name);

        let [hers, his, anybodys] = people.map(Some);
        let nobodys = Some(RunOwner { user: UserId::generate(), ..own });
        for (of, expected) in [
            (hers, vec![ids[0]]),
            (his, vec![ids[1]]),
            (anybodys, vec![ids[2]]),
            (None, vec![ids[2], ids[1], ids[0]]),
            (nobodys, vec![]),
        ] {
            let listed =
                traces::list(&t.db, workspace, of, &TraceFilter::default(), at(2), Uuid::max().into(), 9)
                    .await
                    .unwrap();
            assert_eq!(listed.iter().map(|trace| trace.id).collect::<Vec<_>>(), expected, "{}", t.name);
            for id in &ids {
                let found = traces::find(&t.db, workspace, of, *id, at(2)).await.unwrap().is_some();
                assert_eq!(found, expected.contains(id), "{}", t.name);
                let record = traces::find_with_record(&t.db, workspace, of, *id, at(2)).await.unwrap();
                assert_eq!(record.is_some(), found, "{}", t.name);
            }
        }
    }
}
