//! Sizes: what is refused, what is empty, and the arithmetic of n = 33,000, whose square is more
//! than 2³⁰ and whose workspaces hold more than 2³¹ bytes.

use std::ops::Range;

use lapax_cpu::definite::{Given, Kept, cho_solve, posv, posv_factor};
use lapax_cpu::determinant::slogdet;
use lapax_cpu::eig::{Eigen, eig, eigvals, geev};
use lapax_cpu::eigh::{eigh, eigh_subset, eigvalsh, syevd, symmetrize, sytrd};
use lapax_cpu::hessenberg::{gehrd, hess};
use lapax_cpu::qr::{Factor, geqp3, geqrf, orgqr, ormqr, qr, qr_r};
use lapax_cpu::schur::{Eigenvalues, gees, schur};
use lapax_cpu::solve::{inv, solve};
use lapax_cpu::svd::{Svd, gesdd, gesvd, svd as svd_of_rows, svd_subset};
use lapax_cpu::triangular::trsm;
use lapax_cpu::tridiagonal::tridiagonal_solve_perturbed;
use lapax_cpu::tridiagonal::{Diagonals, gtsv, tridiagonal_solve};
use lapax_cpu::{Diag, Error, InOut, Serial, Side, SingularVectors, Trans};
use lapax_cpu::{Uplo, Vectors, cholesky, lu};

fn none<'a, T>() -> InOut<'a, T> {
    InOut { src: None, dst: &mut [] }
}

fn svd<'a>() -> Svd<'a, f64> {
    Svd { s: &mut [], u: &mut [], vt: &mut [], info: &mut [] }
}

fn eigen<'a>() -> Eigen<'a, f64> {
    let w = Eigenvalues::Parts(&mut [], &mut []);
    Eigen { w, left: &mut [], right: &mut [], info: &mut [] }
}

