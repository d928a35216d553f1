//! The C exports, for hosts and for Python: the table of targets, registration, shape inference, the
//! CPU backend. `python/lapax/include/lapax.h` declares them.
//!
//! Strings are UTF-8 and end with NUL. Nothing here unwinds into the caller.

mod callback;
mod register;
mod route;

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::catch_unwind;
use std::sync::OnceLock;

use serde_json::{Map, Value as Json, json};
use xla_ffi::sys::XLA_FFI_Handler;
use xla_ffi::{DataType, Element, Error, Given, Operand, Shape, Signature, Value};

pub use callback::*;
pub use register::*;
pub use route::*;

use crate::table::{Layout, Op, Target, targets};
use crate::{backend, cuda_report};

/// One target, as C sees it. Valid as long as the library is loaded.
#[repr(C)]
#[derive(Debug)]
#[allow(non_camel_case_types, reason = "the name in C")]
pub struct lapax_target {
    /// Size of this struct; later versions append fields.
    pub struct_size: usize,
    /// The name under which XLA programs call it.
    pub name: *const c_char,
    /// JAX's name of the platform: `cpu` is XLA's Host.
    pub platform: *const c_char,
    /// The `XLA_FFI_Handler*` of its execute stage.
    pub handler: *const c_void,
    /// The signature, as JSON.
    pub signature: *const c_char,
    /// The `XLA_FFI_Handler*` of its initialize stage, or null where it has none.
    pub initialize: *const c_void,
}

// SAFETY: the pointers are to constants and to strings that are never freed or written.
unsafe impl Send for lapax_target {}
// SAFETY: as above.
unsafe impl Sync for lapax_target {}

/// Number of targets.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_target_count() -> usize {
    table().len()
}

/// Target `index`, or null past the end.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_target_at(index: usize) -> *const lapax_target {
    table().get(index).map_or(std::ptr::null(), std::ptr::from_ref)
}

/// The library's version.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Null where this build's kernels for the CPU run on this processor, else why they cannot: a build may be
/// for one kind of processor alone.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_unfit() -> *const c_char {
    static REASON: OnceLock<Option<CString>> = OnceLock::new();
    let reason = REASON.get_or_init(|| lapax_cpu::unfit().and_then(|it| CString::new(it).ok()));
    reason.as_ref().map_or(std::ptr::null(), |reason| reason.as_ptr())
}

/// The shapes of a call's results: JSON in, JSON out, to be freed by `lapax_free`.
///
/// In: `{"target": …, "platform": …, "args": [{"dtype": …, "shape": […]}], "attrs": {…},
/// "dims": {…}}`, where `dims` has the dimensions that no argument fixes. Out: `{"rets": [{"dtype",
/// "shape"}]}` or `{"error": …}`, the sentence with which the handler would refuse the call.
///
/// # Safety
/// `request` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_infer(request: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { answered("lapax_infer", request, infer) }
}

/// The answer to a request, JSON to JSON, for the caller to free.
///
/// # Safety
/// `request` is null or a C string.
unsafe fn answered(
    function: &'static str,
    request: *const c_char,
    answer_to: fn(&Json) -> Result<Json, String>,
) -> *mut c_char {
    let text = if request.is_null() {
        None
    } else {
        // SAFETY: the caller's promise.
        unsafe { CStr::from_ptr(request) }.to_str().ok()
    };
    let error = |error: String| json!({ "error": error });
    let json = catch_unwind(|| match text.map(serde_json::from_str) {
        Some(Ok(request)) => answer_to(&request).unwrap_or_else(error),
        Some(Err(wrong)) => error(format!("{function}: {wrong}")),
        None => error(format!("{function}: the request is not a UTF-8 string")),
    });
    answer(json.unwrap_or_else(|_| error(format!("{function}: a bug in lapax"))))
}

/// The CPU backends compiled in: a JSON array of `{"name"}`, with `"lapack"` and `"blas"`, the mapped
/// files or null, and `"integer_bits"` for a LAPACK library. To be freed by `lapax_free`.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_backends() -> *mut c_char {
    answer(catch_unwind(backend::list).unwrap_or_default())
}

/// The CPU backend in force: `{"backend": name}` or `{"error": sentence}`, for `lapax_free`.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_backend() -> *mut c_char {
    answer(match backend::in_force() {
        Ok(backend) => json!({ "backend": backend.name() }),
        Err(refusal) => json!({ "error": refusal.to_string() }),
    })
}

/// Number of modules of CUDA kernels in this build: 0 where it was made without nvcc.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_cuda_kernels() -> usize {
    cuda_report::kernels()
}

