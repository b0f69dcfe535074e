//! The local reranker: parity with the reference implementation, order, files that cannot be used.

use std::path::Path;

use futures::StreamExt as _;

use super::*;
use crate::{LocalReranker, PassageScore, Reranker as _};

/// Questions and passages, with the scores that the reference implementation (Hugging Face transformers 5.23,
/// `AutoModelForSequenceClassification`, 32 bit) gives for the model of these tests.
const PAIRS: [(&str, &str, f32); 5] = [
    ("where is the ship", "the ship in the harbour", 0.224_203_9),
    ("where is the ship", "a tax on the river", 0.167_352_2),
    ("tax?", "tax", 0.220_183_1),
    ("", "the river", 0.276_901_3),
    // More than the model has room for: cut at the end of the longer text first.
    (
        "what is the tax on every ship that goes up the river to the harbour in the summer",
        "every ship that comes to the harbour by way of the river has to pay the tax before it may leave again, and so on",
        0.187_925_6,
    ),
];

fn model() -> TinyModel {
    TinyModel { scores: true, layers: 2, ..TinyModel::default() }
}

fn open(dir: &Path) -> Result<LocalReranker, ModelError> {
    LocalReranker::open(dir, "tiny", 2, Some(dir))
}

async fn scores(reranker: &LocalReranker, question: &str, passages: &[&str]) -> Vec<PassageScore> {
    let passages = passages.iter().map(|text| (*text).to_owned()).collect();
    let scores = reranker.score(question.to_owned(), passages, Duration::from_mins(1));
    scores.map(|score| score.expect("a score")).collect().await
}

#[tokio::test]
async fn scores_are_those_of_the_reference_implementation() {
    let dir = folder(&model());
    let reranker = open(dir.path()).expect("a model");
    for (question, passage, wanted) in PAIRS {
        let found = scores(&reranker, question, &[passage]).await[0].score;
        assert!((wanted - found).abs() < 1e-4, "{question:?} {passage:?}: {wanted} {found}");
    }
}

#[tokio::test]
async fn scores_come_in_the_order_of_the_passages_and_one_by_one() {
    let dir = folder(&model());
    let reranker = open(dir.path()).expect("a model");
    let texts: Vec<String> =
        (0..20).map(|n| format!("the ship {}", "in the harbour ".repeat(n % 7))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let all = scores(&reranker, "the ship", &texts).await;
    assert_eq!(all.iter().map(|score| score.place).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    for (score, text) in all.iter().zip(&texts) {
        let alone = scores(&reranker, "the ship", &[text]).await[0].score;
        assert_eq!(score.score.to_bits(), alone.to_bits(), "{text}");
    }
    assert!(scores(&reranker, "the ship", &[]).await.is_empty());
}

#[test]
fn what_languages_it_knows_is_told_by_its_vocabulary_or_by_the_operator() {
    let dir = folder(&model());
    let reranker = open(dir.path()).expect("a model");
    assert!(!reranker.knows(Language::Japanese));
    let said = reranker.knowing(vec![Language::Japanese]);
    assert!(said.knows(Language::Japanese) && !said.knows(Language::English));
}

#[test]
fn a_sentence_encoder_is_no_reranker() {
    let dir = folder(&TinyModel::default());
    let refusal = open(dir.path()).expect_err("no reranker").to_string();
    assert!(refusal.contains("pooler.dense") || refusal.contains("classifier"), "{refusal}");
    let empty = tempfile::tempdir().expect("a folder");
    assert!(matches!(open(empty.path()), Err(ModelError::Missing { .. })));
}
