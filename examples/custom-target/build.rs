//! Compiles the kernels, where there is an nvcc: LAPAX_NVCC, or on the path.
#![allow(clippy::expect_used, reason = "a build script fails where it stands, with its message")]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rustc-check-cfg=cfg(kernels)");
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-env-changed=LAPAX_NVCC");
    let named = env::var_os("LAPAX_NVCC").filter(|path| !path.is_empty());
    let nvcc = named.clone().unwrap_or_else(|| "nvcc".into());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    // PTX, which the driver compiles for the GPU that it finds.
    let done = Command::new(nvcc)
        .args(["-O3", "--fatbin", "-gencode=arch=compute_75,code=compute_75"])
        .args(["-Werror", "all-warnings", "kernels/rms_norm.cu", "-o"])
        .arg(Path::new(&out).join("rms_norm.fatbin"))
        .status();
    if done.is_ok_and(|status| status.success()) {
        println!("cargo:rustc-cfg=kernels");
        return;
    }
    assert!(named.is_none(), "the nvcc that LAPAX_NVCC names does not compile the kernels");
    println!("cargo:warning=no nvcc that works was found: custom-target is for the CPU alone");
}
