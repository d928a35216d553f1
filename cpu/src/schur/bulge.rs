//! The reflectors of three elements by which a bulge moves down a Hessenberg matrix.
//!
//! What several in a row do far from the diagonal is done in one pass over memory. From the left, with a column in
//! each lane, squares of registers are transposed, where a loop would go from column to column by three numbers.

use std::ops::Range;

use lapax_core::Scalar as _;
use pulp::Simd;

use crate::Scalar;
use crate::blas::householder::reflector;
use crate::simd::lane_real::LaneReal;
use crate::simd::packed::Packed;
use crate::simd::transpose::transpose;
use crate::simd::vector::{Lane, MAX_LANES};

/// The reflector I − tau·x·xᴴ with x = [1; v; w] in rows k, k + 1, k + 2.
#[derive(Clone, Copy)]
pub(crate) struct Bulge<T> {
    pub(crate) k: usize,
    pub(crate) tau: T,
    pub(crate) v: T,
    pub(crate) w: T,
}

impl<T: Scalar> Bulge<T> {
    /// A ← (I − tau·x·xᴴ)ᴴ·A from column k on; `length` rows are left, or 3.
    #[inline(always)]
    pub(crate) fn rows(self, a: &mut [T], ld: usize, length: usize) {
        self.rows_from(self.k, a, ld, length);
    }

    /// The same from another column on.
    #[inline(always)]
    pub(crate) fn rows_from(self, first: usize, a: &mut [T], ld: usize, length: usize) {
        let Self { k, tau, v, w } = self;
        let [t, tv, tw] = [tau.conj(), tau.conj() * v, tau.conj() * w];
        let (v, w) = (v.conj(), w.conj());
        if length == 3 {
            for column in a[first * ld..].chunks_exact_mut(ld) {
                if let [x, y, z] = &mut column[k..k + 3] {
                    let sum = *x + v * *y + w * *z;
                    *x -= sum * t;
                    *y -= sum * tv;
                    *z -= sum * tw;
                }
            }
        } else {
            for column in a[first * ld..].chunks_exact_mut(ld) {
                if let [x, y] = &mut column[k..k + 2] {
                    let sum = *x + v * *y;
                    *x -= sum * t;
                    *y -= sum * tv;
                }
            }
        }
    }

    /// A ← A·(I − tau·x·xᴴ) for some rows; `length` columns are left, or 3.
    #[inline(always)]
    pub(crate) fn columns(self, a: &mut [T], ld: usize, rows: Range<usize>, length: usize) {
        let Self { k, tau, v, w } = self;
        let [t, tv, tw] = [tau, tau * v.conj(), tau * w.conj()];
        let (x, rest) = a[k * ld..].split_at_mut(ld);
        let (y, rest) = rest.split_at_mut(ld);
        let (x, y) = (&mut x[rows.clone()], &mut y[rows.clone()]);
        if length == 3 {
            let z = &mut rest[..ld][rows];
            for ((x, y), z) in x.iter_mut().zip(y).zip(z) {
                let sum = *x + *y * v + *z * w;
                *x -= sum * t;
                *y -= sum * tv;
                *z -= sum * tw;
            }
        } else {
            for (x, y) in x.iter_mut().zip(y) {
                let sum = *x + *y * v;
                *x -= sum * t;
                *y -= sum * tv;
            }
        }
    }
}

/// The reflectors that go together, and the rows that they change.
pub(crate) const TOGETHER: usize = 6;
pub(crate) const ROWS: usize = TOGETHER + 2;

/// Moves a bulge from row k of A: its reflector is that of column k − 1, or of the one that is given, and is applied
/// to the columns before `near.end` and the rows from `near.start` on. Rows end before `end`; `length` are left of
/// these, or 3.
#[inline(always)]
pub(crate) fn step<T: Scalar>(
    a: &mut [T],
    ld: usize,
    k: usize,
    column: Option<[T; 3]>,
    length: usize,
    near: Range<usize>,
    end: usize,
) -> Bulge<T> {
    let place = k + k.wrapping_sub(1).wrapping_mul(ld);
    let mut v = column.unwrap_or([T::ZERO; 3]);
    if column.is_none() {
        v[..length].copy_from_slice(&a[place..place + length]);
    }
    let [head, tail @ ..] = &mut v;
    let reflector = reflector::<pulp::Scalar, T>(*head, &mut tail[..length - 1]);
    if column.is_none() {
        a[place] = T::from_real(reflector.beta);
        a[place + 1..place + length].fill(T::ZERO);
    }
    let bulge = Bulge { k, tau: reflector.tau, v: v[1], w: v[2] };
    bulge.rows(&mut a[..near.end * ld], ld, length);
    bulge.columns(a, ld, near.start..(k + 4).min(end), length);
    bulge
}

