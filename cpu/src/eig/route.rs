//! Which kernel finds eigenvalues and eigenvectors of a general matrix.

use crate::hessenberg::route::PARALLEL;
use crate::matrix::layout::Layout;
use crate::parallel::routes::{Routine, routes, routine};
use crate::schur::route::in_lanes;

routes! {
    /// How a matrix is decomposed.
    pub(crate) enum Route {
        /// A number is its own eigenvalue.
        OrderOne,
        /// By [`lanes::schur::eig`](crate::lanes::schur::eig), in a lane of the registers up to the vectors.
        Lanes,
        /// By its Schur form, on one thread.
        Blocked,
        /// So, on all threads.
        Parallel,
    }
}

/// How each n × n matrix of a batch is decomposed, whatever its numbers are.
pub(crate) fn route(layout: Layout, batch: usize, n: usize) -> Route {
    if n == 1 && layout == Layout::Rows {
        Route::OrderOne
    } else if n == 1 || in_lanes(batch, n) {
        Route::Lanes
    } else if n >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("eig", Route, ["n"], |_, batch, [n]| route(Layout::Rows, batch, n)),
    routine!("eigvals", Route, ["n"], |_, batch, [n]| route(Layout::Rows, batch, n)),
    routine!("geev", Route, ["n"], |_, batch, [n]| route(Layout::Columns, batch, n)),
];
