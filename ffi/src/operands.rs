//! The arguments and results of a call, taken one after the other by the types that stand for them.

use std::marker::PhantomData;

use crate::buffer::{ANY_RANK, AnyBuffer, AnyBufferMut, Buffer, BufferMut, Rest, Token};
use crate::data_type::{DataType, Element};
use crate::device::{Device, DeviceMut};
use crate::error::push_number;
use crate::frame::all_are;
use crate::sys;

/// How many operands a type takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there are no others")]
pub enum Arity {
    /// Always one.
    One,
    /// One, or none at the end of the list.
    AtMostOne,
    /// All that are left.
    Rest,
}

/// Whether operands of these arities can be told apart: those that may be missing come after all that
/// may not, and at most one, the last, takes the rest.
pub const fn in_order(arities: &[Arity]) -> bool {
    let mut index = 1;
    while index < arities.len() {
        match (arities[index - 1], arities[index]) {
            (Arity::Rest, _) | (Arity::AtMostOne, Arity::One) => return false,
            _ => index += 1,
        }
    }
    true
}

/// Arguments or results of a call, taken one after the other.
#[derive(Clone, Copy)]
pub struct Operands<'f> {
    list: List<'f>,
    next: usize,
    /// Whether it is known that all are buffers.
    buffers: bool,
}

#[derive(Clone, Copy)]
enum List<'f> {
    Args(&'f sys::XLA_FFI_Args),
    Rets(&'f sys::XLA_FFI_Rets),
}

impl<'f> Operands<'f> {
    pub(crate) fn args(frame: &'f sys::XLA_FFI_CallFrame) -> Self {
        Operands { list: List::Args(&frame.args), next: 0, buffers: false }
    }

    pub(crate) fn rets(frame: &'f sys::XLA_FFI_CallFrame) -> Self {
        Operands { list: List::Rets(&frame.rets), next: 0, buffers: false }
    }

    /// How many there are.
    #[inline(always)]
    pub fn count(&self) -> usize {
        let size = match self.list {
            List::Args(args) => args.size,
            List::Rets(rets) => rets.size,
        };
        usize::try_from(size).unwrap_or(0)
    }

    /// Whether there may be so many for types of these arities. Where none is optional, to know the
    /// number first, and that all are buffers, saves looking at both for each.
    #[inline(always)]
    pub fn fit<const N: usize>(&mut self, arities: &[Arity; N]) -> bool {
        if arities.iter().any(|arity| *arity != Arity::One) {
            return true;
        }
        if self.count() != N {
            return false;
        }
        // SAFETY: there are N operands, each with a type (Frame::new's contract).
        self.buffers = unsafe {
            match self.list {
                List::Args(args) => all_are::<_, N>(args.types, sys::XLA_FFI_ArgType_BUFFER),
                List::Rets(rets) => all_are::<_, N>(rets.types, sys::XLA_FFI_RetType_BUFFER),
            }
        };
        self.buffers
    }

    /// How many were taken.
    pub fn taken(&self) -> usize {
        self.next
    }

    /// Whether all were taken.
    #[inline(always)]
    pub fn exhausted(&self) -> bool {
        self.next == self.count()
    }

    /// Takes the next one, if it is a buffer.
    #[inline(always)]
    fn buffer(&mut self) -> Option<AnyBuffer<'f>> {
        if self.next >= self.count() {
            return None;
        }
        let at = self.next;
        // SAFETY: at < size, so both arrays have this entry (Frame::new's contract), and an entry of
        // type BUFFER points to a buffer.
        let buffer = unsafe {
            let (is_buffer, operand) = match self.list {
                List::Args(args) => {
                    let buffer = self.buffers || *args.types.add(at) == sys::XLA_FFI_ArgType_BUFFER;
                    (buffer, *args.args.add(at))
                }
                List::Rets(rets) => {
                    let buffer = self.buffers || *rets.types.add(at) == sys::XLA_FFI_RetType_BUFFER;
                    (buffer, *rets.rets.add(at))
                }
            };
            is_buffer.then(|| &*operand.cast::<sys::XLA_FFI_Buffer>())?
        };
        self.next += 1;
        Some(AnyBuffer(buffer))
    }

    /// Says what the next one is, and takes it.
    pub(crate) fn describe(&mut self, text: &mut String) {
        if self.exhausted() {
            return text.push_str("nothing");
        }
        let before = self.next;
        match self.buffer() {
            // Writing to a String does not fail.
            Some(buffer) => buffer.describe(text).unwrap_or(()),
            None => text.push_str("no buffer"),
        }
        self.next = before + 1;
    }
}