/// Reflectors of a bulge in rows that follow each other.
pub(crate) struct Bulges<T>(pub(crate) [Bulge<T>; TOGETHER]);

impl<T: Scalar> Bulges<T> {
    /// Moves a bulge from row k, of which [`ROWS`] are left or more, near the diagonal alone: the first reflector may
    /// be that of a given column.
    #[inline(always)]
    pub(crate) fn near(
        a: &mut [T],
        ld: usize,
        k: usize,
        mut column: Option<[T; 3]>,
        end: usize,
    ) -> Self {
        let mut bulges = [Bulge { k, tau: T::ZERO, v: T::ZERO, w: T::ZERO }; TOGETHER];
        let near = k..k + ROWS;
        for (k, bulge) in (k..).zip(&mut bulges) {
            *bulge = step(a, ld, k, column.take(), 3, near.clone(), end);
        }
        Self(bulges)
    }

    /// What they do from the left to some columns, of which rows before `end` are read.
    #[inline(always)]
    pub(crate) fn rows<S: Simd>(
        &self,
        simd: S,
        a: &mut [T],
        ld: usize,
        columns: Range<usize>,
        end: usize,
    ) {
        let (k, lanes) = (self.0[0].k, T::Real::lanes::<S>());
        let numbers = (ROWS * T::Lane::<S>::PARTS).next_multiple_of(lanes);
        let columns = &mut a[columns.start * ld..columns.end * ld];
        if k * T::Lane::<S>::PARTS + numbers > end * T::Lane::<S>::PARTS {
            for bulge in self.0 {
                bulge.rows_from(0, columns, ld, 3);
            }
            return;
        }
        let splat = |x| T::Lane::<S>::splat(simd, x);
        let mut factors = [[splat(T::ZERO); 5]; TOGETHER];
        for (factors, &Bulge { tau, v, w, .. }) in factors.iter_mut().zip(&self.0) {
            let numbers = [v.conj(), w.conj(), tau.conj(), tau.conj() * v, tau.conj() * w];
            for (factor, number) in factors.iter_mut().zip(numbers) {
                *factor = splat(number);
            }
        }
        for group in columns.chunks_mut(lanes * ld) {
            let count = group.len() / ld;
            let mut block = [T::Real::splat(simd, T::Real::ZERO); MAX_LANES];
            for from in (0..numbers).step_by(lanes) {
                let square = &mut block[from..from + lanes];
                for (lane, reg) in square.iter_mut().enumerate() {
                    if lane < count {
                        let column = bytemuck::cast_slice(&group[lane * ld + k..]);
                        *reg = T::Real::register::<S>(&column[from..from + lanes]);
                    }
                }
                transpose::<S, T::Real, _>(simd, square);
            }
            for (i, &[v, w, t, tv, tw]) in factors.iter().enumerate() {
                let x = T::Lane::<S>::load(simd, &block, i);
                let y = T::Lane::<S>::load(simd, &block, i + 1);
                let z = T::Lane::<S>::load(simd, &block, i + 2);
                let sum = x.add_mul(v, y).add_mul(w, z);
                x.sub_mul(sum, t).store(&mut block, i);
                y.sub_mul(sum, tv).store(&mut block, i + 1);
                z.sub_mul(sum, tw).store(&mut block, i + 2);
            }
            for from in (0..numbers).step_by(lanes) {
                let square = &mut block[from..from + lanes];
                transpose::<S, T::Real, _>(simd, square);
                for (lane, reg) in square.iter().enumerate() {
                    if lane < count {
                        let column = bytemuck::cast_slice_mut(&mut group[lane * ld + k..]);
                        T::Real::write_register::<S>(*reg, &mut column[from..from + lanes]);
                    }
                }
            }
        }
    }

