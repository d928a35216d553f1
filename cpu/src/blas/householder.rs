//! Elementary reflectors H = I − tau·v·vᴴ with v₀ = 1, one by one and as the block I − V·T·Vᴴ.
//!
//! Conventions are LAPACK's: Hᴴ·[alpha; x] = [beta; 0] with beta real and of the sign that alpha's
//! real part does not have; Q = H₁·H₂⋯H_k is kept as the tails of the vectors below a diagonal. The
//! block is Schreiber and Van Loan's, "A storage-efficient WY representation for products of
//! Householder transformations" (SIAM J. Sci. Stat. Comput. 10, 1989), with T upper triangular.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _};
use pulp::Simd;

use crate::matrix::layout::Factor;
use crate::simd::loops::sub_mul;
use crate::{Scalar, Side};

/// What a reflector makes of a vector's head, and its factor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reflector<T: Scalar> {
    pub(crate) beta: T::Real,
    pub(crate) tau: T,
}

/// The reflector with Hᴴ·[alpha; x] = [beta; 0], whose tail of v replaces x (xLARFG).
///
/// H is the identity (tau = 0) where x is zero and alpha is real. A vector whose squares overflow
/// or underflow is scaled by a power of two first, so v and tau have full accuracy for every finite
/// vector.
#[inline(always)]
pub(crate) fn reflector<S: Simd, T: Scalar>(alpha: T, x: &mut [T]) -> Reflector<T> {
    let squares = dot::<S, T>(x, x).re();
    if squares == T::Real::ZERO && alpha.im() == T::Real::ZERO && x.iter().all(|&x| x == T::ZERO) {
        return Reflector { beta: alpha.re(), tau: T::ZERO };
    }
    let square = square(alpha) + squares;
    if square >= low::<T>() && square <= high::<T>() {
        reflect(alpha, square, x)
    } else {
        reflect_scaled(alpha, square, x)
    }
}

/// The same for a tail of which this is the sum of squares, and what makes the tail of v of it; `None` where that
/// is not safe, or the tail may be zero.
#[inline(always)]
pub(crate) fn scaled<T: Scalar>(alpha: T, squares: T::Real) -> Option<(Reflector<T>, T)> {
    let square = square(alpha) + squares;
    if squares > T::Real::ZERO && square >= low::<T>() && square <= high::<T>() {
        let mut factor = [T::ONE];
        Some((reflect(alpha, square, &mut factor), factor[0]))
    } else {
        None
    }
}

/// xᴴ·y, summed in as many independent parts as registers want.
#[inline(always)]
pub(crate) fn dot<S: Simd, T: Scalar>(x: &[T], y: &[T]) -> T {
    const PARTS: usize = 16;
    if S::IS_SCALAR {
        return x.iter().zip(y).fold(T::ZERO, |sum, (&x, &y)| sum + x.conj() * y);
    }
    let mut sums = [T::ZERO; PARTS];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<PARTS>(), y.as_chunks::<PARTS>());
    for (x, y) in x.iter().zip(y) {
        for ((sum, &x), &y) in sums.iter_mut().zip(x).zip(y) {
            *sum = sub_mul::<S, T>(*sum, -x.conj(), y);
        }
    }
    for ((sum, &x), &y) in sums.iter_mut().zip(x_rest).zip(y_rest) {
        *sum = sub_mul::<S, T>(*sum, -x.conj(), y);
    }
    let mut parts = PARTS;
    while parts > 1 {
        parts /= 2;
        let (low, high) = sums.split_at_mut(parts);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
    }
    sums[0]
}

/// ‖x‖₂, without needless overflow or underflow; NaN or infinite where an element is.
#[inline(always)]
pub(crate) fn norm<S: Simd, T: Scalar>(x: &[T]) -> T::Real {
    let sum = dot::<S, T>(x, x).re();
    if sum >= low::<T>() && sum <= high::<T>() { sum.sqrt() } else { norm_scaled(x, sum) }
}

/// ‖x‖₂ where the sum of squares is not safe.
#[cold]
#[inline(never)]
fn norm_scaled<T: Scalar>(x: &[T], mut sum: T::Real) -> T::Real {
    let (factor, limit) = rescaling::<T>(sum);
    let mut steps = 0;
    while steps < limit && !(sum >= low::<T>() && sum <= high::<T>()) {
        steps += 1;
        let scaled = |x: T| (0..steps).fold(x, |x, _| x.scale(factor));
        sum = x.iter().fold(T::Real::ZERO, |sum, &x| sum + square(scaled(x)));
    }
    (0..steps).fold(sum.sqrt(), |norm, _| norm / factor)
}

/// |x|².
#[inline(always)]
fn square<T: Scalar>(x: T) -> T::Real {
    x.re() * x.re() + x.im() * x.im()
}

/// A sum of squares from here on has lost nothing that matters to those that underflowed.
#[inline(always)]
fn low<T: Scalar>() -> T::Real {
    T::Real::SAFE_MIN / (T::Real::EPSILON * T::Real::EPSILON)
}

