//! Calls that do not fit: each mismatch alone and several at once, with the exact message.

use xla_ffi::fake::{Attr, Failure, Host};
use xla_ffi::{DataType, Element, sys};

use crate::plan::{Operand, Plan};
use crate::sample::{HANDLER, usual};

const INVALID_ARGUMENT: u32 = 3;
const FAILED_PRECONDITION: u32 = 9;

fn failure(plan: &mut Plan) -> Failure {
    plan.execute(&Host::new(), HANDLER).expect_err("a refusal")
}

/// Every case is the usual call (leading [2], m = 4, n = 3, p = 5) with one change.
type Case = (&'static str, fn(&mut Plan), &'static str);

fn check(cases: &[Case]) {
    for (label, change, expected) in cases {
        let mut plan = usual();
        change(&mut plan);
        let Failure { code, message } = failure(&mut plan);
        assert_eq!((code, message), (INVALID_ARGUMENT, format!("sample: {expected}")), "{label}");
    }
}

fn replace(operand: &mut Operand, dtype: DataType, dims: &[i64]) {
    *operand = Operand::unwritten(dtype, dims);
}

const OPERANDS: &[Case] = &[
    ("one argument less", |plan| drop(plan.args.pop()), "expected 2 arguments (a, x), got 1"),
    (
        "one argument more",
        |plan| plan.args.push(Operand::unwritten(DataType::F32, &[2])),
        "expected 2 arguments (a, x), got 3",
    ),
    (
        "no arguments",
        |plan| plan.args.clear(),
        "argument 0 `a`: expected f32 or c128, got no buffer",
    ),
    (
        "one result less",
        |plan| drop(plan.rets.pop()),
        "expected 4 results (lu, piv, wide, info), got 3",
    ),
    (
        "one result more",
        |plan| plan.rets.push(Operand::unwritten(DataType::I32, &[2])),
        "expected 4 results (lu, piv, wide, info), got 5",
    ),
    (
        "first argument's element type",
        |plan| replace(&mut plan.args[0], DataType::F64, &[2, 4, 3]),
        "argument 0 `a`: expected f32 or c128, got f64",
    ),
    (
        "an element type without a name",
        |plan| replace(&mut plan.args[0], DataType::from_code(200), &[2, 4, 3]),
        "argument 0 `a`: expected f32 or c128, got XLA element type 200",
    ),
    (
        "another argument's element type",
        |plan| replace(&mut plan.args[1], DataType::I32, &[2, 3]),
        "argument 1 `x`: expected i64 [2, n=3], got i32 [2, 3]",
    ),
    (
        "a result's element type",
        |plan| replace(&mut plan.rets[2], DataType::BOOL, &[2, 5]),
        "result 2 `wide`: expected u8 [2, p=5], got bool [2, 5]",
    ),
    (
        "in-out of two types",
        |plan| replace(&mut plan.rets[0], DataType::C128, &[2, 4, 3]),
        "result 0 `lu`: expected f32 [2, m=4, n=3], got c128 [2, 4, 3]",
    ),
    (
        "rank too small",
        |plan| replace(&mut plan.args[1], DataType::I64, &[]),
        "argument 1 `x`: expected i64 [2, n=3], got i64 []",
    ),
    (
        "rank too large",
        |plan| replace(&mut plan.rets[3], DataType::I32, &[2, 1]),
        "result 3 `info`: expected i32 [2], got i32 [2, 1]",
    ),
    (
        "own dimension",
        |plan| replace(&mut plan.args[1], DataType::I64, &[2, 4]),
        "argument 1 `x`: expected i64 [2, n=3], got i64 [2, 4]",
    ),
    (
        "leading dimension",
        |plan| replace(&mut plan.rets[3], DataType::I32, &[3]),
        "result 3 `info`: expected i32 [2], got i32 [3]",
    ),
    (
        "derived dimension",
        |plan| replace(&mut plan.rets[1], DataType::I32, &[2, 4]),
        "result 1 `piv`: expected i32 [2, k=min(m, n)=3], got i32 [2, 4]",
    ),
    (
        "requirement on dimensions",
        |plan| replace(&mut plan.rets[2], DataType::U8, &[2, 2]),
        "expected at least as many columns p as n, got n=3, p=2",
    ),
    (
        "requirement on an attribute",
        |plan| plan.set("size", Attr::I32(3)),
        "expected as many rows as size says, got m=4, size=i32 3",
    ),
];

