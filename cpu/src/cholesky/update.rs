//! The Cholesky factor after a rank-one change, by plane rotations.

use lapax_core::{ItemsInOut, for_each};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::lanes;
use crate::parallel::groups;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::elementary::{rotate, rotation};
use crate::{Error, InOut, Scalar, Threads};

/// The order up to which a batch goes through lanes. On one core with AVX-512 one after the other and in lanes, f64
/// (c128): 12,500 of n = 4 1424 and 404 us (2167 and 1035), 781 of 16 515 and 272 (875 and 681), 195 of 32 348 and 285
/// (615 and 620), 48 of 64 238 and 286 (485 and 600).
const LANES_ORDER: usize = 32;

/// Updates each Cholesky factor of a batch for a rank-one term: R'ᴴ·R' = Rᴴ·R + w·wᴴ.
///
/// `r` is n × n upper triangular and **row-major**; its strict lower triangle is neither read nor
/// written. `w` has n elements and is returned as zeros, to which the rotations bring it. A row of
/// R' keeps the sign (the phase, if complex) of R's diagonal entry.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn cholesky_update<T: Scalar>(
    batch: usize,
    n: usize,
    r: InOut<'_, T>,
    w: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands =
        (ItemsInOut::new("r", batch, &[n, n], r)?, ItemsInOut::new("w", batch, &[n], w)?);
    if n == 0 {
        return Ok(());
    }
    let nanoseconds = 20_usize.saturating_mul(n).saturating_add(n.saturating_mul(n));
    if groups::pay(batch, n, LANES_ORDER) {
        let kernel = lanes::cholesky_update::Update { n };
        for_each_group::<T, _>(batch, operands, nanoseconds / 4, threads, &kernel);
        return Ok(());
    }
    let arch = Arch::new();
    for_each(
        batch,
        operands,
        nanoseconds,
        threads,
        || (),
        |(), (r, w)| {
            arch.dispatch(Update { r, w });
        },
    );
    Ok(())
}

pub(crate) struct Update<'a, T> {
    pub(crate) r: &'a mut [T],
    pub(crate) w: &'a mut [T],
}

impl<T: Scalar> WithSimd for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { r, w } = self;
        // The row that is appended to R is wᴴ; each rotation brings its next element to zero.
        w.iter_mut().for_each(|x| *x = x.conj());
        for (j, row) in r.chunks_exact_mut(w.len()).enumerate() {
            let (Some((diagonal, row)), Some((head, tail))) =
                (row[j..].split_first_mut(), w[j..].split_first_mut())
            else {
                return;
            };
            if *head == T::ZERO {
                continue;
            }
            let (c, s, rotated) = rotation(*diagonal, *head);
            (*diagonal, *head) = (rotated, T::ZERO);
            for (x, v) in row.iter_mut().zip(tail) {
                (*x, *v) = rotate::<S, T>(c, s, *x, *v);
            }
        }
    }
}
