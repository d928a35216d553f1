//! A host without XLA: calls a handler with frames made here, for tests and benchmarks.
//!
//! ```
//! use xla_ffi::fake::{Call, Host};
//! # use xla_ffi::{Context, Frame, Handler, Outcome, Signature};
//! # xla_ffi::signature! {
//! #     /// y = -x.
//! #     pub struct Negate { dims { n } args { x: f32 [n] } rets { y: f32 [n] } }
//! # }
//! # struct NegateHandler;
//! # impl Handler for NegateHandler {
//! #     const NAME: &'static str = "negate";
//! #     const SIGNATURES: &'static [&'static Signature] =
//! #         &[<Negate as xla_ffi::Call>::SIGNATURE];
//! #     fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
//! #         use xla_ffi::Call;
//! #         let Some(call) = Negate::decode(frame) else { return Outcome::Mismatch };
//! #         call.y.iter_mut().zip(call.x).for_each(|(y, x)| *y = -x);
//! #         Outcome::Done(Ok(()))
//! #     }
//! # }
//! let (x, mut y) = ([1.0_f32, 2.0], [0.0_f32; 2]);
//! let call = Call::new().arg(&[2], &x).ret(&[2], &mut y);
//! let outcome = Host::new().execute(Some(xla_ffi::execute::<NegateHandler>), &call);
//! drop(call);
//! assert_eq!((outcome, y), (Ok(()), [-1.0, -2.0]));
//! ```

mod collectives;
mod context;
mod device;
mod dictionary;
mod futures;
mod record;
mod registry;

pub use collectives::with_collectives;
pub use context::{DEVICE, RUN, end_program, lend, set_extension, set_options};
pub use device::{limit_scratch, scratch_lent};
pub use dictionary::Dictionary;
pub use record::CommandBuffer;

use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::sync::Mutex;

use num_complex::Complex;

use crate::data_type::{DataType, Element};
use crate::error::struct_size;
use crate::sys;

/// A host: a function table, and a thread pool behind it.
pub struct Host {
    api: Box<sys::XLA_FFI_Api>,
    pool: Box<Pool>,
}

/// How the host's thread pool treats tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// A thread for each task.
    Prompt,
    /// Tasks wait until the host is dropped: a pool whose threads are all busy elsewhere.
    Stalled,
    /// Every task is refused.
    Refusing,
}

/// What a handler answered instead of success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status code, as the C API numbers it.
    pub code: u32,
    /// The message.
    pub message: String,
}

/// A failure as the host keeps it: with its message as C has it.
struct HostError {
    code: u32,
    message: CString,
}

impl HostError {
    fn into_raw(self) -> *mut sys::XLA_FFI_Error {
        Box::into_raw(Box::new(self)).cast()
    }

    /// # Safety
    /// An error of this host that is not used again.
    unsafe fn from_raw(error: *mut sys::XLA_FFI_Error) -> Self {
        // SAFETY: the caller's promise.
        *unsafe { Box::from_raw(error.cast()) }
    }
}

impl Failure {
    fn into_error(self) -> *mut sys::XLA_FFI_Error {
        let message = CString::new(self.message).expect("no NUL in a message");
        HostError { code: self.code, message }.into_raw()
    }

    /// # Safety
    /// An error of this host that is not used again.
    unsafe fn from_error(error: *mut sys::XLA_FFI_Error) -> Self {
        // SAFETY: the caller's promise.
        let HostError { code, message } = unsafe { HostError::from_raw(error) };
        Failure { code, message: message.to_string_lossy().into_owned() }
    }
}

/// What a handler says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// API version that the handler speaks.
    pub version: (i32, i32),
    /// Its traits.
    pub traits: u32,
    /// The number of the type of the state that it makes, where it says one.
    pub state: Option<i64>,
}

