//! Dot products of many rows with one vector.

use pulp::{Arch, Simd, WithSimd};

/// Rows that are multiplied at a time. One: what comes from memory is fetched ahead best in the order in which it lies there.
const ROWS: usize = 1;

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
        let (scores, last_scores) = scores.as_chunks_mut::<ROWS>();
        let (rows, last_rows) = rows.split_at((scores.len() * ROWS * vector.len()).min(rows.len()));
        for (rows, scores) in rows.chunks_exact(ROWS * vector.len()).zip(scores) {
            *scores = several(simd, rows, vector);
        }
        for (row, score) in last_rows.chunks_exact(vector.len()).zip(last_scores) {
            [*score] = several(simd, row, vector);
        }
    }
}

/// The products of `N` rows, which follow one another.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it must be compiled into the function for each kind of processor")]
fn several<S: Simd, const N: usize>(simd: S, rows: &[f32], vector: &[f32]) -> [f32; N] {
    let (factors, last_factors) = S::as_simd_f32s(vector);
    let (pairs, single) = factors.as_chunks::<2>();
    let rows: [_; N] = std::array::from_fn(|row| {
        let (numbers, rest) = S::as_simd_f32s(&rows[row * vector.len()..][..vector.len()]);
        let (in_pairs, single) = numbers.as_chunks::<2>();
        (&in_pairs[..pairs.len()], single, rest)
    });
    // Two sums a row, so that an addition need not wait for the one before.
    let mut sums = [[simd.splat_f32s(0.0); 2]; N];
    for (at, pair) in pairs.iter().enumerate() {
        for (sums, (numbers, ..)) in sums.iter_mut().zip(&rows) {
            sums[0] = simd.mul_add_e_f32s(numbers[at][0], pair[0], sums[0]);
            sums[1] = simd.mul_add_e_f32s(numbers[at][1], pair[1], sums[1]);
        }
    }
    let mut products = [0.0; N];
    for ((product, sums), (_, numbers, rest)) in products.iter_mut().zip(sums).zip(rows) {
        let mut sum = simd.add_f32s(sums[0], sums[1]);
        for (numbers, factors) in numbers.iter().zip(single) {
            sum = simd.mul_add_e_f32s(*numbers, *factors, sum);
        }
        let rest: f32 = rest.iter().zip(last_factors).map(|(number, factor)| number * factor).sum();
        *product = simd.reduce_sum_f32s(sum) + rest;
    }
    products
}
