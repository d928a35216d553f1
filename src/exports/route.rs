//! Which kernel serves a call, for those who ask.

use std::ffi::c_char;

use lapax_cpu::routes::{Kind, Routine, routine, routines};
use lapax_cpu::unfit;
use num_complex::Complex;
use serde_json::{Value as Json, json};

use super::{answered, string};

/// The kernel that serves a call of one of the CPU's own routines on this processor: JSON in, JSON out, to
/// be freed by `lapax_free`.
///
/// In: `{"routine": …, "dtype": …, "batch": …, "sizes": […]}`; of a routine whose sizes are m and n, a
/// missing n is m, and a missing nrhs is 1. Out: `{"route", "what", "sizes": {name: size}}` or
/// `{"error": …}`.
///
/// # Safety
/// `request` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_route(request: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { answered("lapax_route", request, route) }
}

fn route(request: &Json) -> Result<Json, String> {
    let name = string("lapax_route", request, "routine")?;
    let routine = routine(name).ok_or_else(|| {
        let names: Vec<_> = routines().map(|routine| routine.name).collect();
        format!("no routine {name}; there are {}", names.join(", "))
    })?;
    if let Some(reason) = unfit() {
        return Err(reason.to_owned());
    }
    let kind = match string("lapax_route", request, "dtype")? {
        "f32" => Kind::of::<f32>(),
        "f64" => Kind::of::<f64>(),
        "c64" => Kind::of::<Complex<f32>>(),
        "c128" => Kind::of::<Complex<f64>>(),
        other => return Err(format!("{name}: expected dtype f32, f64, c64 or c128, got {other}")),
    };
    let batch = size(name, "batch", &request["batch"])?;
    let given = request["sizes"].as_array().map_or(&[][..], Vec::as_slice);
    let sizes = sizes(routine, given)?;
    let way = routine.way(kind, batch, &sizes);
    let sizes: serde_json::Map<_, _> =
        routine.sizes.iter().zip(sizes).map(|(name, size)| ((*name).into(), size.into())).collect();
    Ok(json!({ "route": way.name, "what": way.what(), "sizes": sizes }))
}

/// The sizes of a routine, of which not all need to be given.
fn sizes(routine: &Routine, given: &[Json]) -> Result<Vec<usize>, String> {
    let Routine { name, sizes, .. } = routine;
    if given.is_empty() || given.len() > sizes.len() {
        let (wanted, got) = (sizes.join(", "), given.len());
        return Err(format!("{name}: expected sizes {wanted}, got {got} of them"));
    }
    let mut found: Vec<usize> = Vec::new();
    for (i, label) in sizes.iter().enumerate() {
        found.push(match given.get(i) {
            Some(given) => size(name, label, given)?,
            None if *label == "nrhs" => 1,
            None => found[0],
        });
    }
    Ok(found)
}

fn size(routine: &str, label: &str, json: &Json) -> Result<usize, String> {
    let size = json.as_u64().and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| format!("{routine}: {label}: expected a size, got {json}"))
}
