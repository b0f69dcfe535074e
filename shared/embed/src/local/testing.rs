//! Small models for tests, written as real ones are published.

#![allow(clippy::cast_precision_loss)]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};

/// What a small model is made of.
#[derive(Debug, Clone)]
pub(crate) struct TinyModel {
    pub(crate) model_type: &'static str,
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) inner: usize,
    pub(crate) positions: usize,
    pub(crate) activation: &'static str,
    /// Whether it scores pairs, with a head on top.
    pub(crate) scores: bool,
    /// `mean` or `cls`.
    pub(crate) pooling: &'static str,
    /// Words that are whole tokens, besides all letters.
    pub(crate) words: Vec<String>,
    /// Begins the sequence of weights.
    pub(crate) seed: u64,
}

impl Default for TinyModel {
    fn default() -> Self {
        Self {
            model_type: "bert",
            hidden: 24,
            layers: 1,
            heads: 2,
            inner: 40,
            positions: 64,
            activation: "gelu",
            scores: false,
            pooling: "mean",
            words: ["the", "harbour", "ship", "tax", "river"].map(str::to_owned).to_vec(),
            seed: 1,
        }
    }
}

impl TinyModel {
    /// Writes its files into a folder.
    pub(crate) fn write(&self, dir: &Path) {
        let tokenizer = tokenizer_json(&self.words, true);
        let vocabulary = tokenizer["model"]["vocab"].as_object().map_or(0, serde_json::Map::len);
        write_json(dir, "tokenizer.json", &tokenizer);
        write_json(
            dir,
            "config.json",
            &json!({
                "model_type": self.model_type,
                "hidden_size": self.hidden,
                "num_hidden_layers": self.layers,
                "num_attention_heads": self.heads,
                "intermediate_size": self.inner,
                "max_position_embeddings": self.positions,
                "hidden_act": self.activation,
                "vocab_size": vocabulary,
                "pad_token_id": 0,
                "layer_norm_eps": 1e-5,
            }),
        );
        write_json(
            dir,
            "modules.json",
            &json!([
                {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            ]),
        );
        fs::create_dir_all(dir.join("1_Pooling")).expect("a folder");
        write_json(
            &dir.join("1_Pooling"),
            "config.json",
            &json!({
                "pooling_mode_mean_tokens": self.pooling == "mean",
                "pooling_mode_cls_token": self.pooling == "cls",
            }),
        );
        fs::write(dir.join("model.safetensors"), self.weights(vocabulary)).expect("a file");
    }

    fn weights(&self, vocabulary: usize) -> Vec<u8> {
        let (hidden, inner) = (self.hidden, self.inner);
        let mut tensors = vec![
            ("embeddings.word_embeddings.weight".to_owned(), vec![vocabulary, hidden]),
            ("embeddings.position_embeddings.weight".to_owned(), vec![self.positions, hidden]),
            ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, hidden]),
        ];
        let mut pair = |name: String, shape: Vec<usize>| {
            tensors.push((format!("{name}.bias"), vec![shape[0]]));
            tensors.push((format!("{name}.weight"), shape));
        };
        pair("embeddings.LayerNorm".to_owned(), vec![hidden]);
        for layer in 0..self.layers {
            for (part, shape) in [
                ("attention.self.query", vec![hidden, hidden]),
                ("attention.self.key", vec![hidden, hidden]),
                ("attention.self.value", vec![hidden, hidden]),
                ("attention.output.dense", vec![hidden, hidden]),
                ("attention.output.LayerNorm", vec![hidden]),
                ("intermediate.dense", vec![inner, hidden]),
                ("output.dense", vec![hidden, inner]),
                ("output.LayerNorm", vec![hidden]),
            ] {
                pair(format!("encoder.layer.{layer}.{part}"), shape);
            }
        }
        if self.scores {
            pair("pooler.dense".to_owned(), vec![hidden, hidden]);
            pair("classifier".to_owned(), vec![1, hidden]);
        }
        safetensors(&tensors, self.seed)
    }
}

/// A file of tensors in f32, with numbers that are the same every time.
pub(crate) fn safetensors(tensors: &[(String, Vec<usize>)], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, shape) in tensors {
        let start = data.len();
        for _ in 0..shape.iter().product() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let number = (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0;
            // Scales of normalisations are around one.
            let scale = name.ends_with("LayerNorm.weight");
            let number = if scale { 0.2_f32.mul_add(number, 1.0) } else { 0.3 * number };
            data.extend_from_slice(&number.to_le_bytes());
        }
        header.insert(
            name.clone(),
            json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]}),
        );
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn special() -> [&'static str; 4] {
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
}

/// A tokenizer of word pieces, which has the words, and all letters and digits as pieces. It comes with padding and cutting
/// that must not be obeyed.
pub(crate) fn tokenizer_json(words: &[String], lower_case: bool) -> Value {
    let letters = ('a'..='z').chain('0'..='9').chain(".,?!:-".chars());
    let pieces: BTreeSet<_> =
        letters.flat_map(|c| [c.to_string(), format!("##{c}")]).chain(words.iter().cloned()).collect();
    let tokens = special().into_iter().map(str::to_owned).chain(pieces);
    let vocabulary: serde_json::Map<_, _> = tokens.zip(0..).map(|(token, id)| (token, json!(id))).collect();
    let added: Vec<_> = special()
        .into_iter()
        .enumerate()
        .map(|(id, content)| {
            json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false,
                   "rstrip": false, "normalized": false})
        })
        .collect();
    json!({
        "version": "1.0",
        "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": lower_case, "lowercase": lower_case},
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

/// A tokenizer of whole words with the mark of a word's beginning, and of single characters, as XLM-RoBERTa has.
pub(crate) fn unigram_json(words: &[String]) -> Value {
    let mut vocabulary =
        vec![json!(["<s>", 0.0]), json!(["<pad>", 0.0]), json!(["</s>", 0.0]), json!(["<unk>", 0.0])];
    let letters: BTreeSet<String> = ('a'..='z').map(String::from).chain(["▁".to_owned()]).collect();
    vocabulary.extend(letters.iter().map(|letter| json!([letter, -9.0])));
    for word in words.iter().collect::<BTreeSet<_>>() {
        let character = word.chars().count() == 1;
        if !character {
            vocabulary.push(json!([format!("▁{word}"), -5.0]));
        } else if !letters.contains(word) {
            vocabulary.push(json!([word, -5.0]));
        }
    }
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "post_processor": null, "decoder": null,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": false},
    })
}

/// Writes a file of a model.
pub(crate) fn write_json(dir: &Path, name: &str, value: &Value) {
    fs::write(dir.join(name), value.to_string()).expect("a file");
}
