//! Exported programs on a PJRT plugin, run by examples/host: in C and in Rust.
//!
//! LAPAX_PJRT_PLUGIN is the plugin, beside which its header lies in `include`; LAPAX_HOST_PROGRAMS the
//! folder that tests/hosts/programs.py filled. Without them the tests say so and pass.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The programs: each function in each dtype.
const FUNCTIONS: [&str; 7] = ["cholesky", "lu_solve", "qr", "eigh", "svd", "eig", "schur"];
const DTYPES: [&str; 4] = ["f32", "f64", "c64", "c128"];

/// The plugin and the folder of programs, or a printed reason.
fn plugin() -> Option<(PathBuf, PathBuf)> {
    let place = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let found = place("LAPAX_PJRT_PLUGIN").zip(place("LAPAX_HOST_PROGRAMS"));
    if found.is_none() {
        println!("skipped: no LAPAX_PJRT_PLUGIN and LAPAX_HOST_PROGRAMS; `make test` sets them");
    }
    found
}

/// The C or C++ compiler, or a printed reason.
pub(crate) fn compiler(cpp: bool) -> Option<String> {
    let (variable, default) = if cpp { ("CXX", "c++") } else { ("CC", "cc") };
    let compiler = std::env::var(variable).unwrap_or(default.to_owned());
    let there = Command::new(&compiler).arg("--version").output().is_ok();
    if !there {
        println!("skipped: no compiler {compiler}; set {variable}");
    }
    there.then_some(compiler)
}

/// A folder for what the tests write.
pub(crate) fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Where cargo put what it built for these tests: the library in `deps`, the Rust host in `examples`.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// The C host, which the first of the tests that need it compiles.
fn c_host(plugin: &Path) -> Option<PathBuf> {
    static HOST: OnceLock<Option<PathBuf>> = OnceLock::new();
    HOST.get_or_init(|| compile_c_host(plugin)).clone()
}

