//! Search, over both engines and the embedded index.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use lectern_embed::{EmbedError, Embedder, EmbeddingModels, testing::Synonyms};
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
            TestDb, at, both, claim, claimed, commit, enqueue, passages, plain, publish, set_languages,
            set_metadata, staged_in, user,
        },
    },
    ids::{DocumentId, GenerationId, UserId},
    model::{document::DocumentType, job::JobClaim, language::Language},
};
use serde_json::{Value, json};

use super::{
    MetadataCondition, MetadataFilter, PassageHit, SearchEngine, SearchError, SearchMode, SearchRequest,
};

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
async fn a_passage_is_found_by_what_it_means() {
    for t in &both().await {
        let model = Arc::new(Synonyms::new("one"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
        let user = user(&t.db, at(0)).await;
        let content = ["the automobile is red", "a physician earns a wage", "the car park is closed"];
        embedded(&t.db, user, &model, &content).await;
        let found = answer(&search, &request(user, "the car")).await;
        let seen: Vec<_> = found.iter().map(|passage| &*passage.chunk.text).collect();
        assert_eq!(seen[..2], [content[2], content[0]], "{}: by both before by one", t.name);
        assert!(found[0].lexical.is_some() && found[0].dense.is_some(), "{}", t.name);
        assert!(found[1].dense > found[2].dense, "{}", t.name);
        let by = async |mode| {
            let found = answer(&search, &SearchRequest { mode, ..request(user, "the car") }).await;
            assert!(found.iter().all(|p| p.lexical.is_some() == (mode == SearchMode::Lexical)), "{}", t.name);
            assert!(found.iter().all(|p| p.dense.is_some() == (mode == SearchMode::Dense)), "{}", t.name);
            found.len()
        };
        assert_eq!((by(SearchMode::Lexical).await, by(SearchMode::Dense).await), (1, 3), "{}", t.name);
    }
}

#[tokio::test]
async fn documents_of_several_models_and_of_none_are_searched_side_by_side() {
    for t in &both().await {
        let (now, former) = (Arc::new(Synonyms::new("now")), Synonyms::new("former"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&now) as Arc<dyn Embedder>));
        let user = user(&t.db, at(0)).await;
        embedded(&t.db, user, &now, &["a puppy in the garden", "rain in the garden"]).await;
        embedded(&t.db, user, &former, &["the dog of the neighbours", "a puppy elsewhere"]).await;
        ingested(&t.db, user, "words", &["one more dog", "no animal"]).await;
        let mut found = texts(&search, user, "where is the dog").await;
        assert!(found.iter().any(|text| text == "a puppy in the garden"), "{}: {found:?}", t.name);
        // A vector of another space is never compared: the other puppy shares no word with the question.
        assert!(!found.iter().any(|text| text == "a puppy elsewhere"), "{}: {found:?}", t.name);
        found.truncate(3);
        for by_words in ["the dog of the neighbours", "one more dog"] {
            assert!(found.iter().any(|text| text == by_words), "{}: {found:?}", t.name);
        }
    }
}

#[tokio::test]
async fn a_question_in_a_language_that_the_model_does_not_know_is_searched_by_words() {
    for t in &both().await {
        let model = Arc::new(Synonyms::new("one"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
        let user = user(&t.db, at(0)).await;
        let content = ["東京の天気は雨です", "大阪の食べ物", "an English text of the same document"];
        embedded(&t.db, user, &model, &content).await;
        let found = answer(&search, &request(user, "東京の天気")).await;
        assert_eq!(found[0].chunk.text, content[0], "{}", t.name);
        assert!(found.iter().all(|passage| passage.dense.is_none()), "{}", t.name);
        let found = answer(&search, &request(user, "which English text is it")).await;
        assert!(found.iter().any(|passage| passage.dense.is_some()), "{}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_does_not_know_the_documents_language_answers_when_the_words_find_nothing() {
    for t in &both().await {
        let model = Arc::new(Synonyms::new("one"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
        let user = user(&t.db, at(0)).await;
        let document = embedded(&t.db, user, &model, &["automobile", "physician"]).await;
        let languages = format!("[[{},2]]", Language::French.code());
        commit!(t.db, |tx| set_languages(tx, document, &languages));
        let found = answer(&search, &request(user, "where is the car")).await;
        assert_eq!(found[0].chunk.text, "automobile", "{}", t.name);
        assert!(found[0].dense.is_some(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_fails_leaves_a_hybrid_search_its_words_and_ends_one_by_meaning() {
    for t in &both().await {
        let model = Arc::new(Synonyms::new("one"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
        let user = user(&t.db, at(0)).await;
        embedded(&t.db, user, &model, &["the car", "the automobile"]).await;
        *model.fails.lock() = Some(|| EmbedError::Away("it sleeps".to_owned()));
        assert_eq!(texts(&search, user, "car").await, ["the car"], "{}", t.name);
        let dense = SearchRequest { mode: SearchMode::Dense, ..request(user, "car") };
        let failure = search.search(&dense).await.unwrap_err();
        assert!(matches!(failure, SearchError::Embed(EmbedError::Away(_))), "{}: {failure}", t.name);
        *model.fails.lock() = None;
        assert_eq!(answer(&search, &dense).await.len(), 2, "{}: a failure is not remembered", t.name);
        let without = self::search(&t.db).search(&dense).await.unwrap_err();
        assert!(matches!(without, SearchError::NoModel), "{}: {without}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_is_not_waited_for_by_every_question() {
    let t = &both().await[0];
    let model = Arc::new(Synonyms::new("one"));
    let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
    let user = user(&t.db, at(0)).await;
    embedded(&t.db, user, &model, &["the car", "the automobile", "the cart"]).await;
    *model.stalled.lock() = Some(0);
    for question in ["the car", "a car", "the cart"] {
        assert!(!texts(&search, user, question).await.is_empty(), "{question}: by words");
    }
    assert_eq!(*model.stalled.lock(), Some(1), "only the first has asked it");
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

/// Gives a document metadata; with `unseen` behind the back of whoever remembers what it was.
async fn describe(db: &Db, user: UserId, document: DocumentId, metadata: &Value, unseen: bool) {
    let metadata = metadata.to_string();
    commit!(db, |tx| async {
        if !unseen {
            documents::bump_search_epoch(tx, user).await?;
        }
        set_metadata(tx, document, &metadata).await
    });
}

/// What is found of the user's documents about apples whose metadata says this of `team`, in alphabetical order.
async fn of_team(
    search: &SearchEngine,
    user: UserId,
    documents: Option<&[DocumentId]>,
    team: &Value,
) -> Vec<String> {
    let condition = MetadataCondition { key: "team".to_owned(), any_of: vec![team.clone()] };
    let filter = MetadataFilter { conditions: vec![condition] };
    let documents = documents.map(<[_]>::to_vec);
    let request = SearchRequest { documents, filter, ..request(user, "apple") };
    let mut texts: Vec<_> =
        answer(search, &request).await.into_iter().map(|passage| passage.chunk.text).collect();
    texts.sort();
    texts
}

/// Documents about apples of three teams and of none, with so many bytes of metadata each.
async fn teams(db: &Db, user: UserId, bytes: usize) -> Vec<DocumentId> {
    let mut all = Vec::new();
    for (name, team) in [("a", json!("legal")), ("b", json!(["sales", "legal"])), ("c", json!("sales"))] {
        let document = ingested(db, user, name, &[&format!("apple {name}")]).await;
        let metadata = json!({"before": "x".repeat(bytes / 2), "team": team, "after": "x".repeat(bytes / 2)});
        describe(db, user, document, &metadata, false).await;
        all.push(document);
    }
    all.push(ingested(db, user, "d", &["apple d"]).await);
    all
}

#[tokio::test]
async fn metadata_that_is_too_large_to_be_remembered_is_filtered_all_the_same() {
    for t in &both().await {
        // Of one user 2 KiB are remembered.
        let budget = CacheBudget::new(64 << 10);
        let search = search_within(&t.db, EmbeddingModels::none(), &budget);
        let user = user(&t.db, at(0)).await;
        let all = teams(&t.db, user, 1 << 10).await;
        assert_eq!(texts(&search, user, "apple").await.len(), 4, "{}", t.name);
        let before = budget.taken();
        for _ in 0..2 {
            let of = async |team: &Value| of_team(&search, user, None, team).await;
            assert_eq!(of(&json!("legal")).await, ["apple a", "apple b"], "{}", t.name);
            assert_eq!(of(&json!("sales")).await, ["apple b", "apple c"], "{}", t.name);
            assert_eq!(of(&Value::Null).await, ["apple d"], "{}", t.name);
            let named = Some(&[all[3], all[1], all[2]][..]);
            assert_eq!(of_team(&search, user, named, &json!("legal")).await, ["apple b"], "{}", t.name);
            assert_eq!(of_team(&search, user, named, &Value::Null).await, ["apple d"], "{}", t.name);
        }
        assert!(budget.taken() - before < 100, "{}: only that it is too much is remembered", t.name);
        // Nor is what is not remembered known to be old.
        describe(&t.db, user, all[0], &json!({"team": "sales"}), true).await;
        let now = of_team(&search, user, None, &json!("sales")).await;
        assert_eq!(now, ["apple a", "apple b", "apple c"], "{}", t.name);
    }
}

#[tokio::test]
async fn one_users_large_metadata_does_not_drive_out_what_is_remembered_of_others() {
    for t in &both().await {
        let budget = CacheBudget::new(64 << 10);
        let search = search_within(&t.db, EmbeddingModels::none(), &budget);
        let (ordinary, large) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
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
        assert_eq!(of_team(&search, ordinary, None, &json!("legal")).await.len(), 2, "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_remembered_of_all_users_together_is_bounded_and_leaves_the_index_the_less_room() {
    for t in &both().await {
        let budget = CacheBudget::new(32 << 10);
        let index = Arc::new(LocalIndex::within(t.db.clone(), budget.clone()));
        let models = EmbeddingModels::none();
        let search =
            SearchEngine::new(t.db.clone(), Arc::clone(&index) as _, models, Arc::default(), &budget);
        for _ in 0..12 {
            let user = user(&t.db, at(0)).await;
            teams(&t.db, user, 200).await;
            assert_eq!(of_team(&search, user, None, &json!("legal")).await.len(), 2, "{}", t.name);
            assert!(budget.taken() <= budget.for_lists(), "{}: {}", t.name, budget.taken());
            assert!(index.cached_bytes() + budget.taken() <= 32 << 10, "{}", t.name);
        }
        assert!(budget.taken() > 0, "{}", t.name);
    }
}

#[tokio::test]
async fn a_filter_is_about_the_metadata_of_this_moment() {
    for t in &both().await {
        let (search, user) = start(t).await;
        let document = ingested(&t.db, user, "one", &["apple one"]).await;
        ingested(&t.db, user, "two", &["apple two"]).await;
        let filter = |value: &str| SearchRequest {
            filter: MetadataFilter {
                conditions: vec![MetadataCondition { key: "team".to_owned(), any_of: vec![value.into()] }],
            },
            ..request(user, "apple")
        };
        let tag = async |team: &str| describe(&t.db, user, document, &json!({"team": team}), false).await;
        assert!(answer(&search, &filter("legal")).await.is_empty(), "{}", t.name);
        tag("legal").await;
        assert_eq!(answer(&search, &filter("legal")).await[0].chunk.text, "apple one", "{}", t.name);
        assert_eq!(answer(&search, &filter("legal")).await.len(), 1, "{}", t.name);
        tag("sales").await;
        assert!(answer(&search, &filter("legal")).await.is_empty(), "{}", t.name);
    }
}
