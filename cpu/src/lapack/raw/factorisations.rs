//! The calls that factor and solve.

/// One scalar's routines, by their names in LAPACK; `rwork` is an argument of complex ones.
macro_rules! factorisations {
    ([$($rwork:ident)?] $trsm:ident $getrf:ident $potrf:ident $gtsv:ident $geqrf:ident $geqp3:ident
        $orgqr:ident $ormqr:ident) => {
        fn trsm(
            (side, uplo, trans, diag): (Side, Uplo, Trans, Diag),
            m: Int,
            n: Int,
            a: &[Self],
            b: &mut [Self],
        ) {
            let q = if side == Side::Left { m } else { n };
            let (side, uplo) = (letter(side.code()), letter(uplo.code()));
            let (trans, diag) = (letter(trans.code()), letter(diag.code()));
            let (a, b) = (at_input(a, &[q, q]), at(b, &[m, n]));
            // SAFETY: a and b have as many elements as their dimensions say.
            unsafe {
                blas::$trsm(
                    &side, &uplo, &trans, &diag, m.ptr(), n.ptr(), &Self::ONE, a, q.ptr(), b,
                    m.ptr(),
                );
            }
        }

        fn getrf(m: Int, n: Int, a: &mut [Self], ipiv: &mut Integers) -> i32 {
            let (a, ipiv) = (at(a, &[m, n]), ipiv.ptr(m.min(n).get()));
            written(|info| {
                // SAFETY: a and ipiv have as many elements as their dimensions say.
                unsafe { lapack_sys::$getrf(m.ptr(), n.ptr(), a, m.ptr(), ipiv, info) }
            })
        }

        fn potrf(uplo: Uplo, n: Int, a: &mut [Self]) -> i32 {
            let (uplo, a) = (letter(uplo.code()), at(a, &[n, n]));
            written(|info| {
                // SAFETY: a has as many elements as its dimensions say.
                unsafe { lapack_sys::$potrf(&uplo, n.ptr(), a, n.ptr(), info) }
            })
        }

        fn gtsv(n: Int, nrhs: Int, [dl, d, du]: [&mut [Self]; 3], b: &mut [Self]) -> i32 {
            let beside = [n.less_one()];
            let (dl, d, du) = (at(dl, &beside), at(d, &[n]), at(du, &beside));
            let b = at(b, &[n, nrhs]);
            written(|info| {
                // SAFETY: the diagonals and b have as many elements as their dimensions say.
                unsafe { lapack_sys::$gtsv(n.ptr(), nrhs.ptr(), dl, d, du, b, n.ptr(), info) }
            })
        }

        fn geqrf(
            m: Int,
            n: Int,
            a: &mut [Self],
            tau: &mut [Self],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(Least { work: n.get(), ..Least::default() })?;
            let (a, tau) = (work.at(a, &[m, n]), work.at(tau, &[m.min(n)]));
            Ok(written(|info| {
                // SAFETY: a, tau and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$geqrf(
                        m.ptr(), n.ptr(), a, m.ptr(), tau, work.work(), work.lwork(), info,
                    );
                }
            }))
        }

        fn geqp3(
            m: Int,
            n: Int,
            a: &mut [Self],
            jpvt: &mut Integers,
            tau: &mut [Self],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(least::geqp3::<Self>(n.get()))?;
            let (a, tau) = (work.at(a, &[m, n]), work.at(tau, &[m.min(n)]));
            let jpvt = work.integers(jpvt, n);
            Ok(written(|info| {
                // SAFETY: a, jpvt, tau and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$geqp3(
                        m.ptr(), n.ptr(), a, m.ptr(), jpvt, tau, work.work(), work.lwork(),
                        $(work.$rwork(),)? info,
                    );
                }
            }))
        }

        fn orgqr(
            m: Int,
            n: Int,
            t: Int,
            a: &mut [Self],
            tau: &[Self],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            work.demand(Least { work: n.get(), ..Least::default() })?;
            let (a, tau) = (work.at(a, &[m, n]), work.at_input(tau, &[t]));
            Ok(written(|info| {
                // SAFETY: a, tau and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$orgqr(
                        m.ptr(), n.ptr(), t.ptr(), a, m.ptr(), tau, work.work(), work.lwork(),
                        info,
                    );
                }
            }))
        }

        fn ormqr(
            (side, factor): (Side, Factor),
            m: Int,
            n: Int,
            t: Int,
            a: &mut [Self],
            tau: &[Self],
            c: &mut [Self],
            work: &mut Work<Self>,
        ) -> Result<i32, Error> {
            let (r, others) = if side == Side::Left { (m, n) } else { (n, m) };
            work.demand(Least { work: others.get(), ..Least::default() })?;
            let (side, factor) = (letter(side.code()), letter(factor_code::<Self>(factor)));
            let (a, tau) = (work.at(a, &[r, t]), work.at_input(tau, &[t]));
            let c = work.at(c, &[m, n]);
            Ok(written(|info| {
                // SAFETY: a, tau, c and the workspace are as long as LAPACK asks for.
                unsafe {
                    lapack_sys::$ormqr(
                        &side, &factor, m.ptr(), n.ptr(), t.ptr(), a, r.ptr(), tau, c, m.ptr(),
                        work.work(), work.lwork(), info,
                    );
                }
            }))
        }
    };
}

pub(super) use factorisations;
