//! A pair of matrices in work, A = Q·S·Zᴴ and B = Q·T·Zᴴ, and what rotations and reflectors do to it.

use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::schur::two_by_two::Rotation;
use crate::simd::arch::Arch;

/// S and T by rows, and Qᴴ and Zᵀ by rows: what turns rows or columns of the pair turns rows of these. A row is `ld`
/// behind the one before; what is between is zero.
pub(crate) struct Pencil<'a, T: Scalar> {
    pub(crate) n: usize,
    pub(crate) ld: usize,
    pub(crate) s: &'a mut [T],
    pub(crate) t: &'a mut [T],
    pub(crate) qh: &'a mut [T],
    pub(crate) zt: &'a mut [T],
    pub(crate) arch: Arch,
}

/// The rotation that brings [x; y] to [r; 0], of denormal numbers too.
pub(crate) fn eliminating<T: Scalar>(x: T, y: T) -> Rotation<T> {
    let smallest = T::Real::SAFE_MIN / T::Real::EPSILON;
    if x.abs1() + y.abs1() < smallest {
        return Rotation::eliminating(x.unscale(T::Real::SAFE_MIN), y.unscale(T::Real::SAFE_MIN));
    }
    Rotation::eliminating(x, y)
}

impl<T: Scalar> Pencil<'_, T> {
    pub(crate) fn s(&self, i: usize, j: usize) -> T {
        self.s[i * self.ld + j]
    }

    pub(crate) fn t(&self, i: usize, j: usize) -> T {
        self.t[i * self.ld + j]
    }

    pub(crate) fn clear_s(&mut self, i: usize, j: usize) {
        self.s[i * self.ld + j] = T::ZERO;
    }

    pub(crate) fn clear_t(&mut self, i: usize, j: usize) {
        self.t[i * self.ld + j] = T::ZERO;
    }

    /// The rows of the diagonal block at k of a pair in Schur form: two for a conjugate pair of eigenvalues.
    pub(crate) fn width(&self, k: usize) -> usize {
        if k + 1 < self.n && self.s(k + 1, k) != T::ZERO { 2 } else { 1 }
    }

    /// Rows k and k + 1 ← G times them, in S and T from these columns on.
    pub(crate) fn left(&mut self, g: Rotation<T>, k: usize, s_from: usize, t_from: usize) {
        let (n, ld, arch) = (self.n, self.ld, self.arch);
        let parts = [(&mut *self.s, s_from), (&mut *self.t, t_from), (&mut *self.qh, 0)];
        let parts = parts.map(|(a, from)| {
            let (x, y) = a[k * ld..(k + 2) * ld].split_at_mut(ld);
            (&mut x[from..n], &mut y[from..n])
        });
        arch.dispatch(Rows { g, parts });
    }

    /// [x y] ← [x y]·Gᴴ for the columns `first` and `second`, in so many rows of S and T.
    pub(crate) fn right(
        &mut self,
        g: Rotation<T>,
        (first, second): (usize, usize),
        s_rows: usize,
        t_rows: usize,
    ) {
        let (n, ld, arch) = (self.n, self.ld, self.arch);
        let (low, high) = (first.min(second), first.max(second));
        let (head, tail) = self.zt.split_at_mut(high * ld);
        let (x, y) = (&mut head[low * ld..low * ld + n], &mut tail[..n]);
        let z = if first < second { (x, y) } else { (y, x) };
        let parts = [&mut self.s[..s_rows * ld], &mut self.t[..t_rows * ld]];
        let g = Rotation { c: g.c, s: g.s.conj() };
        arch.dispatch(Columns { g, ld, first, second, parts, z });
    }

    /// Rotates columns so that element (i, second) of S is zero.
    pub(crate) fn right_by_s(
        &mut self,
        i: usize,
        pair: (usize, usize),
        s_rows: usize,
        t_rows: usize,
    ) {
        let g = eliminating(self.s(i, pair.0).conj(), self.s(i, pair.1).conj());
        self.right(g, pair, s_rows, t_rows);
        self.clear_s(i, pair.1);
    }

    /// Rotates columns so that element (i, second) of T is zero.
    pub(crate) fn right_by_t(
        &mut self,
        i: usize,
        pair: (usize, usize),
        s_rows: usize,
        t_rows: usize,
    ) {
        let g = eliminating(self.t(i, pair.0).conj(), self.t(i, pair.1).conj());
        self.right(g, pair, s_rows, t_rows);
        self.clear_t(i, pair.1);
    }

    /// M rows from k on ← (I − tau·v·vᵀ) times them, in S and T from these columns on; of real matrices.
    pub(crate) fn reflect_left<const M: usize>(
        &mut self,
        v: [T; M],
        tau: T,
        k: usize,
        (s_from, t_from): (usize, usize),
    ) {
        let (n, ld) = (self.n, self.ld);
        let own = k * ld..(k + M) * ld;
        let parts = [
            (&mut self.s[own.clone()], s_from),
            (&mut self.t[own.clone()], t_from),
            (&mut self.qh[own], 0),
        ];
        self.arch.dispatch(ReflectRows { v, tau, n, ld, parts });
    }

    /// M columns from k on ← them times I − tau·v·vᵀ, in so many rows of S and T; of real matrices.
    pub(crate) fn reflect_right<const M: usize>(
        &mut self,
        v: [T; M],
        tau: T,
        k: usize,
        (s_rows, t_rows): (usize, usize),
    ) {
        let (n, ld) = (self.n, self.ld);
        let parts = [&mut self.s[..s_rows * ld], &mut self.t[..t_rows * ld]];
        self.arch.dispatch(ReflectColumns { v, tau, ld, k, parts });
        let parts = [(&mut self.zt[k * ld..(k + M) * ld], 0)];
        self.arch.dispatch(ReflectRows { v, tau, n, ld, parts });
    }

    /// Turns row i so that T's diagonal element there is real and not negative.
    pub(crate) fn make_row_positive(&mut self, i: usize) {
        let x = self.t(i, i);
        let size = x.abs();
        if x != T::from_real(size) && size != T::Real::ZERO {
            self.turn_row(i, x.conj().unscale(size));
            self.t[i * (self.ld + 1)] = T::from_real(size);
        }
    }

    /// Row k ← factor times it, of modulus one.
    pub(crate) fn turn_row(&mut self, k: usize, factor: T) {
        let own = k * self.ld..k * self.ld + self.n;
        for a in [&mut *self.s, &mut *self.t, &mut *self.qh] {
            a[own.clone()].iter_mut().for_each(|x| *x *= factor);
        }
    }
}

