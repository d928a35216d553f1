//! Schur form, A = Z·T·Zᴴ. See [`crate::schur`].

use super::integers::Int;
use super::routines::{Routines, Values};
use super::workspace::Lengths;
use super::{checked, each, finite, in_place};
use crate::schur::single::turn;
use crate::schur::values::Eigenvalues;
use crate::schur::{operands, row_major};
use crate::{Error, InOut, Serial, Threads, Vectors};

/// [`crate::schur::gees`] by LAPACK's xGEES, without sorting.
///
/// # Errors
/// As there, and where n or the workspace exceeds the library's integers.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
pub fn gees<T: Routines>(
    vectors: Vectors,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    z: &mut [T],
    w: Eigenvalues<'_, T>,
    sdim: &mut [i32],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 0 {
        return crate::schur::gees(vectors, batch, n, a, z, w, sdim, info, threads);
    }
    let (operands, _) = operands(batch, n, a, z, w, sdim, info)?;
    let order = Int::new("n", n)?;
    let lengths = Lengths::ask::<T>("gees", |work| {
        let nothing = Values { re: &mut [], im: &mut [] };
        T::gees(Vectors::Wanted, order, &mut [], nothing, &mut [], work)
    })?;
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(25);
    let scratch = || (lengths.allocate::<T>(), vec![T::ZERO; n * n]);
    each::<T, _, _>(batch, operands, products, threads, scratch, |scratch, item| {
        let (t, z, w, wi, sdim, info) = item;
        let (work, copy) = scratch;
        (sdim[0], info[0]) = (0, 0);
        if finite(&*t) {
            copy.copy_from_slice(t);
            z.fill(T::ZERO);
            let w = Values { re: &mut *w, im: &mut *wi };
            // With vectors whatever is asked for, since T's phases are theirs.
            info[0] = checked(T::gees(Vectors::Wanted, order, t, w, z, work));
            if info[0] == 0 {
                turn(vectors, t, z, n);
                return;
            }
            t.copy_from_slice(copy);
        }
        let w = Eigenvalues::from_parts(w, wi);
        checked(crate::schur::gees(vectors, 1, n, in_place(t), z, w, sdim, info, &Serial));
    });
    Ok(())
}

/// [`crate::schur::schur`] by [`gees`].
///
/// # Errors
/// As [`gees`].
pub fn schur<T: Routines>(
    batch: usize,
    n: usize,
    t: InOut<'_, T>,
    z: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::schur(gees, batch, n, t, z, threads)
}