/// A sum of squares up to here can be multiplied by a few, and have its reciprocal taken.
#[inline(always)]
fn high<T: Scalar>() -> T::Real {
    T::Real::MAX * (T::Real::EPSILON * T::Real::EPSILON)
}

/// The power of two that brings a vector with this sum of squares towards the safe range, and how
/// many times it may be needed.
fn rescaling<T: Scalar>(sum: T::Real) -> (T::Real, usize) {
    // 2⁵¹¹ and 2⁻⁵⁶⁴ for f64, 2⁶³ and 2⁻⁸⁷ for f32: two steps up from the smallest denormal number,
    // or one step down from the largest finite one, lead into the range.
    let up = (T::Real::ONE / T::Real::SAFE_MIN).sqrt();
    let down = T::Real::SAFE_MIN.sqrt() * T::Real::EPSILON;
    if sum < low::<T>() { (up, 2) } else { (down, 1) }
}

/// The reflector where the sum of all squares is safe.
#[inline(always)]
fn reflect<T: Scalar>(alpha: T, sum: T::Real, x: &mut [T]) -> Reflector<T> {
    let norm = sum.sqrt();
    let beta = -norm * alpha.re().signum();
    // tau = (beta − alpha)/beta, v = [alpha; x]/(alpha − beta) below its head.
    let difference = alpha - T::from_real(beta);
    let reciprocal = difference.conj().unscale(square(difference));
    x.iter_mut().for_each(|x| *x *= reciprocal);
    Reflector { beta, tau: -difference.unscale(beta) }
}

/// The reflector of a vector that has to be scaled first; v and tau do not change by that.
#[cold]
#[inline(never)]
fn reflect_scaled<T: Scalar>(mut alpha: T, mut sum: T::Real, x: &mut [T]) -> Reflector<T> {
    let (factor, limit) = rescaling::<T>(sum);
    let mut steps = 0;
    while steps < limit && !(sum >= low::<T>() && sum <= high::<T>()) {
        alpha = alpha.scale(factor);
        x.iter_mut().for_each(|x| *x = x.scale(factor));
        sum = x.iter().fold(square(alpha), |sum, &x| sum + square(x));
        steps += 1;
    }
    let Reflector { mut beta, tau } = reflect(alpha, sum, x);
    for _ in 0..steps {
        beta = beta / factor;
    }
    Reflector { beta, tau }
}

/// The memory of one [`Block`], reused by all blocks of a computation.
#[derive(Debug)]
pub(crate) struct BlockScratch<T> {
    v: Vec<T>,
    gram: Vec<T>,
    t: Vec<T>,
    w: Vec<T>,
}

impl<T: Scalar> BlockScratch<T> {
    /// For blocks of up to `width` reflectors on up to `rows` rows, which multiply matrices of up
    /// to `others` columns from the left, or rows from the right.
    pub(crate) fn new(rows: usize, width: usize, others: usize) -> Self {
        let zeros = |length| vec![T::ZERO; length];
        Self {
            v: zeros(rows * width),
            gram: zeros(width * width),
            t: zeros(width * width),
            w: zeros(2 * width * others),
        }
    }

    /// The block of the reflectors whose tails are below the diagonal of `a`, one in each column.
    pub(crate) fn block(&mut self, a: MatRef<'_, T>, tau: &[T]) -> Block<'_, T> {
        let (m, k) = (a.nrows(), a.ncols());
        let (v, t, gram) = (&mut self.v[..m * k], &mut self.t[..k * k], &mut self.gram[..k * k]);
        for (j, column) in v.chunks_exact_mut(m.max(1)).enumerate() {
            column[..j].fill(T::ZERO);
            column[j] = T::ONE;
            match a.col(j).try_as_col_major() {
                Some(tail) => column[j + 1..].copy_from_slice(&tail.as_slice()[j + 1..]),
                None => (j + 1..m).for_each(|i| column[i] = a[(i, j)]),
            }
        }
        let v = MatRef::from_column_major_slice(v, m, k);
        let product = MatMut::from_column_major_slice_mut(gram, k, k);
        T::product(product, Accum::Replace, (v.transpose(), Conj::Yes), (v, Conj::No), T::ONE);
        // T's column j is −tau·T·(Vᴴ·v) above the diagonal, with T and V up to column j, and tau.
        t.fill(T::ZERO);
        for (j, &tau) in tau.iter().enumerate() {
            let (known, rest) = t.split_at_mut(j * k);
            for (s, column) in known.chunks_exact(k).enumerate() {
                let factor = -tau * gram[s + j * k];
                let columns = rest.iter_mut().zip(column);
                columns.take(s + 1).for_each(|(x, &known)| *x += factor * known);
            }
            rest[j] = tau;
        }
        Block { v, t: MatRef::from_column_major_slice(t, k, k), w: &mut self.w }
    }

    /// V and T of the last block made, of k reflectors on m rows.
    pub(crate) fn made(&self, m: usize, k: usize) -> (MatRef<'_, T>, MatRef<'_, T>) {
        let v = MatRef::from_column_major_slice(&self.v[..m * k], m, k);
        (v, MatRef::from_column_major_slice(&self.t[..k * k], k, k))
    }
}

/// Q = H₁⋯H_k = I − V·T·Vᴴ; V has its ones and zeros written out, and T its zeros.
#[derive(Debug)]
pub(crate) struct Block<'a, T> {
    pub(crate) v: MatRef<'a, T>,
    pub(crate) t: MatRef<'a, T>,
    w: &'a mut [T],
}

