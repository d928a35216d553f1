//! Which kernel reduces a matrix to Hessenberg form.

use crate::parallel::groups;
use crate::parallel::routes::{Routine, routes, routine};
use crate::registers;
use crate::simd::kind::Kind;

routes! {
    /// How a matrix is reduced, and its Q formed.
    pub(crate) enum Route {
        /// By [`lanes::schur::hessenberg`](crate::lanes::schur::hessenberg), in a lane of the registers.
        Lanes,
        /// Not at all: no column has a reflector.
        Reduced,
        /// By [`registers::hessenberg`], the whole of it.
        Registers,
        /// By panels, and the last columns one by one or by registers, on one thread.
        Blocked,
        /// By panels and strips, on all threads.
        Parallel,
    }
}

/// The order up to which a batch goes through lanes.
const LANES: usize = 32;

/// The order up to which columns are reduced one by one.
pub(crate) const UNBLOCKED: usize = 96;

/// The order from which a matrix is shared. On two cores with AVX-512, ms, f64 and c128, against one: n = 320
/// 4.9 and 4.8, 16.2 and 13.8, n = 384 7.2 and 7.6, 23.0 and 23.0, n = 512 15.1 and 18.1, 51 and 58, n = 1024 113 and
/// 167, 301 and 439.
pub(crate) const PARALLEL: usize = 384;

/// How each n × n matrix of a batch is reduced, in so many active rows and columns.
pub(crate) fn route(kind: Kind, batch: usize, n: usize, active: usize) -> Route {
    if groups::pay(batch, n, LANES) {
        Route::Lanes
    } else if reduced(kind, active) {
        Route::Reduced
    } else if active == n && registers::hessenberg::serve(kind, n) {
        Route::Registers
    } else if active >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// Whether no matrix of order n has a reflector: a column of one real number has none.
fn reduced(kind: Kind, n: usize) -> bool {
    n < 2 || n == 2 && !kind.complex
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("hess", Route, ["n"], |kind, batch, [n]| route(kind, batch, n, n)),
    routine!("gehrd", Route, ["n", "active"], |kind, batch, [n, active]| {
        route(kind, batch, n, active)
    }),
];