/// Every family on `batch` matrices of m rows and n columns, or of order n, without an element.
fn calls(batch: usize, m: usize, n: usize) -> Vec<(&'static str, Result<(), Error>)> {
    let (wanted, upper, all) = (Vectors::Wanted, Uplo::Upper, SingularVectors::All);
    let (columns, w) = (none(), Eigenvalues::Parts(&mut [], &mut []));
    let diagonals = Diagonals { dl: none::<f64>(), d: none(), du: none() };
    let (left, adjoint, t) = (Side::Left, Factor::Adjoint, m.min(n));
    let (given, kept) =
        (Given { uplo: upper, mean: false }, Kept { factor: &mut [], logdet: &mut [] });
    let (trans, diag, s) = (Trans::None, Diag::Unit, &Serial);
    vec![
        ("potrf", cholesky::potrf(upper, batch, n, none::<f64>(), &mut [], s)),
        ("cholesky_update", cholesky::cholesky_update(batch, n, none::<f64>(), none(), s)),
        ("getrf", lu::getrf(batch, m, n, none::<f64>(), &mut [], &mut [], s)),
        ("geqrf", geqrf(batch, m, n, none::<f64>(), &mut [], s)),
        ("orgqr", orgqr(batch, m.max(n), t, t, none::<f64>(), &[], s)),
        ("ormqr", ormqr(left, adjoint, batch, m, n, t, t, &[], &[], none::<f64>(), s)),
        ("geqp3", geqp3(batch, m, n, none::<f64>(), columns, &mut [], s)),
        ("syevd", syevd(wanted, upper, batch, n, none::<f64>(), &mut [], &mut [], s)),
        ("sytrd", sytrd(upper, batch, n, none::<f64>(), &mut [], &mut [], &mut [], &mut [], s)),
        ("gesdd", gesdd(all, batch, m, n, none(), svd(), s)),
        ("gesvd", gesvd(all, batch, m, n, none(), svd(), s)),
        ("geev", geev(wanted, wanted, batch, n, &[], eigen(), s)),
        ("gees", gees(wanted, batch, n, none::<f64>(), &mut [], w, &mut [], &mut [], s)),
        ("gehrd", gehrd(batch, n, 1, n, none::<f64>(), &mut [], &mut [], s)),
        ("hess", hess(batch, n, none::<f64>(), &mut [], s)),
        ("trsm", trsm(left, upper, trans, diag, batch, m, n, &[], none::<f64>(), s)),
        ("gtsv", gtsv(batch, m, n, diagonals, none(), &mut [], s)),
        ("lu", lu::lu(batch, m, n, none::<f64>(), &mut [], &mut [], s)),
        ("lu_solve", lu::lu_solve::<f64>(trans, batch, n, m, &[], &[], &[], &mut [], s)),
        ("solve", solve::<f64>(batch, n, m, &[], &[], &mut [], s)),
        ("inv", inv::<f64>(batch, n, &[], &mut [], s)),
        ("slogdet", slogdet::<f64>(batch, n, &[], &mut [], &mut [], s)),
        ("cholesky", cholesky::cholesky(true, batch, n, none::<f64>(), s)),
        ("eig", eig::<f64>(batch, n, &[], &mut [], &mut [], s)),
        ("eigvals", eigvals::<f64>(batch, n, &[], &mut [], s)),
        ("schur", schur(batch, n, none::<f64>(), &mut [], s)),
        ("eigh", eigh::<f64>(upper, batch, n, none(), &mut [], s)),
        ("eigh_subset", eigh_subset::<f64>(upper, batch, n, 0..n, &[], &mut [], &mut [], s)),
        ("eigvalsh", eigvalsh::<f64>(upper, batch, n, &[], &mut [], s)),
        ("symmetrize", symmetrize::<f64>(batch, n, &[], &mut [], s)),
        ("svd_subset", svd_subset::<f64>(batch, m, n, 0..t, &[], &mut [], &mut [], &mut [], s)),
        ("svd", svd_of_rows::<f64>(all, batch, m, n, &[], &mut [], &mut [], &mut [], s)),
        ("qr", qr::<f64>(batch, (m, n, t), &[], &mut [], &mut [], s)),
        ("qr_r", qr_r::<f64>(batch, (m, n, t), &[], &mut [], s)),
        ("posv", posv::<f64>(given, batch, (n, m), &[], &[], &mut [], s)),
        ("posv_factor", posv_factor::<f64>(given, batch, (n, m), &[], &[], &mut [], kept, s)),
        ("cho_solve", cho_solve::<f64>(upper, batch, (n, m), &[], &[], &mut [], s)),
        ("tridiagonal_solve", tridiagonal_solve::<f64>(batch, m, n, [&[]; 3], &[], &mut [], s)),
        ("perturbed", tridiagonal_solve_perturbed(batch, m, n, [&[]; 3], &[0.0; 0], &mut [], s)),
    ]
}

#[test]
fn a_batch_of_none_is_nothing_to_do_whatever_the_size() {
    let largest = i32::MAX.unsigned_abs() as usize;
    for (m, n) in [(3, 3), (5, 2), (2, 5), (33_000, 33_000), (33_000, 2), (largest, largest)] {
        for (family, outcome) in calls(0, m, n) {
            assert_eq!(outcome, Ok(()), "{family} {m} x {n}");
        }
    }
}

/// A call whose slices are empty says how many elements there should be.
#[test]
fn lengths_are_counted_without_overflow() {
    for (batch, m, n) in [(1, 33_000, 33_000), (100_000, 33_000, 33_000), (1, 33_000, 32_999)] {
        for (family, outcome) in calls(batch, m, n) {
            let Err(Error::Length { expected, got: 0, .. }) = outcome else {
                panic!("{family}: {outcome:?}");
            };
            let known = [n * n, m * n, m * m, n, m, m * m.min(n)].map(|length| length * batch);
            assert!(known.contains(&expected), "{family} {m} x {n}: {expected}");
        }
    }
    for (family, outcome) in calls(usize::MAX, 33_000, 33_000) {
        assert!(matches!(outcome, Err(Error::Overflow { .. })), "{family}: {outcome:?}");
    }
}