struct Pool {
    threads: i64,
    mode: PoolMode,
    waiting: Mutex<Vec<Task>>,
    running: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

struct Task(unsafe extern "C" fn(*mut c_void), *mut c_void);

// SAFETY: a task and its data are made to be run on another thread.
unsafe impl Send for Task {}

impl Task {
    fn run(self) {
        // SAFETY: scheduled once, run once.
        unsafe { (self.0)(self.1) };
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// A host of the newest API version with a pool of one thread.
    pub fn new() -> Self {
        Self::with_pool(1, PoolMode::Prompt)
    }

    /// The same with a pool.
    pub fn with_pool(threads: i64, mode: PoolMode) -> Self {
        // SAFETY: the table consists of integers, nullable pointers and optional functions.
        let mut api: Box<sys::XLA_FFI_Api> = Box::new(unsafe { std::mem::zeroed() });
        api.struct_size = size_of::<sys::XLA_FFI_Api>();
        (api.api_version.major_version, api.api_version.minor_version) = crate::API_VERSION;
        api.XLA_FFI_Error_Create = Some(error_create);
        api.XLA_FFI_Error_GetDetails = Some(error_details);
        api.XLA_FFI_Error_Destroy = Some(error_destroy);
        api.XLA_FFI_ThreadPool_Schedule = Some(schedule);
        api.XLA_FFI_ThreadPool_NumThreads = Some(num_threads);
        futures::offer(&mut api);
        device::offer(&mut api);
        registry::offer(&mut api);
        context::offer(&mut api);
        let (waiting, running) = (Mutex::default(), Mutex::default());
        Host { api, pool: Box::new(Pool { threads, mode, waiting, running }) }
    }

    /// The same host as an older one: this minor version, and a table of this many bytes.
    pub fn aged(mut self, minor: i32, table_size: usize) -> Self {
        self.api.api_version.minor_version = minor;
        self.api.struct_size = table_size;
        self
    }

    /// The function table, for [`crate::Registry::of_api`]; it lives as long as the host.
    pub fn api(&self) -> *const sys::XLA_FFI_Api {
        &raw const *self.api
    }

    /// The names of what was registered for a platform in any host of this process, in order.
    pub fn registered(platform: &str) -> Vec<String> {
        registry::names(platform)
    }

    /// Calls a handler.
    ///
    /// # Errors
    /// What the handler reported.
    ///
    /// # Panics
    /// If there is no handler.
    pub fn execute(&self, handler: sys::XLA_FFI_Handler, call: &Call<'_>) -> Result<(), Failure> {
        call.with_frame(self, |frame| self.invoke(handler, frame))
    }

    /// Calls a handler with a frame, and waits for its future: for benchmarks, which make one frame
    /// and call often.
    ///
    /// # Errors
    /// What the handler reported.
    ///
    /// # Panics
    /// If there is no handler, or it makes a future and does not complete it within a minute.
    #[inline]
    pub fn invoke(
        &self,
        handler: sys::XLA_FFI_Handler,
        frame: &mut sys::XLA_FFI_CallFrame,
    ) -> Result<(), Failure> {
        self.invoke_then(handler, frame, || ())
    }

    /// The same; runs `returned` when the handler has returned, before its future is waited for.
    ///
    /// # Errors
    /// What the handler reported.
    ///
    /// # Panics
    /// As [`Host::invoke`].
    #[inline]
    pub fn invoke_then(
        &self,
        handler: sys::XLA_FFI_Handler,
        frame: &mut sys::XLA_FFI_CallFrame,
        returned: impl FnOnce(),
    ) -> Result<(), Failure> {
        let handler = handler.expect("a handler");
        frame.future = std::ptr::null_mut();
        let made = futures::made();
        // SAFETY: frames are made by `Call`, which keeps the C API's promises.
        let error = unsafe { handler(frame) };
        returned();
        let answered = usize::from(!frame.future.is_null());
        assert_eq!(futures::made() - made, answered, "a future is made to be answered");
        if error.is_null() {
            return if answered == 0 { Ok(()) } else { futures::wait(frame.future) };
        }
        assert!(answered == 0, "an error and a future");
        // SAFETY: an error of this host, which the handler gives away.
        Err(unsafe { Failure::from_error(error) })
    }

    /// Asks a handler for its metadata, as a host of this API does, or (`api` false) as hosts before
    /// API 0.2 do: without a function table.
    ///
    /// # Panics
    /// If there is no handler, or it fails.
    pub fn metadata(&self, handler: sys::XLA_FFI_Handler, api: bool) -> Metadata {
        /// No type has this number.
        const UNTOUCHED: i64 = i64::MAX;
        // SAFETY: integers and nullable pointers.
        let mut metadata: sys::XLA_FFI_Metadata = unsafe { std::mem::zeroed() };
        metadata.struct_size = struct_size(sys::XLA_FFI_Metadata_STRUCT_SIZE);
        metadata.state_type_id.type_id = UNTOUCHED;
        let mut extension = sys::XLA_FFI_Metadata_Extension {
            extension_base: sys::XLA_FFI_InternalExtension {
                struct_size: struct_size(sys::XLA_FFI_Metadata_Extension_STRUCT_SIZE),
                type_: sys::XLA_FFI_Extension_Metadata,
                next: std::ptr::null_mut(),
            },
            metadata: &raw mut metadata,
        };
        let outcome = Call::new().with_frame(self, |frame| {
            frame.extension_start = (&raw mut extension).cast();
            if !api {
                frame.api = std::ptr::null();
            }
            self.invoke(handler, frame)
        });
        assert!(outcome.is_ok(), "the metadata query failed: {outcome:?}");
        let state = Some(metadata.state_type_id.type_id).filter(|state| *state != UNTOUCHED);
        // What jaxlib 0.7 passes ends before it.
        let has_state = api && self.api.api_version.minor_version >= sys::TYPE_INFO_MINOR;
        assert!(has_state || state.is_none(), "written past the struct's size");
        let version = metadata.api_version;
        Metadata {
            version: (version.major_version, version.minor_version),
            traits: metadata.traits,
            state,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let waiting = std::mem::take(&mut *self.pool.waiting.lock().expect("no panic"));
        waiting.into_iter().for_each(Task::run);
        let running = std::mem::take(&mut *self.pool.running.lock().expect("no panic"));
        running.into_iter().for_each(|thread| thread.join().expect("a task panicked"));
    }
}

/// A call to be made.
#[derive(Default)]
pub struct Call<'a> {
    args: Vec<Buffer>,
    rets: Vec<Buffer>,
    attrs: Vec<(String, Attr)>,
    stage: Option<sys::XLA_FFI_ExecutionStage>,
    frame_size: Option<usize>,
    borrow: PhantomData<&'a mut [u8]>,
}

struct Buffer {
    dtype: u32,
    dims: Vec<i64>,
    data: *mut c_void,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Attr {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
    C64(Complex<f32>),
    C128(Complex<f64>),
    String(String),
    /// A string of any bytes.
    Bytes(Vec<u8>),
    I32s(Vec<i32>),
    I64s(Vec<i64>),
    F64s(Vec<f64>),
    /// Of the entries, by their names.
    Dictionary(Dictionary),
}

impl<'a> Call<'a> {
    /// A call of the execute stage without operands and attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an argument.
    ///
    /// # Panics
    /// If the dimensions ask for more elements than there are.
    pub fn arg<T: Element>(mut self, dims: &[i64], data: &'a [T]) -> Self {
        assert!(holds(dims, data.len()), "{} elements for {dims:?}", data.len());
        self.args.push(Buffer::new(T::DTYPE, dims, data.as_ptr().cast_mut().cast()));
        self
    }