/// A type that decodes arguments of a call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no argument of a call",
    note = "arguments are Buffer<'f, T>, Buffer<'f, T, RANK>, AnyBuffer<'f>, Device<'f, T>, Token<'f>, \
            Option of these, and Rest<'f, AnyBuffer<'f>>"
)]
pub trait FromArg<'f>: Sized {
    /// How many arguments it takes.
    const ARITY: Arity = Arity::One;

    /// The value, or None where what comes next is something else.
    fn from_arg(args: &mut Operands<'f>) -> Option<Self>;

    /// Where it lies; null for what has no memory.
    fn address(&self) -> *const u8;

    /// Says what must come next: `f32 of rank 2`.
    fn expected(text: &mut String);
}

/// A type that decodes results of a call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no result of a call",
    note = "results are BufferMut<'f, T>, BufferMut<'f, T, RANK>, AnyBufferMut<'f>, DeviceMut<'f, T>, \
            Token<'f>, Option of these, and Rest<'f, AnyBufferMut<'f>>"
)]
pub trait FromRet<'f>: Sized {
    /// How many results it takes.
    const ARITY: Arity = Arity::One;

    /// The value, or None where what comes next is something else.
    fn from_ret(rets: &mut Operands<'f>) -> Option<Self>;

    /// Where it lies; null for what has no memory.
    fn address(&self) -> *const u8;

    /// Says what must come next.
    fn expected(text: &mut String);
}

fn describe_typed<T: Element, const RANK: usize>(text: &mut String) {
    // Writing to a String does not fail.
    let _ = T::DTYPE.describe(text);
    if RANK != ANY_RANK {
        text.push_str(" of rank ");
        push_number(text, RANK);
    }
}

impl<'f> FromArg<'f> for AnyBuffer<'f> {
    #[inline(always)]
    fn from_arg(args: &mut Operands<'f>) -> Option<Self> {
        args.buffer()
    }

    #[inline(always)]
    fn address(&self) -> *const u8 {
        self.as_ptr()
    }

    fn expected(text: &mut String) {
        text.push_str("a buffer");
    }
}

impl<'f> FromRet<'f> for AnyBufferMut<'f> {
    #[inline(always)]
    fn from_ret(rets: &mut Operands<'f>) -> Option<Self> {
        rets.buffer().map(AnyBufferMut)
    }

    #[inline(always)]
    fn address(&self) -> *const u8 {
        self.shape().as_ptr()
    }

    fn expected(text: &mut String) {
        text.push_str("a buffer");
    }
}

impl<'f, T: Element> FromArg<'f> for Device<'f, T> {
    #[inline(always)]
    fn from_arg(args: &mut Operands<'f>) -> Option<Self> {
        Device::of(args.buffer()?)
    }

    #[inline(always)]
    fn address(&self) -> *const u8 {
        self.as_ptr().cast()
    }

    fn expected(text: &mut String) {
        describe_typed::<T, ANY_RANK>(text);
    }
}

impl<'f, T: Element> FromRet<'f> for DeviceMut<'f, T> {
    #[inline(always)]
    fn from_ret(rets: &mut Operands<'f>) -> Option<Self> {
        DeviceMut::of(rets.buffer()?)
    }

    #[inline(always)]
    fn address(&self) -> *const u8 {
        self.as_ptr().cast()
    }

    fn expected(text: &mut String) {
        describe_typed::<T, ANY_RANK>(text);
    }
}

impl<'f, T: Element, const RANK: usize> FromArg<'f> for Buffer<'f, T, RANK> {
    #[inline(always)]
    fn from_arg(args: &mut Operands<'f>) -> Option<Self> {
        Buffer::new(args.buffer()?)
    }

    #[inline(always)]
    fn address(&self) -> *const u8 {
        self.as_ptr().cast()
    }

    fn expected(text: &mut String) {
        describe_typed::<T, RANK>(text);
    }
}

