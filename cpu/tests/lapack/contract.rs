//! What the adapters do where LAPACK is not called, or has failed: what lapax's own code does.

use std::fmt::Debug;

use lapax_cpu::eig::Eigen;
use lapax_cpu::lapack::{self as adapters, Width};
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::svd::Svd;
use lapax_cpu::tridiagonal::Diagonals;
use lapax_cpu::{
    Diag, Error, Real, Scalar, Serial, Side, SingularVectors, Trans, Uplo, Vectors, cholesky, eigh,
    lu, qr, svd, triangular, tridiagonal,
};
use num_complex::Complex;

use crate::sample::{M, N, at, positive, sample, zeros};

/// A test for each scalar.
macro_rules! for_each_scalar {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[test]
            fn f32() { super::$name::<f32>(); }
            #[test]
            fn f64() { super::$name::<f64>(); }
            #[test]
            fn c32() { super::$name::<super::Complex<f32>>(); }
            #[test]
            fn c64() { super::$name::<super::Complex<f64>>(); }
        })+
    };
}

for_each_scalar!(not_finite_factors, not_finite_values, singular_systems, one_bad_of_a_batch);

/// The bits, so that a NaN is the same as itself.
fn text<T: Debug>(a: &[T]) -> String {
    format!("{a:?}")
}

fn bad<T: Scalar>() -> [T; 2] {
    [f64::NAN, f64::NEG_INFINITY].map(|x| T::from_real(T::Real::from_f64(x)))
}

fn not_finite_factors<T: adapters::Routines>() {
    for bad in bad::<T>() {
        let mut given = sample::<T>(M * N, 1);
        given[3 * M + 7] = bad;
        let results = [adapters::lu::getrf::<T>, lu::getrf].map(|getrf| {
            let (mut a, mut ipiv, mut info) = (given.clone(), [0; N], [9]);
            let outcome = getrf(1, M, N, at(&mut a), &mut ipiv, &mut info, &Serial);
            (outcome, text(&a), ipiv, info)
        });
        assert_eq!(results[0], results[1]);

        let mut given = positive::<T>(N);
        given[3 * N + 7] = bad;
        let results = [adapters::cholesky::potrf::<T>, cholesky::potrf].map(|potrf| {
            let (mut a, mut info) = (given.clone(), [9]);
            let outcome = potrf(Uplo::Lower, 1, N, at(&mut a), &mut info, &Serial);
            (outcome, text(&a), info)
        });
        assert_eq!(results[0], results[1]);
    }
}