/// Null where this machine's NVIDIA driver runs this build's CUDA kernels, where there is no driver and
/// where there are no kernels; else why it cannot. Opens the driver's library and does not start it.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_cuda_unfit() -> *const c_char {
    static REASON: OnceLock<Option<CString>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        // A libcuda that lacks the function panics, and is nobody's driver.
        let reason = catch_unwind(cuda_report::unfit).unwrap_or_default();
        reason.and_then(|it| CString::new(it).ok())
    });
    reason.as_ref().map_or(std::ptr::null(), |reason| reason.as_ptr())
}

/// What CUDA's targets will find on this machine, as JSON, for `lapax_free`: `{"kernels": number,
/// "driver": {"version"} or {"error"}, "libraries": [{"name", "file"} or {"name", "error"}]}`, or null.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_cuda() -> *mut c_char {
    answer(catch_unwind(cuda_report::report).unwrap_or_default())
}

/// Up to which orders ops on CUDA are done by kernels of their own, on GPUs of one compute capability or on any: JSON
/// in, `{"gpu": "9.0"}` or `{"gpu": null}`, JSON out, `{"choices": {op: {"batches": {dtype: order or null}, "alone": …,
/// "measured", "why"}}}` or `{"error": …}`, to be freed by `lapax_free`.
///
/// # Safety
/// `request` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_cuda_choices(request: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { answered("lapax_cuda_choices", request, cuda_report::choices) }
}

/// Chooses the CPU backend for all calls that begin afterwards, in every thread. Returns what
/// `lapax_backend` would; an error leaves the choice as it was.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_set_backend(name: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    match backend::choose(&name.to_string_lossy()) {
        Ok(()) => lapax_backend(),
        Err(refusal) => answer(json!({ "error": refusal.to_string() })),
    }
}

/// Frees what this library returned to be freed. Null is allowed.
///
/// # Safety
/// `text` is null or was returned by this library and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller's promise: it came from CString::into_raw.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// A text for the caller to free.
fn answer(json: Json) -> *mut c_char {
    CString::new(json.to_string()).unwrap_or_default().into_raw()
}

fn table() -> &'static [lapax_target] {
    static TABLE: OnceLock<Vec<lapax_target>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let address = |handler: XLA_FFI_Handler| {
            handler.map_or(std::ptr::null(), |handler| handler as *const c_void)
        };
        let row = |(op, target): (&Op, &Target)| lapax_target {
            struct_size: size_of::<lapax_target>(),
            name: forever(target.name),
            platform: forever(target.platform.name()),
            handler: address(target.handler),
            signature: forever(&signature_json(op, target).to_string()),
            initialize: address(target.initialize),
        };
        targets().map(row).collect()
    })
}

/// A C string that lives as long as the process, as the table does.
fn forever(text: &str) -> *const c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

fn signature_json(op: &Op, target: &Target) -> Json {
    // Dims, attributes and names are the same for all element types.
    let first: &Signature = target.signatures[0];
    let dims: Vec<Json> = (first.dims.iter())
        .map(|dim| match &dim.formula {
            Some(formula) => json!({ "name": dim.name, "formula": formula.text }),
            None => json!({ "name": dim.name }),
        })
        .collect();
    let attrs: Vec<Json> = first.attrs.iter().map(attr_json).collect();
    let requires: Vec<&str> = first.requirements.iter().map(|rule| rule.reason).collect();
    let variants: Vec<Json> = (target.signatures.iter())
        .map(|signature| {
            let list = |operands: &[Operand]| -> Vec<Json> {
                operands.iter().map(|operand| operand_json(signature, operand)).collect()
            };
            let dtype = signature.args.first().and_then(|operand| operand.dtype.name());
            json!({ "dtype": dtype, "args": list(signature.args), "rets": list(signature.rets) })
        })
        .collect();
    json!({
        "op": op.name,
        "family": op.family,
        "doc": doc_text(&[op.doc, target.doc].concat()),
        "captured": target.captured,
        "not_on_cuda": (!op.not_on_cuda.is_empty()).then_some(op.not_on_cuda),
        "layout": match op.layout { Layout::Column => "column", Layout::Row => "row" },
        "dims": dims,
        "requires": requires,
        "attrs": attrs,
        "variants": variants,
    })
}

fn attr_json(attr: &xla_ffi::Attr) -> Json {
    let mut json = json!({ "name": attr.name, "type": attr.kind, "optional": attr.optional });
    if let Some(codes) = attr.codes {
        let code = |code: &xla_ffi::Code| json!({ "code": code.code, "name": code.name });
        json["codes"] = codes().iter().map(code).collect();
    }
    json
}

fn operand_json(signature: &Signature, operand: &Operand) -> Json {
    let dims: Vec<&str> = operand.dims.iter().map(|dim| signature.dims[*dim].name).collect();
    let mut json =
        json!({ "name": operand.name, "dtype": operand.dtype.to_string(), "dims": dims });
    if operand.optional {
        json["optional"] = true.into();
    }
    if operand.alone {
        json["alone"] = true.into();
    }
    if let Some(alias) = operand.alias {
        json["alias"] = alias.into();
    }
    json
}

