//! The Schur form of a small matrix in each lane: A = Z·T·Zᴴ, T (quasi-)triangular.

pub(crate) mod active;
pub(crate) mod eig;
mod francis;
pub(crate) mod hessenberg;
pub(crate) mod single_shift;
mod two_by_two;

use lapax_core::{InOut, ItemsInOut, ItemsMut, Scalar as _};
use pulp::{NullaryFnOnce, Simd};

use crate::Scalar;
use crate::lanes::pack::Shape;
use crate::lanes::pack_double::{pack_as, unpack_as};
use crate::lanes::phase;
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane::flags;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Mask, Reg, Vector};
use francis::Francis;
use hessenberg::{form_q, reduce};
use single_shift::SingleShift;

/// Decomposes a group in lanes of D, which is T or T in double precision.
pub(crate) struct Decompose<F> {
    pub(crate) n: usize,
    pub(crate) order: Layout,
    /// Makes what ends the work on one matrix after another.
    pub(crate) finish: F,
}

/// What ends the work on a matrix: on T, Z, and the eigenvalues.
pub(crate) trait Finish<T: Scalar> {
    /// From T and Z.
    fn finish(&mut self, results: [&mut [T]; 4]);
    /// From the matrix, which is in T's place and which lanes leave aside; returns its `info`.
    fn single(&mut self, results: [&mut [T]; 4]) -> i32;
}

/// What one thread reuses.
pub(crate) struct Scratch<D: Scalar, W> {
    a: Tile<D::Real>,
    z: Tile<D::Real>,
    tau: Tile<D::Real>,
    /// A group's matrices in the lanes' precision, where that is not their own.
    wide: Vec<D>,
    finish: W,
}

pub(crate) type Operands<'a, T> = (
    ItemsInOut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, i32>,
    ItemsMut<'a, i32>,
);

