//! `lapax_infer` for the calls of the other tests: the sentences of the handler, before there are
//! buffers.

use std::ffi::{CStr, CString, c_char};

use lapax::exports::{lapax_free, lapax_infer};
use serde_json::{Map, Value as Json, json};
use xla_ffi::fake::Attr;

use crate::case::Variant;
use crate::plan::{Operand, Plan};

/// Asks the export for shapes.
pub(crate) fn infer(request: &str) -> Json {
    asked(lapax_infer, request)
}

/// An export that takes JSON and answers JSON.
pub(crate) type Export = unsafe extern "C" fn(*const c_char) -> *mut c_char;

/// Asks one.
pub(crate) fn asked(export: Export, request: &str) -> Json {
    let request = CString::new(request).unwrap();
    // SAFETY: a C string; the answer is one too, and freed once.
    let answer = unsafe {
        let answer = export(request.as_ptr());
        let text = CStr::from_ptr(answer).to_str().unwrap().to_owned();
        lapax_free(answer);
        text
    };
    serde_json::from_str(&answer).unwrap()
}

/// The request that stands for a call; None where JSON cannot tell an attribute's type. `dims` has
/// the call's dimensions, of which those are passed that no argument fixes.
fn request(variant: Variant, dims: &[i64], plan: &Plan) -> Option<String> {
    let mut attrs = Map::new();
    for (name, value) in &plan.attrs {
        let declared = variant.signature.attrs.iter().find(|attr| attr.name == name);
        let kind = declared.map_or("", |attr| attr.kind);
        let value = match (value, kind) {
            (Attr::Bool(value), _) => json!(value),
            (Attr::String(value), _) => json!(value),
            (Attr::F64(value), kind) if kind != "f32" => json!(value),
            (Attr::U8(value), "u8") => json!(value),
            (Attr::I32(value), "i32") => json!(value),
            _ => return None,
        };
        attrs.insert(name.clone(), value);
    }
    let shape =
        |operand: &Operand| json!({ "dtype": operand.dtype.to_string(), "shape": operand.dims });
    let signature = variant.signature;
    let dims: Map<String, Json> = (variant.unfixed().iter())
        .map(|index| (signature.dims[*index].name.to_owned(), dims[*index].into()))
        .collect();
    let target = variant.target;
    let args: Vec<Json> = plan.args.iter().map(shape).collect();
    let request = json!({
        "target": target.name, "platform": target.platform.name(),
        "args": args, "attrs": attrs, "dims": dims,
    });
    Some(request.to_string())
}

/// Inference says of the arguments and attributes what the handler said (`message`, None: the call
/// ran). Returns whether the call could be asked about.
pub(crate) fn agrees(variant: Variant, dims: &[i64], plan: &Plan, message: Option<&str>) -> bool {
    let Some(request) = request(variant, dims, plan) else { return false };
    let answer = infer(&request);
    let name = format!("{}: ", variant.target.name);
    let phrases = |message: &str| -> Vec<String> {
        let message = message.strip_prefix(&name).expect("the target's name comes first");
        message.split("; ").map(str::to_owned).collect()
    };
    let told = answer["error"].as_str().map(phrases).unwrap_or_default();
    let handler = message.map(phrases).unwrap_or_default();
    for phrase in &told {
        let said = handler.iter().any(|said| same(said, phrase));
        assert!(said, "only inference says: {phrase}\nhandler: {handler:?}");
    }
    for phrase in handler.iter().filter(|phrase| !told.iter().any(|told| same(phrase, told))) {
        let counts = [" result (", " results ("];
        // A rule on a dimension that only results have is about the results passed.
        let unfixed = variant.unfixed();
        let mut rules = variant.signature.requirements.iter();
        let of_results = phrase.starts_with("result ")
            || counts.iter().any(|count| phrase.contains(count))
            || rules.any(|rule| {
                phrase.contains(rule.reason) && rule.dims.iter().any(|dim| unfixed.contains(dim))
            });
        assert!(of_results, "only the handler says: {phrase}\ninference: {answer}");
    }
    if told.is_empty() && message.is_none() {
        let rets = plan.rets.iter();
        let rets = rets.map(|it| json!({ "dtype": it.dtype.to_string(), "shape": it.dims }));
        assert_eq!(answer, json!({ "rets": rets.collect::<Vec<_>>() }), "{request}");
    }
    true
}

/// Whether the handler's phrase and inference's are one, but for dimensions that only results fix:
/// those inference leaves open in what it expected (`…`, or a name without a value).
fn same(handler: &str, inference: &str) -> bool {
    let parts = |phrase: &str| -> Option<(String, String, String)> {
        let (subject, rest) = phrase.split_once(": expected ")?;
        let (expected, got) = rest.split_once(", got ")?;
        Some((subject.to_owned(), expected.to_owned(), got.to_owned()))
    };
    let (Some((a, known, got_a)), Some((b, open, got_b))) = (parts(handler), parts(inference))
    else {
        return handler == inference;
    };
    let dims = open.split_once('[').map_or("", |(_, dims)| dims.trim_end_matches(']'));
    let mut dims = dims.split(", ");
    let left_open = dims.any(|dim| dim.parse::<i64>().is_err() && !dim.contains('='));
    a == b && got_a == got_b && (known == open || left_open)
}
