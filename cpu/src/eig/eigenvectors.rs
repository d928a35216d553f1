//! Eigenvectors of a matrix in Schur form, by substitution: (T − w·I)·x = 0, or uᴴ·(T − w·I) = 0.
//!
//! A column of the result holds one vector; for a conjugate pair of a real matrix, two columns hold
//! the real and the imaginary part of the vector of the first eigenvalue, as in LAPACK's xTREVC.
//! Where a solution would overflow, the whole vector is scaled down; a pivot below the roundoff of
//! w is replaced by that roundoff, as an equal matrix to working precision has it.

use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use super::shifted::{System, Which, max};
use crate::Scalar;
use crate::blas::householder::dot;
use crate::simd::arch::Arch;
use crate::simd::loops::sub_scaled;

/// The columns that a diagonal block has: one, or two for a conjugate pair.
pub(crate) fn width<T: Scalar>(t: &[T], n: usize, j: usize) -> usize {
    if j + 1 < n && t[j + 1 + j * n] != T::ZERO { 2 } else { 1 }
}

/// The eigenvectors of the n × n matrix T; the largest |re| + |im| in each is about one.
///
/// `sizes` has room for n numbers.
pub(crate) fn eigenvectors<T: Scalar>(
    which: Which,
    t: &[T],
    n: usize,
    x: &mut [T],
    sizes: &mut [T::Real],
    arch: Arch,
) {
    arch.dispatch(Eigenvectors { which, t, n, x, sizes });
}

struct Eigenvectors<'a, T: Scalar> {
    which: Which,
    t: &'a [T],
    n: usize,
    x: &'a mut [T],
    sizes: &'a mut [T::Real],
}

impl<T: Scalar> WithSimd for Eigenvectors<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { which, t, n, x, sizes } = self;
        // The sum of what stands above each column's diagonal block bounds what it can add.
        let mut j = 0;
        while j < n {
            let width = width(t, n, j);
            for (k, size) in sizes.iter_mut().enumerate().skip(j).take(width) {
                let above = t[k * n..k * n + j].iter();
                *size = above.fold(T::Real::ZERO, |sum, x| sum + x.abs1());
            }
            j += width;
        }
        x.fill(T::ZERO);
        j = 0;
        while j < n {
            let width = width(t, n, j);
            let (re, im) = x[j * n..(j + width) * n].split_at_mut(n);
            let w = eigenvalue(t, n, j, width);
            let system = System::new(t, n, w, sizes);
            let mut vector = Vector { re, im, bound: T::Real::ONE };
            start(&system, which, &mut vector, j, width);
            match which {
                Which::Right => right::<S, T>(&system, &mut vector, j, width),
                Which::Left => left::<S, T>(&system, &mut vector, j, width),
            }
            let size = vector.largest();
            vector.scale(T::Real::ONE / size);
            j += width;
        }
    }
}

/// The eigenvalue of a diagonal block, that with positive imaginary part of a pair.
fn eigenvalue<T: Scalar>(t: &[T], n: usize, j: usize, width: usize) -> T::Complex {
    let diagonal = t[j + j * n];
    if width == 1 {
        return T::Complex::from_parts(diagonal.re(), diagonal.im());
    }
    let (b, c) = (t[j + (j + 1) * n], t[j + 1 + j * n]);
    T::Complex::from_parts(diagonal.re(), b.abs1().sqrt() * c.abs1().sqrt())
}

/// A vector in one column, or in two: its real and imaginary parts.
struct Vector<'a, T: Scalar> {
    re: &'a mut [T],
    /// Empty for one column.
    im: &'a mut [T],
    /// No element is larger.
    bound: T::Real,
}

