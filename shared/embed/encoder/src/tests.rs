//! The encoder against a slow, plain one that is written down as the papers have it, over small models with arbitrary weights.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]

mod cross;
mod int8;

use std::{collections::HashMap, io::Cursor};

use serde_json::json;

use crate::{
    ActivationFunction, EncodeError, Encoder, EncoderScratch, InstructionSet, ModelFamily, ModelShape,
    PoolingMode, TokensError, WeightPrecision, WeightsError,
};

const SMALL: ModelShape = ModelShape {
    family: ModelFamily::Bert,
    hidden: 60,
    layers: 2,
    heads: 3,
    inner: 70,
    vocabulary: 50,
    positions: 40,
    first_position: 0,
    epsilon: 1e-5,
    activation: ActivationFunction::Gelu,
};

/// A model whose vocabulary and inner matrices have more bytes than are read at once.
const IN_PARTS: ModelShape = ModelShape { layers: 1, inner: 1_200, vocabulary: 1_200, ..SMALL };
/// Tokens of it: of each part, and about where the second begins.
const OF_PARTS: [u32; 6] = [0, 700, 1_091, 1_092, 1_093, 1_199];

/// The tensors of a model, by the names of the BERT family.
type Weights = HashMap<String, (Vec<usize>, Vec<f32>)>;

fn weights(shape: &ModelShape) -> Weights {
    let (hidden, inner) = (shape.hidden, shape.inner);
    let mut state = 88_172_645_463_325_252_u64;
    let mut weights = Weights::new();
    let mut add = |name: String, sides: &[usize], middle: f32, spread: f32| {
        let mut number = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0).mul_add(spread, middle)
        };
        let numbers = (0..sides.iter().product()).map(|_| number()).collect();
        weights.insert(name, (sides.to_vec(), numbers));
    };
    add("embeddings.word_embeddings.weight".to_owned(), &[shape.vocabulary, hidden], 0.0, 1.0);
    add("embeddings.position_embeddings.weight".to_owned(), &[shape.positions, hidden], 0.0, 0.5);
    add("embeddings.token_type_embeddings.weight".to_owned(), &[2, hidden], 0.0, 0.5);
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..shape.layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        for (part, outputs, inputs) in [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", inner, hidden),
            ("output.dense", hidden, inner),
        ] {
            add(format!("{}.weight", name(part)), &[outputs, inputs], 0.0, 0.3);
            add(format!("{}.bias", name(part)), &[outputs], 0.0, 0.5);
        }
        norms.extend([name("attention.output.LayerNorm"), name("output.LayerNorm")]);
    }
    for norm in norms {
        add(format!("{norm}.weight"), &[hidden], 1.0, 0.3);
        add(format!("{norm}.bias"), &[hidden], 0.0, 0.3);
    }
    weights
}

