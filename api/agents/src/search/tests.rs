//! Search, over both engines and the embedded index.

mod meaning;
mod metadata;
mod rerank;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use lectern_db::{
    Db, documents,
    generations::RetiredGeneration,
    jobs::{self, PublishOutcome},
    testing::{
        TestDb, at, both, claim, claimed, commit, enqueue, passages, plain, publish, staged_in, workspace,
    },
};
use lectern_embed::{Embedder, EmbeddingModels, RerankModel, testing::Synonyms};
use lectern_index::{
    EntryMismatch, ExpectedEntries, HeldGenerations, IndexCandidates, IndexCursor, IndexEntry, IndexError,
    IndexQuery, IndexStatus, IndexTarget, IndexWriter, LocalIndex, SearchIndex,
};
use lectern_shared::{
    cache_budget::CacheBudget,
    ids::{DocumentId, GenerationId, WorkspaceId},
    metrics::CacheState,
    model::{document::DocumentType, job::JobClaim},
};

use super::{MetadataFilter, PassageHit, SearchEngine, SearchMode, SearchRequest};

/// Search as one process has it.
fn search(db: &Db) -> SearchEngine {
    search_with(db, EmbeddingModels::none())
}

fn search_with(db: &Db, models: EmbeddingModels) -> SearchEngine {
    search_within(db, models, &CacheBudget::new(64 << 20))
}

fn search_within(db: &Db, models: EmbeddingModels, budget: &CacheBudget) -> SearchEngine {
    let index = Arc::new(LocalIndex::within(db.clone(), budget.clone(), None));
    SearchEngine::new(db.clone(), index, models, RerankModel::none(), Arc::default(), budget)
}

/// Writes a claim's generation to the store and to the index, as an ingestion does.
async fn indexed(db: &Db, claim: &JobClaim, texts: &[&str]) -> GenerationId {
    indexed_with(db, claim, None, texts).await
}

async fn indexed_with(db: &Db, claim: &JobClaim, model: Option<&Synonyms>, texts: &[&str]) -> GenerationId {
    let space = model.map(Embedder::space);
    let generation = staged_in(db, claim, space, texts, at(0)).await;
    let index = LocalIndex::new(db.clone(), 0);
    let space = space.map(|space| (space.id, space.dimensions));
    let mut writer = index.writer(IndexTarget { claim, generation, space }).unwrap();
    let entry =
        |text: &&str| IndexEntry { text: (*text).to_owned(), vector: model.map(|_| Synonyms::vector(text)) };
    writer.add(texts.iter().map(entry).collect()).await.unwrap();
    assert_eq!(writer.finish().await.unwrap().entries, texts.len() as u64);
    generation
}

/// Adds a document whose passages have vectors of `model`.
async fn embedded(db: &Db, workspace: WorkspaceId, model: &Synonyms, texts: &[&str]) -> DocumentId {
    let held = claimed(db, workspace, "embedded", at(0)).await;
    let generation = indexed_with(db, &held, Some(model), texts).await;
    assert_eq!(publish(db, &held, generation, at(0)).await, PublishOutcome::Yes);
    held.document_id
}

async fn ingested(db: &Db, workspace: WorkspaceId, name: &str, texts: &[&str]) -> DocumentId {
    let held = claimed(db, workspace, name, at(0)).await;
    let generation = indexed(db, &held, texts).await;
    assert_eq!(publish(db, &held, generation, at(0)).await, PublishOutcome::Yes);
    held.document_id
}

async fn delete(db: &Db, workspace: WorkspaceId, document: DocumentId) {
    assert!(commit!(db, |tx| documents::delete(tx, workspace, document, at(1), at(2))));
}

fn request(workspace: WorkspaceId, query: &str) -> SearchRequest {
    SearchRequest {
        workspace,
        query: query.to_owned(),
        documents: None,
        filter: MetadataFilter::default(),
        mode: SearchMode::Hybrid,
        limit: 10,
        rerank: None,
        epoch: None,
    }
}