    /// Adds a result.
    ///
    /// # Panics
    /// If the dimensions ask for more elements than there are.
    pub fn ret<T: Element>(mut self, dims: &[i64], data: &'a mut [T]) -> Self {
        assert!(holds(dims, data.len()), "{} elements for {dims:?}", data.len());
        self.rets.push(Buffer::new(T::DTYPE, dims, data.as_mut_ptr().cast()));
        self
    }

    /// Adds an argument and a result in the same memory.
    ///
    /// # Panics
    /// If the dimensions ask for more elements than there are.
    pub fn shared<T: Element>(mut self, dims: &[i64], data: &'a mut [T]) -> Self {
        let pointer: *mut c_void = data.as_mut_ptr().cast();
        self.args.push(Buffer::new(T::DTYPE, dims, pointer));
        self.ret(dims, data)
    }

    /// Adds an argument (`result` false) or a result of any shape without memory.
    ///
    /// # Safety
    /// The handler refuses the call, or the operand is empty.
    pub unsafe fn shape_only(mut self, result: bool, dtype: DataType, dims: &[i64]) -> Self {
        // Aligned as XLA's buffers are, and never null.
        let data = std::ptr::without_provenance_mut(64);
        let list = if result { &mut self.rets } else { &mut self.args };
        list.push(Buffer::new(dtype, dims, data));
        self
    }

    /// Adds or replaces an attribute.
    pub fn attr(mut self, name: &str, value: Attr) -> Self {
        self.attrs.retain(|(known, _)| known != name);
        self.attrs.push((name.to_owned(), value));
        // XLA hands a handler its attributes sorted by name.
        self.attrs.sort_by(|(a, _), (b, _)| a.cmp(b));
        self
    }

    /// Makes the call in another stage than execute.
    pub fn stage(mut self, stage: sys::XLA_FFI_ExecutionStage) -> Self {
        self.stage = Some(stage);
        self
    }

