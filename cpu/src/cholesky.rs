//! Cholesky factorisation A = L·Lᴴ = Uᴴ·U, and its change when A gains a rank-one term.

use lapax_core::{ItemsInOut, ItemsMut, Scalar as _, for_each, index_fits_i32};

use crate::{Error, InOut, Real, Scalar, Threads, Uplo};

/// Factors each n × n Hermitian positive definite matrix of a batch, in place.
///
/// Only the triangle `uplo` of `a` is read and written: A = L·Lᴴ for `Lower`, A = Uᴴ·U for `Upper`.
/// Imaginary parts on the diagonal are taken as zero and returned as zero. `info` holds one number
/// per matrix: 0, or the order of the first leading minor that is not positive (or is NaN), at which
/// the factorisation stopped.
///
/// # Errors
/// Where n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
pub fn potrf<T: Scalar>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let operands =
        (ItemsInOut::new("a", batch, &[n, n], a)?, ItemsMut::new("info", batch, &[], info)?);
    let flops = n.saturating_mul(n).saturating_mul(n) / 3;
    for_each(
        batch,
        operands,
        100 + flops / 10,
        threads,
        || (),
        |(), (a, info)| {
            info[0] = match factor(uplo, n, a) {
                Ok(()) => 0,
                Err(j) => i32::try_from(j + 1).unwrap_or(i32::MAX),
            };
        },
    );
    Ok(())
}

fn factor<T: Scalar>(uplo: Uplo, n: usize, a: &mut [T]) -> Result<(), usize> {
    let at = |i: usize, j: usize| match uplo {
        Uplo::Lower => i + j * n,
        Uplo::Upper => j + i * n,
    };
    for j in 0..n {
        let mut d = a[at(j, j)].re();
        for k in 0..j {
            let x = a[at(j, k)];
            d -= (x * x.conj()).re();
        }
        a[at(j, j)] = T::from_real(d);
        if !(d > T::Real::ZERO) {
            return Err(j);
        }
        let d = d.sqrt();
        a[at(j, j)] = T::from_real(d);
        for i in j + 1..n {
            let mut x = a[at(i, j)];
            for k in 0..j {
                x -= a[at(i, k)] * a[at(j, k)].conj();
            }
            a[at(i, j)] = x.unscale(d);
        }
    }
    Ok(())
}

/// Updates each Cholesky factor of a batch for a rank-one term: R'ᴴ·R' = Rᴴ·R + w·wᴴ.
///
/// `r` is n × n upper triangular and **row-major**; its strict lower triangle is neither read nor
/// written. `w` has n elements and is returned as zeros, to which the rotations bring it. A row of
/// R' keeps the sign (the phase, if complex) of R's diagonal entry.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
pub fn cholesky_update<T: Scalar>(
    batch: usize,
    n: usize,
    r: InOut<'_, T>,
    w: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands =
        (ItemsInOut::new("r", batch, &[n, n], r)?, ItemsInOut::new("w", batch, &[n], w)?);
    let nanoseconds = 30_usize.saturating_mul(n).saturating_add(n.saturating_mul(n));
    for_each(batch, operands, nanoseconds, threads, || (), |(), (r, w)| update(r, w));
    Ok(())
}

fn update<T: Scalar>(r: &mut [T], w: &mut [T]) {
    let n = w.len();
    // The row that is appended to R is wᴴ.
    for x in w.iter_mut() {
        *x = x.conj();
    }
    for (j, row) in r.chunks_exact_mut(n.max(1)).enumerate() {
        let row = &mut row[j..];
        let tail = &mut w[j..];
        if tail[0] == T::ZERO {
            continue;
        }
        let (c, s, diagonal) = rotation(row[0], tail[0]);
        row[0] = diagonal;
        tail[0] = T::ZERO;
        for (x, v) in row[1..].iter_mut().zip(&mut tail[1..]) {
            (*x, *v) = (x.scale(c) + s * *v, v.scale(c) - s.conj() * *x);
        }
    }
}

/// The plane rotation [c s; -s̄ c]·[f; g] = [r; 0].
fn rotation<T: Scalar>(f: T, g: T) -> (T::Real, T, T) {
    let (f_abs, g_abs) = (f.abs(), g.abs());
    let norm = f_abs.hypot(g_abs);
    let phase = if f_abs == T::Real::ZERO { T::ONE } else { f.unscale(f_abs) };
    (f_abs / norm, phase * g.unscale(norm).conj(), phase.scale(norm))
}
