//! The calls that find singular values and eigenvalues, and the reductions on the way there.

/// One scalar's routines, by their names in LAPACK; `im` are arguments of real ones, `rwork` and
/// `lrwork` of complex ones.
macro_rules! spectral {
    ([$($im:ident)?] [$($rwork:ident $lrwork:ident)?] $gesdd:ident $gesvd:ident $syevd:ident
        $sytrd:ident $geev:ident $gees:ident $gehrd:ident) => {
        fn gesdd(
            job: SingularVectors,
            m: Int,
            n: Int,
            of: Decomposed<'_, Self>,
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(least::gesdd::<Self>(job, m.get(), n.get()))?;
            let (u_cols, vt_rows) = factors(job, m, n);
            let (a, s) = (work.at(of.a, &[m, n]), work.at(of.s, &[m.min(n)]));
            let (u, vt) = (work.at(of.u, &[m, u_cols]), work.at(of.vt, &[vt_rows, n]));
            let (job, ldvt) = (letter(job.code()), vt_rows.max(Int::ONE));
            Ok(written(|info| {
                // SAFETY: the operands and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$gesdd(
                        &job, m.ptr(), n.ptr(), a, m.ptr(), s, u, m.ptr(), vt, ldvt.ptr(),
                        work.work(), work.lwork(), $(work.$rwork(),)? work.iwork(), info,
                    );
                }
            }))
        }

        fn gesvd(
            job: SingularVectors,
            m: Int,
            n: Int,
            of: Decomposed<'_, Self>,
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(least::gesvd::<Self>(m.get(), n.get()))?;
            let (u_cols, vt_rows) = factors(job, m, n);
            let (a, s) = (work.at(of.a, &[m, n]), work.at(of.s, &[m.min(n)]));
            let (u, vt) = (work.at(of.u, &[m, u_cols]), work.at(of.vt, &[vt_rows, n]));
            let (job, ldvt) = (letter(job.code()), vt_rows.max(Int::ONE));
            Ok(written(|info| {
                // SAFETY: the operands and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$gesvd(
                        &job, &job, m.ptr(), n.ptr(), a, m.ptr(), s, u, m.ptr(), vt, ldvt.ptr(),
                        work.work(), work.lwork(), $(work.$rwork(),)? info,
                    );
                }
            }))
        }

        fn syevd(
            job: Vectors,
            uplo: Uplo,
            n: Int,
            a: &mut [Self],
            w: &mut [Self::Real],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(least::syevd::<Self>(job, n.get()))?;
            let (a, w) = (work.at(a, &[n, n]), work.at(w, &[n]));
            let (job, uplo) = (letter(job.code()), letter(uplo.code()));
            Ok(written(|info| {
                // SAFETY: a, w and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$syevd(
                        &job, &uplo, n.ptr(), a, n.ptr(), w, work.work(), work.lwork(),
                        $(work.$rwork(), work.$lrwork(),)? work.iwork(), work.liwork(), info,
                    );
                }
            }))
        }

        fn sytrd(
            uplo: Uplo,
            n: Int,
            a: &mut [Self],
            d: &mut [Self::Real],
            e: &mut [Self::Real],
            tau: &mut [Self],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(Least { work: 1, ..Least::default() })?;
            let beside = [n.less_one()];
            let (a, d) = (work.at(a, &[n, n]), work.at(d, &[n]));
            let (e, tau) = (work.at(e, &beside), work.at(tau, &beside));
            let uplo = letter(uplo.code());
            Ok(written(|info| {
                // SAFETY: the operands and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$sytrd(
                        &uplo, n.ptr(), a, n.ptr(), d, e, tau, work.work(), work.lwork(), info,
                    );
                }
            }))
        }

        fn geev(
            [left, right]: [Vectors; 2],
            n: Int,
            a: &mut [Self],
            w: Values<'_, Self>,
            [vl, vr]: [&mut [Self]; 2],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(least::geev::<Self>(n.get()))?;
            let columns = |job| if job == Vectors::Wanted { n } else { Int::ZERO };
            let (a, re) = (work.at(a, &[n, n]), work.at(w.re, &[n]));
            $(let $im = work.at(w.$im, &[n]);)?
            let (vl, vr) = (work.at(vl, &[n, columns(left)]), work.at(vr, &[n, columns(right)]));
            let (left, right) = (letter(left.code()), letter(right.code()));
            Ok(written(|info| {
                // SAFETY: the operands and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$geev(
                        &left, &right, n.ptr(), a, n.ptr(), re, $($im,)? vl, n.ptr(), vr, n.ptr(),
                        work.work(), work.lwork(), $(work.$rwork(),)? info,
                    );
                }
            }))
        }

        fn gees(
            job: Vectors,
            n: Int,
            a: &mut [Self],
            w: Values<'_, Self>,
            z: &mut [Self],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(least::gees::<Self>(n.get()))?;
            let columns = if job == Vectors::Wanted { n } else { Int::ZERO };
            let (a, re) = (work.at(a, &[n, n]), work.at(w.re, &[n]));
            $(let $im = work.at(w.$im, &[n]);)?
            let z = work.at(z, &[n, columns]);
            let (job, unsorted) = (letter(job.code()), letter(Sort::None.code()));
            let mut selected = Integers::with_room(1);
            Ok(written(|info| {
                // SAFETY: the operands and the workspace are as long as LAPACK asks for; without
                // sorting neither the function nor the array for it, both null, is referenced.
                unsafe {
                    lapack_sys::$gees(
                        &job, &unsorted, None, n.ptr(), a, n.ptr(), selected.ptr(1), re, $($im,)?
                        z, n.ptr(), work.work(), work.lwork(), $(work.$rwork(),)? null_mut(), info,
                    );
                }
            }))
        }

        fn gehrd(
            n: Int,
            [low, high]: [Int; 2],
            a: &mut [Self],
            tau: &mut [Self],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(Least { work: n.get(), ..Least::default() })?;
            let (a, tau) = (work.at(a, &[n, n]), work.at(tau, &[n.less_one()]));
            Ok(written(|info| {
                // SAFETY: a, tau and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$gehrd(
                        n.ptr(), low.ptr(), high.ptr(), a, n.ptr(), tau, work.work(), work.lwork(),
                        info,
                    );
                }
            }))
        }
    };
}

pub(super) use spectral;