/// A file of tensors, each number written by `bytes`.
fn file(weights: &Weights, dtype: &str, bytes: impl Fn(f32) -> Vec<u8>) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, (sides, numbers)) in weights {
        let start = data.len();
        data.extend(numbers.iter().flat_map(|number| bytes(*number)));
        header.insert(
            name.clone(),
            json!({"dtype": dtype, "shape": sides, "data_offsets": [start, data.len()]}),
        );
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn plain_file(weights: &Weights) -> Vec<u8> {
    file(weights, "F32", |number| number.to_le_bytes().to_vec())
}

fn load(bytes: &[u8], shape: &ModelShape) -> Result<Encoder, WeightsError> {
    Encoder::load(WeightPrecision::F32, &mut Cursor::new(bytes), shape)
}

fn tokens(count: usize) -> Vec<u32> {
    (0..count).map(|number| (number * 7 % 50) as u32).collect()
}

/// The plain encoder, in f64: the last states of all tokens.
fn reference_states(
    weights: &Weights,
    shape: &ModelShape,
    tokens: &[u32],
    segments: &[u32],
) -> Vec<Vec<f64>> {
    let get = |name: &str| weights[name].1.iter().map(|number| f64::from(*number)).collect::<Vec<_>>();
    let linear = |name: &str, states: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let (matrix, bias) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        let row = |state: &Vec<f64>| {
            let sum = |row: &[f64]| row.iter().zip(state).map(|(a, b)| a * b).sum::<f64>();
            matrix.chunks(state.len()).zip(&bias).map(|(row, bias)| sum(row) + bias).collect()
        };
        states.iter().map(row).collect()
    };
    let norm = |name: &str, states: &mut [Vec<f64>]| {
        let (scale, shift) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        for state in states {
            let width = state.len() as f64;
            let mean = state.iter().sum::<f64>() / width;
            let variance = state.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / width;
            for ((number, scale), shift) in state.iter_mut().zip(&scale).zip(&shift) {
                *number = (*number - mean) / (variance + f64::from(shape.epsilon)).sqrt() * scale + shift;
            }
        }
    };
    let add = |states: &mut [Vec<f64>], more: &[Vec<f64>]| {
        for (state, more) in states.iter_mut().zip(more) {
            state.iter_mut().zip(more).for_each(|(number, more)| *number += more);
        }
    };
    let hidden = shape.hidden;
    let [words, positions, kinds] =
        ["word", "position", "token_type"].map(|table| get(&format!("embeddings.{table}_embeddings.weight")));
    let start = |(at, token): (usize, &u32)| -> Vec<f64> {
        let (word, position) = (*token as usize * hidden, (at + shape.first_position) * hidden);
        let kind = segments.get(at).map_or(0, |segment| *segment as usize * hidden);
        (0..hidden).map(|i| words[word + i] + positions[position + i] + kinds[kind + i]).collect()
    };
    let mut states: Vec<_> = tokens.iter().enumerate().map(start).collect();
    norm("embeddings.LayerNorm", &mut states);
    for layer in 0..shape.layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let [queries, keys, values] =
            ["query", "key", "value"].map(|part| linear(&name(&format!("attention.self.{part}")), &states));
        let width = hidden / shape.heads;
        let mut mixed = vec![vec![0.0; hidden]; states.len()];
        for head in 0..shape.heads {
            let part = head * width..(head + 1) * width;
            for (query, mixed) in queries.iter().zip(&mut mixed) {
                let fit = |key: &Vec<f64>| -> f64 {
                    let sum: f64 =
                        query[part.clone()].iter().zip(&key[part.clone()]).map(|(a, b)| a * b).sum();
                    (sum / (width as f64).sqrt()).exp()
                };
                let fits: Vec<_> = keys.iter().map(fit).collect();
                let sum: f64 = fits.iter().sum();
                for (fit, value) in fits.iter().zip(&values) {
                    for i in part.clone() {
                        mixed[i] += fit / sum * value[i];
                    }
                }
            }
        }
        add(&mut states, &linear(&name("attention.output.dense"), &mixed));
        norm(&name("attention.output.LayerNorm"), &mut states);
        let mut inner = linear(&name("intermediate.dense"), &states);
        for number in inner.iter_mut().flatten() {
            let x = *number;
            *number = match shape.activation {
                ActivationFunction::Gelu => 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt())),
                ActivationFunction::GeluTanh => {
                    0.5 * x
                        * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
                }
                ActivationFunction::Relu => x.max(0.0),
            };
        }
        add(&mut states, &linear(&name("output.dense"), &inner));
        norm(&name("output.LayerNorm"), &mut states);
    }
    states
}

/// The vector of a text by the plain encoder.
fn reference(weights: &Weights, shape: &ModelShape, tokens: &[u32], pooling: PoolingMode) -> Vec<f64> {
    let states = reference_states(weights, shape, tokens, &[]);
    let taken = match pooling {
        PoolingMode::Mean => &states[..],
        PoolingMode::FirstToken => &states[..1],
    };
    let sum: Vec<f64> = (0..shape.hidden).map(|i| taken.iter().map(|state| state[i]).sum()).collect();
    let length = sum.iter().map(|number| number * number).sum::<f64>().sqrt();
    sum.iter().map(|number| number / length).collect()
}

