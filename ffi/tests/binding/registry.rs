//! Registration through a function table: layouts of each API version, repeats, refusals.

use std::mem::offset_of;

use xla_ffi::fake::Host;
use xla_ffi::sys::{XLA_FFI_Api, XLA_FFI_CallFrame, XLA_FFI_Error};
use xla_ffi::{ErrorCode, Registry, Stages};

unsafe extern "C" fn one(_: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    std::ptr::null_mut()
}

unsafe extern "C" fn other(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    frame.cast()
}

fn registry(host: &Host) -> Registry {
    // SAFETY: the host outlives the test's use of it.
    unsafe { Registry::of_api(host.api()) }.unwrap()
}

fn register(host: &Host, name: &str, stages: Stages) -> Result<(), xla_ffi::Error> {
    // SAFETY: the host calls none of them.
    unsafe { registry(host).register(name, "Host", stages) }
}

#[test]
fn a_second_registration_is_harmless_and_another_handler_is_refused() {
    let host = Host::new();
    assert_eq!(register(&host, "twice", Stages::execute(one)), Ok(()));
    assert_eq!(register(&host, "twice", Stages::execute(one)), Ok(()));
    let refused = register(&host, "twice", Stages::execute(other)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidArgument);
    assert_eq!(refused.message(), "Duplicate handler for twice");
    assert_eq!(Host::registered("Host").iter().filter(|name| *name == "twice").count(), 1);
}

#[test]
fn each_version_of_the_api_gets_its_own_struct() {
    for minor in 1..=5 {
        let host = Host::new().aged(minor, size_of::<XLA_FFI_Api>());
        let name = format!("of_minor_{minor}");
        let all = Stages {
            instantiate: Some(one),
            prepare: Some(one),
            initialize: Some(one),
            ..Stages::execute(one)
        };
        assert_eq!(register(&host, &name, all), Ok(()));
        // What the old struct says of the record stage is nothing, so this is the same bundle.
        assert_eq!(register(&host, &name, Stages { record: None, ..all }), Ok(()));
        let recorded =
            register(&host, &format!("{name}.record"), Stages { record: Some(one), ..all });
        match recorded {
            Ok(()) => assert!(minor >= 4),
            Err(error) => {
                assert!(minor < 4 && error.code() == ErrorCode::Unimplemented);
                assert_eq!(
                    error.message(),
                    format!("this host, of API 0.{minor}, has no record stage")
                );
            }
        }
    }
}

/// Hosts of API 0.1 have tables that say 88 bytes: registration is within them.
#[test]
fn a_table_that_cannot_register_is_refused() {
    let slot = offset_of!(XLA_FFI_Api, XLA_FFI_Handler_Register);
    assert_eq!(register(&Host::new().aged(1, 88), "in_88_bytes", Stages::execute(one)), Ok(()));
    let host = Host::new().aged(1, slot);
    // SAFETY: the host lives.
    let refused = unsafe { Registry::of_api(host.api()) }.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::FailedPrecondition);
    assert_eq!(
        refused.message(),
        "expected an XLA_FFI_Api of version 0.x with at least 80 bytes, got version 0.1 with 72 bytes"
    );
    // SAFETY: null is allowed.
    let null = unsafe { Registry::of_api(std::ptr::null()) }.unwrap_err();
    assert_eq!(null.message(), "expected an XLA_FFI_Api, got a null pointer");
}

#[test]
fn a_registry_says_its_version() {
    assert_eq!(registry(&Host::new().aged(3, size_of::<XLA_FFI_Api>())).version(), Some((0, 3)));
}

#[cfg(unix)]
#[test]
fn a_process_without_xla_says_what_was_sought() {
    // SAFETY: no symbol of these names is here.
    let none = unsafe { Registry::of_process(None) }.unwrap_err();
    assert_eq!(none.code(), ErrorCode::NotFound);
    assert!(none.message().starts_with("this process has neither the symbol XLA_FFI_GetApi nor"));
    // SAFETY: as above.
    let none = unsafe { Registry::of_process(Some(c"libnothere.so")) }.unwrap_err();
    assert_eq!(none.message(), "libnothere.so is not loaded in this process");
}

#[cfg(unix)]
#[test]
fn a_plugin_is_found_where_it_is_loaded_and_is_one() {
    // SAFETY: no library of the name is loaded.
    let none = unsafe { Registry::of_loaded_plugin(c"/nowhere/plugin.so") }.unwrap_err();
    assert_eq!(none.code(), ErrorCode::NotFound);
    assert_eq!(none.message(), "/nowhere/plugin.so is not loaded in this process");
    if cfg!(target_os = "linux") {
        // SAFETY: the C library has no such symbol.
        let other = unsafe { Registry::of_loaded_plugin(c"libc.so.6") }.unwrap_err();
        assert_eq!(other.message(), "libc.so.6 is no PJRT plugin: it has no symbol GetPjrtApi");
    }
}
