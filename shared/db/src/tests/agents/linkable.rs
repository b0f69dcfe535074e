//! What an agent is linked to, and what could be linked to it.

use lectern_shared::ids::AgentDocumentId;

use super::{agent, end, link};
use crate::{
    agents, collections,
    documents::browse::{DocumentFilter, DocumentOrder, browse},
    testing::{at, both, commit, document, made_in, workspace},
    tests::{
        collections::{add, collection},
        tools as tool_tests,
    },
    tools::{self, LinkOutcome},
};

#[tokio::test]
async fn documents_that_are_linked_are_read_page_by_page_and_are_not_among_those_that_can_be() {
    for t in &both().await {
        let db = &t.db;
        let (ours, theirs) = (workspace(db, at(0)).await, workspace(db, at(0)).await);
        let (asked, other) = (agent(db, ours, at(0)).await, agent(db, ours, at(0)).await);
        let mut documents = Vec::new();
        for name in ["one", "two", "three", "four"] {
            documents.push(document(db, ours, name, at(0)).await);
        }
        document(db, theirs, "theirs", at(0)).await;
        for linked in &documents[..3] {
            link(db, ours, asked, *linked).await.unwrap();
        }
        link(db, ours, other, documents[3]).await.unwrap();

        let page = async |before: AgentDocumentId| {
            let found = agents::linked_documents(db, ours, asked, before, 2).await.unwrap();
            let names: Vec<String> = found.iter().map(|linked| linked.document.name.clone()).collect();
            (names, found.last().map(|linked| linked.link_id))
        };
        let (first, last) = page(end()).await;
        assert_eq!(first, ["three", "two"], "{}", t.name);
        assert_eq!(page(last.unwrap()).await.0, ["one"], "{}", t.name);
        // Behind the last page there is nothing, and the way back is to where that page begins.
        let mut ends = agents::linked_documents(db, ours, asked, end(), 10).await.unwrap();
        let oldest = ends.pop().map(|linked| linked.link_id).unwrap();
        assert!(page(oldest).await.0.is_empty(), "{}", t.name);
        let back = async |workspace, size| {
            let found = agents::documents_page_before(db, workspace, asked, oldest, size).await.unwrap();
            match found {
                Some(before) => page(before).await.0,
                None => Vec::new(),
            }
        };
        assert_eq!(back(ours, 1).await, ["one"], "{}", t.name);
        assert_eq!(back(ours, 2).await, ["two", "one"], "{}", t.name);
        assert!(back(ours, 3).await.is_empty(), "it is the first page: {}", t.name);
        assert!(back(theirs, 1).await.is_empty(), "{}", t.name);
        let foreign = agents::linked_documents(db, theirs, asked, end(), 2).await.unwrap();
        assert!(foreign.is_empty(), "{}", t.name);

        let filter = DocumentFilter { unlinked: Some(asked), ..DocumentFilter::default() };
        let free = browse(db, ours, &filter, DocumentOrder::Newest, None, 10).await.unwrap();
        let free: Vec<&str> = free.iter().map(|document| document.name.as_str()).collect();
        assert_eq!(free, ["four"], "{}", t.name);
    }
}

