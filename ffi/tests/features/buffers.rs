//! Operands: any and fixed types and ranks, tokens, optional and remaining ones, counts, sharing.

use std::cell::Cell;

use num_complex::Complex;
use xla_ffi::fake::Call;
use xla_ffi::{
    AnyBuffer, AnyBufferMut, Buffer, BufferMut, DataType, Device, DeviceMut, Pred, Rest, Token,
};

use crate::{refusal, run};

thread_local! {
    static SEEN: Cell<usize> = const { Cell::new(0) };
}

xla_ffi::handler! {
    /// Copies bytes of whatever type.
    pub(crate) fn copy(call: Copy<'f>, _context) in Execute {
        args { x: AnyBuffer<'f> }
        rets { y: AnyBufferMut<'f> }
    } => {
        let Copy { x, mut y, .. } = call;
        assert_eq!((x.rank(), x.dims()), (y.shape().rank(), y.shape().dims()));
        assert_eq!(x.byte_size(), y.shape().byte_size());
        match x.dtype() {
            DataType::F32 => y.as_mut_slice::<f32>().unwrap().copy_from_slice(x.as_slice().unwrap()),
            DataType::C128 => {
                type C = Complex<f64>;
                y.as_mut_slice::<C>().unwrap().copy_from_slice(x.as_slice().unwrap());
                assert!(x.as_slice::<f64>().is_none() && y.as_mut_slice::<f32>().is_none());
            }
            other => return Err(xla_ffi::Error::invalid_argument(format!("{other}?"))),
        }
        Ok(())
    }
}

#[test]
fn any_buffer() {
    let (x, mut y) = ([1.0_f32, 2.0, 3.0, 4.0], [0.0_f32; 4]);
    assert_eq!(run(copy, &Call::new().arg(&[2, 2], &x).ret(&[2, 2], &mut y)), Ok(()));
    assert_eq!(x, y);
    let (x, mut y) = ([Complex::new(1.0, 2.0)], [Complex::new(0.0, 0.0)]);
    assert_eq!(run(copy, &Call::new().arg(&[], &x).ret(&[], &mut y)), Ok(()));
    assert_eq!(x, y);
    let (x, mut y) = ([1_u8], [0_u8]);
    let refused = refusal(copy, &Call::new().arg(&[1], &x).ret(&[1], &mut y));
    assert_eq!(refused, "copy: u8?");
}

xla_ffi::handler! {
    pub(crate) fn typed(call: Typed<'f>, _context) in Execute {
        args { a: Buffer<'f, f64, 2>, p: Buffer<'f, Pred> }
        rets { s: BufferMut<'f, f64, 0>, scratch: BufferMut<'f, i32> }
    } => {
        let Typed { a, p, mut s, mut scratch, .. } = call;
        let [rows, columns] = a.sizes();
        assert_eq!(rows * columns, a.len());
        // A result as temporary memory.
        scratch.fill(1);
        s[0] = a.iter().sum::<f64>() + f64::from(scratch.iter().sum::<i32>());
        s[0] += p.iter().map(|p| f64::from(p.0)).sum::<f64>();
        Ok(())
    }
}

#[test]
fn typed_buffers_of_any_and_of_fixed_rank() {
    let (a, p) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [Pred(0), Pred(1)]);
    let (mut s, mut scratch) = ([0.0], [0; 4]);
    let call = Call::new().arg(&[2, 3], &a).arg(&[2], &p);
    let call = call.ret(&[], &mut s).ret(&[2, 2], &mut scratch);
    assert_eq!(run(typed, &call), Ok(()));
    drop(call);
    assert_eq!(s, [26.0]);
}

/// All mismatches in one message, each with operand, expected and got, and apart from each other.
#[test]
fn wrong_operands_in_one_message() {
    let (a, p) = ([1.0_f32; 6], [1_u8]);
    let (mut s, mut scratch) = ([0.0_f64; 2], [0_i32; 4]);
    let call = Call::new().arg(&[2, 3], &a).arg(&[], &p);
    let call = call.ret(&[2], &mut s).ret(&[4], &mut scratch);
    assert_eq!(
        refusal(typed, &call),
        "typed: argument 0 `a`: expected f64 of rank 2, got f32 [2, 3]; argument 1 `p`: expected \
         bool, got u8 []; result 0 `s`: expected f64 of rank 0, got f64 [2]"
    );
}

#[test]
fn wrong_counts() {
    let a = [1.0_f64; 6];
    let (mut s, mut scratch) = ([0.0_f64], [0_i32; 4]);
    let call = Call::new().arg(&[2, 3], &a);
    let call = call.ret(&[], &mut s).ret(&[4], &mut scratch);
    let missing = "typed: argument 1 `p`: expected bool, got nothing";
    assert_eq!(refusal(typed, &call), missing);
    let (p, mut more) = ([Pred(0)], [0_i32]);
    let call = call.arg(&[1], &p).ret(&[1], &mut more);
    let much = "typed: expected 2 results (s, scratch), got 3";
    assert_eq!(refusal(typed, &call), much);
}

xla_ffi::handler! {
    pub(crate) fn ordered(call: Ordered<'f>, _context) in Execute {
        args { before: Token<'f>, x: Buffer<'f, f32> }
        rets { after: Token<'f>, y: BufferMut<'f, f32> }
    } => {
        let Ordered { x, mut y, .. } = call;
        y.copy_from_slice(&x);
        Ok(())
    }
}

#[test]
fn tokens() {
    let (x, mut y) = ([1.0_f32], [0.0_f32]);
    // SAFETY: a token has no elements.
    let call = unsafe { Call::new().shape_only(false, DataType::TOKEN, &[]) };
    // SAFETY: as above.
    let call = unsafe { call.arg(&[1], &x).shape_only(true, DataType::TOKEN, &[]) };
    assert_eq!(run(ordered, &call.ret(&[1], &mut y)), Ok(()));
    assert_eq!(y, x);
    let call = Call::new().arg(&[1], &x).arg(&[1], &x);
    let refused = refusal(ordered, &call);
    assert!(refused.starts_with("ordered: argument 0 `before`: expected a token, got f32 [1]; "));
}

xla_ffi::handler! {
    pub(crate) fn optional(call: Optional<'f>, _context) in Execute {
        args { x: Buffer<'f, f32>, bias: Option<Buffer<'f, f32>>, more: Option<AnyBuffer<'f>> }
        rets { y: BufferMut<'f, f32>, count: Option<BufferMut<'f, i32>> }
    } => {
        let Optional { x, bias, more, mut y, count, .. } = call;
        y[0] = x[0] + bias.as_ref().map_or(0.0, |bias| bias[0]);
        if let Some(mut count) = count {
            count[0] = 1 + i32::from(bias.is_some()) + i32::from(more.is_some());
        }
        Ok(())
    }
}

#[test]
fn optional_arguments_and_results() {
    let (x, bias) = ([1.0_f32], [10.0_f32]);
    let (mut y, mut count) = ([0.0_f32], [0]);
    assert_eq!(run(optional, &Call::new().arg(&[1], &x).ret(&[1], &mut y)), Ok(()));
    assert_eq!(y, [1.0]);
    let call = Call::new().arg(&[1], &x).arg(&[1], &bias);
    assert_eq!(run(optional, &call.ret(&[1], &mut y).ret(&[1], &mut count)), Ok(()));
    assert_eq!((y, count), ([11.0], [2]));
    // One of the wrong type, and one too many: C++ does not look at the upper count.
    let call = Call::new().arg(&[1], &x).arg(&[1], &count).ret(&[1], &mut y);
    let refused = refusal(optional, &call);
    assert_eq!(refused, "optional: argument 1 `bias`: expected f32 or nothing, got i32 [1]");
    let call = Call::new().arg(&[1], &x).arg(&[1], &x).arg(&[1], &x).arg(&[1], &x);
    let refused = refusal(optional, &call.ret(&[1], &mut y));
    assert_eq!(refused, "optional: expected 3 arguments (x, bias, more), got 4");
}

xla_ffi::handler! {
    /// Tuples come flattened: so many operands in a row.
    pub(crate) fn remaining(call: Remaining<'f>, _context) in Execute {
        args { x: Buffer<'f, f32>, rest: Rest<'f, AnyBuffer<'f>> }
        rets { all: Rest<'f, AnyBufferMut<'f>> }
    } => {
        let Remaining { x, rest, all, .. } = call;
        SEEN.set(rest.len());
        for (arg, mut ret) in std::iter::once(x.as_any()).chain(rest).zip(all) {
            let wrong = || xla_ffi::Error::invalid_argument("not of f32");
            let (arg, ret) = (arg.as_slice::<f32>(), ret.as_mut_slice::<f32>());
            ret.ok_or_else(wrong)?.copy_from_slice(arg.ok_or_else(wrong)?);
        }
        Ok(())
    }
}

#[test]
fn remaining_operands_and_flattened_tuples() {
    let (a, b, c) = ([1.0_f32], [2.0_f32, 3.0], [4.0_f32]);
    let (mut x, mut y) = ([0.0_f32], [0.0_f32; 2]);
    let call = Call::new().arg(&[1], &a).arg(&[2], &b).arg(&[1], &c);
    assert_eq!(run(remaining, &call.ret(&[1], &mut x).ret(&[2], &mut y)), Ok(()));
    assert_eq!((SEEN.get(), x, y), (2, a, b));
    assert_eq!(run(remaining, &Call::new().arg(&[1], &a)), Ok(()));
    assert_eq!(SEEN.get(), 0);
}

/// C++ hands out aliased memory as if it were not; here such a call is refused.
#[test]
fn shared_memory_is_refused() {
    let mut x = [1.0_f32, 2.0];
    let refused = refusal(copy, &Call::new().shared(&[2], &mut x));
    assert!(refused.contains("a result shares memory with an argument"), "{refused}");
    let mut none: [f32; 0] = [];
    assert_eq!(run(copy, &Call::new().shared(&[0], &mut none)), Ok(()), "empty ones may");
}

xla_ffi::handler! {
    /// Looks at nothing: as prepare and initialize handlers may.
    pub(crate) fn blind(_call: Blind<'f>, _context) in Execute {} => { Ok(()) }
}

#[test]
fn sections_left_out_are_not_looked_at() {
    let x = [1.0_f32];
    let call = Call::new().arg(&[1], &x).attr("any", xla_ffi::fake::Attr::I64(1));
    assert_eq!(run(blind, &call), Ok(()));
}

xla_ffi::handler! {
    /// Takes nothing, gives nothing.
    pub(crate) fn empty(_call: Empty<'f>, _context) in Execute { args {} rets {} attrs {} } => { Ok(()) }
}

#[test]
fn empty_sections_stand_for_none() {
    assert_eq!(run(empty, &Call::new()), Ok(()));
    let x = [1.0_f32];
    let call = Call::new().arg(&[1], &x).attr("a", xla_ffi::fake::Attr::I64(1));
    let text = "empty: expected no arguments, got 1; attribute `a`: expected no attributes, got \
                i64 1 as well";
    assert_eq!(refusal(empty, &call), text);
}

#[test]
fn element_types() {
    assert_eq!(DataType::F32.to_complex(), Some(DataType::C64));
    assert_eq!(DataType::F64.to_complex(), Some(DataType::C128));
    assert_eq!(DataType::I32.to_complex(), None);
    assert_eq!(DataType::C128.to_real(), DataType::F64);
    assert_eq!(DataType::BF16.to_real(), DataType::BF16);
    let widths = [DataType::BOOL, DataType::BF16, DataType::F32, DataType::C64, DataType::C128];
    assert_eq!(widths.map(DataType::byte_width), [Some(1), Some(2), Some(4), Some(8), Some(16)]);
    assert_eq!(DataType::TOKEN.byte_width(), None);
    assert_eq!(DataType::from_code(999).byte_width(), None);
}

xla_ffi::handler! {
    pub(crate) fn on_device(call: OnDevice<'f>, _context) in Execute {
        args { x: Device<'f, f32>, empty: Device<'f, f32> }
        rets { y: DeviceMut<'f, f32> }
    } => {
        assert_eq!((call.x.len(), call.empty.len(), call.y.len()), (6, 0, 6));
        assert!(!call.x.as_ptr().is_null() && !call.y.as_ptr().is_null());
        Ok(())
    }
}

#[test]
fn operands_of_a_device_are_addresses() {
    let (x, mut y) = ([0.0_f32; 6], [0.0_f32; 6]);
    let right = Call::new().arg(&[2, 3], &x).arg(&[0, 3], &x[..0]).ret(&[6], &mut y);
    assert_eq!(run(on_device, &right), Ok(()));
    let mut wrong = [0.0_f64; 6];
    let call = Call::new().arg(&[2, 3], &x).arg(&[0, 3], &x[..0]).ret(&[6], &mut wrong);
    assert_eq!(refusal(on_device, &call), "on_device: result 0 `y`: expected f32, got f64 [6]");
}
