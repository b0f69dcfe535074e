//! Scores of pairs, against the plain encoder with the head of each family on top.

use super::*;
use crate::CrossEncoder;

/// How the families name the two products of a head, and whether what is between them is cut off at zero.
const HEADS: [(&str, &str, bool); 3] = [
    ("pooler.dense", "classifier", false),
    ("classifier.dense", "classifier.out_proj", false),
    ("pre_classifier", "classifier", true),
];

/// The weights of a model, and a head of `outputs` scores.
fn with_head(shape: &ModelShape, inner: &str, outer: &str, outputs: usize) -> Weights {
    let mut weights = weights(shape);
    let hidden = shape.hidden;
    for (name, sides) in [
        (format!("{inner}.weight"), vec![hidden, hidden]),
        (format!("{inner}.bias"), vec![hidden]),
        (format!("{outer}.weight"), vec![outputs, hidden]),
        (format!("{outer}.bias"), vec![outputs]),
    ] {
        let count: usize = sides.iter().product();
        let numbers = (0..count).map(|number| ((number * 37 % 101) as f32 / 101.0 - 0.5) * 0.6).collect();
        weights.insert(name, (sides, numbers));
    }
    weights
}

fn reference_score(
    weights: &Weights,
    shape: &ModelShape,
    (inner, outer, is_cut): (&str, &str, bool),
    tokens: &[u32],
    segments: &[u32],
) -> f64 {
    let product = |name: &str, state: &[f64]| -> Vec<f64> {
        let (matrix, bias) = (&weights[&format!("{name}.weight")].1, &weights[&format!("{name}.bias")].1);
        let row = |row: &[f32]| row.iter().zip(state).map(|(a, b)| f64::from(*a) * b).sum::<f64>();
        matrix.chunks(state.len()).zip(bias).map(|(weights, bias)| row(weights) + f64::from(*bias)).collect()
    };
    let states = reference_states(weights, shape, tokens, segments);
    let mut state = product(inner, &states[0]);
    for number in &mut state {
        *number = if is_cut { number.max(0.0) } else { number.tanh() };
    }
    product(outer, &state)[0]
}

/// The segments of a pair: the first `question` tokens are of the first text.
fn segments(question: usize, all: usize) -> Vec<u32> {
    (0..all).map(|at| u32::from(at >= question)).collect()
}

#[test]
fn pairs_score_as_by_the_plain_encoder_with_every_head_and_all_instructions() {
    let mut scratch = EncoderScratch::default();
    for head in HEADS {
        let (inner, outer, _) = head;
        for shape in [SMALL, ModelShape { first_position: 2, heads: 1, hidden: 17, inner: 33, ..SMALL }] {
            let weights = with_head(&shape, inner, outer, 1);
            let file = plain_file(&weights);
            for instructions in InstructionSet::available() {
                let model =
                    CrossEncoder::load_for(instructions, &mut Cursor::new(&file), &shape).expect("a model");
                for (question, all) in [(1, 2), (3, 17), (16, 33), (10, shape.max_tokens())] {
                    let (tokens, segments) = (tokens(all), segments(question, all));
                    let wanted = reference_score(&weights, &shape, head, &tokens, &segments);
                    let found = model.score(&tokens, &segments, &mut scratch).expect("a score");
                    assert!(
                        (wanted - f64::from(found)).abs() < 1e-4,
                        "{instructions:?} {inner} {all}: {wanted} {found}"
                    );
                }
            }
        }
    }
}

#[test]
fn which_text_a_token_is_of_counts_where_the_model_tells_them_apart() {
    let weights = with_head(&SMALL, "pooler.dense", "classifier", 1);
    let model = CrossEncoder::load(&mut Cursor::new(plain_file(&weights)), &SMALL).expect("a model");
    let score = |segments: &[u32]| model.score(&tokens(9), segments, &mut EncoderScratch::default()).unwrap();
    assert!((score(&segments(4, 9)) - score(&segments(6, 9))).abs() > 1e-4);
    assert_eq!(score(&[]).to_bits(), score(&[0; 9]).to_bits(), "without segments all is of the first text");
    // What no table has a row for is passed over.
    assert_eq!(score(&[7; 9]).to_bits(), score(&[]).to_bits());
}

#[test]
fn the_network_may_have_a_prefix_that_its_head_does_not_have() {
    let weights = with_head(&SMALL, "pooler.dense", "classifier", 1);
    let plain = CrossEncoder::load(&mut Cursor::new(plain_file(&weights)), &SMALL).expect("a model");
    let renamed = renamed(&weights, |name| {
        if name.starts_with("classifier") { name.to_owned() } else { format!("bert.{name}") }
    });
    let prefixed = CrossEncoder::load(&mut Cursor::new(plain_file(&renamed)), &SMALL).expect("a model");
    let score = |model: &CrossEncoder| {
        model.score(&tokens(9), &segments(4, 9), &mut EncoderScratch::default()).unwrap().to_bits()
    };
    assert_eq!(score(&plain), score(&prefixed));
}

#[test]
fn a_model_without_a_head_or_with_several_scores_is_refused() {
    let load = |weights: &Weights| {
        CrossEncoder::load(&mut Cursor::new(plain_file(weights)), &SMALL)
            .expect_err("no reranker")
            .to_string()
    };
    assert_eq!(
        load(&weights(&SMALL)),
        "it lacks the tensor pooler.dense.weight: this is not the kind of model that its config.json says"
    );
    let several = load(&with_head(&SMALL, "pooler.dense", "classifier", 3));
    assert!(several.contains("classifier.weight") && several.contains("[3, 60]"), "{several}");
}

#[test]
fn tokens_that_the_model_cannot_take_have_no_score() {
    let weights = with_head(&SMALL, "pooler.dense", "classifier", 1);
    let model = CrossEncoder::load(&mut Cursor::new(plain_file(&weights)), &SMALL).expect("a model");
    let score = |tokens: &[u32]| model.score(tokens, &[], &mut EncoderScratch::default());
    assert!(matches!(score(&[]), Err(EncodeError::Tokens(TokensError::Count(0, 40)))));
    assert!(matches!(score(&tokens(41)), Err(EncodeError::Tokens(TokensError::Count(41, 40)))));
    assert!(matches!(score(&[1, 50]), Err(EncodeError::Tokens(TokensError::Unknown(50, 50)))));
}
