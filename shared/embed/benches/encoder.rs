//! How fast the local encoder is: `cargo bench -p lectern-embed --bench encoder -- MODEL_FOLDER [TEXTS.json]`.
//!
//! Embeds texts one after another on one thread, in the precision of `ENCODER_PRECISION` (`f32` or `int8`, else `auto`), and prints a
//! line of JSON. With a file (a list of texts) it embeds these, else
//! passages of its own of about 194 tokens. `scripts/encoder_speed.py` compares it with another program over the same texts.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a program for developers, which prints times and may end with a message"
)]

use std::{hint::black_box, path::Path, time::Instant};

use lectern_embed::{Embedder as _, LocalEmbedder};
use lectern_shared::config::EmbeddingPrecision;

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some(folder) = arguments.first() else {
        println!("name a model's folder: cargo bench -p lectern-embed --bench encoder -- FOLDER");
        return;
    };
    #[expect(clippy::disallowed_methods, reason = "a program for developers has no settings")]
    let precision = match std::env::var("ENCODER_PRECISION").as_deref() {
        Ok("f32") => EmbeddingPrecision::F32,
        Ok("int8") => EmbeddingPrecision::Int8,
        _ => EmbeddingPrecision::Auto,
    };
    let started = Instant::now();
    let embedder = LocalEmbedder::open(Path::new(folder), "bench", 1, precision, None).expect("a model");
    let opened = started.elapsed();
    let texts = match arguments.get(1) {
        Some(file) => {
            let bytes = std::fs::read(file).expect("a file of texts");
            serde_json::from_slice(&bytes).expect("a list of texts")
        }
        None => passages(),
    };
    let tokens: usize = texts.iter().map(|text| embedder.count_tokens(text) + 2).sum();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let question = "When does the harbour master record the arrival of a vessel?";
    let mut passages = Vec::new();
    let mut questions = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        black_box(runtime.block_on(embedder.embed_passages(texts.clone())).expect("vectors"));
        passages.push(started.elapsed().as_secs_f64() * 1e3 / texts.len() as f64);
        for _ in 0..20 {
            let started = Instant::now();
            black_box(runtime.block_on(embedder.embed_question(question)).expect("a vector"));
            questions.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let result = serde_json::json!({
        "precision": format!("{:?}", embedder.precision()),
        "open_ms": opened.as_secs_f64() * 1e3,
        "texts": texts.len(),
        "tokens_per_text": tokens as f64 / texts.len() as f64,
        "passage_ms": {"best": best(&passages), "median": median(&mut passages)},
        "question_ms": {"best": best(&questions), "median": median(&mut questions)},
    });
    println!("{result}");
}

fn passages() -> Vec<String> {
    let sentence = "the harbour master records the arrival of every vessel, its cargo and the name of its captain in a book";
    (0..20).map(|number| format!("Section {number}: {}.", [sentence; 9].join(", and "))).collect()
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
