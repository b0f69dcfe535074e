//! Search by meaning beside search by words, and without a model that answers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lectern_db::testing::{at, both, commit, set_languages, workspace};
use lectern_embed::{EmbedError, Embedder, EmbeddingModels, testing::Synonyms};
use lectern_shared::{
    config::{Settings, SettingsSource},
    model::language::Language,
};

use super::{answer, embedded, ingested, request, search, search_with, texts};
use crate::search::{SearchError, SearchMode, SearchRequest};

#[tokio::test]
async fn a_passage_is_found_by_what_it_means() {
    for t in &both().await {
        let model = Arc::new(Synonyms::new("one"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
        let workspace = workspace(&t.db, at(0)).await;
        let content = ["the automobile is red", "a physician earns a wage", "the car park is closed"];
        embedded(&t.db, workspace, &model, &content).await;
        let found = answer(&search, &request(workspace, "the car")).await;
        let seen: Vec<_> = found.iter().map(|passage| &*passage.chunk.text).collect();
        assert_eq!(seen[..2], [content[2], content[0]], "{}: by both before by one", t.name);
        assert!(found[0].lexical.is_some() && found[0].dense.is_some(), "{}", t.name);
        assert!(found[1].dense > found[2].dense, "{}", t.name);
        let by = async |mode| {
            let found = answer(&search, &SearchRequest { mode, ..request(workspace, "the car") }).await;
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
        let workspace = workspace(&t.db, at(0)).await;
        embedded(&t.db, workspace, &now, &["a puppy in the garden", "rain in the garden"]).await;
        embedded(&t.db, workspace, &former, &["the dog of the neighbours", "a puppy elsewhere"]).await;
        ingested(&t.db, workspace, "words", &["one more dog", "no animal"]).await;
        let mut found = texts(&search, workspace, "where is the dog").await;
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
        let workspace = workspace(&t.db, at(0)).await;
        let content = ["東京の天気は雨です", "大阪の食べ物", "an English text of the same document"];
        embedded(&t.db, workspace, &model, &content).await;
        let found = answer(&search, &request(workspace, "東京の天気")).await;
        assert_eq!(found[0].chunk.text, content[0], "{}", t.name);
        assert!(found.iter().all(|passage| passage.dense.is_none()), "{}", t.name);
        let found = answer(&search, &request(workspace, "which English text is it")).await;
        assert!(found.iter().any(|passage| passage.dense.is_some()), "{}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_does_not_know_the_documents_language_answers_when_the_words_find_nothing() {
    for t in &both().await {
        let model = Arc::new(Synonyms::new("one"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
        let workspace = workspace(&t.db, at(0)).await;
        let document = embedded(&t.db, workspace, &model, &["automobile", "physician"]).await;
        let languages = format!("[[{},2]]", Language::French.code());
        commit!(t.db, |tx| set_languages(tx, document, &languages));
        let found = answer(&search, &request(workspace, "where is the car")).await;
        assert_eq!(found[0].chunk.text, "automobile", "{}", t.name);
        assert!(found[0].dense.is_some(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_fails_leaves_a_hybrid_search_its_words_and_ends_one_by_meaning() {
    for t in &both().await {
        let model = Arc::new(Synonyms::new("one"));
        let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
        let workspace = workspace(&t.db, at(0)).await;
        embedded(&t.db, workspace, &model, &["the car", "the automobile"]).await;
        *model.fails.lock() = Some(|| EmbedError::Away("it sleeps".to_owned()));
        assert_eq!(texts(&search, workspace, "car").await, ["the car"], "{}", t.name);
        let dense = SearchRequest { mode: SearchMode::Dense, ..request(workspace, "car") };
        let failure = search.search(&dense).await.unwrap_err();
        assert!(matches!(failure, SearchError::Embed(EmbedError::Away(_))), "{}: {failure}", t.name);
        *model.fails.lock() = None;
        assert_eq!(answer(&search, &dense).await.len(), 2, "{}: a failure is not remembered", t.name);
    }
}

#[tokio::test]
async fn a_search_by_meaning_tells_a_model_that_is_on_its_way_from_none() {
    let settings = Settings::load(&SettingsSource::from_pairs(&[])).unwrap();
    for t in &both().await {
        let dense =
            SearchRequest { mode: SearchMode::Dense, ..request(workspace(&t.db, at(0)).await, "car") };
        let without = search(&t.db).search(&dense).await.unwrap_err();
        assert!(matches!(without, SearchError::NoModel), "{}: {without}", t.name);
        // Nobody has begun to get it.
        let coming = search_with(&t.db, EmbeddingModels::new(&settings.embedding));
        let failure = coming.search(&dense).await.unwrap_err();
        assert!(matches!(failure, SearchError::Embed(EmbedError::Away(_))), "{}: {failure}", t.name);
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_is_not_waited_for_by_every_question() {
    let t = &both().await[0];
    let model = Arc::new(Synonyms::new("one"));
    let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&model) as Arc<dyn Embedder>));
    let workspace = workspace(&t.db, at(0)).await;
    embedded(&t.db, workspace, &model, &["the car", "the automobile", "the cart"]).await;
    *model.stalled.lock() = Some(0);
    for question in ["the car", "a car", "the cart"] {
        assert!(!texts(&search, workspace, question).await.is_empty(), "{question}: by words");
    }
    assert_eq!(*model.stalled.lock(), Some(1), "only the first has asked it");
}

#[tokio::test]
async fn a_model_that_fails_takes_nothing_from_the_documents_of_another() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    fn away() -> EmbedError {
        ASKED.fetch_add(1, Ordering::Relaxed);
        EmbedError::Away("it asks for half a minute (429)".to_owned())
    }
    let t = &both().await[0];
    let (now, former) = (Arc::new(Synonyms::new("now")), Arc::new(Synonyms::new("former")));
    let models = EmbeddingModels::of(Arc::clone(&now) as Arc<dyn Embedder>)
        .with_earlier(Arc::clone(&former) as Arc<dyn Embedder>);
    let search = search_with(&t.db, models);
    let workspace = workspace(&t.db, at(0)).await;
    embedded(&t.db, workspace, &now, &["the automobile"]).await;
    embedded(&t.db, workspace, &former, &["a puppy"]).await;
    let dense = |query| SearchRequest { mode: SearchMode::Dense, ..request(workspace, query) };
    assert_eq!(answer(&search, &dense("the dog")).await.len(), 2);

    *former.fails.lock() = Some(away);
    let found = answer(&search, &dense("the car")).await;
    let seen: Vec<_> = found.iter().map(|passage| &*passage.chunk.text).collect();
    assert_eq!(seen, ["the automobile"]);
    for question in ["which car is it", "what is that car"] {
        let found = answer(&search, &request(workspace, question)).await;
        assert!(found.iter().any(|passage| passage.dense.is_some()), "{question}");
    }
    assert_eq!(ASKED.load(Ordering::Relaxed), 2, "not by the second hybrid search");

    *now.fails.lock() = Some(away);
    let failure = search.search(&dense("the house")).await.unwrap_err();
    assert!(matches!(failure, SearchError::Embed(EmbedError::Away(_))), "{failure}");
}

#[tokio::test]
async fn a_search_by_meaning_alone_says_when_the_documents_model_is_not_there() {
    let t = &both().await[0];
    let (now, former) = (Arc::new(Synonyms::new("now")), Synonyms::new("former"));
    let search = search_with(&t.db, EmbeddingModels::of(Arc::clone(&now) as Arc<dyn Embedder>));
    let workspace = workspace(&t.db, at(0)).await;
    embedded(&t.db, workspace, &former, &["the automobile"]).await;
    let dense = SearchRequest { mode: SearchMode::Dense, ..request(workspace, "the car") };
    let failure = search.search(&dense).await.unwrap_err();
    assert!(matches!(failure, SearchError::Embed(EmbedError::Away(_))), "{failure}");
    assert_eq!(
        texts(&search, workspace, "automobile").await,
        ["the automobile"],
        "a hybrid one has its words"
    );
}