/// The error function by its series, which for small arguments is exact.
fn erf(x: f64) -> f64 {
    if x.abs() > 5.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn assert_same(wanted: &[f64], found: &[f32], what: &str) {
    let worst = wanted.iter().zip(found).map(|(a, b)| (a - f64::from(*b)).abs()).fold(0.0, f64::max);
    assert!(wanted.len() == found.len() && worst < 1e-5, "{what}: off by {worst}");
}

#[test]
fn every_shape_gives_the_same_as_the_plain_encoder_with_all_instructions() {
    let other = [
        SMALL,
        ModelShape { heads: 1, hidden: 17, inner: 33, ..SMALL },
        ModelShape { heads: 12, hidden: 48, inner: 96, layers: 1, ..SMALL },
        ModelShape { heads: 2, hidden: 128, inner: 200, activation: ActivationFunction::Relu, ..SMALL },
        ModelShape { activation: ActivationFunction::GeluTanh, ..SMALL },
        ModelShape { first_position: 2, ..SMALL },
        ModelShape { layers: 0, ..SMALL },
    ];
    let mut scratch = EncoderScratch::default();
    for shape in other {
        let weights = weights(&shape);
        let file = plain_file(&weights);
        for instructions in InstructionSet::available() {
            let encoder =
                Encoder::load_for(instructions, WeightPrecision::F32, &mut Cursor::new(&file), &shape)
                    .expect("a model");
            for count in [1, 2, 5, 15, 16, 17, 33, shape.max_tokens()] {
                for pooling in [PoolingMode::Mean, PoolingMode::FirstToken] {
                    let tokens = tokens(count);
                    let found = encoder.embed(&tokens, pooling, &mut scratch).expect("a vector");
                    let what = format!("{instructions:?} {pooling:?} {count} tokens, {shape:?}");
                    assert_same(&reference(&weights, &shape, &tokens, pooling), &found, &what);
                }
            }
        }
    }
}

#[test]
fn weights_that_are_read_in_parts_are_all_where_they_belong() {
    let weights = weights(&IN_PARTS);
    let wanted = reference(&weights, &IN_PARTS, &OF_PARTS, PoolingMode::Mean);
    let encoder = load(&plain_file(&weights), &IN_PARTS).expect("a model");
    let found = encoder.embed(&OF_PARTS, PoolingMode::Mean, &mut EncoderScratch::default());
    assert_same(&wanted, &found.expect("a vector"), "in parts");
}

#[test]
fn long_texts_are_embedded_as_exactly() {
    let shape = ModelShape { positions: 512, layers: 1, ..SMALL };
    let weights = weights(&shape);
    let file = plain_file(&weights);
    let tokens = tokens(512);
    let wanted = reference(&weights, &shape, &tokens, PoolingMode::Mean);
    for instructions in InstructionSet::available() {
        let encoder = Encoder::load_for(instructions, WeightPrecision::F32, &mut Cursor::new(&file), &shape)
            .expect("a model");
        let found =
            encoder.embed(&tokens, PoolingMode::Mean, &mut EncoderScratch::default()).expect("a vector");
        assert_same(&wanted, &found, &format!("{instructions:?}"));
    }
}

#[test]
fn what_was_computed_before_leaves_no_trace() {
    let encoder = load(&plain_file(&weights(&SMALL)), &SMALL).expect("a model");
    let mut scratch = EncoderScratch::default();
    let embed = |scratch: &mut EncoderScratch| {
        encoder.embed(&tokens(9), PoolingMode::Mean, scratch).expect("a vector")
    };
    let fresh = embed(&mut EncoderScratch::default());
    for count in [40, 3, 21] {
        encoder.embed(&tokens(count), PoolingMode::Mean, &mut scratch).expect("a vector");
        assert_eq!(embed(&mut scratch), fresh);
    }
}

#[test]
fn a_vocabulary_in_a_file_gives_the_same_vectors_until_the_file_is_lost() {
    let file = plain_file(&weights(&SMALL));
    for precision in [WeightPrecision::F32, WeightPrecision::Int8] {
        let mut encoder = Encoder::load(precision, &mut Cursor::new(&file), &SMALL).expect("a model");
        let embed =
            |encoder: &Encoder| encoder.embed(&tokens(21), PoolingMode::Mean, &mut EncoderScratch::default());
        let wanted = embed(&encoder).expect("a vector");
        encoder.move_words_to(|_| Err(std::io::ErrorKind::StorageFull.into())).expect_err("no file");
        assert_eq!(embed(&encoder).expect("a vector"), wanted);
        let words = tempfile::tempfile().expect("a file");
        let same = words.try_clone().expect("the same file");
        encoder.move_words_to(|_| Ok(words)).expect("it is written");
        assert!(same.metadata().expect("its size").len() > 0);
        assert_eq!(embed(&encoder).expect("a vector"), wanted);
        same.set_len(0).expect("it is empty");
        assert!(matches!(embed(&encoder), Err(EncodeError::Words(_))));
    }
}

#[test]
fn half_precision_weights_are_read() {
    type Half = (&'static str, fn(f32) -> f32, fn(f32) -> Vec<u8>);
    let mut rounded = weights(&SMALL);
    let halves: [Half; 2] = [
        ("BF16", |x| half::bf16::from_f32(x).to_f32(), |x| half::bf16::from_f32(x).to_le_bytes().to_vec()),
        ("F16", |x| half::f16::from_f32(x).to_f32(), |x| half::f16::from_f32(x).to_le_bytes().to_vec()),
    ];
    for (dtype, round, bytes) in halves {
        let all = weights(&SMALL);
        for (name, (_, numbers)) in &all {
            rounded.get_mut(name).expect("the same names").1 = numbers.iter().map(|x| round(*x)).collect();
        }
        let encoder = load(&file(&all, dtype, bytes), &SMALL).expect("a model");
        let found =
            encoder.embed(&tokens(20), PoolingMode::Mean, &mut EncoderScratch::default()).expect("a vector");
        assert_same(&reference(&rounded, &SMALL, &tokens(20), PoolingMode::Mean), &found, dtype);
    }
}

/// The tensors under other names.
fn renamed(weights: &Weights, name: impl Fn(&str) -> String) -> Weights {
    weights.iter().map(|(old, tensor)| (name(old), tensor.clone())).collect()
}

#[test]
fn tensors_may_have_a_prefix_or_older_or_other_names() {
    let mut weights = weights(&SMALL);
    let embed = |weights: &Weights, shape: &ModelShape| {
        let encoder = load(&plain_file(weights), shape).expect("a model");
        encoder.embed(&tokens(20), PoolingMode::Mean, &mut EncoderScratch::default()).expect("a vector")
    };
    let wanted = embed(&weights, &SMALL);
    for prefix in ["bert.", "roberta."] {
        assert_eq!(embed(&renamed(&weights, |name| format!("{prefix}{name}")), &SMALL), wanted);
    }
    let old = |name: &str| {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    };
    assert_eq!(embed(&renamed(&weights, old), &SMALL), wanted);

    // DistilBERT has no kinds of tokens.
    weights.get_mut("embeddings.token_type_embeddings.weight").expect("a tensor").1.fill(0.0);
    let wanted = embed(&weights, &SMALL);
    let distilled = renamed(&weights, |name| {
        [
            ("encoder.layer.", "transformer.layer."),
            ("attention.self.query", "attention.q_lin"),
            ("attention.self.key", "attention.k_lin"),
            ("attention.self.value", "attention.v_lin"),
            ("attention.output.dense", "attention.out_lin"),
            ("attention.output.LayerNorm", "sa_layer_norm"),
            ("intermediate.dense", "ffn.lin1"),
            ("output.dense", "ffn.lin2"),
            ("output.LayerNorm", "output_layer_norm"),
        ]
        .iter()
        .fold(format!("distilbert.{name}"), |name, (from, to)| name.replace(from, to))
    });
    assert_eq!(embed(&distilled, &ModelShape { family: ModelFamily::DistilBert, ..SMALL }), wanted);
}

#[test]
fn tokens_that_the_model_cannot_take_are_errors() {
    let encoder = load(&plain_file(&weights(&SMALL)), &SMALL).expect("a model");
    let embed = |tokens: &[u32]| encoder.embed(tokens, PoolingMode::Mean, &mut EncoderScratch::default());
    assert!(matches!(embed(&[]), Err(EncodeError::Tokens(TokensError::Count(0, 40)))));
    assert!(matches!(embed(&tokens(41)), Err(EncodeError::Tokens(TokensError::Count(41, 40)))));
    assert!(matches!(embed(&[50]), Err(EncodeError::Tokens(TokensError::Unknown(50, 50)))));
}

#[test]
fn files_that_do_not_hold_the_model_are_errors() {
    let all = weights(&SMALL);
    let whole = plain_file(&all);
    for cut in [0, 7, 8, 100, 5000, whole.len() - 1] {
        assert!(matches!(load(&whole[..cut], &SMALL), Err(WeightsError::Damaged(_))), "cut at {cut}");
    }
    let huge = [&u64::MAX.to_le_bytes(), &whole[8..]].concat();
    assert!(matches!(load(&huge, &SMALL), Err(WeightsError::Damaged(_))));

    let name = "encoder.layer.1.output.dense.weight";
    let without: Weights =
        all.iter().filter(|(other, _)| *other != name).map(|(n, t)| (n.clone(), t.clone())).collect();
    assert!(
        matches!(load(&plain_file(&without), &SMALL), Err(WeightsError::Missing(missing)) if missing == name)
    );
    let deeper = ModelShape { layers: usize::MAX, ..SMALL };
    assert!(matches!(load(&whole, &deeper), Err(WeightsError::Missing(_))));
    for other in [
        ModelShape { inner: 71, ..SMALL },
        ModelShape { hidden: 30, ..SMALL },
        ModelShape { vocabulary: 1 << 40, ..SMALL },
        ModelShape { positions: 41, ..SMALL },
    ] {
        assert!(matches!(load(&whole, &other), Err(WeightsError::Tensor { .. })), "{other:?}");
    }
    for none in [
        ModelShape { heads: 7, ..SMALL },
        ModelShape { heads: 0, ..SMALL },
        ModelShape { hidden: 0, ..SMALL },
    ] {
        assert!(matches!(load(&whole, &none), Err(WeightsError::Shape(_))), "{none:?}");
    }
    assert!(matches!(
        load(&file(&all, "I32", |x| x.to_le_bytes().to_vec()), &SMALL),
        Err(WeightsError::Numbers(..))
    ));
    let mut broken = all.clone();
    broken.get_mut(name).expect("a tensor").1[3] = f32::NAN;
    assert!(matches!(load(&plain_file(&broken), &SMALL), Err(WeightsError::NotFinite(_))));

    // A list of tensors that promises more numbers than the file has, or has none where it says.
    for offsets in [json!([0, 40_000_000_000_000_u64]), json!([40, 0]), json!([0, 4])] {
        let list = json!({"embeddings.position_embeddings.weight":
            {"dtype": "F32", "shape": [40, 60], "data_offsets": offsets}})
        .to_string();
        let bytes = [&(list.len() as u64).to_le_bytes(), list.as_bytes(), &[0; 64]].concat();
        assert!(matches!(load(&bytes, &SMALL), Err(WeightsError::Damaged(_))));
    }
}
