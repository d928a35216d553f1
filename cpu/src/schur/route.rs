//! Which kernel finds a Schur form.

use crate::parallel::groups;

/// The order up to which matrices go through lanes, which are of double precision. In f64 a Schur form
/// took, one by one and in lanes: 0.94 and 0.17 us at n = 3, 41 and 4.9 us at 16, 245 and 38 us at 32.
pub(crate) const LANES_ORDER: usize = 32;

/// The order up to which few matrices go through lanes, too. There a lane's work is done for all: f64, one matrix, alone and in
/// lanes, 19 and 21 us at n = 8, 50 and 59 at 16, 92 and 130 at 24, 165 and 372 at 32.
const FEW_IN_LANES: usize = 16;

/// Whether matrices go through lanes: few small ones, too, since another iteration may find the eigenvalues in another
/// order.
pub(crate) fn in_lanes(batch: usize, n: usize) -> bool {
    n > 1 && (n <= FEW_IN_LANES || groups::pay(batch, n, LANES_ORDER))
}
