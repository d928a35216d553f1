//! Targets on CUDA are called on a fake device: its memory is the process's own, so calls, operands
//! and expectations are those of the CPU. Here is what their signatures do not say.

use std::sync::{Arc, LazyLock, Mutex};

use lapax::{Callback, Platform, Target, targets};
use lapax_cuda_fake::driver;
use xla_ffi::ErrorCode;
use xla_ffi::fake::{Attr, Call, Host, end_program};
use xla_ffi::sys::{XLA_FFI_ExecutionStage_INSTANTIATE, XLA_FFI_Handler};

/// Targets whose operands must be more than of the right shape, and are called below.
const BY_HAND: &[&str] = &["cusolver_csrlsvqr_ffi"];

/// Whether a target can be called here with what is made from its signature.
pub(crate) fn callable(target: &Target) -> bool {
    target.platform == Platform::Cpu || present() && !BY_HAND.contains(&target.name)
}

/// Whether targets on CUDA can be called here; where not, the reason is printed once.
fn present() -> bool {
    static PRESENT: LazyLock<bool> = LazyLock::new(|| {
        let ready = if lapax::exports::lapax_cuda_kernels() > 0 {
            lapax_cuda_fake::install()
        } else {
            Err("this build has no CUDA kernels (no nvcc)".to_owned())
        };
        if let Err(reason) = &ready {
            println!("targets on CUDA are not called: {reason}");
        }
        ready.is_ok()
    });
    *PRESENT
}

fn handler(name: &str) -> XLA_FFI_Handler {
    let on_cuda = |target: &Target| target.name == name && target.platform == Platform::Cuda;
    targets().find(|(_, target)| on_cuda(target)).unwrap().1.handler
}

/// 2 0 1
/// 0 3 0
/// 4 0 5
const DATA: [f64; 5] = [2.0, 1.0, 3.0, 4.0, 5.0];
const INDICES: [i32; 5] = [0, 2, 1, 0, 2];
const INDPTR: [i32; 4] = [0, 2, 3, 5];

fn solve(data: &[f64; 5], reorder: i32, x: &mut [f64; 3]) -> Result<(), String> {
    let b = [5.0, 6.0, 19.0];
    let call = Call::new().arg(&[5], data).arg(&[5], &INDICES).arg(&[4], &INDPTR).arg(&[3], &b);
    let call = call.ret(&[3], x).attr("reorder", Attr::I32(reorder)).attr("tol", Attr::F64(1e-12));
    let outcome = Host::new().execute(handler(BY_HAND[0]), &call);
    outcome.map_err(|failure| failure.message)
}

#[test]
fn csrlsvqr_solves_or_says_that_the_matrix_is_singular() {
    if !present() {
        return;
    }
    let mut x = [0.0; 3];
    assert_eq!(solve(&DATA, 1, &mut x), Ok(()));
    let expected = [1.0, 2.0, 3.0];
    assert!(x.iter().zip(expected).all(|(x, expected)| (x - expected).abs() < 1e-14), "{x:?}");
    let refused = solve(&[2.0, 1.0, 0.0, 4.0, 5.0], 1, &mut x).unwrap_err();
    assert!(refused.contains("the matrix is singular"), "{refused}");
    let refused = solve(&DATA, 4, &mut x).unwrap_err();
    assert!(refused.contains("reorder to be 0, 1, 2 or 3, got reorder=i32 4"), "{refused}");
}

/// jaxlib's form of a call for singular values alone: U and Vᴴ are one number each.
#[test]
fn gesvd_gives_values_alone() {
    if !present() {
        return;
    }
    // diag(3, 2) above a row of zeros, twice; column-major.
    let a = [3.0, 0.0, 0.0, 0.0, 2.0, 0.0].repeat(2);
    for transposed in [false, true] {
        let (mut scratch, mut s, mut info) = ([0.0; 12], [0.0; 4], [-1; 2]);
        let (mut u, mut vt) = ([7.0], [7.0]);
        let dims: [i64; 3] = if transposed { [2, 2, 3] } else { [2, 3, 2] };
        let call = Call::new()
            .arg(&dims, &a)
            .ret(&dims, &mut scratch)
            .ret(&[2, 2], &mut s)
            .ret(&[], &mut u)
            .ret(&[], &mut vt)
            .ret(&[2], &mut info)
            .attr("compute_uv", Attr::Bool(false))
            .attr("full_matrices", Attr::Bool(true))
            .attr("transposed", Attr::Bool(transposed));
        assert_eq!(Host::new().execute(handler("cusolver_gesvd_ffi"), &call), Ok(()));
        drop(call);
        assert_eq!(info, [0, 0]);
        let expected = [3.0, 2.0, 3.0, 2.0];
        assert!(s.iter().zip(expected).all(|(s, it): (&f64, f64)| (s - it).abs() < 1e-14), "{s:?}");
    }
}

