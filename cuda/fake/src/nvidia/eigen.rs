//! Eigenvalues and singular values.

use std::ffi::{c_char, c_int, c_uint, c_void};

use lapax_core::{Scalar as _, Serial, SingularVectors, Uplo, Vectors};
use lapax_cpu::eig::Eigen;
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::svd::Svd;

use super::handles::checked;
use super::{
    Code, Number, answer_elements, answer_sizes, at, four, place, size, spoil, spoil_elements,
    uplo, with_type,
};
use crate::Slots;

type Handle = *mut c_void;
type Bytes = *mut c_void;

fn wanted(mode: c_int) -> Vectors {
    match mode {
        0 => Vectors::None,
        1 => Vectors::Wanted,
        other => panic!("cusolverEigMode_t {other}"),
    }
}

/// # Safety
/// Operands on the device.
unsafe fn eigh<T: Number>(
    mode: c_int,
    fill: Uplo,
    batch: usize,
    n: usize,
    a: *mut T,
    w: *mut T::Real,
    info: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (a, w, info) = (place(at(a, batch * n * n)), at(w, batch * n), at(info, batch));
        lapax_cpu::eigh::syevd(wanted(mode), fill, batch, n, a, w, info, &Serial)
            .expect("right sizes");
    }
}

unsafe extern "C" fn syevd_sizes(
    _: Handle,
    _: Handle,
    _: c_int,
    _: c_int,
    n: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    _: *const c_void,
    _: Code,
    device: *mut usize,
    host: *mut usize,
) -> c_uint {
    assert!(lda >= n.max(1));
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn syevd(
    handle: Handle,
    parameters: Handle,
    mode: c_int,
    fill: c_int,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    w_code: Code,
    w: Bytes,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
) -> c_uint {
    // SAFETY: the library's contract.
    unsafe {
        syev_batched(
            handle,
            parameters,
            mode,
            fill,
            n,
            code,
            a,
            lda,
            w_code,
            w,
            compute,
            device,
            device_bytes,
            host,
            host_bytes,
            info,
            1,
        )
    }
}

unsafe extern "C" fn syev_batched_sizes(
    _: Handle,
    _: Handle,
    _: c_int,
    _: c_int,
    n: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    _: *const c_void,
    _: Code,
    device: *mut usize,
    host: *mut usize,
    batch: i64,
) -> c_uint {
    assert!(lda >= n.max(1) && batch > 0);
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn syev_batched(
    handle: Handle,
    _: Handle,
    mode: c_int,
    fill: c_int,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    w_code: Code,
    w: Bytes,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
    batch: i64,
) -> c_uint {
    assert!(lda == n && compute == code && w_code == code % 4);
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil(device, device_bytes, host, host_bytes);
        with_type!(code, T => {
            eigh::<T>(mode, uplo(fill), size(batch), size(n), a.cast(), w.cast(), info);
        });
    }
    0
}

unsafe extern "C" fn syevj_size<T: Number>(
    _: Handle,
    _: c_int,
    _: c_int,
    n: c_int,
    _: *const T,
    lda: c_int,
    _: *const T::Real,
    elements: *mut c_int,
    settings: Handle,
) -> c_uint {
    assert!(lda >= n && !settings.is_null());
    // SAFETY: the library's contract.
    unsafe { answer_elements(elements) }
}

unsafe extern "C" fn syevj<T: Number>(
    handle: Handle,
    mode: c_int,
    fill: c_int,
    n: c_int,
    a: *mut T,
    lda: c_int,
    w: *mut T::Real,
    work: *mut T,
    elements: c_int,
    info: *mut c_int,
    settings: Handle,
) -> c_uint {
    // SAFETY: the library's contract.
    unsafe { syevj_batched(handle, mode, fill, n, a, lda, w, work, elements, info, settings, 1) }
}

unsafe extern "C" fn syevj_batched_size<T: Number>(
    _: Handle,
    _: c_int,
    _: c_int,
    n: c_int,
    _: *const T,
    lda: c_int,
    _: *const T::Real,
    elements: *mut c_int,
    settings: Handle,
    batch: c_int,
) -> c_uint {
    assert!(lda >= n && !settings.is_null() && batch > 0);
    // SAFETY: the library's contract.
    unsafe { answer_elements(elements) }
}

unsafe extern "C" fn syevj_batched<T: Number>(
    handle: Handle,
    mode: c_int,
    fill: c_int,
    n: c_int,
    a: *mut T,
    lda: c_int,
    w: *mut T::Real,
    work: *mut T,
    elements: c_int,
    info: *mut c_int,
    settings: Handle,
    batch: c_int,
) -> c_uint {
    assert!(lda == n && !settings.is_null());
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil_elements(work, elements);
        eigh::<T>(mode, uplo(fill), size(batch), size(n), a, w, info);
    }
    0
}

