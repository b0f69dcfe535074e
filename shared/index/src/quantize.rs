//! Vectors in eight bits, and how far they are from what they were.
//!
//! A vector is `scale × codes + rest`, where the codes are whole numbers of eight bits and the lengths of the two terms are
//! kept. So the product of two codes bounds that of the vectors (by Cauchy and Schwarz), and a search in eight bits that looks
//! at every row whose bound is high enough finds what a search of the vectors themselves finds.

use pulp::Arch;

/// Codes in a [`CodeLine`].
const LINE: usize = 64;

/// Vectors whose greatest number is beyond these are not given codes: their squares would be beyond `f32`.
const SCALES: std::ops::RangeInclusive<f32> = 1e-12..=1e12;

/// Codes that lie in one line of the processor's caches, which is its widest register too. Those beyond a vector's dimension
/// are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct CodeLine<T>(pub(crate) [T; LINE]);

/// How many lines hold the codes of a vector.
pub(crate) const fn lines(dimension: usize) -> usize {
    dimension.div_ceil(LINE)
}

/// How many bytes the codes of a vector take.
pub(crate) const fn code_bytes(dimension: usize) -> usize {
    lines(dimension) * LINE
}

/// The share of a sum of `dimension` products of `f32`, made in any order, that rounding can be: twice what theory allows.
#[expect(clippy::cast_precision_loss, reason = "dimensions are far below 2^24")]
pub(crate) fn rounding(dimension: usize) -> f32 {
    (dimension + 16) as f32 * f32::EPSILON
}

/// What is known of a vector that was given codes. All are finite and not negative, but for the error of a vector without codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantized {
    /// What a code of one stands for.
    pub(crate) scale: f32,
    /// The most that the length of `scale × codes` can be.
    pub(crate) length: f32,
    /// The most that the length of the rest can be; infinite for a vector that cannot be given codes.
    pub(crate) error: f32,
}

/// Gives a vector codes from −127 to 127, which are added to `codes`.
pub(crate) fn quantize(vector: &[f32], codes: &mut Vec<CodeLine<i8>>) -> Quantized {
    Arch::new().dispatch(
        #[inline(always)]
        || quantize_here(vector, codes),
    )
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it must be compiled into the function for each kind of processor")]
#[expect(clippy::cast_possible_truncation, reason = "codes are from −127 to 127")]
fn quantize_here(vector: &[f32], codes: &mut Vec<CodeLine<i8>>) -> Quantized {
    let mut greatest = [0.0_f32; LINE];
    for numbers in vector.chunks(LINE) {
        for (greatest, number) in greatest.iter_mut().zip(numbers) {
            *greatest = greatest.max(number.abs());
        }
    }
    let greatest = greatest.into_iter().fold(0.0, f32::max);
    if !SCALES.contains(&greatest) {
        let line = CodeLine([0; LINE]);
        codes.extend(std::iter::repeat_n(line, lines(vector.len())));
        // A vector of zeros is what its codes say.
        let error = if greatest == 0.0 { 0.0 } else { f32::INFINITY };
        return Quantized { scale: 0.0, length: 0.0, error };
    }
    let scale = greatest / 127.0;
    let inverse = scale.recip();
    let (mut lengths, mut errors) = ([0.0_f32; LINE], [0.0_f32; LINE]);
    for numbers in vector.chunks(LINE) {
        let mut line = [0; LINE];
        for (((code, number), length), error) in
            line.iter_mut().zip(numbers).zip(&mut lengths).zip(&mut errors)
        {
            let whole = (number * inverse).round_ties_even().clamp(-127.0, 127.0);
            *code = whole as i8;
            let stands_for = whole * scale;
            *length += stands_for * stands_for;
            *error += (number - stands_for) * (number - stands_for);
        }
        codes.push(CodeLine(line));
    }
    let rounding = rounding(vector.len());
    let length = lengths.into_iter().sum::<f32>().sqrt() * (1.0 + rounding);
    let error = errors.into_iter().sum::<f32>().sqrt() * (1.0 + rounding) + length * rounding;
    Quantized { scale, length, error }
}

/// The codes of many vectors of one dimension, row by row, and what is known of each. A row's codes are kept 128 greater than
/// they are, because the processor multiplies bytes without a sign by bytes with one.
#[derive(Debug, Default)]
pub(crate) struct CodeMatrix {
    codes: Vec<CodeLine<u8>>,
    scales: Vec<f32>,
    lengths: Vec<f32>,
    errors: Vec<f32>,
}

/// Some rows of a [`CodeMatrix`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeRows<'a> {
    /// The codes plus 128, [`lines`] of the dimension for each row.
    pub(crate) codes: &'a [CodeLine<u8>],
    /// Of each row, [`Quantized::scale`].
    pub(crate) scales: &'a [f32],
    /// Of each row, [`Quantized::length`].
    pub(crate) lengths: &'a [f32],
    /// Of each row, [`Quantized::error`].
    pub(crate) errors: &'a [f32],
}

impl CodeMatrix {
    /// An empty one with room for these rows.
    pub(crate) fn with_capacity(rows: usize, dimension: usize) -> Self {
        let floats = || Vec::with_capacity(rows);
        let codes = Vec::with_capacity(rows * lines(dimension));
        Self { codes, scales: floats(), lengths: floats(), errors: floats() }
    }

    /// Adds vectors, which lie one after the other.
    pub(crate) fn extend(&mut self, vectors: &[f32], dimension: usize) {
        let mut codes = Vec::with_capacity(lines(dimension));
        for vector in vectors.chunks_exact(dimension) {
            codes.clear();
            let Quantized { scale, length, error } = quantize(vector, &mut codes);
            self.codes
                .extend(codes.iter().map(|line| CodeLine(line.0.map(|code| code.cast_unsigned() ^ 0x80))));
            self.scales.push(scale);
            self.lengths.push(length);
            self.errors.push(error);
        }
    }

    /// Adds a row, of which this is known and whose codes are these bytes.
    pub(crate) fn push(&mut self, known: Quantized, codes: &[u8]) {
        self.codes.extend(codes.as_chunks().0.iter().map(|line| CodeLine(*line)));
        self.scales.push(known.scale);
        self.lengths.push(known.length);
        self.errors.push(known.error);
    }

    /// Adds rows of another.
    pub(crate) fn copy(&mut self, rows: CodeRows<'_>) {
        self.codes.extend_from_slice(rows.codes);
        self.scales.extend_from_slice(rows.scales);
        self.lengths.extend_from_slice(rows.lengths);
        self.errors.extend_from_slice(rows.errors);
    }

    /// These rows; none where not all of them are there.
    pub(crate) fn rows(&self, rows: std::ops::Range<usize>, dimension: usize) -> CodeRows<'_> {
        let lines = lines(dimension);
        CodeRows {
            codes: self.codes.get(rows.start * lines..rows.end * lines).unwrap_or_default(),
            scales: self.scales.get(rows.clone()).unwrap_or_default(),
            lengths: self.lengths.get(rows.clone()).unwrap_or_default(),
            errors: self.errors.get(rows).unwrap_or_default(),
        }
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        let floats = self.scales.capacity() + self.lengths.capacity() + self.errors.capacity();
        self.codes.capacity() * LINE + floats * size_of::<f32>()
    }
}
