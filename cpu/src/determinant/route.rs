//! Which kernel factors a matrix whose determinant is asked for.

use crate::lu::route::{LANES, PARALLEL};
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};

routes! {
    /// How a determinant is found.
    pub(crate) enum Route {
        /// By [`lanes::lu::determinant`](crate::lanes::lu::determinant), in a lane of the registers.
        Lanes,
        /// By [`lu`](crate::lu::lu), several matrices with one call.
        Grouped,
        /// By [`getrf`](crate::lu::getrf), on all threads.
        Parallel,
    }
}

/// How the determinant of each n × n matrix of a batch is found, of which it is not told whether they lie by rows or by
/// columns.
///
/// By columns and by rows on one core with AVX2, us: f32 of order 20 5.2 and 4.7, of 128 64 and 53, of 256 385 and 285;
/// f64 of 20 5.9 and 5.3, of 128 85 and 82, of 256 465 to 520 and 490 to 540. Of large matrices strips by rows are
/// slower: see [`PARALLEL`].
pub(crate) fn route(batch: usize, n: usize) -> Route {
    if batch >= BATCH && (1..=LANES).contains(&n) {
        Route::Lanes
    } else if n >= PARALLEL {
        Route::Parallel
    } else {
        Route::Grouped
    }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] =
    &[routine!("slogdet", Route, ["n"], |_, batch, [n]| route(batch, n))];