fn compile_c_host(plugin: &Path) -> Option<PathBuf> {
    let (source, program) = (Path::new(ROOT).join("examples/host/host.c"), scratch().join("host"));
    // Cargo lays the library of the package under test beside the test only.
    let library = built().join("deps").join("liblapax.so");
    let done = Command::new(compiler(false)?)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .args([&program, &source, &library])
        .arg("-I")
        .arg(Path::new(ROOT).join("python/lapax/include"))
        // The plugin's header is not ours to be warned about.
        .arg("-isystem")
        .arg(plugin.with_file_name("include"))
        .args(["-ldl", "-lm"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

fn rust_host() -> PathBuf {
    let program = built().join("examples").join("host");
    assert!(program.is_file(), "{} is missing: cargo build --example host", program.display());
    program
}

fn run(host: &Path, words: &[&OsStr]) -> Output {
    // What TensorFlow's logging says of the machine is of no use here.
    Command::new(host).args(words).env("TF_CPP_MIN_LOG_LEVEL", "2").output().unwrap()
}

/// Runs all programs; the host compares each with its answers.
fn run_all(host: &Path, plugin: &Path, programs: &Path) {
    let mut outputs = 0;
    for function in FUNCTIONS {
        for dtype in DTYPES {
            let file = |kind: &str| programs.join(format!("{function}.{dtype}.{kind}"));
            let (program, data) = (file("mlirbc"), file("data"));
            let done = run(host, &[plugin.as_ref(), program.as_ref(), data.as_ref()]);
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let errors = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{function} {dtype}: {text}{errors}");
            outputs += text.lines().filter(|line| line.starts_with("output")).count();
        }
    }
    // One matrix and a batch, each with one output or more.
    assert!(outputs >= 2 * FUNCTIONS.len() * DTYPES.len(), "only {outputs} outputs were compared");
}

#[test]
fn a_c_program_runs_what_jax_exported() {
    let Some((plugin, programs)) = plugin() else { return };
    let Some(host) = c_host(&plugin) else { return };
    run_all(&host, &plugin, &programs);
}

#[test]
fn a_rust_program_runs_what_jax_exported() {
    let Some((plugin, programs)) = plugin() else { return };
    run_all(&rust_host(), &plugin, &programs);
}

/// A program compared with another's answers fails: the comparison is one.
#[test]
fn a_wrong_answer_is_seen() {
    let Some((plugin, programs)) = plugin() else { return };
    let bytes = fs::read(programs.join("cholesky.f64.data")).unwrap();
    let wrong = scratch().join("wrong.data");
    let mut changed = bytes.clone();
    // The last element of the last answer: a number's top byte.
    *changed.last_mut().unwrap() ^= 0x40;
    fs::write(&wrong, changed).unwrap();
    let program = programs.join("cholesky.f64.mlirbc");
    for host in [Some(rust_host()), c_host(&plugin)].into_iter().flatten() {
        let done = run(&host, &[plugin.as_ref(), program.as_ref(), wrong.as_ref()]);
        assert!(!done.status.success() && String::from_utf8_lossy(&done.stdout).contains("WRONG"));
    }
}

/// The registry of a plugin, which stays loaded.
fn load(plugin: &Path) -> xla_ffi::Registry {
    type Get = unsafe extern "C" fn() -> *const std::ffi::c_void;
    // SAFETY: a PJRT plugin, never unloaded.
    unsafe {
        let library = Box::leak(Box::new(libloading::Library::new(plugin).unwrap()));
        let get = library.get::<Get>(b"GetPjrtApi\0").unwrap();
        xla_ffi::Registry::of_plugin(get()).unwrap()
    }
}

/// JAX's CUDA plugins take handlers on a machine without a GPU: LAPAX_CUDA_PLUGINS, with colons
/// between them. `make test` has that of PyPI's jax-cuda13-pjrt 0.12, `make test-plugins` one of API
/// 0.1, jax-cuda12-pjrt 0.7.
#[test]
fn cuda_plugins_take_handlers_without_a_gpu() {
    let Some(plugins) = std::env::var_os("LAPAX_CUDA_PLUGINS").filter(|it| !it.is_empty()) else {
        println!("skipped: no LAPAX_CUDA_PLUGINS; `make test` sets it");
        return;
    };
    for plugin in std::env::split_paths(&plugins) {
        let registry = load(&plugin);
        println!("{}: API {:?}", plugin.display(), registry.version());
        let all = lapax::Registration::all();
        let outcome = all.register(registry);
        assert_eq!(all.register(registry), outcome, "a second time");
        if registry.version().is_some() {
            assert_eq!(outcome, Ok(lapax::targets().count()));
            continue;
        }
        // A plugin of API 0.1 does not tell its version, and knows no stage but execute: it has the
        // targets with that one alone.
        let more = lapax::targets().filter(|(_, target)| target.initialize.is_some()).count();
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), xla_ffi::ErrorCode::Unimplemented);
        let text = format!("{more} of {} targets of lapax were refused", lapax::targets().count());
        assert!(error.to_string().contains(&text), "{error}");
    }
}

/// A plugin that the process has loaded is found by its path, and another library is none.
#[test]
fn a_loaded_plugin_by_its_path() {
    use std::ffi::{CStr, CString};
    use std::ptr::null;
    let Some((plugin, _)) = plugin() else { return };
    let register = |path: &CStr| {
        // SAFETY: a plugin that `load` never unloads, or none; the others are null.
        let text =
            unsafe { lapax::exports::lapax_register_plugin(path.as_ptr(), null(), null(), null()) };
        // SAFETY: null, or the library's text, which is leaked.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap())
    };
    let path = CString::new(plugin.to_str().unwrap()).unwrap();
    load(&plugin);
    assert_eq!(register(&path), None);
    assert_eq!(register(&path), None, "a second time");
    let other = register(c"libc.so.6").unwrap();
    assert_eq!(other, "libc.so.6 is no PJRT plugin: it has no symbol GetPjrtApi");
}

/// A plugin's own registry: what its FFI says of duplicates, through the table that it shows.
#[test]
fn a_plugin_refuses_with_its_words() {
    use xla_ffi::{Stages, sys};
    /// Says of itself what lapax's handlers say, so that the plugin looks at its name.
    unsafe extern "C" fn other(frame: *mut sys::XLA_FFI_CallFrame) -> *mut sys::XLA_FFI_Error {
        let handler = lapax::targets().next().and_then(|(_, target)| target.handler).unwrap();
        // SAFETY: the host's frame.
        unsafe { handler(frame) }
    }
    let Some((plugin, _)) = plugin() else { return };
    let registry = load(&plugin);
    assert!(registry.version().is_some(), "the plugin shows its function table");
    let all = lapax::Registration::all();
    let count = all.register(registry).unwrap();
    assert_eq!(all.register(registry), Ok(count), "a second time");
    // SAFETY: never called.
    let refused = unsafe { registry.register("lapack_dpotrf_ffi", "Host", Stages::execute(other)) };
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("Duplicate") && text.contains("lapack_dpotrf_ffi"), "{text}");
}
