//! The Hermitian eigenproblem A = V·diag(w)·Vᴴ, and reduction to tridiagonal form, A = Q·T·Qᴴ.

use lapax_core::{Scalar, Uplo, Vectors};
use lapax_cpu::eigh;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out, unsigned};
#[cfg(feature = "cuda")]
use lapax_cuda::definite::Given;
#[cfg(feature = "cuda")]
use lapax_cuda::eigh::Algorithm;

/// Which part of an operand on CUDA is A.
#[cfg(feature = "cuda")]
fn given(uplo: Uplo, symmetrize: Option<bool>) -> Given {
    Given { uplo, mean: symmetrize.unwrap_or(false) }
}

super::ops! { eigh;
    /// Eigenvalues, and eigenvectors if asked for, of a Hermitian matrix (xSYEVD, xHEEVD).
    ///
    /// Only the triangle that `uplo` names is read. `w` holds the eigenvalues, ascending. With
    /// `mode` Wanted column j of `v` is a unit vector with A·v = w(j)·v, and the columns are
    /// orthogonal; on the CPU the first component of n with |v(i)|·√n ≥ 0.4869 is real and positive,
    /// so that a matrix has the same vectors alone and in any batch, up to rounding, unless eigenvalues
    /// are equal or as near to each other as rounding is to ‖A‖. With `mode` None no vector is computed, which takes a
    /// fraction of the time, and `v` is scratch without meaning.
    /// `info = -4`: the triangle holds NaN or inf, and `w` and `v` are NaN (jaxlib's OpenBLAS
    /// reports 0 and returns finite numbers). `info = i > 0`: i off-diagonal elements of an
    /// intermediate tridiagonal matrix did not converge, neither by divide and conquer nor by
    /// implicit QL steps.
    syevd: Syevd<T: Scalar> over [f32, f64, c32, c64], Column {
        dims { n }
        args { a: T [n, n] }
        attrs { mode: Vectors as u8, uplo: Uplo as u8 }
        rets { v: T [n, n] = a, w: T::Real [n], info: i32 [] }
    }
    cpu = lapack(syevd, heevd), |call, threads| {
        let (job, uplo, v) = (call.mode, call.uplo, in_out(call.v));
        dispatch!(eigh::syevd(job, uplo, call.batch, call.n, v, call.w, call.info, threads))
    };
    cuda = {
        /// On CUDA `lower` says which triangle; `algorithm` 1 is divide and conquer, 2 Jacobi's method,
        /// 0 the latter up to order 32. `mode` may be absent, and is Wanted then.
        "cusolver_syevd_ffi" over [f32, f64, c32, c64] where T: Scalar {
            dims { n }
            args { a: T [n, n] }
            attrs { algorithm: Algorithm as u8, lower: bool, mode: Option<Vectors> as u8 }
            rets { v: T [n, n] = a, w: T::Real [n], info: i32 [] }
        },
        queued,
        load(lapax_cuda::eigh::load),
        run(|call, gpu| {
            let vectors = call.mode.unwrap_or(Vectors::Wanted);
            let (algorithm, uplo) = (call.algorithm, device::triangle(call.lower));
            let task = lapax_cuda::eigh::Task { algorithm, vectors, uplo };
            let (v, w) = (device::in_out(&call.v), device::output(&call.w));
            let info = device::output(&call.info);
            lapax_cuda::eigh::syevd(gpu, task, call.batch, call.n, v, w, info)
        }),
    };

    /// The Hermitian part of a row-major matrix, the mean of it and its adjoint: S = (A + Aᴴ)/2.
    ///
    /// What JAX makes of an operand before `eigh`.
    symmetrize: Symmetrize<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { s: T [n, n] }
    }
    cpu = any("lapax_symmetrize"), |call, threads| {
        eigh::symmetrize(call.batch, call.n, call.a, call.s, threads)
    };
    cuda = {
        "lapax_symmetrize", captured,
        load(lapax_cuda::hermitian::load_symmetrize::<T>),
        run(|call, gpu| {
            let (a, s) = (device::input(&call.a), device::output(&call.s));
            lapax_cuda::hermitian::symmetrize(gpu, call.batch, call.n, a, s)
        }),
    };

    /// Eigenvalues and eigenvectors of a row-major Hermitian matrix.
    ///
    /// `syevd` with vectors, row-major: A·v = w(j)·v for column j of `v`, with the same phases. Only the triangle
    /// that `uplo` names is read. `w` and `v` are NaN where it holds NaN or inf, or did not converge.
    eigh: Eigh<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        attrs { uplo: Uplo as u8 }
        rets { v: T [n, n] = a, w: T::Real [n] }
    }
    cpu = any("lapax_eigh"), |call, threads| {
        let (uplo, v) = (call.uplo, in_out(call.v));
        dispatch!(eigh::eigh(uplo, call.batch, call.n, v, call.w, threads))
    };
    cuda = {
        /// On CUDA a matrix and its vectors have to fit into a block's shared memory. With `symmetrize` A is the
        /// mean of `a` and its adjoint, for which the CPU has a call of its own.
        "lapax_eigh" over [f32, f64, c32, c64] where T: Scalar {
            dims { n }
            args { a: T [n, n] }
            attrs { uplo: Uplo as u8, symmetrize: Option<bool> }
            rets { v: T [n, n] = a, w: T::Real [n] }
        },
        captured,
        load(lapax_cuda::hermitian::load::<T>),
        run(|call, gpu| {
            let given = given(call.uplo, call.symmetrize);
            let (v, w) = (device::in_out(&call.v), device::output(&call.w));
            lapax_cuda::hermitian::eigh(gpu, given, call.batch, call.n, v, w)
        }),
    };

    /// Some eigenvalues of a row-major Hermitian matrix, and their eigenvectors.
    ///
    /// Of what `eigh` finds, phases included, the k eigenvalues from place `start` on, counted from 0, in ascending order, and
    /// their eigenvectors. Of a large matrix less is done the fewer these are.
    eigh_subset: EighSubset<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n, k }
        args { a: T [n, n] }
        attrs { start: i32, uplo: Uplo as u8 }
        rets { v: T [n, k], w: T::Real [k] }
        require {
            start >= 0 && k <= n - i64::from(start)
                => "start not to be negative, and start + k to be at most n",
        }
    }
    cpu = any("lapax_eigh_subset"), |call, threads| {
        let start = unsigned(call.start);
        let part = start..start + call.k;
        let (uplo, batch, n) = (call.uplo, call.batch, call.n);
        dispatch!(eigh::eigh_subset(uplo, batch, n, part, call.a, call.v, call.w, threads))
    };
    cuda = {
        "lapax_eigh_subset", captured,
        load(lapax_cuda::hermitian::load::<T>),
        run(|call, gpu| {
            let start = unsigned(call.start);
            let (given, part) = (given(call.uplo, None), start..start + call.k);
            let (a, batch, n) = (device::input(&call.a), call.batch, call.n);
            let (v, w) = (device::output(&call.v), device::output(&call.w));
            lapax_cuda::hermitian::eigh_subset(gpu, given, batch, n, part, a, v, w)
        }),
    };

    /// Eigenvalues of a row-major Hermitian matrix, ascending.
    ///
    /// `syevd` without vectors, and without scratch. Only the triangle that `uplo` names is read. `w` is
    /// NaN where it holds NaN or inf, or did not converge.
    eigvalsh: Eigvalsh<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        attrs { uplo: Uplo as u8 }
        rets { w: T::Real [n] }
    }
    cpu = any("lapax_eigvalsh"), |call, threads| {
        dispatch!(eigh::eigvalsh(call.uplo, call.batch, call.n, call.a, call.w, threads))
    };
    cuda = {
        /// On CUDA as `lapax_eigh`.
        "lapax_eigvalsh" over [f32, f64, c32, c64] where T: Scalar {
            dims { n }
            args { a: T [n, n] }
            attrs { uplo: Uplo as u8, symmetrize: Option<bool> }
            rets { w: T::Real [n] }
        },
        captured,
        load(lapax_cuda::hermitian::load::<T>),
        run(|call, gpu| {
            let given = given(call.uplo, call.symmetrize);
            let (a, w) = (device::input(&call.a), device::output(&call.w));
            lapax_cuda::hermitian::eigvalsh(gpu, given, call.batch, call.n, a, w)
        }),
    };

    /// Some eigenvalues of a symmetric tridiagonal matrix T that is given as such, and their eigenvectors.
    ///
    /// T has the diagonal `d`, and `e` beside it. The results are those of `eigh_subset`: T·v = w(j)·v for column j of
    /// `v`, with the same phases, for the k eigenvalues from place `start` on, counted from 0, in ascending order. Nothing is
    /// reduced: QL steps, or divide and conquer. Of a large T less is done the fewer vectors are wanted. `w` and `v` are
    /// NaN where T holds NaN or inf, or did not converge.
    tridiagonal_eigh: TridiagonalEigh<T> over [f32, f64], Row {
        dims { n, k, beside = max(n - 1, 0) }
        args { d: T [n], e: T [beside] }
        attrs { start: i32 }
        rets { v: T [n, k], w: T [k] }
        require {
            start >= 0 && k <= n - i64::from(start)
                => "start not to be negative, and start + k to be at most n",
        }
    }
    cpu = any("lapax_tridiagonal_eigh"), |call, threads| {
        let start = unsigned(call.start);
        let part = start..start + call.k;
        let (batch, n, d, e) = (call.batch, call.n, call.d, call.e);
        eigh::tridiagonal_eigh(batch, n, part, d, e, call.v, call.w, threads)
    };
    cuda = host;

    /// Eigenvalues of a symmetric tridiagonal matrix that is given as such, ascending: see `tridiagonal_eigh`.
    ///
    /// By QL steps without roots, in time proportional to n². NaN where the matrix holds NaN or inf, or did not converge.
    tridiagonal_eigvalsh: TridiagonalEigvalsh<T> over [f32, f64], Row {
        dims { n, beside = max(n - 1, 0) }
        args { d: T [n], e: T [beside] }
        rets { w: T [n] }
    }
    cpu = any("lapax_tridiagonal_eigvalsh"), |call, threads| {
        eigh::tridiagonal_eigvalsh(call.batch, call.n, call.d, call.e, call.w, threads)
    };
    cuda = host;

    /// Reduction of a Hermitian matrix to real tridiagonal form, A = Q·T·Qᴴ (xSYTRD, xHETRD).
    ///
    /// `d` is T's diagonal and `e` what is beside it; both replace those elements of `reflectors`,
    /// too. For `uplo` Lower Q = H(1)⋯H(n−1), and v of H(i) = I − tau(i)·v·vᴴ is zero up to row i, 1
    /// in row i + 1, and below that in column i of `reflectors`; for Upper Q = H(n−1)⋯H(1), and v is
    /// 1 in row i, zero below, and above it in column i + 1. The triangle that `uplo` does not name
    /// is not read and keeps what `a` has there. NaN and inf propagate; `info` is 0.
    sytrd: Sytrd<T: Scalar> over [f32, f64, c32, c64], Column {
        dims { n, q = max(n - 1, 0) }
        args { a: T [n, n] }
        attrs { uplo: Uplo as u8 }
        rets { reflectors: T [n, n] = a, d: T::Real [n], e: T::Real [q], tau: T [q], info: i32 [] }
    }
    cpu = lapack(sytrd, hetrd), |call, threads| {
        let (uplo, a) = (call.uplo, in_out(call.reflectors));
        let (d, e, tau, info) = (call.d, call.e, call.tau, call.info);
        dispatch!(eigh::sytrd(uplo, call.batch, call.n, a, d, e, tau, info, threads))
    };
    cuda = {
        /// On CUDA `lower` says which triangle.
        "cusolver_sytrd_ffi" over [f32, f64, c32, c64] where T: Scalar {
            dims { n, q = max(n - 1, 0) }
            args { a: T [n, n] }
            attrs { lower: bool }
            rets {
                reflectors: T [n, n] = a, d: T::Real [n], e: T::Real [q], tau: T [q], info: i32 []
            }
        },
        queued,
        load(lapax_cuda::eigh::load_sytrd::<T>),
        run(|call, gpu| {
            let (uplo, a) = (device::triangle(call.lower), device::in_out(&call.reflectors));
            let results = lapax_cuda::eigh::Tridiagonal {
                d: device::output(&call.d),
                e: device::output(&call.e),
                tau: device::output(&call.tau),
                info: device::output(&call.info),
            };
            lapax_cuda::eigh::sytrd(gpu, uplo, call.batch, call.n, a, results)
        }),
    };
}
