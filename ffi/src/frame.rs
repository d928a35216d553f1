//! The call frame: unsafe reading of what XLA passes, behind checks that only say yes or no.
//!
//! Everything here trusts the host's pointers and nothing else: counts, types, ranks and sizes are
//! compared before use. What is wrong with a frame is said elsewhere (`check`).

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::data_type::{DataType, Element};
use crate::dictionary::Dictionary;
use crate::operands::{Operands, shared};
use crate::sys;
use crate::value::{Array, Scalar, Value};

/// The frame of one call. Its operands and attributes are valid for `'f`: until the handler's
/// answer is the call's end, or resolves a future (`future`). It is itself valid while the handler
/// runs, and cannot leave its thread.
#[derive(Clone, Copy)]
pub struct Frame<'f> {
    raw: &'f sys::XLA_FFI_CallFrame,
}

impl<'f> Frame<'f> {
    /// # Safety
    /// The frame and all that it points to obey the C API; the memory of operands and attributes
    /// lives for `'f`, the rest as long as the frame is used; nobody else writes to the results, or
    /// to arguments that share their memory, during `'f`.
    pub unsafe fn new(raw: &'f sys::XLA_FFI_CallFrame) -> Self {
        Frame { raw }
    }

    pub(crate) fn raw(self) -> &'f sys::XLA_FFI_CallFrame {
        self.raw
    }

    /// The operands, if they are so many arguments and results, all of them buffers.
    #[inline(always)]
    pub fn buffers<const ARGS: usize, const RETS: usize>(self) -> Option<Buffers<'f, ARGS, RETS>> {
        let (args, rets) = (&self.raw.args, &self.raw.rets);
        if args.size != count(ARGS) || rets.size != count(RETS) {
            return None;
        }
        // SAFETY: the arrays have so many entries (Frame::new's contract), and an entry of type BUFFER
        // points to a buffer.
        unsafe {
            let buffers = all_are::<_, ARGS>(args.types, sys::XLA_FFI_ArgType_BUFFER)
                && all_are::<_, RETS>(rets.types, sys::XLA_FFI_RetType_BUFFER);
            buffers.then_some(Buffers { args: args.args, rets: rets.rets, frame: PhantomData })
        }
    }

    /// Number of arguments.
    pub fn arg_count(self) -> usize {
        usize::try_from(self.raw.args.size).unwrap_or(0)
    }

    /// Number of results.
    pub fn ret_count(self) -> usize {
        usize::try_from(self.raw.rets.size).unwrap_or(0)
    }

    /// The element type of an argument, if it is a buffer.
    #[inline(always)]
    pub fn arg_dtype(self, index: usize) -> Option<DataType> {
        Some(DataType::from_code(self.arg_buffer(index)?.dtype))
    }

    #[inline(always)]
    pub(crate) fn arg_buffer(self, index: usize) -> Option<&'f sys::XLA_FFI_Buffer> {
        let args = &self.raw.args;
        if count(index) >= args.size {
            return None;
        }
        // SAFETY: index < size, so both arrays have this entry (Frame::new's contract), and an
        // entry of type BUFFER points to a buffer.
        unsafe {
            (*args.types.add(index) == sys::XLA_FFI_ArgType_BUFFER)
                .then(|| &*(*args.args.add(index)).cast::<sys::XLA_FFI_Buffer>())
        }
    }

    #[inline(always)]
    pub(crate) fn ret_buffer(self, index: usize) -> Option<&'f sys::XLA_FFI_Buffer> {
        let rets = &self.raw.rets;
        if count(index) >= rets.size {
            return None;
        }
        // SAFETY: as for arguments.
        unsafe {
            (*rets.types.add(index) == sys::XLA_FFI_RetType_BUFFER)
                .then(|| &*(*rets.rets.add(index)).cast::<sys::XLA_FFI_Buffer>())
        }
    }

    /// The arguments, to be taken one after the other.
    #[inline(always)]
    pub fn args(self) -> Operands<'f> {
        Operands::args(self.raw)
    }

    /// The results, to be taken one after the other.
    ///
    /// # Safety
    /// Each is taken once in a call, and none shares memory with an argument that is taken.
    #[inline(always)]
    pub unsafe fn rets(self) -> Operands<'f> {
        Operands::rets(self.raw)
    }

    /// Calls `body` with this call, its operands replaced with copies that lie elsewhere.
    ///
    /// # Safety
    /// All operands of the call are buffers; `args` and `rets` are as many, of the same types and
    /// dimensions, with memory as [`Frame::new`] asks.
    pub unsafe fn with_copies<R>(
        self,
        args: &[sys::XLA_FFI_Buffer],
        rets: &[sys::XLA_FFI_Buffer],
        body: impl FnOnce(Frame<'_>) -> R,
    ) -> R {
        let addresses = |buffers: &[sys::XLA_FFI_Buffer]| -> Vec<*mut c_void> {
            buffers.iter().map(|buffer| std::ptr::from_ref(buffer).cast_mut().cast()).collect()
        };
        let (mut arg_list, mut ret_list) = (addresses(args), addresses(rets));
        body(Frame {
            raw: &sys::XLA_FFI_CallFrame {
                args: sys::XLA_FFI_Args { args: arg_list.as_mut_ptr(), ..self.raw.args },
                rets: sys::XLA_FFI_Rets { rets: ret_list.as_mut_ptr(), ..self.raw.rets },
                ..*self.raw
            },
        })
    }

    /// Whether a result shares memory with an argument or with another result.
    pub fn has_shared_memory(self) -> bool {
        shared(self.raw)
    }

    /// The attributes by their names.
    #[inline(always)]
    pub fn dictionary(self) -> Dictionary<'f> {
        Dictionary::new(Entries(&self.raw.attrs))
    }

    /// The attributes, in the order of their names.
    #[inline(always)]
    pub fn attributes(self) -> Attributes<'f> {
        Attributes { entries: Entries(&self.raw.attrs), next: 0 }
    }
}

