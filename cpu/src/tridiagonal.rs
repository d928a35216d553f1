//! Tridiagonal systems A·X = B, A given by its three diagonals, each of length m.
//!
//! Row i of A is dl[i], d[i], du[i] in columns i − 1, i, i + 1: dl[0] and du[m − 1] lie outside and
//! are not read. Elimination with row interchanges gives U a second superdiagonal.

use lapax_core::{
    Items, ItemsInOut, ItemsMut, Real, Scalar as _, Serial, for_each, for_each_large,
    index_fits_i32,
};
use lapax_cpu_macros::per_scalar;

use crate::arch::Arch;
use crate::lanes::perturbed::Perturbed;
use crate::lanes::tridiagonal::{AsItIs, Division, SolveColumns, Step};
use crate::lanes::{self, for_each_group};
use crate::outcome::Outcome;
use crate::row_major;
use crate::scalar::{nan, nanoseconds};
use crate::{Error, InOut, Scalar, Threads, twisted};

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

/// The number of rows up to which a batch of systems goes through lanes: with one right-hand side,
/// f64 and AVX-512, the five tiles then take 1.25 MiB, about half a core's cache.
const LANES_ROWS: usize = 4096;

/// Solves A·X = B for each matrix of a batch, by Gaussian elimination with partial pivoting.
///
/// `b` is m × nrhs, column-major, and becomes X. `info` holds one number per matrix: 0, or the
/// first i > 0 for which U(i, i) is exactly zero; X is then not computed and `b` unchanged. The
/// diagonals are left as debris of the elimination.
///
/// # Errors
/// Where m exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn gtsv<T: Scalar>(
    batch: usize,
    m: usize,
    nrhs: usize,
    a: Diagonals<'_, T>,
    b: InOut<'_, T>,
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("m", m)?;
    let operands = (
        ItemsInOut::new("dl", batch, &[m], a.dl)?,
        ItemsInOut::new("d", batch, &[m], a.d)?,
        ItemsInOut::new("du", batch, &[m], a.du)?,
        ItemsInOut::new("b", batch, &[m, nrhs], b)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    if lanes::pay(batch, m, LANES_ROWS) {
        let kernel = lanes::tridiagonal::Solve { m, nrhs };
        for_each_group::<T, _>(batch, operands, lanes_work(m, nrhs), threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one =
        |[dl, d, du]: [&mut [T]; 3], b: &mut [T], steps: &mut [Step<T>], threads: &dyn Threads| {
            match eliminate(dl, d, du, steps) {
                Ok(()) if many(m, nrhs) => {
                    outcome.take(solve_columns([dl, d, du], steps, b, &AsItIs, threads));
                    0
                }
                Ok(()) => {
                    for b in columns(b, m) {
                        forward(steps, b);
                        for i in (0..m).rev() {
                            b[i] = residue(i, du, dl, b).divide(d[i]);
                        }
                    }
                    0
                }
                // At most m, which is an i32.
                Err(i) => i32::try_from(i + 1).unwrap_or(i32::MAX),
            }
        };
    let (time, steps) = (nanoseconds::<T>(work(m, nrhs)), || vec![Step::NONE; m]);
    if batch == 1 {
        for_each_large(batch, operands, threads, |(dl, d, du, b, info), threads| {
            info[0] = one([dl, d, du], b, &mut steps(), threads);
        });
    } else {
        for_each(batch, operands, time, threads, steps, |steps, (dl, d, du, b, info)| {
            info[0] = one([dl, d, du], b, steps, &Serial);
        });
    }
    outcome.into_result()
}

/// Solves A·X = B for each matrix of a batch, with B and X by rows.
///
/// `b` and `x` are m × nrhs; X is NaN where A is singular: where an elimination with partial pivoting
/// finds a pivot that is exactly zero.
///
/// # Errors
/// As [`gtsv`].
#[per_scalar]
pub fn tridiagonal_solve<T: Scalar>(
    batch: usize,
    m: usize,
    nrhs: usize,
    [dl, d, du]: [&[T]; 3],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let in_lanes = nrhs > 0 && lanes::pay(batch, m, LANES_ROWS);
    if !in_lanes && (nrhs != 1 || m == 0) {
        return row_major::tridiagonal_solve(gtsv, batch, (m, nrhs), [dl, d, du], b, x, threads);
    }
    let operands = (
        Items::new("dl", batch, &[m], dl)?,
        Items::new("d", batch, &[m], d)?,
        Items::new("du", batch, &[m], du)?,
        Items::new("b", batch, &[m, nrhs], b)?,
        ItemsMut::new("x", batch, &[m, nrhs], x)?,
    );
    if !in_lanes {
        let (outcome, arch) = (Outcome::default(), Arch::new());
        let time = nanoseconds::<T>(work(m, nrhs));
        for_each(batch, operands, time, threads, Vec::new, |rows, (dl, d, du, b, x)| {
            let a = [dl, d, du];
            if m < twisted::ROWS {
                x[0] = if d[0] == T::ZERO { nan() } else { b[0].divide(d[0]) };
            } else if !twisted::solve(a, b, x, rows, arch) {
                outcome.take(row_major::tridiagonal_solve(gtsv, 1, (m, 1), a, b, x, &Serial));
            }
        });
        return outcome.into_result();
    }
    let kernel = lanes::tridiagonal::SolveRows { m, nrhs };
    for_each_group::<T, _>(batch, operands, lanes_work(m, nrhs), threads, &kernel);
    Ok(())
}

/// Solves A·X = B for each matrix of a batch, perturbing a pivot wherever the quotient by it would
/// overflow, so that X is finite for any finite A and B: what inverse iteration needs.
///
/// `b` is m × nrhs, column-major, as is `x`. After LAPACK's xLAGTF and xLAGTS: rows are compared
/// for pivoting relative to their sizes; a pivot p too small for its right-hand side becomes
/// p + sign(re p)·δ, with δ doubled from ε·max|U| until the quotient is safe.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn tridiagonal_solve_perturbed<T: Scalar>(
    batch: usize,
    m: usize,
    nrhs: usize,
    [dl, d, du]: [&[T]; 3],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (
        Items::new("dl", batch, &[m], dl)?,
        Items::new("d", batch, &[m], d)?,
        Items::new("du", batch, &[m], du)?,
        Items::new("b", batch, &[m, nrhs], b)?,
        ItemsMut::new("x", batch, &[m, nrhs], x)?,
    );
    if nrhs == 0 {
        return Ok(());
    }
    if lanes::pay(batch, m, LANES_ROWS) {
        let kernel = lanes::perturbed::Solve { m, nrhs, quotient: perturbed_quotient::<T> };
        for_each_group::<T, _>(batch, operands, lanes_work(m, nrhs), threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |[dl, d, du]: [&[T]; 3], x: &mut [T], upper: &mut Upper<T>, threads: &dyn Threads| {
        upper.eliminate(dl, d, du);
        let least = upper.least_perturbation();
        let Upper { diagonal, first, second, steps } = upper;
        if many(m, nrhs) {
            let division = Perturbed { least, quotient: perturbed_quotient::<T> };
            let upper = [&**second, diagonal, first];
            outcome.take(solve_columns(upper, steps, x, &division, threads));
            return;
        }
        for x in columns(x, m) {
            forward(steps, x);
            for i in (0..m).rev() {
                let rhs = residue(i, first, second, x);
                x[i] = perturbed_quotient(rhs, diagonal[i], least);
            }
        }
    };
    let (time, upper) =
        (nanoseconds::<T>(work(m, nrhs).saturating_mul(2)), || Upper::with_order(m));
    if batch == 1 {
        for_each_large(batch, operands, threads, |(dl, d, du, b, x), threads| {
            x.copy_from_slice(b);
            one([dl, d, du], x, &mut upper(), threads);
        });
    } else {
        for_each(batch, operands, time, threads, upper, |upper, (dl, d, du, b, x)| {
            x.copy_from_slice(b);
            one([dl, d, du], x, upper, &Serial);
        });
    }
    outcome.into_result()
}

/// Whether right-hand sides of one system are solved for in lanes.
fn many(m: usize, nrhs: usize) -> bool {
    lanes::pay(nrhs, m, LANES_ROWS)
}

/// Solves for the columns of `b` in lanes, given U as [`eliminate`] leaves it and the steps that led there.
fn solve_columns<T: Scalar, D: Division<T>>(
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
    let together = (nrhs / lanes::width::<T>()).clamp(1, TOGETHER);
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
fn lanes_work(m: usize, nrhs: usize) -> usize {
    work(m, nrhs) / 10
}

/// The columns of an m-row matrix.
fn columns<T>(b: &mut [T], m: usize) -> impl Iterator<Item = &mut [T]> {
    b.chunks_exact_mut(m.max(1))
}

/// Applies the steps to a right-hand side.
fn forward<T: Scalar>(steps: &[Step<T>], b: &mut [T]) {
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
fn residue<T: Scalar>(i: usize, first: &[T], second: &[T], x: &[T]) -> T {
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
fn eliminate<T: Scalar>(
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
struct Upper<T> {
    diagonal: Vec<T>,
    first: Vec<T>,
    /// Row i's element of the second superdiagonal at i + 1.
    second: Vec<T>,
    steps: Vec<Step<T>>,
}

impl<T: Scalar> Upper<T> {
    fn with_order(m: usize) -> Self {
        Self {
            diagonal: vec![T::ZERO; m],
            first: vec![T::ZERO; m],
            second: vec![T::ZERO; m],
            steps: vec![Step::NONE; m],
        }
    }

    /// Rows are swapped where that makes the pivot larger relative to the size of its row.
    fn eliminate(&mut self, dl: &[T], d: &[T], du: &[T]) {
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
    fn least_perturbation(&self) -> T::Real {
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