impl<'f, T: Element, const RANK: usize> FromRet<'f> for BufferMut<'f, T, RANK> {
    #[inline(always)]
    fn from_ret(rets: &mut Operands<'f>) -> Option<Self> {
        BufferMut::new(rets.buffer()?)
    }

    #[inline(always)]
    fn address(&self) -> *const u8 {
        self.as_ptr().cast()
    }

    fn expected(text: &mut String) {
        describe_typed::<T, RANK>(text);
    }
}

macro_rules! operand {
    ($trait:ident, $decode:ident, $any:ident) => {
        impl<'f> $trait<'f> for Token<'f> {
            #[inline(always)]
            fn $decode(operands: &mut Operands<'f>) -> Option<Self> {
                let buffer = operands.buffer()?;
                let token = buffer.dtype() == DataType::TOKEN && buffer.rank() == 0;
                token.then_some(Token(PhantomData))
            }

            #[inline(always)]
            fn address(&self) -> *const u8 {
                std::ptr::null()
            }

            fn expected(text: &mut String) {
                text.push_str("a token");
            }
        }

        impl<'f, T: $trait<'f>> $trait<'f> for Option<T> {
            const ARITY: Arity = Arity::AtMostOne;

            #[inline(always)]
            fn $decode(operands: &mut Operands<'f>) -> Option<Self> {
                const { assert!(matches!(T::ARITY, Arity::One), "an Option holds one operand") };
                if operands.exhausted() {
                    return Some(None);
                }
                T::$decode(operands).map(Some)
            }

            #[inline(always)]
            fn address(&self) -> *const u8 {
                self.as_ref().map_or(std::ptr::null(), T::address)
            }

            fn expected(text: &mut String) {
                T::expected(text);
                text.push_str(" or nothing");
            }
        }

        impl<'f> $trait<'f> for Rest<'f, $any<'f>> {
            const ARITY: Arity = Arity::Rest;

            fn $decode(operands: &mut Operands<'f>) -> Option<Self> {
                let mut rest = Vec::with_capacity(operands.count() - operands.taken());
                while !operands.exhausted() {
                    rest.push(<$any<'f> as $trait<'f>>::$decode(operands)?);
                }
                Some(Rest(rest, PhantomData))
            }

            fn address(&self) -> *const u8 {
                std::ptr::null()
            }

            fn expected(text: &mut String) {
                text.push_str("buffers");
            }
        }
    };
}

operand!(FromArg, from_arg, AnyBuffer);
operand!(FromRet, from_ret, AnyBufferMut);

/// Whether these results share an address with these arguments or with each other: then it is worth to
/// look closer.
#[inline(always)]
pub fn meet<const A: usize, const R: usize>(args: [*const u8; A], rets: [*const u8; R]) -> bool {
    let mut meet = false;
    // Two loops, which are unrolled, not one over a chain, which is not.
    for at in 0..R {
        for other in args {
            meet |= std::ptr::eq(rets[at], other);
        }
        for other in 0..at {
            meet |= std::ptr::eq(rets[at], rets[other]);
        }
    }
    meet
}

/// Whether a list of operands of these arities has one that takes the rest.
pub const fn has_rest(arities: &[Arity]) -> bool {
    matches!(arities.last(), Some(Arity::Rest))
}

/// Whether a result shares memory with an argument or with another result. Tokens and empty buffers do
/// not count, since XLA gives them all one address.
#[cold]
#[inline(never)]
pub(crate) fn shared(frame: &sys::XLA_FFI_CallFrame) -> bool {
    fn buffer<'f>(operands: Operands<'f>, at: usize) -> Option<AnyBuffer<'f>> {
        Operands { next: at, ..operands }.buffer()
    }
    fn has_memory(it: AnyBuffer<'_>) -> bool {
        it.element_count() != Some(0) && it.dtype() != DataType::TOKEN && !it.as_ptr().is_null()
    }
    let (args, rets) = (Operands::args(frame), Operands::rets(frame));
    (0..rets.count()).any(|at| {
        let Some(ret) = buffer(rets, at) else { return false };
        let meets = |other: AnyBuffer<'_>| {
            std::ptr::eq(other.as_ptr(), ret.as_ptr()) && has_memory(other) && has_memory(ret)
        };
        (0..args.count()).any(|arg| buffer(args, arg).is_some_and(meets))
            || (0..at).any(|other| buffer(rets, other).is_some_and(meets))
    })
}
