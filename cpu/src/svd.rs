//! The singular value decomposition A = U·diag(s)·Vᴴ.
//!
//! A wide matrix is decomposed through its transpose, Aᵀ = conj(V)·diag(s)·Uᵀ, so that all below the
//! public functions has at least as many rows as columns.

use std::ops::Range;

use lapax_core::{
    Items, ItemsInOut, ItemsMut, Real as _, Scalar as _, for_each, for_each_large, index_fits_i32,
};
use lapax_cpu_macros::per_scalar;
use smallvec::smallvec;

use crate::arch::Arch;
use crate::lanes::{self, for_each_group};
use crate::merge::SHARED_ORDER;
use crate::normal_range::{largest_part, power_to_normal};
use crate::phase::{Leading, Turns};
use crate::row_major;
use crate::scalar::{ShortRow, nanoseconds};
use crate::tall_svd::{DIVIDED, Factors, Scratch};
use crate::{Error, InOut, Scalar, SingularVectors, Threads};

/// The smaller order up to which a batch goes through lanes. For f64 with AVX-512 and one thread, at
/// order 32 vectors took 26 µs per matrix where a matrix by itself took 119, and values alone 8.3
/// where it took 66; at order 128 they took 1.3 ms of 2.2, and 0.28 of 1.2.
const LANES_ORDER: usize = 128;
/// The elements of a matrix up to which it does: for values alone, and real vectors, a tile is 1 MiB
/// then for f64 with AVX-512. Of complex vectors there are twice as many, and rotating them leaves
/// the second-level cache sooner: at order 96, c128 took as long as one by one.
const LANES_ELEMENTS: usize = 16384;
const LANES_COMPLEX_VECTORS: usize = 4096;
/// The smaller order from which on a batch has to fill half of the widest registers.
const LARGE: usize = 33;
/// The larger order up to which fewer matrices than half a register holds go through lanes too: Jacobi rotations
/// need no reduction, and few allocations. One matrix with vectors, and without, one by one and in a lane, in a
/// program's loop, ns: f64 n = 2 1396 and 813, 838 and 577, n = 4 2562 and 1841, 1483 and 1256, n = 8 5508 and 9289;
/// c128 n = 2 1444 and 943, 763 and 643, n = 3 2042 and 2022, 1146 and 1201.
const FEW: usize = 4;
const FEW_COMPLEX: usize = 2;

/// Whether a batch goes through lanes.
fn in_lanes<T: Scalar>(job: SingularVectors, batch: usize, m: usize, n: usize) -> bool {
    let k = m.min(n);
    let complex_vectors = T::IS_COMPLEX && job != SingularVectors::None;
    let most = if complex_vectors { LANES_COMPLEX_VECTORS } else { LANES_ELEMENTS };
    // All columns of U, of which the taller side may have many more than A.
    let elements =
        if job == SingularVectors::All { m.max(n).saturating_pow(2) } else { m.saturating_mul(n) };
    let fills = k < LARGE || batch >= lanes::MAX_LANES / 2;
    let few = k > 0 && m.max(n) <= if T::IS_COMPLEX { FEW_COMPLEX } else { FEW };
    few || fills && lanes::pay(batch, k, LANES_ORDER) && elements <= most
}

/// How the bidiagonal matrix is decomposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
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
#[per_scalar]
pub fn gesdd<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let how = (Method::Divide, Leading::Left);
    decompose_all(how, job, batch, (m, n), a, results, threads)
}

/// Decomposes each m × n matrix of a batch by implicit QR steps; otherwise as [`gesdd`].
///
/// # Errors
/// As [`gesdd`].
#[per_scalar]
pub fn gesvd<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let how = (Method::Qr, Leading::Left);
    decompose_all(how, job, batch, (m, n), a, results, threads)
}

/// [`gesdd`] of matrices of whose transposes the left singular vectors have the phases of the rule.
pub(crate) fn gesdd_of_transposes<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let how = (Method::Divide, Leading::Right);
    decompose_all(how, job, batch, (m, n), a, results, threads)
}

