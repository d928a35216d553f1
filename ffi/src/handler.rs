//! The C entry point of a handler: frame and version checks, metadata, and what guards the body.

use std::mem::offset_of;

use crate::check::{Given, Shape};
use crate::context::Context;
use crate::data_type::DataType;
use crate::error::{Error, ErrorCode, struct_size};
use crate::float_mode::IeeeMode;
use crate::frame::Frame;
use crate::future::{Future, Settled};
use crate::signature::Signature;
use crate::{API_VERSION, panics, sys};

/// A custom-call target with an execute stage.
pub trait Handler: 'static {
    /// The target's name, for error messages.
    const NAME: &'static str;

    /// What it promises to the host: flags of `XLA_FFI_Handler_TraitsBits`.
    const TRAITS: sys::XLA_FFI_Handler_Traits = 0;

    /// The calls it accepts. With more than one, the arguments' element types tell which is meant.
    const SIGNATURES: &'static [&'static Signature];

    /// Decodes and runs one call.
    ///
    /// `'f` lasts until the call is over: until this returns, or until the future that it returns
    /// is resolved.
    fn call<'f>(frame: Frame<'f>, context: &Context<'f>) -> Outcome<'f>;

    /// What is to be done before a program runs that calls this, as loading kernels: the initialize
    /// stage, which [`initialize`] serves.
    ///
    /// # Errors
    /// Anything that would make the calls fail.
    fn initialize(context: &Context<'_>) -> Result<(), Error> {
        let _ = context;
        Ok(())
    }
}

/// What became of a call.
#[derive(Debug)]
pub enum Outcome<'f> {
    /// The frame fits none of the signatures; the entry point reports why.
    Mismatch,
    /// The call ran.
    Done(Result<(), Error>),
    /// The call ends later.
    Future(Future<'f>),
}

/// The `XLA_FFI_Handler` of `H`.
///
/// # Safety
/// XLA calls this, or someone who keeps the C API's promises about the frame.
pub unsafe extern "C" fn execute<H: Handler>(
    raw: *mut sys::XLA_FFI_CallFrame,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's promise.
    let opened = unsafe { open(raw, sys::XLA_FFI_ExecutionStage_EXECUTE, about::<H>()) };
    let frame = match opened {
        Ok(frame) => frame,
        Err(answer) => return answer,
    };
    // SAFETY: the frame's pointers are the host's and live during this call.
    let context = unsafe { Context::of(frame.raw()) };
    let outcome = panics::catch(|| {
        let _mode = IeeeMode::enter();
        H::call(frame, &context)
    });
    match outcome {
        Ok(Outcome::Done(Ok(()))) => std::ptr::null_mut(),
        // SAFETY: the frame is the host's, and the future its call's.
        Ok(Outcome::Future(future)) => unsafe { answer_later(H::NAME, future, raw, &context) },
        // SAFETY: the frame is the host's.
        other => unsafe { failure::<H>(other, frame) },
    }
}

/// The `XLA_FFI_Handler` of `H`'s initialize stage.
///
/// # Safety
/// As for [`execute`].
pub unsafe extern "C" fn initialize<H: Handler>(
    raw: *mut sys::XLA_FFI_CallFrame,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's promise.
    let opened = unsafe { open(raw, sys::XLA_FFI_ExecutionStage_INITIALIZE, about::<H>()) };
    let frame = match opened {
        Ok(frame) => frame,
        Err(answer) => return answer,
    };
    // SAFETY: the frame's pointers are the host's and live during this call.
    let context = unsafe { Context::of(frame.raw()) };
    let outcome = panics::catch(|| H::initialize(&context));
    // SAFETY: the frame is the host's.
    unsafe { failure::<H>(outcome.map(Outcome::Done), frame) }
}

const fn about<H: Handler>() -> &'static About {
    &About { name: H::NAME, traits: H::TRAITS, state: None }
}

/// What a handler says of itself.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "made by this crate's macros alone")]
pub struct About {
    /// For messages.
    pub name: &'static str,
    /// Flags of `XLA_FFI_Handler_TraitsBits`.
    pub traits: sys::XLA_FFI_Handler_Traits,
    /// Gives the number that a host's type of the state has which the handler makes, if it makes one.
    pub state: Option<TypeNumber>,
}

/// # Safety
/// It is called with a host's function table.
pub type TypeNumber = unsafe fn(*const sys::XLA_FFI_Api) -> Result<i64, Error>;

/// The frame of a call in this stage, or what the entry point answers instead.
///
/// # Safety
/// As for [`execute`].
#[inline(always)]
pub(crate) unsafe fn open<'f>(
    frame: *mut sys::XLA_FFI_CallFrame,
    stage: sys::XLA_FFI_ExecutionStage,
    about: &About,
) -> Result<Frame<'f>, *mut sys::XLA_FFI_Error> {
    // SAFETY: a frame that is whole is valid during this call; what it points to lives until the call
    // is over. The extension is in every frame that was ever defined.
    unsafe {
        if is_whole(frame)
            && metadata_extension((*frame).extension_start).is_none()
            && (*frame).stage == stage
        {
            return Ok(Frame::new(&*frame));
        }
        Err(answer_otherwise(frame, stage, about))
    }
}

