//! Eigenvalues and eigenvectors of a small Hermitian matrix in each lane: reflectors to tridiagonal
//! form, then QL steps.

mod ql;
mod root_free_ql;
pub(crate) mod sytrd;
pub(crate) mod tridiagonal;

use lapax_core::{InOut, Items, ItemsInOut, ItemsMut, Real, Scalar as _};
use pulp::Simd;

use crate::lanes::pack::{Shape, pack, unpack};
use crate::lanes::phase;
use crate::lanes::reflector::{reflect_columns, reflector};
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane::flags;
use crate::simd::lane_real::LaneReal;
use crate::simd::packed::Packed;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES, Mask, Reg, Vector};
use crate::{Scalar, Uplo};
use ql::{Tridiagonal, turn};

/// Decomposes a group, with vectors; a matrix that is not finite or does not converge goes to `single`.
pub(crate) struct Decompose<F> {
    pub(crate) n: usize,
    pub(crate) uplo: Uplo,
    pub(crate) order: Layout,
    /// Decomposes one matrix in place: (matrix, eigenvalues) to `info`.
    pub(crate) single: F,
}

/// Finds the eigenvalues of a group alone, and leaves a copy of it where there is room for one.
pub(crate) struct Values<F>(pub(crate) Decompose<F>);

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    a: Tile<R>,
    z: Tile<R>,
    tau: Tile<R>,
    /// d, e and two numbers for each rotation.
    real: Tile<R>,
    /// d and e² where eigenvalues alone of f32 are found in f64.
    wide: Tile<f64>,
}

/// Whether the eigenvalues of tridiagonal matrices are found in f64, where they are of f32.
fn in_f64<R>(vectors: bool) -> bool {
    !vectors && size_of::<R>() < size_of::<f64>()
}

impl<R: LaneReal> Tiles<R> {
    fn new<T: Scalar<Real = R>>(n: usize, vectors: bool, lanes: usize) -> Self {
        Self {
            a: Tile::new::<T>(n * n, lanes),
            z: Tile::new::<T>(if vectors { n * n } else { 0 }, lanes),
            tau: Tile::new::<T>(2 * n, lanes),
            real: Tile::new::<R>(4 * n, lanes),
            wide: Tile::new::<f64>(if in_f64::<R>(vectors) { 2 * n } else { 0 }, lanes),
        }
    }
}

impl<T: Scalar, F> Kernel<T, (ItemsInOut<'_, T>, ItemsMut<'_, T::Real>, ItemsMut<'_, i32>)>
    for Decompose<F>
where
    F: Fn(&mut [T], &mut [T::Real]) -> i32 + Sync,
{
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        Tiles::new::<T>(self.n, true, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (v, w, info): (ItemsInOut<'_, T>, ItemsMut<'_, T::Real>, ItemsMut<'_, i32>),
        count: usize,
    ) {
        let n = self.n;
        let InOut { src: apart, dst } = v.into_in_out();
        let (w, info) = (w.into_data(), info.into_data());
        let src = apart.unwrap_or(dst);
        let failed = self.diagonalize(simd, scratch, src, w, count, true);
        // Lanes write over what the slow way still needs.
        let kept: Vec<T> = (failed.iter().zip(src.chunks_exact(n * n)))
            .filter(|(failed, _)| **failed)
            .flat_map(|(_, a)| a.to_vec())
            .collect();
        let z = scratch.z.registers::<S>();
        unpack(simd, z, count, Shape { m: n, n, order: self.order }, dst);
        let mut kept = kept.chunks_exact(n * n);
        let matrices = dst.chunks_exact_mut(n * n).zip(w.chunks_exact_mut(n)).zip(info);
        for (((v, w), info), failed) in matrices.zip(failed) {
            match failed.then(|| kept.next()).flatten() {
                Some(a) => {
                    v.copy_from_slice(a);
                    *info = (self.single)(v, w);
                }
                None => {
                    sort(w, Some((v, self.order)));
                    *info = 0;
                }
            }
        }
    }
}

/// A, where a copy of it is left, w and info; nothing is left where that has no elements.
type Operands<'a, T> = (
    Items<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
    ItemsMut<'a, i32>,
);

impl<T: Scalar, F> Kernel<T, Operands<'_, T>> for Values<F>
where
    F: Fn(&mut [T], &mut [T::Real]) -> i32 + Sync,
{
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        Tiles::new::<T>(self.0.n, false, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (a, left, w, info): Operands<'_, T>,
        count: usize,
    ) {
        let (n, a, left) = (self.0.n, a.data(), left.into_data());
        if !left.is_empty() {
            // Not as the host's memory was.
            left.copy_from_slice(a);
        }
        let (w, info) = (w.into_data(), info.into_data());
        let failed = self.0.diagonalize(simd, scratch, a, w, count, false);
        let matrices = a.chunks_exact(n * n).zip(w.chunks_exact_mut(n)).zip(info);
        for (((a, w), info), failed) in matrices.zip(failed) {
            *info = if failed {
                (self.0.single)(&mut a.to_vec(), w)
            } else {
                sort::<T>(w, None);
                0
            };
        }
    }
}

impl<F> Decompose<F> {
    /// Writes the eigenvalues of a group, and leaves vectors that are asked for in their tile, in no order;
    /// returns which matrices failed.
    #[inline(always)]
    fn diagonalize<S: Simd, T: Scalar>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        src: &[T],
        w: &mut [T::Real],
        count: usize,
        vectors: bool,
    ) -> [bool; MAX_LANES] {
        let n = self.n;
        // The lower triangle of A, or of its transpose.
        let lower = self.uplo == Uplo::Lower;
        let order =
            if lower == (self.order == Layout::Columns) { Layout::Columns } else { Layout::Rows };
        let (a, z) = (scratch.a.registers::<S>(), scratch.z.registers::<S>());
        let (tau, real) = (scratch.tau.registers::<S>(), scratch.real.registers::<S>());
        pack(simd, src, count, Shape { m: n, n, order }, a);
        let (failed, powers) = prepare::<S, T::Lane<S>>(simd, a, n, !lower);
        let (d, rest) = real[..4 * n].split_at_mut(n);
        let (e, rotations) = rest.split_at_mut(n);
        tridiagonalize::<S, T::Lane<S>>(simd, a, d, e, tau);
        let mut z = vectors.then(|| {
            form::<S, T::Lane<S>>(simd, a, tau, z, n);
            &mut z[..n * n * T::Lane::<S>::PARTS]
        });
        let (t, wide) = ((&mut *d, e, rotations), scratch.wide.registers::<S>());
        let failed = spectrum::<S, T::Lane<S>>(simd, t, z.as_deref_mut(), wide, failed);
        if let Some(z) = z {
            phase::columns::<S, T::Lane<S>>(simd, z, n);
        }
        for d in &mut *d {
            *d = (Vector::<S, T::Real>::from_reg(simd, *d) / powers).reg();
        }
        unpack(simd, &*d, count, Shape { m: n, n: 1, order: Layout::Columns }, w);
        failed
    }
}

