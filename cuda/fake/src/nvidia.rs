//! cuSOLVER, cuBLAS and cuSPARSE on lapax's CPU code: what `symbols/` lists of them.
//!
//! Arguments are checked as the real libraries check them and more: leading dimensions, workspaces,
//! that a stream was set. A workspace is overwritten, so that one that is too small is found.
#![allow(clippy::too_many_arguments, reason = "NVIDIA's functions")]

pub(crate) mod dense;
pub(crate) mod eigen;
pub(crate) mod handles;
pub(crate) mod orthogonal;
pub(crate) mod sparse;

use std::ffi::{c_int, c_uint, c_void};

use lapax_core::Uplo;
use lapax_cpu::Scalar;

/// A scalar that everything here is for.
pub(crate) trait Number: Scalar<Real: Scalar> {}

impl<T: Scalar<Real: Scalar>> Number for T {}

/// cudaDataType.
pub(crate) type Code = c_int;

/// Runs a body with `T` the type of a code.
macro_rules! with_type {
    ($code:expr, $t:ident => $body:expr) => {
        match $code {
            0 => {
                type $t = f32;
                $body
            }
            1 => {
                type $t = f64;
                $body
            }
            4 => {
                type $t = num_complex::Complex<f32>;
                $body
            }
            5 => {
                type $t = num_complex::Complex<f64>;
                $body
            }
            other => panic!("cudaDataType {other}"),
        }
    };
}
pub(crate) use with_type;

/// Bytes that every function asks for, on the device and on the host.
pub(crate) const WORKSPACE: (usize, usize) = (160, 48);
/// Elements that 32-bit functions ask for.
pub(crate) const ELEMENTS: c_int = 7;

pub(crate) fn size<I: TryInto<usize>>(value: I) -> usize {
    value.try_into().ok().expect("a size is not negative")
}

/// Elements of the device.
///
/// # Safety
/// So many are there, and nobody else uses them for `'a`.
pub(crate) unsafe fn at<'a, T>(pointer: *mut T, count: usize) -> &'a mut [T] {
    if count == 0 {
        return &mut [];
    }
    assert!(!pointer.is_null() && pointer.is_aligned(), "an operand is null or not aligned");
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(pointer, count) }
}

/// Overwrites workspaces of the sizes that were asked for.
///
/// # Safety
/// They are as large as they say.
pub(crate) unsafe fn spoil(
    device: *mut c_void,
    bytes: usize,
    host: *mut c_void,
    host_bytes: usize,
) {
    assert!(bytes >= WORKSPACE.0 && host_bytes >= WORKSPACE.1, "workspaces as asked for");
    // SAFETY: the caller's promise.
    unsafe {
        at(device.cast::<u8>(), bytes).fill(0xee);
        at(host.cast::<u8>(), host_bytes).fill(0xee);
    }
}

/// Overwrites a workspace of elements.
///
/// # Safety
/// It has so many.
pub(crate) unsafe fn spoil_elements<T: Number>(work: *mut T, elements: c_int) {
    assert!(elements >= ELEMENTS, "a workspace as asked for");
    // SAFETY: the caller's promise.
    unsafe { at(work, size(elements)).fill(T::from_real(T::Real::MAX)) };
}

use lapax_core::Real as _;

/// Answers a question for workspaces.
///
/// # Safety
/// Both addresses are of sizes.
pub(crate) unsafe fn answer_sizes(device: *mut usize, host: *mut usize) -> c_uint {
    // SAFETY: the caller's promise.
    unsafe { (*device, *host) = WORKSPACE };
    0
}

/// Answers a question for a workspace of elements.
///
/// # Safety
/// An address of an integer.
pub(crate) unsafe fn answer_elements(elements: *mut c_int) -> c_uint {
    // SAFETY: the caller's promise.
    unsafe { *elements = ELEMENTS };
    0
}

pub(crate) fn uplo(code: c_int) -> Uplo {
    match code {
        0 => Uplo::Lower,
        1 => Uplo::Upper,
        other => panic!("cublasFillMode_t {other}"),
    }
}

/// In place.
pub(crate) fn place<T>(data: &mut [T]) -> lapax_core::InOut<'_, T> {
    lapax_core::InOut { src: None, dst: data }
}

/// Functions of the four types, in the order S, D, C, Z.
macro_rules! four {
    ($slots:ident, $function:ident: $($name:literal)+) => {
        for (name, function) in [$($name),+].into_iter().zip([
            $function::<f32> as *const std::ffi::c_void,
            $function::<f64> as *const std::ffi::c_void,
            $function::<num_complex::Complex<f32>> as *const std::ffi::c_void,
            $function::<num_complex::Complex<f64>> as *const std::ffi::c_void,
        ]) {
            $slots.insert(name, function);
        }
    };
}
pub(crate) use four;

/// All functions.
pub(crate) fn functions() -> crate::Slots {
    let mut slots = crate::Slots::new();
    handles::list(&mut slots);
    dense::list(&mut slots);
    orthogonal::list(&mut slots);
    eigen::list(&mut slots);
    sparse::list(&mut slots);
    slots
}
