//! The C exports: the table as C sees it, and shape inference with all that a caller may pass.

use std::collections::HashSet;
use std::ffi::{CStr, c_char};

use lapax::exports::{
    lapax_free, lapax_infer, lapax_route, lapax_target, lapax_target_at, lapax_target_count,
    lapax_version,
};
use lapax::{Layout, Op, Target, targets};
use serde_json::{Value as Json, json};
use xla_ffi::{Operand, Signature};

use crate::inference::{Export, asked, infer};

fn text(pointer: *const c_char) -> &'static str {
    assert!(!pointer.is_null());
    // SAFETY: the library's strings are C strings and live as long as the process.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap()
}

#[test]
fn the_c_table_is_the_table() {
    assert_eq!(lapax_target_count(), targets().count());
    for (index, (op, target)) in targets().enumerate() {
        // SAFETY: a row of the table.
        let row = unsafe { &*lapax_target_at(index) };
        assert_eq!(row.struct_size, size_of::<lapax_target>());
        assert_eq!(text(row.name), target.name);
        assert_eq!(text(row.platform), target.platform.name());
        let handler = target.handler.map(|handler| handler as *const std::ffi::c_void);
        assert_eq!(Some(row.handler), handler);
        let initialize = target.initialize.map(|handler| handler as *const std::ffi::c_void);
        assert_eq!(row.initialize, initialize.unwrap_or(std::ptr::null()));
        let signature: Json = serde_json::from_str(text(row.signature)).unwrap();
        check_signature(&signature, op, target);
    }
    for past in [targets().count(), targets().count() + 1, usize::MAX] {
        assert!(lapax_target_at(past).is_null());
    }
    let handlers: HashSet<_> = targets().map(|(_, target)| target.handler).collect();
    assert_eq!(handlers.len(), targets().count(), "two targets have one handler");
    assert_eq!(text(lapax_version()), env!("CARGO_PKG_VERSION"));
}

/// The rows that C reads have the layout of the header: a size and five pointers.
#[test]
fn the_row_has_the_layout_of_c() {
    use std::mem::offset_of;
    let offsets = [
        offset_of!(lapax_target, struct_size),
        offset_of!(lapax_target, name),
        offset_of!(lapax_target, platform),
        offset_of!(lapax_target, handler),
        offset_of!(lapax_target, signature),
        offset_of!(lapax_target, initialize),
    ];
    assert_eq!(offsets, [0, 8, 16, 24, 32, 40]);
}

fn strings(json: &Json) -> Vec<&str> {
    json.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

fn check_signature(json: &Json, op: &Op, target: &Target) {
    assert_eq!((json["op"].as_str(), json["family"].as_str()), (Some(op.name), Some(op.family)));
    assert_eq!(json["layout"], if op.layout == Layout::Column { "column" } else { "row" });
    let doc = json["doc"].as_str().unwrap();
    let contract = [op.doc, target.doc].concat();
    assert!(!doc.starts_with(' ') && doc.lines().count() == contract.lines().count());
    assert_eq!(json["captured"], target.captured);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(doc), words(&contract));
    let first = target.signatures[0];
    let rules: Vec<&str> = first.requirements.iter().map(|rule| rule.reason).collect();
    assert_eq!(strings(&json["requires"]), rules);
    let dims = json["dims"].as_array().unwrap();
    assert_eq!(dims.len(), first.dims.len());
    for (json, dim) in dims.iter().zip(first.dims) {
        assert_eq!(json["name"], dim.name);
        assert_eq!(json["formula"].as_str(), dim.formula.as_ref().map(|it| it.text));
    }
    let attrs = json["attrs"].as_array().unwrap();
    assert_eq!(attrs.len(), first.attrs.len());
    for (json, attr) in attrs.iter().zip(first.attrs) {
        assert_eq!(
            (json["name"].as_str(), json["type"].as_str()),
            (Some(attr.name), Some(attr.kind))
        );
        assert_eq!(json["optional"], attr.optional);
        let codes = attr.codes.map(|codes| codes());
        let code = |code: &xla_ffi::Code| json!({ "code": code.code, "name": code.name });
        let codes = codes.map_or(Json::Null, |codes| codes.iter().map(code).collect());
        assert_eq!(json["codes"], codes);
    }
    let variants = json["variants"].as_array().unwrap();
    assert_eq!(variants.len(), target.signatures.len());
    for (json, signature) in variants.iter().zip(target.signatures) {
        assert_eq!(json["dtype"], signature.args[0].dtype.to_string());
        check_operands(&json["args"], signature, signature.args);
        check_operands(&json["rets"], signature, signature.rets);
    }
}

