//! The singular value decomposition A = U·diag(s)·Vᴴ.
//!
//! A wide matrix is decomposed through its transpose, Aᵀ = conj(V)·diag(s)·Uᵀ, so that all below the
//! public functions has at least as many rows as columns.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::{MatMut, MatRef};
use lapax_core::{ItemsInOut, ItemsMut, Real as _, Scalar as _, for_each, index_fits_i32};
use pulp::Arch;

use crate::bidiagonal_qr::{BidiagonalQr, Pair};
use crate::bidiagonalize::{self, Bidiagonal, bidiagonalize};
use crate::divide_and_conquer::{DivideAndConquer, SVD_ORDER, is_svd, memory};
use crate::householder::{BlockScratch, Factor};
use crate::normal_range::{largest_part, power_near_reciprocal};
use crate::rotations::set_identity;
use crate::scalar::nanoseconds;
use crate::{Error, InOut, Scalar, SingularVectors, Threads};

/// Reflectors that are applied together.
const BLOCK: usize = 32;

/// How the bidiagonal matrix is decomposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// By halves where it is large, as xGESDD.
    Divide,
    /// By implicit QR steps alone, as xGESVD.
    Qr,
}

impl Method {
    /// `info` where the matrix holds a NaN or an infinity: the number of that argument in LAPACK.
    fn not_finite(self) -> i32 {
        match self {
            Method::Divide => -4,
            Method::Qr => -5,
        }
    }
}

/// The results of a decomposition, one of each per matrix.
#[derive(Debug)]
pub struct Svd<'a, T: Scalar> {
    /// The min(m, n) singular values, descending.
    pub s: &'a mut [T::Real],
    /// U, m × m for [`SingularVectors::All`] and m × min(m, n) for [`SingularVectors::Thin`].
    pub u: &'a mut [T],
    /// Vᴴ, n × n for [`SingularVectors::All`] and min(m, n) × n for [`SingularVectors::Thin`].
    pub vt: &'a mut [T],
    /// 0; −4 (of `gesdd`) or −5 (of `gesvd`) where the matrix is not finite, and all results are NaN
    /// then; or i > 0 where i elements of an intermediate bidiagonal matrix did not converge.
    pub info: &'a mut [i32],
}

/// Decomposes each m × n matrix of a batch, by divide and conquer where it is large.
///
/// `a` is scratch. With [`SingularVectors::None`] `u` and `vt` may have any size, and become zeros.
///
/// # Errors
/// Where m or n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
pub fn gesdd<T: DivideAndConquer>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    decompose_all(Method::Divide, job, batch, (m, n), a, results, threads)
}

/// Decomposes each m × n matrix of a batch by implicit QR steps; otherwise as [`gesdd`].
///
/// # Errors
/// As [`gesdd`].
pub fn gesvd<T: DivideAndConquer>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    decompose_all(Method::Qr, job, batch, (m, n), a, results, threads)
}

