//! Blocks by rows in registers: products and substitutions of right-hand sides that lie by rows, and blocks that are
//! turned as they are read and written.

use pulp::Simd;

use crate::simd::lane_real::LaneReal;
use crate::simd::lines::{self, LaneNumbers, transpose_numbers};
use crate::simd::loops::Divisor;
use crate::simd::vector::{Lane, MAX_LANES, Reg, Vector};
use crate::{Diag, Scalar, Trans, Uplo};

/// Rows that are worked on together, so that none waits for its own last sum.
pub(super) const TOGETHER: usize = 4;

/// ±op(A) for a square A by rows, or a triangle of it.
#[derive(Clone, Copy)]
pub(super) struct Coefficients<'a, T> {
    pub(super) a: &'a [T],
    pub(super) n: usize,
    trans: Trans,
    negated: bool,
    /// Which triangle of op(A) a substitution is with, and whether it has ones on its diagonal.
    uplo: Uplo,
    diag: Diag,
}

impl<'a, T: Scalar> Coefficients<'a, T> {
    pub(super) fn of(a: &'a [T], n: usize) -> Self {
        Self::op(a, n, Trans::None)
    }

    /// For substitutions with op of a lower triangle.
    pub(super) fn op(a: &'a [T], n: usize, trans: Trans) -> Self {
        Self::triangle(a, n, trans, Uplo::Lower, Diag::NonUnit)
    }

    pub(super) fn adjoint(a: &'a [T], n: usize) -> Self {
        Self::op(a, n, Trans::ConjTranspose)
    }

    /// op of a triangle of A.
    pub(super) fn triangle(a: &'a [T], n: usize, trans: Trans, uplo: Uplo, diag: Diag) -> Self {
        let uplo = if trans == Trans::None { uplo } else { uplo.other() };
        Self { a, n, trans, negated: false, uplo, diag }
    }

    pub(super) fn negated(self) -> Self {
        Self { negated: !self.negated, ..self }
    }

    #[inline(always)]
    fn at(self, i: usize, j: usize) -> T {
        let x = match self.trans {
            Trans::None => self.a[i * self.n + j],
            Trans::Transpose => self.a[j * self.n + i],
            Trans::ConjTranspose => self.a[j * self.n + i].conj(),
        };
        if self.negated { -x } else { x }
    }

    /// Rows `first` to `first + N` of X less what columns `known` of the matrix make of B, in the columns of X and
    /// B from `from` on.
    #[inline(always)]
    fn reduced<S: Simd, const N: usize>(
        self,
        simd: S,
        first: usize,
        known: std::ops::Range<usize>,
        (b, x): (&[T], &[T]),
        (nrhs, from): (usize, usize),
    ) -> [T::Lane<S>; N] {
        let row = |x: &[T], i: usize| lines::read::<S, T>(simd, &x[i * nrhs..(i + 1) * nrhs], from);
        let mut sums: [T::Lane<S>; N] = std::array::from_fn(|r| row(x, first + r));
        for k in known {
            let b = row(b, k);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = sum.sub_mul(T::Lane::<S>::splat(simd, self.at(first + r, k)), b);
            }
        }
        sums
    }
}

/// X ← X − op(A)·B, of n rows and nrhs columns.
#[inline(always)]
pub(super) fn subtract_product<S: Simd, T: Scalar>(
    simd: S,
    a: Coefficients<'_, T>,
    b: &[T],
    x: &mut [T],
    nrhs: usize,
) {
    let n = a.n;
    for from in (0..nrhs).step_by(T::Real::lanes::<S>()) {
        let mut i = 0;
        while i + TOGETHER <= n {
            let sums = a.reduced::<S, TOGETHER>(simd, i, 0..n, (b, x), (nrhs, from));
            write_rows::<S, T>(&sums, x, i, (nrhs, from));
            i += TOGETHER;
        }
        while i < n {
            let sums = a.reduced::<S, 1>(simd, i, 0..n, (b, x), (nrhs, from));
            write_rows::<S, T>(&sums, x, i, (nrhs, from));
            i += 1;
        }
    }
}

#[inline(always)]
fn write_rows<S: Simd, T: Scalar>(
    rows: &[T::Lane<S>],
    x: &mut [T],
    first: usize,
    (nrhs, from): (usize, usize),
) {
    let to = nrhs.min(from + T::Real::lanes::<S>());
    for (row, i) in rows.iter().zip(first..) {
        lines::write::<S, T>(*row, &mut x[i * nrhs + from..i * nrhs + to]);
    }
}

/// X ← op(A)⁻¹·X for a triangle of op(A): from the first row to the last of a lower one, from the last to the first of
/// an upper one.
#[inline(always)]
pub(super) fn substitute<S: Simd, T: Scalar>(
    simd: S,
    l: Coefficients<'_, T>,
    x: &mut [T],
    nrhs: usize,
) {
    let n = l.n;
    for from in (0..nrhs).step_by(T::Real::lanes::<S>()) {
        let mut done = 0;
        while done + TOGETHER <= n {
            substitute_rows::<S, T, TOGETHER>(simd, l, done, x, (nrhs, from));
            done += TOGETHER;
        }
        while done < n {
            substitute_rows::<S, T, 1>(simd, l, done, x, (nrhs, from));
            done += 1;
        }
    }
}

