//! Filters on metadata, and what of the metadata is remembered.

use std::{pin::pin, sync::Arc};

use futures::poll;
use lectern_db::{
    Db, documents,
    testing::{at, both, commit, set_metadata, workspace},
};
use lectern_embed::{EmbeddingModels, RerankModel};
use lectern_index::LocalIndex;
use lectern_shared::{
    cache_budget::CacheBudget,
    compute::ComputePool,
    ids::{DocumentId, WorkspaceId},
};
use serde_json::{Value, json};

use super::{answer, ingested, request, search_within, start, texts};
use crate::search::{MetadataCondition, MetadataFilter, MetadataTest, SearchEngine, SearchRequest};

/// Gives a document metadata; with `unseen` behind the back of whoever remembers what it was.
async fn describe(db: &Db, workspace: WorkspaceId, document: DocumentId, metadata: &Value, unseen: bool) {
    let metadata = metadata.to_string();
    commit!(db, |tx| async {
        if !unseen {
            documents::bump_search_epoch(tx, workspace).await?;
        }
        set_metadata(tx, document, &metadata).await
    });
}

fn is_team(team: Value) -> MetadataFilter {
    let test = MetadataTest::AnyOf(vec![team]);
    MetadataFilter::Condition(MetadataCondition { key: "team".to_owned(), test })
}

/// What is found of the workspace's documents about apples whose metadata says this of `team`, in alphabetical order.
async fn of_team(
    search: &SearchEngine,
    workspace: WorkspaceId,
    documents: Option<&[DocumentId]>,
    team: &Value,
) -> Vec<String> {
    let filter = is_team(team.clone());
    let documents = documents.map(Into::into);
    let request = SearchRequest { documents, filter, ..request(workspace, "apple") };
    let mut texts: Vec<_> =
        answer(search, &request).await.into_iter().map(|passage| passage.chunk.text).collect();
    texts.sort();
    texts
}

/// Documents about apples of three teams and of none, with so many bytes of metadata each.
async fn teams(db: &Db, workspace: WorkspaceId, bytes: usize) -> Vec<DocumentId> {
    let mut all = Vec::new();
    for (name, team) in [("a", json!("legal")), ("b", json!(["sales", "legal"])), ("c", json!("sales"))] {
        let document = ingested(db, workspace, name, &[&format!("apple {name}")]).await;
        let metadata = json!({"before": "x".repeat(bytes / 2), "team": team, "after": "x".repeat(bytes / 2)});
        describe(db, workspace, document, &metadata, false).await;
        all.push(document);
    }
    all.push(ingested(db, workspace, "d", &["apple d"]).await);
    all
}

#[tokio::test]
async fn metadata_that_is_too_large_to_be_remembered_is_filtered_all_the_same() {
    for t in &both().await {
        // Of one workspace 2 KiB are remembered.
        let budget = CacheBudget::new(64 << 10);
        let search = search_within(&t.db, EmbeddingModels::none(), &budget);
        let workspace = workspace(&t.db, at(0)).await;
        let all = teams(&t.db, workspace, 1 << 10).await;
        assert_eq!(texts(&search, workspace, "apple").await.len(), 4, "{}", t.name);
        let before = budget.taken();
        for _ in 0..2 {
            let of = async |team: &Value| of_team(&search, workspace, None, team).await;
            assert_eq!(of(&json!("legal")).await, ["apple a", "apple b"], "{}", t.name);
            assert_eq!(of(&json!("sales")).await, ["apple b", "apple c"], "{}", t.name);
            assert_eq!(of(&Value::Null).await, ["apple d"], "{}", t.name);
            let named = Some(&[all[3], all[1], all[2]][..]);
            assert_eq!(of_team(&search, workspace, named, &json!("legal")).await, ["apple b"], "{}", t.name);
            assert_eq!(of_team(&search, workspace, named, &Value::Null).await, ["apple d"], "{}", t.name);
        }
        assert!(budget.taken() - before < 100, "{}: only that it is too much is remembered", t.name);
        // Nor is what is not remembered known to be old.
        describe(&t.db, workspace, all[0], &json!({"team": "support"}), true).await;
        assert_eq!(of_team(&search, workspace, None, &json!("support")).await, ["apple a"], "{}", t.name);
    }
}

#[tokio::test]
async fn one_users_large_metadata_does_not_drive_out_what_is_remembered_of_others() {
    for t in &both().await {
        let budget = CacheBudget::new(64 << 10);
        let search = search_within(&t.db, EmbeddingModels::none(), &budget);
        let (ordinary, large) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let documents = teams(&t.db, ordinary, 100).await;
        teams(&t.db, large, 8 << 10).await;
        let before = budget.taken();
        assert_eq!(of_team(&search, ordinary, None, &json!("legal")).await.len(), 2, "{}", t.name);
        assert!(budget.taken() > before + 300, "{}: the metadata counts, and the list of documents", t.name);
        for _ in 0..3 {
            assert_eq!(of_team(&search, large, None, &json!("legal")).await.len(), 2, "{}", t.name);
        }
        // What is changed without a sign is not seen: it is still remembered.
        describe(&t.db, ordinary, documents[0], &json!({}), true).await;
        assert_eq!(of_team(&search, ordinary, None, &Value::Null).await, ["apple d"], "{}", t.name);
    }
}

