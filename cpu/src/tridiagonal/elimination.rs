//! Elimination with partial pivoting of one tridiagonal matrix.

use lapax_core::{ItemsInOut, Real, Scalar as _};

use crate::lanes::tridiagonal::columns::{Division, SolveColumns, Step};
use crate::parallel::groups::for_each_group;
use crate::simd::lane;
use crate::{Error, InOut, Scalar, Threads};

/// The diagonals of a batch of tridiagonal matrices, overwritten by their elimination.
#[derive(Debug)]
pub struct Diagonals<'a, T> {
    /// Below the diagonal.
    pub dl: InOut<'a, T>,
    /// The diagonal.
    pub d: InOut<'a, T>,
    /// Above the diagonal.
    pub du: InOut<'a, T>,
}

/// Solves for the columns of `b` in lanes, given U as [`eliminate`] leaves it and the steps that led there.
pub(crate) fn solve_columns<T: Scalar, D: Division<T>>(
    upper: [&[T]; 3],
    steps: &[Step<T>],
    b: &mut [T],
    division: &D,
    threads: &dyn Threads,
) -> Result<(), Error> {
    /// Columns that a lane takes at most, for which a pivot's reciprocal is computed once.
    const TOGETHER: usize = 4;
    let m = upper[1].len();
    let nrhs = b.len() / m;
    let together = (nrhs / lane::width::<T>()).clamp(1, TOGETHER);
    let (whole, rest) = b.split_at_mut(nrhs / together * together * m);
    for (b, columns) in [(whole, together), (rest, 1)] {
        let items = b.len() / (m * columns);
        let operand = ItemsInOut::new("b", items, &[m, columns], InOut { src: None, dst: b })?;
        let kernel = SolveColumns { columns, steps, upper, division };
        for_each_group::<T, _>(items, (operand,), lanes_work(m, columns), threads, &kernel);
    }
    Ok(())
}

/// A quotient, which takes about 10 products' time, and three products per row and column.
pub(crate) fn work(m: usize, nrhs: usize) -> usize {
    const ROW: usize = 100;
    m.saturating_mul(nrhs.saturating_add(1)).saturating_mul(ROW)
}

/// Nanoseconds that one system takes in lanes.
pub(crate) fn lanes_work(m: usize, nrhs: usize) -> usize {
    work(m, nrhs) / 10
}

/// The columns of an m-row matrix.
pub(crate) fn columns<T>(b: &mut [T], m: usize) -> impl Iterator<Item = &mut [T]> {
    b.chunks_exact_mut(m.max(1))
}

/// Applies the steps to a right-hand side.
pub(crate) fn forward<T: Scalar>(steps: &[Step<T>], b: &mut [T]) {
    for i in 1..b.len() {
        let step = steps[i - 1];
        if step.swapped {
            b.swap(i - 1, i);
        }
        let above = b[i - 1];
        b[i] -= step.multiplier * above;
    }
}

/// Row i of B less what is known: b[i] − U(i, i+1)·x[i+1] − U(i, i+2)·x[i+2]. `second[i + 1]` holds
/// U(i, i+2).
#[inline(always)]
pub(crate) fn residue<T: Scalar>(i: usize, first: &[T], second: &[T], x: &[T]) -> T {
    let mut rhs = x[i];
    if i + 1 < x.len() {
        rhs -= first[i] * x[i + 1];
    }
    if i + 2 < x.len() {
        rhs -= second[i + 1] * x[i + 2];
    }
    rhs
}

/// Turns the diagonals into U: `d`, `du` and, in `dl[i + 1]`, row i's element of the second
/// superdiagonal. `Err(i)` where pivot i is zero.
pub(crate) fn eliminate<T: Scalar>(
    dl: &mut [T],
    d: &mut [T],
    du: &mut [T],
    steps: &mut [Step<T>],
) -> Result<(), usize> {
    let m = d.len();
    for i in 1..m {
        let (k, below) = (i - 1, dl[i]);
        // A NaN is not kept as the pivot: it must reach the multipliers.
        let kept = d[k].abs1() >= below.abs1();
        if kept && d[k] == T::ZERO {
            return Err(k);
        }
        let multiplier;
        dl[i] = T::ZERO;
        if kept {
            multiplier = below.divide(d[k]);
            d[i] -= multiplier * du[k];
        } else {
            multiplier = d[k].divide(below);
            let next = d[i];
            d[k] = below;
            d[i] = du[k] - multiplier * next;
            du[k] = next;
            if i + 1 < m {
                dl[i] = du[i];
                du[i] = -(multiplier * dl[i]);
            }
        }
        steps[k] = Step { multiplier, swapped: !kept };
    }
    match d.last() {
        Some(&last) if last == T::ZERO => Err(m - 1),
        _ => Ok(()),
    }
}

