//! Which kernel computes a function of a matrix.

use crate::parallel::groups::{pay, pay_filled};
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

/// The order up to which a batch goes through lanes: of f64 on one core of Zen 5, us a matrix in lanes and alone, order 8
/// 0.26 and 1.3, 16 1.3 and 3.6, 24 4.1 and 6.2, 32 12 and 11; of c128 order 16 10 and 14.
const LANES: usize = 16;
const LANES_OF_REALS: usize = 24;

/// The order from which one matrix goes to all threads: a product of smaller ones is one piece of work.
const PARALLEL: usize = 128;

/// How each matrix of a batch goes.
pub(crate) fn route(kind: Kind, batch: usize, n: usize) -> Route {
    if pay(batch, n, if kind.complex { LANES } else { LANES_OF_REALS }) {
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

routes! {
    /// How an upper triangular matrix goes, or two.
    pub(crate) enum RouteOfTriangles {
        /// By [`lanes::sylvester`](crate::lanes::sylvester), [`lanes::square_root`](crate::lanes::square_root) or
        /// [`lanes::parlett`](crate::lanes::parlett), in a lane of the registers; a real one with blocks of order 2
        /// alone.
        Lanes,
        /// By halves, on one thread.
        Single,
    }
}

/// How each equation of a batch with matrices of orders m and n goes.
pub(crate) fn route_of_triangles(batch: usize, m: usize, n: usize) -> RouteOfTriangles {
    if m.min(n) > 0 && pay(batch, m.max(n), LANES) {
        RouteOfTriangles::Lanes
    } else {
        RouteOfTriangles::Single
    }
}

/// The order up to which a batch goes through lanes: of c128 on one core of Zen 5, us a matrix in lanes and alone, order 24
/// 2.4 and 8.0, 32 5.2 and 15, 48 11 and 32; of four matrices 48 18 and 32, 64 50 and 60.
const LANES_OF_PARLETT: usize = 48;

/// How each matrix of a batch goes through Parlett's recurrence.
pub(crate) fn route_of_parlett(batch: usize, n: usize) -> RouteOfTriangles {
    if pay_filled(batch, n, LANES_OF_PARLETT) {
        RouteOfTriangles::Lanes
    } else {
        RouteOfTriangles::Single
    }
}

/// The products of numbers that an equation of these orders takes: quotients wait for each other.
pub(crate) fn sylvester_products(m: usize, n: usize) -> usize {
    let numbers = m.saturating_mul(n);
    numbers.saturating_mul(m.saturating_add(n)).saturating_add(numbers.saturating_mul(8))
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("expm", Route, ["n"], |kind, batch, [n]| route(kind, batch, n)),
    routine!("triangular_sylvester", RouteOfTriangles, ["m", "n"], |_, batch, [m, n]| {
        route_of_triangles(batch, m, n)
    }),
    routine!("triangular_sqrtm", RouteOfTriangles, ["n"], |_, batch, [n]| {
        route_of_triangles(batch, n, n)
    }),
    routine!("triangular_parlett", RouteOfTriangles, ["n"], |_, batch, [n]| {
        route_of_parlett(batch, n)
    }),
];