impl<T: Scalar> Vector<'_, T> {
    #[inline(always)]
    fn get(&self, i: usize) -> T::Complex {
        let re = self.re[i];
        let im = if self.im.is_empty() { re.im() } else { self.im[i].re() };
        T::Complex::from_parts(re.re(), im)
    }

    #[inline(always)]
    fn set(&mut self, i: usize, x: T::Complex) {
        if self.im.is_empty() {
            self.re[i] = T::from_parts(x.re(), x.im());
        } else {
            (self.re[i], self.im[i]) = (T::from_real(x.re()), T::from_real(x.im()));
        }
    }

    #[inline(always)]
    fn scale(&mut self, factor: T::Real) {
        self.re.iter_mut().for_each(|x| *x = x.scale(factor));
        self.im.iter_mut().for_each(|x| *x = x.scale(factor));
        self.bound *= factor;
    }

    /// The largest |re| + |im|.
    #[inline(always)]
    fn largest(&self) -> T::Real {
        (0..self.re.len()).fold(T::Real::ZERO, |best, i| max(best, self.get(i).abs1()))
    }

    /// Makes room for adding `growth` times its largest element.
    #[inline(always)]
    fn make_room(&mut self, growth: T::Real, limit: T::Real) {
        let growth = max(growth, T::Real::ONE);
        if self.bound > limit / growth {
            self.bound = self.largest();
            if self.bound > limit / growth {
                self.scale(limit / growth / self.bound);
            }
        }
    }

    /// Puts the solution of a block where its right-hand side was.
    #[inline(always)]
    fn place(&mut self, k: usize, width: usize, (y, factor): ([T::Complex; 2], T::Real)) {
        if factor != T::Real::ONE {
            self.scale(factor);
        }
        for (i, y) in y.into_iter().enumerate().take(width) {
            self.set(k + i, y);
            self.bound = max(self.bound, y.abs1());
        }
    }

    /// Elements `..k` less those of T's column j times element j.
    #[inline(always)]
    fn subtract<S: Simd>(&mut self, system: &System<'_, T>, j: usize, k: usize) {
        let column = &system.t[j * system.n..j * system.n + k];
        let (re, rest) = self.re.split_at_mut(k);
        sub_scaled::<S, T>(re, rest[j - k], column);
        if !self.im.is_empty() {
            let (im, rest) = self.im.split_at_mut(k);
            sub_scaled::<S, T>(im, rest[j - k], column);
        }
    }

    /// −(T's column j)ᴴ·x over rows `rows`.
    #[inline(always)]
    fn product<S: Simd>(
        &self,
        system: &System<'_, T>,
        j: usize,
        first: usize,
        k: usize,
    ) -> T::Complex {
        let column = &system.t[j * system.n + first..j * system.n + k];
        let re = dot::<S, T>(column, &self.re[first..k]);
        let im =
            if self.im.is_empty() { re.im() } else { dot::<S, T>(column, &self.im[first..k]).re() };
        -T::Complex::from_parts(re.re(), im)
    }
}

/// The part of the vector in the eigenvalue's own block.
#[inline(always)]
fn start<T: Scalar>(
    system: &System<'_, T>,
    which: Which,
    vector: &mut Vector<'_, T>,
    j: usize,
    width: usize,
) {
    let one = T::Real::ONE;
    let pair = |re, im| T::Complex::from_parts(re, im);
    let zero = T::Real::ZERO;
    if width == 1 {
        return vector.set(j, pair(one, zero));
    }
    let w = system.w.im();
    let (b, c) = (system.at(j, j + 1).re(), system.at(j + 1, j).re());
    // −i·w·x₁ + b·x₂ = 0 = c·x₁ − i·w·x₂, or −(−i·w)·u₁ + c·u₂ = 0 = b·u₁ + i·w·u₂.
    let (first, second) = match (which, b.abs() >= c.abs()) {
        (Which::Right, true) => (pair(one, zero), pair(zero, w / b)),
        (Which::Right, false) => (pair(-w / c, zero), pair(zero, one)),
        (Which::Left, true) => (pair(w / b, zero), pair(zero, one)),
        (Which::Left, false) => (pair(one, zero), pair(zero, -w / c)),
    };
    vector.set(j, first);
    vector.set(j + 1, second);
}

/// Back substitution above the block at j.
#[inline(always)]
fn right<S: Simd, T: Scalar>(
    system: &System<'_, T>,
    vector: &mut Vector<'_, T>,
    j: usize,
    width: usize,
) {
    let (mut k, mut known) = (j, width);
    loop {
        for i in (k..k + known).rev() {
            vector.make_room(system.sizes[i], system.largest);
            vector.subtract::<S>(system, i, k);
            vector.bound += vector.get(i).abs1() * system.sizes[i];
        }
        if k == 0 {
            return;
        }
        known = if k >= 2 && system.t[k - 1 + (k - 2) * system.n] != T::ZERO { 2 } else { 1 };
        k -= known;
        let zero = <T::Complex as lapax_core::Scalar>::ZERO;
        let b = [vector.get(k), if known == 2 { vector.get(k + 1) } else { zero }];
        vector.place(k, known, system.solve(Which::Right, k, known, b));
    }
}

/// Forward substitution below the block at j.
#[inline(always)]
fn left<S: Simd, T: Scalar>(
    system: &System<'_, T>,
    vector: &mut Vector<'_, T>,
    j: usize,
    width: usize,
) {
    let mut k = j + width;
    while k < system.n {
        let unknown = crate::eig::eigenvectors::width(system.t, system.n, k);
        let last = k + unknown - 1;
        vector.make_room(max(system.sizes[k], system.sizes[last]), system.largest);
        let mut b = [<T::Complex as lapax_core::Scalar>::ZERO; 2];
        for (i, b) in b.iter_mut().enumerate().take(unknown) {
            *b = vector.product::<S>(system, k + i, j, k);
        }
        vector.place(k, unknown, system.solve(Which::Left, k, unknown, b));
        k += unknown;
    }
}