impl<T, D, W, F> Kernel<D, Operands<'_, T>> for Decompose<F>
where
    T: Scalar,
    D: Scalar,
    W: Finish<T>,
    F: Fn() -> W + Sync,
{
    type Scratch = Scratch<D, W>;

    fn scratch(&self, lanes: usize) -> Scratch<D, W> {
        let n = self.n;
        Scratch {
            a: Tile::new::<D>(n * n, lanes),
            z: Tile::new::<D>(n * n, lanes),
            tau: Tile::new::<D>(n, lanes),
            wide: Vec::new(),
            finish: (self.finish)(),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<D, W>,
        (a, z_out, w, wi, sdim, info): Operands<'_, T>,
        count: usize,
    ) {
        let (n, size) = (self.n, self.n * self.n);
        let InOut { src: apart, dst } = a.into_in_out();
        let (z_out, w, wi) = (z_out.into_data(), w.into_data(), wi.into_data());
        let parts = <D::Lane<S> as Lane<S>>::PARTS;
        let Scratch { a, z, tau, wide, finish } = scratch;
        let tile = &mut a.registers::<S>()[..size * parts];
        let z = &mut z.registers::<S>()[..size * parts];
        let square = Shape { m: n, n, order: self.order };
        let src = apart.unwrap_or(dst);
        pack_as::<S, T, D>(simd, src, count, square, wide, tile);
        let mut aside = isolated::<S, D::Lane<S>>(simd, tile, n);
        let mut extent = Extent::<S, D::Lane<S>>::new(simd);
        for x in tile.chunks_exact(parts) {
            extent.add(Lane::<S>::load(simd, x, 0));
        }
        let scaling = extent.scaling(simd);
        aside = aside.or(scaling.failed);
        let _ = scaling.apply(simd, tile);
        let tau = tau.registers::<S>();
        let failed = form::<S, D::Lane<S>>(simd, tile, n, Some(&mut *z), tau, true);
        phase::schur::<S, D::Lane<S>>(simd, tile, z, n, tau);
        let aside = flags(simd, aside.or(failed));
        let back = Vector::splat(simd, D::Real::ONE) / scaling.powers;
        for x in tile.chunks_exact_mut(parts) {
            D::Lane::<S>::load(simd, x, 0).scale(back).store(x, 0);
        }
        // Lanes write over what the slow way still needs.
        let aside = &aside[..count];
        let kept: Vec<T> = (aside.iter().zip(src.chunks_exact(size)))
            .filter(|(aside, _)| **aside)
            .flat_map(|(_, a)| a.to_vec())
            .collect();
        unpack_as::<S, T, D>(simd, tile, count, square, wide, dst);
        unpack_as::<S, T, D>(simd, z, count, square, wide, z_out);
        let (info, sdim) = (info.into_data(), sdim.into_data());
        info.fill(0);
        sdim.fill(0);
        let imaginary = wi.len() / count;
        let mut kept = kept.chunks_exact(size);
        for b in 0..count {
            let t = &mut dst[b * size..(b + 1) * size];
            let z = &mut z_out[b * size..(b + 1) * size];
            let w = &mut w[b * n..(b + 1) * n];
            let wi = &mut wi[b * imaginary..(b + 1) * imaginary];
            if aside[b] {
                let Some(a) = kept.next() else { return };
                t.copy_from_slice(a);
                info[b] = finish.single([t, z, w, wi]);
            } else {
                finish.finish([t, z, w, wi]);
            }
        }
    }
}

/// The lanes where a row or a column has nothing beside the diagonal: a permutation finds an
/// eigenvalue there without an error.
#[inline(always)]
pub(super) fn isolated<S: Simd, X: Lane<S>>(
    simd: S,
    a: &[Reg<S, X>],
    n: usize,
) -> Mask<S, X::Real> {
    let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
    let mut found = zero.less(zero);
    for i in 0..if n == 1 { 0 } else { n } {
        let (mut column, mut row) = (zero, zero);
        for j in (0..n).filter(|&j| j != i) {
            column = X::load(simd, a, i * n + j).abs1().max(column);
            row = X::load(simd, a, j * n + i).abs1().max(row);
        }
        found = found.or(column.equal(zero)).or(row.equal(zero));
    }
    found
}

/// T and Z of matrices whose norms are near 1; with `schur` false only T's diagonal blocks. Returns
/// the lanes that did not converge.
///
/// A function of its own, which all kernels share: most of their code is here.
#[inline(always)]
pub(super) fn form<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    n: usize,
    z: Option<&mut [Reg<S, X>]>,
    taus: &mut [Reg<S, X>],
    schur: bool,
) -> Mask<S, X::Real> {
    simd.vectorize(Form::<S, X> { simd, a, n, z, taus, schur })
}

/// The arguments of [`form`].
struct Form<'a, S: Simd, X: Lane<S>> {
    simd: S,
    a: &'a mut [Reg<S, X>],
    n: usize,
    z: Option<&'a mut [Reg<S, X>]>,
    taus: &'a mut [Reg<S, X>],
    schur: bool,
}

impl<S: Simd, X: Lane<S>> NullaryFnOnce for Form<'_, S, X> {
    type Output = Mask<S, X::Real>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let Self { simd, a, n, mut z, taus, schur } = self;
        let nothing = X::from_real(Vector::splat(simd, X::Real::ZERO));
        reduce::<S, X>(simd, a, n, 0..n, &mut taus[..(n - 1) * X::PARTS]);
        if let Some(z) = z.as_deref_mut() {
            form_q::<S, X>(simd, a, n, taus, z);
        }
        for j in 0..n {
            for i in j + 2..n {
                nothing.store(a, i + j * n);
            }
        }
        if X::PARTS == 1 {
            Francis::<S, X::Real> { h: a, n, q: z, schur }.run(simd)
        } else {
            SingleShift::<S, X> { h: a, n, q: z, schur }.run(simd)
        }
    }
}
