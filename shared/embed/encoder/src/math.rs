//! Functions of one number, as straight-line code that the compiler can do for many numbers at once.

#![expect(
    clippy::inline_always,
    reason = "they must be compiled into the function for each kind of processor"
)]

use pulp::Simd;

/// `a * b + c`. Where the processor cannot do that in one step, doing it exactly would be a slow library call.
#[inline(always)]
pub(crate) fn fused<S: Simd>(a: f32, b: f32, c: f32) -> f32 {
    if S::F32_LANES > 1 { a.mul_add(b, c) } else { a * b + c }
}

/// The exponential function, to about one part in ten million. Arguments beyond ±87 are cut.
#[inline(always)]
pub(crate) fn exp<S: Simd>(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, the first with few enough bits that n times it is exact.
    const LN_2_HIGH: f32 = 355.0 / 512.0;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Adding this leaves no room for a fraction: the sum is rounded to a whole number, and its low bits are that number.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 87.0);
    let shifted = fused::<S>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fused::<S>(n, -LN_2_LOW, fused::<S>(n, -LN_2_HIGH, x));
    // The Taylor series; the next term is below 2^-24 for such r.
    let p = fused::<S>(r, 1.0 / 5040.0, 1.0 / 720.0);
    let p = fused::<S>(r, p, 1.0 / 120.0);
    let p = fused::<S>(r, p, 1.0 / 24.0);
    let p = fused::<S>(r, p, 1.0 / 6.0);
    let p = fused::<S>(r, p, 0.5);
    let p = fused::<S>(r, p, 1.0);
    let p = fused::<S>(r, p, 1.0);
    // n to the exponent's place; what is above it falls out.
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    p * power
}

/// The Gaussian error linear unit, with the error function by formula 7.1.26 of Abramowitz and Stegun (absolute error below
/// 1.5e-7).
#[inline(always)]
pub(crate) fn gelu<S: Simd>(x: f32) -> f32 {
    let z = x * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / fused::<S>(z.abs(), 0.327_591_1, 1.0);
    let p = fused::<S>(t, 1.061_405_4, -1.453_152_1);
    let p = fused::<S>(t, p, 1.421_413_8);
    let p = fused::<S>(t, p, -0.284_496_72);
    let p = fused::<S>(t, p, 0.254_829_6);
    let tail = p * t * exp::<S>(-z * z);
    let error = (1.0 - tail).copysign(z);
    0.5 * x * (1.0 + error)
}

/// The Gaussian error linear unit as some models approximate it: `x / 2 (1 + tanh u)` with `u = √(2/π) (x + 0.044715 x³)`,
/// which is `x / (1 + e^(-2u))`.
#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(x: f32) -> f32 {
    const FACTOR: f32 = 2.0 * 0.797_884_6;
    let twice = FACTOR * fused::<S>(0.044_715 * x * x, x, x);
    x / (1.0 + exp::<S>(-twice))
}