async fn answer(search: &SearchEngine, request: &SearchRequest) -> Vec<PassageHit> {
    search.search(request).await.unwrap().passages
}

/// The texts that are found, best first.
async fn texts(search: &SearchEngine, workspace: WorkspaceId, query: &str) -> Vec<String> {
    answer(search, &request(workspace, query)).await.into_iter().map(|passage| passage.chunk.text).collect()
}

/// The texts that are found among these documents, in alphabetical order.
async fn among(
    search: &SearchEngine,
    workspace: WorkspaceId,
    documents: &[DocumentId],
    query: &str,
) -> Vec<String> {
    let request = SearchRequest { documents: Some(documents.into()), ..request(workspace, query) };
    let mut texts: Vec<_> =
        answer(search, &request).await.into_iter().map(|passage| passage.chunk.text).collect();
    texts.sort();
    texts
}

async fn start(t: &TestDb) -> (SearchEngine, WorkspaceId) {
    (search(&t.db), workspace(&t.db, at(0)).await)
}

#[tokio::test]
async fn a_passage_comes_with_everything_that_is_known_of_it() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let content = ["a banana", "an apple and an apple", "the apple beside a long row of pears and plums"];
        let document = ingested(&t.db, workspace, "Fruit", &content).await;
        let found = answer(&search, &request(workspace, "apple")).await;
        let seen: Vec<_> = found.iter().map(|passage| &*passage.chunk.text).collect();
        assert_eq!(seen, [content[1], content[2]], "{}: the better one first", t.name);
        let (best, written) = (&found[0], &passages(document, &content)[1]);
        assert_eq!((&*best.document_name, best.chunk.document_id), ("Fruit", document), "{}", t.name);
        assert_eq!((best.document_type, &*best.document_url), (DocumentType::Txt, ""), "{}", t.name);
        assert_eq!((best.chunk.ordinal, best.chunk.chunk_id), (1, written.chunk_id), "{}", t.name);
        assert_eq!((best.chunk.tokens, &best.chunk.place.0), (7, &written.place), "{}", t.name);
        assert_eq!((best.lexical, best.dense), (Some(best.score), None), "{}", t.name);
        assert!(found[0].score > found[1].score && found[1].score > 0.0, "{}", t.name);
    }
}

