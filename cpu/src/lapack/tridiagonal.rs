//! Tridiagonal systems A·X = B. See [`crate::tridiagonal`].

use super::integers::Int;
use super::routines::Routines;
use super::{checked, each, finite, in_place};
use crate::tridiagonal::elimination::{Diagonals, work};
use crate::tridiagonal::{operands, row_major};
use crate::{Error, InOut, Serial, Threads};

/// [`crate::tridiagonal::gtsv`] by LAPACK's xGTSV.
///
/// A singular matrix is left to lapax's own code, too: LAPACK stops halfway through B.
///
/// # Errors
/// As there, and where a dimension exceeds the library's integers.
pub fn gtsv<T: Routines>(
    batch: usize,
    m: usize,
    nrhs: usize,
    a: Diagonals<'_, T>,
    b: InOut<'_, T>,
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, (m, nrhs), a, b, info)?;
    let (order, columns) = (Int::new("m", m)?, Int::new("nrhs", nrhs)?);
    let scratch = || Copies { a: vec![T::ZERO; 3 * m], b: vec![T::ZERO; m * nrhs] };
    each::<T, _, _>(batch, operands, work(m, nrhs), threads, scratch, |copies, item| {
        let (dl, d, du, b, info) = item;
        info[0] = 1;
        if m > 0 && nrhs > 0 && finite(dl[1..].iter().chain(&*d).chain(&du[..m - 1]).chain(&*b)) {
            copies.save([dl, d, du], b);
            info[0] = T::gtsv(order, columns, [&mut dl[1..], d, du], b);
            if info[0] == 0 {
                return;
            }
            copies.restore([dl, d, du], b);
        }
        let a = Diagonals { dl: in_place(dl), d: in_place(d), du: in_place(du) };
        checked(crate::tridiagonal::gtsv(1, m, nrhs, a, in_place(b), info, &Serial));
    });
    Ok(())
}

/// [`crate::tridiagonal::tridiagonal_solve`] by [`gtsv`].
///
/// # Errors
/// As there.
pub fn tridiagonal_solve<T: Routines>(
    batch: usize,
    m: usize,
    nrhs: usize,
    a: [&[T]; 3],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::tridiagonal_solve(gtsv, batch, (m, nrhs), a, b, x, threads)
}

/// A system as it was.
struct Copies<T> {
    a: Vec<T>,
    b: Vec<T>,
}

impl<T: Copy> Copies<T> {
    fn save(&mut self, a: [&mut [T]; 3], b: &[T]) {
        let m = self.a.len() / 3;
        self.a.chunks_exact_mut(m).zip(a).for_each(|(copy, a)| copy.copy_from_slice(a));
        self.b.copy_from_slice(b);
    }

    fn restore(&self, a: [&mut [T]; 3], b: &mut [T]) {
        let m = self.a.len() / 3;
        self.a.chunks_exact(m).zip(a).for_each(|(copy, a)| a.copy_from_slice(copy));
        b.copy_from_slice(&self.b);
    }
}
