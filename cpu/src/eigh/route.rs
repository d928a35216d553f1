//! Which kernel decomposes a Hermitian matrix.

use crate::Vectors;
use crate::parallel::groups;
use crate::simd::vector;

/// The order up to which a batch goes through lanes with vectors, and without. Two cores with AVX-512, us a
/// matrix in lanes and one by one, f64: with vectors n = 33 13 and 34, 48 36 and 72, 64 109 and 118, and of
/// eight matrices 220 and 148; without n = 33 6.5 and 13, 64 29 and 47, 128 144 and 232. f32: 7.4 and 27, 19 and 50,
/// 59 and 85, 205 and 96; 5.6 and 10, 16 and 31, 72 and 177.
const LANES_VECTORS: usize = 48;
const LANES_VALUES: usize = 128;
/// The order from which on a batch has to fill half of the widest registers.
const LARGE: usize = 33;

/// Whether a batch goes through lanes.
pub(crate) fn in_lanes(job: Vectors, batch: usize, n: usize) -> bool {
    let most = if job == Vectors::None { LANES_VALUES } else { LANES_VECTORS };
    (n < LARGE || batch >= vector::MAX_LANES / 2) && groups::pay(batch, n, most)
}