    /// What they do from the right to some rows.
    #[inline(always)]
    pub(crate) fn columns<S: Simd>(&self, simd: S, a: &mut [T], ld: usize, rows: Range<usize>) {
        let splat = |x| T::splat(simd, x);
        let mut factors = [[splat(T::ZERO); 5]; TOGETHER];
        for (factors, &Bulge { tau, v, w, .. }) in factors.iter_mut().zip(&self.0) {
            let numbers = [v, w, -tau, -(tau * v.conj()), -(tau * w.conj())];
            for (factor, number) in factors.iter_mut().zip(numbers) {
                *factor = splat(number);
            }
        }
        let mut columns = a[self.0[0].k * ld..].chunks_exact_mut(ld);
        let mut columns: [&mut [T]; ROWS] =
            std::array::from_fn(|_| &mut columns.next().unwrap_or_default()[rows.clone()]);
        let mut parts = columns.each_mut().map(|column| T::registers_mut::<S>(column));
        let whole = parts[0].0.len();
        for i in 0..whole {
            let mut x = [splat(T::ZERO); ROWS];
            for (x, (column, _)) in x.iter_mut().zip(&parts) {
                *x = column[i];
            }
            pass::<S, T>(simd, &mut x, &factors);
            for (x, (column, _)) in x.iter().zip(&mut parts) {
                column[i] = *x;
            }
        }
        if !parts[0].1.is_empty() {
            let mut x = [splat(T::ZERO); ROWS];
            for (x, (_, rest)) in x.iter_mut().zip(&parts) {
                *x = T::part(simd, rest);
            }
            pass::<S, T>(simd, &mut x, &factors);
            for (x, (_, rest)) in x.iter().zip(&mut parts) {
                T::write_part(simd, *x, rest);
            }
        }
    }
}

/// Rows of [`ROWS`] columns times each reflector.
#[inline(always)]
fn pass<S: Simd, T: Scalar>(
    simd: S,
    x: &mut [T::Reg<S>; ROWS],
    factors: &[[T::Reg<S>; 5]; TOGETHER],
) {
    for (i, &[v, w, t, tv, tw]) in factors.iter().enumerate() {
        let sum = T::add_multiple(simd, x[i], v, x[i + 1]);
        let sum = T::add_multiple(simd, sum, w, x[i + 2]);
        x[i] = T::add_multiple(simd, x[i], t, sum);
        x[i + 1] = T::add_multiple(simd, x[i + 1], tv, sum);
        x[i + 2] = T::add_multiple(simd, x[i + 2], tw, sum);
    }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {
    use std::ops::Range;

    use pulp::{Simd, WithSimd};

    use super::{Bulge, Bulges, TOGETHER};
    use crate::Scalar;
    use crate::simd::arch::Arch as Level;

    use crate::testing::levels::{close, random};

    for_each_scalar!(together_as_one_by_one);

    /// Reflectors from row k on, applied to columns from the left and to rows from the right.
    struct Apply<'a, T> {
        bulges: &'a Bulges<T>,
        a: Vec<T>,
        n: usize,
        far: Range<usize>,
    }

    impl<T: Scalar> WithSimd for Apply<'_, T> {
        type Output = Vec<T>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Vec<T> {
            let Self { bulges, mut a, n, far } = self;
            bulges.rows(simd, &mut a, n, far.clone(), n);
            bulges.columns(simd, &mut a, n, far);
            a
        }
    }

    /// Near the end of a column, and far from it; all numbers of columns up to more than a group.
    fn together_as_one_by_one<T: Scalar>() {
        for (n, k) in [(8, 0), (9, 1), (31, 3), (40, 32)] {
            let numbers = random::<T>(n * n + 3 * TOGETHER);
            let (a, numbers) = numbers.split_at(n * n);
            let bulges = Bulges(std::array::from_fn(|i| {
                let [tau, v, w] = std::array::from_fn(|p| numbers[3 * i + p]);
                Bulge { k: k + i, tau, v, w }
            }));
            for far in (0..=n).map(|count| n - count..n) {
                let mut expected = a.to_vec();
                for bulge in bulges.0 {
                    bulge.rows_from(0, &mut expected[far.start * n..], n, 3);
                }
                for bulge in bulges.0 {
                    bulge.columns(&mut expected, n, far.clone(), 3);
                }
                for level in Level::available() {
                    let apply = Apply { bulges: &bulges, a: a.to_vec(), n, far: far.clone() };
                    let found = level.dispatch(apply);
                    close(&found, &expected, 1000, &format!("{n}, row {k}, {far:?}, {level:?}"));
                }
            }
        }
    }
}
