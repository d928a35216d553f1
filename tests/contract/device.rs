//! Targets on CUDA are called on a fake device: its memory is the process's own, so calls, operands
//! and expectations are those of the CPU.

use std::sync::LazyLock;

use lapax::{Platform, Target};

/// Whether a target can be called here; where those on CUDA cannot, the reason is printed once.
pub(crate) fn callable(target: &Target) -> bool {
    static DEVICE: LazyLock<bool> = LazyLock::new(|| {
        let ready = if lapax::exports::lapax_cuda_kernels() > 0 {
            lapax_cuda_fake::install(&lapax_cuda_fake::Slots::new())
        } else {
            Err("this build has no CUDA kernels (no nvcc)".to_owned())
        };
        if let Err(reason) = &ready {
            println!("targets on CUDA are not called: {reason}");
        }
        ready.is_ok()
    });
    target.platform == Platform::Cpu || *DEVICE
}