/// U of an elimination that leaves the matrix alone, and the steps that led there.
pub(crate) struct Upper<T> {
    pub(crate) diagonal: Vec<T>,
    pub(crate) first: Vec<T>,
    /// Row i's element of the second superdiagonal at i + 1.
    pub(crate) second: Vec<T>,
    pub(crate) steps: Vec<Step<T>>,
}

impl<T: Scalar> Upper<T> {
    pub(crate) fn with_order(m: usize) -> Self {
        Self {
            diagonal: vec![T::ZERO; m],
            first: vec![T::ZERO; m],
            second: vec![T::ZERO; m],
            steps: vec![Step::NONE; m],
        }
    }

    /// Rows are swapped where that makes the pivot larger relative to the size of its row.
    pub(crate) fn eliminate(&mut self, dl: &[T], d: &[T], du: &[T]) {
        let m = d.len();
        let zero = T::Real::ZERO;
        self.diagonal.copy_from_slice(d);
        self.first.copy_from_slice(du);
        self.second.fill(T::ZERO);
        let Some(last) = self.first.last_mut() else { return };
        *last = T::ZERO;
        let mut size = d[0].abs() + self.first[0].abs();
        for i in 1..m {
            let (k, below) = (i - 1, dl[i]);
            let below_size = below.abs() + d[i].abs() + self.first[i].abs();
            let pivot = self.diagonal[k];
            let relative = |x: T, size| if x == T::ZERO { zero } else { x.abs() / size };
            let swapped = below != T::ZERO && relative(below, below_size) > relative(pivot, size);
            let mut multiplier = T::ZERO;
            if swapped {
                multiplier = pivot.divide(below);
                self.diagonal[k] = below;
                let next = self.diagonal[i];
                self.diagonal[i] = self.first[k] - multiplier * next;
                self.first[k] = next;
                self.second[i] = self.first[i];
                self.first[i] = -(multiplier * self.first[i]);
                // The row that moved down keeps its size.
            } else {
                if below != T::ZERO {
                    multiplier = below.divide(pivot);
                    self.diagonal[i] -= multiplier * self.first[k];
                }
                size = below_size;
            }
            self.steps[k] = Step { multiplier, swapped };
        }
    }

    /// ε times the largest element of U, or ε.
    pub(crate) fn least_perturbation(&self) -> T::Real {
        let elements = self.diagonal.iter().chain(&self.first).chain(&self.second);
        let largest =
            elements.map(|x| x.abs()).fold(T::Real::ZERO, |a, b| if b > a { b } else { a });
        let least = largest * T::Real::EPSILON;
        if least == T::Real::ZERO { T::Real::EPSILON } else { least }
    }
}

/// rhs / pivot with the pivot moved away from zero until the quotient is finite.
pub(crate) fn perturbed_quotient<T: Scalar>(mut rhs: T, mut pivot: T, least: T::Real) -> T {
    let (one, small) = (T::Real::ONE, T::Real::SAFE_MIN);
    let large = one / small;
    let mut perturbation = least * pivot.re().signum();
    loop {
        let size = pivot.abs();
        if size < one {
            let too_small = if size < small {
                size == T::Real::ZERO || rhs.abs() * small > size
            } else {
                rhs.abs() > size * large
            };
            if too_small {
                pivot += T::from_real(perturbation);
                perturbation = perturbation + perturbation;
                continue;
            }
            if size < small {
                rhs = rhs.scale(large);
                pivot = pivot.scale(large);
            }
        }
        return rhs.divide(pivot);
    }
}
