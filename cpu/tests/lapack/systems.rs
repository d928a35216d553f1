//! Factorisations and solutions, beside the crate `lapack`.

use lapax_cpu::lapack as adapters;
use lapax_cpu::qr::Factor;
use lapax_cpu::tridiagonal::Diagonals;
use lapax_cpu::{Diag, Error, Serial, Side, Trans, Uplo};
use num_complex::Complex;

use crate::sample::{M, N, SPACE, applies, at, int, positive, same, sample, zeros};

/// One scalar's tests; `adjoint` is the letter of Qᴴ, and `rwork` what only complex routines have.
macro_rules! systems {
    ($module:ident, $scalar:ty, $real:ty, $adjoint:literal, [$($rwork:ident)?], $getrf:ident
        $potrf:ident $trtrs:ident $gtsv:ident $geqrf:ident $geqp3:ident $orgqr:ident
        $ormqr:ident) => {
        mod $module {
            use super::*;

            type T = $scalar;
            const MI: i32 = 70;
            const NI: i32 = 50;

            #[test]
            fn getrf() -> Result<(), Error> {
                let (mut a, mut ipiv, mut info) = (sample::<T>(M * N, 1), [0; N], [9]);
                let (mut b, mut pivots, mut outcome) = (a.clone(), [0; N], 9);
                adapters::lu::getrf(1, M, N, at(&mut a), &mut ipiv, &mut info, &Serial)?;
                if applies() {
                    // SAFETY: operands have the sizes that are passed, here and in all calls below.
                    unsafe { lapack::$getrf(MI, NI, &mut b, MI, &mut pivots, &mut outcome) };
                    same("lu", &a, &b);
                    same("ipiv", &ipiv, &pivots);
                    same("info", &info, &[outcome]);
                }
                Ok(())
            }

            #[test]
            fn potrf() -> Result<(), Error> {
                for (uplo, letter) in Uplo::CODES {
                    let (mut a, mut info) = (positive::<T>(N), [9]);
                    let (mut b, mut outcome) = (a.clone(), 9);
                    adapters::cholesky::potrf(*uplo, 1, N, at(&mut a), &mut info, &Serial)?;
                    if applies() {
                        // SAFETY: as above.
                        unsafe { lapack::$potrf(*letter, NI, &mut b, NI, &mut outcome) };
                        same("factor", &a, &b);
                        same("info", &info, &[outcome]);
                    }
                }
                Ok(())
            }

            /// xTRTRS is xTRSM from the left; from the right X·op(A) = B is op(A)ᵀ·Xᵀ = Bᵀ, by
            /// other loops.
            #[test]
            fn trsm() -> Result<(), Error> {
                let a = positive::<T>(N);
                for ((uplo, u), (trans, t), (diag, d)) in words() {
                    let mut b = sample::<T>(N * M, 2);
                    let (mut x, mut outcome) = (b.clone(), 9);
                    adapters::triangular::trsm(
                        Side::Left, uplo, trans, diag, 1, N, M, &a, at(&mut b), &Serial,
                    )?;
                    if applies() {
                        // SAFETY: as above.
                        unsafe { lapack::$trtrs(u, t, d, NI, MI, &a, NI, &mut x, NI, &mut outcome) };
                        same(&format!("{uplo:?} {trans:?} {diag:?}"), &b, &x);
                    }
                }
                Ok(())
            }

            #[test]
            fn gtsv() -> Result<(), Error> {
                let [mut dl, mut d, mut du] = [3, 4, 5].map(|seed| sample::<T>(N, seed));
                let (mut b, mut info) = (sample::<T>(N * 3, 6), [9]);
                let (mut l, mut c, mut u) = (dl.clone(), d.clone(), du.clone());
                let (mut x, mut outcome) = (b.clone(), 9);
                let a = Diagonals { dl: at(&mut dl), d: at(&mut d), du: at(&mut du) };
                adapters::tridiagonal::gtsv(1, N, 3, a, at(&mut b), &mut info, &Serial)?;
                if applies() {
                    // SAFETY: as above.
                    unsafe {
                        let l = &mut l[1..];
                        lapack::$gtsv(NI, 3, l, &mut c, &mut u, &mut x, NI, &mut outcome);
                    }
                    for (what, ours, theirs) in [("l", dl, l), ("d", d, c), ("u", du, u), ("x", b, x)]
                    {
                        same(what, &ours, &theirs);
                    }
                    same("info", &info, &[outcome]);
                }
                Ok(())
            }

            #[test]
            fn geqrf_and_orgqr() -> Result<(), Error> {
                let (mut a, mut tau, t) = (sample::<T>(M * N, 7), zeros::<T>(N), N - 3);
                let (mut b, mut factors, mut outcome) = (a.clone(), zeros::<T>(N), 9);
                let (mut work, lwork) = (zeros::<T>(SPACE), int(SPACE));
                adapters::qr::geqrf(1, M, N, at(&mut a), &mut tau, &Serial)?;
                let mut q = a.clone();
                adapters::qr::orgqr(1, M, N, t, at(&mut q), &tau[..t], &Serial)?;
                if applies() {
                    // SAFETY: as above.
                    unsafe {
                        let tau = &mut factors;
                        lapack::$geqrf(MI, NI, &mut b, MI, tau, &mut work, lwork, &mut outcome);
                    }
                    same("qr", &a, &b);
                    same("tau", &tau, &factors);
                    // SAFETY: as above.
                    unsafe {
                        let k = int(t);
                        lapack::$orgqr(MI, NI, k, &mut b, MI, &tau, &mut work, lwork, &mut outcome);
                    }
                    same("q", &q, &b);
                }
                Ok(())
            }

            #[test]
            fn ormqr() -> Result<(), Error> {
                let (mut a, mut tau, t) = (sample::<T>(M * N, 8), zeros::<T>(N), N - 3);
                adapters::qr::geqrf(1, M, N, at(&mut a), &mut tau, &Serial)?;
                let (mut work, lwork) = (zeros::<T>(SPACE), int(SPACE));
                let cases = [(Side::Left, M, 33), (Side::Right, 33, M)];
                for ((side, m, n), (factor, letter)) in cases.into_iter().flat_map(|case| {
                    [(case, (Factor::Q, b'N')), (case, (Factor::Adjoint, $adjoint))]
                }) {
                    let (mut c, mut outcome) = (sample::<T>(m * n, 9), 9);
                    let (mut product, tau, read) = (c.clone(), &tau[..t], a.clone());
                    let operand = at(&mut c);
                    adapters::qr::ormqr(side, factor, 1, m, n, N, t, &a, tau, operand, &Serial)?;
                    if applies() {
                        let (code, mi, ni, k) = (side.code(), int(m), int(n), int(t));
                        // SAFETY: as above.
                        unsafe {
                            lapack::$ormqr(
                                code, letter, mi, ni, k, &read, MI, tau, &mut product, mi,
                                &mut work, lwork, &mut outcome,
                            );
                        }
                        same(&format!("{side:?} {factor:?}"), &c, &product);
                    }
                }
                Ok(())
            }

            #[test]
            fn geqp3() -> Result<(), Error> {
                let (mut a, mut tau, mut jpvt) = (sample::<T>(M * N, 10), zeros::<T>(N), [0; N]);
                (jpvt[4], jpvt[20]) = (1, -1);
                let (mut b, mut factors, mut columns) = (a.clone(), zeros::<T>(N), jpvt);
                let (mut work, lwork, mut outcome) = (zeros::<T>(SPACE), int(SPACE), 9);
                $(let mut $rwork = zeros::<$real>(SPACE);)?
                adapters::qr::geqp3(1, M, N, at(&mut a), at(&mut jpvt[..]), &mut tau, &Serial)?;
                if applies() {
                    // SAFETY: as above.
                    unsafe {
                        lapack::$geqp3(
                            MI, NI, &mut b, MI, &mut columns, &mut factors, &mut work, lwork,
                            $(&mut $rwork,)? &mut outcome,
                        );
                    }
                    same("qr", &a, &b);
                    same("tau", &tau, &factors);
                    same("jpvt", &jpvt, &columns);
                }
                Ok(())
            }
        }
    };
}

/// Every triangle, op and diagonal, with their letters.
fn words() -> impl Iterator<Item = ((Uplo, u8), (Trans, u8), (Diag, u8))> {
    let triangles = Uplo::CODES.iter().flat_map(|uplo| Trans::CODES.iter().map(move |t| (uplo, t)));
    triangles.flat_map(|(&uplo, &trans)| Diag::CODES.iter().map(move |&diag| (uplo, trans, diag)))
}

systems!(f32, f32, f32, b'T', [], sgetrf spotrf strtrs sgtsv sgeqrf sgeqp3 sorgqr sormqr);
systems!(f64, f64, f64, b'T', [], dgetrf dpotrf dtrtrs dgtsv dgeqrf dgeqp3 dorgqr dormqr);
systems!(c32, Complex<f32>, f32, b'C', [rwork],
    cgetrf cpotrf ctrtrs cgtsv cgeqrf cgeqp3 cungqr cunmqr);
systems!(c64, Complex<f64>, f64, b'C', [rwork],
    zgetrf zpotrf ztrtrs zgtsv zgeqrf zgeqp3 zungqr zunmqr);