/// The operands of a call that are all buffers.
#[derive(Clone, Copy)]
pub struct Buffers<'f, const ARGS: usize, const RETS: usize> {
    args: *const *mut c_void,
    rets: *const *mut c_void,
    frame: PhantomData<Frame<'f>>,
}

impl<'f, const ARGS: usize, const RETS: usize> Buffers<'f, ARGS, RETS> {
    /// Argument `index` as a buffer of `T` whose last `R` dimensions are its own, if it is one and
    /// its leading dimensions are those bound before. Binds them if none were.
    #[inline(always)]
    pub fn arg<T: Element, const R: usize>(
        self,
        index: usize,
        leading: &mut Leading<'f>,
    ) -> Option<Raw<'f, T, R>> {
        Raw::new(self.arg_buffer(index)?, leading)
    }

    /// Result `index`, as [`Buffers::arg`].
    #[inline(always)]
    pub fn ret<T: Element, const R: usize>(
        self,
        index: usize,
        leading: &mut Leading<'f>,
    ) -> Option<Raw<'f, T, R>> {
        Raw::new(self.ret_buffer(index)?, leading)
    }

    /// As [`Buffers::arg`], where the last own dimension may be absent; it is [`MISSING`] then.
    #[inline(always)]
    pub fn arg_or_less<T: Element, const R: usize>(
        self,
        index: usize,
        leading: &mut Leading<'f>,
    ) -> Option<Raw<'f, T, R>> {
        Raw::or_less(self.arg_buffer(index)?, leading)
    }

    /// As [`Buffers::ret`], where the last own dimension may be absent; it is [`MISSING`] then.
    #[inline(always)]
    pub fn ret_or_less<T: Element, const R: usize>(
        self,
        index: usize,
        leading: &mut Leading<'f>,
    ) -> Option<Raw<'f, T, R>> {
        Raw::or_less(self.ret_buffer(index)?, leading)
    }

    /// An argument that is one number, whatever the leading dimensions of the others.
    #[inline(always)]
    pub fn arg_alone<T: Element>(self, index: usize) -> Option<Raw<'f, T, 0>> {
        Raw::alone(self.arg_buffer(index)?)
    }

    /// The same for a result.
    #[inline(always)]
    pub fn ret_alone<T: Element>(self, index: usize) -> Option<Raw<'f, T, 0>> {
        Raw::alone(self.ret_buffer(index)?)
    }

    #[inline(always)]
    fn arg_buffer(self, index: usize) -> Option<&'f sys::XLA_FFI_Buffer> {
        // SAFETY: there are ARGS arguments, which are buffers.
        (index < ARGS).then(|| unsafe { &*(*self.args.add(index)).cast() })
    }

    #[inline(always)]
    fn ret_buffer(self, index: usize) -> Option<&'f sys::XLA_FFI_Buffer> {
        // SAFETY: there are RETS results, which are buffers.
        (index < RETS).then(|| unsafe { &*(*self.rets.add(index)).cast() })
    }
}

