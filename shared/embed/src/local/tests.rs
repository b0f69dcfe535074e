//! The local encoder: parity with the reference implementation, files that cannot be used, batches.

mod reranker;

use lectern_encoder::{InstructionSet, WeightPrecision};
use lectern_shared::config::EmbeddingPrecision;
use std::{fs, io::Write as _, path::PathBuf, sync::Once, time::Duration};

use lectern_shared::model::language::Language;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    LocalEmbedder, ModelError,
    testing::{TinyModel, write_json},
};
use crate::Embedder as _;

/// The model that the test command names (all-MiniLM-L6-v2); without one it is said, once, what did not run.
fn minilm(precision: EmbeddingPrecision) -> Option<LocalEmbedder> {
    static MISSING: Once = Once::new();
    #[expect(clippy::disallowed_methods, reason = "what the test command names is no setting")]
    let named = std::env::var("TEST_MODEL_DIR").ok().filter(|named| !named.is_empty()).map(PathBuf::from);
    if named.is_none() {
        // Not by `eprintln!`, which is shown of failed tests only.
        MISSING.call_once(|| {
            let text = "\n!!! TEST_MODEL_DIR is not set: the local encoder was NOT compared with the reference !!!\n\n";
            let _ = std::io::stderr().write_all(text.as_bytes());
        });
    }
    named.map(|dir| {
        LocalEmbedder::open(&dir, "all-MiniLM-L6-v2", 2, precision, None).expect("the model opens")
    })
}

fn folder(model: &TinyModel) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    model.write(dir.path());
    dir
}

fn open(dir: &TempDir) -> Result<LocalEmbedder, ModelError> {
    LocalEmbedder::open(dir.path(), "tiny", 2, EmbeddingPrecision::F32, Some(dir.path()))
}

fn refusal(dir: &TempDir) -> String {
    open(dir).expect_err("the model is refused").to_string()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn edit(dir: &TempDir, file: &str, change: impl FnOnce(&mut Value)) {
    let bytes = fs::read(dir.path().join(file)).expect("a file");
    let mut value = serde_json::from_slice(&bytes).expect("JSON");
    change(&mut value);
    write_json(dir.path(), file, &value);
}

#[tokio::test]
async fn vectors_are_those_of_the_reference_implementation() {
    for (precision, error) in [(EmbeddingPrecision::F32, 1e-5), (EmbeddingPrecision::Int8, 0.005)] {
        let Some(embedder) = minilm(precision) else { return };
        compare_with_the_reference(&embedder, error).await;
    }
}

async fn compare_with_the_reference(embedder: &LocalEmbedder, error: f64) {
    // Made with the reference implementation in Python; six digits of each number.
    let cases: Value = serde_json::from_str(include_str!("testdata/minilm.json")).expect("JSON");
    let cases: Vec<(String, Vec<f32>)> = cases["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .map(|case| {
            let vector = serde_json::from_value(case["vector"].clone()).expect("numbers");
            (case["text"].as_str().expect("a text").to_owned(), vector)
        })
        .collect();
    let texts = cases.iter().map(|(text, _)| text.clone()).collect();
    let vectors = embedder.embed_passages(texts).await.expect("vectors");
    for ((text, wanted), found) in cases.iter().zip(&vectors) {
        // Of nothing but the two tokens that every text has, eight bits keep less. No document has such a passage.
        let error = if text.is_empty() { 2.0 * error } else { error };
        assert!(1.0 - cosine(wanted, found) < error, "{text:?}: {}", cosine(wanted, found));
    }
    let question = embedder.embed_question(&cases[2].0).await.expect("a vector");
    assert!(1.0 - cosine(&question, &cases[2].1) < error);
}

#[test]
fn a_model_that_stands_it_computes_in_eight_bits_where_that_is_faster() {
    let Some(embedder) = minilm(EmbeddingPrecision::Auto) else { return };
    let fast = InstructionSet::available()[0].has_fast_int8();
    let wanted = if fast { WeightPrecision::Int8 } else { WeightPrecision::F32 };
    assert_eq!(embedder.precision(), wanted);
    // A change of processor or of the setting embeds nothing again.
    let exact = minilm(EmbeddingPrecision::F32).expect("the model opens");
    assert_eq!(exact.precision(), WeightPrecision::F32);
    assert_eq!(embedder.space().id, exact.space().id);
}

