//! Sums of products of whole numbers, as each kind of processor makes them. All give the same sums.

use super::{Int8Panel, OutputNumbers};
use crate::InstructionSet;

#[cfg(target_arch = "x86_64")]
use archmage::{SimdToken as _, X64V3Token, X64V4Token, X64V4xToken};

/// The instruction that makes the sums. Each value that names one is proof that this processor has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IntegerDot {
    /// Four products of bytes in each of sixteen words (`vpdpbusd`).
    #[cfg(target_arch = "x86_64")]
    Vnni(X64V4xToken),
    /// Two products of half words in each of sixteen words (`vpmaddwd`).
    #[cfg(target_arch = "x86_64")]
    WideMadd(X64V4Token),
    /// The same in eight words.
    #[cfg(target_arch = "x86_64")]
    NarrowMadd(X64V3Token),
    /// What every processor has.
    Plain,
}

impl IntegerDot {
    /// The best one of these instructions.
    pub(crate) fn of(instructions: InstructionSet) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let found = match instructions {
                InstructionSet::Vnni => X64V4xToken::summon().map(Self::Vnni),
                InstructionSet::Wide => X64V4Token::summon().map(Self::WideMadd),
                InstructionSet::Narrow => X64V3Token::summon().map(Self::NarrowMadd),
                InstructionSet::Plain => None,
            };
            if let Some(found) = found {
                return found;
            }
        }
        let _ = instructions;
        Self::Plain
    }

    /// Whether it is faster than products of `f32`.
    pub(crate) fn is_fast(self) -> bool {
        !matches!(self, Self::Plain)
    }

    /// How many inputs lie together in a word.
    #[inline(always)]
    pub(crate) fn inputs_of_a_word(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::WideMadd(_) | Self::NarrowMadd(_) => 2,
            _ => 4,
        }
    }

    /// How many words hold these inputs.
    #[inline(always)]
    pub(crate) fn words(self, inputs: usize) -> usize {
        inputs.div_ceil(self.inputs_of_a_word())
    }

    /// Weights in a word; those that it lacks are zero.
    pub(crate) fn word(self, weights: &[i8]) -> i32 {
        let bits = 32 / self.inputs_of_a_word();
        let mask = u32::MAX >> (32 - bits);
        let places = weights.iter().enumerate();
        let word = |word, (place, weight): (usize, &i8)| {
            word | (i32::from(*weight).cast_unsigned() & mask) << (place * bits)
        };
        places.fold(0, word).cast_signed()
    }

    /// What a block times each of `P` panels stands for, bias included. A row of a panel takes `C` registers.
    #[inline(always)]
    pub(crate) fn tile<const M: usize, const N: usize, const C: usize, const P: usize>(
        self,
        block: &[[i32; M]],
        known: &OutputNumbers<M>,
        panels: [Int8Panel<'_, N>; P],
        to: &mut [[[f32; N]; M]; P],
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni(token) => x86::vnni::<M, N, C, P>(token, block, known, panels, to),
            #[cfg(target_arch = "x86_64")]
            Self::WideMadd(token) => x86::wide_madd::<M, N, C, P>(token, block, known, panels, to),
            #[cfg(target_arch = "x86_64")]
            Self::NarrowMadd(token) => x86::narrow_madd::<M, N, C, P>(token, block, known, panels, to),
            Self::Plain => plain(block, known, panels, to),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums are rounded as all numbers between two products are")]
fn plain<const M: usize, const N: usize, const P: usize>(
    block: &[[i32; M]],
    known: &OutputNumbers<M>,
    panels: [Int8Panel<'_, N>; P],
    to: &mut [[[f32; N]; M]; P],
) {
    for (to, panel) in to.iter_mut().zip(panels) {
        let mut sums = [[0; N]; M];
        for (weights, states) in block.iter().zip(panel.words) {
            for (sums, weights) in sums.iter_mut().zip(weights) {
                let weights = weights.to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
                for (sum, states) in sums.iter_mut().zip(states) {
                    for (weight, state) in weights.iter().zip(states.to_le_bytes()) {
                        *sum += weight * i32::from(state);
                    }
                }
            }
        }
        for i in 0..M {
            for j in 0..N {
                let start = known.sum[i] * panel.least[j] + known.bias[i];
                to[i][j] = sums[i][j] as f32 * (known.scale[i] * panel.step[j]) + start;
            }
        }
    }
}

/// One function for each instruction. `archmage` finds out at run time whether the processor has it; that and the call, which
/// takes `unsafe`, are in its macro.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use archmage::{X64V3Token, X64V4Token, X64V4xToken, arcane};

    use super::{Int8Panel, OutputNumbers};

    /// The body is the same but for how many words a register holds, and the instructions.
    macro_rules! tile {
        (
            $name:ident, $token:ident, $lanes:literal,
            whole: $zero:ident $load:ident $repeat:ident,
            float: $convert:ident $load_floats:ident $repeat_float:ident $multiply:ident $multiply_add:ident $store:ident,
            |$sum:ident, $states:ident, $weights:ident| $dot:expr
        ) => {
            #[arcane(import_intrinsics)]
            pub(super) fn $name<const M: usize, const N: usize, const C: usize, const P: usize>(
                _token: $token,
                block: &[[i32; M]],
                known: &OutputNumbers<M>,
                panels: [Int8Panel<'_, N>; P],
                to: &mut [[[f32; N]; M]; P],
            ) {
                // They stay in registers as long as they are only ever named by numbers known beforehand.
                let mut sums = [[[$zero(); C]; P]; M];
                let mut rows = panels;
                for p in 0..P {
                    // Of the same length, which spares looking at every step whether there is another row.
                    rows[p].words = &panels[p].words[..block.len()];
                }
                for (k, weights) in block.iter().enumerate() {
                    let mut states = [[$zero(); C]; P];
                    for p in 0..P {
                        let (parts, _) = rows[p].words[k].as_chunks::<$lanes>();
                        for c in 0..C {
                            states[p][c] = $load(&parts[c]);
                        }
                    }
                    for i in 0..M {
                        let $weights = $repeat(weights[i]);
                        for p in 0..P {
                            for c in 0..C {
                                let ($sum, $states) = (sums[i][p][c], states[p][c]);
                                sums[i][p][c] = $dot;
                            }
                        }
                    }
                }
                for p in 0..P {
                    let (least, _) = panels[p].least.as_chunks::<$lanes>();
                    let (step, _) = panels[p].step.as_chunks::<$lanes>();
                    for c in 0..C {
                        let (least, step) = ($load_floats(&least[c]), $load_floats(&step[c]));
                        for i in 0..M {
                            let scale = $multiply($repeat_float(known.scale[i]), step);
                            let start = $repeat_float(known.bias[i]);
                            let start = $multiply_add($repeat_float(known.sum[i]), least, start);
                            let product = $multiply_add($convert(sums[i][p][c]), scale, start);
                            let (parts, _) = to[p][i].as_chunks_mut::<$lanes>();
                            $store(&mut parts[c], product);
                        }
                    }
                }
            }
        };
    }

    tile! {
        vnni, X64V4xToken, 16,
        whole: _mm512_setzero_si512 _mm512_loadu_si512 _mm512_set1_epi32,
        float: _mm512_cvtepi32_ps _mm512_loadu_ps _mm512_set1_ps _mm512_mul_ps _mm512_fmadd_ps _mm512_storeu_ps,
        |sum, states, weights| _mm512_dpbusd_epi32(sum, states, weights)
    }
    tile! {
        wide_madd, X64V4Token, 16,
        whole: _mm512_setzero_si512 _mm512_loadu_si512 _mm512_set1_epi32,
        float: _mm512_cvtepi32_ps _mm512_loadu_ps _mm512_set1_ps _mm512_mul_ps _mm512_fmadd_ps _mm512_storeu_ps,
        |sum, states, weights| _mm512_add_epi32(sum, _mm512_madd_epi16(states, weights))
    }
    tile! {
        narrow_madd, X64V3Token, 8,
        whole: _mm256_setzero_si256 _mm256_loadu_si256 _mm256_set1_epi32,
        float: _mm256_cvtepi32_ps _mm256_loadu_ps _mm256_set1_ps _mm256_mul_ps _mm256_fmadd_ps _mm256_storeu_ps,
        |sum, states, weights| _mm256_add_epi32(sum, _mm256_madd_epi16(states, weights))
    }
}
