//! Targets on CUDA are called on a fake device: its memory is the process's own, so calls, operands
//! and expectations are those of the CPU. Here is what their signatures do not say.

use std::sync::LazyLock;

use lapax::{Platform, Target, targets};
use xla_ffi::fake::{Attr, Call, Host};
use xla_ffi::sys::XLA_FFI_Handler;

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
