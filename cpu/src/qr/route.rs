//! Which kernel factors a matrix as Q·R, or works with such a Q.

use std::ops::RangeInclusive;

use super::tall::block_rows;
use crate::parallel::groups;
use crate::parallel::routes::{Routine, routes, routine};
use crate::registers;
use crate::simd::kind::Kind;
use crate::unblocked;

routes! {
    /// How a matrix is factored, or a Q formed or applied.
    pub(crate) enum Route {
        /// At once: Q of one row is a number, and R a multiple of the row.
        OneRow,
        /// By [`unblocked::qr`]: nothing is prepared.
        Unblocked,
        /// By [`lanes::qr`](crate::lanes::qr), in a lane of the registers.
        Lanes,
        /// By [`registers::qr`].
        Registers,
        /// By the Gram matrix of one much taller than wide, in [`tall`](super::tall), on one thread.
        Tall,
        /// By the Gram matrices of its blocks of rows, in [`tall`](super::tall), on all threads.
        TallParallel,
        /// By blocks of reflectors, on one thread.
        Blocked,
        /// By panels and strips, on all threads.
        Parallel,
    }
}

impl Route {
    /// Whether a matrix goes by its Gram matrix, or those of its blocks.
    pub(crate) fn by_gram_matrix(self) -> bool {
        matches!(self, Self::Tall | Self::TallParallel)
    }
}

/// The number of rows and of columns up to which a batch goes through lanes.
const LANES: usize = 32;

/// The columns of a matrix that goes by its Gram matrix, its least rows over its columns, and its least elements. On
/// two cores with AVX-512, us, f32, f64, c64 and c128, against blocks of reflectors: 128 x 16 12, 14, 21 and 36 (5, 7,
/// 12 and 17), 256 x 32 43, 58, 111 and 184 (52, 77, 116 and 195), 2000 x 16 115, 149, 259 and 243 (134, 242, 340 and
/// 517), 1024 x 128 1150, 2001, 3765 and 7788 (1325, 2492, 3578 and 6912), 2048 x 128 1483, 2340, 4364 and 8126
/// (2712, 4716, 7446 and 17528), 20000 x 128 9788, 17754, 33774 and 85690 (31820, 75835, 98562 and 208428).
const TALL_COLUMNS: RangeInclusive<usize> = 8..=128;
const TALL: usize = 8;
const TALL_COMPLEX: usize = 12;
const TALL_ELEMENTS: usize = 8192;

/// The number of reflectors from which one matrix is shared out among all threads. On two cores with
/// AVX-512, f64, against one without panels: n = 256 0.76 ms and 0.58, n = 384 1.35 and 1.6, n = 1024 16 and
/// 27; `orgqr` 0.40 and 0.49, 1.0 and 1.4, 15 and 27. Serially panels cost 5 % more at n = 2048, 25 % at 384.
/// With AVX2, `qr` of n = 256, threads started for it: f64 2.1 and 1.9, f32 1.7 and 1.2, c64 3.7 and 3.5, c128
/// 6.5 and 8.5.
pub(crate) const PARALLEL: usize = 321;
/// And that with pivoting. On two cores with AVX-512, on one thread and shared, ms: n = 256 f32 1.0 and 1.4, f64 1.8
/// and 1.9, c128 3.6 and 3.5. Of 512, where panels that read one column at a time on one thread took 11.8, 14.9 and
/// 48, it takes 5.7, 9.8 and 22.
const PIVOTED_PARALLEL: usize = 320;

/// How each m × n matrix of a batch, by rows, is factored with c columns of Q: min(m, n), also where R alone is wanted,
/// or m.
pub(crate) fn route(kind: Kind, batch: usize, (m, n, c): (usize, usize, usize)) -> Route {
    let by_lanes = groups::pay(batch, m.max(n), LANES);
    if m == 0 || n == 0 {
        Route::Blocked
    } else if m == 1 && !(kind.complex && by_lanes) {
        Route::OneRow
    } else if by_lanes {
        Route::Lanes
    } else if unblocked::qr::serve(m, n) {
        Route::Unblocked
    } else if c == n && is_tall(kind, m, n) {
        if m > block_rows(kind, n) { Route::TallParallel } else { Route::Tall }
    } else if registers::qr::serve(kind, m, n) {
        Route::Registers
    } else if m.min(n) >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// Whether a matrix is so much taller than wide that it goes by its Gram matrix.
fn is_tall(kind: Kind, m: usize, n: usize) -> bool {
    let tall = if kind.complex { TALL_COMPLEX } else { TALL };
    TALL_COLUMNS.contains(&n) && m / n >= tall && m.saturating_mul(n) >= TALL_ELEMENTS
}

/// How each m × n matrix of a batch, by columns, is factored.
pub(crate) fn geqrf(batch: usize, m: usize, n: usize) -> Route {
    by_columns(batch, m.max(n), m.min(n))
}

/// How columns of each m × m Q of a batch are formed from t reflectors.
pub(crate) fn orgqr(batch: usize, m: usize, t: usize) -> Route {
    by_columns(batch, m, t)
}

/// How t reflectors, which lie in r rows and p columns, are applied to `others` columns, or rows, of r elements.
pub(crate) fn ormqr(batch: usize, r: usize, others: usize, p: usize, t: usize) -> Route {
    if t == 0 { Route::Blocked } else { by_columns(batch, r.max(others).max(p), t.min(others)) }
}

/// How matrices by columns go, with so many rows and columns at most, and so many reflectors.
fn by_columns(batch: usize, largest: usize, reflectors: usize) -> Route {
    if groups::pay(batch, largest, LANES) {
        Route::Lanes
    } else if reflectors >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// How each m × n matrix of a batch is factored with pivoting.
pub(crate) fn geqp3(m: usize, n: usize) -> Route {
    if m.min(n) >= PIVOTED_PARALLEL { Route::Parallel } else { Route::Blocked }
}

/// The products of numbers that k reflectors of m elements take, each of which meets n columns.
pub(crate) fn products(m: usize, n: usize, k: usize) -> usize {
    m.saturating_mul(n).saturating_mul(k)
}

/// The choices of this family, by name: `qr` with min(m, n) columns of Q, and with all of them. The sizes of `ormqr` are
/// those of [`ormqr()`], for Q on either side.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("qr", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, batch, (m, n, m.min(n)))
    }),
    routine!("qr_all", Route, ["m", "n"], |kind, batch, [m, n]| route(kind, batch, (m, n, m))),
    routine!("qr_r", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, batch, (m, n, m.min(n)))
    }),
    routine!("geqrf", Route, ["m", "n"], |_, batch, [m, n]| geqrf(batch, m, n)),
    routine!("orgqr", Route, ["m", "t"], |_, batch, [m, t]| orgqr(batch, m, t)),
    routine!("ormqr", Route, ["r", "others", "p", "t"], |_, batch, [r, others, p, t]| {
        ormqr(batch, r, others, p, t)
    }),
    routine!("geqp3", Route, ["m", "n"], |_, _, [m, n]| geqp3(m, n)),
];