#[tokio::test]
async fn nothing_is_found_before_a_document_is_published() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = indexed(&t.db, &held, &["apple"]).await;
        assert!(texts(&search, workspace, "apple").await.is_empty(), "{}", t.name);
        publish(&t.db, &held, generation, at(0)).await;
        assert_eq!(texts(&search, workspace, "apple").await, ["apple"], "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_that_is_ingested_again_answers_from_the_old_until_the_new_is_published() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let document = ingested(&t.db, workspace, "one", &["old apple", "old pear"]).await;
        assert_eq!(texts(&search, workspace, "apple").await, ["old apple"], "{}", t.name);
        enqueue(&t.db, workspace, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let generation = indexed(&t.db, &held, &["new apple"]).await;
        assert_eq!(texts(&search, workspace, "apple").await, ["old apple"], "{}", t.name);
        publish(&t.db, &held, generation, at(1)).await;
        assert_eq!(texts(&search, workspace, "apple").await, ["new apple"], "{}", t.name);
        assert!(texts(&search, workspace, "pear").await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_run_that_fails_leaves_the_answers_as_they_were() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let document = ingested(&t.db, workspace, "one", &["old apple"]).await;
        enqueue(&t.db, workspace, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        indexed(&t.db, &held, &["new apple"]).await;
        assert!(commit!(t.db, |tx| jobs::cancel(tx, workspace, document, at(2))), "{}", t.name);
        assert_eq!(texts(&search, workspace, "apple").await, ["old apple"], "{}", t.name);
    }
}

#[tokio::test]
async fn a_deleted_document_is_found_by_no_process_that_asks_afterwards() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let elsewhere = self::search(&t.reopen().await);
        let document = ingested(&t.db, workspace, "one", &["apple"]).await;
        ingested(&t.db, workspace, "two", &["another apple"]).await;
        for process in [&search, &elsewhere] {
            assert_eq!(texts(process, workspace, "apple").await.len(), 2, "{}", t.name);
        }
        delete(&t.db, workspace, document).await;
        for process in [&search, &elsewhere] {
            assert_eq!(texts(process, workspace, "apple").await, ["another apple"], "{}", t.name);
            assert!(among(process, workspace, &[document], "apple").await.is_empty(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn what_has_changed_since_the_last_search_counts_and_all_else_is_as_it_was() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let renamed = ingested(&t.db, workspace, "one", &["apple one"]).await;
        let again = ingested(&t.db, workspace, "two", &["apple two"]).await;
        let gone = ingested(&t.db, workspace, "three", &["apple three"]).await;
        ingested(&t.db, workspace, "four", &["apple four"]).await;
        let found = async || {
            let passages = answer(&search, &request(workspace, "apple")).await;
            let mut found: Vec<_> =
                passages.into_iter().map(|found| (found.document_name, found.chunk.text)).collect();
            found.sort();
            found
        };
        assert_eq!(found().await.len(), 4, "{}", t.name);

        let named = documents::NewDocumentRow { id: renamed, ..plain(workspace, "one, renamed") };
        commit!(t.db, |tx| async {
            documents::bump_search_epoch(tx, workspace).await?;
            documents::update(tx, &named, at(5)).await
        });
        delete(&t.db, workspace, gone).await;
        assert!(enqueue(&t.db, workspace, again, at(5)).await, "{}", t.name);
        let held = claim(&t.db, at(5)).await.unwrap();
        let generation = indexed(&t.db, &held, &["apple two, again"]).await;
        assert_eq!(publish(&t.db, &held, generation, at(5)).await, PublishOutcome::Yes, "{}", t.name);
        ingested(&t.db, workspace, "five", &["apple five"]).await;
        let expected = [
            ("five", "apple five"),
            ("four", "apple four"),
            ("one, renamed", "apple one"),
            ("two", "apple two, again"),
        ];
        assert_eq!(
            found().await,
            expected.map(|(name, text)| (name.to_owned(), text.to_owned())),
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn only_the_documents_that_are_asked_for_are_searched() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let a = ingested(&t.db, workspace, "a", &["apple a"]).await;
        let b = ingested(&t.db, workspace, "b", &["apple b"]).await;
        ingested(&t.db, workspace, "c", &["apple c"]).await;
        let nothing: &[&str] = &[];
        for (documents, expected) in [
            (&[a][..], &["apple a"][..]),
            (&[b, a], &["apple a", "apple b"]),
            (&[a, a, DocumentId::generate()], &["apple a"]),
            (&[DocumentId::generate()], nothing),
            (&[], nothing),
        ] {
            assert_eq!(among(&search, workspace, documents, "apple").await, expected, "{}", t.name);
        }
        assert_eq!(texts(&search, workspace, "apple").await.len(), 3, "{}", t.name);
    }
}

#[tokio::test]
async fn nobody_finds_another_users_documents_even_by_name() {
    for t in &both().await {
        let (search, owner) = start(t).await;
        let stranger = workspace(&t.db, at(0)).await;
        let theirs = ingested(&t.db, owner, "one", &["secret apple"]).await;
        // Once before and once after the owner has searched.
        for _ in 0..2 {
            assert!(texts(&search, stranger, "apple").await.is_empty(), "{}", t.name);
            assert!(among(&search, stranger, &[theirs], "apple").await.is_empty(), "{}", t.name);
            assert_eq!(texts(&search, owner, "apple").await, ["secret apple"], "{}", t.name);
        }
        let own = ingested(&t.db, stranger, "two", &["own apple"]).await;
        assert_eq!(texts(&search, stranger, "apple").await, ["own apple"], "{}", t.name);
        assert_eq!(among(&search, stranger, &[own, theirs], "apple").await, ["own apple"], "{}", t.name);
    }
}

#[tokio::test]
async fn no_more_passages_come_than_were_asked_for() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let texts = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|letter| format!("apple {letter}"));
        ingested(&t.db, workspace, "one", &texts.each_ref().map(String::as_str)).await;
        for (limit, count) in [(0, 0), (1, 1), (5, 5), (8, 8), (50, 8)] {
            let found = answer(&search, &SearchRequest { limit, ..request(workspace, "apple") }).await;
            let ordinals: Vec<_> = found.iter().map(|passage| passage.chunk.ordinal).collect();
            assert_eq!(ordinals, (0..count).collect::<Vec<_>>(), "{}: equals in the source's order", t.name);
        }
        for nothing in ["pear", "", " \n", "!?"] {
            assert!(self::texts(&search, workspace, nothing).await.is_empty(), "{} {nothing:?}", t.name);
        }
    }
}

/// An index during whose search a document is deleted.
struct Interrupted {
    inner: LocalIndex,
    db: Db,
    workspace: WorkspaceId,
    document: DocumentId,
}

#[async_trait]
impl SearchIndex for Interrupted {
    fn writer<'a>(&'a self, target: IndexTarget<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
        self.inner.writer(target)
    }

    async fn search(&self, query: IndexQuery) -> Result<IndexCandidates, IndexError> {
        let candidates = self.inner.search(query).await?;
        delete(&self.db, self.workspace, self.document).await;
        Ok(candidates)
    }

    async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError> {
        self.inner.remove(retired).await
    }

    async fn count(&self, workspace: WorkspaceId, generation: GenerationId) -> Result<u64, IndexError> {
        self.inner.count(workspace, generation).await
    }

    async fn mismatched(
        &self,
        expected: &[ExpectedEntries],
    ) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError> {
        self.inner.mismatched(expected).await
    }

    async fn held(&self, from: Option<IndexCursor>) -> Result<HeldGenerations, IndexError> {
        self.inner.held(from).await
    }

    fn late_write_window(&self) -> Option<Duration> {
        self.inner.late_write_window()
    }

    fn cached(&self) -> Vec<CacheState> {
        self.inner.cached()
    }

    async fn ping(&self) -> Result<IndexStatus, IndexError> {
        self.inner.ping().await
    }
}

