//! A call as data that owns its memory: what a test perturbs before it makes the frame.
//!
//! Also included by the contract tests of the root package.

use std::ffi::c_void;

use xla_ffi::fake::{Attr, Call, Failure, Host};
use xla_ffi::sys::{XLA_FFI_Buffer, XLA_FFI_CallFrame, XLA_FFI_Handler};
use xla_ffi::{DataType, Element};

/// What results hold before a call: no integer result, no finite number and no `info` looks so.
pub(crate) const UNWRITTEN: u64 = 0xfff8_dead_fff8_dead;

/// One buffer.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) dtype: DataType,
    pub(crate) dims: Vec<i64>,
    pub(crate) memory: Memory,
}

#[derive(Clone, Debug)]
pub(crate) enum Memory {
    /// At least as many bytes as the dimensions ask for.
    Owned(Vec<u64>),
    /// A pointer that nobody may follow: for empty buffers and for calls to be refused.
    Dangling,
    Null,
}

impl Operand {
    /// A buffer of any element type, unwritten; 16 bytes are the largest element.
    pub(crate) fn unwritten(dtype: DataType, dims: &[i64]) -> Self {
        let memory = Memory::Owned(vec![UNWRITTEN; 2 * elements(dims)]);
        Operand { dtype, dims: dims.to_vec(), memory }
    }

    /// A buffer whose element `i` is `value(i)`.
    pub(crate) fn new<T: Element>(dims: &[i64], value: impl FnMut(usize) -> T) -> Self {
        let mut operand = Self::unwritten(T::DTYPE, dims);
        let values = (0..elements(dims)).map(value);
        operand.values_mut().iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
        operand
    }

    /// A buffer without memory.
    pub(crate) fn dangling(dtype: DataType, dims: &[i64]) -> Self {
        Operand { dtype, dims: dims.to_vec(), memory: Memory::Dangling }
    }

    pub(crate) fn values<T: Element>(&self) -> &[T] {
        assert_eq!(self.dtype, T::DTYPE);
        let Memory::Owned(memory) = &self.memory else { return &[] };
        // SAFETY: the memory holds 16 bytes for each element (`unwritten`), of which any pattern is
        // a T, and u64 is aligned as T at least.
        unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), elements(&self.dims)) }
    }

    pub(crate) fn values_mut<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(self.dtype, T::DTYPE);
        let count = elements(&self.dims);
        let Memory::Owned(memory) = &mut self.memory else { return &mut [] };
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), count) }
    }

    fn pointer(&mut self) -> *mut c_void {
        match &mut self.memory {
            Memory::Owned(memory) => memory.as_mut_ptr().cast(),
            Memory::Dangling => std::ptr::without_provenance_mut(64),
            Memory::Null => std::ptr::null_mut(),
        }
    }
}

/// A call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) args: Vec<Operand>,
    pub(crate) rets: Vec<Operand>,
    pub(crate) attrs: Vec<(String, Attr)>,
    /// (argument, result): the pairs that lie in the same memory, the result's.
    pub(crate) shared: Vec<(usize, usize)>,
}

impl Plan {
    /// Sets or adds an attribute.
    pub(crate) fn set(&mut self, name: &str, value: Attr) {
        self.unset(name);
        self.attrs.push((name.to_owned(), value));
    }

    /// Removes an attribute.
    pub(crate) fn unset(&mut self, name: &str) {
        self.attrs.retain(|(known, _)| known != name);
    }

    /// Runs `body` with the frame of this call.
    pub(crate) fn with_frame<R>(
        &mut self,
        host: &Host,
        body: impl FnOnce(&mut XLA_FFI_CallFrame) -> R,
    ) -> R {
        let mut call = Call::new();
        for (result, operands) in [(false, &self.args), (true, &self.rets)] {
            for operand in operands {
                // SAFETY: the pointer is replaced by the operand's own below.
                call = unsafe { call.shape_only(result, operand.dtype, &operand.dims) };
            }
        }
        for (name, value) in &self.attrs {
            call = call.attr(name, value.clone());
        }
        for &(arg, ret) in &self.shared {
            self.rets[ret].memory = self.args[arg].memory.clone();
        }
        let mut args: Vec<*mut c_void> = self.args.iter_mut().map(Operand::pointer).collect();
        let rets: Vec<*mut c_void> = self.rets.iter_mut().map(Operand::pointer).collect();
        for &(arg, ret) in &self.shared {
            args[arg] = rets[ret];
        }
        call.with_frame(host, |frame| {
            for (list, pointers) in [(frame.args.args, args), (frame.rets.rets, rets)] {
                for (index, pointer) in pointers.into_iter().enumerate() {
                    // SAFETY: the frame has one buffer for each operand.
                    unsafe { (*(*list.add(index)).cast::<XLA_FFI_Buffer>()).data = pointer };
                }
            }
            body(frame)
        })
    }

    /// Makes the call.
    pub(crate) fn execute(&mut self, host: &Host, handler: XLA_FFI_Handler) -> Result<(), Failure> {
        self.with_frame(host, |frame| host.invoke(handler, frame))
    }
}

/// The product of the dimensions, of which negative ones count as 0.
pub(crate) fn elements(dims: &[i64]) -> usize {
    dims.iter().map(|dim| usize::try_from(*dim).unwrap_or(0)).product()
}
