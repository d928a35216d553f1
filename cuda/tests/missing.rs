//! Without a driver or a library, in a process that has none of the fakes: errors that say what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

use std::env;
use std::ffi::c_void;
use std::process::Command;

use lapax_cuda::{Error, Gpu, Kind, LIBRARIES, Lent, Memory, driver};

struct Nothing;

impl Memory for Nothing {
    fn lend(&self, bytes: usize) -> Result<Box<dyn Lent + '_>, Error> {
        Err(Error::new(Kind::ResourceExhausted, format!("no {bytes} bytes")))
    }
}

/// The loader's folders, among which cargo puts those of the fakes.
const FOLDERS: &str = "LD_LIBRARY_PATH";

/// Whether this process has none of the fakes; else the test has passed in one that has none.
fn without_fakes(test: &str) -> bool {
    if env::var_os(FOLDERS).is_none() {
        return true;
    }
    let mut alone = Command::new(env::current_exe().unwrap());
    let outcome = alone.args([test, "--exact"]).env_remove(FOLDERS).output().unwrap();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
    false
}

#[test]
fn a_missing_driver_is_an_error() {
    if !without_fakes("a_missing_driver_is_an_error") {
        return;
    }
    if driver::present().is_ok() {
        println!("skipped: there is a driver");
        return;
    }
    let stream: *mut c_void = std::ptr::without_provenance_mut(64);
    // SAFETY: without a driver, nothing follows the stream.
    let error = unsafe { Gpu::new(stream, &Nothing) }.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(
        error.message().starts_with("the NVIDIA driver's libcuda.so.1 was not found"),
        "{error}"
    );
}

#[test]
fn a_missing_library_is_an_error_that_names_its_package() {
    if !without_fakes("a_missing_library_is_an_error_that_names_its_package") {
        return;
    }
    for library in LIBRARIES {
        match library.file() {
            Ok(file) => println!("skipped: {} is {file:?}", library.name),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Unavailable);
                let text = error.message();
                assert!(text.starts_with(&format!("{} was not found: ", library.name)), "{text}");
                assert!(library.sonames.iter().all(|soname| text.contains(soname)), "{text}");
                assert!(text.contains(&format!("`pip install {}`", library.package)), "{text}");
            }
        }
    }
}
