//! Without a driver or a library, in a process that has none of the fakes: errors that say what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

use std::ffi::c_void;

use lapax_cuda::{Error, Gpu, Kind, LIBRARIES, Lent, Memory, driver};

struct Nothing;

impl Memory for Nothing {
    fn lend(&self, bytes: usize) -> Result<Box<dyn Lent + '_>, Error> {
        Err(Error::new(Kind::ResourceExhausted, format!("no {bytes} bytes")))
    }
}

#[test]
fn a_missing_driver_is_an_error() {
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