#[test]
fn operands_each_alone() {
    check(OPERANDS);
}

const NAMES: &str = "complex128, complex64, double, flag, int16, int32, int64, int8, mode, name, \
                     note, perm, side, single, size, uint16, uint32, uint64, uint8, weights";

#[test]
fn attributes_each_alone() {
    let mode = "u8 3 (Both) or 'L' (Lower) or 'U' (Upper)";
    let required = [
        ("flag", "bool"),
        ("int8", "i8"),
        ("int16", "i16"),
        ("int32", "i32"),
        ("int64", "i64"),
        ("uint8", "u8"),
        ("uint16", "u16"),
        ("uint32", "u32"),
        ("uint64", "u64"),
        ("single", "f32"),
        ("double", "f64"),
        ("complex64", "c64"),
        ("complex128", "c128"),
        ("mode", mode),
        ("name", "string"),
        ("perm", "array of i64"),
        ("weights", "array of f64"),
    ];
    let optional = [("size", "i32"), ("side", mode), ("note", "string")];
    for (name, kind) in required {
        let mut plan = usual();
        plan.unset(name);
        let expected = format!("sample: attribute `{name}`: expected {kind}, got nothing");
        assert_eq!(failure(&mut plan).message, expected);
    }
    // What each of these says of itself; an attribute is refused by all but its own.
    let values = [
        (Attr::Bool(false), "bool", "bool false"),
        (Attr::I8(-7), "i8", "i8"),
        (Attr::I16(-7), "i16", "i16"),
        (Attr::I32(-7), "i32", "i32 -7"),
        (Attr::I64(1 << 40), "i64", "i64 1099511627776"),
        (Attr::U8(b'X'), "u8", "u8 88 ('X')"),
        (Attr::U8(0), "u8", "u8 0"),
        (Attr::U16(7), "u16", "u16"),
        (Attr::U32(7), "u32", "u32"),
        (Attr::U64(7), "u64", "u64"),
        (Attr::F32(1.5), "f32", "f32 1.5"),
        (Attr::F64(-2.5), "f64", "f64 -2.5"),
        (Attr::C64(1.0.into()), "c64", "c64"),
        (Attr::C128(1.0.into()), "c128", "c128"),
        (Attr::String("a\"b".to_owned()), "string", "string \"a\\\"b\""),
        (Attr::I32s(vec![1, 2]), "array of i32", "array of 2 i32"),
        (Attr::I64s(vec![]), "array of i64", "array of 0 i64"),
        (Attr::F64s(vec![0.5]), "array of f64", "array of 1 f64"),
    ];
    for (name, expected) in required.into_iter().chain(optional) {
        for (value, kind, got) in &values {
            if expected == *kind {
                continue;
            }
            let mut plan = usual();
            plan.set(name, value.clone());
            let Failure { code, message } = failure(&mut plan);
            let got = described(&message, got);
            let expected = format!("sample: attribute `{name}`: expected {expected}, got {got}");
            assert_eq!((code, message), (INVALID_ARGUMENT, expected));
        }
    }
    for code in (0..=u8::MAX).filter(|code| ![3, b'L', b'U'].contains(code)) {
        for name in ["mode", "side"] {
            let mut plan = usual();
            plan.set(name, Attr::U8(code));
            let message = failure(&mut plan).message;
            let expected = format!("sample: attribute `{name}`: expected {mode}, got u8 {code}");
            assert!(message.starts_with(&expected), "{message}");
        }
    }
    let mut plan = usual();
    plan.set("uplo", Attr::U8(b'L'));
    let expected =
        format!("sample: attribute `uplo`: expected only {NAMES}, got u8 76 ('L') as well");
    assert_eq!(failure(&mut plan).message, expected);
}

/// A number without its value in the table above may be shown with it.
fn described<'a>(message: &'a str, got: &'a str) -> &'a str {
    let Some((_, shown)) = message.rsplit_once(", got ") else { return got };
    let bare = !got.contains([' ', '"']);
    if bare && shown.starts_with(&format!("{got} ")) { shown } else { got }
}

