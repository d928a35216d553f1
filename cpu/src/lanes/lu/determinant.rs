//! Determinants, as sign and logarithm, with one small matrix in each lane.

use lapax_core::{Items, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::{Keep, factor, row_numbers};
use crate::lanes::pack::{Shape, pack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::lane::{FOUR, Size};
use crate::simd::packed::Packed;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES};
use crate::{Real as _, Scalar};

/// A product of pivots.
pub(crate) struct Product<T> {
    sign: T,
    singular: bool,
    /// From 1 to 2.
    fraction: f64,
    exponent: i64,
    /// The sum of the logarithms of what has no fraction: 0, NaN or infinity.
    rest: f64,
}

impl<T: Scalar> Product<T> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { sign: T::ONE, singular: false, fraction: 1.0, exponent: 0, rest: 0.0 }
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, pivot: T) {
        /// Of the power of two that makes any number a normal one.
        const SHIFT: i64 = 64;
        let size = pivot.abs();
        if pivot == T::ZERO {
            self.singular = true;
            return;
        }
        if T::IS_COMPLEX {
            self.sign *= pivot.unscale(size);
        } else if pivot.re() < T::Real::ZERO {
            self.sign = -self.sign;
        }
        let mut size = size.to_f64();
        if !(f64::MIN_POSITIVE..=f64::MAX).contains(&size) {
            if size > 0.0 && size < f64::MIN_POSITIVE {
                // 2⁶⁴.
                size *= 18_446_744_073_709_551_616.0;
                self.exponent -= SHIFT;
            } else {
                self.rest += size.ln();
                return;
            }
        }
        let (fraction, exponent) = split(self.fraction * split(size).0);
        self.fraction = fraction;
        self.exponent += split(size).1 + exponent;
    }

    /// Sign and logarithm, of the determinant of a matrix with so many swaps of rows.
    #[inline(always)]
    pub(crate) fn result(self, odd: bool) -> (T, T::Real) {
        #[allow(clippy::cast_precision_loss, reason = "a sum of fewer than 2³² exponents")]
        let power = self.exponent as f64 * std::f64::consts::LN_2;
        if self.singular {
            return (T::ZERO, T::Real::from_f64(f64::NEG_INFINITY));
        }
        let logabs = T::Real::from_f64(self.fraction.ln() + power + self.rest);
        (if odd { -self.sign } else { self.sign }, logabs)
    }
}

/// A normal number as a number from 1 to 2 and the exponent of a power of two.
#[inline(always)]
fn split(x: f64) -> (f64, i64) {
    const FRACTION: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let bits = x.to_bits();
    #[allow(clippy::cast_possible_wrap, reason = "eleven bits")]
    let exponent = (bits >> 52) as i64 - 1023;
    (f64::from_bits((bits & FRACTION) | ONE), exponent)
}

/// Finds those of a group.
pub(crate) struct Find {
    pub(crate) n: usize,
}

/// What one thread reuses.
pub(crate) struct Scratch<R> {
    a: Tile<R>,
    swaps: Tile<R>,
    /// The row numbers, as reals.
    rows: Padded<R>,
}

pub(crate) type Operands<'a, T> =
    (Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, <T as lapax_core::Scalar>::Real>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Find {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        let n = self.n;
        Scratch {
            a: Tile::new::<T>(n * n, lanes),
            swaps: Tile::new::<T::Real>(n, lanes),
            rows: row_numbers(n),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T::Real>,
        group: Operands<'_, T>,
        count: usize,
    ) {
        match self.n {
            4 => find::<S, T, _>(simd, scratch, group, count, FOUR),
            n => find::<S, T, _>(simd, scratch, group, count, n),
        }
    }
}

#[apart]
fn find<S: Simd, T: Scalar, N: Size>(
    simd: S,
    scratch: &mut Scratch<T::Real>,
    (a, sign, logabs): Operands<'_, T>,
    count: usize,
    n: N,
) {
    let (steps, n) = (n, n.get());
    let Scratch { a: tile, swaps, rows } = scratch;
    let (tile, swaps) = (tile.registers::<S>(), swaps.registers::<S>());
    // The transpose has the same determinant, and is read without transposing.
    pack(simd, a.data(), count, Shape { m: n, n, order: Layout::Columns }, tile);
    factor::<S, T::Lane<S>>(simd, tile, rows, Keep::Swaps(&mut *swaps), (n, n), steps);
    let mut products: [Product<T>; MAX_LANES] = std::array::from_fn(|_| Product::new());
    let mut odd = [false; MAX_LANES];
    for j in 0..n {
        let mut pivots = [T::ZERO; MAX_LANES];
        T::Lane::<S>::load(simd, tile, j * n + j).write(&mut pivots);
        let mut partners = [rows[0]; MAX_LANES];
        T::Real::write_register::<S>(swaps[j], &mut partners);
        for lane in 0..count {
            products[lane].take(pivots[lane]);
            odd[lane] ^= partners[lane] != rows[j];
        }
    }
    let results = sign.into_data().iter_mut().zip(logabs.into_data());
    for ((product, odd), (sign, logabs)) in products.into_iter().zip(odd).zip(results) {
        (*sign, *logabs) = product.result(odd);
    }
}
