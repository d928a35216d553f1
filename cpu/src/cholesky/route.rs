//! Which kernel factors a Hermitian matrix.

use crate::Scalar;

/// The largest order of a real symmetric matrix to factor: f64 and f32 of 16 580 and 360, 550 and 320, 24 840 and 730, 840
/// and 630, 32 1090 and 1260, 870 and 1000; of a complex one c128 and c64 24 1850 and 1340, 2150 and 1140, 28 2920 and
/// 2000, 2530 and 1420, 32 2810 and 4980, 2630 and 3680; number by number c128 of 16 860 and so 590, 20 1650 and 1050.
const HERMITIAN: usize = 24;
const COMPLEX_HERMITIAN: usize = 28;

/// The largest order of a Hermitian matrix to factor.
pub(crate) fn largest_hermitian<T: Scalar>() -> usize {
    if T::IS_COMPLEX { COMPLEX_HERMITIAN } else { HERMITIAN }
}