fn check_operands(json: &Json, signature: &Signature, operands: &[Operand]) {
    let list = json.as_array().unwrap();
    assert_eq!(list.len(), operands.len());
    for (json, operand) in list.iter().zip(operands) {
        assert_eq!(json["name"], operand.name);
        assert_eq!(json["dtype"], operand.dtype.to_string());
        let dims: Vec<&str> = operand.dims.iter().map(|dim| signature.dims[*dim].name).collect();
        assert_eq!(strings(&json["dims"]), dims);
        let alias = json["alias"].as_u64().map(|index| usize::try_from(index).unwrap());
        assert_eq!(alias, operand.alias);
    }
}

fn error(request: &str) -> String {
    let answer = infer(request);
    let error = answer["error"].as_str();
    error.unwrap_or_else(|| panic!("{request} gives {answer}")).to_owned()
}

#[test]
fn inference_answers_whatever_it_is_asked() {
    let right = json!({
        "target": "lapack_dgetrf_ffi", "platform": "cpu",
        "args": [{ "dtype": "f64", "shape": [5, 4, 3] }],
    });
    let rets = json!({ "rets": [
        { "dtype": "f64", "shape": [5, 4, 3] },
        { "dtype": "i32", "shape": [5, 3] },
        { "dtype": "i32", "shape": [5] },
    ] });
    assert_eq!(infer(&right.to_string()), rets);
    let with = |key: &str, value: Json| {
        let mut request = right.clone();
        request[key] = value;
        error(&request.to_string())
    };
    let cases = [
        (with("target", json!("lapack_qgetrf_ffi")), "lapack_qgetrf_ffi"),
        (with("target", json!(7)), "`target`"),
        (with("platform", json!("TPU")), "TPU"),
        (with("platform", json!(null)), "`platform`"),
        (with("args", json!([])), "expected 1 argument (a), got 0"),
        (with("args", json!(null)), "expected 1 argument (a), got 0"),
        (with("args", json!([3])), "not an operand: 3"),
        (with("args", json!([{ "dtype": "f64" }])), "not an operand"),
        (with("args", json!([{ "dtype": "f64", "shape": [1.5, 2] }])), "not an operand"),
        (with("args", json!([{ "dtype": "f64", "shape": [1e30, 2] }])), "not an operand"),
        (with("args", json!([{ "dtype": "float", "shape": [2, 2] }])), "type float"),
        (with("args", json!([{ "dtype": "f64", "shape": [-1, 2] }])), "[-1, 2]"),
        (with("args", json!([{ "dtype": "f64", "shape": [1_i64 << 62, 4] }])), "address space"),
        (with("attrs", json!({ "uplo": 76 })), "attribute `uplo`: expected no attributes"),
        (with("attrs", json!({ "uplo": [76] })), "attribute `uplo`"),
        (with("dims", json!({ "q": 3 })), "dimension `q`"),
        (
            with("dims", json!({ "m": "x" })),
            "lapack_dgetrf_ffi: dimension `m`: expected a size, got \"x\"",
        ),
        (with("dims", json!({ "m": 5 })), "m=5"),
        (error(""), "lapax_infer: "),
        (error("{"), "lapax_infer: "),
        (error("[1, 2]"), "`target`"),
        (error("\"text\""), "`target`"),
        (error(&"[".repeat(100_000)), "lapax_infer: "),
    ];
    for (error, part) in cases {
        assert!(error.contains(part), "{error:?} without {part:?}");
    }
    // A dimension that nothing fixes is asked for.
    let request = json!({
        "target": "cu_lu_pivots_to_permutation", "platform": "cpu",
        "args": [{ "dtype": "i32", "shape": [4] }],
    });
    assert_eq!(
        error(&request.to_string()),
        "cu_lu_pivots_to_permutation: dimension `p` of result `permutation`: no argument fixes it, \
         pass it"
    );
    for (size, told) in [
        (json!(-4), "dimension `p`: expected a size, got -4"),
        (json!(i64::MIN), "dimension `p`: expected a size, got -9223372036854775808"),
        (json!(u64::MAX), "dimension `p`: expected a size, got 18446744073709551615"),
        (json!(1e30), "dimension `p`: expected a size, got 1e"),
        (json!(i64::MAX), "is larger than an address space"),
    ] {
        let mut absurd = request.clone();
        absurd["dims"] = json!({ "p": size });
        let error = error(&absurd.to_string());
        assert!(error.starts_with("cu_lu_pivots_to_permutation: "), "{error}");
        assert!(error.contains(told), "{error:?} without {told:?}");
    }
}

