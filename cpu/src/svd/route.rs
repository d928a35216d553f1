//! Which kernel decomposes a matrix into singular values.

use crate::SingularVectors;
use crate::divide::merge::SHARED_ORDER;
use crate::parallel::groups;
use crate::parallel::routes::{Routine, routes, routine};
use crate::simd::kind::Kind;

routes! {
    /// How a matrix is decomposed.
    pub(crate) enum Route {
        /// By [`lanes::svd`](crate::lanes::svd), in a lane of the registers.
        Lanes,
        /// By QR steps on its bidiagonal form, or by those of [`dqds`](crate::lanes::svd::dqds) where no vectors are
        /// wanted, on one thread.
        Iterated,
        /// By halves of its bidiagonal form, on one thread.
        Divided,
        /// By halves, by a band or by steps, as its order and what is wanted have it, on all threads.
        Parallel,
    }
}

/// How a bidiagonal matrix is decomposed with its vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// By halves where it is large, as xGESDD.
    Divide,
    /// By implicit QR steps alone, as xGESVD.
    Qr,
}

/// The smaller order up to which a batch goes through lanes. For f64 with AVX-512 and one thread, at
/// order 32 vectors took 26 µs per matrix where a matrix by itself took 119, and values alone 8.3
/// where it took 66; at order 128 they took 1.3 ms of 2.2, and 0.28 of 1.2.
const LANES: usize = 128;
/// The elements of a matrix up to which it does: for values alone, and real vectors, a tile is 1 MiB
/// then for f64 with AVX-512. Of complex vectors there are twice as many, and rotating them leaves
/// the second-level cache sooner: at order 96, c128 took as long as one by one.
const LANES_ELEMENTS: usize = 16384;
const LANES_COMPLEX_VECTORS: usize = 4096;
/// The larger order up to which fewer matrices than half a register holds go through lanes too: Jacobi rotations
/// need no reduction, and few allocations. One matrix with vectors, and without, one by one and in a lane, in a
/// program's loop, ns: f64 n = 2 1396 and 813, 838 and 577, n = 4 2562 and 1841, 1483 and 1256, n = 8 5508 and 9289;
/// c128 n = 2 1444 and 943, 763 and 643, n = 3 2042 and 2022, 1146 and 1201.
const FEW: usize = 4;
const FEW_COMPLEX: usize = 2;

/// The order from which a bidiagonal matrix is divided. On one core with AVX-512, f64, gesdd with vectors by
/// QR steps and divided: n = 24 75 and 77 us, 33 150 and 133, 64 649 and 489, 256 21 and 10 ms.
pub(crate) const DIVIDED: usize = 33;

/// The smaller order from which singular values alone are found by a band. On two cores with AVX-512, in JAX, ms
/// column by column and by a band: f32 n = 256 2.5 and 2.6, 384 6.7 and 6.3, 1024 83 and 57; f64 256 3.6 and 3.8, 320
/// 6.5 and 6.7, 384 16 and 10, 1024 215 and 91; c64 256 4.4 and 5.3; c128 256 8.2 and 10.1.
const BAND: usize = 352;

/// How each m × n matrix of a batch is decomposed.
pub(crate) fn route(
    kind: Kind,
    method: Method,
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
) -> Route {
    let k = m.min(n);
    if in_lanes(kind, job, batch, m, n) {
        Route::Lanes
    } else if k >= SHARED_ORDER {
        Route::Parallel
    } else if divided(method, job, k) {
        Route::Divided
    } else {
        Route::Iterated
    }
}

/// Whether a batch goes through lanes.
fn in_lanes(kind: Kind, job: SingularVectors, batch: usize, m: usize, n: usize) -> bool {
    let k = m.min(n);
    let complex_vectors = kind.complex && job != SingularVectors::None;
    let most = if complex_vectors { LANES_COMPLEX_VECTORS } else { LANES_ELEMENTS };
    // All columns of U, of which the taller side may have many more than A.
    let elements =
        if job == SingularVectors::All { m.max(n).saturating_pow(2) } else { m.saturating_mul(n) };
    let few = k > 0 && m.max(n) <= if kind.complex { FEW_COMPLEX } else { FEW };
    few || groups::pay_filled(batch, k, LANES) && elements <= most
}

/// Whether a matrix by itself, whose smaller order is k, becomes bidiagonal by a band.
pub(crate) fn by_band(job: SingularVectors, k: usize) -> bool {
    job == SingularVectors::None && k >= BAND
}

/// Whether the bidiagonal matrix of a matrix by itself is divided.
pub(crate) fn divided(method: Method, job: SingularVectors, k: usize) -> bool {
    job != SingularVectors::None && method == Method::Divide && k >= DIVIDED
}

/// The products of numbers that a decomposition takes: 2·m·k² for B, about 6·k³ for its vectors, and those of Q and
/// P with them.
pub(crate) fn products(job: SingularVectors, m: usize, n: usize) -> usize {
    let products = m.saturating_mul(n).saturating_mul(m.min(n)).saturating_mul(2);
    if job == SingularVectors::None { products } else { products.saturating_mul(5) }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("svd", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Divide, SingularVectors::Thin, batch, m, n)
    }),
    routine!("svd_all", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Divide, SingularVectors::All, batch, m, n)
    }),
    routine!("svdvals", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Divide, SingularVectors::None, batch, m, n)
    }),
    // Where nothing is divided all vectors are found.
    routine!("svd_subset", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Divide, SingularVectors::Thin, batch, m, n)
    }),
    routine!("gesdd", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Divide, SingularVectors::Thin, batch, m, n)
    }),
    routine!("gesdd_all", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Divide, SingularVectors::All, batch, m, n)
    }),
    routine!("gesdd_values", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Divide, SingularVectors::None, batch, m, n)
    }),
    routine!("gesvd", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Qr, SingularVectors::Thin, batch, m, n)
    }),
    routine!("gesvd_all", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Qr, SingularVectors::All, batch, m, n)
    }),
    routine!("gesvd_values", Route, ["m", "n"], |kind, batch, [m, n]| {
        route(kind, Method::Qr, SingularVectors::None, batch, m, n)
    }),
];
