//! Schur form: A = Z·T·Zᴴ.

use lapax_core::{Sort, Vectors};
use lapax_cpu::schur::Eigenvalues;
#[cfg(feature = "cuda")]
use lapax_cuda::schur::Form;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out};

super::ops! { schur;
    /// Schur form of a real matrix, A = Z·T·Zᵀ (sGEES, dGEES).
    ///
    /// Z is orthogonal and T upper quasi-triangular: a conjugate pair of eigenvalues has a 2 × 2
    /// block with equal diagonal elements and off-diagonal ones of opposite sign. `wr` and `wi` are
    /// the parts of the eigenvalues in the order of the diagonal, the one with positive imaginary
    /// part first. The first component of n with |z(i)|·√n ≥ 0.4869 of each column of Z is real and
    /// positive. The eigenvalues are in the order in which the iteration finds them, and of a 2 × 2 block
    /// either off-diagonal element is the larger: that, T and Z have the same bits alone and in any batch,
    /// but other registers, another version or LAPACK may find another order. With `mode` None, `z` is zero
    /// and T the same. Eigenvalues cannot be sorted: `sort` is None and
    /// `sdim` 0. `info = i > 0`: only the eigenvalues after the i-th were found, and the other
    /// results are NaN, as they are, with `info` 0, where `a` has a NaN or inf.
    gees: Gees<T> over [f32, f64], Column {
        dims { n }
        args { a: T [n, n] }
        attrs { mode: Vectors as u8, sort: Sort as u8 }
        rets {
            t: T [n, n] = a, z: T [n, n], wr: T [n], wi: T [n], sdim: i32 [], info: i32 []
        }
    }
    cpu = lapack(gees), |call, threads| {
        let Sort::None = call.sort;
        let (t, w) = (in_out(call.t), Eigenvalues::Parts(call.wr, call.wi));
        let (mode, batch, n) = (call.mode, call.batch, call.n);
        dispatch!(schur::gees(mode, batch, n, t, call.z, w, call.sdim, call.info, threads))
    };
    cuda = (none: "a name of the CPU alone, as is `gees` in JAX");

    /// Schur form of a complex matrix, A = Z·T·Zᴴ (cGEES, zGEES).
    ///
    /// Z is unitary and T upper triangular; `w` is its diagonal. The rest is as for gees.
    gees_complex: GeesComplex<T> over [c32, c64], Column {
        dims { n }
        args { a: T [n, n] }
        attrs { mode: Vectors as u8, sort: Sort as u8 }
        rets { t: T [n, n] = a, z: T [n, n], w: T [n], sdim: i32 [], info: i32 [] }
    }
    cpu = lapack(gees), |call, threads| {
        let Sort::None = call.sort;
        let (t, w) = (in_out(call.t), Eigenvalues::Whole(call.w));
        let (mode, batch, n) = (call.mode, call.batch, call.n);
        dispatch!(schur::gees(mode, batch, n, t, call.z, w, call.sdim, call.info, threads))
    };
    cuda = (none: "a name of the CPU alone, as is `gees` in JAX");

    /// Schur form of row-major matrices, A = Z·T·Zᴴ.
    ///
    /// `gees` with Z, row-major and without the eigenvalues; order and phases are the same. `t` and `z` are NaN where A holds NaN or inf,
    /// or did not converge.
    schur: Schur<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { t: T [n, n] = a, z: T [n, n] }
    }
    cpu = any("lapax_schur"), |call, threads| {
        dispatch!(schur::schur(call.batch, call.n, in_out(call.t), call.z, threads))
    };
    cuda = {
        /// On CUDA matrices up to order 64 are the device's, of which the order of eigenvalues may be another;
        /// larger ones are the CPU's, for which the call waits for the device.
        "lapax_schur", queued,
        load(lapax_cuda::schur::load::<T>),
        run(|call, gpu| {
            let (t, z) = (device::in_out(&call.t), device::output(&call.z));
            let (batch, n) = (call.batch, call.n);
            if lapax_cuda::schur::decompose(gpu, Form::Schur, batch, n, t, z)? {
                return Ok(());
            }
            let (mut form, mut vectors) = (gpu.read(t.source())?, device::zeros(&call.z));
            let in_place = lapax_core::InOut { src: None, dst: &mut form[..] };
            let threads = &device::host_threads();
            dispatch!(schur::schur(batch, n, in_place, &mut vectors[..], threads))?;
            gpu.write(t.dst, &form)?;
            gpu.write(z, &vectors)
        }),
    };
}
