//! Which kernel serves a banded system.

use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};
use crate::tridiagonal::route::LANES as TRIDIAGONAL_LANES;

routes! {
    /// How a system is solved.
    pub(crate) enum Route {
        /// By [`lanes::banded`](crate::lanes::banded), in a lane of the registers.
        Lanes,
        /// By one division for each row.
        Diagonal,
        /// By [`lanes::tridiagonal`](crate::lanes::tridiagonal), with copies of the diagonals of a few systems at a time.
        Copied,
        /// From both ends: a general system by [`tridiagonal_solve`](crate::tridiagonal::tridiagonal_solve), a
        /// definite one without pivoting.
        Tridiagonal,
        /// By elimination in a window that slides along the band.
        Window,
    }
}

routes! {
    /// How a definite matrix is factored, or its factor applied.
    pub(crate) enum Factor {
        /// By [`lanes::banded`](crate::lanes::banded), in a lane of the registers.
        Lanes,
        /// In a window that slides along the band, or row by row.
        Rows,
    }
}

/// The numbers of a matrix and its right-hand sides up to which a batch goes through lanes: with AVX-512 a group
/// takes 64 bytes for each, half a core's cache in all.
const LANES: usize = 8192;

/// Whether a batch of systems with so many numbers each goes through lanes.
fn lanes(batch: usize, numbers: usize) -> bool {
    batch >= BATCH && numbers <= LANES
}

/// How each system of a batch is solved, n × n with nrhs right-hand sides.
pub(crate) fn solve(
    batch: usize,
    (lower, upper): (usize, usize),
    (n, nrhs): (usize, usize),
) -> Route {
    // The band as it is given, and U beside it.
    let row = (lower + upper + 1).saturating_mul(2).saturating_add(nrhs.saturating_mul(2));
    if (lower, upper) == (1, 1) {
        if batch >= BATCH && (1..=TRIDIAGONAL_LANES).contains(&n) {
            Route::Copied
        } else {
            Route::Tridiagonal
        }
    } else if lanes(batch, n.saturating_mul(row)) {
        Route::Lanes
    } else if (lower, upper) == (0, 0) {
        Route::Diagonal
    } else {
        Route::Window
    }
}

/// The same of Hermitian positive definite matrices with so many diagonals beside the main one.
pub(crate) fn definite(batch: usize, beside: usize, (n, nrhs): (usize, usize)) -> Route {
    let row = beside.saturating_add(1).saturating_add(nrhs);
    if lanes(batch, n.saturating_mul(row)) {
        Route::Lanes
    } else if beside == 0 {
        Route::Diagonal
    } else if beside == 1 && nrhs == 1 && n > 1 {
        Route::Tridiagonal
    } else {
        Route::Window
    }
}

/// How each matrix of a batch is factored, or its factor applied to nrhs right-hand sides.
pub(crate) fn factor(batch: usize, beside: usize, (n, nrhs): (usize, usize)) -> Factor {
    let row = beside.saturating_add(1).saturating_add(nrhs);
    if lanes(batch, n.saturating_mul(row)) { Factor::Lanes } else { Factor::Rows }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!(
        "solve_banded",
        Route,
        ["lower", "upper", "n", "nrhs"],
        |_, batch, [lower, upper, n, nrhs]| { solve(batch, (lower, upper), (n, nrhs)) }
    ),
    routine!("solveh_banded", Route, ["beside", "n", "nrhs"], |_, batch, [beside, n, nrhs]| {
        definite(batch, beside, (n, nrhs))
    }),
    routine!("cholesky_banded", Factor, ["beside", "n"], |_, batch, [beside, n]| {
        factor(batch, beside, (n, 0))
    }),
    routine!("cho_solve_banded", Factor, ["beside", "n", "nrhs"], |_, batch, [beside, n, nrhs]| {
        factor(batch, beside, (n, nrhs))
    }),
];
