//! How often each lane's matrix is halved.

use lapax_core::{Real as _, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::Powers;
use super::diagonals::Structure;
use crate::matrix::exponential::Undo;
use crate::simd::exponential::power_of_two;
use crate::simd::lane::numbers;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, MAX_LANES, Reg, Vector};

type Lanes<R> = [R; MAX_LANES];

/// A number of at least |x|, and less than 1.09·|x|: max + (√2 − 1)·min of the parts of a complex one.
#[inline(always)]
fn modulus<S: Simd, X: Lane<S>>(simd: S, x: X) -> Vector<S, X::Real> {
    if X::PARTS == 1 {
        return x.re().abs();
    }
    let (re, im) = (x.re().abs(), x.im().abs());
    let factor = Vector::splat(simd, X::Real::from_f64(0.414_213_57));
    re.larger(im).add_mul(re.smaller(im), factor)
}

/// The largest and the least sum of a column's moduli; of finite matrices.
#[inline(always)]
pub(super) fn one_norms<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    a: &[Reg<S, X>],
) -> (Lanes<X::Real>, Lanes<X::Real>) {
    let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
    let (mut largest, mut least) = (zero, None);
    for column in a.chunks_exact(n * X::PARTS) {
        let mut sum = zero;
        for i in 0..n {
            sum = sum + modulus(simd, X::load(simd, column, i));
        }
        largest = largest.larger(sum);
        least = Some(least.map_or(sum, |least: Vector<_, _>| least.smaller(sum)));
    }
    (numbers(largest), numbers(least.unwrap_or(zero)))
}

/// X ← 2⁻ˢ·A, zero where A is diagonal.
#[inline(always)]
pub(super) fn halve<S: Simd, X: Lane<S>>(
    simd: S,
    structure: &Structure<S, X::Real>,
    halvings: [i32; MAX_LANES],
    a: &[Reg<S, X>],
    x: &mut [Reg<S, X>],
) {
    let [first, second] = powers_of_two(simd, halvings.map(|halvings| -halvings));
    let zero = X::splat(simd, X::Scalar::ZERO);
    for (x, a) in x.chunks_exact_mut(X::PARTS).zip(a.chunks_exact(X::PARTS)) {
        let scaled = X::load(simd, a, 0).scale(first).scale(second);
        X::choose(structure.diagonal, zero, scaled).store(x, 0);
    }
}

/// Two factors of 2ᵉ in each lane, which may be no normal number itself.
#[inline(always)]
fn powers_of_two<S: Simd, R: LaneReal>(simd: S, e: [i32; MAX_LANES]) -> [Vector<S, R>; 2] {
    let halves = e.map(|e| [e / 2, e - e / 2].map(|e| R::from_f64(power_of_two(e))));
    [0, 1].map(|half| Vector::read(simd, &halves.map(|halves| halves[half])))
}

/// Takes back halvings that the norms of powers of X, and of powers of |X|, show to be too many.
#[inline(always)]
pub(super) fn undo<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    structure: &Structure<S, X::Real>,
    halvings: &mut [i32; MAX_LANES],
    a: &[Reg<S, X>],
    powers: &mut Powers<'_, Reg<S, X>>,
) {
    let (norms, least) = one_norms::<S, X>(simd, n, powers.x);
    let of_each = norms.map(Undo::new);
    let mut back = [0; MAX_LANES];
    for (lane, back) in back.iter_mut().enumerate() {
        *back = halvings[lane].min(of_each[lane].at_most(least[lane])).max(0);
    }
    if back == [0; MAX_LANES] {
        return;
    }
    let of_powers =
        [&*powers.x2, powers.x4, powers.x6].map(|power| one_norms::<S, X>(simd, n, power).0);
    for (lane, back) in back.iter_mut().enumerate() {
        *back = (*back).min(of_each[lane].by_powers(of_powers.map(|norms| norms[lane]))).max(0);
    }
    if back == [0; MAX_LANES] {
        return;
    }
    let logarithms = of_magnitudes::<S, X>(simd, n, of_each[0].steps(), powers.x);
    for (lane, back) in back.iter_mut().enumerate() {
        *back = (*back).min(of_each[lane].by_magnitudes(logarithms[lane])).max(0);
        halvings[lane] -= *back;
    }
    if back == [0; MAX_LANES] {
        return;
    }
    halve::<S, X>(simd, structure, *halvings, a, powers.x);
    for (power, times) in [(&mut *powers.x2, 2), (powers.x4, 4), (powers.x6, 6)] {
        // One by one: 2ᵏᵈ may overflow where the power vanishes.
        for _ in 0..times {
            double::<S, X>(simd, back, power);
        }
    }
}

/// X ← 2ᵈ·X.
#[inline(always)]
fn double<S: Simd, X: Lane<S>>(simd: S, doublings: [i32; MAX_LANES], x: &mut [Reg<S, X>]) {
    let [first, second] = powers_of_two(simd, doublings);
    for x in x.chunks_exact_mut(X::PARTS) {
        X::load(simd, x, 0).scale(first).scale(second).store(x, 0);
    }
}

/// log₂ ‖|X|ᵏ‖, by so many products of 1ᵀ with |X|.
#[apart]
fn of_magnitudes<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    steps: u32,
    x: &[Reg<S, X>],
) -> [f64; MAX_LANES] {
    /// The orders that a small group's row has room for.
    const ROOM: usize = 64;
    let splat = |x| Vector::<S, X::Real>::splat(simd, x);
    let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
    assert!(n <= ROOM, "lanes hold small matrices");
    let (mut row, mut next) = ([one; ROOM], [zero; ROOM]);
    let mut logarithms = [0.0; MAX_LANES];
    for _ in 0..steps {
        let mut largest = zero;
        for (column, next) in x.chunks_exact(n * X::PARTS).zip(&mut next) {
            *next = zero;
            for (i, &row) in row[..n].iter().enumerate() {
                *next = next.add_mul(row, modulus(simd, X::load(simd, column, i)));
            }
            largest = largest.larger(*next);
        }
        // Each step by powers of two, so that neither vanishes nor overflows what is not all zero.
        let powers = numbers(largest).map(|size| {
            let size = size.to_f64();
            if size > 0.0 { f64::from_bits(size.to_bits() & (0x7ff << 52)) } else { 1.0 }
        });
        for (logarithm, power) in logarithms.iter_mut().zip(powers) {
            *logarithm += power.log2();
        }
        let reciprocals = powers.map(|power| X::Real::from_f64(1.0 / power));
        let reciprocals = Vector::<S, X::Real>::read(simd, &reciprocals);
        for (row, next) in row[..n].iter_mut().zip(&next) {
            *row = *next * reciprocals;
        }
    }
    let largest = row[..n].iter().fold(zero, |largest, &x| largest.larger(x));
    for (logarithm, size) in logarithms.iter_mut().zip(numbers(largest)) {
        *logarithm += size.to_f64().log2();
    }
    logarithms
}