fn decompose_all<T: DivideAndConquer>(
    method: Method,
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    let k = m.min(n);
    let Svd { s, u, vt, info } = results;
    let (u_cols, vt_rows) = match job {
        SingularVectors::All => (m, n),
        SingularVectors::Thin => (k, k),
        SingularVectors::None => (0, 0),
    };
    let (u, vt) = if job == SingularVectors::None {
        u.fill(T::ZERO);
        vt.fill(T::ZERO);
        (&mut [][..], &mut [][..])
    } else {
        (u, vt)
    };
    let operands = (
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsMut::new("s", batch, &[k], s)?,
        ItemsMut::new("u", batch, &[m, u_cols], u)?,
        ItemsMut::new("vt", batch, &[vt_rows, n], vt)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    // 2·m·k² products for B, about 6·k³ for its vectors, and those of Q and P with them.
    let products = m.saturating_mul(n).saturating_mul(k).saturating_mul(2);
    let products = if job == SingularVectors::None { products } else { products.saturating_mul(5) };
    let arch = Arch::new();
    let scratch = || Scratch::new(method, job, m, n);
    for_each(
        batch,
        operands,
        nanoseconds::<T>(products),
        threads,
        scratch,
        |scratch, (a, s, u, vt, info)| {
            let Some(largest) = largest_part(&*a) else {
                let nan = T::Real::from_f64(f64::NAN);
                s.fill(nan);
                for x in [a, u, vt] {
                    x.fill(T::from_parts(nan, nan));
                }
                info[0] = method.not_finite();
                return;
            };
            let power = power_near_reciprocal(largest);
            let u = MatMut::from_column_major_slice_mut(u, m, u_cols);
            let vt = MatMut::from_column_major_slice_mut(vt, vt_rows, n);
            let vectors = (job != SingularVectors::None).then_some((u, vt));
            let outcome = if m >= n {
                a.iter_mut().for_each(|x| *x = x.scale(power));
                decompose(a, s, vectors, scratch, arch)
            } else {
                let mut transposed = std::mem::take(&mut scratch.transposed);
                for (j, row) in transposed.chunks_exact_mut(n).enumerate() {
                    for (x, column) in row.iter_mut().zip(a.chunks_exact(m)) {
                        *x = column[j].scale(power);
                    }
                }
                let vectors = vectors.map(|(u, vt)| (vt.transpose_mut(), u.transpose_mut()));
                let outcome = decompose(&mut transposed, s, vectors, scratch, arch);
                scratch.transposed = transposed;
                outcome
            };
            s.iter_mut().for_each(|s| *s = *s / power);
            // No more elements than k − 1, which is an i32.
            let failed = |count| i32::try_from(count).unwrap_or(i32::MAX);
            info[0] = outcome.map_or_else(failed, |()| 0);
        },
    );
    Ok(())
}

/// What decompositions of matrices of one shape, m × n before it is transposed, reuse.
struct Scratch<T: Scalar> {
    transposed: Vec<T>,
    e: Vec<T::Real>,
    tau_q: Vec<T>,
    tau_p: Vec<T>,
    /// The right reflectors, n × n; or V, if that is found by divide and conquer.
    right: Vec<T>,
    bidiagonalize: bidiagonalize::Scratch<T>,
    rotations: Vec<Pair<T::Real>>,
    vectors: Option<VectorScratch<T>>,
}

/// What singular vectors take besides.
struct VectorScratch<T: Scalar> {
    /// Those of the bidiagonal matrix, left and right.
    u: Vec<T::Real>,
    v: Vec<T::Real>,
    block: BlockScratch<T>,
    divide: Option<DivideScratch<T>>,
}

struct DivideScratch<T> {
    memory: MemBuffer,
    s: Vec<T>,
    sums: Vec<T>,
}

impl<T: DivideAndConquer> Scratch<T> {
    fn new(method: Method, job: SingularVectors, m: usize, n: usize) -> Self {
        let (rows, k) = (m.max(n), m.min(n));
        let (zero, zeros) = (T::Real::ZERO, |length| vec![T::ZERO; length]);
        let u_cols = if job == SingularVectors::All { rows } else { k };
        let vectors = || VectorScratch {
            u: vec![zero; k * k],
            v: vec![zero; k * k],
            block: BlockScratch::new(rows, BLOCK.min(k), u_cols),
            divide: (method == Method::Divide && k >= SVD_ORDER).then(|| DivideScratch {
                memory: memory(T::svd_scratch(rows, k, u_cols == rows)),
                s: zeros(k),
                sums: zeros(rows + k),
            }),
        };
        Self {
            transposed: zeros(if m < n { m * n } else { 0 }),
            e: vec![zero; k.saturating_sub(1)],
            tau_q: zeros(k),
            tau_p: zeros(k.saturating_sub(1)),
            right: zeros(k * k),
            bidiagonalize: bidiagonalize::Scratch::new(rows, k),
            rotations: vec![Pair::none(); k],
            vectors: (job != SingularVectors::None).then(vectors),
        }
    }
}

/// Decomposes one matrix with at least as many rows as columns: U and Vᴴ go where `vectors` says.
fn decompose<T: DivideAndConquer>(
    a: &mut [T],
    s: &mut [T::Real],
    mut vectors: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) -> Result<(), usize> {
    let n = s.len();
    if n == 0 {
        if let Some((mut u, _)) = vectors {
            u.fill(T::ZERO);
            (0..u.ncols()).for_each(|j| u[(j, j)] = T::ONE);
        }
        return Ok(());
    }
    if let (Some((u, vt)), Some(VectorScratch { divide: Some(divide), .. })) =
        (&mut vectors, &mut scratch.vectors)
        && divided(a, s, (u.as_mut(), vt.as_mut()), &mut scratch.right, divide)
    {
        return Ok(());
    }
    let Scratch { e, tau_q, tau_p, right, bidiagonalize: reduction, rotations, .. } = scratch;
    let mut bidiagonal = Bidiagonal { d: s, e, tau_q, tau_p };
    bidiagonalize(a, right, &mut bidiagonal, reduction, arch);
    let (Some((u, vt)), Some(scratch)) = (vectors, &mut scratch.vectors) else {
        return arch.dispatch(BidiagonalQr { d: s, e, vectors: None, rotations });
    };
    set_identity(&mut scratch.u, n);
    set_identity(&mut scratch.v, n);
    let both = Some((&mut scratch.u[..], &mut scratch.v[..]));
    let outcome = arch.dispatch(BidiagonalQr { d: s, e, vectors: both, rotations });
    let q = MatRef::from_column_major_slice(a, a.len() / n, n);
    multiply_by_q(q, tau_q, &scratch.u, u, &mut scratch.block);
    let p = MatRef::from_column_major_slice(right, n, n);
    multiply_by_p(p, tau_p, &scratch.v, vt, &mut scratch.block);
    outcome
}

/// The decomposition by divide and conquer; false where it failed, and `a` is what it was.
fn divided<T: DivideAndConquer>(
    a: &[T],
    s: &mut [T::Real],
    (mut u, mut vt): (MatMut<'_, T>, MatMut<'_, T>),
    v: &mut [T],
    scratch: &mut DivideScratch<T>,
) -> bool {
    let n = s.len();
    let a = MatRef::from_column_major_slice(a, a.len() / n, n);
    let mut v = MatMut::from_column_major_slice_mut(v, n, n);
    let DivideScratch { memory, s: values, sums } = scratch;
    if !T::svd(a, values, u.as_mut(), v.as_mut(), MemStack::new(memory))
        || !is_svd(a, values, u.as_ref(), v.as_ref(), sums)
    {
        return false;
    }
    s.iter_mut().zip(values).for_each(|(s, value)| *s = value.re());
    for j in 0..n {
        for i in 0..n {
            vt[(i, j)] = v[(j, i)].conj();
        }
    }
    true
}

/// U = Q·X, for the n × n matrix X with ones below it on the diagonal.
fn multiply_by_q<T: Scalar>(
    q: MatRef<'_, T>,
    tau: &[T],
    x: &[T::Real],
    mut u: MatMut<'_, T>,
    scratch: &mut BlockScratch<T>,
) {
    let (m, n) = (q.nrows(), q.ncols());
    u.fill(T::ZERO);
    for (j, column) in x.chunks_exact(n).enumerate() {
        for (i, &x) in column.iter().enumerate() {
            u[(i, j)] = T::from_real(x);
        }
    }
    (n..u.ncols()).for_each(|j| u[(j, j)] = T::ONE);
    for first in (0..n).step_by(BLOCK).rev() {
        let width = BLOCK.min(n - first);
        let reflectors = q.submatrix(first, first, m - first, width);
        let mut block = scratch.block(reflectors, &tau[first..first + width]);
        block.apply_left(Factor::Q, u.as_mut().subrows_mut(first, m - first));
    }
}

/// Vᴴ = Yᵀ·Pᴴ.
fn multiply_by_p<T: Scalar>(
    p: MatRef<'_, T>,
    tau: &[T],
    y: &[T::Real],
    mut vt: MatMut<'_, T>,
    scratch: &mut BlockScratch<T>,
) {
    let n = p.nrows();
    for (i, column) in y.chunks_exact(n).enumerate() {
        for (j, &y) in column.iter().enumerate() {
            vt[(i, j)] = T::from_real(y);
        }
    }
    for first in (0..n - 1).step_by(BLOCK).rev() {
        let width = BLOCK.min(n - 1 - first);
        let row = first + 1;
        let reflectors = p.submatrix(row, first, n - row, width);
        let mut block = scratch.block(reflectors, &tau[first..first + width]);
        block.apply_right(Factor::Adjoint, vt.as_mut().subcols_mut(row, n - row));
    }
}
