//! Which kernel solves a system, or inverts a matrix, by LU factors that are not kept.

use crate::lu::route::{LANES, PARALLEL};
use crate::matrix::layout::Layout;
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};
use crate::registers;
use crate::simd::kind::Kind;
use crate::triangular;
use crate::triangular::route::unblocked;

routes! {
    /// How a system is solved: an inverse has the identity on the right.
    pub(crate) enum Route {
        /// By [`unblocked::solve`](crate::unblocked::solve): nothing is prepared.
        Unblocked,
        /// By [`lanes::lu::solve`](crate::lanes::lu::solve), in a lane of the registers.
        Lanes,
        /// By the routines of [`lu`](crate::lu), several matrices with one call.
        Grouped,
        /// By the routines of [`lu`](crate::lu), each matrix with a call of its own, on one thread.
        Factors,
        /// By the routines of [`lu`](crate::lu), on all threads.
        Parallel,
    }
}

/// The right-hand sides up to which a batch goes through lanes: a tile of A and B of so many columns
/// for f64 and n = 16 takes the nearest cache, 48 KiB.
const LANES_SIDES: usize = 32;

/// The order up to which several matrices are factored with one call, and one without others on one thread: that up
/// to which registers serve.
const GROUPED: usize = registers::ROWS;

/// How each system of a batch is solved, n × n, with nrhs right-hand sides; an inverse has n.
pub(crate) fn route(kind: Kind, batch: usize, n: usize, nrhs: usize) -> Route {
    if n == 0 || nrhs == 0 {
        Route::Grouped
    } else if batch < BATCH && n.max(nrhs) <= unblocked(kind, Layout::Rows, nrhs) {
        Route::Unblocked
    } else if batch >= BATCH && n <= LANES && nrhs <= LANES_SIDES {
        Route::Lanes
    } else if n <= GROUPED {
        Route::Grouped
    } else if n >= PARALLEL || batch == 1 {
        Route::Parallel
    } else {
        Route::Factors
    }
}

/// The products of numbers that a system takes.
pub(crate) fn products(n: usize, nrhs: usize) -> usize {
    n.saturating_mul(n).saturating_mul(n / 3 + nrhs)
}

/// How a matrix is inverted whose LU factors are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inverse {
    /// By [`registers::inverse`].
    Registers,
    /// By strips of columns, on one thread.
    Blocked,
    /// By strips of columns, on all threads.
    Parallel,
}

/// How each n × n matrix is inverted whose LU factors are there.
pub(crate) fn inverse(kind: Kind, n: usize) -> Inverse {
    if registers::serve(kind, n) {
        Inverse::Registers
    } else if n >= triangular::route::PARALLEL {
        Inverse::Parallel
    } else {
        Inverse::Blocked
    }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("solve", Route, ["n", "nrhs"], |kind, batch, [n, nrhs]| route(kind, batch, n, nrhs)),
    routine!("inv", Route, ["n"], |kind, batch, [n]| route(kind, batch, n, n)),
];