fn decompose_all<T: Scalar<Real: Scalar>>(
    (method, leading): (Method, Leading),
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
    let (u_cols, vt_rows) = job.sides(m, n);
    let (u, vt) = if job == SingularVectors::None {
        u.fill(T::ZERO);
        vt.fill(T::ZERO);
        (&mut [][..], &mut [][..])
    } else {
        (u, vt)
    };
    let results = (
        ItemsMut::new("s", batch, &[k], s)?,
        ItemsMut::new("u", batch, &[m, u_cols], u)?,
        ItemsMut::new("vt", batch, &[vt_rows, n], vt)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let call = Call { method, leading, job, m, n, arch: Arch::new() };
    if in_lanes::<T>(job, batch, m, n) {
        let InOut { src, dst } = a;
        let (a, left, length) = match src {
            Some(src) => (src, dst, m * n),
            None => (&*dst, &mut [][..], 0),
        };
        let left = ItemsMut::new("a", batch, &[length], left)?;
        return call.in_lanes(batch, a, (left, results), threads);
    }
    let a = ItemsInOut::new("a", batch, &[m, n], a)?;
    let (s, u, vt, info) = results;
    let operands = (a, s, u, vt, info);
    let products = call.products();
    if batch == 1 && k >= SHARED_ORDER {
        for_each_large(batch, operands, threads, |(a, s, u, vt, info), threads| {
            info[0] = call.decompose(a, s, u, vt, Some(threads), &mut call.scratch());
        });
        return Ok(());
    }
    for_each(
        batch,
        operands,
        nanoseconds::<T>(products),
        threads,
        || call.scratch(),
        |scratch, (a, s, u, vt, info)| info[0] = call.decompose(a, s, u, vt, None, scratch),
    );
    Ok(())
}

/// Decomposes each row-major m × n matrix of a batch, as [`gesdd`] does.
///
/// U is m × m or m × min(m, n), and Vᴴ n × n or min(m, n) × n, by rows; with [`SingularVectors::None`] there
/// is neither. All results are NaN where the matrix is not finite, or did not converge.
///
/// # Errors
/// As [`gesdd`].
#[allow(clippy::too_many_arguments, reason = "a matrix and its factors")]
#[per_scalar]
pub fn svd<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    // By columns it is Aᵀ = conj(V)·diag(s)·Uᵀ, whose U and Vᴴ are by rows Vᴴ and U.
    let k = m.min(n);
    if k == 0 || !in_lanes::<T>(job, batch, n, m) {
        return row_major::svd(gesdd_of_transposes, job, batch, (m, n), a, s, u, vt, threads);
    }
    Items::new("a", batch, &[m, n], a)?;
    let (u_cols, vt_rows) = job.sides(m, n);
    let mut info: ShortRow<i32> = smallvec![0; batch];
    let results = (
        ItemsMut::new("s", batch, &[k], &mut *s)?,
        ItemsMut::new("vt", batch, &[vt_rows, n], &mut *vt)?,
        ItemsMut::new("u", batch, &[m, u_cols], &mut *u)?,
        ItemsMut::new("info", batch, &[], &mut info)?,
    );
    let call = Call::of_transposes(job, (m, n));
    call.in_lanes(batch, a, (ItemsMut::new("left", batch, &[0], &mut [])?, results), threads)?;
    row_major::mark_failed(&info, s, [u, vt]);
    Ok(())
}

