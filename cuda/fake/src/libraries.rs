//! Shared libraries of NVIDIA's names (`build.rs`), and what their functions are.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};

/// The functions of one library, by name.
pub(crate) type Slots = HashMap<&'static str, *const c_void>;

/// The driver, then NVIDIA's libraries.
const LISTS: [&str; 4] = [
    include_str!("../symbols/cuda.txt"),
    include_str!("../symbols/cusolver.txt"),
    include_str!("../symbols/cublas.txt"),
    include_str!("../symbols/cusparse.txt"),
];

/// Puts the libraries into the process, once.
///
/// # Errors
/// A sentence where that cannot be, or where a real driver was there before.
///
/// # Panics
/// If a list in `symbols/` has a function that this crate has not, or the other way round.
pub fn install() -> Result<(), String> {
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    INSTALLED.get_or_init(put).clone()
}

fn put() -> Result<(), String> {
    let mut slots = crate::driver::functions();
    slots.extend(crate::nvidia::functions());
    for list in LISTS {
        let mut lines = list.lines();
        let soname = lines.next().unwrap_or_default();
        // SAFETY: only asks whether such a library is there already.
        if unsafe {
            Library::open(Some(soname), RTLD_NOW | 0x4 /* RTLD_NOLOAD */)
        }
        .is_ok()
        {
            return Err(format!("the process has a {soname} already"));
        }
        let file = format!("{}/{soname}", env!("LAPAX_FAKE_FOLDER"));
        // SAFETY: a library without initialisers.
        let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| error.to_string())?;
        // SAFETY: the table has a slot for each function (build.rs).
        let table: Symbol<*mut *const c_void> =
            unsafe { library.get(b"lapax_fake_table\0") }.map_err(|error| error.to_string())?;
        for (index, name) in lines.enumerate() {
            let function = slots.remove(name).unwrap_or_else(|| panic!("no function {name}"));
            // SAFETY: a slot of the table, which nobody uses yet.
            unsafe { (*table).add(index).write(function) };
        }
        // Never closed.
        std::mem::forget(library);
    }
    assert!(slots.is_empty(), "no list of symbols has {:?}", slots.keys());
    Ok(())
}
