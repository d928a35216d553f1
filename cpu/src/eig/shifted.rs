//! Diagonal blocks of T − w·I, T in Schur form: systems of one or two equations, solved so that
//! nothing overflows, with pivots of at least the roundoff of w.

use lapax_core::{Real as _, Scalar as _};

use crate::Scalar;

/// Which eigenvectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// A·x = w·x.
    Right,
    /// uᴴ·A = w·uᴴ.
    Left,
}

/// T − w·I, and what is too small or too large in it.
pub(crate) struct System<'a, T: Scalar> {
    pub(crate) t: &'a [T],
    pub(crate) n: usize,
    pub(crate) w: T::Complex,
    pub(crate) sizes: &'a [T::Real],
    pub(crate) smallest: T::Real,
    pub(crate) largest: T::Real,
}

impl<'a, T: Scalar> System<'a, T> {
    #[inline(always)]
    pub(crate) fn new(t: &'a [T], n: usize, w: T::Complex, sizes: &'a [T::Real]) -> Self {
        let ulp = T::Real::EPSILON + T::Real::EPSILON;
        let order = T::Real::from_f64(f64::from(u32::try_from(n).unwrap_or(u32::MAX)));
        let floor = T::Real::SAFE_MIN * (order / ulp);
        let roundoff = ulp * w.abs1();
        let smallest = if roundoff > floor { roundoff } else { floor };
        Self { t, n, w, sizes, smallest, largest: (T::Real::ONE - ulp) / floor }
    }

    #[inline(always)]
    pub(crate) fn at(&self, i: usize, j: usize) -> T::Complex {
        let x = self.t[i + j * self.n];
        T::Complex::from_parts(x.re(), x.im())
    }

    /// y with (B − w·I)·y = factor·b, or (B − w·I)ᴴ·y = factor·b, for the diagonal block B at `k`.
    #[inline(always)]
    pub(crate) fn solve(
        &self,
        which: Which,
        k: usize,
        width: usize,
        b: [T::Complex; 2],
    ) -> ([T::Complex; 2], T::Real) {
        let left = which == Which::Left;
        let oriented = |x: T::Complex| if left { x.conj() } else { x };
        let a = oriented(self.at(k, k) - self.w);
        let zero = <T::Complex as lapax_core::Scalar>::ZERO;
        if width == 1 {
            let (a, size) = self.pivot(a);
            let factor = self.factor(size, b[0].abs1());
            return ([b[0].scale(factor).divide(a), zero], factor);
        }
        let d = oriented(self.at(k + 1, k + 1) - self.w);
        let (mut above, mut below) = (self.at(k, k + 1), self.at(k + 1, k));
        if left {
            (above, below) = (below, above);
        }
        // Elimination with the largest of the four elements as the pivot.
        let largest = [a, above, below, d].map(|x| x.abs1()).into_iter().fold(T::Real::ZERO, max);
        let swap_rows = a.abs1() < largest && above.abs1() < largest;
        let (rows, b) = if swap_rows {
            ([[below, d], [a, above]], [b[1], b[0]])
        } else {
            ([[a, above], [below, d]], b)
        };
        let swap_columns = rows[0][0].abs1() < rows[0][1].abs1();
        let [[p, q], [r, s]] = if swap_columns { rows.map(|[x, y]| [y, x]) } else { rows };
        let (p, p_size) = self.pivot(p);
        let multiplier = r.divide(p);
        let (s, s_size) = self.pivot(s - multiplier * q);
        let rest = b[1] - multiplier * b[0];
        // |q| <= |p|, so the first unknown is at most |b₀/p| plus the second.
        let factor = min(self.factor(s_size, rest.abs1()), self.factor(p_size, b[0].abs1()));
        let second = rest.scale(factor).divide(s);
        let first = (b[0].scale(factor) - q * second).divide(p);
        (if swap_columns { [second, first] } else { [first, second] }, factor)
    }

    /// A pivot that is not too small, and its size.
    #[inline(always)]
    fn pivot(&self, x: T::Complex) -> (T::Complex, T::Real) {
        let size = x.abs1();
        if size >= self.smallest {
            (x, size)
        } else {
            (T::Complex::from_real(self.smallest), self.smallest)
        }
    }

    /// A factor by which numbers up to `size` can be divided by `pivot` with room to spare.
    #[inline(always)]
    fn factor(&self, pivot: T::Real, size: T::Real) -> T::Real {
        let room = self.largest * T::Real::from_f64(0.125);
        if pivot < T::Real::ONE && size > room * pivot { T::Real::ONE / size } else { T::Real::ONE }
    }
}

#[inline(always)]
pub(crate) fn max<R: PartialOrd>(x: R, y: R) -> R {
    if y > x { y } else { x }
}

#[inline(always)]
fn min<R: PartialOrd>(x: R, y: R) -> R {
    if y < x { y } else { x }
}
