//! Which kernel computes a function of a matrix.

use crate::parallel::groups::pay;
use crate::parallel::routes::{Routine, routes, routine};
use crate::simd::kind::Kind;

routes! {
    /// How a matrix goes.
    pub(crate) enum Route {
        /// By [`lanes::exponential`](crate::lanes::exponential), in a lane of the registers.
        Lanes,
        /// By products of whole matrices, on one thread.
        Single,
        /// By products of whole matrices, whose columns all threads share.
        Parallel,
    }
}

/// The order up to which a batch goes through lanes.
const LANES: usize = 16;

/// The order from which one matrix goes to all threads.
const PARALLEL: usize = 128;

/// How each matrix of a batch goes.
pub(crate) fn route(_: Kind, batch: usize, n: usize) -> Route {
    if pay(batch, n, LANES) {
        Route::Lanes
    } else if n < PARALLEL {
        Route::Single
    } else {
        Route::Parallel
    }
}

/// The products of numbers that exp takes: six products of matrices, a solution, and a few squarings.
pub(crate) fn products(n: usize) -> usize {
    n.saturating_mul(n).saturating_mul(n).saturating_mul(11).saturating_add(400)
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] =
    &[routine!("expm", Route, ["n"], |kind, batch, [n]| route(kind, batch, n))];
