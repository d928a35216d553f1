//! Which kernel finds a generalised Schur form, and its vectors.

use crate::parallel::groups;
use crate::parallel::routes::{Routine, routes, routine};

routes! {
    /// How a pair is worked on, in double precision.
    pub(crate) enum Route {
        /// By [`lanes::generalised_schur`](crate::lanes::generalised_schur), in a lane of the registers.
        Lanes,
        /// One pair after another, each on one thread.
        Single,
    }
}

/// The order up to which pairs go through lanes. One pair of a batch, one by one and in lanes, AVX-512, EPYC: f64, forms
/// 2.0 and 0.36 us at n = 3, 9.0 and 2.0 us at 8, 45 and 8.9 us at 16, 207 and 52 us at 32, vectors 1.6 and 0.27 us at
/// 8, 18 and 5.2 us at 32; complex, forms 22 and 2.6 us at 8, 507 and 94 us at 32.
const LANES: usize = 32;

/// The order up to which few pairs go through lanes, too. There a lane's work is done for all: one pair, alone and in
/// lanes, f64, 2.1 and 2.2 us at n = 3, 9.1 and 9.7 at 8, 46 and 54 at 16, complex, 23 and 17 at 8, 90 and 105 at 16.
const FEW_IN_LANES: usize = 16;

/// How a form of each n × n pair of a batch is found.
///
/// Up to `FEW_IN_LANES` a pair has the same bits alone and in any batch; beyond, in all batches that go through lanes,
/// and in all others: another iteration may find the eigenvalues in another order.
pub(crate) fn route(batch: usize, n: usize) -> Route {
    let few = (2..=FEW_IN_LANES).contains(&n);
    if few || n > 1 && groups::pay(batch, n, LANES) { Route::Lanes } else { Route::Single }
}

/// How the vectors of each n × n pair of a batch are computed. The two ways differ by roundings.
pub(crate) fn vectors(batch: usize, n: usize) -> Route {
    if groups::pay(batch, n, LANES) { Route::Lanes } else { Route::Single }
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("generalised_schur", Route, ["n"], |_, batch, [n]| route(batch, n)),
    routine!("generalised_eigenvectors", Route, ["n"], |_, batch, [n]| vectors(batch, n)),
];