struct Rows<'a, T: Scalar> {
    g: Rotation<T>,
    parts: [(&'a mut [T], &'a mut [T]); 3],
}

impl<T: Scalar> WithSimd for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (x, y) in self.parts {
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = self.g.rotate(*x, *y);
            }
        }
    }
}

struct Columns<'a, T: Scalar> {
    g: Rotation<T>,
    ld: usize,
    first: usize,
    second: usize,
    parts: [&'a mut [T]; 2],
    z: (&'a mut [T], &'a mut [T]),
}

impl<T: Scalar> WithSimd for Columns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { g, ld, first, second, parts, z } = self;
        for part in parts {
            for row in part.chunks_exact_mut(ld) {
                (row[first], row[second]) = g.rotate(row[first], row[second]);
            }
        }
        for (x, y) in z.0.iter_mut().zip(z.1) {
            (*x, *y) = g.rotate(*x, *y);
        }
    }
}

struct ReflectRows<'a, T, const M: usize, const PARTS: usize> {
    v: [T; M],
    tau: T,
    n: usize,
    ld: usize,
    /// M rows each, and the first column.
    parts: [(&'a mut [T], usize); PARTS],
}

impl<T: Scalar, const M: usize, const PARTS: usize> WithSimd for ReflectRows<'_, T, M, PARTS> {
    type Output = ();

    #[allow(clippy::needless_range_loop, reason = "an element of each of M rows")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { v, tau, n, ld, parts } = self;
        for (a, from) in parts {
            let mut rows = a.chunks_exact_mut(ld);
            let rows: [&mut [T]; M] =
                std::array::from_fn(|_| rows.next().map_or(&mut [][..], |row| &mut row[from..n]));
            let count = rows.iter().map(|row| row.len()).min().unwrap_or(0);
            let rows = rows.map(|row| &mut row[..count]);
            for j in 0..count {
                let sum = (0..M).fold(T::ZERO, |sum, i| sum + v[i] * rows[i][j]) * tau;
                for i in 0..M {
                    rows[i][j] -= v[i] * sum;
                }
            }
        }
    }
}

struct ReflectColumns<'a, T, const M: usize> {
    v: [T; M],
    tau: T,
    ld: usize,
    k: usize,
    parts: [&'a mut [T]; 2],
}

impl<T: Scalar, const M: usize> WithSimd for ReflectColumns<'_, T, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { v, tau, ld, k, parts } = self;
        for part in parts {
            for row in part.chunks_exact_mut(ld) {
                let x = &mut row[k..k + M];
                let sum = x.iter().zip(v).fold(T::ZERO, |sum, (&x, v)| sum + v * x) * tau;
                x.iter_mut().zip(v).for_each(|(x, v)| *x -= v * sum);
            }
        }
    }
}
