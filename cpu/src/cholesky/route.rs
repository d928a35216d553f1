//! Which kernel factors a Hermitian matrix as A = L·Lᴴ.

use crate::matrix::layout::Layout;
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};
use crate::registers;
use crate::simd::kind::Kind;

routes! {
    /// How a matrix is factored.
    pub(crate) enum Route {
        /// By [`unblocked::cholesky`](crate::unblocked::cholesky): nothing is prepared.
        Unblocked,
        /// By [`lanes::cholesky`](crate::lanes::cholesky), in a lane of the registers.
        Lanes,
        /// By [`registers::cholesky`].
        Registers,
        /// By recursion, on one thread.
        Blocked,
        /// By strips of rows, on all threads.
        Parallel,
    }
}

routes! {
    /// How a factor is updated.
    pub(crate) enum Update {
        /// By [`lanes::cholesky_update`](crate::lanes::cholesky_update), in a lane of the registers.
        Lanes,
        /// By rotations of one row after the other.
        Unblocked,
    }
}

/// The largest order of a real symmetric matrix for which nothing is prepared: f64 and f32 of 16 580 and 360, 550 and
/// 320, 24 840 and 730, 840 and 630, 32 1090 and 1260, 870 and 1000; of a complex one c128 and c64 24 1850 and 1340, 2150
/// and 1140, 28 2920 and 2000, 2530 and 1420, 32 2810 and 4980, 2630 and 3680; number by number c128 of 16 860 and so 590,
/// 20 1650 and 1050.
const UNBLOCKED: usize = 24;
const COMPLEX_UNBLOCKED: usize = 28;

/// The order up to which a batch goes through lanes: for f64, 0.07 us against 0.16 us at 8, 1.2 us
/// against 1.9 us at 32.
pub(crate) const LANES: usize = 32;

/// The order from which a matrix is cut into strips for all threads. On two cores with AVX-512, f64, an upper triangle,
/// against recursion on one: n = 384 0.51 ms and 0.45 with strips of 64, n = 512 1.22 ms and 0.89, n = 1024 7.4 ms and
/// 4.5, n = 2048 55 ms and 32. Serially strips cost 2 % more than recursion.
pub(crate) const PARALLEL: usize = 449;

/// The order up to which a batch of factors is updated in lanes. On one core with AVX-512 one after the other and in
/// lanes, f64 (c128): 12,500 of n = 4 1424 and 404 us (2167 and 1035), 781 of 16 515 and 272 (875 and 681), 195 of 32 348
/// and 285 (615 and 620), 48 of 64 238 and 286 (485 and 600).
const UPDATE_LANES: usize = 32;

/// How each n × n matrix of a batch is factored.
pub(crate) fn route(kind: Kind, layout: Layout, batch: usize, n: usize) -> Route {
    let rows = layout == Layout::Rows;
    if n == 0 {
        Route::Blocked
    } else if batch >= BATCH && n <= LANES {
        Route::Lanes
    } else if rows && batch < BATCH && n <= unblocked(kind) {
        Route::Unblocked
    } else if registers::cholesky::serve(kind, n) {
        Route::Registers
    } else if n >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// How each n × n factor of a batch is updated.
pub(crate) fn update(batch: usize, n: usize) -> Update {
    if batch >= BATCH && (1..=UPDATE_LANES).contains(&n) {
        Update::Lanes
    } else {
        Update::Unblocked
    }
}

/// The largest order of a matrix for which nothing is prepared.
pub(crate) fn unblocked(kind: Kind) -> usize {
    if kind.complex { COMPLEX_UNBLOCKED } else { UNBLOCKED }
}

/// The products of numbers that a factorisation takes.
pub(crate) fn products(n: usize) -> usize {
    n.saturating_mul(n).saturating_mul(n) / 6
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("cholesky", Route, ["n"], |kind, batch, [n]| route(kind, Layout::Rows, batch, n)),
    routine!("potrf", Route, ["n"], |kind, batch, [n]| route(kind, Layout::Columns, batch, n)),
    routine!("cholesky_update", Update, ["n"], |_, batch, [n]| update(batch, n)),
];
