//! Dot products of many rows with one vector.

use pulp::{Arch, Simd, WithSimd};

/// Writes the dot product of each of the rows with `vector` into `scores`, of which there is one for each row.
///
/// A row's product does not depend on the rows that it comes with. Between machines whose registers differ in width it may
/// differ in its last bits.
pub(super) fn products(arch: Arch, rows: &[f32], vector: &[f32], scores: &mut [f32]) {
    if !vector.is_empty() {
        arch.dispatch(DotProductKernel { rows, vector, scores });
    }
}

struct DotProductKernel<'a> {
    rows: &'a [f32],
    vector: &'a [f32],
    scores: &'a mut [f32],
}

impl WithSimd for DotProductKernel<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it must be compiled into the function for each kind of processor"
    )]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, vector, scores } = self;
        // One row at a time, in the order in which they lie in memory: that is fetched ahead best.
        for (row, score) in rows.chunks_exact(vector.len()).zip(scores) {
            *score = product(simd, row, vector);
        }
    }
}

/// The product of one row.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it must be compiled into the function for each kind of processor")]
fn product<S: Simd>(simd: S, row: &[f32], vector: &[f32]) -> f32 {
    let (factors, last_factors) = S::as_simd_f32s(vector);
    let (numbers, last_numbers) = S::as_simd_f32s(row);
    let (factors, single_factor) = factors.as_chunks::<2>();
    let (numbers, single_number) = numbers.as_chunks::<2>();
    // Two sums, so that an addition need not wait for the one before.
    let mut sums = [simd.splat_f32s(0.0); 2];
    for (numbers, factors) in numbers.iter().zip(factors) {
        sums[0] = simd.mul_add_e_f32s(numbers[0], factors[0], sums[0]);
        sums[1] = simd.mul_add_e_f32s(numbers[1], factors[1], sums[1]);
    }
    let mut sum = simd.add_f32s(sums[0], sums[1]);
    for (number, factor) in single_number.iter().zip(single_factor) {
        sum = simd.mul_add_e_f32s(*number, *factor, sum);
    }
    let rest: f32 = last_numbers.iter().zip(last_factors).map(|(number, factor)| number * factor).sum();
    simd.reduce_sum_f32s(sum) + rest
}
