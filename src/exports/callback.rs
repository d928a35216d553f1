//! Host callbacks in C: a function pointer and what it is passed.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{LazyLock, Mutex, PoisonError};

use xla_ffi::{AnyBuffer, AnyBufferMut, Error, ErrorCode};

use crate::callback::{self, Callback};
use crate::table::Platform;

/// An argument or result, as a callback in C sees it.
#[repr(C)]
#[derive(Debug)]
#[allow(non_camel_case_types, reason = "the name in C")]
pub struct lapax_operand {
    /// The elements, row-major; results are to be written.
    pub data: *mut c_void,
    /// The dimensions.
    pub dims: *const i64,
    /// Number of dimensions.
    pub rank: i64,
    /// The element type, as `XLA_FFI_DataType` numbers it.
    pub dtype: u32,
}

/// What a callback is: 0 on success, else an error whose sentence, of less than `error_size` bytes, it
/// has written to `error`, ended by NUL.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type lapax_function = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        args: *const lapax_operand,
        arg_count: usize,
        rets: *const lapax_operand,
        ret_count: usize,
        error: *mut c_char,
        error_size: usize,
    ) -> c_int,
>;

/// Gives the user's pointer back.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type lapax_drop = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Bytes of a sentence.
const SENTENCE: usize = 8192;

/// Callbacks that were made here and not released.
static MADE: LazyLock<Mutex<HashMap<i64, Callback>>> = LazyLock::new(Mutex::default);

/// Makes a callback and returns its number, the value of the attribute `callback`; 0 for a null
/// function. `drop`, if not null, gets `user` when it was released and no program holds it.
///
/// # Safety
/// `function` and `drop` keep their contracts from any thread, several calls at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_callback_new(
    function: lapax_function,
    user: *mut c_void,
    drop: lapax_drop,
) -> i64 {
    let Some(function) = function else { return 0 };
    let user = User { pointer: user, drop };
    let callback = Callback::new(move |args, rets| {
        let mut rets: Vec<lapax_operand> = rets.iter_mut().map(result).collect();
        let args: Vec<lapax_operand> = args.iter().map(argument).collect();
        let mut sentence = [const { MaybeUninit::<u8>::uninit() }; SENTENCE];
        sentence[0].write(0);
        let (args_at, rets_at) = (args.as_ptr(), rets.as_mut_ptr().cast_const());
        let error: *mut c_char = sentence.as_mut_ptr().cast();
        // SAFETY: the caller's promise.
        let failed = unsafe {
            function(user.get(), args_at, args.len(), rets_at, rets.len(), error, SENTENCE)
        };
        if failed == 0 {
            return Ok(());
        }
        // SAFETY: the first byte was written here, and all up to the NUL by the function.
        let written = unsafe { std::ffi::CStr::from_ptr(error) }.to_string_lossy();
        let text = if written.is_empty() { "without a message".into() } else { written };
        Err(Error::new(ErrorCode::Unknown, format!("the callback failed: {text}")))
    });
    let number = callback.number();
    MADE.lock().unwrap_or_else(PoisonError::into_inner).insert(number, callback);
    number
}

/// Lets a callback go; programs that hold it go on. Unknown numbers are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_callback_release(number: i64) {
    let released = MADE.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    drop(released);
}

/// Whether the maker or a program holds the callback of this number: 0 or 1.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_callback_held(number: i64) -> c_int {
    Callback::is_held(number).into()
}

/// The `XLA_FFI_Handler*` of the target `lapax_host_callback`: its instantiate stage where
/// `instantiate` is not 0, else its execute stage.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_callback_handler(instantiate: c_int) -> *const c_void {
    let stage: xla_ffi::StageFn =
        if instantiate == 0 { callback::execute } else { callback::instantiate };
    stage as *const c_void
}

/// The `XLA_FFI_Handler*` of the target's execute stage on CUDA; null where this build has none.
#[unsafe(no_mangle)]
pub extern "C" fn lapax_callback_device_handler() -> *const c_void {
    Callback::execute_stage(Platform::Cuda).map_or(std::ptr::null(), |stage| stage as *const c_void)
}

/// The user's pointer, given back when dropped.
struct User {
    pointer: *mut c_void,
    drop: lapax_drop,
}

// SAFETY: the C contract: the pointer is used from any thread.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    fn get(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: the C contract; once.
            unsafe { drop(self.pointer) };
        }
    }
}

fn argument(buffer: &AnyBuffer<'_>) -> lapax_operand {
    lapax_operand {
        data: buffer.as_ptr().cast_mut().cast(),
        dims: buffer.dims().as_ptr(),
        rank: i64::try_from(buffer.rank()).unwrap_or(0),
        dtype: buffer.dtype().code(),
    }
}

fn result(buffer: &mut AnyBufferMut<'_>) -> lapax_operand {
    lapax_operand { data: buffer.as_mut_ptr().cast(), ..argument(&buffer.shape()) }
}