/// Whether N entries are all this one. They are compared at once, not each where it is used.
///
/// # Safety
/// There are so many.
#[inline(always)]
pub(crate) unsafe fn all_are<T: Copy + PartialEq, const N: usize>(
    entries: *const T,
    one: T,
) -> bool {
    // SAFETY: the caller's promise. Where there are none, there may be no array.
    N == 0 || unsafe { entries.cast::<[T; N]>().read() } == [one; N]
}

/// A count or index as the C API has it.
#[inline(always)]
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What stands for the size of a dimension that an operand does not have.
pub const MISSING: i64 = -1;

/// The dimensions of a buffer.
pub(crate) fn dims(buffer: &sys::XLA_FFI_Buffer) -> &[i64] {
    match usize::try_from(buffer.rank) {
        // SAFETY: a buffer of positive rank has that many dimensions (Frame::new's contract).
        Ok(rank @ 1..) => unsafe { std::slice::from_raw_parts(buffer.dims, rank) },
        _ => &[],
    }
}

/// How many elements of `T` so many arrays of these N dimensions have; None where memory cannot hold so
/// many.
#[inline(always)]
pub(crate) fn element_count<T, const N: usize>(
    arrays: usize,
    dim: impl Fn(usize) -> usize,
) -> Option<usize> {
    // Where all factors are below 2^bits, neither the number of elements overflows nor, with the 16
    // bytes that one has at most, that of bytes.
    let bits = const { (usize::BITS as usize - 5) / N.saturating_add(1) };
    if size_of::<T>() <= 16 && (0..N).fold(arrays, |all, at| all | dim(at)) >> bits == 0 {
        return Some((0..N).fold(arrays, |count, at| count.wrapping_mul(dim(at))));
    }
    // A loop that stays in line: for a call the operands decoded so far would leave their registers.
    let (mut count, mut overflow) = (arrays, false);
    for at in 0..N {
        let (product, over) = count.overflowing_mul(dim(at));
        (count, overflow) = (product, overflow | over);
    }
    (!overflow && count <= isize::MAX.unsigned_abs() / size_of::<T>()).then_some(count)
}

/// The leading dimensions that all operands of a call share.
pub struct Leading<'f> {
    /// Where they start, and how many they are; less than none where no operand was seen yet.
    dims: *const i64,
    rank: i64,
    /// Dimensions belong to the frame: as it, they do not leave its thread.
    frame: PhantomData<(&'f [i64], *const sys::XLA_FFI_CallFrame)>,
}

impl<'f> Leading<'f> {
    /// No operand seen yet.
    #[inline(always)]
    pub fn unbound() -> Self {
        Leading { dims: std::ptr::null(), rank: -1, frame: PhantomData }
    }

    /// Their product; None if it does not fit.
    #[inline(always)]
    pub fn size(&self) -> Option<usize> {
        if self.rank <= 0 { Some(1) } else { product(self.dims()) }
    }

    #[inline(always)]
    fn dims(&self) -> &'f [i64] {
        match usize::try_from(self.rank) {
            // SAFETY: they are the first of a buffer that lives for 'f.
            Ok(rank @ 1..) => unsafe { std::slice::from_raw_parts(self.dims, rank) },
            _ => &[],
        }
    }

    /// Whether a buffer's first `rank` dimensions, of which it has so many, are these; they become these
    /// where it is the first buffer.
    #[inline(always)]
    fn admit(&mut self, buffer: &'f sys::XLA_FFI_Buffer, rank: i64) -> bool {
        if self.rank < 0 {
            (self.dims, self.rank) = (buffer.dims, rank);
            return rank >= 0;
        }
        // A loop, not a slice comparison: for the usual zero to two dimensions it beats memcmp.
        rank == self.rank
            && self.dims().iter().enumerate().all(|(at, dim)| {
                // SAFETY: a buffer has its dimensions (Frame::new's contract).
                *dim == unsafe { *buffer.dims.add(at) }
            })
    }
}

#[inline(always)]
fn product(dims: &[i64]) -> Option<usize> {
    dims.iter().try_fold(1_usize, |size, dim| size.checked_mul(usize::try_from(*dim).ok()?))
}

/// A buffer of `T` whose own dimensions, the last `R`, are known.
#[derive(Clone, Copy)]
pub struct Raw<'f, T, const R: usize> {
    /// The buffer's own dimensions.
    pub dims: [i64; R],
    data: *mut T,
    borrow: PhantomData<&'f [T]>,
}