/// jaxlib's form of a call of cuSPARSE: sizes in `opaque`, as bytes that are no text, and a workspace.
#[test]
fn sparse_matrices_as_jaxlib_passes_them() {
    if !present() {
        return;
    }
    let data: Vec<f32> = (1_u8..=200).map(f32::from).collect();
    let diagonal: Vec<i32> = (0..200).collect();
    let indptr: Vec<i32> = (0..=200).collect();
    let x = vec![2.0_f32; 200];
    // Of the matrix: CUDA_R_32F, 32-bit indices, rows, columns, entries, batch, stride.
    let matrix = [0, 2, 200, 200, 200, 1, 0];
    let product = |operation: i32| [&matrix[..], &[0, 200, 0, 200, operation]].concat();
    let run = |name: &str, fields: &[i32], outer: &[i32], y: &mut [f32]| {
        let mut workspace = [0_i8; 3];
        let bytes = fields.iter().flat_map(|field| field.to_ne_bytes()).collect();
        let call = Call::new().arg(&[200], &data);
        let call = if name.contains("csr") {
            call.arg(&[200], &diagonal).arg(&[201], outer)
        } else {
            call.arg(&[200], outer).arg(&[200], &diagonal)
        };
        let call = if name.contains("matvec") {
            call.arg(&[200], &x).ret(&[200], y)
        } else {
            call.ret(&[200, 200], y)
        };
        let call = call.ret(&[3], &mut workspace).attr("opaque", Attr::Bytes(bytes));
        Host::new().execute(handler(name), &call).map_err(|failure| failure.message)
    };
    for (form, outer) in [("csr", &indptr), ("coo", &diagonal)] {
        let matvec = format!("cusparse_{form}_matvec_ffi");
        for operation in [0, 1] {
            let mut y = vec![0.0; 200];
            assert_eq!(run(&matvec, &product(operation), outer, &mut y), Ok(()));
            assert!(y.iter().zip(&data).all(|(y, a)| *y == 2.0 * a), "{form}");
        }
        let mut dense = vec![1.0; 200 * 200];
        let todense = format!("cusparse_{form}_todense_ffi");
        assert_eq!(run(&todense, &matrix, outer, &mut dense), Ok(()));
        let expected = |at: usize| if at.is_multiple_of(201) { data[at / 201] } else { 0.0 };
        assert!(dense.iter().enumerate().all(|(at, got)| *got == expected(at)), "{form}");

        let mut y = vec![0.0; 200];
        let wrong: [(&[i32], &str); 4] = [
            (&matrix, "48 bytes, got 28"),
            (&product(2), "operation 0 (A) or 1 (Aᵀ), got 2"),
            (&[&[0, 2, 7][..], &product(0)[3..]].concat(), "rows = 200, as the operands, got 7"),
            (&[&matrix[..5], &[4], &product(0)[6..]].concat(), "batch = 1, as the operands, got 4"),
        ];
        for (fields, expected) in wrong {
            let refused = run(&matvec, fields, outer, &mut y).unwrap_err();
            let expected = format!("{matvec}: attribute `opaque`: expected {expected}");
            assert_eq!(refused, expected);
        }
    }
}

/// A callback on a device: copies in memory of the host, results copied back, its errors the call's.
#[test]
fn a_callback_gets_copies_of_what_is_on_the_device() {
    if !present() {
        return;
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let callback = Callback::new({
        let seen = Arc::clone(&seen);
        move |args, rets| {
            let x = args[0].as_slice::<f32>().unwrap();
            seen.lock().unwrap().push((args[0].as_ptr().addr(), args[1].dims().to_vec()));
            if x[0] < 0.0 {
                return Err(xla_ffi::Error::invalid_argument("negative"));
            }
            let doubled = x.iter().map(|x| 2.0 * x);
            rets[0].as_mut_slice().unwrap().iter_mut().zip(doubled).for_each(|(y, x)| *y = x);
            rets[1].as_mut_slice::<i64>().unwrap()[0] = 7;
            Ok(())
        }
    });
    let host = Host::new();
    let number = || Attr::I64(callback.number());
    let made = Call::new().stage(XLA_FFI_ExecutionStage_INSTANTIATE).attr("callback", number());
    assert_eq!(host.execute(Some(lapax::callback::instantiate), &made), Ok(()));
    let run = |x: &[f32], y: &mut [f32], count: &mut [i64; 1]| {
        let n = i64::try_from(x.len()).unwrap();
        let call = Call::new().arg(&[n], x).arg(&[0, 2], &[0.0_f64; 0]).ret(&[n], y);
        let call = call.ret(&[], count).attr("callback", number());
        host.execute(Callback::execute_stage(Platform::Cuda), &call)
    };
    let (x, mut y, mut count) = ([1.0, 2.0, 3.0], [0.0; 3], [0]);
    for _ in 0..2 {
        assert_eq!(run(&x, &mut y, &mut count), Ok(()));
        assert_eq!((y, count), ([2.0, 4.0, 6.0], [7]));
        (y, count) = ([0.0; 3], [0]);
    }
    let refused = run(&[-1.0], &mut y[..1], &mut count).unwrap_err();
    assert_eq!(refused.message, "lapax_host_callback: negative");
    assert_eq!((y, count), ([0.0; 3], [0]), "nothing is copied back");
    {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|(at, dims)| *at != x.as_ptr().addr() && *dims == [0, 2]));
    }
    // Copies of both are more than the host has.
    let long = driver::PAGE_LOCKED / size_of::<f32>();
    let refused = run(&vec![1.0; long], &mut vec![0.0; long], &mut count).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ResourceExhausted as u32);
    assert!(refused.message.contains("bytes of page-locked memory"), "{}", refused.message);
    assert_eq!(run(&x, &mut y, &mut count), Ok(()));
    end_program();
}