/// Where the vectors of a decomposition go.
enum Right<T> {
    /// V, with so many columns.
    Plain(*mut T, usize),
    /// Vᴴ, with so many rows.
    Adjoint(*mut T, usize),
}

/// # Safety
/// Operands on the device.
unsafe fn svd<T: Number>(
    job: SingularVectors,
    (m, n): (usize, usize),
    a: *mut T,
    s: *mut T::Real,
    u: *mut T,
    right: Right<T>,
    info: *mut c_int,
) {
    let k = m.min(n);
    let (u_columns, v_columns) = if job == SingularVectors::All { (m, n) } else { (k, k) };
    let none = job == SingularVectors::None;
    let mut left = vec![T::ZERO; if none { 0 } else { m * u_columns }];
    let mut vt = vec![T::ZERO; if none { 0 } else { v_columns * n }];
    // SAFETY: the caller's promise.
    unsafe {
        let (a, s, info) = (place(at(a, m * n)), at(s, k), at(info, 1));
        let results = Svd { s, u: &mut left, vt: &mut vt, info };
        lapax_cpu::svd::gesdd(job, 1, m, n, a, results, &Serial).expect("right sizes");
        if none {
            return;
        }
        at(u, left.len()).copy_from_slice(&left);
        match right {
            Right::Adjoint(to, rows) => {
                assert_eq!(rows, v_columns);
                at(to, vt.len()).copy_from_slice(&vt);
            }
            Right::Plain(to, columns) => {
                assert_eq!(columns, v_columns);
                for (at, x) in at(to, vt.len()).iter_mut().enumerate() {
                    *x = vt[at / n + at % n * columns].conj();
                }
            }
        }
    }
}

fn job(mode: c_int, thin: c_int) -> SingularVectors {
    match (wanted(mode), thin) {
        (Vectors::None, _) => SingularVectors::None,
        (Vectors::Wanted, 0) => SingularVectors::All,
        (Vectors::Wanted, _) => SingularVectors::Thin,
    }
}

unsafe extern "C" fn gesvdj_size<T: Number>(
    _: Handle,
    _: c_int,
    _: c_int,
    m: c_int,
    n: c_int,
    _: *const T,
    lda: c_int,
    _: *const T::Real,
    _: *const T,
    ldu: c_int,
    _: *const T,
    ldv: c_int,
    elements: *mut c_int,
    settings: Handle,
) -> c_uint {
    assert!(lda >= m && ldu >= m && ldv >= n && !settings.is_null());
    // SAFETY: the library's contract.
    unsafe { answer_elements(elements) }
}

unsafe extern "C" fn gesvdj<T: Number>(
    handle: Handle,
    mode: c_int,
    thin: c_int,
    m: c_int,
    n: c_int,
    a: *mut T,
    lda: c_int,
    s: *mut T::Real,
    u: *mut T,
    ldu: c_int,
    v: *mut T,
    ldv: c_int,
    work: *mut T,
    elements: c_int,
    info: *mut c_int,
    settings: Handle,
) -> c_uint {
    assert!(lda == m && ldu == m && ldv == n && !settings.is_null());
    let (m, n) = (size(m), size(n));
    let columns = if thin == 0 { n } else { m.min(n) };
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil_elements(work, elements);
        svd(job(mode, thin), (m, n), a, s, u, Right::Plain(v, columns), info);
    }
    0
}