/// The real registers of numbers X.
type Reals<'a, S, X> = &'a mut [Reg<S, Vector<S, <X as Lane<S>>::Real>>];

/// Replaces the diagonals d of tridiagonal matrices by their eigenvalues, in no order, and turns the columns of `z`, where
/// there is one, into their vectors; returns which matrices failed, now or before. `wide` is for values alone.
#[inline(always)]
fn spectrum<S: Simd, X: Lane<S>>(
    simd: S,
    (d, e, rotations): (Reals<'_, S, X>, Reals<'_, S, X>, Reals<'_, S, X>),
    z: Option<&mut [Reg<S, X>]>,
    wide: &mut [<f64 as Packed>::Reg<S>],
    failed: Mask<S, X::Real>,
) -> [bool; MAX_LANES] {
    if !in_f64::<X::Real>(z.is_some()) {
        let lost = ql::diagonalize::<S, X>(simd, &mut Tridiagonal { d, e, rotations, z });
        return flags(simd, failed.or(lost));
    }
    turn::<S, X::Real>(simd, d, e);
    let lost = root_free_ql::eigenvalues::<S, X::Real>(simd, d, e, wide);
    let mut failed = flags(simd, failed);
    failed.iter_mut().zip(lost).for_each(|(failed, lost)| *failed |= lost);
    failed
}

/// Scales the lower triangles to norms near 1 where they are far from it; returns the lanes that are
/// not finite, which become zero, and the powers of two.
#[inline(always)]
fn prepare<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    n: usize,
    conj: bool,
) -> (Mask<S, X::Real>, Vector<S, X::Real>) {
    let mut extent = Extent::<S, X>::new(simd);
    for (j, column) in a.chunks_exact_mut(n * X::PARTS).enumerate().take(n) {
        X::from_real(X::load(simd, column, j).re()).store(column, j);
        for x in column[j * X::PARTS..].chunks_exact(X::PARTS) {
            extent.add(X::load(simd, x, 0));
        }
    }
    let (failed, powers) = extent.normalize(simd, &mut a[..n * n * X::PARTS]);
    if conj && X::PARTS > 1 {
        for x in a.chunks_exact_mut(X::PARTS).take(n * n) {
            X::load(simd, x, 0).conj().store(x, 0);
        }
    }
    (failed, powers)
}

