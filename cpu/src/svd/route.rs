//! Which kernel decomposes a matrix into singular values.

use crate::parallel::groups;
use crate::simd::vector;
use crate::{Scalar, SingularVectors};

/// The smaller order up to which a batch goes through lanes. For f64 with AVX-512 and one thread, at
/// order 32 vectors took 26 µs per matrix where a matrix by itself took 119, and values alone 8.3
/// where it took 66; at order 128 they took 1.3 ms of 2.2, and 0.28 of 1.2.
const LANES_ORDER: usize = 128;
/// The elements of a matrix up to which it does: for values alone, and real vectors, a tile is 1 MiB
/// then for f64 with AVX-512. Of complex vectors there are twice as many, and rotating them leaves
/// the second-level cache sooner: at order 96, c128 took as long as one by one.
const LANES_ELEMENTS: usize = 16384;
const LANES_COMPLEX_VECTORS: usize = 4096;
/// The smaller order from which on a batch has to fill half of the widest registers.
const LARGE: usize = 33;
/// The larger order up to which fewer matrices than half a register holds go through lanes too: Jacobi rotations
/// need no reduction, and few allocations. One matrix with vectors, and without, one by one and in a lane, in a
/// program's loop, ns: f64 n = 2 1396 and 813, 838 and 577, n = 4 2562 and 1841, 1483 and 1256, n = 8 5508 and 9289;
/// c128 n = 2 1444 and 943, 763 and 643, n = 3 2042 and 2022, 1146 and 1201.
const FEW: usize = 4;
const FEW_COMPLEX: usize = 2;

/// Whether a batch goes through lanes.
pub(crate) fn in_lanes<T: Scalar>(job: SingularVectors, batch: usize, m: usize, n: usize) -> bool {
    let k = m.min(n);
    let complex_vectors = T::IS_COMPLEX && job != SingularVectors::None;
    let most = if complex_vectors { LANES_COMPLEX_VECTORS } else { LANES_ELEMENTS };
    // All columns of U, of which the taller side may have many more than A.
    let elements =
        if job == SingularVectors::All { m.max(n).saturating_pow(2) } else { m.saturating_mul(n) };
    let fills = k < LARGE || batch >= vector::MAX_LANES / 2;
    let few = k > 0 && m.max(n) <= if T::IS_COMPLEX { FEW_COMPLEX } else { FEW };
    few || fills && groups::pay(batch, k, LANES_ORDER) && elements <= most
}