/// Some of the singular values of each row-major m × n matrix of a batch, and their vectors.
///
/// `s` holds those of the descending singular values that are at the places `part`, k of them; `u` is m × k and
/// `vt` k × n. It is for fewer vectors that less is done, from min(m, n) = 33 on and where a batch does not go
/// through lanes: the bidiagonal matrix is found as a whole, and so are its values and the vectors of its
/// halves. On two cores of Zen 5, f64, n = 1024, all take 109 ms, half of them 91, a quarter 81, a tenth 75 and
/// one 73.
///
/// # Errors
/// As [`gesdd`], and where the places are not among the min(m, n).
#[allow(clippy::too_many_arguments, reason = "a matrix and its factors, and the part")]
#[per_scalar]
pub fn svd_subset<T: Scalar<Real: Scalar>>(
    batch: usize,
    m: usize,
    n: usize,
    part: Range<usize>,
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (job, k) = (SingularVectors::Thin, m.min(n));
    if k < DIVIDED || in_lanes::<T>(job, batch, n, m) {
        return row_major::svd_subset(
            gesdd_of_transposes,
            batch,
            (m, n),
            part,
            a,
            s,
            u,
            vt,
            threads,
        );
    }
    let operands = row_major::svd_operands(batch, (m, n), &part, a, s, u, vt)?;
    // By columns it is Aᵀ, whose factors of these names are by rows Vᴴ and U.
    let call = Call::of_transposes(job, (m, n));
    let scratch = || {
        let mut scratch = call.scratch();
        scratch.decomposition.part = part.clone();
        let zeros = |length| vec![T::ZERO; length];
        (scratch, zeros(m * n), vec![T::Real::ZERO; k], zeros(k * n), zeros(m * k))
    };
    type Whole<T, R> = (Reused<T>, Vec<T>, Vec<R>, Vec<T>, Vec<T>);
    let one = |(scratch, copy, values, right, left): &mut Whole<T, T::Real>,
               a: &[T],
               results: [&mut [T]; 2],
               s: &mut [T::Real],
               threads: Option<&dyn Threads>| {
        copy.copy_from_slice(a);
        let info = call.decompose(copy, values, right, left, threads, scratch);
        row_major::take_singular_part((values, left, right), info, part.clone(), s, results);
    };
    if batch == 1 && k >= SHARED_ORDER {
        for_each_large(batch, operands, threads, |(a, s, u, vt), threads| {
            one(&mut scratch(), a, [u, vt], s, Some(threads));
        });
        return Ok(());
    }
    let time = nanoseconds::<T>(call.products());
    for_each(batch, operands, time, threads, scratch, |scratch, (a, s, u, vt)| {
        one(scratch, a, [u, vt], s, None);
    });
    Ok(())
}

/// What a call asks for.
#[derive(Clone, Copy)]
struct Call {
    method: Method,
    leading: Leading,
    job: SingularVectors,
    m: usize,
    n: usize,
    arch: Arch,
}

/// s, U, Vᴴ and info.
type Results<'a, T> = (
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
    ItemsMut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, i32>,
);

/// What one decomposition after another reuses.
struct Reused<T: Scalar> {
    /// A copy of a wide matrix.
    transposed: Vec<T>,
    decomposition: Scratch<T>,
    turns: Turns<T>,
}

impl Call {
    /// For row-major m × n matrices, which by columns are their transposes.
    fn of_transposes(job: SingularVectors, (m, n): (usize, usize)) -> Self {
        let (method, leading) = (Method::Divide, Leading::Right);
        Self { method, leading, job, m: n, n: m, arch: Arch::new() }
    }

    /// What a matrix costs: 2·m·k² products for B, about 6·k³ for its vectors, and those of Q and P with
    /// them.
    fn products(self) -> usize {
        let Self { job, m, n, .. } = self;
        let products = m.saturating_mul(n).saturating_mul(m.min(n)).saturating_mul(2);
        if job == SingularVectors::None { products } else { products.saturating_mul(5) }
    }

