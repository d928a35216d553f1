//! Which kernel solves a triangular system.

use crate::matrix::layout::Layout;
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};
use crate::registers;
use crate::simd::kind::Kind;
use crate::unblocked::{NUMBERS, WIDE, largest_factored};

routes! {
    /// How a system is solved, by one triangle or by the two of factors.
    pub(crate) enum Route {
        /// By [`unblocked::triangular`](crate::unblocked::triangular): nothing is prepared.
        Unblocked,
        /// By [`registers`], whose lanes are right-hand sides.
        Registers,
        /// By [`lanes`](crate::lanes), each of which is a system.
        Lanes,
        /// By [`trsv`](crate::blas::trsv), one right-hand side on one thread.
        OneSide,
        /// By recursion, on one thread.
        Blocked,
        /// By strips of right-hand sides, on all threads.
        Parallel,
    }
}

/// The largest order of a system with several right-hand sides that lie by rows for which nothing is prepared. With n,
/// f64 and c128: n = 9 380 and 110, 530 and 290, 16 521 and 200, 1080 and 620, 20 820 and 450, 1890 and 1270, 24 640 and
/// 580, 1630 and 1690, 32 940 and 1220, 2960 and 3600.
const SYSTEM: usize = 24;
const COMPLEX_SYSTEM: usize = 20;
/// And of one whose right-hand sides lie by columns: f64, n of them, 12 490 and 390, 14 430 and 590.
const COLUMNS: usize = 12;

/// The order up to which a batch of systems goes through lanes.
pub(crate) const LANES: usize = 32;

/// The order from which right-hand sides that fill a register go into its lanes instead. Two triangles,
/// as many right-hand sides as unknowns, for f64 on one core with AVX-512, matrices in lanes against
/// right-hand sides in lanes: 0.63 us and 0.54 us at 16, 1.1 and 1.2 at 20, 4.4 and 2.8 at 32, 30 and 17
/// at 64; with one right-hand side, 0.87 and 1.1 at 32. One triangle on Zen 5, ns: f64 209 and 240 at 16, 413 and
/// 615 at 20; f32 120 and 190, 227 and 405; c128 420 and 850, 680 and 1600.
const REGISTERS: usize = 21;

/// The order from which the right-hand sides of one system are cut into strips for all threads, the
/// columns of a strip of few and of many, and how many are many. On two cores with AVX-512, f64, as many
/// right-hand sides as unknowns, two threads against one: n = 256 0.26 ms and 0.41, n = 384 0.69 ms with
/// strips of 64 and 0.86 with 128, n = 1024 12.0 with 64, 11.0 with 128 and 24.5.
pub(crate) const PARALLEL: usize = 193;
const NARROW_STRIP: usize = 64;
const WIDE_STRIP: usize = 128;
const MANY_SIDES: usize = 512;

/// How each system of a batch is solved, n × n, with nrhs right-hand sides in a layout.
pub(crate) fn route(kind: Kind, layout: Layout, batch: usize, n: usize, nrhs: usize) -> Route {
    if n == 0 || nrhs == 0 {
        Route::Blocked
    } else if batch < BATCH && n.max(nrhs) <= unblocked(kind, layout, nrhs) {
        Route::Unblocked
    } else if by_registers(kind, n, nrhs) {
        Route::Registers
    } else if batch >= BATCH && n <= LANES {
        Route::Lanes
    } else if nrhs == 1 {
        Route::OneSide
    } else if n >= PARALLEL && nrhs > strip_width(nrhs) {
        Route::Parallel
    } else {
        Route::Blocked
    }
}

/// Whether right-hand sides go into lanes.
fn by_registers(kind: Kind, n: usize, nrhs: usize) -> bool {
    n >= REGISTERS && nrhs >= kind.lanes && registers::serve(kind, n)
}

/// The largest order of a system for which nothing is prepared, and the most right-hand sides.
pub(crate) fn unblocked(kind: Kind, layout: Layout, nrhs: usize) -> usize {
    match layout {
        _ if nrhs == 1 => largest_factored(kind),
        Layout::Rows if nrhs < WIDE => NUMBERS,
        Layout::Rows if kind.complex => COMPLEX_SYSTEM,
        Layout::Rows => SYSTEM,
        Layout::Columns => COLUMNS,
    }
}

/// The columns of a strip of so many right-hand sides.
pub(crate) fn strip_width(nrhs: usize) -> usize {
    if nrhs < MANY_SIDES { NARROW_STRIP } else { WIDE_STRIP }
}

/// The choices of this family, by name: B lies by columns, and by rows.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("trsm", Route, ["n", "nrhs"], |kind, batch, [n, nrhs]| {
        route(kind, Layout::Columns, batch, n, nrhs)
    }),
    routine!("triangular_solve", Route, ["n", "nrhs"], |kind, batch, [n, nrhs]| {
        route(kind, Layout::Rows, batch, n, nrhs)
    }),
];