/// The next N unknowns.
#[inline(always)]
fn substitute_rows<S: Simd, T: Scalar, const N: usize>(
    simd: S,
    l: Coefficients<'_, T>,
    done: usize,
    x: &mut [T],
    (nrhs, from): (usize, usize),
) {
    let n = l.n;
    let upper = l.uplo == Uplo::Upper;
    let (first, known) = if upper { (n - done - N, n - done..n) } else { (done, 0..done) };
    let mut sums = l.reduced::<S, N>(simd, first, known, (x, x), (nrhs, from));
    for step in 0..N {
        let at = |step: usize| if upper { N - 1 - step } else { step };
        let r = at(step);
        for k in (0..step).map(at) {
            let factor = T::Lane::<S>::splat(simd, l.at(first + r, first + k));
            sums[r] = sums[r].sub_mul(factor, sums[k]);
        }
        if l.diag == Diag::NonUnit {
            sums[r] = divide::<S, T>(simd, sums[r], l.at(first + r, first + r));
        }
    }
    write_rows::<S, T>(&sums, x, first, (nrhs, from));
}

#[inline(always)]
fn divide<S: Simd, T: Scalar>(simd: S, x: T::Lane<S>, divisor: T) -> T::Lane<S> {
    match Divisor::new(divisor) {
        Divisor::One => x,
        Divisor::Reciprocal(reciprocal) => x * T::Lane::<S>::splat(simd, reciprocal),
        Divisor::Number(divisor) => {
            let mut numbers = [T::ZERO; MAX_LANES];
            x.write(&mut numbers);
            numbers.iter_mut().for_each(|x| *x = x.divide(divisor));
            T::Lane::<S>::read(simd, &numbers)
        }
    }
}

/// Rows of registers that hold the adjoints of square blocks side by side.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    /// The order of a block.
    pub(super) n: usize,
    /// The registers of one block's row, and those of a row.
    pub(super) strips: usize,
    pub(super) pitch: usize,
}

impl Panel {
    /// One of two blocks.
    pub(super) fn of_two(n: usize, lanes: usize) -> Self {
        let strips = n.div_ceil(lanes);
        Self { n, strips, pitch: 2 * strips }
    }

    /// Reads the adjoint of a block, `first` registers from the left; of a Hermitian one what the lower triangle says
    /// comes on and above the diagonal, and anything below.
    #[inline(always)]
    pub(super) fn read_adjoint<S: Simd, T: Scalar>(
        self,
        simd: S,
        a: &[T],
        rows: &mut [Reg<S, T::Lane<S>>],
        first: usize,
    ) {
        let (n, lanes) = (self.n, T::Real::lanes::<S>());
        let mut square = [T::Lane::<S>::splat(simd, T::ZERO); MAX_LANES];
        let square = &mut square[..lanes];
        for (top, left) in self.squares() {
            for (r, x) in square.iter_mut().enumerate() {
                let i = n.min(top * lanes + r);
                // Behind the end of a row comes the next one, in lanes that are not looked at.
                *x = lines::read::<S, T>(simd, &a[i * n..], (left * lanes).min((n - i) * n)).conj();
            }
            transpose_numbers::<S, T>(simd, square);
            for (x, j) in square.iter().zip(left * lanes..n) {
                x.store(rows, j * self.pitch + first + top);
            }
        }
    }

    /// Writes a block whose adjoint begins so many registers from the left: as it is, or with zeros above its diagonal.
    #[inline(always)]
    pub(super) fn write_adjoint<S: Simd, T: Scalar>(
        self,
        simd: S,
        rows: &[Reg<S, T::Lane<S>>],
        first: usize,
        lower: bool,
        a: &mut [T],
    ) {
        let (n, lanes) = (self.n, T::Real::lanes::<S>());
        let zero = T::Lane::<S>::splat(simd, T::ZERO);
        let numbers = LaneNumbers::<T::Real>::new();
        let mut square = [zero; MAX_LANES];
        let square = &mut square[..lanes];
        for (top, left) in self.squares() {
            for (r, x) in square.iter_mut().enumerate() {
                let j = left * lanes + r;
                let inside = j < n && (!lower || left <= top);
                *x = if inside {
                    T::Lane::<S>::load(simd, rows, j * self.pitch + first + top).conj()
                } else {
                    zero
                };
            }
            transpose_numbers::<S, T>(simd, square);
            for (r, (x, i)) in square.iter().zip(top * lanes..n).enumerate() {
                let mut x = *x;
                if lower && left == top {
                    let last = Vector::<S, T::Real>::splat(simd, numbers.get(r));
                    x = T::Lane::<S>::choose(numbers.vector(simd).less_or_equal(last), x, zero);
                }
                let to = n.min((left + 1) * lanes);
                lines::write::<S, T>(x, &mut a[i * n + left * lanes..i * n + to]);
            }
        }
    }

    /// The squares of registers of a block, by rows.
    fn squares(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.strips).flat_map(move |top| (0..self.strips).map(move |left| (top, left)))
    }
}
