//! A sentence encoder small enough to be made by a test: its vectors mean little, but texts with the same words have vectors
//! that are alike, and everything around it is as with a real one.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Map, Value, json};

const HIDDEN: usize = 32;
const INNER: usize = 64;
const POSITIONS: usize = 512;
const SPECIAL: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];

/// Writes the files of a model with one layer and 32 dimensions. The words are single tokens; all others are spelt. The same
/// words give the same bytes.
pub fn write(dir: &Path, words: &[&str]) {
    write_files(dir, words, false);
}

/// Writes the files of a cross-encoder of the same size: its scores mean nothing, but they are always the same.
pub fn write_reranker(dir: &Path, words: &[&str]) {
    write_files(dir, words, true);
}

fn write_files(dir: &Path, words: &[&str], scores: bool) {
    fs::create_dir_all(dir.join("1_Pooling")).expect("a folder");
    let letters = ('!'..='~').map(|c| c.to_ascii_lowercase());
    let pieces = letters.flat_map(|c| [c.to_string(), format!("##{c}")]);
    let pieces: BTreeSet<_> = pieces.chain(words.iter().map(|word| word.to_lowercase())).collect();
    let tokens: Vec<_> = SPECIAL.into_iter().map(str::to_owned).chain(pieces).collect();
    write_json(dir, "tokenizer.json", &tokenizer(&tokens));
    write_json(
        dir,
        "config.json",
        &json!({
            "architectures": ["BertModel"], "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": INNER, "max_position_embeddings": POSITIONS,
            "hidden_act": "gelu", "vocab_size": tokens.len(), "type_vocab_size": 2, "pad_token_id": 0,
            "layer_norm_eps": 1e-12,
        }),
    );
    write_json(
        dir,
        "modules.json",
        &json!([
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ]),
    );
    write_json(&dir.join("1_Pooling"), "config.json", &json!({"pooling_mode_mean_tokens": true}));
    write_json(dir, "sentence_bert_config.json", &json!({"max_seq_length": 256, "do_lower_case": false}));
    fs::write(dir.join("model.safetensors"), weights(tokens.len(), scores)).expect("a file");
}

fn write_json(dir: &Path, name: &str, value: &Value) {
    fs::write(dir.join(name), value.to_string()).expect("a file");
}

fn tokenizer(tokens: &[String]) -> Value {
    let vocabulary: Map<_, _> =
        tokens.iter().zip(0..).map(|(token, id)| (token.clone(), json!(id))).collect();
    let added = SPECIAL.into_iter().enumerate().map(|(id, content)| {
        json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false})
    });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                     {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                               "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}},
        },
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

/// A `safetensors` file. What words are counts for most; positions and the layer only stir it.
#[allow(clippy::cast_precision_loss)]
fn weights(vocabulary: usize, scores: bool) -> Vec<u8> {
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![vocabulary, HIDDEN], 1.0),
        ("embeddings.position_embeddings.weight".to_owned(), vec![POSITIONS, HIDDEN], 0.02),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN], 0.02),
    ];
    for (part, outputs, inputs) in [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", INNER, HIDDEN),
        ("output.dense", HIDDEN, INNER),
    ] {
        tensors.push((format!("encoder.layer.0.{part}.weight"), vec![outputs, inputs], 0.05));
        tensors.push((format!("encoder.layer.0.{part}.bias"), vec![outputs], 0.01));
    }
    for norm in ["embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"] {
        tensors.push((format!("{norm}.LayerNorm.weight"), vec![HIDDEN], 0.0));
        tensors.push((format!("{norm}.LayerNorm.bias"), vec![HIDDEN], 0.0));
    }
    if scores {
        for (part, outputs) in [("pooler.dense", HIDDEN), ("classifier", 1)] {
            tensors.push((format!("{part}.weight"), vec![outputs, HIDDEN], 0.5));
            tensors.push((format!("{part}.bias"), vec![outputs], 0.01));
        }
    }
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut list = Map::new();
    let mut data = Vec::new();
    for (name, shape, spread) in tensors {
        let start = data.len();
        let middle = if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 };
        for _ in 0..shape.iter().product() {
            // A generator of Marsaglia's: evenly spread, the same everywhere.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let number = (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0;
            data.extend_from_slice(&number.mul_add(spread, middle).to_le_bytes());
        }
        list.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]}));
    }
    let list = Value::Object(list).to_string();
    [&(list.len() as u64).to_le_bytes(), list.as_bytes(), &data].concat()
}
