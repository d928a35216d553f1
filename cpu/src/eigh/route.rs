//! Which kernel decomposes a Hermitian matrix.

use super::reduction::route as reduction;
use crate::Vectors;
use crate::divide::merge::SHARED_ORDER;
use crate::matrix::layout::Layout;
use crate::parallel::groups;
use crate::parallel::routes::{Routine, routes, routine};
use crate::simd::kind::Kind;

routes! {
    /// How a matrix is decomposed.
    pub(crate) enum Route {
        /// A number is its own eigenvalue.
        OrderOne,
        /// By [`lanes::eigh`](crate::lanes::eigh), in a lane of the registers.
        Lanes,
        /// By QL steps on its tridiagonal form, without roots where no vectors are wanted, on one thread.
        Iterated,
        /// By halves of its tridiagonal form, on one thread.
        Divided,
        /// By halves, by a band or by QL steps, as its order and what is wanted have it, on all threads.
        Parallel,
    }
}

/// The order up to which a batch goes through lanes with vectors, and without. Two cores with AVX-512, us a
/// matrix in lanes and one by one, f64: with vectors n = 33 13 and 34, 48 36 and 72, 64 109 and 118, and of
/// eight matrices 220 and 148; without n = 33 6.5 and 13, 64 29 and 47, 128 144 and 232. f32: 7.4 and 27, 19 and 50,
/// 59 and 85, 205 and 96; 5.6 and 10, 16 and 31, 72 and 177.
const LANES_VECTORS: usize = 48;
const LANES_VALUES: usize = 128;

/// The order from which a tridiagonal matrix is divided. On one core with AVX-512, f64, eigh by QL steps and
/// divided: n = 24 47 and 62 us, 33 106 and 92, 64 399 and 370.
pub(crate) const DIVIDED: usize = 33;

/// The bytes of a matrix from which eigenvalues alone are found by a band. On two cores with AVX-512, in JAX, ms
/// column by column and by a band: f32 n = 512 6.8 and 7.8, 768 17.6 and 19.0, 1024 41 and 40; f64 320 3.6 and 4.3,
/// 512 11.8 and 13.4, 640 18 and 20, 768 32 and 30, 1024 84 and 64; c64 512 12.8 and 16.6; c128 384 12 and 18, 512 30
/// and 29, 768 92 and 80.
const BAND_BYTES: usize = 4 << 20;

/// How each n × n matrix of a batch is decomposed.
pub(crate) fn route(layout: Layout, job: Vectors, batch: usize, n: usize) -> Route {
    if n == 1 && layout == Layout::Rows {
        Route::OrderOne
    } else if in_lanes(job, batch, n) {
        Route::Lanes
    } else if n >= SHARED_ORDER {
        Route::Parallel
    } else if job == Vectors::Wanted && n >= DIVIDED {
        Route::Divided
    } else {
        Route::Iterated
    }
}

/// Whether a batch goes through lanes.
fn in_lanes(job: Vectors, batch: usize, n: usize) -> bool {
    let most = if job == Vectors::None { LANES_VALUES } else { LANES_VECTORS };
    groups::pay_filled(batch, n, most)
}

/// Whether a matrix by itself becomes tridiagonal by a band.
pub(crate) fn by_band(kind: Kind, job: Vectors, n: usize) -> bool {
    let part = if kind.double { size_of::<f64>() } else { size_of::<f32>() };
    let number = if kind.complex { 2 * part } else { part };
    job == Vectors::None && n.saturating_mul(n).saturating_mul(number) >= BAND_BYTES
}

/// The products of numbers that a decomposition takes: 4/3·n³ products and sums for T, about 4·n³ for its vectors
/// and 2·n³ for Q's part in them.
pub(crate) fn products(job: Vectors, n: usize) -> usize {
    let products = n.saturating_mul(n).saturating_mul(n);
    if job == Vectors::None { products } else { products.saturating_mul(4) }
}

/// How each tridiagonal matrix of a batch is decomposed: by the borders of full ones, where lanes pay more than there. One
/// core of Zen 5, us a matrix in lanes and one by one, f64: with vectors n = 8 0.50 and 2.1, 20 3.5 and 11, 33 12 and 33, 48
/// 27 and 57; without n = 8 0.39 and 1.2, 48 11 and 26, 128 82 and 159. f32: 0.25 and 1.5, 1.8 and 7.9, 5.7 and 24, 14 and
/// 37; 0.16 and 1.0, 4.3 and 21, 31 and 128.
pub(crate) fn tridiagonal(job: Vectors, batch: usize, n: usize) -> Route {
    let lanes = if job == Vectors::None { LANES_VALUES } else { LANES_VECTORS };
    if n == 1 {
        Route::OrderOne
    } else if groups::pay_filled(batch, n, lanes) {
        Route::Lanes
    } else if job == Vectors::None || n < DIVIDED {
        Route::Iterated
    } else if n >= SHARED_ORDER {
        Route::Parallel
    } else {
        Route::Divided
    }
}

/// The products of numbers that the decomposition of a tridiagonal matrix takes.
pub(crate) fn tridiagonal_products(job: Vectors, n: usize) -> usize {
    let square = n.saturating_mul(n);
    // About two steps per eigenvalue, of which each row waits for the one before it.
    if job == Vectors::None { square.saturating_mul(30) } else { square.saturating_mul(2 * n + 30) }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("eigh", Route, ["n"], |_, batch, [n]| {
        route(Layout::Rows, Vectors::Wanted, batch, n)
    }),
    routine!("eigvalsh", Route, ["n"], |_, batch, [n]| {
        route(Layout::Rows, Vectors::None, batch, n)
    }),
    // Where nothing is divided all vectors are found, as those of columns are.
    routine!("eigh_subset", Route, ["n"], |_, batch, [n]| {
        route(Layout::Columns, Vectors::Wanted, batch, n)
    }),
    routine!("syevd", Route, ["n"], |_, batch, [n]| {
        route(Layout::Columns, Vectors::Wanted, batch, n)
    }),
    routine!("syevd_values", Route, ["n"], |_, batch, [n]| {
        route(Layout::Columns, Vectors::None, batch, n)
    }),
    routine!("tridiagonal_eigh", Route, ["n"], |_, batch, [n]| {
        tridiagonal(Vectors::Wanted, batch, n)
    }),
    routine!("tridiagonal_eigvalsh", Route, ["n"], |_, batch, [n]| {
        tridiagonal(Vectors::None, batch, n)
    }),
    routine!("sytrd", reduction::Route, ["n"], |kind, batch, [n]| {
        reduction::route(kind, batch, n)
    }),
];