/// A doc comment as text: the space that follows `///` goes, line breaks stay.
fn doc_text(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n")
}

fn infer(request: &Json) -> Result<Json, String> {
    let of_request = |key| string("lapax_infer", request, key);
    let (name, platform) = (of_request("target")?, of_request("platform")?);
    let (_, target) = targets()
        .find(|(_, target)| target.name == name && target.platform.name() == platform)
        .ok_or_else(|| format!("lapax has no target {name} on platform {platform}"))?;
    let shapes: Vec<Shape> = (request["args"].as_array().into_iter().flatten())
        .map(shape)
        .collect::<Result<_, String>>()?;
    let scalars = scalars(&request["attrs"], target)?;
    let attrs = scalars.iter().map(|(key, scalar)| (key.clone(), scalar.value())).collect();
    let dims = (request["dims"].as_object().into_iter().flatten())
        .map(|(key, value)| {
            let no_size = || format!("{name}: dimension `{key}`: expected a size, got {value}");
            Ok((key.clone(), value.as_i64().ok_or_else(no_size)?))
        })
        .collect::<Result<_, String>>()?;
    let given = Given { args: shapes.into_iter().map(Some).collect(), rets: None, attrs, dims };
    let rets = xla_ffi::infer(target.signatures, &given)
        .map_err(|error: Error| format!("{name}: {error}"))?;
    let rets: Vec<Json> = (rets.iter())
        .map(|ret| json!({ "dtype": ret.dtype.to_string(), "shape": ret.dims }))
        .collect();
    Ok(json!({ "rets": rets }))
}

fn string<'a>(function: &str, request: &'a Json, key: &str) -> Result<&'a str, String> {
    request[key].as_str().ok_or_else(|| format!("{function}: no string `{key}` in the request"))
}

fn shape(json: &Json) -> Result<Shape, String> {
    let bad = || format!("lapax_infer: not an operand: {json}");
    let name = json["dtype"].as_str().ok_or_else(bad)?;
    let dtype = DataType::from_name(name).ok_or_else(|| format!("unknown element type {name}"))?;
    let dims = json["shape"].as_array().ok_or_else(bad)?;
    let dims = dims.iter().map(|dim| dim.as_i64().ok_or_else(bad)).collect::<Result<_, _>>()?;
    Ok(Shape { dtype, dims })
}

/// An attribute's value of the type that the target wants, owned.
enum Scalar {
    Bool(bool),
    U8(u8),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    Text(String),
}

impl Scalar {
    fn value(&self) -> Value<'_> {
        fn number<T: Element>(value: &T) -> Value<'_> {
            Value::from_element(value)
        }
        match self {
            Scalar::Bool(value) => Value::from_bool(value),
            Scalar::U8(value) => number(value),
            Scalar::I32(value) => number(value),
            Scalar::I64(value) => number(value),
            Scalar::F32(value) => number(value),
            Scalar::F64(value) => number(value),
            Scalar::Text(value) => Value::String(value.as_bytes()),
        }
    }
}

/// JSON attributes as values of the types that the target declares; what does not convert keeps
/// the type that JSON gives it, so that the check names it.
fn scalars(attrs: &Json, target: &Target) -> Result<Vec<(String, Scalar)>, String> {
    let declared = target.signatures[0].attrs;
    let empty = Map::new();
    let mut scalars = Vec::new();
    for (name, json) in attrs.as_object().unwrap_or(&empty) {
        let kind = declared.iter().find(|attr| attr.name == name).map_or("", |attr| attr.kind);
        let integer = json.as_i64();
        let wanted = match kind {
            "u8" => integer.and_then(|value| u8::try_from(value).ok()).map(Scalar::U8),
            "i32" => integer.and_then(|value| i32::try_from(value).ok()).map(Scalar::I32),
            #[allow(clippy::cast_possible_truncation, reason = "the attribute is an f32")]
            "f32" => json.as_f64().map(|value| Scalar::F32(value as f32)),
            "f64" => json.as_f64().map(Scalar::F64),
            _ => None,
        };
        let as_given = || match json {
            Json::Bool(value) => Some(Scalar::Bool(*value)),
            Json::String(value) => Some(Scalar::Text(value.clone())),
            Json::Number(_) => integer.map(Scalar::I64).or(json.as_f64().map(Scalar::F64)),
            _ => None,
        };
        let scalar = wanted
            .or_else(as_given)
            .ok_or_else(|| format!("attribute `{name}`: not a scalar or string: {json}"))?;
        scalars.push((name.clone(), scalar));
    }
    Ok(scalars)
}
