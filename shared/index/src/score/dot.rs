//! Dot products of rows with one vector.

use pulp::{Arch, Simd, WithSimd};

/// A vector that rows are multiplied with.
///
/// Between machines whose registers differ in width a product may differ in its last bits.
#[derive(Debug, Clone)]
pub(super) struct DotProduct {
    vector: Vec<f32>,
    arch: Arch,
}

impl DotProduct {
    pub(super) fn new(vector: Vec<f32>) -> Self {
        Self { vector, arch: Arch::new() }
    }

    /// How many numbers the vector has.
    pub(super) fn dimension(&self) -> usize {
        self.vector.len()
    }

    /// The product with a row of the same dimension.
    pub(super) fn with(&self, row: &[f32]) -> f32 {
        self.arch.dispatch(DotProductKernel { row, vector: &self.vector })
    }
}

struct DotProductKernel<'a> {
    row: &'a [f32],
    vector: &'a [f32],
}

impl WithSimd for DotProductKernel<'_> {
    type Output = f32;

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it must be compiled into the function for each kind of processor"
    )]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let (factors, last_factors) = S::as_simd_f32s(self.vector);
        let (numbers, last_numbers) = S::as_simd_f32s(self.row);
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
}
