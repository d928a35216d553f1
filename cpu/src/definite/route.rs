//! Which kernel solves a system with a Hermitian positive definite matrix.

use crate::cholesky;
use crate::cholesky::route::{LANES, PARALLEL};
use crate::matrix::layout::Layout;
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};
use crate::registers;
use crate::simd::kind::Kind;
use crate::triangular;
use crate::triangular::route::{Route as System, route as by_triangles};

routes! {
    /// How a system is solved whose factor is not there.
    pub(crate) enum Route {
        /// By [`unblocked::cholesky`](crate::unblocked::cholesky) and
        /// [`unblocked::triangular`](crate::unblocked::triangular): nothing is prepared.
        Unblocked,
        /// By [`lanes::definite`](crate::lanes::definite), in a lane of the registers.
        Lanes,
        /// By [`cholesky`](crate::cholesky::cholesky) and `cho_solve`, on one thread.
        Factors,
        /// By [`cholesky`](crate::cholesky::cholesky) and `cho_solve`, on all threads.
        Parallel,
    }
}

/// The numbers of X of one matrix up to which a batch goes through lanes: a tile of A and B of so many for f64 takes
/// what one of order 32 with as many right-hand sides takes.
const LANES_NUMBERS: usize = 32 * 32;

/// The order up to which a matrix without others has one thread: that up to which registers serve.
const ONE_THREAD: usize = registers::ROWS;

/// How each system of a batch is solved, n × n, with nrhs right-hand sides.
pub(crate) fn route(kind: Kind, batch: usize, n: usize, nrhs: usize) -> Route {
    let unblocked = triangular::route::unblocked(kind, Layout::Rows, nrhs);
    if n == 0 {
        Route::Factors
    } else if batch < BATCH && n.max(nrhs) <= unblocked.min(cholesky::route::unblocked(kind)) {
        Route::Unblocked
    } else if batch >= BATCH && n <= LANES && fit_lanes(n, nrhs) {
        Route::Lanes
    } else if n >= PARALLEL || n > ONE_THREAD && batch == 1 {
        Route::Parallel
    } else {
        Route::Factors
    }
}

/// Whether all of a system goes through lanes at once; else its triangles go one after the other.
pub(crate) fn fit_lanes(n: usize, nrhs: usize) -> bool {
    n.saturating_mul(nrhs) <= LANES_NUMBERS
}

/// The products of numbers that a system takes.
pub(crate) fn products(n: usize, nrhs: usize) -> usize {
    n.saturating_mul(n).saturating_mul(n / 6 + nrhs)
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("posv", Route, ["n", "nrhs"], |kind, batch, [n, nrhs]| route(kind, batch, n, nrhs)),
    routine!("posv_factor", Route, ["n", "nrhs"], |kind, batch, [n, nrhs]| {
        route(kind, batch, n, nrhs)
    }),
    routine!("cho_solve", System, ["n", "nrhs"], |kind, batch, [n, nrhs]| {
        by_triangles(kind, Layout::Rows, batch, n, nrhs)
    }),
];