#[tokio::test]
async fn collections_and_tools_are_linked_or_can_be() {
    for t in &both().await {
        let db = &t.db;
        let workspace = workspace(db, at(0)).await;
        let (owner, agent) = (made_in(workspace), agent(db, workspace, at(0)).await);
        let shelf = collection(db, owner, "linked").await;
        let other = collection(db, owner, "Fräe").await;
        let newer = collection(db, owner, "free").await;
        commit!(db, |tx| collections::link(tx, owner, agent, shelf, at(1))).unwrap();
        let linked = agents::linked_collections(db, workspace, agent, end(), 10).await.unwrap();
        let linked: Vec<_> = linked.iter().map(|link| (link.target, link.name.as_str())).collect();
        assert_eq!(linked, [(*shelf.as_uuid(), "linked")], "{}", t.name);
        let link = agents::linked_collections(db, workspace, agent, end(), 1).await.unwrap().remove(0).id;
        for (size, there) in [(0, Some(link)), (1, None)] {
            let back =
                agents::collections_page_before(db, workspace, agent, link.into(), size).await.unwrap();
            assert_eq!(back.map(|id| *id.as_uuid()), there, "{}", t.name);
        }
        let free = async |name: &str, limit| {
            let free = agents::linkable_collections(db, workspace, agent, name, limit).await.unwrap();
            (free.newest.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), free.count)
        };
        assert_eq!(free("", 10).await, (vec![newer, other], 2), "{}", t.name);
        assert_eq!(free("", 1).await, (vec![newer], 2), "those that are left out count, too: {}", t.name);
        assert_eq!(free("RÄ", 10).await, (vec![other], 1), "{}", t.name);
        assert_eq!(free("%", 10).await, (Vec::new(), 0), "{}", t.name);

        let [tool, spare] = [(); 2].map(|()| tool_tests::new(workspace, at(0)));
        for tool in [&tool, &spare] {
            commit!(db, |tx| tools::insert(tx, tool));
        }
        let outcome = commit!(db, |tx| tools::link(tx, owner, agent, tool.id, at(1)));
        assert!(matches!(outcome, LinkOutcome::Yes(_)), "{}", t.name);
        let linked = agents::linked_tools(db, workspace, agent).await.unwrap();
        let linked: Vec<_> = linked.iter().map(|link| (link.target, link.name.as_str())).collect();
        assert_eq!(linked, [(*tool.id.as_uuid(), tool.name.as_str())], "{}", t.name);
        let free = agents::linkable_tools(db, workspace, agent, &spare.name, 10).await.unwrap();
        assert_eq!((free.newest, free.count), (vec![(spare.id, spare.name)], 1), "{}", t.name);
        let none = agents::linkable_tools(db, workspace, agent, "called otherwise", 10).await.unwrap();
        assert_eq!((none.newest.len(), none.count), (0, 0), "{}", t.name);
    }
}

#[tokio::test]
async fn an_agent_answers_from_its_collections_alone_until_a_document_is_linked_that_is_in_none_of_them() {
    for t in &both().await {
        let db = &t.db;
        let (ours, theirs) = (workspace(db, at(0)).await, workspace(db, at(0)).await);
        let (owner, asked) = (made_in(ours), agent(db, ours, at(0)).await);
        let (shelf, other) = (collection(db, owner, "shelf").await, collection(db, owner, "other").await);
        let (within, elsewhere) =
            (document(db, ours, "within", at(0)).await, document(db, ours, "elsewhere", at(0)).await);
        add(db, ours, shelf, &[within]).await;
        add(db, ours, other, &[elsewhere]).await;
        let only = async |workspace| agents::only_collections(db, workspace, asked).await.unwrap();
        assert_eq!(only(ours).await, Some(Vec::new()), "{}", t.name);
        commit!(db, |tx| collections::link(tx, owner, asked, shelf, at(1))).unwrap();
        assert_eq!(only(ours).await, Some(vec![shelf]), "{}", t.name);
        assert_eq!(only(theirs).await, Some(Vec::new()), "{}: it is not their agent", t.name);
        link(db, ours, asked, within).await.unwrap();
        assert_eq!(only(ours).await, Some(vec![shelf]), "{}: the same document once more", t.name);
        link(db, ours, asked, elsewhere).await.unwrap();
        assert_eq!(only(ours).await, None, "{}", t.name);
        commit!(db, |tx| collections::link(tx, owner, asked, other, at(2))).unwrap();
        let mut all = only(ours).await.unwrap();
        all.sort_unstable();
        assert_eq!(all, [shelf, other], "{}", t.name);
    }
}