/// # Safety
/// A frame of any size; its first field says which.
#[inline(always)]
unsafe fn is_whole(frame: *const sys::XLA_FFI_CallFrame) -> bool {
    // SAFETY: the caller's promise.
    sys::reaches(unsafe { (*frame).struct_size }, struct_size(sys::XLA_FFI_CallFrame_STRUCT_SIZE))
}

/// An extension by which the host asks for metadata, if it is one.
///
/// # Safety
/// It is null, or starts with its size and type, and is of that type.
#[inline(always)]
unsafe fn metadata_extension(
    extension: *mut sys::XLA_FFI_InternalExtension,
) -> Option<*mut sys::XLA_FFI_Metadata_Extension> {
    // SAFETY: the caller's promise.
    let metadata =
        !extension.is_null() && unsafe { (*extension).type_ } == sys::XLA_FFI_Extension_Metadata;
    metadata.then_some(extension.cast())
}

/// The answer to a frame that is not to be decoded: why, or the metadata that it asks for. One function
/// away from the handlers, which have room in registers for what they decode.
///
/// # Safety
/// As for [`open`].
#[cold]
#[inline(never)]
unsafe fn answer_otherwise(
    frame: *mut sys::XLA_FFI_CallFrame,
    stage: sys::XLA_FFI_ExecutionStage,
    about: &About,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the fields up to `api` are in every frame that was ever defined, the others in whole ones.
    unsafe {
        if !is_whole(frame) {
            return refuse(about.name, frame_size_error((*frame).struct_size), (*frame).api);
        }
        if let Some(metadata) = metadata_extension((*frame).extension_start) {
            return answer_metadata(metadata, (*frame).api, about);
        }
        refuse(about.name, stage_error(stage, (*frame).stage), (*frame).api)
    }
}

/// Begins what is left of the call, and gives the host a future unless it is over already.
///
/// # Safety
/// The frame is the host's; the future is what the handler answered to it.
#[inline(never)]
pub(crate) unsafe fn answer_later(
    name: &'static str,
    future: Future<'_>,
    frame: *mut sys::XLA_FFI_CallFrame,
    context: &Context<'_>,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: a frame has a table.
    let api = unsafe { (*frame).api };
    // SAFETY: the future's lifetime is that of the frame's operands and attributes, and XLA keeps
    // these alive until the future that the frame gets below is completed.
    let settled = unsafe { future.settle(&context.thread_pool(), api, name) };
    match settled {
        Settled::Now(Ok(())) => std::ptr::null_mut(),
        // SAFETY: `api` is the host's.
        Settled::Now(Err(error)) => unsafe { refuse(name, error, api) },
        Settled::Later(future) => {
            // SAFETY: every frame since API 0.1 has this field, whatever its size says.
            unsafe { (*frame).future = future };
            std::ptr::null_mut()
        }
    }
}

/// The host's error for a call that did not succeed.
///
/// # Safety
/// The frame is the host's.
#[cold]
#[inline(never)]
unsafe fn failure<H: Handler>(
    outcome: Result<Outcome<'_>, String>,
    frame: Frame<'_>,
) -> *mut sys::XLA_FFI_Error {
    let error = match outcome {
        Ok(Outcome::Done(Ok(())) | Outcome::Future(_)) => return std::ptr::null_mut(),
        Ok(Outcome::Done(Err(error))) => error,
        Ok(Outcome::Mismatch) => {
            let explain = || explain(H::SIGNATURES, &Given::from_frame(frame));
            panics::catch(explain).unwrap_or_else(Error::internal)
        }
        Err(panic) => Error::internal(format!("a bug in this handler: {panic}")),
    };
    // SAFETY: the caller's promise.
    unsafe { refuse(H::NAME, error, frame.raw().api) }
}