#[test]
fn an_english_model_knows_english_and_nothing_else() {
    let Some(embedder) = minilm(EmbeddingPrecision::F32) else { return };
    let known: Vec<_> = Language::ALL.into_iter().filter(|language| embedder.knows(*language)).collect();
    assert_eq!(known, [Language::English]);
    assert_eq!(embedder.max_tokens(), 254);
    assert_eq!(embedder.count_tokens("The harbour master."), 4);
}

#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts() {
    let dir = folder(&TinyModel::default());
    let embedder = open(&dir).expect("a model");
    let texts: Vec<_> =
        (0..30).map(|number| format!("ship {number} {}", "river ".repeat(number * 7 % 11))).collect();
    let all = embedder.embed_passages(texts.clone()).await.expect("vectors");
    for (text, vector) in texts.iter().zip(&all) {
        assert_eq!(*vector, embedder.embed_question(text).await.expect("a vector"));
        let length: f32 = vector.iter().map(|number| number * number).sum();
        assert!((length - 1.0).abs() < 1e-5);
    }
    assert!(embedder.embed_passages(Vec::new()).await.expect("nothing").is_empty());
}

#[tokio::test]
async fn texts_are_cut_at_the_limit_of_the_model_and_not_at_that_of_the_tokenizer_file() {
    let dir = folder(&TinyModel::default());
    let embedder = open(&dir).expect("a model");
    assert_eq!(embedder.max_tokens(), 62);
    assert_eq!(embedder.count_tokens(&"ship ".repeat(1000)), 1000);
    let cut = embedder.embed_question(&"ship ".repeat(62)).await.expect("a vector");
    assert_eq!(cut, embedder.embed_question(&"ship ".repeat(1000)).await.expect("a vector"));
    assert_ne!(cut, embedder.embed_question(&"ship ".repeat(61)).await.expect("a vector"));
}

#[tokio::test]
async fn of_a_giant_text_only_the_beginning_is_looked_at() {
    let dir = folder(&TinyModel::default());
    let embedder = open(&dir).expect("a model");
    let apart = |blanks: usize| format!(" ship{}river", " ".repeat(blanks));
    let whole = embedder.embed_question("ship river").await.expect("a vector");
    assert_eq!(embedder.embed_question(&apart(30_000)).await.expect("a vector"), whole);
    let ship = embedder.embed_question("ship").await.expect("a vector");
    assert_eq!(embedder.embed_question(&apart(40_000)).await.expect("a vector"), ship);
    assert_eq!(embedder.embed_passages(vec![apart(40_000)]).await.expect("vectors"), [ship]);
    // Nor does it matter where a character would be cut.
    embedder.embed_question(&format!("x{}", "é".repeat(1 << 20))).await.expect("a vector");
}

#[test]
fn the_shortest_of_the_limits_holds() {
    let dir = folder(&TinyModel::default());
    write_json(
        dir.path(),
        "sentence_bert_config.json",
        &json!({"max_seq_length": 20, "do_lower_case": false}),
    );
    write_json(dir.path(), "tokenizer_config.json", &json!({"model_max_length": 1e30}));
    assert_eq!(open(&dir).expect("a model").max_tokens(), 18);
}

#[tokio::test]
async fn prompts_of_the_model_stand_before_texts_and_count() {
    let dir = folder(&TinyModel::default());
    let plain = open(&dir).expect("a model");
    write_json(
        dir.path(),
        "config_sentence_transformers.json",
        &json!({"prompts": {"query": "river: ", "document": "the tax "}}),
    );
    let prompted = open(&dir).expect("a model");
    assert_eq!(prompted.max_tokens(), plain.max_tokens() - 2);
    assert_ne!(prompted.space().id, plain.space().id);
    let texts = |text: &str| vec![text.to_owned()];
    assert_eq!(
        prompted.embed_passages(texts("ship")).await.expect("vectors"),
        plain.embed_passages(texts("the tax ship")).await.expect("vectors")
    );
    assert_eq!(
        prompted.embed_question("ship").await.expect("a vector"),
        plain.embed_question("river: ship").await.expect("a vector")
    );
}

