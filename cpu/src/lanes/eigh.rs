//! Eigenvalues and eigenvectors of a small Hermitian matrix in each lane: reflectors to tridiagonal
//! form, then QL steps.

use lapax_core::{InOut, ItemsInOut, ItemsMut, Real, Scalar as _};
use pulp::Simd;

use super::implicit_ql::Tridiagonal;
use super::reflector::{reflect_columns, reflector};
use super::scaling::Extent;
use super::tile::{pack, unpack};
use super::{Kernel, Lane, Mask, Order, Reg, Shape, Tile, Vector, flags};
use crate::{Scalar, Uplo};

/// Decomposes a group; a matrix that is not finite or does not converge goes to `single`.
pub(crate) struct Decompose<F> {
    pub(crate) n: usize,
    pub(crate) uplo: Uplo,
    pub(crate) vectors: bool,
    /// Decomposes one matrix in place: (matrix, eigenvalues) to `info`.
    pub(crate) single: F,
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    a: Tile<R>,
    z: Tile<R>,
    tau: Tile<R>,
    /// d, e and two numbers for each rotation.
    real: Tile<R>,
}

type Operands<'a, T> =
    (ItemsInOut<'a, T>, ItemsMut<'a, <T as lapax_core::Scalar>::Real>, ItemsMut<'a, i32>);

impl<T: Scalar, F> Kernel<T, Operands<'_, T>> for Decompose<F>
where
    F: Fn(&mut [T], &mut [T::Real]) -> i32 + Sync,
{
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let n = self.n;
        Tiles {
            a: Tile::new::<T>(n * n, lanes),
            z: Tile::new::<T>(if self.vectors { n * n } else { 0 }, lanes),
            tau: Tile::new::<T>(2 * n, lanes),
            real: Tile::new::<T::Real>(4 * n, lanes),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (v, w, info): Operands<'_, T>,
        count: usize,
    ) {
        let n = self.n;
        let InOut { src: apart, dst } = v.into_in_out();
        let (w, info) = (w.into_data(), info.into_data());
        let order = if self.uplo == Uplo::Lower { Order::Column } else { Order::Row };
        let (a, z) = (scratch.a.registers::<S>(), scratch.z.registers::<S>());
        let (tau, real) = (scratch.tau.registers::<S>(), scratch.real.registers::<S>());
        let src = apart.unwrap_or(dst);
        pack(simd, src, count, Shape { m: n, n, order }, a);
        let conj = self.uplo == Uplo::Upper;
        let (failed, powers) = prepare::<S, T::Lane<S>>(simd, a, n, conj);
        let (d, rest) = real[..4 * n].split_at_mut(n);
        let (e, rotations) = rest.split_at_mut(n);
        tridiagonalize::<S, T::Lane<S>>(simd, a, d, e, tau);
        let z = self.vectors.then(|| {
            form::<S, T::Lane<S>>(simd, a, tau, z, n);
            z
        });
        let mut tridiagonal = Tridiagonal::<S, T::Lane<S>> { d, e, rotations, z };
        let failed = failed.or(tridiagonal.diagonalize(simd));
        let Tridiagonal { d, z, .. } = tridiagonal;
        for d in &mut *d {
            *d = (Vector::<S, T::Real>::from_reg(simd, *d) / powers).reg();
        }

        let failed = flags(simd, failed);
        let failed = &failed[..count];
        // Lanes write over what the slow way still needs.
        let kept: Vec<T> = (failed.iter().zip(src.chunks_exact(n * n)))
            .filter(|(failed, _)| **failed)
            .flat_map(|(_, a)| a.to_vec())
            .collect();
        unpack(simd, d, count, Shape { m: n, n: 1, order: Order::Column }, w);
        if let Some(z) = z {
            unpack(simd, z, count, Shape { m: n, n, order: Order::Column }, dst);
        } else if let Some(src) = apart {
            // Scratch, but not left as the host's memory was.
            dst.copy_from_slice(src);
        }
        let mut kept = kept.chunks_exact(n * n);
        let matrices = dst.chunks_exact_mut(n * n).zip(w.chunks_exact_mut(n)).zip(info);
        for (((v, w), info), failed) in matrices.zip(failed) {
            match failed.then(|| kept.next()).flatten() {
                Some(a) => {
                    v.copy_from_slice(a);
                    *info = (self.single)(v, w);
                }
                None => {
                    sort(w, if self.vectors { v } else { &mut [] });
                    *info = 0;
                }
            }
        }
    }
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

/// Sorts eigenvalues in ascending order, and the columns of `v` with them if there are any.
fn sort<T: Scalar>(w: &mut [T::Real], v: &mut [T]) {
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
        if !v.is_empty() {
            let (left, right) = v.split_at_mut(least * n);
            left[i * n..(i + 1) * n].swap_with_slice(&mut right[..n]);
        }
    }
}
