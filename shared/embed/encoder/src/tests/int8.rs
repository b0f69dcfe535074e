//! Products of eight bits: near those of `f32`, and the same with all instructions.

use std::io::Cursor;

use super::{IN_PARTS, OF_PARTS, SMALL, plain_file, reference, tokens, weights};
use crate::{
    ActivationFunction, Encoder, EncoderScratch, InstructionSet, ModelShape, PoolingMode, WeightPrecision,
};

fn int8(instructions: InstructionSet, file: &[u8], shape: &ModelShape) -> Encoder {
    Encoder::load_for(instructions, WeightPrecision::Int8, &mut Cursor::new(file), shape).expect("a model")
}

fn cosine(a: &[f64], b: &[f32]) -> f64 {
    let square = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|number| number * number).sum::<f64>();
    let product = a.iter().zip(b).map(|(a, b)| a * f64::from(*b)).sum::<f64>();
    let lengths = square(&mut a.iter().copied()) * square(&mut b.iter().copied().map(f64::from));
    product / lengths.sqrt()
}

#[test]
fn every_shape_gives_nearly_the_same_as_the_plain_encoder() {
    let shapes = [
        SMALL,
        ModelShape { heads: 1, hidden: 17, inner: 33, ..SMALL },
        ModelShape { heads: 12, hidden: 48, inner: 97, layers: 1, ..SMALL },
        ModelShape { heads: 2, hidden: 128, inner: 200, activation: ActivationFunction::Relu, ..SMALL },
        ModelShape { activation: ActivationFunction::GeluTanh, ..SMALL },
    ];
    let mut scratch = EncoderScratch::default();
    for shape in shapes {
        let weights = weights(&shape);
        let file = plain_file(&weights);
        for instructions in InstructionSet::available() {
            let encoder = int8(instructions, &file, &shape);
            for count in [1, 2, 5, 15, 16, 17, 33, shape.max_tokens()] {
                let tokens = tokens(count);
                let found = encoder.embed(&tokens, PoolingMode::Mean, &mut scratch).expect("a vector");
                let wanted = reference(&weights, &shape, &tokens, PoolingMode::Mean);
                let cosine = cosine(&wanted, &found);
                assert!(cosine > 0.995, "{cosine}: {instructions:?} {count} tokens, {shape:?}");
            }
        }
    }
}

#[test]
fn weights_that_are_read_in_parts_are_all_where_they_belong() {
    let weights = weights(&IN_PARTS);
    let encoder = int8(InstructionSet::Plain, &plain_file(&weights), &IN_PARTS);
    let found = encoder.embed(&OF_PARTS, PoolingMode::Mean, &mut EncoderScratch::default());
    let wanted = reference(&weights, &IN_PARTS, &OF_PARTS, PoolingMode::Mean);
    let cosine = cosine(&wanted, &found.expect("a vector"));
    assert!(cosine > 0.995, "{cosine}");
}

#[test]
fn all_instructions_agree() {
    let shape = ModelShape { hidden: 96, heads: 3, inner: 130, ..SMALL };
    let file = plain_file(&weights(&shape));
    let embed = |instructions| {
        let encoder = int8(instructions, &file, &shape);
        encoder
            .embed(&tokens(33), PoolingMode::Mean, &mut EncoderScratch::default())
            .expect("a vector")
            .into_iter()
            .map(f64::from)
            .collect::<Vec<_>>()
    };
    let plain = embed(InstructionSet::Plain);
    for instructions in InstructionSet::available() {
        // The sums of whole numbers are equal; what is `f32` around them may differ in its last bits, and with it a rounding.
        #[expect(clippy::cast_possible_truncation, reason = "they were that")]
        let found: Vec<_> = embed(instructions).into_iter().map(|number| number as f32).collect();
        let cosine = cosine(&plain, &found);
        assert!(cosine > 0.9995, "{cosine}: {instructions:?}");
    }
}

#[test]
fn what_was_computed_before_leaves_no_trace_in_eight_bits() {
    let file = plain_file(&weights(&SMALL));
    for instructions in InstructionSet::available() {
        let encoder = int8(instructions, &file, &SMALL);
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
}
