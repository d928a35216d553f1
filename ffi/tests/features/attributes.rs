//! Attributes: every kind, structs and enums decoded from them, dictionaries, alternatives.

use xla_ffi::fake::{Attr, Call, Dictionary as D};
use xla_ffi::{Bytes, Dictionary, Pointer};

use crate::{refusal, run};

xla_ffi::attribute! {
    /// From where to where.
    #[derive(Debug, PartialEq)]
    pub(crate) struct Range<'f> { lo: i64, hi: i64, name: Option<&'f str> }
}

xla_ffi::attribute! {
    /// A struct within a struct.
    #[derive(Debug, PartialEq)]
    pub(crate) struct Plan<'f> { range: Range<'f>, eps: f32 }
}

xla_ffi::attribute! {
    /// Of another underlying type than u8.
    #[derive(Debug)]
    pub(crate) enum Mode: i32 { Fast = -1, Exact = 7 }
}

xla_ffi::attribute! {
    /// A number, a list, a mode by its name, or a range.
    #[derive(Debug, PartialEq)]
    pub(crate) enum Size<'f> { One(i64), Each(&'f [i64]), Named(&'f str), Range(Range<'f>) }
}

xla_ffi::handler! {
    pub(crate) fn all_kinds(call: AllKinds<'f>, _context) in Execute {
        attrs {
            flag: bool, word: &'f str, list: &'f [f64], address: Pointer<u32>, mode: Mode,
            plan: Plan<'f>, size: Size<'f>, free: Dictionary<'f>, maybe: Option<u16>, raw: &'f Bytes,
        }
    } => {
        assert!(call.flag && call.word == "wörd" && call.list == [1.5, 2.5]);
        // SAFETY: the test's own number.
        assert_eq!(unsafe { *call.address.as_ptr() }, 77);
        assert_eq!(call.mode, Mode::Exact);
        assert_eq!(call.plan.range, Range { lo: -1, hi: 9, name: None });
        assert_eq!((call.plan.eps, call.maybe), (0.5, Some(3)));
        assert_eq!(call.free.get::<i64>("deep").ok(), Some(1));
        assert_eq!(call.raw.as_slice(), NO_TEXT);
        match call.size {
            Size::One(one) => assert_eq!(one, 4),
            Size::Each(each) => assert_eq!(each, [4, 5]),
            Size::Named(name) => assert_eq!(name, "four"),
            Size::Range(range) => assert_eq!(range, Range { lo: 4, hi: 4, name: Some("r") }),
        }
        Ok(())
    }
}

static NUMBER: u32 = 77;

/// Bytes that are not UTF-8.
const NO_TEXT: [u8; 3] = [0, 200, 255];

fn range(lo: i64, hi: i64) -> Attr {
    Attr::Dictionary(D::new(&[("lo", Attr::I64(lo)), ("hi", Attr::I64(hi))]))
}

fn right() -> Call<'static> {
    let address = i64::try_from((&raw const NUMBER).expose_provenance()).unwrap();
    let plan = D::new(&[("eps", Attr::F32(0.5)), ("range", range(-1, 9))]);
    Call::new()
        .attr("flag", Attr::Bool(true))
        .attr("word", Attr::String("wörd".to_owned()))
        .attr("list", Attr::F64s(vec![1.5, 2.5]))
        .attr("address", Attr::I64(address))
        .attr("mode", Attr::I32(7))
        .attr("plan", Attr::Dictionary(plan))
        .attr("size", Attr::I64(4))
        .attr("free", Attr::Dictionary(D::new(&[("deep", Attr::I64(1))])))
        .attr("maybe", Attr::U16(3))
        .attr("raw", Attr::Bytes(NO_TEXT.to_vec()))
}

#[test]
fn all_kinds_at_once() {
    assert_eq!(run(all_kinds, &right()), Ok(()));
}

#[test]
fn alternatives() {
    let named = D::new(&[
        ("lo", Attr::I64(4)),
        ("hi", Attr::I64(4)),
        ("name", Attr::String("r".to_owned())),
    ]);
    let others = [Attr::I64s(vec![4, 5]), Attr::String("four".to_owned()), Attr::Dictionary(named)];
    for value in others {
        assert_eq!(run(all_kinds, &right().attr("size", value)), Ok(()));
    }
    assert_eq!(
        refusal(all_kinds, &right().attr("size", Attr::Bool(true))),
        "all_kinds: attribute `size`: expected i64 or array of i64 or string or dictionary { lo: \
         i64, hi: i64, name: string or nothing }, got bool true"
    );
}

