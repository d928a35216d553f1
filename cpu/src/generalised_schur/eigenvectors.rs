//! Eigenvectors of a pair in Schur form, by substitution: (β·S − α·T)·x = 0, or uᴴ·(β·S − α·T) = 0 (xTGEVC).
//!
//! α and β are divided by the larger one, S and T have elements of order 1. A pivot below the roundoff of those is
//! replaced by it, as an equal pair to working precision has it; a vector that grows is scaled down.

use lapax_core::{Real as _, Scalar as _};

use crate::Scalar;

/// Which eigenvectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// A·x = λ·B·x.
    Right,
    /// uᴴ·A = λ·uᴴ·B.
    Left,
}

/// A pair in Schur form, by rows, which are `ld` apart.
#[derive(Clone, Copy)]
pub(crate) struct Form<'a, T> {
    pub(crate) n: usize,
    pub(crate) ld: usize,
    pub(crate) s: &'a [T],
    pub(crate) t: &'a [T],
}

/// β·S − α·T for one eigenvalue.
struct System<'a, T: Scalar> {
    form: Form<'a, T>,
    alpha: T::Complex,
    beta: T::Real,
}

type Block<C> = [[C; 2]; 2];

impl<T: Scalar> Form<'_, T> {
    fn width(&self, k: usize) -> usize {
        if k + 1 < self.n && self.s[(k + 1) * self.ld + k] != T::ZERO { 2 } else { 1 }
    }

    /// The vectors of all eigenvalues, one after another; of a conjugate pair those of the second are conjugates.
    /// `sums` has room for n numbers.
    pub(crate) fn eigenvectors(
        self,
        which: Which,
        (alpha, beta): (&[T::Complex], &[T::Real]),
        vectors: &mut [T::Complex],
        sums: &mut [T::Complex],
    ) {
        let n = self.n;
        vectors.fill(T::Complex::ZERO);
        let mut k = 0;
        while k < n {
            let width = self.width(k);
            let (first, rest) = vectors[k * n..(k + width) * n].split_at_mut(n);
            let size = if alpha[k].abs() > beta[k].abs() { alpha[k].abs() } else { beta[k].abs() };
            first[k] = T::Complex::ONE;
            if size != T::Real::ZERO {
                let (alpha, beta) = (alpha[k].unscale(size), beta[k] / size);
                let system = System { form: self, alpha, beta };
                match which {
                    Which::Right => system.right(k, width, first),
                    Which::Left => system.left(k, width, first, sums),
                }
            }
            for (x, y) in first.iter().zip(rest) {
                *y = x.conj();
            }
            k += width;
        }
    }
}

