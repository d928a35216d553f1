//! Which kernel reduces a Hermitian matrix to tridiagonal form.

use crate::parallel::groups;
use crate::parallel::routes::routes;
use crate::simd::kind::Kind;

routes! {
    /// How a matrix is reduced.
    pub(crate) enum Route {
        /// By [`lanes::eigh::sytrd`](crate::lanes::eigh::sytrd), in a lane of the registers.
        Lanes,
        /// In double precision where numbers are single, on one thread.
        Double,
        /// By panels, on one thread.
        Blocked,
        /// By panels and strips, on all threads.
        Parallel,
    }
}

/// The order up to which a batch goes through lanes.
const LANES: usize = 32;

/// The order up to which a matrix in single precision is reduced in double precision, for the reason
/// why Schur forms are.
pub(crate) const DOUBLE: usize = 24;

/// The order from which a matrix is shared. On two cores with AVX-512 that share a memory, f64, eigenvalues
/// alone, against one: n = 256 4.0 ms and 3.4, 512 17.4 and 17.2, 1024 108 and 121, 2048 656 and 887.
pub(crate) const PARALLEL: usize = 512;

/// How each n × n matrix of a batch is reduced.
pub(crate) fn route(kind: Kind, batch: usize, n: usize) -> Route {
    if groups::pay(batch, n, LANES) {
        Route::Lanes
    } else if in_double(kind, n) {
        Route::Double
    } else if n >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// Whether numbers that are single become double, in lanes, too.
pub(crate) fn in_double(kind: Kind, n: usize) -> bool {
    !kind.double && n <= DOUBLE
}
