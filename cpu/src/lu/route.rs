//! Which kernel factors a matrix as P·A = L·U.

use crate::matrix::layout::Layout;
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};
use crate::registers;
use crate::simd::kind::Kind;
use crate::unblocked;

routes! {
    /// How a matrix is factored.
    pub(crate) enum Route {
        /// By [`unblocked::lu`]: nothing is prepared.
        Unblocked,
        /// By [`lanes::lu`](crate::lanes::lu), in a lane of the registers.
        Lanes,
        /// By [`registers::lu`].
        Registers,
        /// By recursion, on one thread.
        Blocked,
        /// By panels and strips, on all threads.
        Parallel,
    }
}

/// The order up to which nothing is prepared for a matrix that lies by columns; of one by rows see
/// [`unblocked::largest_factored`].
const UNBLOCKED: usize = unblocked::NUMBERS;

/// The number of rows and of columns up to which a batch goes through lanes: for f64, 0.12 us
/// against 0.18 us at 8, 0.35 us against 0.45 us at 16, 3.4 us against 1.8 us at 32.
pub(crate) const LANES: usize = 16;

/// The number of rows and of columns from which a matrix is cut into strips for all threads. On two cores with
/// AVX-512, f64, against recursion on one: n = 256 0.45 ms and 0.42 with panels of 32, n = 512 2.5 ms and 1.8, n = 1024
/// 16 ms and 9.7, n = 2048 118 ms and 63. Serially strips cost 5 to 8 % more than recursion. With AVX2 and n = 256,
/// threads started for it, recursion and strips: f64 0.44 and 0.70, f32 0.29 and 0.52, c128 1.5 and 1.6.
pub(crate) const PARALLEL: usize = 321;

/// How each m × n matrix of a batch is factored.
pub(crate) fn route(kind: Kind, layout: Layout, batch: usize, m: usize, n: usize) -> Route {
    let (largest, smallest, group) = (m.max(n), m.min(n), batch >= BATCH);
    let rows = layout == Layout::Rows;
    let unblocked = if rows { unblocked::largest_factored(kind) } else { UNBLOCKED };
    if smallest == 0 {
        Route::Blocked
    } else if group && largest <= LANES {
        Route::Lanes
    } else if largest <= unblocked && (!group || rows && !kind.complex) {
        Route::Unblocked
    } else if registers::serve(kind, largest) {
        Route::Registers
    } else if smallest >= PARALLEL {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// The products of numbers that a factorisation takes.
pub(crate) fn products(m: usize, n: usize) -> usize {
    m.saturating_mul(n).saturating_mul(m.min(n)) / 3
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("lu", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Layout::Rows, batch, m, n)
    }),
    routine!("getrf", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Layout::Columns, batch, m, n)
    }),
];
