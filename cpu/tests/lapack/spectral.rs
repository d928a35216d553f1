//! Singular values, eigenvalues and the reductions, beside the crate `lapack`.

use lapax_cpu::eig::Eigen;
use lapax_cpu::lapack as adapters;
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::svd::Svd;
use lapax_cpu::{Error, Scalar, Serial, SingularVectors, Uplo, Vectors};
use num_complex::Complex;

use crate::phases::{near, turn, turn_general, turn_pairs, turn_schur};
use crate::sample::{M, N, SPACE, answer, applies, at, int, positive, same, sample, zeros};

/// One scalar's tests. Only real routines take imaginary parts, the half of `w` with index `im`; only
/// complex ones `rwork` and `lrwork`.
macro_rules! spectral {
    ($module:ident, $scalar:ty, $real:ty, $values:ident, [$($im:tt)?],
        [$($rwork:ident $lrwork:ident)?], $gesdd:ident $gesvd:ident $syevd:ident $sytrd:ident
        $geev:ident $gees:ident $gehrd:ident) => {
        mod $module {
            use super::*;

            type T = $scalar;
            const MI: i32 = 70;
            const NI: i32 = 50;

            #[test]
            fn gesdd() -> Result<(), Error> {
                for &(job, letter) in SingularVectors::CODES {
                    let (u_cols, vt_rows) = shapes(job);
                    let (mut a, mut s, mut info) = (sample::<T>(M * N, 11), zeros::<$real>(N), [9]);
                    let (mut u, mut vt) = (zeros::<T>(M * u_cols), zeros::<T>(vt_rows * N));
                    let (mut b, mut theirs) = (a.clone(), (s.clone(), u.clone(), vt.clone(), 9));
                    let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
                    adapters::svd::gesdd(job, 1, M, N, at(&mut a), results, &Serial)?;
                    if !applies() {
                        return Ok(());
                    }
                    let (mut work, mut iwork) = (zeros::<T>(SPACE), vec![0; SPACE]);
                    $(let mut $rwork = zeros::<$real>(SPACE);)?
                    let (values, left, right, outcome) =
                        (&mut theirs.0, &mut theirs.1, &mut theirs.2, &mut theirs.3);
                    let mut lwork = -1;
                    for _ in 0..2 {
                        // SAFETY: operands have the sizes that are passed, here and below.
                        unsafe {
                            lapack::$gesdd(
                                letter, MI, NI, &mut b, MI, values, left, MI, right,
                                int(vt_rows.max(1)), &mut work, lwork, $(&mut $rwork,)? &mut iwork,
                                outcome,
                            );
                        }
                        lwork = answer(&work);
                    }
                    turn_pairs(&mut theirs.1, &mut theirs.2);
                    same("s and info", &[(s, info[0])], &[(theirs.0, theirs.3)]);
                    near("u", &u, &theirs.1);
                    near("vt", &vt, &theirs.2);
                }
                Ok(())
            }

            #[test]
            fn gesvd() -> Result<(), Error> {
                for &(job, letter) in SingularVectors::CODES {
                    let (u_cols, vt_rows) = shapes(job);
                    let (mut a, mut s, mut info) = (sample::<T>(M * N, 11), zeros::<$real>(N), [9]);
                    let (mut u, mut vt) = (zeros::<T>(M * u_cols), zeros::<T>(vt_rows * N));
                    let (mut b, mut theirs) = (a.clone(), (s.clone(), u.clone(), vt.clone(), 9));
                    let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
                    adapters::svd::gesvd(job, 1, M, N, at(&mut a), results, &Serial)?;
                    if !applies() {
                        return Ok(());
                    }
                    let (mut work, space) = (zeros::<T>(SPACE), int(SPACE));
                    $(let mut $rwork = zeros::<$real>(SPACE);)?
                    let (values, left, right, outcome) =
                        (&mut theirs.0, &mut theirs.1, &mut theirs.2, &mut theirs.3);
                    // SAFETY: as above.
                    unsafe {
                        lapack::$gesvd(
                            letter, letter, MI, NI, &mut b, MI, values, left, MI, right,
                            int(vt_rows.max(1)), &mut work, space, $(&mut $rwork,)? outcome,
                        );
                    }
                    turn_pairs(&mut theirs.1, &mut theirs.2);
                    same("s and info", &[(s, info[0])], &[(theirs.0, theirs.3)]);
                    near("u", &u, &theirs.1);
                    near("vt", &vt, &theirs.2);
                }
                Ok(())
            }

            #[test]
            fn syevd() -> Result<(), Error> {
                for ((uplo, u), (job, j)) in triangles_and_jobs() {
                    let (mut a, mut w, mut info) = (positive::<T>(N), zeros::<$real>(N), [9]);
                    let (mut b, mut values, mut outcome) = (a.clone(), w.clone(), 9);
                    let operand = at(&mut a);
                    adapters::eigh::syevd(job, uplo, 1, N, operand, &mut w, &mut info, &Serial)?;
                    if !applies() {
                        return Ok(());
                    }
                    let (mut work, mut iwork, space) =
                        (zeros::<T>(SPACE), vec![0; SPACE], int(SPACE));
                    $(let (mut $rwork, $lrwork) = (zeros::<$real>(SPACE), space);)?
                    let mut lwork = -1;
                    for _ in 0..2 {
                        // SAFETY: as above.
                        unsafe {
                            lapack::$syevd(
                                j, u, NI, &mut b, NI, &mut values, &mut work, lwork,
                                $(&mut $rwork, $lrwork,)? &mut iwork, space, &mut outcome,
                            );
                        }
                        lwork = answer(&work);
                    }
                    if job == Vectors::Wanted {
                        turn(&mut b, N);
                    }
                    near("v", &a, &b);
                    same("w", &w, &values);
                    same("info", &info, &[outcome]);
                }
                Ok(())
            }

            #[test]
            fn sytrd() -> Result<(), Error> {
                for &(uplo, letter) in Uplo::CODES {
                    let (mut a, mut tau, mut info) = (positive::<T>(N), zeros::<T>(N - 1), [9]);
                    let (mut d, mut e) = (zeros::<$real>(N), zeros::<$real>(N - 1));
                    let mut theirs = (a.clone(), d.clone(), e.clone(), tau.clone(), 9);
                    let (beside, operand) = (&mut e, at(&mut a));
                    adapters::eigh::sytrd(
                        uplo, 1, N, operand, &mut d, beside, &mut tau, &mut info, &Serial,
                    )?;
                    if !applies() {
                        return Ok(());
                    }
                    let mut work = zeros::<T>(SPACE);
                    // SAFETY: as above.
                    unsafe {
                        lapack::$sytrd(
                            letter, NI, &mut theirs.0, NI, &mut theirs.1, &mut theirs.2,
                            &mut theirs.3, &mut work, int(SPACE), &mut theirs.4,
                        );
                    }
                    same("results", &[(a, d, e, tau, info[0])], &[theirs]);
                }
                Ok(())
            }

            #[test]
            fn geev() -> Result<(), Error> {
                let (a, mut w, mut info) = (sample::<T>(N * N, 13), zeros::<T>(2 * N), [9]);
                let [mut left, mut right] = [(); 2].map(|()| zeros::<Complex<$real>>(N * N));
                let results = Eigen {
                    w: $values::<T>(&mut w), left: &mut left, right: &mut right, info: &mut info,
                };
                let wanted = Vectors::Wanted;
                adapters::eig::geev(wanted, wanted, 1, N, &a, results, &Serial)?;
                if !applies() {
                    return Ok(());
                }
                let (mut b, mut theirs, mut outcome) = (a, zeros::<T>(2 * N), 9);
                let [mut vl, mut vr] = [(); 2].map(|()| zeros::<T>(N * N));
                let (mut work, space) = (zeros::<T>(SPACE), int(SPACE));
                $(let mut $rwork = zeros::<$real>(SPACE);)?
                let halves = theirs.split_at_mut(N);
                // SAFETY: as above.
                unsafe {
                    lapack::$geev(
                        b'V', b'V', NI, &mut b, NI, halves.0, $(halves.$im,)? &mut vl, NI, &mut vr, NI,
                        &mut work, space, $(&mut $rwork,)? &mut outcome,
                    );
                }
                same("info", &info, &[outcome]);
                for (what, ours, packed) in [("left", left, vl), ("right", right, vr)] {
                    let mut unpacked = unpacked::<T, _>(&packed, &theirs[N..]);
                    turn_general(&mut unpacked, N);
                    near(what, &ours, &unpacked);
                }
                same("w", &w, &theirs);
                Ok(())
            }

            #[test]
            fn gees() -> Result<(), Error> {
                for &(job, _) in Vectors::CODES {
                    let (mut t, mut z) = (sample::<T>(N * N, 14), zeros::<T>(N * N));
                    let (mut w, mut sdim, mut info) = (zeros::<T>(2 * N), [9], [9]);
                    let (mut b, mut vectors) = (t.clone(), z.clone());
                    let values = $values::<T>(&mut w);
                    adapters::schur::gees(
                        job, 1, N, at(&mut t), &mut z, values, &mut sdim, &mut info, &Serial,
                    )?;
                    if !applies() {
                        return Ok(());
                    }
                    let (mut theirs, mut selected, mut outcome) = (zeros::<T>(2 * N), 9, 9);
                    let (mut work, space) = (zeros::<T>(SPACE), int(SPACE));
                    $(let mut $rwork = zeros::<$real>(SPACE);)?
                    let halves = theirs.split_at_mut(N);
                    // SAFETY: as above.
                    unsafe {
                        lapack::$gees(
                            b'V', b'N', None, NI, &mut b, NI, &mut selected, halves.0,
                            $(halves.$im,)? &mut vectors, NI, &mut work, space, $(&mut $rwork,)? &mut [],
                            &mut outcome,
                        );
                    }
                    turn_schur(&mut b, &mut vectors);
                    near("t", &t, &b);
                    if job == Vectors::None {
                        vectors = zeros::<T>(N * N);
                    }
                    near("z", &z, &vectors);
                    same("w", &w, &theirs);
                    same("sdim and info", &[sdim, info], &[[selected], [outcome]]);
                }
                Ok(())
            }

            #[test]
            fn gehrd() -> Result<(), Error> {
                let (mut a, mut tau, mut info) = (sample::<T>(N * N, 12), zeros::<T>(N - 1), [9]);
                let (mut b, mut factors, mut outcome) = (a.clone(), tau.clone(), 9);
                let operand = at(&mut a);
                adapters::hessenberg::gehrd(1, N, 3, 47, operand, &mut tau, &mut info, &Serial)?;
                if applies() {
                    let (tau, mut work) = (&mut factors, zeros::<T>(SPACE));
                    // SAFETY: as above.
                    unsafe {
                        lapack::$gehrd(
                            NI, 3, 47, &mut b, NI, tau, &mut work, int(SPACE), &mut outcome,
                        );
                    }
                    same("h", &a, &b);
                    same("info", &info, &[outcome]);
                }
                if applies() {
                    same("tau", &tau, &factors);
                }
                Ok(())
            }
        }
    };
}

