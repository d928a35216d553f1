//! Registration in a fake host, through the C exports and through the Rust API.

use std::ffi::{CStr, CString, c_char};

use lapax::exports::{
    lapax_free, lapax_handler, lapax_register, lapax_register_pjrt, lapax_register_plugin,
    lapax_register_process,
};
use lapax::{Platform, Registration, targets};
use xla_ffi::fake::Host;
use xla_ffi::sys::{XLA_FFI_CallFrame, XLA_FFI_Error};
use xla_ffi::{ErrorCode, Registry, Stages};

fn c(text: Option<&str>) -> Option<CString> {
    text.map(|text| CString::new(text).unwrap())
}

fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// A sentence of the library's, which is freed.
fn sentence(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the library's text, freed once.
    unsafe {
        let owned = CStr::from_ptr(text).to_str().unwrap().to_owned();
        lapax_free(text);
        Some(owned)
    }
}

fn register(
    host: &Host,
    names: Option<&str>,
    platform: Option<&str>,
    prefix: Option<&str>,
) -> Option<String> {
    let (names, platform, prefix) = (c(names), c(platform), c(prefix));
    // SAFETY: the host's table; C strings or null.
    sentence(unsafe {
        lapax_register(host.api().cast(), pointer(&names), pointer(&platform), pointer(&prefix))
    })
}

/// What was registered under this prefix, without it.
fn registered(prefix: &str) -> Vec<String> {
    let names = Host::registered("Host");
    names.iter().filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect()
}

#[test]
fn all_or_some_with_a_prefix_and_twice() {
    let host = Host::new();
    for platform in [None, Some("cpu"), Some("Host"), Some("host")] {
        assert_eq!(register(&host, None, platform, Some("all.")), None);
    }
    let names: Vec<&str> = (targets())
        .filter(|(_, target)| target.platform == Platform::Cpu)
        .map(|(_, target)| target.name)
        .collect();
    assert_eq!(registered("all."), names);
    let some = "lapack_dpotrf_ffi, lapack_sgetrf_ffi\nlapack_dpotrf_ffi";
    assert_eq!(register(&host, Some(some), None, Some("some.")), None);
    let mut got = registered("some.");
    got.sort_unstable();
    assert_eq!(got, ["lapack_dpotrf_ffi", "lapack_sgetrf_ffi"]);
}

#[test]
fn what_is_refused_says_why() {
    unsafe extern "C" fn other(_: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
        std::ptr::null_mut()
    }
    let host = Host::new();
    // SAFETY: the host lives as long as the registry is used.
    let registry = unsafe { Registry::of_api(host.api()) }.unwrap();
    // SAFETY: nobody calls it.
    unsafe { registry.register("taken.lapack_dpotrf_ffi", "Host", Stages::execute(other)) }
        .unwrap();
    let names = ["lapack_dpotrf_ffi", "lapack_spotrf_ffi"];
    let count = names.len();
    assert_eq!(
        register(&host, Some(&names.join(" ")), None, Some("taken.")).unwrap(),
        format!(
            "1 of {count} targets of lapax were refused: taken.lapack_dpotrf_ffi: Duplicate handler \
             for taken.lapack_dpotrf_ffi"
        )
    );
    assert_eq!(registered("taken."), names, "the others are registered");
    let refused = Registration::all().names(&names).prefix("taken.").register(registry);
    assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidArgument);
}

#[test]
fn what_does_not_exist_is_named_and_nothing_is_registered() {
    let host = Host::new();
    let prefix = Some("none.");
    for (names, platform, expected) in [
        (Some("lapack_dpotrf_ffi,nix,nox"), None, "lapax has no target nix, nox"),
        (Some("nix"), Some("cpu"), "lapax has no target nix on cpu"),
        (None, Some("TPU"), "no platform \"TPU\": expected one of cpu"),
    ] {
        assert!(register(&host, names, platform, prefix).unwrap().starts_with(expected));
    }
    assert!(registered("none.").is_empty());
    // An empty list is an empty choice, not all.
    assert_eq!(register(&host, Some(" "), None, prefix), None);
    assert!(registered("none.").is_empty());
    let null = std::ptr::null();
    // SAFETY: null is allowed.
    let answers = unsafe {
        [
            lapax_register(null, null.cast(), null.cast(), null.cast()),
            lapax_register_pjrt(null.cast(), null.cast(), null.cast(), null.cast()),
            lapax_register_plugin(null.cast(), null.cast(), null.cast(), null.cast()),
            lapax_register_plugin(c"/no.so".as_ptr(), null.cast(), null.cast(), null.cast()),
        ]
    };
    let answers = answers.map(|answer| sentence(answer).unwrap());
    assert_eq!(
        answers,
        [
            "expected an XLA_FFI_Api, got a null pointer",
            "expected a PJRT_Api, got a null pointer",
            "expected the path of a PJRT plugin, got a null pointer",
            "/no.so is not loaded in this process",
        ]
    );
    // SAFETY: no library of the name is loaded.
    let answer = unsafe {
        lapax_register_process(c"libnone.so".as_ptr(), null.cast(), null.cast(), null.cast())
    };
    assert_eq!(sentence(answer).unwrap(), "libnone.so is not loaded in this process");
}

#[test]
fn a_handler_by_its_name() {
    let (_, target) = targets().next().unwrap();
    let name = CString::new(target.name).unwrap();
    let handler = target.handler.map(|handler| handler as *const std::ffi::c_void);
    // SAFETY: C strings or null.
    unsafe {
        for platform in [std::ptr::null(), c"cpu".as_ptr(), c"Host".as_ptr()] {
            assert_eq!(Some(lapax_handler(name.as_ptr(), platform)), handler);
        }
        assert!(lapax_handler(name.as_ptr(), c"TPU".as_ptr()).is_null());
        assert!(lapax_handler(c"nix".as_ptr(), std::ptr::null()).is_null());
        assert!(lapax_handler(std::ptr::null(), std::ptr::null()).is_null());
    }
}