#[test]
fn each_wrong_kind_is_named() {
    let dictionary = |entries: &[(&str, Attr)]| Attr::Dictionary(D::new(entries));
    let (lo, hi) = (("lo", Attr::I64(1)), ("hi", Attr::I64(2)));
    let plan = "dictionary { range: dictionary { lo: i64, hi: i64, name: string or nothing }, \
                eps: f32 }";
    for (name, value, expected, got) in [
        ("flag", Attr::U8(1), "bool", "u8 1"),
        ("word", Attr::I64(1), "string", "i64 1"),
        ("word", Attr::Bytes(NO_TEXT.to_vec()), "string", "string \"\\0��\""),
        ("raw", Attr::I64(1), "string", "i64 1"),
        ("list", Attr::I64s(vec![1]), "array of f64", "array of 1 i64"),
        ("address", Attr::I64(0), "i64, an address", "i64 0"),
        ("mode", Attr::I32(8), "i32 -1 (Fast) or 7 (Exact)", "i32 8"),
        ("maybe", Attr::I16(3), "u16 or nothing", "i16 3"),
        ("free", Attr::I64(3), "dictionary", "i64 3"),
        ("plan", dictionary(&[("eps", Attr::F32(1.0))]), plan, "dictionary { eps: f32 1 }"),
        (
            "plan",
            dictionary(&[
                ("eps", Attr::F32(1.0)),
                ("range", dictionary(&[lo.clone(), hi.clone(), ("mid", Attr::I64(0))])),
            ]),
            plan,
            "dictionary { eps: f32 1, range: dictionary { hi: i64 2, lo: i64 1, mid: i64 0 } }",
        ),
    ] {
        let expected = format!("all_kinds: attribute `{name}`: expected {expected}, got {got}");
        assert_eq!(refusal(all_kinds, &right().attr(name, value)), expected);
    }
}

#[test]
fn attributes_too_many_and_too_few() {
    let names = "flag, word, list, address, mode, plan, size, free, maybe, raw";
    assert_eq!(
        refusal(all_kinds, &right().attr("extra", Attr::I64(1))),
        format!("all_kinds: attribute `extra`: expected only {names}, got i64 1 as well")
    );
    let missing = refusal(all_kinds, &Call::new());
    for name in names.split(", ").filter(|name| *name != "maybe") {
        assert!(missing.contains(&format!("attribute `{name}`: expected ")), "{missing}");
    }
    assert!(!missing.contains("maybe"));
}

xla_ffi::handler! {
    pub(crate) fn whole(call: Whole<'f>, _context) in Execute { all attrs: Dictionary<'f>; } => {
        let attrs = call.attrs;
        if attrs.is_empty() {
            return Err(xla_ffi::Error::invalid_argument("none"));
        }
        let names: Vec<&[u8]> = attrs.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [b"f", b"i", b"s"], "sorted");
        assert!(attrs.contains("f") && !attrs.contains("g"));
        assert!(attrs.is::<f32>("f") && !attrs.is::<f64>("f"));
        // C++ truncates a float that it reads while iterating.
        assert_eq!(attrs.get::<f32>("f"), Ok(2.75));
        assert_eq!(attrs.get_optional::<i64>("none"), Ok(None));
        assert_eq!(attrs.get_optional::<i64>("i"), Ok(Some(3)));
        attrs.get::<i64>("f").map(drop)
    }
}

#[test]
fn whole_dictionary() {
    let call = Call::new()
        .attr("s", Attr::String("s".to_owned()))
        .attr("f", Attr::F32(2.75))
        .attr("i", Attr::I64(3));
    assert_eq!(refusal(whole, &call), "whole: attribute `f`: expected i64, got f32 2.75");
    assert_eq!(refusal(whole, &Call::new()), "whole: none");
}

xla_ffi::handler! {
    pub(crate) fn one_struct(call: OneStruct<'f>, _context) in Execute { all range: Range<'f>; } => {
        assert_eq!(call.range, Range { lo: 1, hi: 2, name: None });
        Ok(())
    }
}

#[test]
fn all_attributes_as_one_struct() {
    let call = Call::new().attr("lo", Attr::I64(1)).attr("hi", Attr::I64(2));
    assert_eq!(run(one_struct, &call), Ok(()));
    assert_eq!(
        refusal(one_struct, &call.attr("mid", Attr::I64(1)).attr("hi", Attr::I32(2))),
        "one_struct: attribute `hi`: expected i64, got i32 2; attribute `mid`: expected only lo, \
         hi, name, got i64 1 as well"
    );
}
