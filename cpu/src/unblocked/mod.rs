//! LU and Cholesky factorisation and triangular solves of a few small matrices, and LU of many real ones, with nothing
//! prepared and next to nothing allocated.
//!
//! A call for one matrix comes after much other code, so that what it costs is above all the code it
//! has to fetch, and what it has to wait for. What is here is short, and takes memory as it lies: number by
//! number, which is the same for both layouts, or by rows, where a register holds neighbours in one.

pub(crate) mod cholesky;
pub(crate) mod lu;
pub(crate) mod qr;
pub(crate) mod solve;
pub(crate) mod triangular;

use crate::simd::kind::Kind;

/// The largest order of a matrix, and that of a complex one, which goes number by number. Here and below: one core of
/// Zen 5, ns, as larger matrices go and so. `lu` of f64 and n = 9 820 and 230, 16 910 and 380, 24 2090 and 810, 32 2650 and
/// 1440; of a batch, two at once and one by one, 20 1140 and 720, 24 1250 and 800, 32 1790 and 1440, in f32 32 1280 and
/// 1010. With AVX2 alone 20 1450 and 640, 32 2450 and 1910. In c128 one of 9 1230 and 350, of 16 1590 and 1210.
pub(crate) const ORDER: usize = 32;
const COMPLEX_ORDER: usize = 20;
/// The largest order of a matrix that lies by columns, f64 of 16 1150 and 680, and of a system with a few right-hand
/// sides: both go number by number.
pub(crate) const NUMBERS: usize = 16;
/// The right-hand sides from which on they are worth a register: as many, and unknowns, 4 60 and 80, 8 150 and
/// 80.
pub(crate) const WIDE: usize = 8;

/// The largest order of a matrix that lies by rows and that [`factor_rows`](lu::factor_rows) pays for.
pub(crate) fn largest_factored(kind: Kind) -> usize {
    if kind.complex { COMPLEX_ORDER } else { ORDER }
}