impl<'f, T: Element, const R: usize> Raw<'f, T, R> {
    #[inline(always)]
    fn new(buffer: &'f sys::XLA_FFI_Buffer, leading: &mut Leading<'f>) -> Option<Self> {
        let outer = buffer.rank.checked_sub(count(R))?;
        if buffer.dtype != T::DTYPE.code() || !leading.admit(buffer, outer) {
            return None;
        }
        let mut dims = [0; R];
        if R > 0 {
            // SAFETY: a buffer has `rank` dimensions (Frame::new's contract): `outer`, which is not
            // negative once it was admitted, and R.
            dims =
                unsafe { buffer.dims.add(usize::try_from(outer).ok()?).cast::<[i64; R]>().read() };
        }
        Some(Raw { dims, data: buffer.data.cast(), borrow: PhantomData })
    }

    /// A buffer without any dimension.
    #[inline(always)]
    fn alone(buffer: &'f sys::XLA_FFI_Buffer) -> Option<Self> {
        let alone = buffer.rank == 0 && R == 0 && buffer.dtype == T::DTYPE.code();
        alone.then_some(Raw { dims: [0; R], data: buffer.data.cast(), borrow: PhantomData })
    }

    /// The same, or a buffer of one dimension less than `R` after leading dimensions that were bound
    /// before.
    #[inline(always)]
    fn or_less(buffer: &'f sys::XLA_FFI_Buffer, leading: &mut Leading<'f>) -> Option<Self> {
        let outer = leading.rank;
        if outer < 0 {
            return None;
        }
        if buffer.rank.checked_add(1)? != outer.checked_add(count(R))? {
            let whole = Self::new(buffer, leading)?;
            return whole.dims.last().is_some_and(|last| *last >= 0).then_some(whole);
        }
        if buffer.dtype != T::DTYPE.code() || !leading.admit(buffer, outer) {
            return None;
        }
        let own = dims(buffer).get(usize::try_from(outer).ok()?..)?;
        let mut dims = [MISSING; R];
        dims.iter_mut().zip(own).for_each(|(dim, own)| *dim = *own);
        Some(Raw { dims, data: buffer.data.cast(), borrow: PhantomData })
    }

    /// Where the elements of `batch` problems of these dimensions start, and how many they are.
    /// None where a slice cannot be so long, or where there is no memory for it.
    #[inline(always)]
    pub(crate) fn extent(&self, dims: [usize; R], batch: usize) -> Option<(*mut T, usize)> {
        let len = element_count::<T, R>(batch, |at| dims[at])?;
        if !self.data.is_aligned() {
            return None;
        }
        if self.data.is_null() {
            // XLA may pass any pointer for an empty buffer.
            return (len == 0).then_some((NonNull::dangling().as_ptr(), 0));
        }
        Some((self.data, len))
    }

    /// The elements of `batch` problems; `dims` is [`Raw::dims`], known not to be negative.
    ///
    /// # Safety
    /// This is an argument of a call, and no mutable slice of its memory exists.
    #[inline(always)]
    pub unsafe fn slice(self, dims: [usize; R], batch: usize) -> Option<&'f [T]> {
        let (data, len) = self.extent(dims, batch)?;
        // SAFETY: XLA's buffers hold the elements of their dimensions; the caller excludes writers.
        Some(unsafe { std::slice::from_raw_parts(data, len) })
    }

    /// The elements of `batch` problems, to be written.
    ///
    /// # Safety
    /// This is a result of a call, and no other slice of its memory exists.
    #[inline(always)]
    pub unsafe fn slice_mut(self, dims: [usize; R], batch: usize) -> Option<&'f mut [T]> {
        let (data, len) = self.extent(dims, batch)?;
        // SAFETY: as above; a result belongs to the handler alone.
        Some(unsafe { std::slice::from_raw_parts_mut(data, len) })
    }

    /// This result together with the argument whose memory it may share.
    ///
    /// # Safety
    /// As for [`Raw::slice`] of `argument` and [`Raw::slice_mut`] of this.
    #[inline(always)]
    pub unsafe fn in_out(
        self,
        argument: Raw<'f, T, R>,
        dims: [usize; R],
        batch: usize,
    ) -> Option<InOut<'f, T>> {
        // XLA shares all of the memory or none of it.
        let shared = std::ptr::eq(self.data, argument.data);
        // SAFETY: the caller's promise; where both are the same memory, only one slice is made.
        unsafe {
            let src = if shared { None } else { Some(argument.slice(dims, batch)?) };
            Some(InOut { src, dst: self.slice_mut(dims, batch)? })
        }
    }
}

/// An argument and the result that may share its memory.
#[derive(Debug)]
pub struct InOut<'f, T> {
    /// The argument, where it lies elsewhere; None: it already lies in `dst`.
    pub src: Option<&'f [T]>,
    /// The result, of the same length.
    pub dst: &'f mut [T],
}