#[tokio::test]
async fn a_filter_that_comes_again_is_not_held_against_each_document_again() {
    for t in &both().await {
        // Too little for the metadata.
        let search = search_within(&t.db, EmbeddingModels::none(), &CacheBudget::new(64 << 10));
        let workspace = workspace(&t.db, at(0)).await;
        let all = teams(&t.db, workspace, 1 << 10).await;
        let of = async |documents: Option<&[DocumentId]>, team: &str| {
            of_team(&search, workspace, documents, &json!(team)).await
        };
        assert_eq!(of(Some(&all[..1]), "sales").await, [""; 0], "{}", t.name);
        assert_eq!(of(None, "sales").await, ["apple b", "apple c"], "{}: not of the first alone", t.name);
        describe(&t.db, workspace, all[0], &json!({"team": "sales"}), true).await;
        assert_eq!(of(None, "sales").await, ["apple b", "apple c"], "{}", t.name);
        assert_eq!(of(Some(&all[..2]), "sales").await, ["apple b"], "{}", t.name);
        // Until something changes.
        describe(&t.db, workspace, all[3], &json!({"team": "sales"}), false).await;
        assert_eq!(of(None, "sales").await, ["apple a", "apple b", "apple c", "apple d"], "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_remembered_of_all_users_together_is_bounded_and_leaves_the_index_the_less_room() {
    for t in &both().await {
        let budget = CacheBudget::new(32 << 10);
        let index = Arc::new(LocalIndex::within(t.db.clone(), budget.clone(), None));
        let models = EmbeddingModels::none();
        let search = SearchEngine::new(
            t.db.clone(),
            Arc::clone(&index) as _,
            models,
            RerankModel::none(),
            Arc::default(),
            &budget,
        );
        for _ in 0..12 {
            let workspace = workspace(&t.db, at(0)).await;
            teams(&t.db, workspace, 200).await;
            assert_eq!(of_team(&search, workspace, None, &json!("legal")).await.len(), 2, "{}", t.name);
            assert!(budget.taken() <= budget.for_lists(), "{}: {}", t.name, budget.taken());
            assert!(index.cached_bytes() + budget.taken() <= 32 << 10, "{}", t.name);
        }
        assert!(budget.taken() > 0, "{}", t.name);
    }
}

#[tokio::test]
async fn a_filter_is_about_the_metadata_of_this_moment() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let document = ingested(&t.db, workspace, "one", &["apple one"]).await;
        ingested(&t.db, workspace, "two", &["apple two"]).await;
        let filter =
            |value: &str| SearchRequest { filter: is_team(value.into()), ..request(workspace, "apple") };
        let tag =
            async |team: &str| describe(&t.db, workspace, document, &json!({"team": team}), false).await;
        assert!(answer(&search, &filter("legal")).await.is_empty(), "{}", t.name);
        tag("legal").await;
        assert_eq!(answer(&search, &filter("legal")).await[0].chunk.text, "apple one", "{}", t.name);
        assert_eq!(answer(&search, &filter("legal")).await.len(), 1, "{}", t.name);
        tag("sales").await;
        assert!(answer(&search, &filter("legal")).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn of_metadata_that_is_remembered_what_has_changed_is_read_again_and_nothing_else() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let all = teams(&t.db, workspace, 100).await;
        let of = async |team: &str| of_team(&search, workspace, None, &json!(team)).await;
        let describe = async |place: usize, team: &str, unseen| {
            describe(&t.db, workspace, all[place], &json!({"team": team}), unseen).await;
        };
        assert_eq!(of("legal").await, ["apple a", "apple b"], "{}", t.name);
        describe(0, "hidden", true).await;
        describe(2, "legal", false).await;
        assert_eq!(of("legal").await, ["apple a", "apple b", "apple c"], "{}", t.name);
        // The last one had none.
        describe(3, "legal", false).await;
        commit!(t.db, |tx| documents::delete(tx, workspace, all[1], at(1), at(1)));
        assert_eq!(of("legal").await, ["apple a", "apple c", "apple d"], "{}", t.name);
        assert_eq!(of("sales").await, [""; 0], "{}", t.name);
        // More than are read alone.
        for place in [2, 3] {
            describe(place, "sales", false).await;
        }
        ingested(&t.db, workspace, "e", &["apple e"]).await;
        assert_eq!(of("sales").await, ["apple c", "apple d"], "{}", t.name);
        assert_eq!(of("hidden").await, ["apple a"], "{}: all was read", t.name);
    }
}

/// One piece of work at a time, on one thread, so that what comes first is done first.
#[test]
fn a_filter_lets_others_work_between_its_pages() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        for t in &both().await {
            let (mut search, workspace) = start(t).await;
            search.metadata.compute = ComputePool::new(1);
            teams(&t.db, workspace, 10).await;
            teams(&t.db, workspace, 10).await;
            let set = search.active.of(workspace, None).await.unwrap();
            let places: Vec<usize> = (0..set.len()).collect();
            let filter = is_team(json!("legal"));
            let all = search.metadata.met(workspace, &set, &places, &filter).await.unwrap();
            assert_eq!(all.into_iter().filter(|met| *met).count(), 4, "{}", t.name);

            let (end, ended) = std::sync::mpsc::channel::<()>();
            let compute = search.metadata.compute.clone();
            let mut before = pin!(compute.run(move || ended.recv().is_ok()));
            let mut met = pin!(search.metadata.met(workspace, &set, &places, &filter));
            let mut other = pin!(compute.run(|| ()));
            // They wait in this order.
            assert!(poll!(before.as_mut()).is_pending(), "{}", t.name);
            assert!(poll!(met.as_mut()).is_pending(), "{}", t.name);
            assert!(poll!(other.as_mut()).is_pending(), "{}", t.name);
            end.send(()).unwrap();
            assert_eq!(before.await, Ok(true), "{}", t.name);
            tokio::select! {
                biased;
                _ = met => panic!("{}: the other one waited for all pages", t.name),
                done = other => assert_eq!(done, Ok(()), "{}", t.name),
            }
        }
    });
}
