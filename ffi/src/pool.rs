//! XLA's thread pool, used so that a full pool can never hang a handler.
//!
//! A handler that queues tasks and blocks until they ran can wait for ever: on a pool thread, all
//! of whose siblings do the same. Here the caller works through the chunks itself; helpers take
//! chunks from the same counter if and when the pool runs them. The caller waits only for chunks
//! that a running helper has already claimed. A helper that comes late finds the counter exhausted
//! and touches nothing but the shared state, which it keeps alive.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::sync::Arc;

use crate::chunks::Chunks;
use crate::error::{destroy, struct_size};
use crate::placement::{self, Placement};
use crate::sys;

/// The host's thread pool, for the call of which it was asked.
pub struct ThreadPool<'f> {
    api: *const sys::XLA_FFI_Api,
    context: *mut sys::XLA_FFI_InvokeContext,
    threads: usize,
    call: PhantomData<&'f sys::XLA_FFI_CallFrame>,
}

// SAFETY: scheduling on the host's pool is thread-safe in the C API, and `&self` does nothing else.
unsafe impl Sync for ThreadPool<'_> {}

impl ThreadPool<'_> {
    /// # Safety
    /// Both pointers are null or the host's, valid for the call.
    pub(crate) unsafe fn new(
        api: *const sys::XLA_FFI_Api,
        context: *mut sys::XLA_FFI_InvokeContext,
    ) -> Self {
        // SAFETY: the caller's promise.
        let threads = unsafe { thread_count(api, context) };
        ThreadPool { api, context, threads, call: PhantomData }
    }

    /// Number of threads in the pool, at least 1.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `body` once for each number below `chunks`, on this thread and on idle threads of the
    /// pool, in IEEE arithmetic, and returns when all calls have returned.
    ///
    /// # Panics
    /// If a call of `body` panicked, after all claimed chunks have ended.
    pub fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let helpers = self.threads.min(chunks).saturating_sub(1);
        if helpers == 0 {
            return (0..chunks).for_each(body);
        }
        // SAFETY: only the lifetime changes. The body is called for claimed chunks only, and this
        // function does not return before all of those have ended (`Chunks::wait`), be it by a
        // panic: `work` catches it.
        let body = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(body)
        };
        let placement = Placement::new(helpers + 1);
        let shared = Arc::new(Shared { chunks: Chunks::new(body, chunks), placement });
        let here = shared.placement.arrive();
        for _ in 0..helpers {
            self.schedule(&shared);
        }
        placement::woke();
        shared.chunks.work(placement::settle);
        drop(here);
        if let Some(message) = shared.chunks.wait() {
            std::panic::resume_unwind(Box::new(message));
        }
    }

    /// For long bodies of [`ThreadPool::run`], between two pieces of their work: moves this thread to another
    /// processor where it shares one with another thread of the same run, as the system may have it for
    /// milliseconds. Takes some 50 ns where there is nothing to do.
    pub fn settle() {
        placement::settle();
    }

    /// For bodies of [`ThreadPool::run`] that wait for each other: `sleep` returns when another has woken this
    /// thread, which has no processor meanwhile.
    pub fn asleep(sleep: &mut dyn FnMut()) {
        placement::asleep(sleep);
    }

    /// For bodies of [`ThreadPool::run`] that wait for each other: this one has just woken others.
    pub fn woke() {
        placement::woke();
    }

    /// Queues one helper. That the pool refuses is no error: the caller does the work.
    pub(crate) fn schedule<W: Work>(&self, work: &Arc<W>) {
        // SAFETY: `threads > 1` only where both slots exist (`thread_count`).
        let Some(schedule) = (unsafe { (*self.api).XLA_FFI_ThreadPool_Schedule }) else { return };
        let data = Arc::into_raw(Arc::clone(work));
        let mut args = sys::XLA_FFI_ThreadPool_Schedule_Args {
            struct_size: struct_size(sys::XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            ctx: self.context,
            task: Some(help::<W>),
            data: data.cast_mut().cast(),
        };
        // SAFETY: the host's function, called during the call that the context belongs to.
        let error = unsafe { schedule(&raw mut args) };
        if !error.is_null() {
            // SAFETY: a refused task does not run, so the reference is still ours; the error is
            // ours to destroy.
            unsafe {
                drop(Arc::from_raw(data));
                destroy(self.api, error);
            }
        }
    }
}

/// What helpers on the pool do a share of, whenever they come.
pub(crate) trait Work: Send + Sync + 'static {
    /// Does this thread's share. Does not unwind.
    fn work(&self);
}

/// What the threads of one run share.
struct Shared {
    chunks: Chunks,
    placement: Arc<Placement>,
}

impl Work for Shared {
    fn work(&self) {
        if self.chunks.any_left() {
            let _here = self.placement.arrive();
            self.chunks.work(placement::settle);
        }
    }
}

/// A helper's task.
unsafe extern "C" fn help<W: Work>(data: *mut c_void) {
    // SAFETY: `schedule` passed a reference that this task owns.
    let work = unsafe { Arc::from_raw(data.cast_const().cast::<W>()) };
    work.work();
}

/// Number of threads of the host's pool; 1 where it has no pool or no way to use it.
///
/// # Safety
/// Both pointers are null or the host's.
unsafe fn thread_count(
    api: *const sys::XLA_FFI_Api,
    context: *mut sys::XLA_FFI_InvokeContext,
) -> usize {
    let end = offset_of!(sys::XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads) + size_of::<usize>();
    // SAFETY: a non-null table is readable up to its struct_size.
    let count = unsafe {
        if api.is_null() || context.is_null() || !sys::reaches((*api).struct_size, end) {
            return 1;
        }
        (*api).XLA_FFI_ThreadPool_NumThreads
    };
    let Some(count) = count else { return 1 };
    let mut threads = 1_i64;
    let mut args = sys::XLA_FFI_ThreadPool_NumThreads_Args {
        struct_size: struct_size(sys::XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE),
        extension_start: std::ptr::null_mut(),
        ctx: context,
        num_threads: &raw mut threads,
    };
    // SAFETY: the host's function with the struct it asks for.
    let error = unsafe { count(&raw mut args) };
    if !error.is_null() {
        // SAFETY: the error is ours to destroy.
        unsafe { destroy(api, error) };
        return 1;
    }
    usize::try_from(threads).unwrap_or(1).max(1)
}