#[test]
fn several_at_once_in_one_message() {
    let mut plan = usual();
    replace(&mut plan.args[1], DataType::I32, &[2, 4]);
    replace(&mut plan.rets[1], DataType::I32, &[3, 4]);
    replace(&mut plan.rets[2], DataType::U8, &[2, 1]);
    plan.rets.pop();
    plan.unset("int8");
    plan.set("mode", Attr::U8(b'X'));
    plan.set("size", Attr::I32(9));
    plan.set("zone", Attr::Bool(true));
    let message = [
        "sample: expected 4 results (lu, piv, wide, info), got 3",
        "attribute `int8`: expected i8, got nothing",
        "attribute `mode`: expected u8 3 (Both) or 'L' (Lower) or 'U' (Upper), got u8 88 ('X')",
        &format!("attribute `zone`: expected only {NAMES}, got bool true as well"),
        "argument 1 `x`: expected i64 [2, n=3], got i32 [2, 4]",
        "result 1 `piv`: expected i32 [2, k=min(m, n)=3], got i32 [3, 4]",
        "expected at least as many columns p as n, got n=3, p=1",
        "expected as many rows as size says, got m=4, size=i32 9",
    ];
    assert_eq!(failure(&mut plan), Failure { code: INVALID_ARGUMENT, message: message.join("; ") });
}

/// Negative dimensions are no sizes, wherever they stand.
#[test]
fn negative_dimensions() {
    let cases: [(&[i64], i64, i64); 4] =
        [(&[-1], 4, 3), (&[], -4, 3), (&[], 4, -3), (&[0, -1], 4, 3)];
    for (leading, m, n) in cases {
        let mut plan = usual();
        let own: [&[i64]; 6] = [&[m, n], &[n], &[m, n], &[m.min(n)], &[5], &[]];
        let operands = plan.args.iter_mut().chain(&mut plan.rets);
        for (operand, own) in operands.zip(own) {
            *operand = Operand::dangling(operand.dtype, &[leading, own].concat());
        }
        let Failure { code, message } = failure(&mut plan);
        let shape = format!("f32 {:?}", plan.args[0].dims);
        let named = message.contains("argument 0 `a`: ") && message.contains(&shape);
        assert!(code == INVALID_ARGUMENT && named, "{message}");
        // What was expected is not what came.
        assert!(!message.contains("m=-") && !message.contains("n=-"), "{message}");
    }
}

#[test]
fn other_stages() {
    let stages = ["instantiate", "prepare", "initialize", "execute", "record", "stage 9"];
    for (stage, name) in (0..).zip(stages) {
        let stage = if name == "stage 9" { 9 } else { stage };
        let outcome = usual().with_frame(&Host::new(), |frame| {
            frame.stage = stage;
            Host::new().invoke(HANDLER, frame)
        });
        if stage == sys::XLA_FFI_ExecutionStage_EXECUTE {
            assert_eq!(outcome, Ok(()));
            continue;
        }
        let message = format!("sample: expected execution stage execute, got {name}");
        assert_eq!(outcome, Err(Failure { code: FAILED_PRECONDITION, message }));
    }
}

#[test]
fn short_frames() {
    for size in [0, 40, 167] {
        let outcome = usual().with_frame(&Host::new(), |frame| {
            frame.struct_size = size;
            Host::new().invoke(HANDLER, frame)
        });
        let message = format!(
            "sample: expected an XLA_FFI_CallFrame of at least 168 bytes, got {size}; \
             the host's XLA and this library do not fit together"
        );
        assert_eq!(outcome, Err(Failure { code: INVALID_ARGUMENT, message }));
    }
}

/// An argument that is not a buffer.
#[test]
fn other_kinds_of_argument() {
    let message = usual().with_frame(&Host::new(), |frame| {
        // SAFETY: the frame has two arguments, so their types can be written.
        unsafe { *frame.args.types.add(1) = 77 };
        Host::new().invoke(HANDLER, frame).expect_err("a refusal").message
    });
    assert_eq!(message, "sample: argument 1 `x`: expected i64 [2, n=3], got no buffer");
    assert_eq!(i64::DTYPE, DataType::I64);
}
