//! Host callbacks: a function of the user's as a custom-call target, without a library of its own.
//!
//! A program calls the target `lapax_host_callback` with the number of a callback as its attribute
//! `callback`. When the program is compiled, its instantiate stage looks the number up and keeps the
//! callback, so that it lives as long as the program, whoever made it has gone.

#[cfg(feature = "cuda")]
mod on_device;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use xla_ffi::{AnyBuffer, AnyBufferMut, Error, ErrorCode, Registry, Rest, StageFn, Stages};

use crate::table::Platform;

/// The target's name.
pub const TARGET: &str = "lapax_host_callback";

/// What a callback does: arguments to results.
type Function =
    dyn Fn(&[AnyBuffer<'_>], &mut [AnyBufferMut<'_>]) -> Result<(), Error> + Send + Sync;

/// A function that programs call. It is dropped when this and all programs that call it are gone.
///
/// ```
/// let double = lapax::Callback::new(|args, rets| {
///     let (Some(x), Some(y)) = (args[0].as_slice::<f32>(), rets[0].as_mut_slice::<f32>()) else {
///         return Err(xla_ffi::Error::invalid_argument("expected f32"));
///     };
///     y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
///     Ok(())
/// });
/// // custom_call @lapax_host_callback(…) { callback = <number> : i64 }
/// assert!(double.number() > 0);
/// ```
#[derive(Clone)]
pub struct Callback {
    number: i64,
    _function: Arc<Function>,
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Callback({})", self.number)
    }
}

/// The functions by their numbers, as long as anybody holds them.
static FUNCTIONS: LazyLock<Mutex<HashMap<i64, Weak<Function>>>> = LazyLock::new(Mutex::default);

fn functions() -> MutexGuard<'static, HashMap<i64, Weak<Function>>> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Callback {
    /// A callback of this function, which runs on threads of the host's, several calls at a time.
    pub fn new(
        function: impl Fn(&[AnyBuffer<'_>], &mut [AnyBufferMut<'_>]) -> Result<(), Error>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let function: Arc<Function> = Arc::new(function);
        let mut functions = functions();
        functions.retain(|_, known| known.strong_count() > 0);
        let mut number = fresh();
        while functions.contains_key(&number) {
            number = fresh();
        }
        functions.insert(number, Arc::downgrade(&function));
        Callback { number, _function: function }
    }

    /// The value of the attribute `callback`: of this process, and never used again.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Whether somebody holds the callback of this number.
    pub fn is_held(number: i64) -> bool {
        functions().get(&number).is_some_and(|known| known.strong_count() > 0)
    }

    /// Registers the target in a host, for the CPU.
    ///
    /// # Errors
    /// The host's.
    pub fn register(registry: Registry) -> Result<(), Error> {
        Self::register_for(registry, Platform::Cpu)
    }

    /// Registers the target in a host, for a platform. On CUDA the function gets copies of the operands
    /// in the host's memory, for which the call waits.
    ///
    /// # Errors
    /// UNIMPLEMENTED where this build has nothing for the platform; the host's.
    pub fn register_for(registry: Registry, platform: Platform) -> Result<(), Error> {
        let execute = Self::execute_stage(platform).ok_or_else(|| {
            let text = format!("this build of lapax has no callbacks on {}", platform.name());
            Error::new(ErrorCode::Unimplemented, text)
        })?;
        let stages = Stages { instantiate: Some(instantiate), ..Stages::execute(execute) };
        // SAFETY: handlers of xla-ffi's making, which stay to the end of the process.
        unsafe { registry.register(TARGET, platform.xla_name(), stages) }
    }

    /// The target's execute stage on a platform, where this build has one.
    pub fn execute_stage(platform: Platform) -> Option<StageFn> {
        match platform {
            Platform::Cpu => Some(execute),
            #[cfg(feature = "cuda")]
            Platform::Cuda => Some(on_device::execute_on_device),
            #[cfg(not(feature = "cuda"))]
            Platform::Cuda => None,
        }
    }
}

/// A number that programs of other processes, which may come out of a cache, do not have.
fn fresh() -> i64 {
    static PROCESS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let hash = PROCESS.hash_one(COUNT.fetch_add(1, Ordering::Relaxed));
    i64::try_from(hash >> 1).unwrap_or(i64::MAX).max(1)
}

/// What a compiled program holds.
struct Held(Arc<Function>);

xla_ffi::host_type!(Held, "lapax.Callback");

xla_ffi::handler! {
    /// Keeps the callback for the program.
    pub fn instantiate(call: Made<'f>, _context) in Instantiate keeping {
        target TARGET;
        attrs { callback: i64 }
    } => {
        let known = functions().get(&call.callback).and_then(Weak::upgrade);
        known.map(Held).ok_or_else(|| {
            let text = format!(
                "no host callback {}: it was dropped before the program was compiled, or belongs to \
                 another process",
                call.callback
            );
            Error::new(ErrorCode::NotFound, text)
        })
    }
}

xla_ffi::handler! {
    /// Calls it.
    pub fn execute(call: Called<'f>, context) in Execute {
        target TARGET;
        args { args: Rest<'f, AnyBuffer<'f>> }
        rets { rets: Rest<'f, AnyBufferMut<'f>> }
        attrs { callback: i64 }
    } => {
        let Called { args, mut rets, .. } = call;
        (context.state::<Held>()?.0)(&args, &mut rets)
    }
}
