//! The choice of a CPU backend, as C makes it. That calls follow it is tested from Python.

use std::ffi::{CStr, CString, c_char};

use lapax::exports::{lapax_backend, lapax_backends, lapax_free, lapax_set_backend};
use serde_json::{Value as Json, json};

fn answer(text: *mut c_char) -> Json {
    // SAFETY: the library's answer is a C string.
    let json = serde_json::from_str(unsafe { CStr::from_ptr(text) }.to_str().unwrap()).unwrap();
    // SAFETY: freed once.
    unsafe { lapax_free(text) };
    json
}

fn choose(name: &str) -> Json {
    let name = CString::new(name).unwrap();
    // SAFETY: a C string.
    answer(unsafe { lapax_set_backend(name.as_ptr()) })
}

/// The other tests of this binary run meanwhile, so that the choice is what it was.
#[test]
fn the_choice_is_read_back_and_a_wrong_one_is_refused() {
    let before = answer(lapax_backend());
    assert_eq!(choose(before["backend"].as_str().unwrap()), before);
    for wrong in ["mkl", "", "Faer"] {
        let refusal = choose(wrong);
        let text = refusal["error"].as_str().unwrap();
        assert!(text.starts_with(&format!("{wrong:?} is no backend")), "{text}");
        assert!(text.contains("faer and lapack"), "{text}");
    }
    // SAFETY: null is allowed.
    let refusal = answer(unsafe { lapax_set_backend(std::ptr::null()) });
    assert!(refusal["error"].is_string());
    assert_eq!(answer(lapax_backend()), before);
}

#[test]
fn backends_say_what_they_are() {
    let backends = answer(lapax_backends());
    assert_eq!(backends[0], json!({ "name": "faer" }));
    if cfg!(feature = "lapack") {
        assert_eq!(backends[1]["name"], "lapack");
        assert!([32, 64].contains(&backends[1]["integer_bits"].as_i64().unwrap()));
        if cfg!(target_os = "linux") {
            assert!(backends[1]["lapack"].is_string() && backends[1]["blas"].is_string());
        }
    } else {
        assert_eq!(backends.as_array().unwrap().len(), 1);
        let refusal = choose("lapack");
        assert!(refusal["error"].as_str().unwrap().contains("--features openblas"));
    }
}
