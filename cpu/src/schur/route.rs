//! Which kernel finds a Schur form.

use crate::hessenberg::route::PARALLEL;
use crate::parallel::groups;
use crate::parallel::routes::{Routine, routes, routine};
use crate::simd::kind::Kind;

routes! {
    /// How a matrix is decomposed.
    pub(crate) enum Route {
        /// A number is its own Schur form.
        OrderOne,
        /// By [`lanes::schur`](crate::lanes::schur), in a lane of the registers.
        Lanes,
        /// In double precision where numbers are single, on one thread.
        Double,
        /// By the iteration on its Hessenberg form, on one thread.
        Blocked,
        /// So, on all threads.
        Parallel,
    }
}

/// The order up to which matrices go through lanes, which are of double precision. In f64 a Schur form
/// took, one by one and in lanes: 0.94 and 0.17 us at n = 3, 41 and 4.9 us at 16, 245 and 38 us at 32.
const LANES: usize = 32;

/// The order up to which few matrices go through lanes, too. There a lane's work is done for all: f64, one matrix, alone and in
/// lanes, 19 and 21 us at n = 8, 50 and 59 at 16, 92 and 130 at 24, 165 and 372 at 32.
const FEW_IN_LANES: usize = 16;

/// The order up to which a matrix in single precision is decomposed in double precision, so that
/// hardly more than the rounding of the results is left of the errors. What is computed from a Schur
/// form, as a matrix function is, divides by differences of eigenvalues and magnifies them.
///
/// The time of a Schur form in f64 over that in f32 was measured as 1.2 at n = 4, 1.3 at 16 and 1.4
/// at 32; in f32 one took 10.7 ms at n = 128, by double, and 8.1 ms at 129. Square roots of matrices
/// in c64, which JAX's tests take, had an error of 0.9e-4 at n = 50, and at n = 100 one of 1.2 times
/// the tolerance, by forms in single precision.
const DOUBLE: usize = 128;

/// How each n × n matrix of a batch is decomposed.
pub(crate) fn route(kind: Kind, batch: usize, n: usize) -> Route {
    if n == 1 {
        Route::OrderOne
    } else if in_lanes(batch, n) {
        Route::Lanes
    } else if !kind.double && n <= DOUBLE {
        Route::Double
    } else if n >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// Whether matrices go through lanes: few small ones, too, since another iteration may find the eigenvalues in another
/// order.
pub(crate) fn in_lanes(batch: usize, n: usize) -> bool {
    n > 1 && (n <= FEW_IN_LANES || groups::pay(batch, n, LANES))
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("schur", Route, ["n"], |kind, batch, [n]| route(kind, batch, n)),
    routine!("gees", Route, ["n"], |kind, batch, [n]| route(kind, batch, n)),
];
