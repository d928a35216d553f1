//! Eigenvalues and eigenvectors of general matrices: A·x = w·x and uᴴ·A = w·uᴴ.

use lapax_core::{Scalar, Vectors};
use lapax_cpu::eig::Eigen;
use lapax_cpu::schur::Eigenvalues;

use super::{c32, c64};

super::ops! { eig;
    /// Eigenvalues and eigenvectors of a real matrix (sGEEV, dGEEV).
    ///
    /// `wr` and `wi` are the parts of the eigenvalues; a conjugate pair is adjacent, the one with
    /// positive imaginary part first. The columns of `vr` are the right eigenvectors, A·x = w·x,
    /// those of `vl` the left ones, uᴴ·A = w·uᴴ, of 2-norm one; one that is not real has a real
    /// element of largest modulus. What is not asked for is zero. `info = -4`: `a` has a NaN or
    /// inf; `info = i > 0`: only the eigenvalues after the i-th were found; the other results are
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
    cuda = none;

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
    cuda = none;
}
