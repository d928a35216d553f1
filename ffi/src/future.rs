//! Calls that end after their handler has returned: futures, promises, and how the host is told.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::host_future::HostFuture;
use crate::job::{Job, Next};
use crate::pool::ThreadPool;
use crate::{panics, sys};

/// The end of a call, some time after its handler has returned: XLA goes on with what does not
/// depend on the results.
///
/// XLA keeps operands and attributes alive until the future is resolved; `'f` lasts until then, so
/// that [`Future::each`] may borrow them. On a host without futures the call waits.
///
/// ```
/// use xla_ffi::{Call, Context, Frame, Future, Handler, Outcome, Signature, signature};
///
/// signature! {
///     /// y = -x.
///     struct Negate { dims { n } args { x: f32 [n] } rets { y: f32 [n] } }
/// }
///
/// struct NegateHandler;
///
/// impl Handler for NegateHandler {
///     const NAME: &'static str = "negate";
///     const SIGNATURES: &'static [&'static Signature] = &[Negate::SIGNATURE];
///
///     fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
///         let Some(call) = Negate::decode(frame) else { return Outcome::Mismatch };
///         let parts = call.x.chunks(1000).zip(call.y.chunks_mut(1000)).collect();
///         Outcome::Future(Future::each(parts, |(x, y)| {
///             y.iter_mut().zip(x).for_each(|(y, x)| *y = -x);
///             Ok(())
///         }))
///     }
/// }
/// ```
///
/// Frame, context and pool end with the handler; to borrow one is a compile error:
///
/// ```compile_fail,E0277
/// use xla_ffi::{Frame, Future};
/// fn later<'f>(frame: Frame<'f>) -> Future<'f> {
///     Future::each(vec![0], move |_| { frame.arg_count(); Ok(()) })
/// }
/// ```
/// ```compile_fail
/// use xla_ffi::{Context, Future};
/// fn later<'f>(context: &Context<'f>) -> Future<'f> {
///     Future::each(vec![0], |_| { context.thread_pool().threads(); Ok(()) })
/// }
/// ```
/// ```compile_fail
/// use xla_ffi::{Context, Future};
/// fn later<'f>(context: &Context<'f>) -> Future<'f> {
///     let pool = Box::leak(Box::new(context.thread_pool()));
///     Future::each(vec![0], |_| { pool.threads(); Ok(()) })
/// }
/// ```
pub struct Future<'f>(Kind<'f>);

enum Kind<'f> {
    Promised(Arc<Slot>),
    /// Work that has not begun: it begins when the handler has returned, so that a future which is
    /// dropped or forgotten has touched nothing.
    Parts(usize, Next<'f>),
}

impl fmt::Debug for Future<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Promised(slot) => f.debug_tuple("Future").field(slot).finish(),
            Kind::Parts(count, _) => write!(f, "Future({count} parts)"),
        }
    }
}

impl<'f> Future<'f> {
    /// Calls `body` once with each of the parts, on threads of the host's pool and on this one, in
    /// IEEE arithmetic, after the handler has returned this; resolved when all calls have ended.
    ///
    /// The parts are begun in their order. The result is the error of the first part that has one,
    /// whatever the number of threads; parts that were not begun by then are dropped. A panic is
    /// INTERNAL.
    pub fn each<P: Send + 'f>(
        parts: Vec<P>,
        body: impl Fn(P) -> Result<(), Error> + Send + Sync + 'f,
    ) -> Self {
        let count = parts.len();
        let parts = Mutex::new(parts.into_iter().enumerate());
        let failed = AtomicBool::new(false);
        let next = move || {
            let (part, skipped) = {
                let mut parts = locked(&parts);
                // Seen in the order of the parts: what comes before a failed one is never skipped.
                (parts.next(), failed.load(Ordering::Relaxed))
            };
            let (index, part) = part?;
            if skipped {
                return Some((index, Ok(())));
            }
            let result = panics::catch(|| body(part)).unwrap_or_else(|panic| Err(bug(&panic)));
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            Some((index, result))
        };
        Future(Kind::Parts(count, Box::new(next)))
    }

    /// Begins the work and hands its end to the host, as far as it is not there yet.
    ///
    /// # Safety
    /// `api` is null or the host's function table. Everything that lives for `'f` stays valid until
    /// this returns [`Settled::Now`], or else until the host's future is completed.
    pub(crate) unsafe fn settle(
        self,
        pool: &ThreadPool<'_>,
        api: *const sys::XLA_FFI_Api,
        name: &'static str,
    ) -> Settled {
        let slot = match self.0 {
            Kind::Promised(slot) => slot,
            // SAFETY: the slot is resolved after the work has been dropped, and `hand_over` below
            // returns what it is resolved with, or passes that on to the host's future.
            Kind::Parts(count, next) => unsafe { Job::start(count, next, pool) },
        };
        // SAFETY: the caller's promise.
        unsafe { slot.hand_over(api, name) }
    }
}

