//! Reduction of a small matrix to Hessenberg form in each lane, in LAPACK's storage, or with its Q.

use std::ops::Range;

use lapax_core::{InOut, ItemsInOut, ItemsMut, Scalar as _};
use pulp::Simd;

use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::lanes::reflector::{reflect_columns, reflector};
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// Reduces the rows and columns `active` of a group; what is not finite becomes NaN (xGEHRD).
pub(crate) struct Reduce {
    pub(crate) n: usize,
    pub(crate) active: Range<usize>,
}

/// A tile of matrices and one of their taus.
pub(crate) struct Tiles<R> {
    a: Tile<R>,
    tau: Tile<R>,
}

impl<T: Scalar> Kernel<T, (ItemsInOut<'_, T>, ItemsMut<'_, T>, ItemsMut<'_, i32>)> for Reduce {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        Tiles { a: Tile::new::<T>(self.n * self.n, lanes), tau: Tile::new::<T>(self.n, lanes) }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (a, tau, info): (ItemsInOut<'_, T>, ItemsMut<'_, T>, ItemsMut<'_, i32>),
        count: usize,
    ) {
        let n = self.n;
        let InOut { src, dst } = a.into_in_out();
        let parts = <T::Lane<S> as Lane<S>>::PARTS;
        let a = &mut scratch.a.registers::<S>()[..n * n * parts];
        let taus = &mut scratch.tau.registers::<S>()[..(n - 1) * parts];
        let square = Shape { m: n, n, order: Layout::Columns };
        pack(simd, src.unwrap_or(dst), count, square, a);
        let mut extent = Extent::<S, T::Lane<S>>::new(simd);
        for x in a.chunks_exact(parts) {
            extent.add(T::Lane::<S>::load(simd, x, 0));
        }
        reduce::<S, T::Lane<S>>(simd, a, n, self.active.clone(), taus);
        let failed = extent.scaling(simd).failed;
        if failed.any() {
            spoil::<S, T>(simd, failed, a);
            spoil::<S, T>(simd, failed, taus);
        }
        unpack(simd, a, count, square, dst);
        if n > 1 {
            let column = Shape { m: n - 1, n: 1, order: Layout::Columns };
            unpack(simd, taus, count, column, tau.into_data());
        }
        info.into_data().fill(0);
    }
}

/// H and Q of a group of row-major matrices; what is not finite becomes NaN, but for what is the same for all.
pub(crate) struct Whole {
    pub(crate) n: usize,
}

/// A tile of matrices, one of their taus and one of Q.
pub(crate) struct WholeTiles<R> {
    a: Tile<R>,
    tau: Tile<R>,
    q: Tile<R>,
}

impl<T: Scalar> Kernel<T, (ItemsInOut<'_, T>, ItemsMut<'_, T>)> for Whole {
    type Scratch = WholeTiles<T::Real>;

