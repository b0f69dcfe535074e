//! A better order for what was found: whole, in part, and not at all.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use lectern_db::{
    Db,
    testing::{at, both, commit, set_languages, workspace},
};
use lectern_embed::{EmbeddingModels, RerankError, RerankModel, Reranker, testing::StarCounter};
use lectern_index::LocalIndex;
use lectern_shared::{
    cache_budget::CacheBudget, clock::Clock, compute::ComputeStopped, ids::WorkspaceId,
    model::language::Language,
};

use super::{ingested, request};
use crate::search::{RerankPatience, RerankReport, SearchAnswer, SearchEngine, SearchRequest};

/// By words, the one with the fewest other words comes first; by the stars, the last.
const PASSAGES: [&str; 4] = ["apple", "* apple and", "** apple and then", "*** apple and then more"];

fn search(db: &Db, reranker: &Arc<StarCounter>, candidates: usize) -> SearchEngine {
    let budget = CacheBudget::new(64 << 20);
    let index = Arc::new(LocalIndex::within(db.clone(), budget.clone(), None));
    let within = Duration::from_millis(200);
    let reranker = Arc::clone(reranker) as Arc<dyn Reranker>;
    let model = RerankModel::of(reranker, candidates, within, &Clock::system());
    SearchEngine::new(db.clone(), index, EmbeddingModels::none(), model, Arc::default(), &budget)
}

async fn asked(search: &SearchEngine, workspace: WorkspaceId, limit: usize) -> (Vec<usize>, RerankReport) {
    asked_with(search, workspace, limit, RerankPatience::Budget).await
}

/// The stars of what is found, in its order.
async fn asked_with(
    search: &SearchEngine,
    workspace: WorkspaceId,
    limit: usize,
    patience: RerankPatience,
) -> (Vec<usize>, RerankReport) {
    let request = SearchRequest { rerank: Some(patience), limit, ..request(workspace, "an apple please") };
    let SearchAnswer { passages, rerank } = search.search(&request).await.unwrap();
    let stars = passages.iter().map(|passage| passage.chunk.text.matches('*').count()).collect();
    (stars, rerank.unwrap())
}

#[tokio::test]
async fn the_best_come_in_the_order_of_the_model_and_the_others_where_they_were() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        ingested(&t.db, workspace, "fruit", &PASSAGES).await;
        let counter = Arc::new(StarCounter::default());
        let without =
            search(&t.db, &counter, 4).search(&request(workspace, "an apple please")).await.unwrap();
        let as_found: Vec<_> = without.passages.iter().map(|p| p.chunk.text.matches('*').count()).collect();
        assert_eq!((as_found, without.rerank), (vec![0, 1, 2, 3], None), "{}", t.name);
        assert_eq!(counter.asked.load(Ordering::Relaxed), 0, "{}: nobody asked for it", t.name);

        let (stars, report) = asked(&search(&t.db, &counter, 4), workspace, 10).await;
        assert_eq!(stars, [3, 2, 1, 0], "{}", t.name);
        assert_eq!((report.candidates, report.scored, report.problem), (4, 4, None), "{}", t.name);
        assert_eq!(report.model.as_deref(), Some("stars"), "{}", t.name);
        // More are looked at than are wanted, and no more than is set.
        assert_eq!(asked(&search(&t.db, &counter, 4), workspace, 2).await.0, [3, 2], "{}", t.name);
        assert_eq!(asked(&search(&t.db, &counter, 2), workspace, 10).await.0, [1, 0, 2, 3], "{}", t.name);
        assert_eq!(asked(&search(&t.db, &counter, 3), workspace, 2).await.0, [2, 1], "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_not_reached_in_time_keeps_its_place() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        ingested(&t.db, workspace, "fruit", &PASSAGES).await;
        let counter = Arc::new(StarCounter { most: Some(2), ..StarCounter::default() });
        let search = search(&t.db, &counter, 4);
        let (stars, report) = asked(&search, workspace, 10).await;
        assert_eq!(stars, [1, 0, 2, 3], "{}", t.name);
        assert_eq!((report.candidates, report.scored), (4, 2), "{}", t.name);
        assert!(report.problem.unwrap().contains("LECTERN_RERANK_BUDGET"), "{}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_gives_nothing_is_not_waited_for_again_at_once() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        ingested(&t.db, workspace, "fruit", &PASSAGES).await;
        let counter = Arc::new(StarCounter { most: Some(0), ..StarCounter::default() });
        let search = search(&t.db, &counter, 4);
        for _ in 0..3 {
            let (stars, report) = asked(&search, workspace, 10).await;
            assert_eq!((stars, report.scored), (vec![0, 1, 2, 3], 0), "{}", t.name);
            assert!(report.problem.is_some(), "{}", t.name);
        }
        assert_eq!(counter.asked.load(Ordering::Relaxed), 1, "{}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_fails_makes_no_search_fail() {
    let failures: [fn() -> RerankError; 3] = [
        || RerankError::Away("it sleeps".to_owned()),
        || RerankError::Refused("it is none".to_owned()),
        || RerankError::Stopped(ComputeStopped),
    ];
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        ingested(&t.db, workspace, "fruit", &PASSAGES).await;
        for end in failures {
            for (most, expected) in [(0, [0, 1, 2, 3]), (3, [2, 1, 0, 3])] {
                let counter =
                    Arc::new(StarCounter { most: Some(most), end: Some(end), ..StarCounter::default() });
                let search = search(&t.db, &counter, 4);
                let (stars, report) = asked_with(&search, workspace, 10, RerankPatience::Whole).await;
                assert_eq!((stars, report.scored), (expected.to_vec(), most), "{}", t.name);
                assert_eq!(report.problem, Some(end().to_string()), "{}", t.name);
            }
        }
    }
}

#[tokio::test]
async fn without_a_model_it_is_said_why() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        ingested(&t.db, workspace, "fruit", &PASSAGES).await;
        let (stars, report) = asked(&super::search(&t.db), workspace, 10).await;
        assert_eq!((stars, report.model), (vec![0, 1, 2, 3], None), "{}", t.name);
        assert!(report.problem.unwrap().contains("LECTERN_RERANKER"), "{}", t.name);
    }
}

#[tokio::test]
async fn what_the_model_cannot_read_keeps_its_place() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let counter = Arc::new(StarCounter::default());
        let search = search(&t.db, &counter, 10);
        ingested(
            &t.db,
            workspace,
            "english",
            &["* apple and", "** apple and then more", "*** apple and then more words"],
        )
        .await;
        let foreign = ingested(&t.db, workspace, "french", &["**** apple et puis"]).await;
        let languages = format!("[[{},1]]", Language::French.code());
        commit!(t.db, |tx| set_languages(tx, foreign, &languages));
        let (stars, report) = asked(&search, workspace, 10).await;
        assert_eq!((stars, report.candidates), (vec![3, 4, 2, 1], 3), "{}", t.name);
        let question = SearchRequest {
            rerank: Some(RerankPatience::Budget),
            ..request(workspace, "東京の天気は雨ですか apple")
        };
        let answer = search.search(&question).await.unwrap();
        let report = answer.rerank.unwrap();
        assert_eq!(report.scored, 0, "{}", t.name);
        assert!(report.problem.unwrap().contains("language"), "{}", t.name);
        assert!(answer.passages.iter().all(|passage| passage.rerank.is_none()), "{}", t.name);
    }
}
