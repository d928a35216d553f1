//! The Cholesky factor after a rank-one change, by plane rotations.

use lapax_core::{ItemsInOut, for_each};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use super::route;
use crate::lanes;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::elementary::{rotate, rotation};
use crate::{Error, InOut, Scalar, Threads};

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
    match route::update(batch, n) {
        route::Update::Lanes => {
            let kernel = lanes::cholesky_update::Update { n };
            for_each_group::<T, _>(batch, operands, nanoseconds / 4, threads, &kernel);
        }
        route::Update::Unblocked => {
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
        }
    }
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
