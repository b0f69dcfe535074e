//! Search, over both engines and the embedded index.

mod meaning;
mod metadata;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use lectern_embed::{Embedder, EmbeddingModels, testing::Synonyms};
use lectern_index::{
    EntryMismatch, ExpectedEntries, IndexCandidates, IndexEntry, IndexError, IndexQuery, IndexStatus,
    IndexTarget, IndexWriter, LocalIndex, SearchIndex,
};
use lectern_shared::{
    cache_budget::CacheBudget,
    db::{
        Db, documents,
        generations::RetiredGeneration,
        jobs::{self, PublishOutcome},
        testing::{
            TestDb, at, both, claim, claimed, commit, enqueue, passages, plain, publish, staged_in, user,
        },
    },
    ids::{DocumentId, GenerationId, UserId},
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
    let index = Arc::new(LocalIndex::within(db.clone(), budget.clone()));
    SearchEngine::new(db.clone(), index, models, Arc::default(), budget)
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
async fn embedded(db: &Db, user: UserId, model: &Synonyms, texts: &[&str]) -> DocumentId {
    let held = claimed(db, user, "embedded", at(0)).await;
    let generation = indexed_with(db, &held, Some(model), texts).await;
    assert_eq!(publish(db, &held, generation, at(0)).await, PublishOutcome::Yes);
    held.document_id
}

async fn ingested(db: &Db, user: UserId, name: &str, texts: &[&str]) -> DocumentId {
    let held = claimed(db, user, name, at(0)).await;
    let generation = indexed(db, &held, texts).await;
    assert_eq!(publish(db, &held, generation, at(0)).await, PublishOutcome::Yes);
    held.document_id
}

async fn delete(db: &Db, user: UserId, document: DocumentId) {
    assert!(commit!(db, |tx| documents::delete(tx, user, document, at(1), at(2))));
}

fn request(user: UserId, query: &str) -> SearchRequest {
    SearchRequest {
        user,
        query: query.to_owned(),
        documents: None,
        filter: MetadataFilter::default(),
        mode: SearchMode::Hybrid,
        limit: 10,
    }
}

async fn answer(search: &SearchEngine, request: &SearchRequest) -> Vec<PassageHit> {
    search.search(request).await.unwrap()
}

/// The texts that are found, best first.
async fn texts(search: &SearchEngine, user: UserId, query: &str) -> Vec<String> {
    answer(search, &request(user, query)).await.into_iter().map(|passage| passage.chunk.text).collect()
}

/// The texts that are found among these documents, in alphabetical order.
async fn among(search: &SearchEngine, user: UserId, documents: &[DocumentId], query: &str) -> Vec<String> {
    let request = SearchRequest { documents: Some(documents.to_vec()), ..request(user, query) };
    let mut texts: Vec<_> =
        answer(search, &request).await.into_iter().map(|passage| passage.chunk.text).collect();
    texts.sort();
    texts
}

async fn start(t: &TestDb) -> (SearchEngine, UserId) {
    (search(&t.db), user(&t.db, at(0)).await)
}

#[tokio::test]
async fn a_passage_comes_with_everything_that_is_known_of_it() {
    for t in &both().await {
        let (search, user) = start(t).await;
        let content = ["a banana", "an apple and an apple", "the apple beside a long row of pears and plums"];
        let document = ingested(&t.db, user, "Fruit", &content).await;
        let found = answer(&search, &request(user, "apple")).await;
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
        let (search, user) = start(t).await;
        let held = claimed(&t.db, user, "one", at(0)).await;
        let generation = indexed(&t.db, &held, &["apple"]).await;
        assert!(texts(&search, user, "apple").await.is_empty(), "{}", t.name);
        publish(&t.db, &held, generation, at(0)).await;
        assert_eq!(texts(&search, user, "apple").await, ["apple"], "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_that_is_ingested_again_answers_from_the_old_until_the_new_is_published() {
    for t in &both().await {
        let (search, user) = start(t).await;
        let document = ingested(&t.db, user, "one", &["old apple", "old pear"]).await;
        assert_eq!(texts(&search, user, "apple").await, ["old apple"], "{}", t.name);
        enqueue(&t.db, user, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let generation = indexed(&t.db, &held, &["new apple"]).await;
        assert_eq!(texts(&search, user, "apple").await, ["old apple"], "{}", t.name);
        publish(&t.db, &held, generation, at(1)).await;
        assert_eq!(texts(&search, user, "apple").await, ["new apple"], "{}", t.name);
        assert!(texts(&search, user, "pear").await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_run_that_fails_leaves_the_answers_as_they_were() {
    for t in &both().await {
        let (search, user) = start(t).await;
        let document = ingested(&t.db, user, "one", &["old apple"]).await;
        enqueue(&t.db, user, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        indexed(&t.db, &held, &["new apple"]).await;
        assert!(commit!(t.db, |tx| jobs::cancel(tx, user, document, at(2))), "{}", t.name);
        assert_eq!(texts(&search, user, "apple").await, ["old apple"], "{}", t.name);
    }
}

#[tokio::test]
async fn a_deleted_document_is_found_by_no_process_that_asks_afterwards() {
    for t in &both().await {
        let (search, user) = start(t).await;
        let elsewhere = self::search(&t.reopen().await);
        let document = ingested(&t.db, user, "one", &["apple"]).await;
        ingested(&t.db, user, "two", &["another apple"]).await;
        for process in [&search, &elsewhere] {
            assert_eq!(texts(process, user, "apple").await.len(), 2, "{}", t.name);
        }
        delete(&t.db, user, document).await;
        for process in [&search, &elsewhere] {
            assert_eq!(texts(process, user, "apple").await, ["another apple"], "{}", t.name);
            assert!(among(process, user, &[document], "apple").await.is_empty(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn what_has_changed_since_the_last_search_counts_and_all_else_is_as_it_was() {
    for t in &both().await {
        let (search, user) = start(t).await;
        let renamed = ingested(&t.db, user, "one", &["apple one"]).await;
        let again = ingested(&t.db, user, "two", &["apple two"]).await;
        let gone = ingested(&t.db, user, "three", &["apple three"]).await;
        ingested(&t.db, user, "four", &["apple four"]).await;
        let found = async || {
            let passages = answer(&search, &request(user, "apple")).await;
            let mut found: Vec<_> =
                passages.into_iter().map(|found| (found.document_name, found.chunk.text)).collect();
            found.sort();
            found
        };
        assert_eq!(found().await.len(), 4, "{}", t.name);

        let named = documents::NewDocumentRow { id: renamed, ..plain(user, "one, renamed") };
        commit!(t.db, |tx| async {
            documents::bump_search_epoch(tx, user).await?;
            documents::update(tx, &named, at(5)).await
        });
        delete(&t.db, user, gone).await;
        assert!(enqueue(&t.db, user, again, at(5)).await, "{}", t.name);
        let held = claim(&t.db, at(5)).await.unwrap();
        let generation = indexed(&t.db, &held, &["apple two, again"]).await;
        assert_eq!(publish(&t.db, &held, generation, at(5)).await, PublishOutcome::Yes, "{}", t.name);
        ingested(&t.db, user, "five", &["apple five"]).await;
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
        let (search, user) = start(t).await;
        let a = ingested(&t.db, user, "a", &["apple a"]).await;
        let b = ingested(&t.db, user, "b", &["apple b"]).await;
        ingested(&t.db, user, "c", &["apple c"]).await;
        let nothing: &[&str] = &[];
        for (documents, expected) in [
            (&[a][..], &["apple a"][..]),
            (&[b, a], &["apple a", "apple b"]),
            (&[a, a, DocumentId::generate()], &["apple a"]),
            (&[DocumentId::generate()], nothing),
            (&[], nothing),
        ] {
            assert_eq!(among(&search, user, documents, "apple").await, expected, "{}", t.name);
        }
        assert_eq!(texts(&search, user, "apple").await.len(), 3, "{}", t.name);
    }
}

#[tokio::test]
async fn nobody_finds_another_users_documents_even_by_name() {
    for t in &both().await {
        let (search, owner) = start(t).await;
        let stranger = user(&t.db, at(0)).await;
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
        let (search, user) = start(t).await;
        let texts = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|letter| format!("apple {letter}"));
        ingested(&t.db, user, "one", &texts.each_ref().map(String::as_str)).await;
        for (limit, count) in [(0, 0), (1, 1), (5, 5), (8, 8), (50, 8)] {
            let found = answer(&search, &SearchRequest { limit, ..request(user, "apple") }).await;
            let ordinals: Vec<_> = found.iter().map(|passage| passage.chunk.ordinal).collect();
            assert_eq!(ordinals, (0..count).collect::<Vec<_>>(), "{}: equals in the source's order", t.name);
        }
        for nothing in ["pear", "", " \n", "!?"] {
            assert!(self::texts(&search, user, nothing).await.is_empty(), "{} {nothing:?}", t.name);
        }
    }
}

/// An index during whose search a document is deleted.
struct Interrupted {
    inner: LocalIndex,
    db: Db,
    user: UserId,
    document: DocumentId,
}

#[async_trait]
impl SearchIndex for Interrupted {
    fn writer<'a>(&'a self, target: IndexTarget<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
        self.inner.writer(target)
    }

    async fn search(&self, query: IndexQuery) -> Result<IndexCandidates, IndexError> {
        let candidates = self.inner.search(query).await?;
        delete(&self.db, self.user, self.document).await;
        Ok(candidates)
    }

    async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError> {
        self.inner.remove(retired).await
    }

    async fn count(&self, user: UserId, generation: GenerationId) -> Result<u64, IndexError> {
        self.inner.count(user, generation).await
    }

    async fn mismatched(
        &self,
        expected: &[ExpectedEntries],
    ) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError> {
        self.inner.mismatched(expected).await
    }

    fn late_write_window(&self) -> Option<Duration> {
        self.inner.late_write_window()
    }

    async fn ping(&self) -> Result<IndexStatus, IndexError> {
        self.inner.ping().await
    }
}

#[tokio::test]
async fn a_document_that_is_deleted_during_a_search_makes_room_for_the_next_best() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let best = ingested(&t.db, user, "best", &["apple", "apple"]).await;
        ingested(&t.db, user, "next", &["an apple among many other words that make it worse", "pear"]).await;
        let index = Interrupted {
            inner: LocalIndex::new(t.db.clone(), 64 << 20),
            db: t.db.clone(),
            user,
            document: best,
        };
        let budget = CacheBudget::new(64 << 20);
        let search = SearchEngine::new(
            t.db.clone(),
            Arc::new(index),
            EmbeddingModels::none(),
            Arc::default(),
            &budget,
        );
        let found = answer(&search, &SearchRequest { limit: 1, ..request(user, "apple") }).await;
        let names: Vec<_> = found.iter().map(|passage| &*passage.document_name).collect();
        assert_eq!(names, ["next"], "{}", t.name);
    }
}

#[tokio::test]
async fn of_passages_that_say_the_same_the_best_is_shown_and_names_the_others() {
    for t in &both().await {
        let (search, user) = start(t).await;
        let first = ingested(&t.db, user, "one", &["The apple is a fruit.", "A pear"]).await;
        let copy = ingested(&t.db, user, "two", &["the apple  is a fruit", "The apple costs 2 euros."]).await;
        let found = answer(&search, &request(user, "apple fruit")).await;
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
