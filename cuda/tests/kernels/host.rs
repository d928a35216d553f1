//! The path on the host: what is loaded when, what a capture allows, and what failures become.

use lapax_core::Uplo;
use lapax_cuda::{Kind, cholesky, lu};
use lapax_cuda_fake::driver::{self, status};

use crate::device::{device, gpu, gpu_on, in_out, input, output, succeeds};

#[test]
fn kernels_without_scratch_run_while_a_stream_is_captured() {
    let Some(_device) = device() else { return };
    // What the initialize stage does.
    succeeds(lu::load_lu_pivots_to_permutation(&gpu()));
    succeeds(cholesky::load_cholesky_update::<f64>(&gpu()));
    driver::state().capturing = true;
    let mut permutation = [0; 4];
    let out = output(&mut permutation);
    let permuted = lu::lu_pivots_to_permutation(&gpu(), 1, 3, 4, input(&[1, 1, 3]), out);
    let (mut r, mut w) = ([3.0], [4.0]);
    let (a, b) = (in_out(None, &mut r), in_out(None, &mut w));
    let updated = cholesky::cholesky_update(&gpu(), 1, 1, a, b);
    // Not loaded, so that it would have to be now.
    let (mut s, mut v) = ([3.0_f32], [4.0_f32]);
    let late = cholesky::cholesky_update(&gpu(), 1, 1, in_out(None, &mut s), in_out(None, &mut v));
    driver::state().capturing = false;
    succeeds(permuted);
    succeeds(updated);
    assert_eq!((permutation, r, w), ([1, 0, 3, 2], [5.0], [0.0]));
    if let Err(error) = late {
        assert!(error.message().contains("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), "{error}");
    }
}

#[test]
fn failures_of_the_driver_have_their_names() {
    let Some(_device) = device() else { return };
    let mut permutation = [0; 2];
    let mut call = || {
        let out = output(&mut permutation);
        lu::lu_pivots_to_permutation(&gpu(), 1, 1, 2, input(&[1]), out)
    };
    succeeds(call());
    driver::state().failures.insert("cuLaunchKernel", status::OUT_OF_MEMORY);
    let error = call().unwrap_err();
    assert_eq!(error.kind(), Kind::ResourceExhausted);
    let text = "launching lu_pivots_warp: CUDA_ERROR_OUT_OF_MEMORY (as the test wants)";
    assert_eq!(error.message(), text);
    driver::state().failures.insert("cuLaunchKernel", status::LAUNCH_FAILED);
    assert_eq!(call().unwrap_err().kind(), Kind::Internal);
    succeeds(call());
}

#[test]
fn failures_of_a_library_say_what_they_mean() {
    let Some(_device) = device() else { return };
    const ALLOC_FAILED: u32 = 2;
    // A stream of its own, for which no handle is idle.
    let mut info = [0];
    let mut a: Vec<f64> = (0..150 * 150).map(|at| f64::from(u8::from(at % 151 == 0))).collect();
    let gpu = gpu_on(0x58_0000);
    driver::state().failures.insert("cusolverDnCreate", ALLOC_FAILED);
    let mut call =
        || cholesky::potrf(&gpu, Uplo::Lower, 1, 150, in_out(None, &mut a), output(&mut info));
    let error = call().unwrap_err();
    assert_eq!(error.kind(), Kind::ResourceExhausted);
    let start =
        "cusolverDnCreate of cuSOLVER: CUSOLVER_STATUS_ALLOC_FAILED: the GPU has no memory left";
    assert!(error.message().starts_with(start), "{error}");
    succeeds(call());
    assert_eq!(info, [0]);
}

#[test]
fn memory_of_the_host_is_kept_for_later_calls() {
    let Some(_device) = device() else { return };
    let place = |bytes| gpu().staging(bytes).map(|staging| staging.as_ptr().addr());
    let first = place(5000).unwrap();
    assert_eq!(place(8000).unwrap(), first);
    driver::state().failures.insert("cuMemAllocHost_v2", status::OUT_OF_MEMORY);
    let error = place(20_000).unwrap_err();
    assert_eq!(error.kind(), Kind::ResourceExhausted);
    assert!(error.message().contains("bytes of page-locked memory"), "{error}");
    assert_ne!(place(20_000).unwrap(), first);
}
