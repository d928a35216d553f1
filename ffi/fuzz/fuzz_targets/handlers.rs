//! The handlers: each reads the first and the last element of what it is given.

use num_complex::Complex;
use xla_ffi::{
    AnyBuffer, AnyBufferMut, Buffer, BufferMut, Call, Context, Dictionary, Frame, Handler, Outcome,
    Pointer, Rest, Signature, StageFn, Token, signature,
};

use crate::frame::MEMORY;

pub(crate) static ALL: [StageFn; 6] =
    [typed, any, kinds, whole, nothing, xla_ffi::execute::<Signed>];

/// Touches the ends of a slice whose memory the frame really has.
fn touch<T: Copy>(slice: &[T]) {
    if size_of_val(slice) <= MEMORY {
        std::hint::black_box((slice.first().copied(), slice.last().copied()));
    }
}

fn write<T: Copy + Default>(slice: &mut [T]) {
    if size_of_val(slice) <= MEMORY {
        slice.fill(T::default());
    }
}

xla_ffi::handler! {
    fn typed(call: Typed<'f>, _context) in Execute {
        args { a: Buffer<'f, f64, 2>, b: Option<Buffer<'f, i32>>, t: Option<Token<'f>> }
        rets { y: BufferMut<'f, Complex<f32>, 1>, z: Option<BufferMut<'f, u8>> }
        attrs { n: Option<i64> }
    } => {
        let Typed { a, b, mut y, z, .. } = call;
        touch(&a);
        write(&mut y);
        if let Some(b) = b { touch(&b) }
        if let Some(mut z) = z { write(&mut z) }
        Ok(())
    }
}

xla_ffi::handler! {
    fn any(call: Any<'f>, _context) in Execute {
        args { all: Rest<'f, AnyBuffer<'f>> }
        rets { all_rets: Rest<'f, AnyBufferMut<'f>> }
    } => {
        for buffer in call.all.iter() {
            let _ = (buffer.to_string(), buffer.element_count(), buffer.byte_size());
            if let Some(slice) = buffer.as_slice::<f32>() { touch(slice) }
            if let Some(slice) = buffer.as_slice::<Complex<f64>>() { touch(slice) }
        }
        for mut buffer in call.all_rets {
            if let Some(slice) = buffer.as_mut_slice::<i16>() { write(slice) }
        }
        Ok(())
    }
}

xla_ffi::attribute! {
    struct Range<'f> { lo: i64, hi: Option<i64>, name: &'f str }
}

xla_ffi::attribute! {
    enum Size<'f> { One(i64), Each(&'f [i64]), Named(&'f str), Range(Range<'f>) }
}

xla_ffi::handler! {
    fn kinds(call: Kinds<'f>, _context) in Execute {
        attrs {
            a: Option<bool>, b: Option<&'f str>, c: Option<&'f [f64]>, d: Option<Pointer<u8>>,
            e: Option<Size<'f>>, f: Option<Range<'f>>, g: Option<Complex<f64>>, n: Option<u8>,
        }
    } => {
        if let Some(text) = call.b { touch(text.as_bytes()) }
        if let Some(list) = call.c { touch(list) }
        if let Some(Size::Each(list)) = call.e { touch(list) }
        Ok(())
    }
}

xla_ffi::handler! {
    fn whole(call: Whole<'f>, _context) in Execute { all attrs: Dictionary<'f>; } => {
        walk(call.attrs, 0);
        call.attrs.get::<i64>("n").map(drop)
    }
}

fn walk(dictionary: Dictionary<'_>, depth: usize) {
    for (name, value) in dictionary.iter() {
        touch(name);
        let _ = value.describe();
        if let (xla_ffi::Value::Dictionary(inner), 0..3) = (value, depth) {
            walk(inner, depth + 1);
        }
    }
    let _ = (dictionary.contains("a"), dictionary.is::<&str>("b"), dictionary.get::<f32>("c"));
}

xla_ffi::handler! {
    fn nothing(_call: Nothing<'f>, context) in Initialize {} => {
        let _ = (context.run_id(), context.device_ordinal(), context.thread_pool().threads());
        Ok(())
    }
}

signature! {
    struct Shapes<T> {
        dims { m, n, k = min(m, n), p }
        args { a: T [m, n], x: i32 [n, p?] }
        attrs { n_max: Option<i64>, mode: Option<&str> }
        rets { lu: T [m, n] = a, piv: i32 [k] }
        require { n_max.is_none_or(|most| n >= 0 && k <= most) => "k at most n_max" }
    }
}

struct Signed;

impl Handler for Signed {
    const NAME: &'static str = "signed";
    const SIGNATURES: &'static [&'static Signature] =
        &[Shapes::<f32>::SIGNATURE, Shapes::<f64>::SIGNATURE];

    fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
        if let Some(call) = Shapes::<f32>::decode(frame) {
            touch(call.x);
            write(call.lu.dst);
            write(call.piv);
        } else if let Some(call) = Shapes::<f64>::decode(frame) {
            if let Some(src) = call.lu.src {
                touch(src)
            }
            write(call.piv);
        } else {
            return Outcome::Mismatch;
        }
        Outcome::Done(Ok(()))
    }
}