    /// Says that the frame has another size than it has.
    pub fn frame_size(mut self, size: usize) -> Self {
        self.frame_size = Some(size);
        self
    }

    /// Runs `body` with the call's frame, which lives as long.
    pub fn with_frame<R>(
        &self,
        host: &Host,
        body: impl FnOnce(&mut sys::XLA_FFI_CallFrame) -> R,
    ) -> R {
        let mut args: Vec<sys::XLA_FFI_Buffer> = self.args.iter().map(Buffer::to_c).collect();
        let mut rets: Vec<sys::XLA_FFI_Buffer> = self.rets.iter().map(Buffer::to_c).collect();
        let mut arg_types = vec![sys::XLA_FFI_ArgType_BUFFER; args.len()];
        let mut ret_types = vec![sys::XLA_FFI_RetType_BUFFER; rets.len()];
        let mut arg_pointers: Vec<*mut c_void> =
            args.iter_mut().map(|buffer| (&raw mut *buffer).cast()).collect();
        let mut ret_pointers: Vec<*mut c_void> =
            rets.iter_mut().map(|buffer| (&raw mut *buffer).cast()).collect();
        let mut names: Vec<sys::XLA_FFI_ByteSpan> =
            self.attrs.iter().map(|(name, _)| span(name.as_bytes())).collect();
        let mut name_pointers: Vec<*mut sys::XLA_FFI_ByteSpan> =
            names.iter_mut().map(|name| &raw mut *name).collect();
        let mut values: Vec<CAttr> = self.attrs.iter().map(|(_, value)| value.to_c()).collect();
        let mut attr_types: Vec<sys::XLA_FFI_AttrType> =
            values.iter().map(|value| value.kind).collect();
        let mut value_pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| (&raw mut value.payload).cast()).collect();
        let null = std::ptr::null_mut();
        let mut frame = sys::XLA_FFI_CallFrame {
            struct_size: self.frame_size.unwrap_or(struct_size(sys::XLA_FFI_CallFrame_STRUCT_SIZE)),
            extension_start: null,
            api: &raw const *host.api,
            ctx: (&raw const *host.pool).cast_mut().cast(),
            stage: self.stage.unwrap_or(sys::XLA_FFI_ExecutionStage_EXECUTE),
            args: sys::XLA_FFI_Args {
                struct_size: struct_size(sys::XLA_FFI_Args_STRUCT_SIZE),
                extension_start: null,
                size: length(&args),
                types: arg_types.as_mut_ptr(),
                args: arg_pointers.as_mut_ptr(),
            },
            rets: sys::XLA_FFI_Rets {
                struct_size: struct_size(sys::XLA_FFI_Rets_STRUCT_SIZE),
                extension_start: null,
                size: length(&rets),
                types: ret_types.as_mut_ptr(),
                rets: ret_pointers.as_mut_ptr(),
            },
            attrs: sys::XLA_FFI_Attrs {
                struct_size: struct_size(sys::XLA_FFI_Attrs_STRUCT_SIZE),
                extension_start: null,
                size: length(&values),
                types: attr_types.as_mut_ptr(),
                names: name_pointers.as_mut_ptr(),
                attrs: value_pointers.as_mut_ptr(),
            },
            future: std::ptr::null_mut(),
        };
        body(&mut frame)
    }
}

impl Buffer {
    fn new(dtype: DataType, dims: &[i64], data: *mut c_void) -> Self {
        Buffer { dtype: dtype.code(), dims: dims.to_vec(), data }
    }

