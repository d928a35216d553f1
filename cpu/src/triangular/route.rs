//! Which kernel solves a triangular system.

use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::registers;
use crate::simd::lane;
use crate::unblocked::{WIDE, largest_factored};

/// The largest order of a matrix that lies by columns, f64 of 16 1150 and 680, and of a system with a few right-hand
/// sides: both go number by number.
pub(crate) const NUMBERS: usize = 16;
/// The largest order of a system with several right-hand sides. With n, f64 and c128: n = 9 380 and 110, 530 and 290,
/// 16 521 and 200, 1080 and 620, 20 820 and 450, 1890 and 1270, 24 640 and 580, 1630 and 1690, 32 940 and 1220, 2960 and
/// 3600.
const SYSTEM: usize = 24;
const COMPLEX_SYSTEM: usize = 20;
/// The largest order of a system whose right-hand sides lie by columns: f64, n of them, 12 490 and 390, 14 430 and 590.
const COLUMNS: usize = 12;

/// The largest order of a system that [`substitute`](crate::unblocked::triangular::substitute) pays for, and the most right-hand sides.
pub(crate) fn largest_system<T: Scalar>(nrhs: usize, b_order: Layout) -> usize {
    let by_rows = if T::IS_COMPLEX { COMPLEX_SYSTEM } else { SYSTEM };
    match b_order {
        _ if nrhs == 1 => largest_factored::<T>(),
        Layout::Rows if nrhs >= WIDE => by_rows,
        Layout::Rows => NUMBERS,
        Layout::Columns => COLUMNS,
    }
}

/// The order from which right-hand sides that fill a register go into its lanes instead. Two triangles,
/// as many right-hand sides as unknowns, for f64 on one core with AVX-512, matrices in lanes against
/// right-hand sides in lanes: 0.63 us and 0.54 us at 16, 1.1 and 1.2 at 20, 4.4 and 2.8 at 32, 30 and 17
/// at 64; with one right-hand side, 0.87 and 1.1 at 32. One triangle on Zen 5, ns: f64 209 and 240 at 16, 413 and
/// 615 at 20; f32 120 and 190, 227 and 405; c128 420 and 850, 680 and 1600.
const ROWS_ORDER: usize = 21;

/// Whether right-hand sides go into lanes.
pub(crate) fn by_rows<T: Scalar>(n: usize, nrhs: usize) -> bool {
    n >= ROWS_ORDER && nrhs >= lane::width::<T>() && registers::pay::<T>(n)
}