/// The columns of U and the rows of Vᴴ.
fn shapes(job: SingularVectors) -> (usize, usize) {
    match job {
        SingularVectors::All => (M, N),
        SingularVectors::Thin => (N, N),
        SingularVectors::None => (0, 0),
    }
}

fn triangles_and_jobs() -> impl Iterator<Item = ((Uplo, u8), (Vectors, u8))> {
    let jobs = || Vectors::CODES.iter().copied();
    Uplo::CODES.iter().flat_map(move |&uplo| jobs().map(move |job| (uplo, job)))
}

/// Where a real matrix's eigenvalues go.
fn parts<T: Scalar>(w: &mut [T]) -> Eigenvalues<'_, T> {
    let (re, im) = w.split_at_mut(N);
    Eigenvalues::Parts(re, im)
}

/// Where a complex matrix's eigenvalues go.
fn whole<T: Scalar>(w: &mut [T]) -> Eigenvalues<'_, T> {
    Eigenvalues::Whole(&mut w[..N])
}

/// Vectors as LAPACK's documentation says that they are packed.
fn unpacked<T: Scalar<Complex = C>, C: Scalar<Real = T::Real>>(packed: &[T], wi: &[T]) -> Vec<C> {
    let zero = T::Real::default();
    let element = |i: usize, j: usize| {
        let at = |j: usize| packed[i + j * N];
        if wi[j].re() > zero {
            C::from_parts(at(j).re(), at(j + 1).re())
        } else if wi[j].re() < zero {
            C::from_parts(at(j - 1).re(), -at(j).re())
        } else {
            C::from_parts(at(j).re(), at(j).im())
        }
    };
    (0..N * N).map(|at| element(at % N, at / N)).collect()
}

spectral!(f32, f32, f32, parts, [1], [], sgesdd sgesvd ssyevd ssytrd sgeev sgees sgehrd);
spectral!(f64, f64, f64, parts, [1], [], dgesdd dgesvd dsyevd dsytrd dgeev dgees dgehrd);
spectral!(c32, Complex<f32>, f32, whole, [], [rwork lrwork],
    cgesdd cgesvd cheevd chetrd cgeev cgees cgehrd);
spectral!(c64, Complex<f64>, f64, whole, [], [rwork lrwork],
    zgesdd zgesvd zheevd zhetrd zgeev zgees zgehrd);