/// A = Q·T·Qᴴ from the lower triangle; reflector j is left below the subdiagonal of column j.
#[inline(always)]
pub(super) fn tridiagonalize<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    d: &mut [Reg<S, Vector<S, X::Real>>],
    e: &mut [Reg<S, Vector<S, X::Real>>],
    tau: &mut [Reg<S, X>],
) {
    let n = d.len();
    let stride = n * X::PARTS;
    let half = Vector::<S, X::Real>::splat(simd, X::Real::from_f64(0.5));
    let (taus, w) = tau.split_at_mut(stride);
    for j in 0..n {
        let (left, right) = a.split_at_mut((j + 1) * stride);
        let column = &mut left[j * stride..];
        d[j] = X::load(simd, column, j).re().reg();
        if j + 1 == n {
            break;
        }
        let (head, tail) = column[(j + 1) * X::PARTS..].split_at_mut(X::PARTS);
        let (beta, tau) = reflector(simd, X::load(simd, head, 0), tail);
        e[j] = beta.reg();
        tau.store(taus, j);
        // v in full, where the subdiagonal stood.
        let v = &mut column[(j + 1) * X::PARTS..];
        X::from_real(Vector::splat(simd, X::Real::ONE)).store(v, 0);
        let (m, v) = (n - j - 1, &*v);
        let trailing = &mut right[..m * stride];
        // w = tau·A·v, then w ← w − ½·tau·(wᴴ·v)·v.
        multiply::<S, X>(simd, trailing, v, w, (j + 1, m, n));
        let mut sum = X::from_real(Vector::splat(simd, X::Real::ZERO));
        for i in 0..m {
            let x = X::load(simd, w, i) * tau;
            x.store(w, i);
            sum = sum.add_mul(x.conj(), X::load(simd, v, i));
        }
        let factor = (tau * sum).scale(half);
        for i in 0..m {
            X::load(simd, w, i).sub_mul(factor, X::load(simd, v, i)).store(w, i);
        }
        // A ← A − v·wᴴ − w·vᴴ.
        for (c, column) in trailing.chunks_exact_mut(stride).enumerate() {
            let column = &mut column[(j + 1) * X::PARTS..];
            let (vc, wc) = (X::load(simd, v, c).conj(), X::load(simd, w, c).conj());
            for i in c..m {
                let x = X::load(simd, column, i).sub_mul(X::load(simd, v, i), wc);
                x.sub_mul(X::load(simd, w, i), vc).store(column, i);
            }
        }
    }
}

/// w ← A·v for the lower triangle of A, which begins in row `row` of columns of n numbers.
#[inline(always)]
fn multiply<S: Simd, X: Lane<S>>(
    simd: S,
    columns: &[Reg<S, X>],
    v: &[Reg<S, X>],
    w: &mut [Reg<S, X>],
    (row, m, n): (usize, usize, usize),
) {
    let zero = X::from_real(Vector::splat(simd, X::Real::ZERO));
    (0..m).for_each(|i| zero.store(w, i));
    for (c, column) in columns.chunks_exact(n * X::PARTS).enumerate() {
        let column = &column[row * X::PARTS..];
        let vc = X::load(simd, v, c);
        let diagonal = X::from_real(X::load(simd, column, c).re());
        let mut sum = X::load(simd, w, c).add_mul(diagonal, vc);
        for i in c + 1..m {
            let x = X::load(simd, column, i);
            X::load(simd, w, i).add_mul(x, vc).store(w, i);
            sum = sum.add_mul(x.conj(), X::load(simd, v, i));
        }
        sum.store(w, c);
    }
}

/// Z ← Q = H₁⋯H_(n−1), from the last reflector to the first.
#[inline(always)]
fn form<S: Simd, X: Lane<S>>(
    simd: S,
    a: &[Reg<S, X>],
    taus: &[Reg<S, X>],
    z: &mut [Reg<S, X>],
    n: usize,
) {
    let real = |x| X::from_real(Vector::<S, X::Real>::splat(simd, x));
    let (zero, one) = (real(X::Real::ZERO), real(X::Real::ONE));
    for i in 0..n * n {
        if i % (n + 1) == 0 { one } else { zero }.store(z, i);
    }
    let stride = n * X::PARTS;
    for j in (0..n.saturating_sub(1)).rev() {
        let tail = &a[j * stride + (j + 2) * X::PARTS..(j + 1) * stride];
        let columns = &mut z[(j + 1) * stride..n * stride];
        reflect_columns::<S, X>(simd, X::load(simd, taus, j), tail, columns, stride, j + 1);
    }
}

/// Sorts eigenvalues in ascending order, and the columns of a matrix with them if there is one.
fn sort<T: Scalar>(w: &mut [T::Real], mut v: Option<(&mut [T], Layout)>) {
    let n = w.len();
    for i in 0..n {
        let mut least = i;
        for j in i + 1..n {
            if w[j] < w[least] {
                least = j;
            }
        }
        if least == i {
            continue;
        }
        w.swap(i, least);
        match &mut v {
            None => {}
            Some((v, Layout::Columns)) => {
                let (left, right) = v.split_at_mut(least * n);
                left[i * n..(i + 1) * n].swap_with_slice(&mut right[..n]);
            }
            Some((v, Layout::Rows)) => v.chunks_exact_mut(n).for_each(|row| row.swap(i, least)),
        }
    }
}