impl<T: Scalar> System<'_, T> {
    /// The part of x in the eigenvalue's own block B is that with B·x = 0.
    fn start(&self, [[a, b], [c, d]]: Block<T::Complex>, width: usize, x: &mut [T::Complex]) {
        if width == 2 {
            let size = |x: T::Complex, y: T::Complex| x.abs1() + y.abs1();
            let (first, second) = if size(a, b) > size(c, d) { (-b, a) } else { (-d, c) };
            (x[0], x[1]) = (first, second);
            shrink(x, T::Real::ONE);
        }
    }

    fn right(&self, at: usize, width: usize, x: &mut [T::Complex]) {
        let Form { ld, s, t, .. } = self.form;
        let (mut k, stop) = (at, at + width);
        self.start(self.block(at, width), width, &mut x[at..stop]);
        while k > 0 {
            let width = if k >= 2 && s[(k - 1) * ld + k - 2] != T::ZERO { 2 } else { 1 };
            let known = k;
            k -= width;
            let mut b = [T::Complex::ZERO; 2];
            for (row, b) in (k..known).zip(&mut b) {
                let own = row * ld + known..row * ld + stop;
                let (of_s, of_t) =
                    (dot(&s[own.clone()], &x[known..stop]), dot(&t[own], &x[known..stop]));
                *b = self.alpha * of_t - of_s.scale(self.beta);
            }
            let y = solve(self.block(k, width), b, width);
            x[k..known].copy_from_slice(&y[..width]);
            shrink(x, limit::<T>());
        }
        shrink(x, T::Real::ONE);
    }

    /// Forward, for the conjugate of u; `sums` is what the known elements add.
    fn left(&self, at: usize, width: usize, u: &mut [T::Complex], sums: &mut [T::Complex]) {
        let n = self.form.n;
        let mut k = at + width;
        let transposed = |[[a, b], [c, d]]: Block<T::Complex>| [[a, c], [b, d]];
        self.start(transposed(self.block(at, width)), width, &mut u[at..k]);
        sums.fill(T::Complex::ZERO);
        self.add(at..k, u, sums);
        while k < n {
            let width = self.form.width(k);
            let b = [-sums[k], if width == 2 { -sums[k + 1] } else { T::Complex::ZERO }];
            let y = solve(transposed(self.block(k, width)), b, width);
            u[k..k + width].copy_from_slice(&y[..width]);
            let factor = shrink(u, limit::<T>());
            sums.iter_mut().for_each(|x| *x = x.scale(factor));
            self.add(k..k + width, u, sums);
            k += width;
        }
        shrink(u, T::Real::ONE);
        u.iter_mut().for_each(|x| *x = x.conj());
    }

    /// Adds these rows times their elements of u to what is behind them.
    fn add(&self, rows: std::ops::Range<usize>, u: &[T::Complex], sums: &mut [T::Complex]) {
        let Form { n, ld, s, t } = self.form;
        let behind = rows.end;
        for row in rows {
            let (of_s, of_t) = (u[row].scale(self.beta), u[row] * self.alpha);
            let own = row * ld + behind..row * ld + n;
            for ((sum, &s), &t) in sums[behind..].iter_mut().zip(&s[own.clone()]).zip(&t[own]) {
                *sum += times(s, of_s) - times(t, of_t);
            }
        }
    }

    /// The diagonal block at k.
    fn block(&self, k: usize, width: usize) -> Block<T::Complex> {
        let Form { ld, s, t, .. } = self.form;
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                if i < width && j < width {
                    let at = (k + i) * ld + k + j;
                    times(s[at], T::Complex::from_real(self.beta)) - times(t[at], self.alpha)
                } else {
                    T::Complex::ZERO
                }
            })
        })
    }
}

/// Of elements that may be of a real matrix.
fn times<T: Scalar>(a: T, x: T::Complex) -> T::Complex {
    if T::IS_COMPLEX { T::Complex::from_parts(a.re(), a.im()) * x } else { x.scale(a.re()) }
}

fn dot<T: Scalar>(a: &[T], x: &[T::Complex]) -> T::Complex {
    a.iter().zip(x).fold(T::Complex::ZERO, |sum, (&a, &x)| sum + times(a, x))
}

/// What an element may reach before its vector is scaled down: divided by the smallest pivot it is finite.
fn limit<T: Scalar>() -> T::Real {
    T::Real::MAX.sqrt()
}

/// Divides by the largest |re| + |im| where it exceeds `limit`, or is to be one; by what it was multiplied.
fn shrink<C: lapax_core::Scalar>(x: &mut [C], limit: C::Real) -> C::Real {
    let size =
        x.iter().fold(C::Real::ZERO, |size, x| if x.abs1() > size { x.abs1() } else { size });
    if size <= limit && limit != C::Real::ONE || size == C::Real::ZERO {
        return C::Real::ONE;
    }
    x.iter_mut().for_each(|x| *x = x.unscale(size));
    C::Real::ONE / size
}

/// x of a·x = b for one or two unknowns, by elimination with the largest element as the pivot.
fn solve<C: lapax_core::Scalar>(a: Block<C>, b: [C; 2], width: usize) -> [C; 2] {
    let smallest = C::Real::EPSILON + C::Real::EPSILON;
    let pivot = |x: C| if x.abs1() >= smallest { x } else { C::from_real(smallest) };
    if width == 1 {
        return [b[0].divide(pivot(a[0][0])), C::ZERO];
    }
    let (mut best, mut row, mut column) = (-C::Real::ONE, 0, 0);
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        if a[i][j].abs1() > best {
            (best, row, column) = (a[i][j].abs1(), i, j);
        }
    }
    let (other_row, other) = (1 - row, 1 - column);
    let head = pivot(a[row][column]);
    let factor = a[other_row][column].divide(head);
    let tail = pivot(a[other_row][other] - factor * a[row][other]);
    let second = (b[other_row] - factor * b[row]).divide(tail);
    let first = (b[row] - a[row][other] * second).divide(head);
    if column == 0 { [first, second] } else { [second, first] }
}