/// Why a call fits none of these signatures.
fn explain(signatures: &[&'static Signature], given: &Given<'_>) -> Error {
    infer(signatures, given).err().unwrap_or_else(|| {
        Error::invalid_argument(
            "a buffer is null or not aligned to its element type, though its shape is right",
        )
    })
}

/// The shapes of a call's results, or INVALID_ARGUMENT with every mismatch, in the words in which
/// the handler itself would refuse the call. `signatures` as in [`Handler::SIGNATURES`].
///
/// # Errors
/// INVALID_ARGUMENT where the call fits none of the signatures.
pub fn infer(signatures: &[&'static Signature], given: &Given<'_>) -> Result<Vec<Shape>, Error> {
    choose(signatures, given)?
        .check(given)
        .map_err(|mismatches| Error::invalid_argument(mismatches.join("; ")))
}

/// The signature that a call means: of several, those that have the element type of the first
/// argument, of these those that have that of the second, and so on as far as they differ.
fn choose(
    signatures: &[&'static Signature],
    given: &Given<'_>,
) -> Result<&'static Signature, Error> {
    let mut left = signatures.to_vec();
    let args = left.iter().map(|signature| signature.args.len()).max().unwrap_or(0);
    for index in 0..args {
        let dtype = |signature: &Signature| Some(signature.args.get(index)?.dtype);
        let mut known: Vec<DataType> =
            left.iter().filter_map(|signature| dtype(signature)).collect();
        known.dedup();
        if known.len() < 2 {
            continue;
        }
        // That an argument is missing is for the count of them to say, if there are any.
        let Some(given) = given.args.get(index).or((index == 0).then_some(&None)) else { break };
        let got = given.as_ref().map(|shape| shape.dtype);
        let same: Vec<_> = left.iter().copied().filter(|it| dtype(it) == got).collect();
        if same.is_empty() {
            let name = left[0].args.get(index).map_or("", |operand| operand.name);
            let got = got.map_or("no buffer".to_owned(), |dtype| dtype.to_string());
            let text = format!("argument {index} `{name}`: expected {}, got {got}", list(&known));
            return Err(Error::invalid_argument(text));
        }
        left = same;
    }
    left.first().copied().ok_or_else(|| Error::internal("a target without signatures"))
}

/// `f32, f64, c64 or c128`, each once.
fn list(dtypes: &[DataType]) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in dtypes.iter().map(DataType::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// # Safety
/// `api` is the host's function table or null.
#[cold]
pub(crate) unsafe fn refuse(
    name: &str,
    error: Error,
    api: *const sys::XLA_FFI_Api,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's promise.
    unsafe { error.of(name).into_host(api) }
}

#[cold]
fn frame_size_error(size: usize) -> Error {
    let expected = sys::XLA_FFI_CallFrame_STRUCT_SIZE;
    Error::invalid_argument(format!(
        "expected an XLA_FFI_CallFrame of at least {expected} bytes, got {size}; \
         the host's XLA and this library do not fit together"
    ))
}

#[cold]
fn stage_error(expected: sys::XLA_FFI_ExecutionStage, got: sys::XLA_FFI_ExecutionStage) -> Error {
    let name = |stage: sys::XLA_FFI_ExecutionStage| {
        let names = ["instantiate", "prepare", "initialize", "execute", "record"];
        let name = usize::try_from(stage).ok().and_then(|stage| names.get(stage));
        name.map_or_else(|| format!("stage {stage}"), |name| (*name).to_owned())
    };
    let (expected, got) = (name(expected), name(got));
    let text = format!("expected execution stage {expected}, got {got}");
    Error::new(ErrorCode::FailedPrecondition, text)
}

/// Tells the host what the handler promises, of which type its state is, and which API version it
/// speaks: the smaller of ours and the host's, so that no host refuses it as too new. Hosts of API 0.1
/// pass no function table here, and the earlier ones of them have no field for the type.
///
/// # Safety
/// The extension is a metadata extension, `api` null or the host's function table.
#[cold]
pub(crate) unsafe fn answer_metadata(
    extension: *mut sys::XLA_FFI_Metadata_Extension,
    api: *const sys::XLA_FFI_Api,
    about: &About,
) -> *mut sys::XLA_FFI_Error {
    let (major, minor) = API_VERSION;
    // SAFETY: a non-null table starts with its version; the metadata is the host's to be filled,
    // of at least the size that API 0.1 gave it, and only fields of that size are written, and the
    // type's number, which is the host's from API 0.2 on though the size does not say so.
    unsafe {
        let host = if api.is_null() { 1 } else { (*api).api_version.minor_version };
        let metadata = (*extension).metadata;
        let end = offset_of!(sys::XLA_FFI_Metadata, traits) + size_of::<u32>();
        if metadata.is_null() || !sys::reaches((*metadata).struct_size, end) {
            let size = if metadata.is_null() { 0 } else { (*metadata).struct_size };
            let text = format!("expected an XLA_FFI_Metadata of at least {end} bytes, got {size}");
            return refuse(about.name, Error::invalid_argument(text), api);
        }
        if let (Some(number), sys::TYPE_INFO_MINOR..) = (about.state, host) {
            match number(api) {
                Ok(number) => (*metadata).state_type_id.type_id = number,
                Err(error) => return refuse(about.name, error, api),
            }
        }
        (*metadata).api_version.major_version = major;
        (*metadata).api_version.minor_version = minor.min(host);
        (*metadata).traits = about.traits;
    }
    std::ptr::null_mut()
}
