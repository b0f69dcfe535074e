//! The most that the dot products of rows with a vector can be, by their codes.

use pulp::Arch;

#[cfg(target_arch = "x86_64")]
use archmage::{SimdToken as _, X64V4xToken};

use crate::quantize::{CodeLine, CodeRows, Quantized, quantize, rounding};

/// The most rows whose bounds are computed before they are looked at.
pub(super) const BATCH: u32 = 128;

/// A question's vector in eight bits.
#[derive(Debug, Clone)]
pub(super) struct ProductBounds {
    codes: Vec<CodeLine<i8>>,
    /// What a product of codes of one stands for, but for the row's scale.
    scale: f32,
    /// What the sum of products is too much, because the codes of rows are 128 too great.
    excess: i32,
    /// What a bound is greater for each unit of a row's length.
    per_length: f32,
    /// What a bound is greater for each unit of a row's error.
    per_error: f32,
    arch: IntegerArch,
}

impl ProductBounds {
    pub(super) fn new(vector: &[f32]) -> Self {
        let mut codes = Vec::new();
        let Quantized { scale, length, error } = quantize(vector, &mut codes);
        let sum: i32 = codes.iter().flat_map(|line| line.0).map(i32::from).sum();
        let (most, rounding) = (length + error, rounding(vector.len()));
        Self {
            codes,
            scale,
            excess: 128 * sum,
            // The row's codes with what the question's codes leave, and what the exact product is rounded by.
            per_length: error + most * rounding,
            // What the row's codes leave with the question, and the same.
            per_error: most * (1.0 + rounding),
            arch: IntegerArch::best(),
        }
    }

    /// The most that the product with each of these rows can be, as `dot::product` makes it, for [`BATCH`] rows at most. Where
    /// nothing is known of a row it is infinite, or no number.
    pub(super) fn of(&self, rows: CodeRows<'_>) -> [f32; BATCH as usize] {
        let mut sums = [0; BATCH as usize];
        self.arch.sums(rows.codes, &self.codes, &mut sums);
        let mut bounds = [f32::INFINITY; BATCH as usize];
        let known = rows.scales.iter().zip(rows.lengths).zip(rows.errors);
        for ((bound, sum), ((scale, length), error)) in bounds.iter_mut().zip(sums).zip(known) {
            #[expect(clippy::cast_precision_loss, reason = "the bound has room for rounding")]
            let product = (sum - self.excess) as f32 * (self.scale * scale);
            *bound = product + length * self.per_length + error * self.per_error;
        }
        bounds
    }
}

/// What makes sums of products of bytes. All make the same sums.
#[derive(Debug, Clone, Copy)]
enum IntegerArch {
    /// An instruction for four products in each of sixteen words (`vpdpbusd`). The value is proof that this processor has it.
    #[cfg(target_arch = "x86_64")]
    Vnni(X64V4xToken),
    /// What the compiler makes of it for this kind of processor.
    Compiled(Arch),
}

impl IntegerArch {
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(token) = X64V4xToken::summon() {
            return Self::Vnni(token);
        }
        Self::Compiled(Arch::new())
    }

    /// Writes the sum of products of each row, which has as many lines as the vector, with the vector.
    fn sums(self, rows: &[CodeLine<u8>], vector: &[CodeLine<i8>], sums: &mut [i32]) {
        if vector.is_empty() {
            return;
        }
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni(token) => vnni::sums(token, rows, vector, sums),
            Self::Compiled(arch) => arch.dispatch(
                #[inline(always)]
                || compiled_sums(rows, vector, sums),
            ),
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it must be compiled into the function for each kind of processor")]
fn compiled_sums(rows: &[CodeLine<u8>], vector: &[CodeLine<i8>], sums: &mut [i32]) {
    for (row, sum) in rows.chunks_exact(vector.len()).zip(sums) {
        *sum = 0;
        for (codes, factors) in row.iter().zip(vector) {
            for (code, factor) in codes.0.iter().zip(factors.0) {
                *sum += i32::from(*code) * i32::from(factor);
            }
        }
    }
}

/// `archmage` finds out at run time whether the processor has the instruction; that and the call, which takes `unsafe`, are in
/// its macro.
#[cfg(target_arch = "x86_64")]
mod vnni {
    use archmage::{X64V4xToken, arcane};

    use crate::quantize::CodeLine;

    #[arcane(import_intrinsics)]
    pub(super) fn sums(_: X64V4xToken, rows: &[CodeLine<u8>], vector: &[CodeLine<i8>], sums: &mut [i32]) {
        for (row, sum) in rows.chunks_exact(vector.len()).zip(sums) {
            let mut words = _mm512_setzero_si512();
            for (codes, factors) in row.iter().zip(vector) {
                let (codes, factors) = (_mm512_loadu_si512(&codes.0), _mm512_loadu_si512(&factors.0));
                words = _mm512_dpbusd_epi32(words, codes, factors);
            }
            *sum = _mm512_reduce_add_epi32(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn every_kind_of_processor_makes_the_same_sums() {
        let mut random = StdRng::seed_from_u64(5);
        for lines in [1, 2, 6, 1024] {
            let rows: Vec<CodeLine<u8>> =
                (0..lines * 3).map(|_| CodeLine(std::array::from_fn(|_| random.random()))).collect();
            let vector: Vec<CodeLine<i8>> = (0..lines)
                .map(|_| CodeLine(std::array::from_fn(|_| random.random_range(-127..=127))))
                .collect();
            let (mut best, mut plain) = ([0; 3], [0; 3]);
            IntegerArch::best().sums(&rows, &vector, &mut best);
            IntegerArch::Compiled(Arch::Scalar).sums(&rows, &vector, &mut plain);
            assert_eq!(best, plain, "{lines}");
        }
        // The greatest sum that a vector of the greatest dimension can have.
        let (rows, vector) = (vec![CodeLine([255; 64]); 1024], vec![CodeLine([127; 64]); 1024]);
        let mut sums = [0];
        IntegerArch::best().sums(&rows, &vector, &mut sums);
        assert_eq!(sums, [255 * 127 * 65_536]);
    }
}
