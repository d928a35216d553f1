//! solve and inv: ‖A·X − B‖ / (n·‖A‖·‖X‖·ε), and the same bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::{Serial, Spawned, Threads};

use crate::backend::{Backend, call};
use crate::for_each_backend;
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, identity, ratio, transposed};
use crate::ratios::LIMIT;
use crate::sample::{Sample, bits};
use crate::sweep;

for_each_backend!(residual, singular_or_not_finite);

/// Orders on both sides of those from which a system has all threads, and strips of an inverse are more than
/// one.
const ORDERS: [usize; 8] = [1, 3, 20, 64, 65, 100, 200, 340];

/// X by rows, or the inverse where there are no right-hand sides; n is the order of one system.
fn solved<T: Sample>(
    backend: Backend,
    batch: usize,
    n: usize,
    a: &[T],
    b: Option<&[T]>,
    threads: &dyn Threads,
) -> Vec<T> {
    let mut x = vec![T::nan(); b.unwrap_or(a).len()];
    match b {
        Some(b) => {
            let nrhs = b.len() / (batch * n);
            call!(backend, solve::solve(batch, n, nrhs, a, b, &mut x, threads)).unwrap();
        }
        None => call!(backend, solve::inv(batch, n, a, &mut x, threads)).unwrap(),
    }
    x
}

/// Kinds that can be singular in T.
fn singular(kind: Kind) -> bool {
    matches!(kind, Kind::RankDeficient | Kind::Kahan | Kind::Bidiagonal)
}

/// Kinds of which U is not much larger than A: Wilkinson's grows by 2 to the power n − 1. And of which residuals are
/// neither huge nor tiny.
fn bounded<T: Sample>(kind: &Kind) -> bool {
    *kind != Kind::Wilkinson && kind.exponent::<T>() == 0
}

fn residual<T: Sample>(backend: Backend) {
    for n in ORDERS {
        for kind in sweep::kinds(n).into_iter().filter(bounded::<T>) {
            let a: Vec<T> = matrix::<T>(kind, n, n, 5).narrowed(0);
            let rows = transposed(n, &a);
            for nrhs in [None, Some(1), Some(7)] {
                let what = format!("{kind:?} {n} x {nrhs:?}");
                let b = nrhs.map(|nrhs| matrix::<T>(Kind::Random, n, nrhs, 6).narrowed::<T>(0));
                let b_rows = b.as_ref().map(|b| transposed(n, b));
                let x = solved(backend, 1, n, &rows, b_rows.as_deref(), &Serial);
                let (many, many_b) = (rows.repeat(3), b_rows.map(|b| b.repeat(3)));
                let again = solved(backend, 3, n, &many, many_b.as_deref(), &Spawned(2));
                assert!(n < sweep::SMALL || bits(&again) == bits(&x).repeat(3), "{what}");
                if !x.iter().all(|&x| Scalar::is_finite(x)) {
                    assert!(singular(kind), "{what}: not finite");
                    continue;
                }
                let x = Matrix::widened(n, &transposed(x.len() / n, &x), 0);
                let b = b.map_or_else(|| identity(n), |b| Matrix::widened(n, &b, 0));
                let a = Matrix::widened(n, &a, 0);
                let ratio = ratio::<T>(a.times(&x).minus(&b).norm(), n, a.norm() * x.norm(), 0);
                assert!(ratio < LIMIT, "{what}: {ratio}");
            }
        }
    }
}

/// A system that is singular or has a NaN has no solution, and its neighbours keep theirs.
fn singular_or_not_finite<T: Sample>(backend: Backend) {
    for n in [3, 40, 100, 340] {
        let clean: Vec<T> = matrix::<T>(Kind::Random, n, n, 5).narrowed(0);
        let mut a = clean.repeat(4);
        a[n * n..n * n + n].fill(T::ZERO);
        a[2 * n * n + n + 1] = T::nan();
        let b = vec![T::ONE; 4 * n];
        for b in [None, Some(&b[..])] {
            let x = solved(backend, 4, n, &a, b, &Spawned(2));
            let alone = solved(backend, 4, n, &clean.repeat(4), b, &Serial);
            for (i, (x, alone)) in x.chunks(x.len() / 4).zip(alone.chunks(x.len() / 4)).enumerate()
            {
                let found = if [0, 3].contains(&i) {
                    bits(x) == bits(alone)
                } else {
                    x.iter().any(|&x| !Scalar::is_finite(x))
                };
                assert!(found, "{n}, {i}");
            }
        }
    }
}