#[test]
fn a_model_known_by_its_name_gets_its_prompts() {
    let dir = folder(&TinyModel::default());
    let e5 = LocalEmbedder::open(dir.path(), "intfloat/e5-small-v2", 1, EmbeddingPrecision::F32, None)
        .expect("a model");
    assert!(e5.space().fingerprint.contains("question_prefix=query: "));
}

#[test]
fn the_same_files_elsewhere_are_the_same_space_and_other_weights_are_another() {
    let (here, there) = (folder(&TinyModel::default()), folder(&TinyModel::default()));
    let other = folder(&TinyModel { seed: 2, ..TinyModel::default() });
    let cls = folder(&TinyModel { pooling: "cls", ..TinyModel::default() });
    let id = |dir: &TempDir| open(dir).expect("a model").space().id;
    assert_eq!(id(&here), id(&there));
    assert_ne!(id(&here), id(&other));
    assert_ne!(id(&here), id(&cls));
}

#[test]
fn models_of_other_kinds_are_refused_with_advice() {
    let dir = folder(&TinyModel::default());
    for (key, value, says) in [
        ("model_type", json!("mpnet"), "mpnet"),
        ("model_type", json!("modernbert"), "modernbert"),
        ("model_type", json!("nomic_bert"), "nomic_bert"),
        ("model_type", json!("new"), "new"),
        ("model_type", json!("albert"), "albert"),
        ("position_embedding_type", json!("relative_key"), "relative_key"),
        ("hidden_act", json!("swish"), "swish"),
        ("auto_map", json!({"AutoModel": "code.Model"}), "program code"),
        ("quantization_config", json!({}), "quantised"),
        ("is_decoder", json!(true), "decoder"),
    ] {
        TinyModel::default().write(dir.path());
        edit(&dir, "config.json", |config| config[key] = value);
        let refusal = refusal(&dir);
        assert!(refusal.contains(says) && refusal.contains("config.json"), "{refusal}");
        assert!(refusal.contains("openai-compatible"), "{refusal}");
    }
    for (file, value, says) in [
        ("modules.json", json!([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]), "Dense"),
        ("1_Pooling/config.json", json!({"pooling_mode_max_tokens": true}), "max"),
        ("1_Pooling/config.json", json!({"pooling_mode": "lasttoken"}), "lasttoken"),
        (
            "1_Pooling/config.json",
            json!({"pooling_mode_mean_tokens": true, "include_prompt": false}),
            "prefixes",
        ),
    ] {
        TinyModel::default().write(dir.path());
        write_json(dir.path(), file, &value);
        let refusal = refusal(&dir);
        assert!(refusal.contains(says) && refusal.contains(file), "{refusal}");
    }
}

#[test]
fn numbers_in_a_configuration_that_make_no_sense_are_errors() {
    let dir = folder(&TinyModel::default());
    for (key, value) in [
        ("hidden_size", json!(0)),
        ("hidden_size", json!(u64::MAX)),
        ("hidden_size", json!(25)),
        ("num_hidden_layers", json!(90_000_000)),
        ("num_attention_heads", json!(5)),
        ("intermediate_size", json!(99_000_000)),
        ("vocab_size", json!(3)),
        ("vocab_size", json!(99_999_999)),
        ("max_position_embeddings", json!(2)),
        ("max_position_embeddings", json!(-1)),
        ("layer_norm_eps", json!("small")),
    ] {
        TinyModel::default().write(dir.path());
        edit(&dir, "config.json", |config| config[key] = value.clone());
        let refusal = refusal(&dir);
        assert!(refusal.contains(&*dir.path().to_string_lossy()), "{key} {value}: {refusal}");
    }
}