/// Whatever sizes arguments and free dimensions have, no result has a negative one or more elements than
/// an address space, and nothing overflows.
#[test]
fn inference_never_answers_a_shape_that_is_none() {
    const SIZES: [i64; 7] = [-1, 0, 1, 2, 3, 1 << 40, i64::MAX];
    for (_, target) in targets() {
        let signature = target.signatures[0];
        let code = |attr: &xla_ffi::Attr| match (attr.codes, attr.kind) {
            (Some(codes), _) => json!(codes()[0].code),
            (None, "bool") => json!(true),
            (None, _) => json!(1),
        };
        let attrs: serde_json::Map<String, Json> =
            signature.attrs.iter().map(|attr| (attr.name.to_owned(), code(attr))).collect();
        let free: Vec<&str> = (signature.dims.iter().enumerate())
            .filter(|(index, dim)| {
                dim.formula.is_none() && !signature.args.iter().any(|arg| arg.dims.contains(index))
            })
            .map(|(_, dim)| dim.name)
            .collect();
        for size in SIZES {
            for free_size in SIZES {
                let shape = |operand: &Operand| vec![size; operand.dims.len()];
                let args: Vec<Json> = (signature.args.iter())
                    .map(|it| json!({ "dtype": it.dtype.to_string(), "shape": shape(it) }))
                    .collect();
                let dims: serde_json::Map<String, Json> =
                    free.iter().map(|name| ((*name).to_owned(), json!(free_size))).collect();
                let request = json!({
                    "target": target.name, "platform": target.platform.name(),
                    "args": args, "attrs": attrs, "dims": dims,
                });
                let answer = infer(&request.to_string());
                if let Some(error) = answer["error"].as_str() {
                    assert!(error.starts_with(&format!("{}: ", target.name)), "{request}: {error}");
                    continue;
                }
                for ret in answer["rets"].as_array().unwrap() {
                    let sizes = ret["shape"].as_array().unwrap().iter().map(|it| it.as_i64());
                    let elements = sizes.map(|it| usize::try_from(it.unwrap()).unwrap());
                    let elements = elements.fold(1_usize, |all, it| all.checked_mul(it).unwrap());
                    assert!(elements <= isize::MAX.unsigned_abs(), "{request}");
                }
            }
        }
    }
}

#[test]
fn a_route_is_that_of_the_call() {
    let route = |routine, dtype, batch: Json, sizes: Json| {
        let request = json!({ "routine": routine, "dtype": dtype, "batch": batch, "sizes": sizes });
        asked(lapax_route, &request.to_string())
    };
    let ways = [("lu", 1000, "Parallel"), ("lu", 300, "Blocked"), ("lu", 3, "Unblocked")];
    for (routine, n, way) in ways {
        let answer = route(routine, "c128", json!(1), json!([n]));
        assert_eq!((&answer["route"], &answer["sizes"]), (&json!(way), &json!({ "m": n, "n": n })));
        assert!(answer["what"].as_str().is_some_and(|what| what.len() > 10), "{answer}");
    }
    assert_eq!(route("lu", "f64", json!(100), json!([3]))["route"], "Lanes");
    assert_eq!(route("trsm", "f32", json!(1), json!([7]))["sizes"], json!({ "n": 7, "nrhs": 1 }));
    let error = |answer: Json| answer["error"].as_str().unwrap_or_default().to_owned();
    let refused = [
        (route("svd_of_all", "f64", json!(1), json!([3])), "no routine svd_of_all; there are "),
        (
            route("lu", "f16", json!(1), json!([3])),
            "lu: expected dtype f32, f64, c64 or c128, got f16",
        ),
        (route("lu", "f64", json!(-1), json!([3])), "lu: batch: expected a size, got -1"),
        (route("lu", "f64", json!(1), json!([])), "lu: expected sizes m, n, got 0 of them"),
        (route("lu", "f64", json!(1), json!([1, 2, 3])), "lu: expected sizes m, n, got 3 of them"),
        (route("lu", "f64", json!(1), json!([1, "x"])), "lu: n: expected a size, got \"x\""),
        (asked(lapax_route, "{}"), "lapax_route: no string `routine` in the request"),
        (asked(lapax_route, "{"), "lapax_route: EOF"),
    ];
    for (answer, message) in refused {
        assert!(error(answer.clone()).starts_with(message), "{answer}, not {message}");
    }
}

#[test]
fn null_and_bytes_that_are_no_text() {
    for request in [std::ptr::null(), c"\xff\xfe".as_ptr()] {
        for (name, export) in [("lapax_infer", lapax_infer as Export), ("lapax_route", lapax_route)]
        {
            // SAFETY: null or a C string; the answer is a C string, freed once.
            unsafe {
                let answer = export(request);
                let json: Json = serde_json::from_slice(CStr::from_ptr(answer).to_bytes()).unwrap();
                let error = format!("{name}: the request is not a UTF-8 string");
                assert_eq!(json, json!({ "error": error }));
                lapax_free(answer);
            }
        }
    }
    // SAFETY: null is allowed.
    unsafe { lapax_free(std::ptr::null_mut()) };
}
