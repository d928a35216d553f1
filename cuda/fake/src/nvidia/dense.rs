//! Factorisations and products.

use std::ffi::{c_int, c_uint, c_void};

use lapax_core::Serial;

use super::handles::checked;
use super::{Code, Number, answer_sizes, at, four, place, size, spoil, uplo, with_type};
use crate::Slots;

type Handle = *mut c_void;
type Bytes = *mut c_void;

unsafe extern "C" fn getrf_sizes(
    _: Handle,
    _: Handle,
    m: i64,
    n: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    device: *mut usize,
    host: *mut usize,
) -> c_uint {
    assert!(lda >= m.max(1) && n >= 0);
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn getrf(
    handle: Handle,
    _: Handle,
    m: i64,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    ipiv: *mut i64,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
) -> c_uint {
    assert!(lda == m && compute == code);
    let (m, n) = (size(m), size(n));
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil(device, device_bytes, host, host_bytes);
        with_type!(code, T => {
            let mut narrow = vec![0; m.min(n)];
            let a = place(at(a.cast::<T>(), m * n));
            let info = at(info, 1);
            lapax_cpu::lu::getrf(1, m, n, a, &mut narrow, info, &Serial).expect("right sizes");
            at(ipiv, m.min(n)).iter_mut().zip(narrow).for_each(|(to, from)| *to = from.into());
        });
    }
    0
}

unsafe extern "C" fn potrf_sizes(
    _: Handle,
    _: Handle,
    _: c_int,
    n: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    device: *mut usize,
    host: *mut usize,
) -> c_uint {
    assert!(lda >= n.max(1));
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn potrf(
    handle: Handle,
    _: Handle,
    fill: c_int,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
) -> c_uint {
    assert!(lda == n && compute == code);
    let n = size(n);
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil(device, device_bytes, host, host_bytes);
        with_type!(code, T => {
            let a = place(at(a.cast::<T>(), n * n));
            let info = at(info, 1);
            lapax_cpu::cholesky::potrf(uplo(fill), 1, n, a, info, &Serial).expect("right sizes");
        });
    }
    0
}

unsafe extern "C" fn syrk<T: Number>(
    handle: Handle,
    fill: c_int,
    operation: c_int,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *mut T,
    lda: i64,
    beta: *const T,
    c: *mut T,
    ldc: i64,
) -> c_uint {
    let (n, k, lda) = (size(n), size(k), size(lda));
    assert!(size(ldc) == n && lda >= if operation == 0 { n } else { k });
    // SAFETY: the library's contract.
    unsafe {
        assert!(checked(handle).scalars_on_device, "the numbers are on the device");
        let (alpha, beta) = (*alpha, *beta);
        let a = at(a, lda * if operation == 0 { k } else { n });
        let c = at(c, n * n);
        let element =
            |i: usize, l: usize| if operation == 0 { a[i + l * lda] } else { a[l + i * lda] };
        for j in 0..n {
            for i in 0..n {
                let wanted = if fill == 0 { i >= j } else { i <= j };
                if wanted {
                    let sum = (0..k).fold(T::ZERO, |sum, l| sum + element(i, l) * element(j, l));
                    let before = if beta == T::ZERO { T::ZERO } else { beta * c[i + j * n] };
                    c[i + j * n] = alpha * sum + before;
                }
            }
        }
    }
    0
}

unsafe extern "C" fn gemm<T: Number>(
    handle: Handle,
    of_a: c_int,
    of_b: c_int,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *mut T,
    lda: i64,
    b: *mut T,
    ldb: i64,
    beta: *const T,
    c: *mut T,
    ldc: i64,
) -> c_uint {
    assert!((of_a, of_b) == (0, 0) && lda >= m.max(1) && ldb >= k.max(1) && ldc >= m.max(1));
    let (m, n, k, lda, ldb, ldc) = (size(m), size(n), size(k), size(lda), size(ldb), size(ldc));
    // SAFETY: the library's contract.
    unsafe {
        assert!(!checked(handle).scalars_on_device, "the numbers are on the host");
        let (alpha, beta) = (*alpha, *beta);
        for j in 0..n {
            for i in 0..m {
                let sum =
                    (0..k).fold(T::ZERO, |sum, l| sum + *a.add(i + l * lda) * *b.add(l + j * ldb));
                let place = c.add(i + j * ldc);
                let before = if beta == T::ZERO { T::ZERO } else { beta * *place };
                *place = alpha * sum + before;
            }
        }
    }
    0
}

pub(crate) fn list(slots: &mut Slots) {
    slots.extend([
        ("cusolverDnXgetrf_bufferSize", getrf_sizes as *const c_void),
        ("cusolverDnXgetrf", getrf as *const c_void),
        ("cusolverDnXpotrf_bufferSize", potrf_sizes as *const c_void),
        ("cusolverDnXpotrf", potrf as *const c_void),
    ]);
    four!(slots, syrk: "cublasSsyrk_v2_64" "cublasDsyrk_v2_64" "cublasCsyrk_v2_64" "cublasZsyrk_v2_64");
    four!(slots, gemm: "cublasSgemm_v2_64" "cublasDgemm_v2_64" "cublasCgemm_v2_64" "cublasZgemm_v2_64");
}