#[test]
fn a_dimension_beyond_i32_is_refused() {
    let beyond = 1 << 31;
    let served = [
        "cholesky",
        "cholesky_update",
        "geqrf",
        "orgqr",
        "ormqr",
        "qr",
        "qr_r",
        "posv",
        "posv_factor",
        "cho_solve",
        "sytrd",
        "gehrd",
        "hess",
        "trsm",
        "lu_solve",
        "perturbed",
        "symmetrize",
    ];
    for (family, outcome) in calls(0, beyond, beyond) {
        // Where no index or count of a dimension is returned, any is served.
        let refused = matches!(outcome, Err(Error::TooLarge { value, .. }) if value == beyond);
        assert_eq!(refused, !served.contains(&family), "{family}: {outcome:?}");
    }
}

#[test]
fn dimensions_of_reflectors_are_in_order() {
    let (mut a, tau) = ([1.0; 6], [0.0; 3]);
    let error = orgqr(1, 2, 3, 3, InOut { src: None, dst: &mut a }, &tau, &Serial);
    assert!(matches!(error, Err(Error::Order { larger: "m", smaller: "n", .. })));
    let error = orgqr(1, 3, 2, 3, InOut { src: None, dst: &mut a }, &tau, &Serial);
    assert!(matches!(error, Err(Error::Order { larger: "n", smaller: "t", .. })));
    let c = InOut { src: None, dst: &mut a };
    let error = ormqr(Side::Left, Factor::Q, 1, 2, 3, 3, 3, &[0.0; 6], &tau, c, &Serial);
    assert!(matches!(error, Err(Error::Order { larger: "r", smaller: "t", .. })));
}

/// Matrices without an element: what there is of results is written.
#[test]
fn empty_matrices_have_results() {
    for batch in [1, usize::MAX] {
        eig::<f64>(batch, 0, &[], &mut [], &mut [], &Serial).unwrap();
        eigvals::<f64>(batch, 0, &[], &mut [], &Serial).unwrap();
        schur(batch, 0, none::<f64>(), &mut [], &Serial).unwrap();
        hess(batch, 0, none::<f64>(), &mut [], &Serial).unwrap();
    }
    let mut info = [-7; 6];
    let [potrf, getrf, eigen_info, svd, eig, schur] = &mut info;
    let one = std::slice::from_mut::<i32>;
    cholesky::potrf(Uplo::Lower, 1, 0, none::<f64>(), one(potrf), &Serial).unwrap();
    lu::getrf(1, 0, 3, none::<f64>(), &mut [], one(getrf), &Serial).unwrap();
    syevd(Vectors::Wanted, Uplo::Lower, 1, 0, none::<f64>(), &mut [], one(eigen_info), &Serial)
        .unwrap();
    let (mut u, mut sdim) = ([f64::NAN; 9], [-7]);
    let results = Svd { s: &mut [], u: &mut u, vt: &mut [], info: one(svd) };
    gesdd(SingularVectors::All, 1, 3, 0, none(), results, &Serial).unwrap();
    let results = Eigen { info: one(eig), ..eigen() };
    geev(Vectors::None, Vectors::None, 1, 0, &[], results, &Serial).unwrap();
    eigh(Uplo::Lower, 1, 0, none::<f64>(), &mut [], &Serial).unwrap();
    eigvalsh::<f64>(Uplo::Lower, 1, 0, &[], &mut [], &Serial).unwrap();
    eigh_subset::<f64>(Uplo::Lower, usize::MAX, 0, 0..0, &[], &mut [], &mut [], &Serial).unwrap();
    for (part, larger, smaller) in
        [(0..4, "n", "stop"), (Range { start: 2, end: 1 }, "stop", "start")]
    {
        let (mut v, mut w) = ([0.0; 9], [0.0; 3]);
        let error = eigh_subset(Uplo::Lower, 1, 3, part, &[0.0; 9], &mut v, &mut w, &Serial);
        assert!(
            matches!(error, Err(Error::Order { larger: l, smaller: s, .. }) if (l, s) == (larger, smaller))
        );
    }
    let w = Eigenvalues::Parts(&mut [], &mut []);
    gees(Vectors::None, 1, 0, none::<f64>(), &mut [], w, &mut sdim, one(schur), &Serial).unwrap();
    assert_eq!((info, sdim), ([0; 6], [0]));
    // The left singular vectors of a 3 × 0 matrix are any orthonormal basis.
    let mut by_rows = [f64::NAN; 9];
    let (all, rows) = (SingularVectors::All, &mut by_rows);
    svd_of_rows(all, 1, 3, 0, &[], &mut [], rows, &mut [], &Serial).unwrap();
    for u in [u, by_rows] {
        let unit: f64 = u.iter().map(|u| u * u).sum();
        approx::assert_relative_eq!(unit, 3.0, max_relative = 1e-15);
    }
}

