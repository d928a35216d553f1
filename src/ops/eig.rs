//! Eigenvalues and eigenvectors of general matrices: A·x = w·x and uᴴ·A = w·uᴴ.

use lapax_core::{Scalar, Vectors};
use lapax_cpu::eig::Eigen;
use lapax_cpu::schur::Eigenvalues;
#[cfg(feature = "cuda")]
use lapax_cuda::choices::{Count, largest};

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64};

/// Eigenvalues and right eigenvectors as cuSOLVER has them: of a real matrix, a conjugate pair's vectors
/// are two real columns, the parts of the first one's.
#[cfg(feature = "cuda")]
fn packed<T: Scalar>(n: usize, w: &[T::Complex], v: &[T::Complex]) -> Vec<T> {
    let zero = T::ZERO.re();
    let mut columns = Vec::with_capacity(v.len());
    let mut second = false;
    for (w, v) in w.iter().zip(v.chunks_exact(n.max(1))) {
        // The column before has this one's parts, with the other sign of the imaginary ones.
        second = !T::IS_COMPLEX && w.im() < zero && !second;
        columns.extend(v.iter().map(|x| match (T::IS_COMPLEX, second) {
            (true, _) => T::from_parts(x.re(), x.im()),
            (false, false) => T::from_parts(x.re(), zero),
            (false, true) => T::from_parts(-x.im(), zero),
        }));
    }
    columns
}