    /// Decomposes a batch of small matrices; a copy of each goes to `left`, unless that is empty.
    fn in_lanes<T: Scalar<Real: Scalar>>(
        self,
        batch: usize,
        a: &[T],
        (left, (s, u, vt, info)): (ItemsMut<'_, T>, Results<'_, T>),
        threads: &dyn Threads,
    ) -> Result<(), Error> {
        let Self { leading, job, m, n, .. } = self;
        let operands = (Items::new("a", batch, &[m, n], a)?, left, s, u, vt, info);
        // What lanes leave has values that halves would lose.
        let careful = Self { method: Method::Qr, ..self };
        let single = |a: &mut [T], s: &mut [T::Real], u: &mut [T], vt: &mut [T]| {
            self.decompose(a, s, u, vt, None, &mut careful.scratch())
        };
        let kernel = lanes::svd::Decompose { job, m, n, leading, single };
        let time = nanoseconds::<T>(self.products());
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        Ok(())
    }

    fn scratch<T: Scalar<Real: Scalar>>(self) -> Reused<T> {
        let Self { method, job, m, n, .. } = self;
        let transposed = if m < n { m * n } else { 0 };
        Reused {
            transposed: vec![T::ZERO; transposed],
            decomposition: Scratch::new(method, job, m.max(n), m.min(n)),
            turns: Turns::new(job.sides(m, n).1),
        }
    }

    /// Decomposes one matrix, on threads where there are any; returns its `info`.
    fn decompose<T: Scalar<Real: Scalar>>(
        self,
        a: &mut [T],
        s: &mut [T::Real],
        u: &mut [T],
        vt: &mut [T],
        threads: Option<&dyn Threads>,
        scratch: &mut Reused<T>,
    ) -> i32 {
        let Self { method, leading, job, m, n, arch } = self;
        let Reused { transposed, decomposition, turns } = scratch;
        let Some(largest) = largest_part([&*a]) else {
            let nan = T::Real::from_f64(f64::NAN);
            s.fill(nan);
            for x in [a, u, vt] {
                x.fill(T::from_parts(nan, nan));
            }
            return method.not_finite();
        };
        let power = power_to_normal(largest);
        let vectors = job != SingularVectors::None;
        // End for end it is upper bidiagonal, and reflectors have nothing to do.
        let turned = m == n && is_lower_bidiagonal(a, n);
        if turned {
            a.reverse();
        }
        let outcome = if m >= n {
            a.iter_mut().for_each(|x| *x = x.scale(power));
            let factors = Factors { u: &mut *u, vt: &mut *vt, by_columns: true };
            decomposition.decompose(a, s, vectors.then_some(factors), threads, arch)
        } else {
            for (j, row) in transposed.chunks_exact_mut(n).enumerate() {
                for (x, column) in row.iter_mut().zip(a.chunks_exact(m)) {
                    *x = column[j].scale(power);
                }
            }
            let turned = Factors { u: &mut *vt, vt: &mut *u, by_columns: false };
            decomposition.decompose(transposed, s, vectors.then_some(turned), threads, arch)
        };
        if turned && vectors {
            // J·A·J = U·S·Vᴴ is A = (J·U)·S·(Vᴴ·J).
            u.chunks_exact_mut(n).for_each(<[T]>::reverse);
            vt.reverse();
            vt.chunks_exact_mut(n).for_each(<[T]>::reverse);
        }
        if vectors {
            let pairs = (&decomposition.part, s.len());
            turns.singular(leading, (u, m), (vt, n), pairs, threads);
        }
        s.iter_mut().for_each(|s| *s = *s / power);
        // No more elements than k − 1, which is an i32.
        outcome.map_or_else(|count| i32::try_from(count).unwrap_or(i32::MAX), |()| 0)
    }
}

/// Whether all that is not zero in a matrix of order n, by columns, is on the diagonal and below it, where some is.
pub(crate) fn is_lower_bidiagonal<T: Scalar>(a: &[T], n: usize) -> bool {
    let zero = |x: &T| *x == T::ZERO;
    let mut columns = a.chunks_exact(n.max(1)).enumerate();
    let zero_elsewhere = |(j, column): (usize, &[T])| {
        column.iter().skip(j + 2).all(zero) && column[..j].iter().all(zero)
    };
    columns.all(zero_elsewhere) && a.iter().skip(1).step_by(n + 1).any(|x| !zero(x))
}
