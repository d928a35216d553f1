//! Reduction of a small Hermitian matrix to tridiagonal form in each lane, in LAPACK's storage.

use lapax_core::{InOut, ItemsInOut, ItemsMut};
use pulp::Simd;

use super::tridiagonalize;
use crate::lanes::pack::Shape;
use crate::lanes::pack_double::{pack_as, unpack_as};
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane::flags;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};
use crate::{Scalar, Uplo};

/// Reduces a group; a matrix that is not finite goes to `single`.
///
/// The lanes are of D, which is T or T in double precision.
pub(crate) struct Reduce<F> {
    pub(crate) n: usize,
    pub(crate) uplo: Uplo,
    /// Reduces one matrix in place: (a, d, e, tau).
    pub(crate) single: F,
}

/// What one thread reuses.
pub(crate) struct Tiles<D: Scalar> {
    a: Tile<D::Real>,
    tau: Tile<D::Real>,
    /// d and e.
    real: Tile<D::Real>,
    /// A group's matrices in the lanes' precision, where that is not their own.
    wide: Vec<D>,
    wide_real: Vec<D::Real>,
}

pub(crate) type Operands<'a, T> = (
    ItemsInOut<'a, T>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
    ItemsMut<'a, T>,
    ItemsMut<'a, i32>,
);

impl<T, D, F> Kernel<D, Operands<'_, T>> for Reduce<F>
where
    T: Scalar,
    D: Scalar,
    F: Fn(&mut [T], &mut [T::Real], &mut [T::Real], &mut [T]) + Sync,
{
    type Scratch = Tiles<D>;

    fn scratch(&self, lanes: usize) -> Tiles<D> {
        let n = self.n;
        Tiles {
            a: Tile::new::<D>(n * n, lanes),
            tau: Tile::new::<D>(2 * n, lanes),
            real: Tile::new::<D::Real>(2 * n, lanes),
            wide: Vec::new(),
            wide_real: Vec::new(),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<D>,
        (a, d, e, tau, info): Operands<'_, T>,
        count: usize,
    ) {
        let (n, beside) = (self.n, self.n - 1);
        let InOut { src: apart, dst } = a.into_in_out();
        let (d_out, e_out, tau_out) = (d.into_data(), e.into_data(), tau.into_data());
        let Tiles { a, tau, real, wide, wide_real } = scratch;
        let (a, taus) = (a.registers::<S>(), tau.registers::<S>());
        let a = &mut a[..n * n * <D::Lane<S> as Lane<S>>::PARTS];
        let (d, e) = real.registers::<S>()[..2 * n].split_at_mut(n);
        let square = Shape { m: n, n, order: Layout::Columns };
        let column = |m| Shape { m, n: 1, order: Layout::Columns };
        let src = apart.unwrap_or(dst);
        pack_as::<S, T, D>(simd, src, count, square, wide, a);
        if self.uplo == Uplo::Upper {
            turn::<S, D::Lane<S>>(simd, a);
        }
        let failed = flags(simd, reduce::<S, D::Lane<S>>(simd, a, d, e, taus));
        if self.uplo == Uplo::Upper {
            turn::<S, D::Lane<S>>(simd, a);
            turn::<S, Vector<S, D::Real>>(simd, d);
            turn::<S, Vector<S, D::Real>>(simd, &mut e[..beside]);
            turn::<S, D::Lane<S>>(simd, &mut taus[..beside * <D::Lane<S> as Lane<S>>::PARTS]);
        }
        // Lanes write over what the slow way still needs.
        let failed = &failed[..count];
        let kept: Vec<T> = (failed.iter().zip(src.chunks_exact(n * n)))
            .filter(|(failed, _)| **failed)
            .flat_map(|(_, a)| a.to_vec())
            .collect();
        unpack_as::<S, T, D>(simd, a, count, square, wide, dst);
        unpack_as::<S, T::Real, D::Real>(simd, d, count, column(n), wide_real, d_out);
        if beside > 0 {
            unpack_as::<S, T::Real, D::Real>(simd, e, count, column(beside), wide_real, e_out);
            unpack_as::<S, T, D>(simd, taus, count, column(beside), wide, tau_out);
        }
        info.into_data().fill(0);
        let mut kept = kept.chunks_exact(n * n);
        for b in (0..count).filter(|&b| failed[b]) {
            let Some(a) = kept.next() else { return };
            let one = &mut dst[b * n * n..(b + 1) * n * n];
            one.copy_from_slice(a);
            let part = b * beside..(b + 1) * beside;
            let (e, tau) = (&mut e_out[part.clone()], &mut tau_out[part]);
            (self.single)(one, &mut d_out[b * n..(b + 1) * n], e, tau);
        }
    }
}

/// Turns tiles end for end: an upper triangle then is a lower one.
#[inline(always)]
fn turn<S: Simd, X: Lane<S>>(simd: S, a: &mut [Reg<S, X>]) {
    let last = (a.len() / X::PARTS).saturating_sub(1);
    for p in 0..a.len() / X::PARTS / 2 {
        let (x, y) = (X::load(simd, a, p), X::load(simd, a, last - p));
        y.store(a, p);
        x.store(a, last - p);
    }
}

/// Reduces the lower triangles, which alone are read and written; returns the lanes that are not
/// finite.
#[inline(always)]
fn reduce<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    d: &mut [Reg<S, Vector<S, X::Real>>],
    e: &mut [Reg<S, Vector<S, X::Real>>],
    tau: &mut [Reg<S, X>],
) -> crate::simd::vector::Mask<S, X::Real> {
    let n = d.len();
    let mut extent = Extent::<S, X>::new(simd);
    for (j, column) in a.chunks_exact_mut(n * X::PARTS).enumerate() {
        X::from_real(X::load(simd, column, j).re()).store(column, j);
        for x in column[j * X::PARTS..].chunks_exact(X::PARTS) {
            extent.add(X::load(simd, x, 0));
        }
    }
    let scaling = extent.scaling(simd);
    for (j, column) in a.chunks_exact_mut(n * X::PARTS).enumerate() {
        let _ = scaling.apply(simd, &mut column[j * X::PARTS..]);
    }
    tridiagonalize::<S, X>(simd, a, d, e, tau);
    for (j, column) in a.chunks_exact_mut(n * X::PARTS).enumerate() {
        let x = Vector::from_reg(simd, d[j]) / scaling.powers;
        d[j] = x.reg();
        X::from_real(x).store(column, j);
        if j + 1 < n {
            let x = Vector::from_reg(simd, e[j]) / scaling.powers;
            e[j] = x.reg();
            X::from_real(x).store(column, j + 1);
        }
    }
    scaling.failed
}