unsafe extern "C" fn gesvdp_sizes(
    _: Handle,
    _: Handle,
    _: c_int,
    _: c_int,
    m: i64,
    n: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    _: *const c_void,
    _: Code,
    _: *const c_void,
    ldu: i64,
    _: Code,
    _: *const c_void,
    ldv: i64,
    _: Code,
    device: *mut usize,
    host: *mut usize,
) -> c_uint {
    assert!(lda >= m && ldu >= m && ldv >= n);
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn gesvdp(
    handle: Handle,
    _: Handle,
    mode: c_int,
    thin: c_int,
    m: i64,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    s_code: Code,
    s: Bytes,
    u_code: Code,
    u: Bytes,
    ldu: i64,
    v_code: Code,
    v: Bytes,
    ldv: i64,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
    perturbation: *mut f64,
) -> c_uint {
    assert!(lda == m && ldu == m && ldv == n && s_code == code % 4);
    assert!([u_code, v_code, compute] == [code; 3]);
    let (m, n) = (size(m), size(n));
    let columns = if thin == 0 { n } else { m.min(n) };
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil(device, device_bytes, host, host_bytes);
        *perturbation = 0.0;
        with_type!(code, T => {
            let right = Right::Plain(v.cast::<T>(), columns);
            svd::<T>(job(mode, thin), (m, n), a.cast(), s.cast(), u.cast(), right, info);
        });
    }
    0
}

unsafe extern "C" fn gesvd_sizes(
    _: Handle,
    _: Handle,
    _: c_char,
    _: c_char,
    m: i64,
    n: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    _: *const c_void,
    _: Code,
    _: *const c_void,
    ldu: i64,
    _: Code,
    _: *const c_void,
    ldvt: i64,
    _: Code,
    device: *mut usize,
    host: *mut usize,
) -> c_uint {
    assert!(m >= n && lda >= m && ldu >= m && ldvt >= n);
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn gesvd(
    handle: Handle,
    _: Handle,
    job_u: c_char,
    job_vt: c_char,
    m: i64,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    s_code: Code,
    s: Bytes,
    u_code: Code,
    u: Bytes,
    ldu: i64,
    vt_code: Code,
    vt: Bytes,
    ldvt: i64,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
) -> c_uint {
    assert!(m >= n && lda == m && ldu == m && ldvt == n && s_code == code % 4);
    assert!([u_code, vt_code, compute] == [code; 3] && job_u == job_vt);
    let (m, n) = (size(m), size(n));
    let job = SingularVectors::try_from(job_u.to_ne_bytes()[0]).expect("A, S or N");
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil(device, device_bytes, host, host_bytes);
        with_type!(code, T => {
            let right = Right::Adjoint(vt.cast::<T>(), n);
            svd::<T>(job, (m, n), a.cast(), s.cast(), u.cast(), right, info);
        });
    }
    0
}

unsafe extern "C" fn geev_sizes(
    _: Handle,
    _: Handle,
    left: c_int,
    _: c_int,
    n: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    _: *const c_void,
    _: Code,
    _: *const c_void,
    _: i64,
    _: Code,
    _: *const c_void,
    ldvr: i64,
    _: Code,
    device: *mut usize,
    host: *mut usize,
) -> c_uint {
    assert!(left == 0 && lda >= n.max(1) && ldvr >= n);
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn geev(
    handle: Handle,
    _: Handle,
    left: c_int,
    right: c_int,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    w_code: Code,
    w: Bytes,
    _: Code,
    _: Bytes,
    _: i64,
    right_code: Code,
    vr: Bytes,
    ldvr: i64,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
) -> c_uint {
    assert!(left == 0 && lda == n && ldvr == n && w_code == code % 4 + 4);
    assert!([right_code, compute] == [code; 2]);
    let n = size(n);
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil(device, device_bytes, host, host_bytes);
        match code {
            0 => real_geev::<f32>(wanted(right), n, a.cast(), w.cast(), vr.cast(), info),
            1 => real_geev::<f64>(wanted(right), n, a.cast(), w.cast(), vr.cast(), info),
            _ => with_type!(code, T => {
                type C = <T as lapax_core::Scalar>::Complex;
                let w = Eigenvalues::Whole(at(w.cast::<T>(), n));
                let mut left: Vec<C> = vec![Default::default(); n * n];
                let (right_vectors, info) = (at(vr.cast::<C>(), n * n), at(info, 1));
                let results = Eigen { w, left: &mut left, right: right_vectors, info };
                let a = at(a.cast::<T>(), n * n);
                lapax_cpu::eig::geev(Vectors::None, wanted(right), 1, n, a, results, &Serial)
                    .expect("right sizes");
            }),
        }
    }
    0
}