fn not_finite_values<T: adapters::Routines>() {
    for bad in bad::<T>() {
        let mut given = positive::<T>(N);
        given[3 * N + 7] = bad;
        let results = [adapters::eigh::syevd::<T>, eigh::syevd].map(|syevd| {
            let (mut a, mut w, mut info) = (given.clone(), zeros::<T::Real>(N), [9]);
            let (job, uplo) = (Vectors::Wanted, Uplo::Lower);
            let outcome = syevd(job, uplo, 1, N, at(&mut a), &mut w, &mut info, &Serial);
            (outcome, text(&a), text(&w), info)
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0].3, [-4]);

        let routines = [adapters::svd::gesdd::<T>, svd::gesdd, adapters::svd::gesvd, svd::gesvd];
        let results = routines.map(|routine| {
            let (mut a, mut s, mut info) = (given.clone(), zeros::<T::Real>(N), [9]);
            let (mut u, mut vt) = (zeros::<T>(N * N), zeros::<T>(N * N));
            let svd = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
            let outcome = routine(SingularVectors::All, 1, N, N, at(&mut a), svd, &Serial);
            (outcome, text(&s), text(&u), text(&vt), info)
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[2], results[3]);
        assert_eq!((results[0].4, results[2].4), ([-4], [-5]));
    }
}

/// LAPACK stops halfway, and a BLAS may take 0/0 for 0.
fn singular_systems<T: adapters::Routines>() {
    let results = [adapters::tridiagonal::gtsv::<T>, tridiagonal::gtsv].map(|gtsv| {
        let [mut dl, mut d, mut du] = [3, 4, 5].map(|seed| sample::<T>(N, seed));
        (d[20], dl[20], dl[21]) = (T::ZERO, T::ZERO, T::ZERO);
        let (mut b, mut info) = (sample::<T>(N * 3, 6), [9]);
        let a = tridiagonal::Diagonals { dl: at(&mut dl), d: at(&mut d), du: at(&mut du) };
        let outcome = gtsv(1, N, 3, a, at(&mut b), &mut info, &Serial);
        (outcome, b == sample::<T>(N * 3, 6), info)
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], (Ok(()), true, [21]));

    let mut a = positive::<T>(N);
    a[7 * N + 7] = T::ZERO;
    let results = [adapters::triangular::trsm::<T>, triangular::trsm].map(|trsm| {
        let mut b = zeros::<T>(N);
        let (uplo, trans, diag) = (Uplo::Lower, Trans::None, Diag::NonUnit);
        let outcome = trsm(Side::Left, uplo, trans, diag, 1, N, 1, &a, at(&mut b), &Serial);
        (outcome, text(&b))
    });
    assert_eq!(results[0], results[1]);
}

/// Its neighbours have the results that they have alone.
fn one_bad_of_a_batch<T: adapters::Routines>() {
    let good = positive::<T>(N);
    let mut given = good.repeat(3);
    given[N * N] = bad::<T>()[0];
    let (mut alone, mut info) = (good, [9]);
    let factor = adapters::cholesky::potrf::<T>;
    assert_eq!(factor(Uplo::Lower, 1, N, at(&mut alone), &mut info, &Serial), Ok(()));
    let mut info = [9; 3];
    assert_eq!(factor(Uplo::Lower, 3, N, at(&mut given), &mut info, &Serial), Ok(()));
    assert_eq!(info, [0, 1, 0]);
    assert!(given[..N * N] == alone && given[2 * N * N..] == alone);
}

/// No matrix of such an order is made.
#[test]
fn workspace_beyond_32_bits_is_an_error_that_says_so() {
    const LARGE: usize = 33_000;
    let call = |job| {
        let (w, info, operand) = (&mut [][..], &mut [][..], at(&mut [][..]));
        adapters::eigh::syevd::<f64>(job, Uplo::Lower, 0, LARGE, operand, w, info, &Serial)
    };
    assert_eq!(call(Vectors::None), Ok(()));
    let wide = Width::of_library() == Width::Bits64;
    let value = 1 + 6 * LARGE + 2 * LARGE * LARGE;
    let limit = usize::try_from(i32::MAX).unwrap_or(0);
    let error = Err(Error::Library { quantity: "lwork", value, limit });
    assert_eq!(call(Vectors::Wanted), if wide { Ok(()) } else { error });
}

/// Every routine counts its workspace, or says that the library cannot; nothing wraps around.
#[test]
fn large_orders_are_counted_by_every_routine() {
    const LARGE: usize = 33_000;
    let wide = Width::of_library() == Width::Bits64;
    for (routine, outcome) in unmade::<f64>(LARGE).into_iter().chain(unmade::<Complex<f32>>(LARGE))
    {
        match outcome {
            Ok(()) => {}
            Err(Error::Library { value, limit, .. }) => {
                assert!(!wide && value > limit, "{routine}: {value}, {limit}");
            }
            Err(other) => panic!("{routine}: {other:?}"),
        }
    }
}

/// Calls for no matrix of order n at all.
fn unmade<T: adapters::Routines + lapax_cpu::Scalar<Real: lapax_cpu::Scalar>>(
    n: usize,
) -> Vec<(&'static str, Result<(), Error>)> {
    let none = || at(&mut [][..]);
    let reals = || &mut [][..];
    let all = SingularVectors::All;
    let svd = || Svd { s: &mut [][..], u: &mut [][..], vt: &mut [][..], info: &mut [][..] };
    let w = || {
        if T::IS_COMPLEX {
            Eigenvalues::Whole(&mut [][..])
        } else {
            Eigenvalues::Parts(&mut [][..], &mut [][..])
        }
    };
    let eigen = Eigen { w: w(), left: &mut [][..], right: &mut [][..], info: &mut [][..] };
    let diagonals = Diagonals { dl: none(), d: none(), du: none() };
    let (s, wanted, upper) = (&Serial, Vectors::Wanted, Uplo::Upper);
    let (left, adjoint) = (Side::Left, qr::Factor::Adjoint);
    vec![
        ("getrf", adapters::lu::getrf::<T>(0, n, n, none(), &mut [], &mut [], s)),
        ("potrf", adapters::cholesky::potrf::<T>(upper, 0, n, none(), &mut [], s)),
        (
            "trsm",
            adapters::triangular::trsm::<T>(
                left,
                upper,
                Trans::None,
                Diag::Unit,
                0,
                n,
                n,
                &[],
                none(),
                s,
            ),
        ),
        ("gtsv", adapters::tridiagonal::gtsv::<T>(0, n, n, diagonals, none(), &mut [], s)),
        ("geqrf", adapters::qr::geqrf::<T>(0, n, n, none(), &mut [], s)),
        ("geqp3", adapters::qr::geqp3::<T>(0, n, n, none(), at(&mut [][..]), &mut [], s)),
        ("orgqr", adapters::qr::orgqr::<T>(0, n, n, n, none(), &[], s)),
        ("ormqr", adapters::qr::ormqr::<T>(left, adjoint, 0, n, n, n, n, &[], &[], none(), s)),
        ("syevd", adapters::eigh::syevd::<T>(wanted, upper, 0, n, none(), reals(), &mut [], s)),
        (
            "sytrd",
            adapters::eigh::sytrd::<T>(upper, 0, n, none(), reals(), reals(), &mut [], &mut [], s),
        ),
        ("gesdd", adapters::svd::gesdd::<T>(all, 0, n, n, none(), svd(), s)),
        ("gesvd", adapters::svd::gesvd::<T>(all, 0, n, n, none(), svd(), s)),
        ("gehrd", adapters::hessenberg::gehrd::<T>(0, n, 1, n, none(), &mut [], &mut [], s)),
        (
            "gees",
            adapters::schur::gees::<T>(wanted, 0, n, none(), &mut [], w(), &mut [], &mut [], s),
        ),
        ("geev", adapters::eig::geev::<T>(wanted, wanted, 0, n, &[], eigen, s)),
    ]
}