super::ops! { eig;
    /// Eigenvalues and eigenvectors of a real matrix (sGEEV, dGEEV).
    ///
    /// `wr` and `wi` are the parts of the eigenvalues; a conjugate pair is adjacent, the one with
    /// positive imaginary part first. The columns of `vr` are the right eigenvectors, A·x = w·x,
    /// those of `vl` the left ones, uᴴ·A = w·uᴴ, of 2-norm one; the component of largest modulus is real and
    /// positive, the first where others are within 128 roundings of it (LAPACK's of a vector that is real may be
    /// negative). Values, their order and vectors have the same bits alone and in any batch. What is not asked for is
    /// zero. `info = -4`: `a` has a NaN or inf; `info = i > 0`: only the eigenvalues after the i-th were found; the other results are
    /// then NaN.
    geev: Geev<T: Scalar> over [f32, f64], Column {
        dims { n }
        args { a: T [n, n] }
        attrs { compute_left: Vectors as u8, compute_right: Vectors as u8 }
        rets {
            wr: T [n], wi: T [n], vl: T::Complex [n, n], vr: T::Complex [n, n], info: i32 []
        }
    }
    cpu = lapack(geev), |call, threads| {
        let w = Eigenvalues::Parts(call.wr, call.wi);
        let results = Eigen { w, left: call.vl, right: call.vr, info: call.info };
        let (left, right) = (call.compute_left, call.compute_right);
        dispatch!(eig::geev(left, right, call.batch, call.n, call.a, results, threads))
    };
    cuda = {
        /// On CUDA the eigenproblem is the CPU's, and the call waits for the device. `magma` is not
        /// followed: MAGMA is never used.
        "cuhybrid_eig_real" over [f32, f64] where T: Scalar {
            dims { n }
            args { a: T [n, n] }
            attrs { left: bool, magma: &str, right: bool }
            rets {
                wr: T [n], wi: T [n], vl: T::Complex [n, n], vr: T::Complex [n, n], info: i32 []
            }
        },
        queued,
        load(device::nothing),
        run(|call, gpu| {
            let _ = call.magma;
            let host = gpu.read(device::input(&call.a))?;
            let (batch, n, threads) = (call.batch, call.n, &device::host_threads());
            let (left, right) = (device::vectors(call.left), device::vectors(call.right));
            let (mut vl, mut vr) = (device::zeros(&call.vl), device::zeros(&call.vr));
            let mut info = device::zeros(&call.info);
            let (mut wr, mut wi) = (device::zeros(&call.wr), device::zeros(&call.wi));
            let w = Eigenvalues::Parts(&mut wr[..], &mut wi[..]);
            let (left_host, right_host, info_host) = (&mut vl[..], &mut vr[..], &mut info[..]);
            let results = Eigen { w, left: left_host, right: right_host, info: info_host };
            let a = &host[..];
            dispatch!(eig::geev(left, right, batch, n, a, results, threads))?;
            gpu.write(device::output(&call.wr), &wr)?;
            gpu.write(device::output(&call.wi), &wi)?;
            gpu.write(device::output(&call.vl), &vl)?;
            gpu.write(device::output(&call.vr), &vr)?;
            gpu.write(device::output(&call.info), &info)
        }),
    };

    /// Eigenvalues and eigenvectors of a complex matrix (cGEEV, zGEEV).
    ///
    /// `w` is the eigenvalues. The rest is as for geev.
    geev_complex: GeevComplex<T> over [c32, c64], Column {
        dims { n }
        args { a: T [n, n] }
        attrs { compute_left: Vectors as u8, compute_right: Vectors as u8 }
        rets { w: T [n], vl: T [n, n], vr: T [n, n], info: i32 [] }
    }
    cpu = lapack(geev), |call, threads| {
        let w = Eigenvalues::Whole(call.w);
        let results = Eigen { w, left: call.vl, right: call.vr, info: call.info };
        let (left, right) = (call.compute_left, call.compute_right);
        dispatch!(eig::geev(left, right, call.batch, call.n, call.a, results, threads))
    };
    cuda = {
        /// On CUDA the eigenproblem is the CPU's, and the call waits for the device. `magma` is not
        /// followed: MAGMA is never used.
        "cuhybrid_eig_comp" over [c32, c64] {
            dims { n }
            args { a: T [n, n] }
            attrs { left: bool, magma: &str, right: bool }
            rets { w: T [n], vl: T [n, n], vr: T [n, n], info: i32 [] }
        },
        queued,
        load(device::nothing),
        run(|call, gpu| {
            let _ = call.magma;
            let host = gpu.read(device::input(&call.a))?;
            let (batch, n, threads) = (call.batch, call.n, &device::host_threads());
            let (left, right) = (device::vectors(call.left), device::vectors(call.right));
            let (mut vl, mut vr) = (device::zeros(&call.vl), device::zeros(&call.vr));
            let mut info = device::zeros(&call.info);
            let mut values = device::zeros(&call.w);
            let w = Eigenvalues::Whole(&mut values[..]);
            let (left_host, right_host, info_host) = (&mut vl[..], &mut vr[..], &mut info[..]);
            let results = Eigen { w, left: left_host, right: right_host, info: info_host };
            let a = &host[..];
            dispatch!(eig::geev(left, right, batch, n, a, results, threads))?;
            gpu.write(device::output(&call.w), &values)?;
            gpu.write(device::output(&call.vl), &vl)?;
            gpu.write(device::output(&call.vr), &vr)?;
            gpu.write(device::output(&call.info), &info)
        }),
    };

    /// Eigenvalues and right eigenvectors of row-major general matrices.
    ///
    /// `geev` with right eigenvectors, row-major: A·v = w(j)·v for column j of `v`, with the same phases. `w` and `v` are NaN
    /// where A holds NaN or inf, or did not converge.
    eig: RowMajorEig<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { w: T::Complex [n], v: T::Complex [n, n] }
    }
    cpu = any("lapax_eig"), |call, threads| {
        dispatch!(eig::eig(call.batch, call.n, call.a, call.w, call.v, threads))
    };
    cuda = {
        /// On CUDA matrices up to order 64, or to what a block holds, are the device's, of which the order of
        /// eigenvalues may be another; larger ones are the CPU's, for which the call waits for the device.
        "lapax_eig", queued,
        load(lapax_cuda::schur::load_eig::<T>),
        run(|call, gpu| {
            let (a, w) = (device::input(&call.a), device::output(&call.w));
            let v = Some(device::output(&call.v));
            if lapax_cuda::schur::eig(gpu, call.batch, call.n, a, w, v)? {
                return Ok(());
            }
            let host = gpu.read(device::input(&call.a))?;
            let (mut w, mut v) = (device::zeros(&call.w), device::zeros(&call.v));
            let (batch, n, threads) = (call.batch, call.n, &device::host_threads());
            dispatch!(eig::eig(batch, n, &host[..], &mut w[..], &mut v[..], threads))?;
            gpu.write(device::output(&call.w), &w)?;
            gpu.write(device::output(&call.v), &v)
        }),
    };

    /// Eigenvalues of row-major general matrices.
    ///
    /// `geev` without eigenvectors, row-major; a real matrix's conjugate pair is adjacent, the one with
    /// positive imaginary part first. `w` is NaN where A holds NaN or inf, or did not converge.
    eigvals: Eigvals<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { w: T::Complex [n] }
    }
    cpu = any("lapax_eigvals"), |call, threads| {
        dispatch!(eig::eigvals(call.batch, call.n, call.a, call.w, threads))
    };
    cuda = {
        /// On CUDA as `eig`.
        "lapax_eigvals", queued,
        load(lapax_cuda::schur::load_eig::<T>),
        run(|call, gpu| {
            let (a, w) = (device::input(&call.a), device::output(&call.w));
            if lapax_cuda::schur::eig(gpu, call.batch, call.n, a, w, None)? {
                return Ok(());
            }
            let host = gpu.read(device::input(&call.a))?;
            let mut w = device::zeros(&call.w);
            let (batch, n, threads) = (call.batch, call.n, &device::host_threads());
            dispatch!(eig::eigvals(batch, n, &host[..], &mut w[..], threads))?;
            gpu.write(device::output(&call.w), &w)
        }),
    };

    /// Eigenvalues and right eigenvectors of a general matrix, on the device (cusolverDnXgeev).
    ///
    /// `w` holds the eigenvalues. Column j of `vr` is the right eigenvector of w(j), of 2-norm one; of a
    /// real matrix, a conjugate pair's are x + i·y and x − i·y with x and y in the columns j and j + 1.
    /// What is not asked for is zero, as is `vl`: there are no left ones. `scratch` is what is left of `a`.
    /// `info = i > 0`: only the eigenvalues after the i-th were found. Matrices up to order 256 are the
    /// CPU's, for which the call waits for the device; of these `info = -4` where `a` has a NaN or inf.
    geev_packed: GeevPacked<T: Scalar> over [f32, f64, c32, c64], Column {
        dims { n }
        args { a: T [n, n] }
        attrs { left: bool, right: bool }
        rets { scratch: T [n, n], w: T::Complex [n], vl: T [n, n], vr: T [n, n], info: i32 [] }
        require { !left => "left to be false, as cuSOLVER has no left eigenvectors" }
    }
    cpu = none;
    cuda = {
        "cusolver_geev_ffi", queued,
        load(lapax_cuda::eig::load),
        run(|call, gpu| {
            if call.n <= largest::<T>(gpu, "geev_packed", Count::of(call.batch))? {
                let host = gpu.read(device::input(&call.a))?;
                let (batch, n, threads) = (call.batch, call.n, &device::host_threads());
                let (mut wr, mut wi) = (vec![T::ZERO; batch * n], vec![T::ZERO; batch * n]);
                let w = if T::IS_COMPLEX {
                    Eigenvalues::Whole(&mut wr[..])
                } else {
                    Eigenvalues::Parts(&mut wr[..], &mut wi[..])
                };
                let mut v = vec![Default::default(); if call.right { host.len() } else { 0 }];
                let mut info = device::zeros(&call.info);
                let (left, right) = (lapax_core::Vectors::None, device::vectors(call.right));
                let results = Eigen { w, left: &mut [], right: &mut v[..], info: &mut info[..] };
                let a = &host[..];
                dispatch!(eig::geev(left, right, batch, n, a, results, threads))?;
                let whole = |(w, wi): (&T, &T)| {
                    let im = if T::IS_COMPLEX { w.im() } else { wi.re() };
                    <T as Scalar>::Complex::from_parts(w.re(), im)
                };
                let w: Vec<_> = wr.iter().zip(&wi).map(whole).collect();
                let vectors = if call.right { packed(n, &w, &v) } else { device::zeros(&call.vr) };
                gpu.write(device::output(&call.scratch), &host)?;
                gpu.write(device::output(&call.w), &w)?;
                gpu.write(device::output(&call.vl), &device::zeros(&call.vl))?;
                gpu.write(device::output(&call.vr), &vectors)?;
                return gpu.write(device::output(&call.info), &info);
            }
            let results = lapax_cuda::eig::Eigen {
                scratch: device::output(&call.scratch),
                left: device::output(&call.vl),
                w: device::output(&call.w),
                right: device::output(&call.vr),
                info: device::output(&call.info),
            };
            let (vectors, a) = (device::vectors(call.right), device::input(&call.a));
            lapax_cuda::eig::geev(gpu, vectors, call.batch, call.n, a, results)
        }),
    };
}