#[test]
fn missing_files_say_what_to_do() {
    for (file, instead, says) in [
        ("config.json", None, "published files"),
        ("tokenizer.json", None, "download"),
        ("model.safetensors", None, "download"),
        ("model.safetensors", Some("pytorch_model.bin"), "pytorch_model.bin"),
        ("model.safetensors", Some("model.onnx"), "converted"),
        ("model.safetensors", Some("model.safetensors.index.json"), "several files"),
    ] {
        let dir = folder(&TinyModel::default());
        fs::remove_file(dir.path().join(file)).expect("removed");
        if let Some(instead) = instead {
            fs::write(dir.path().join(instead), "{}").expect("a file");
        }
        let refusal = refusal(&dir);
        assert!(refusal.contains(file) && refusal.contains(says), "{refusal}");
    }
}

#[test]
fn garbage_and_cut_files_are_errors() {
    let whole = TinyModel::default();
    for file in
        ["config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json", "model.safetensors"]
    {
        for cut in [0, 1, 9, 100, usize::MAX] {
            let dir = folder(&whole);
            let path = dir.path().join(file);
            let mut bytes = fs::read(&path).expect("a file");
            bytes.truncate(cut.min(bytes.len() - 1));
            fs::write(&path, bytes).expect("a file");
            assert!(refusal(&dir).contains(&*path.to_string_lossy()), "{file} cut at {cut}");
        }
        let dir = folder(&whole);
        fs::write(dir.path().join(file), [0xff; 5000]).expect("a file");
        refusal(&dir);
        fs::write(dir.path().join(file), "{}").expect("a file");
        // Nothing said about pooling is the usual pooling.
        assert_eq!(open(&dir).is_ok(), file == "1_Pooling/config.json", "{file}");
    }
}

#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let dir = folder(&TinyModel::default());
    let words = (0..300).map(|number| format!("word{number}")).collect();
    let other = folder(&TinyModel { words, ..TinyModel::default() });
    fs::copy(other.path().join("tokenizer.json"), dir.path().join("tokenizer.json")).expect("copied");
    assert!(refusal(&dir).contains("tokenizer.json"));
}

#[tokio::test]
async fn where_the_vocabulary_is_kept_changes_no_vector() {
    let dir = folder(&TinyModel::default());
    for precision in [EmbeddingPrecision::F32, EmbeddingPrecision::Int8] {
        let mut vectors = Vec::new();
        for scratch in [None, Some(dir.path().to_owned()), Some(dir.path().join("not there"))] {
            let embedder = LocalEmbedder::open(dir.path(), "tiny", 1, precision, scratch.as_deref());
            let embedder = embedder.expect("a model");
            vectors.push(embedder.embed_question("the ship in the harbour").await.expect("a vector"));
        }
        assert!(vectors.iter().all(|vector| *vector == vectors[0]), "{precision:?}");
    }
    let names = fs::read_dir(dir.path()).expect("the folder").flatten().map(|file| file.file_name());
    assert!(
        names.into_iter().all(|name| !name.to_string_lossy().starts_with(".tmp")),
        "the file has no name"
    );
}

#[test]
fn neither_weights_nor_texts_are_in_its_debug_output() {
    let dir = folder(&TinyModel::default());
    assert!(format!("{:?}", open(&dir).expect("a model")).len() < 200);
}

#[tokio::test]
async fn a_question_does_not_wait_behind_passages_and_a_caller_that_leaves_takes_its_batch_along() {
    let dir = folder(&TinyModel { hidden: 96, heads: 4, inner: 384, layers: 4, ..TinyModel::default() });
    let embedder =
        LocalEmbedder::open(dir.path(), "tiny", 1, EmbeddingPrecision::F32, None).expect("a model");
    let texts = vec!["ship ".repeat(60); 20_000];
    let bulk = tokio::spawn({
        let embedder = embedder.clone();
        async move { embedder.embed_passages(texts).await }
    });
    // The batch begins as soon as this task lets it.
    tokio::task::yield_now().await;
    embedder.embed_question("ship").await.expect("a vector");
    assert!(!bulk.is_finished());
    bulk.abort();
    // Its thread is free as soon as the text that it works at is done: far sooner than the rest would take.
    let next = embedder.embed_passages(vec!["river".to_owned()]);
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(5), next).await.expect("in time").expect("vectors").len(),
        1
    );
}
