//! Which kernel solves a tridiagonal system.

use crate::matrix::layout::Layout;
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};

routes! {
    /// How a system is solved.
    pub(crate) enum Route {
        /// By [`lanes::tridiagonal`](crate::lanes::tridiagonal), in a lane of the registers.
        Lanes,
        /// By one division.
        OrderOne,
        /// By elimination from both ends, or, where that is not sound, by rows from the first.
        Twisted,
        /// By an elimination and [`lanes::tridiagonal`](crate::lanes::tridiagonal), whose lanes are right-hand sides: of
        /// one system on all threads.
        Sides,
        /// By an elimination, and one right-hand side after the other.
        Unblocked,
    }
}

/// The number of rows up to which a batch of systems goes through lanes: with one right-hand side,
/// f64 and AVX-512, the five tiles then take 1.25 MiB, about half a core's cache.
pub(crate) const LANES: usize = 4096;

/// How each system of a batch is solved, m × m, with nrhs right-hand sides in a layout.
pub(crate) fn route(layout: Layout, batch: usize, m: usize, nrhs: usize) -> Route {
    let (rows, fit_lanes) = (layout == Layout::Rows, (1..=LANES).contains(&m));
    if rows && (m == 0 || nrhs == 0) {
        Route::Unblocked
    } else if batch >= BATCH && fit_lanes {
        Route::Lanes
    } else if rows && nrhs == 1 && m == 1 {
        Route::OrderOne
    } else if rows && nrhs == 1 {
        Route::Twisted
    } else if nrhs >= BATCH && fit_lanes {
        Route::Sides
    } else {
        Route::Unblocked
    }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("gtsv", Route, ["n", "nrhs"], |_, batch, [n, nrhs]| {
        route(Layout::Columns, batch, n, nrhs)
    }),
    routine!("tridiagonal_solve", Route, ["n", "nrhs"], |_, batch, [n, nrhs]| {
        route(Layout::Rows, batch, n, nrhs)
    }),
    routine!("tridiagonal_solve_perturbed", Route, ["n", "nrhs"], |_, batch, [n, nrhs]| {
        route(Layout::Columns, batch, n, nrhs)
    }),
];