impl<'a, T: Scalar> Block<'a, T> {
    /// With memory for two k × n matrices, where C has n columns, or rows on the left of Q.
    pub(crate) fn new(v: MatRef<'a, T>, t: MatRef<'a, T>, w: &'a mut [T]) -> Self {
        Self { v, t, w }
    }

    /// C ← Q·C or Qᴴ·C.
    pub(crate) fn apply_left(&mut self, factor: Factor, c: MatMut<'_, T>) {
        let (k, n) = (self.v.ncols(), c.ncols());
        let (w, tw) = self.w.split_at_mut(k * n);
        let mut w = MatMut::from_column_major_slice_mut(w, k, n);
        let mut tw = MatMut::from_column_major_slice_mut(&mut tw[..k * n], k, n);
        let (t, conj) = oriented(self.t, factor);
        // W = Vᴴ·C, then C − V·(op(T)·W).
        let (v_adjoint, v) = ((self.v.transpose(), Conj::Yes), (self.v, Conj::No));
        T::product(w.as_mut(), Accum::Replace, v_adjoint, (c.as_ref(), Conj::No), T::ONE);
        T::product(tw.as_mut(), Accum::Replace, (t, conj), (w.as_ref(), Conj::No), T::ONE);
        T::product(c, Accum::Add, v, (tw.as_ref(), Conj::No), -T::ONE);
    }

    /// C ← the first k columns of Q.
    pub(crate) fn first_columns(&mut self, mut c: MatMut<'_, T>) {
        let k = self.v.ncols();
        let mut w = MatMut::from_column_major_slice_mut(&mut self.w[..k * k], k, k);
        let (t, v, v1) = ((self.t, Conj::No), (self.v, Conj::No), self.v.subrows(0, k));
        // I − V·(T·V₁ᴴ).
        T::product(w.as_mut(), Accum::Replace, t, (v1.transpose(), Conj::Yes), T::ONE);
        T::product(c.as_mut(), Accum::Replace, v, (w.as_ref(), Conj::No), -T::ONE);
        (0..k).for_each(|j| c[(j, j)] += T::ONE);
    }

    /// C ← C·Q or C·Qᴴ.
    pub(crate) fn apply_right(&mut self, factor: Factor, c: MatMut<'_, T>) {
        let (k, m) = (self.v.ncols(), c.nrows());
        let (w, wt) = self.w.split_at_mut(m * k);
        let mut w = MatMut::from_column_major_slice_mut(w, m, k);
        let mut wt = MatMut::from_column_major_slice_mut(&mut wt[..m * k], m, k);
        let (t, conj) = oriented(self.t, factor);
        // W = C·V, then C − (W·op(T))·Vᴴ.
        let (v, v_adjoint) = ((self.v, Conj::No), (self.v.transpose(), Conj::Yes));
        T::product(w.as_mut(), Accum::Replace, (c.as_ref(), Conj::No), v, T::ONE);
        T::product(wt.as_mut(), Accum::Replace, (w.as_ref(), Conj::No), (t, conj), T::ONE);
        T::product(c, Accum::Add, (wt.as_ref(), Conj::No), v_adjoint, -T::ONE);
    }
}

/// T for Q, Tᴴ for Qᴴ.
fn oriented<T>(t: MatRef<'_, T>, factor: Factor) -> (MatRef<'_, T>, Conj) {
    match factor {
        Factor::Q => (t, Conj::No),
        Factor::Adjoint => (t.transpose(), Conj::Yes),
    }
}

/// Stored reflectors, r elements each, and whether their product or its adjoint is meant.
#[derive(Clone, Copy)]
pub(crate) struct Reflectors<'a, T> {
    pub(crate) a: &'a [T],
    pub(crate) r: usize,
    pub(crate) tau: &'a [T],
    pub(crate) factor: Factor,
}

impl<T: Scalar> Reflectors<'_, T> {
    /// Whether the last reflector is the first to be applied: Q·C = H₁(H₂(⋯C)), C·Q = ((C·H₁)H₂)⋯.
    pub(crate) fn last_first(&self, side: Side) -> bool {
        (side == Side::Left) == (self.factor == Factor::Q)
    }

    /// Reflector i's factor, of H or of Hᴴ, and the tail of its vector.
    #[inline(always)]
    pub(crate) fn at(&self, i: usize) -> (T, &[T]) {
        let tau = self.tau[i];
        let tau = if self.factor == Factor::Q { tau } else { tau.conj() };
        (tau, &self.a[i * self.r + i + 1..(i + 1) * self.r])
    }
}