/// What has become of a future when the handler's entry point returns.
pub(crate) enum Settled {
    /// The call is over.
    Now(Result<(), Error>),
    /// The host's future will be completed.
    Later(*mut sys::XLA_FFI_Future),
}

/// Resolves a [`Future`], once, from any thread. Dropped without that, it resolves it with INTERNAL.
#[derive(Debug)]
pub struct Promise(Option<Arc<Slot>>);

impl Promise {
    /// A promise and its future.
    pub fn new() -> (Self, Future<'static>) {
        let slot = Arc::<Slot>::default();
        (Promise(Some(Arc::clone(&slot))), Future(Kind::Promised(slot)))
    }

    /// Ends the call.
    ///
    /// XLA may run the rest of the program inside this call: hold no lock that it could want, and
    /// be on a thread with as large a stack as a main thread has (8 MiB; Rust's own have 2).
    pub fn resolve(mut self, result: Result<(), Error>) {
        if let Some(slot) = self.0.take() {
            slot.resolve(result);
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.resolve(Err(bug("it dropped its promise without resolving it")));
        }
    }
}

/// A promise that is resolved by the last of several: the clones of this share one count.
#[derive(Clone, Debug)]
pub struct CountDown(Arc<Mutex<Count>>);

#[derive(Debug)]
struct Count {
    left: usize,
    failure: Option<Error>,
    promise: Option<Promise>,
}

impl CountDown {
    /// A promise that takes `count` results, and its future; for 0 the future is resolved.
    pub fn new(count: usize) -> (Self, Future<'static>) {
        let (promise, future) = Promise::new();
        let promise = if count > 0 {
            Some(promise)
        } else {
            promise.resolve(Ok(()));
            None
        };
        (CountDown(Arc::new(Mutex::new(Count { left: count, failure: None, promise }))), future)
    }

    /// Counts one result. The last one resolves the future, with the first error if there was one,
    /// as [`Promise::resolve`] does; results beyond the count are ignored. Whether this was the
    /// last.
    #[allow(clippy::must_use_candidate, reason = "most callers need not know")]
    pub fn count_down(&self, result: Result<(), Error>) -> bool {
        let last = {
            let mut count = locked(&self.0);
            if count.left == 0 {
                return false;
            }
            count.left -= 1;
            count.failure = count.failure.take().or(result.err());
            if count.left > 0 { None } else { count.promise.take().zip(Some(count.failure.take())) }
        };
        let Some((promise, failure)) = last else { return false };
        promise.resolve(failure.map_or(Ok(()), Err));
        true
    }
}

/// Where a promise and the end of a call meet.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
    resolved: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Pending,
    /// The host waits.
    Attached(HostFuture),
    Resolved(Result<(), Error>),
    /// The host knows.
    Over,
}

impl Slot {
    pub(crate) fn resolve(&self, result: Result<(), Error>) {
        let mut state = locked(&self.state);
        match std::mem::replace(&mut *state, State::Over) {
            State::Attached(host) => {
                // The host runs what it likes in there.
                drop(state);
                host.complete(result);
            }
            State::Pending => {
                *state = State::Resolved(result);
                self.resolved.notify_all();
            }
            before => *state = before,
        }
    }

    /// The result where it is there, else a future of the host; where the host has none, waits.
    ///
    /// # Safety
    /// `api` is null or the host's function table.
    unsafe fn hand_over(&self, api: *const sys::XLA_FFI_Api, name: &'static str) -> Settled {
        let mut state = locked(&self.state);
        if matches!(*state, State::Pending) {
            // SAFETY: the caller's promise.
            if let Some(host) = unsafe { HostFuture::new(api, name) } {
                let future = host.pointer();
                *state = State::Attached(host);
                return Settled::Later(future);
            }
        }
        while matches!(*state, State::Pending) {
            state = self.resolved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match std::mem::replace(&mut *state, State::Over) {
            State::Resolved(result) => Settled::Now(result),
            _ => Settled::Now(Err(bug("it returned a future twice"))),
        }
    }
}

/// What a handler did wrong.
fn bug(what: &str) -> Error {
    Error::internal(format!("a bug in this handler: {what}"))
}

/// The guarded value, also after a panic elsewhere: nothing here panics half-way.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