/// A real matrix, the vectors of a conjugate pair packed into two columns.
///
/// # Safety
/// Operands on the device.
unsafe fn real_geev<T: Number>(
    right: Vectors,
    n: usize,
    a: *mut T,
    w: *mut T::Complex,
    vr: *mut T,
    info: *mut c_int,
) {
    let (mut wr, mut wi) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    let mut left = vec![T::Complex::ZERO; n * n];
    let mut vectors = vec![T::Complex::ZERO; n * n];
    // SAFETY: the caller's promise.
    unsafe {
        let (a, info) = (at(a, n * n), at(info, 1));
        let parts = Eigenvalues::Parts(&mut wr, &mut wi);
        let results = Eigen { w: parts, left: &mut left, right: &mut vectors, info };
        lapax_cpu::eig::geev(Vectors::None, right, 1, n, a, results, &Serial).expect("right sizes");
        for (to, (re, im)) in at(w, n).iter_mut().zip(wr.iter().zip(&wi)) {
            *to = T::Complex::from_parts(re.re(), im.re());
        }
        if right == Vectors::None {
            return;
        }
        for (j, column) in at(vr, n * n).chunks_exact_mut(n.max(1)).enumerate() {
            let second = wi[j].re() < T::ZERO.re();
            let source = &vectors[(j - usize::from(second)) * n..][..n];
            for (to, from) in column.iter_mut().zip(source) {
                *to = T::from_real(if second { from.im() } else { from.re() });
            }
        }
    }
}

pub(crate) fn list(slots: &mut Slots) {
    slots.extend([
        ("cusolverDnXsyevd_bufferSize", syevd_sizes as *const c_void),
        ("cusolverDnXsyevd", syevd as *const c_void),
        ("cusolverDnXsyevBatched_bufferSize", syev_batched_sizes as *const c_void),
        ("cusolverDnXsyevBatched", syev_batched as *const c_void),
        ("cusolverDnXgesvdp_bufferSize", gesvdp_sizes as *const c_void),
        ("cusolverDnXgesvdp", gesvdp as *const c_void),
        ("cusolverDnXgesvd_bufferSize", gesvd_sizes as *const c_void),
        ("cusolverDnXgesvd", gesvd as *const c_void),
        ("cusolverDnXgeev_bufferSize", geev_sizes as *const c_void),
        ("cusolverDnXgeev", geev as *const c_void),
    ]);
    four!(slots, syevj_size: "cusolverDnSsyevj_bufferSize" "cusolverDnDsyevj_bufferSize"
        "cusolverDnCheevj_bufferSize" "cusolverDnZheevj_bufferSize");
    four!(slots, syevj: "cusolverDnSsyevj" "cusolverDnDsyevj" "cusolverDnCheevj" "cusolverDnZheevj");
    four!(slots, syevj_batched_size: "cusolverDnSsyevjBatched_bufferSize"
        "cusolverDnDsyevjBatched_bufferSize" "cusolverDnCheevjBatched_bufferSize"
        "cusolverDnZheevjBatched_bufferSize");
    four!(slots, syevj_batched: "cusolverDnSsyevjBatched" "cusolverDnDsyevjBatched"
        "cusolverDnCheevjBatched" "cusolverDnZheevjBatched");
    four!(slots, gesvdj_size: "cusolverDnSgesvdj_bufferSize" "cusolverDnDgesvdj_bufferSize"
        "cusolverDnCgesvdj_bufferSize" "cusolverDnZgesvdj_bufferSize");
    four!(slots, gesvdj: "cusolverDnSgesvdj" "cusolverDnDgesvdj" "cusolverDnCgesvdj"
        "cusolverDnZgesvdj");
}