impl<'f, T: Copy> InOut<'f, T> {
    /// The result, holding the argument's values: copies if they lie elsewhere.
    pub fn initialized(self) -> &'f mut [T] {
        if let Some(src) = self.src {
            self.dst.copy_from_slice(src);
        }
        self.dst
    }
}

/// A walk over the attributes in the order of their names.
#[derive(Clone, Copy)]
pub struct Attributes<'f> {
    entries: Entries<'f>,
    next: usize,
}

impl<'f> Attributes<'f> {
    /// The value of the next attribute, if it has this name.
    #[inline(always)]
    pub fn required(&mut self, name: &str) -> Option<Value<'f>> {
        let value = self.entries.at(self.next, name)?;
        self.next += 1;
        Some(value)
    }

    /// The same; None says that the attribute is absent.
    #[inline(always)]
    pub fn optional(&mut self, name: &str) -> Option<Value<'f>> {
        self.required(name)
    }

    /// Whether there are so many.
    #[inline(always)]
    pub fn has_count(&self, number: usize) -> bool {
        self.entries.0.size == count(number)
    }

    /// Whether every attribute was read.
    #[inline(always)]
    pub fn exhausted(&self) -> bool {
        self.has_count(self.next)
    }
}

/// Names and values, sorted by name. One pointer, passed by value: what looks a name up, wherever it is
/// compiled, does not make a caller keep the decoded call in memory.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'f>(&'f sys::XLA_FFI_Attrs);

impl<'f> Entries<'f> {
    /// # Safety
    /// Attributes as the C API has them, sorted by name, that live for `'f`.
    #[inline(always)]
    pub(crate) unsafe fn new(attrs: &'f sys::XLA_FFI_Attrs) -> Self {
        Entries(attrs)
    }

    /// All of them.
    pub(crate) fn all(self) -> impl Iterator<Item = (&'f [u8], Value<'f>)> {
        (0..self.count()).map(move |index| (self.name(index), self.value(index)))
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0.size).unwrap_or(0)
    }

    /// The value of entry `index`, if it has this name.
    #[inline(always)]
    pub(crate) fn at(self, index: usize, name: &str) -> Option<Value<'f>> {
        let there = count(index) < self.0.size && self.name(index) == name.as_bytes();
        there.then(|| self.value(index))
    }

    /// The value of this name. Few entries are looked through, many searched by halves.
    #[inline(always)]
    pub(crate) fn find(self, name: &str) -> Option<Value<'f>> {
        /// Calls have fewer.
        const FEW: usize = 16;
        let count = self.count();
        if count > FEW {
            return self.search(name);
        }
        let found = (0..count).find(|index| self.name(*index) == name.as_bytes());
        found.map(|index| self.value(index))
    }

    #[cold]
    #[inline(never)]
    fn search(self, name: &str) -> Option<Value<'f>> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle).cmp(name.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(self.value(middle)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    #[inline(always)]
    fn name(self, index: usize) -> &'f [u8] {
        // SAFETY: callers pass index < size, and names are spans (Frame::new's contract).
        unsafe { bytes(&**self.0.names.add(index)) }
    }

    #[inline(always)]
    fn value(self, index: usize) -> Value<'f> {
        // SAFETY: callers pass index < size, and an entry of a type points to a struct of it.
        unsafe {
            let attr = *self.0.attrs.add(index);
            match *self.0.types.add(index) {
                sys::XLA_FFI_AttrType_SCALAR => {
                    let scalar = &*attr.cast::<sys::XLA_FFI_Scalar>();
                    let dtype = DataType::from_code(scalar.dtype);
                    Value::Scalar(Scalar::new(dtype, scalar.value.cast_const().cast()))
                }
                sys::XLA_FFI_AttrType_STRING => {
                    Value::String(bytes(&*attr.cast::<sys::XLA_FFI_ByteSpan>()))
                }
                sys::XLA_FFI_AttrType_ARRAY => {
                    let array = &*attr.cast::<sys::XLA_FFI_Array>();
                    let dtype = DataType::from_code(array.dtype);
                    Value::Array(Array::new(dtype, array.size, array.data.cast_const().cast()))
                }
                sys::XLA_FFI_AttrType_DICTIONARY => {
                    Value::Dictionary(Dictionary::new(Entries(&*attr.cast())))
                }
                other => Value::Unknown(other),
            }
        }
    }
}

/// # Safety
/// The span is empty or points to its bytes, which live for `'f`.
#[inline(always)]
unsafe fn bytes<'f>(span: &sys::XLA_FFI_ByteSpan) -> &'f [u8] {
    if span.len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(span.ptr.cast(), span.len) }
}