    fn scratch(&self, lanes: usize) -> WholeTiles<T::Real> {
        let square = || Tile::new::<T>(self.n * self.n, lanes);
        WholeTiles { a: square(), tau: Tile::new::<T>(self.n, lanes), q: square() }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut WholeTiles<T::Real>,
        (h, q_out): (ItemsInOut<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        let n = self.n;
        let InOut { src, dst } = h.into_in_out();
        let parts = <T::Lane<S> as Lane<S>>::PARTS;
        let a = &mut scratch.a.registers::<S>()[..n * n * parts];
        let q = &mut scratch.q.registers::<S>()[..n * n * parts];
        let taus = &mut scratch.tau.registers::<S>()[..(n - 1) * parts];
        let square = Shape { m: n, n, order: Layout::Rows };
        pack(simd, src.unwrap_or(dst), count, square, a);
        let mut extent = Extent::<S, T::Lane<S>>::new(simd);
        for x in a.chunks_exact(parts) {
            extent.add(T::Lane::<S>::load(simd, x, 0));
        }
        let failed = extent.scaling(simd).failed;
        reduce::<S, T::Lane<S>>(simd, a, n, 0..n, taus);
        form_q::<S, T::Lane<S>>(simd, a, n, taus, q);
        if failed.any() {
            spoil::<S, T>(simd, failed, a);
            // The first row and column are the same for all.
            for column in q[n * parts..].chunks_exact_mut(n * parts) {
                spoil::<S, T>(simd, failed, &mut column[parts..]);
            }
        }
        let nothing = T::Lane::<S>::splat(simd, T::ZERO);
        for j in 0..n {
            for i in j + 2..n {
                nothing.store(a, i + j * n);
            }
        }
        unpack(simd, a, count, square, dst);
        unpack(simd, q, count, square, q_out.into_data());
    }
}

/// Makes the numbers of lanes that failed NaN.
#[inline(always)]
fn spoil<S: Simd, T: Scalar>(
    simd: S,
    failed: Mask<S, T::Real>,
    numbers: &mut [Reg<S, T::Lane<S>>],
) {
    let nan = T::Lane::<S>::splat(simd, nan());
    for x in numbers.chunks_exact_mut(<T::Lane<S> as Lane<S>>::PARTS) {
        T::Lane::<S>::choose(failed, nan, Lane::<S>::load(simd, x, 0)).store(x, 0);
    }
}

/// Reduces a tile in place, column by column.
#[inline(always)]
pub(crate) fn reduce<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    n: usize,
    active: Range<usize>,
    taus: &mut [Reg<S, X>],
) {
    let stride = n * X::PARTS;
    let zero = X::from_real(Vector::splat(simd, X::Real::ZERO));
    for tau in taus.chunks_exact_mut(X::PARTS) {
        zero.store(tau, 0);
    }
    let end = active.end;
    for k in active.start..end.saturating_sub(1) {
        let (left, right) = a.split_at_mut((k + 1) * stride);
        let column = &mut left[k * stride..k * stride + end * X::PARTS];
        let (head, tail) = column[(k + 1) * X::PARTS..].split_at_mut(X::PARTS);
        let (beta, tau) = reflector(simd, X::load(simd, head, 0), tail);
        X::from_real(beta).store(head, 0);
        tau.store(taus, k);
        // A ← A·H, four rows at a time, then A ← Hᴴ·A.
        let columns = &mut right[..(end - k - 1) * stride];
        let fours = end - end % 4;
        for row in (0..fours).step_by(4) {
            reflect_rows::<S, X, 4>(simd, tau, tail, columns, stride, row);
        }
        for row in fours..end {
            reflect_rows::<S, X, 1>(simd, tau, tail, columns, stride, row);
        }
        reflect_columns::<S, X>(simd, tau.conj(), tail, right, stride, k + 1);
    }
}

/// Q from the reflectors below the first subdiagonal.
#[inline(always)]
pub(crate) fn form_q<S: Simd, X: Lane<S>>(
    simd: S,
    a: &[Reg<S, X>],
    n: usize,
    taus: &[Reg<S, X>],
    q: &mut [Reg<S, X>],
) {
    let splat = |x| X::from_real(Vector::splat(simd, x));
    for j in 0..n {
        for i in 0..n {
            splat(if i == j { X::Real::ONE } else { X::Real::ZERO }).store(q, i + j * n);
        }
    }
    let stride = n * X::PARTS;
    for k in (0..n - 1).rev() {
        let tail = &a[k * stride + (k + 2) * X::PARTS..(k + 1) * stride];
        let tau = X::load(simd, taus, k);
        reflect_columns::<S, X>(
            simd,
            tau,
            tail,
            &mut q[(k + 1) * stride..n * stride],
            stride,
            k + 1,
        );
    }
}

/// N rows from `row` on ← rows·(I − tau·v·vᴴ); `tail` is v after its leading one.
#[inline(always)]
fn reflect_rows<S: Simd, X: Lane<S>, const N: usize>(
    simd: S,
    tau: X,
    tail: &[Reg<S, X>],
    columns: &mut [Reg<S, X>],
    stride: usize,
    row: usize,
) {
    let (first, others) = columns.split_at_mut(stride);
    let rows = row * X::PARTS..(row + N) * X::PARTS;
    let first = &mut first[rows.clone()];
    let mut sums: [X; N] = std::array::from_fn(|i| X::load(simd, first, i));
    for (column, v) in others.chunks_exact(stride).zip(tail.chunks_exact(X::PARTS)) {
        let (column, v) = (&column[rows.clone()], X::load(simd, v, 0));
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = sum.add_mul(X::load(simd, column, i), v);
        }
    }
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = *sum * tau;
        (X::load(simd, first, i) - *sum).store(first, i);
    }
    for (column, v) in others.chunks_exact_mut(stride).zip(tail.chunks_exact(X::PARTS)) {
        let (column, v) = (&mut column[rows.clone()], X::load(simd, v, 0).conj());
        for (i, sum) in sums.iter().enumerate() {
            X::load(simd, column, i).sub_mul(*sum, v).store(column, i);
        }
    }
}
