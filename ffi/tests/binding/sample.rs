//! The handler under test: every kind of attribute, an in-out operand, a derived dimension, two
//! element types and requirements.

use std::ops::Add;

use num_complex::Complex;
use xla_ffi::fake::Attr;
use xla_ffi::sys::XLA_FFI_Handler;
use xla_ffi::{Call, Context, Element, Frame, Handler, Outcome, Signature, signature};

use crate::plan::{Operand, Plan};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Lower,
    Upper,
    /// A code that is no letter.
    Both,
}

impl TryFrom<u8> for Mode {
    type Error = ();

    fn try_from(code: u8) -> Result<Self, ()> {
        match code {
            b'L' => Ok(Mode::Lower),
            b'U' => Ok(Mode::Upper),
            3 => Ok(Mode::Both),
            _ => Err(()),
        }
    }
}

signature! {
    /// lu = 2 a, piv = 0, 1, …, wide = 7, info = the number of the problem.
    pub(crate) struct Sample<T> {
        dims { m, n, k = min(m, n), p }
        args { a: T [m, n], x: i64 [n] }
        attrs {
            flag: bool, int8: i8, int16: i16, int32: i32, int64: i64,
            uint8: u8, uint16: u16, uint32: u32, uint64: u64,
            single: f32, double: f64, complex64: Complex<f32>, complex128: Complex<f64>,
            mode: Mode as u8, name: &str, perm: &[i64], weights: &[f64],
            size: Option<i32>, side: Option<Mode> as u8, note: Option<&str>,
        }
        rets { lu: T [m, n] = a, piv: i32 [k], wide: u8 [p], info: i32 [] }
        require {
            p >= n => "at least as many columns p as n",
            size.is_none_or(|size| i64::from(size) == m) => "as many rows as size says",
        }
    }
}

pub(crate) struct SampleHandler;

impl Handler for SampleHandler {
    const NAME: &'static str = "sample";
    const SIGNATURES: &'static [&'static Signature] =
        &[Sample::<f32>::SIGNATURE, Sample::<Complex<f64>>::SIGNATURE];

    fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
        if frame.arg_dtype(0) == Some(f32::DTYPE) { run::<f32>(frame) } else { run::<C128>(frame) }
    }
}

pub(crate) type C128 = Complex<f64>;

fn run<T: Element + Add<Output = T>>(frame: Frame<'_>) -> Outcome<'_> {
    let Some(call) = Sample::<T>::decode(frame) else { return Outcome::Mismatch };
    assert_eq!(attrs(&call), ATTRS, "the attributes of `right`");
    assert_eq!(call.piv.len(), call.batch * call.k);
    call.lu.initialized().iter_mut().for_each(|x| *x = *x + *x);
    for piv in call.piv.chunks_exact_mut(call.k.max(1)) {
        piv.iter_mut().zip(0..).for_each(|(piv, index)| *piv = index);
    }
    call.wide.fill(7);
    call.info.iter_mut().zip(0..).for_each(|(info, problem)| *info = problem);
    Outcome::Done(Ok(()))
}

/// The required attributes as text.
fn attrs<T: Element>(call: &Sample<'_, T>) -> String {
    let Sample { flag, int8, int16, int32, int64, uint8, uint16, uint32, uint64, .. } = call;
    let Sample { single, double, complex64, complex128, mode, name, perm, weights, .. } = call;
    format!(
        "{flag} {int8} {int16} {int32} {int64} {uint8} {uint16} {uint32} {uint64} {single} \
         {double} {complex64} {complex128} {mode:?} {name} {perm:?} {weights:?}"
    )
}

const ATTRS: &str = "true -1 -2 -3 -4 1 2 3 4 0.5 0.25 1+2i 3-4i Upper täst [5, -6, 7] []";

/// The dimensions of a call.
#[derive(Clone, Copy)]
pub(crate) struct Sizes<'a> {
    pub(crate) leading: &'a [i64],
    pub(crate) m: i64,
    pub(crate) n: i64,
    pub(crate) p: i64,
}

pub(crate) const SIZES: Sizes<'_> = Sizes { leading: &[2], m: 4, n: 3, p: 5 };

/// A right call: a = 1, 2, ….
pub(crate) fn right<T: Element>(sizes: Sizes<'_>, number: fn(u16) -> T) -> Plan {
    let Sizes { leading, m, n, p } = sizes;
    let full = |own: &[i64]| [leading, own].concat();
    let a = |index: usize| number(u16::try_from(index + 1).unwrap_or(0));
    let attrs = [
        ("flag", Attr::Bool(true)),
        ("int8", Attr::I8(-1)),
        ("int16", Attr::I16(-2)),
        ("int32", Attr::I32(-3)),
        ("int64", Attr::I64(-4)),
        ("uint8", Attr::U8(1)),
        ("uint16", Attr::U16(2)),
        ("uint32", Attr::U32(3)),
        ("uint64", Attr::U64(4)),
        ("single", Attr::F32(0.5)),
        ("double", Attr::F64(0.25)),
        ("complex64", Attr::C64(Complex::new(1.0, 2.0))),
        ("complex128", Attr::C128(Complex::new(3.0, -4.0))),
        ("mode", Attr::U8(b'U')),
        ("name", Attr::String("täst".to_owned())),
        ("perm", Attr::I64s(vec![5, -6, 7])),
        ("weights", Attr::F64s(vec![])),
    ];
    Plan {
        args: vec![Operand::new(&full(&[m, n]), a), Operand::new(&full(&[n]), |_| 0_i64)],
        rets: vec![
            Operand::unwritten(T::DTYPE, &full(&[m, n])),
            Operand::unwritten(i32::DTYPE, &full(&[m.min(n)])),
            Operand::unwritten(u8::DTYPE, &full(&[p])),
            Operand::unwritten(i32::DTYPE, leading),
        ],
        attrs: attrs.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        shared: Vec::new(),
    }
}

/// The right call of [`SIZES`] on f32.
pub(crate) fn usual() -> Plan {
    right(SIZES, f32::from)
}

pub(crate) const HANDLER: XLA_FFI_Handler = Some(xla_ffi::execute::<SampleHandler>);
