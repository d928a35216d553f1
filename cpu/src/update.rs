//! The Cholesky factor after a rank-one change, by plane rotations.

use lapax_core::{ItemsInOut, Real as _, Scalar as _, for_each};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::lanes::{self, for_each_group};
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
    if lanes::pay(batch, n, LANES_ORDER) {
        let kernel = lanes::update::Update { n };
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

/// [c s; -s̄ c]·[x; v].
#[inline(always)]
fn rotate<S: Simd, T: Scalar>(c: T::Real, s: T, x: T, v: T) -> (T, T) {
    if S::IS_SCALAR {
        (x.scale(c) + s * v, v.scale(c) - s.conj() * x)
    } else {
        (x.scale(c).fused_add(s, v), v.scale(c).fused_add(-s.conj(), x))
    }
}

/// The rotation [c s; -s̄ c] with [c s; -s̄ c]·[f; g] = [r; 0] and c real, for g ≠ 0.
///
/// c = |f|/h, s = phase(f)·ḡ/h and r = phase(f)·h with h = √(|f|² + |g|²), which is LAPACK's choice
/// (Anderson, "Algorithm 978: safe scaling in the level 1 BLAS", ACM TOMS 44, 2017). Every quotient
/// is at most 1 and the moduli are computed with scaling, so nothing overflows that need not.
pub(crate) fn rotation<T: lapax_core::Scalar>(f: T, g: T) -> (T::Real, T, T) {
    let (f_size, g_size) = (f.abs(), g.abs());
    let norm = f_size.hypot(g_size);
    let phase = if f_size == T::Real::ZERO { T::ONE } else { f.unscale(f_size) };
    (f_size.divide(norm), phase * g.conj().unscale(norm), phase.scale(norm))
}