    fn to_c(&self) -> sys::XLA_FFI_Buffer {
        sys::XLA_FFI_Buffer {
            struct_size: struct_size(sys::XLA_FFI_Buffer_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            dtype: self.dtype,
            data: self.data,
            rank: length(&self.dims),
            dims: self.dims.as_ptr().cast_mut(),
        }
    }
}

/// An attribute as the C API has it: its kind, and a struct of that kind.
struct CAttr {
    kind: sys::XLA_FFI_AttrType,
    payload: Payload,
}

#[repr(C)]
union Payload {
    scalar: sys::XLA_FFI_Scalar,
    string: sys::XLA_FFI_ByteSpan,
    array: sys::XLA_FFI_Array,
    dictionary: sys::XLA_FFI_Attrs,
}

impl Attr {
    fn to_c(&self) -> CAttr {
        fn scalar<T>(dtype: DataType, value: &T) -> CAttr {
            let value = (&raw const *value).cast_mut().cast();
            let scalar = sys::XLA_FFI_Scalar { dtype: dtype.code(), value };
            CAttr { kind: sys::XLA_FFI_AttrType_SCALAR, payload: Payload { scalar } }
        }
        fn array<T: Element>(values: &[T]) -> CAttr {
            let data = values.as_ptr().cast_mut().cast();
            let array = sys::XLA_FFI_Array { dtype: T::DTYPE.code(), size: values.len(), data };
            CAttr { kind: sys::XLA_FFI_AttrType_ARRAY, payload: Payload { array } }
        }
        match self {
            Attr::Bool(value) => scalar(DataType::BOOL, value),
            Attr::I8(value) => scalar(DataType::I8, value),
            Attr::I16(value) => scalar(DataType::I16, value),
            Attr::I32(value) => scalar(DataType::I32, value),
            Attr::I64(value) => scalar(DataType::I64, value),
            Attr::U8(value) => scalar(DataType::U8, value),
            Attr::U16(value) => scalar(DataType::U16, value),
            Attr::U32(value) => scalar(DataType::U32, value),
            Attr::U64(value) => scalar(DataType::U64, value),
            Attr::F32(value) => scalar(DataType::F32, value),
            Attr::F64(value) => scalar(DataType::F64, value),
            Attr::C64(value) => scalar(DataType::C64, value),
            Attr::C128(value) => scalar(DataType::C128, value),
            Attr::String(value) => CAttr {
                kind: sys::XLA_FFI_AttrType_STRING,
                payload: Payload { string: span(value.as_bytes()) },
            },
            Attr::Bytes(value) => CAttr {
                kind: sys::XLA_FFI_AttrType_STRING,
                payload: Payload { string: span(value) },
            },
            Attr::I32s(values) => array(values),
            Attr::I64s(values) => array(values),
            Attr::F64s(values) => array(values),
            Attr::Dictionary(dictionary) => CAttr {
                kind: sys::XLA_FFI_AttrType_DICTIONARY,
                payload: Payload { dictionary: *dictionary.attrs() },
            },
        }
    }
}

fn span(bytes: &[u8]) -> sys::XLA_FFI_ByteSpan {
    sys::XLA_FFI_ByteSpan { ptr: bytes.as_ptr().cast(), len: bytes.len() }
}

fn length<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).expect("a short list")
}

fn holds(dims: &[i64], elements: usize) -> bool {
    let size = dims.iter().try_fold(1_i64, |size, dim| size.checked_mul(*dim));
    size.and_then(|size| usize::try_from(size).ok()).is_some_and(|size| size <= elements)
}

unsafe extern "C" fn error_create(
    args: *mut sys::XLA_FFI_Error_Create_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller passes its struct with a C string.
    let (message, code) = unsafe { (CStr::from_ptr((*args).message), (*args).errc) };
    HostError { code, message: message.to_owned() }.into_raw()
}

unsafe extern "C" fn error_details(args: *mut sys::XLA_FFI_Error_GetDetails_Args) {
    // SAFETY: the caller's struct with an error of this host.
    unsafe {
        let error = &*(*args).error.cast::<HostError>();
        ((*args).message, (*args).errc) = (error.message.as_ptr(), error.code);
    }
}

unsafe extern "C" fn error_destroy(args: *mut sys::XLA_FFI_Error_Destroy_Args) {
    // SAFETY: an error of this host, destroyed once.
    drop(unsafe { HostError::from_raw((*args).error) });
}

unsafe extern "C" fn num_threads(
    args: *mut sys::XLA_FFI_ThreadPool_NumThreads_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct; its context is this host's pool.
    unsafe { *(*args).num_threads = (*(*args).ctx.cast::<Pool>()).threads };
    std::ptr::null_mut()
}

unsafe extern "C" fn schedule(
    args: *mut sys::XLA_FFI_ThreadPool_Schedule_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct; its context is this host's pool.
    let (pool, task) = unsafe {
        let args = &*args;
        (&*args.ctx.cast::<Pool>(), Task(args.task.expect("a task"), args.data))
    };
    match pool.mode {
        PoolMode::Prompt => {
            let thread = std::thread::spawn(move || task.run());
            pool.running.lock().expect("no panic").push(thread);
        }
        PoolMode::Stalled => pool.waiting.lock().expect("no panic").push(task),
        PoolMode::Refusing => {
            let (code, message) =
                (sys::XLA_FFI_Error_Code_UNAVAILABLE, "the pool refuses".to_owned());
            return Failure { code, message }.into_error();
        }
    }
    std::ptr::null_mut()
}