#[tokio::test]
async fn a_document_that_is_deleted_during_a_search_makes_room_for_the_next_best() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let best = ingested(&t.db, workspace, "best", &["apple", "apple"]).await;
        ingested(&t.db, workspace, "next", &["an apple among many other words that make it worse", "pear"])
            .await;
        let index = Interrupted {
            inner: LocalIndex::new(t.db.clone(), 64 << 20),
            db: t.db.clone(),
            workspace,
            document: best,
        };
        let budget = CacheBudget::new(64 << 20);
        let search = SearchEngine::new(
            t.db.clone(),
            Arc::new(index),
            EmbeddingModels::none(),
            RerankModel::none(),
            Arc::default(),
            &budget,
        );
        let found = answer(&search, &SearchRequest { limit: 1, ..request(workspace, "apple") }).await;
        let names: Vec<_> = found.iter().map(|passage| &*passage.document_name).collect();
        assert_eq!(names, ["next"], "{}", t.name);
    }
}

#[tokio::test]
async fn of_passages_that_say_the_same_the_best_is_shown_and_names_the_others() {
    for t in &both().await {
        let (search, workspace) = start(t).await;
        let first = ingested(&t.db, workspace, "one", &["The apple is a fruit.", "A pear"]).await;
        let copy =
            ingested(&t.db, workspace, "two", &["the apple  is a fruit", "The apple costs 2 euros."]).await;
        let found = answer(&search, &request(workspace, "apple fruit")).await;
        let seen: Vec<_> = found.iter().map(|p| (p.chunk.document_id, &*p.chunk.text)).collect();
        assert_eq!(
            seen,
            [(first, "The apple is a fruit."), (copy, "The apple costs 2 euros.")],
            "{}",
            t.name
        );
        let copies: Vec<_> = found[0].also_in.iter().map(|(document, _)| *document).collect();
        assert_eq!(copies, [copy], "{}", t.name);
    }
}
