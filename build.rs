//! How the shared library is linked. Needs neither the network nor a toolkit.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblapax.so");
    }
    // What programs that link the library look for it by.
    if std::env::var("CARGO_CFG_TARGET_VENDOR").as_deref() == Ok("apple") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/liblapax.dylib");
        // libiconv and libcharset, which the crate libc asks for and nothing here uses.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-dead_strip_dylibs");
    }
    // Where NVIDIA's wheels lie beside the package, for CUDA 13 and for CUDA 12, seen from the library.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && std::env::var_os("CARGO_FEATURE_CUDA").is_some()
    {
        for folder in ["cu13", "cusolver", "cublas", "cusparse"] {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/../../nvidia/{folder}/lib");
        }
    }
    // Where the LAPACK library that the user named by its path is found at run time.
    println!("cargo:rerun-if-env-changed=DEP_LAPAX_LAPACK_RPATH");
    let folders = std::env::var("DEP_LAPAX_LAPACK_RPATH").unwrap_or_default();
    let run_paths = std::env::var_os("CARGO_CFG_UNIX").is_some();
    for folder in folders.split(':').filter(|folder| run_paths && !folder.is_empty()) {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