/// Order 33,000 where the work is small: many rows, or many columns, or three diagonals.
#[test]
fn long_dimensions_are_served() {
    let (long, short) = (33_000, 2);
    for (m, n) in [(long, short), (short, long)] {
        let a: Vec<f32> = (0..97_u8).cycle().take(m * n).map(|i| f32::from(i) - 48.0).collect();
        let a = [a.clone(), a].map(|mut a| {
            a[0] = 1000.0;
            a
        });
        let [mut lu, mut svd] = a;
        let (mut ipiv, mut info, mut tau) = ([0; 2], [-7], [f32::NAN; 2]);
        let mut qr = svd.clone();
        let inside = |dst| InOut { src: None, dst };
        lu::getrf(1, m, n, inside(&mut lu[..]), &mut ipiv, &mut info, &Serial).unwrap();
        assert_eq!(info, [0]);
        geqrf(1, m, n, inside(&mut qr[..]), &mut tau, &Serial).unwrap();
        let (mut s, mut u, mut vt) = ([0.0; 2], vec![0.0; m * short], vec![0.0; short * n]);
        let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
        let norm: f64 = svd.iter().map(|&x| f64::from(x).powi(2)).sum();
        gesdd(SingularVectors::Thin, 1, m, n, inside(&mut svd[..]), results, &Serial).unwrap();
        assert_eq!(info, [0]);
        let sum: f64 = s.iter().map(|&s| f64::from(s).powi(2)).sum();
        approx::assert_relative_eq!(sum, norm, max_relative = 1e-5);
        let r = |i: usize, j: usize| f64::from(qr[i + j * m]);
        let expected = (s[0] * s[1]).into();
        if m > n {
            approx::assert_relative_eq!((r(0, 0) * r(1, 1)).abs(), expected, max_relative = 1e-4);
        }
    }
    let mut diagonals = [vec![1.0; long], vec![-2.0; long], vec![1.0; long]];
    let [dl, d, du] = &mut diagonals;
    let inside = |dst| InOut { src: None, dst };
    let diagonals = Diagonals { dl: inside(&mut dl[..]), d: inside(d), du: inside(du) };
    // Second differences of i² / 2 are 1, but for the ends.
    let square = |i: usize| f64::from(u32::try_from(i).unwrap()).powi(2) / 2.0;
    let mut x = vec![1.0; long];
    x[long - 1] -= square(long + 1);
    let mut info = [-7];
    gtsv(1, long, 1, diagonals, inside(&mut x[..]), &mut info, &Serial).unwrap();
    assert_eq!(info, [0]);
    approx::assert_relative_eq!(x[long / 2 - 1], square(long / 2), max_relative = 1e-7);
}
