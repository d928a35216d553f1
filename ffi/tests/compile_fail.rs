//! What C++ asserts at compile time is a compile error here, in words that say what to do: each file
//! in compile_fail, with the compiler's output beside it.
//!
//! The output is that of one compiler; with others it is not compared, which is printed.
//! `TRYBUILD=overwrite cargo test -p xla-ffi --test compile_fail` writes it.

/// The compiler whose output is stored.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn misuse_does_not_compile() {
    let rustc = std::process::Command::new("rustc").arg("--version").output();
    let version = rustc.map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
    let version = version.unwrap_or_default();
    if !version.starts_with(COMPILER) {
        println!(
            "skipped: misuse_does_not_compile: the stored output is of {COMPILER}x, this is {version}"
        );
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
