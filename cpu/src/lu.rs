//! LU factorisation with partial pivoting: P·A = L·U, L unit lower trapezoidal, U upper trapezoidal.
//!
//! Pivots are LAPACK's: `ipiv[j] = i` says that rows j and i were swapped in step j, counted from 1.

use lapax_core::{Items, ItemsInOut, ItemsMut, Scalar as _, for_each, index_fits_i32};

use crate::{Error, InOut, Scalar, Threads};

/// Factors each m × n matrix of a batch as P·A = L·U, in place.
///
/// `a` holds U on and above the diagonal and L, without its unit diagonal, below. `ipiv` holds
/// min(m, n) row swaps per matrix, counted from 1, and `info` one number: 0, or the first i > 0 for
/// which U(i, i) is exactly zero; the factorisation is complete in either case. The pivot is the
/// first element of largest |re| + |im|, and a NaN counts as larger than any number.
///
/// # Errors
/// Where m exceeds `i32`, in which pivots are counted, or a slice has another length than the
/// dimensions say.
pub fn getrf<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    ipiv: &mut [i32],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("m", m)?;
    let k = m.min(n);
    let operands = (
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsMut::new("ipiv", batch, &[k], ipiv)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let flops = m.saturating_mul(n).saturating_mul(k);
    for_each(
        batch,
        operands,
        100 + flops / 10,
        threads,
        || (),
        |(), (a, ipiv, info)| {
            info[0] = factor(m, a, ipiv);
        },
    );
    Ok(())
}

fn factor<T: Scalar>(m: usize, a: &mut [T], ipiv: &mut [i32]) -> i32 {
    let mut info = 0;
    for (j, pivot) in ipiv.iter_mut().enumerate() {
        let column = &a[j * m..(j + 1) * m];
        let mut p = j;
        for i in j + 1..m {
            let (x, best) = (column[i].abs1(), column[p].abs1());
            if !best.is_nan() && (x > best || x.is_nan()) {
                p = i;
            }
        }
        *pivot = i32::try_from(p + 1).unwrap_or(i32::MAX);
        let value = column[p];
        if value == T::ZERO {
            if info == 0 {
                info = *pivot - i32::try_from(p - j).unwrap_or(0);
            }
            continue;
        }
        for column in a.chunks_exact_mut(m) {
            column.swap(j, p);
        }
        let (left, right) = a.split_at_mut((j + 1) * m);
        let l = &mut left[j * m + j + 1..];
        for x in l.iter_mut() {
            *x = x.divide(value);
        }
        for column in right.chunks_exact_mut(m) {
            let u = column[j];
            for (x, &l) in column[j + 1..].iter_mut().zip(&*l) {
                *x -= l * u;
            }
        }
    }
    info
}

/// Turns k row swaps, counted from 0, into the permutation of 0..p that they make.
///
/// Swaps are applied in order to the identity; one whose partner lies outside 0..p is skipped.
///
/// # Errors
/// Where p < k, p exceeds `i32`, or a slice has another length than the dimensions say.
pub fn lu_pivots_to_permutation(
    batch: usize,
    k: usize,
    p: usize,
    pivots: &[i32],
    permutation: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if p < k {
        return Err(Error::Order { larger: "p", larger_value: p, smaller: "k", smaller_value: k });
    }
    index_fits_i32("p", p)?;
    let operands = (
        Items::new("pivots", batch, &[k], pivots)?,
        ItemsMut::new("permutation", batch, &[p], permutation)?,
    );
    for_each(
        batch,
        operands,
        5 + k + p / 8,
        threads,
        || (),
        |(), (pivots, permutation)| {
            for (value, entry) in (0..).zip(permutation.iter_mut()) {
                *entry = value;
            }
            for (row, &partner) in pivots.iter().enumerate() {
                match usize::try_from(partner) {
                    Ok(partner) if partner < p => permutation.swap(row, partner),
                    _ => {}
                }
            }
        },
    );
    Ok(())
}
