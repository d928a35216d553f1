//! What a handler may ask of the host during a call.

use std::marker::PhantomData;

use crate::pool::ThreadPool;
use crate::sys;

/// The execution context of one call, valid while the handler runs.
pub struct Context<'f> {
    api: *const sys::XLA_FFI_Api,
    context: *mut sys::XLA_FFI_InvokeContext,
    call: PhantomData<&'f sys::XLA_FFI_CallFrame>,
}

// SAFETY: the functions of the C API that take a context may be called from any thread.
unsafe impl Sync for Context<'_> {}

impl<'f> Context<'f> {
    /// # Safety
    /// Both pointers are null or the host's, valid as long as the context lives.
    #[inline(always)]
    pub(crate) unsafe fn new(
        api: *const sys::XLA_FFI_Api,
        context: *mut sys::XLA_FFI_InvokeContext,
    ) -> Self {
        Context { api, context, call: PhantomData }
    }

    pub(crate) fn api(&self) -> *const sys::XLA_FFI_Api {
        self.api
    }

    pub(crate) fn raw(&self) -> *mut sys::XLA_FFI_InvokeContext {
        self.context
    }

    /// A function of the host's table, whose slots end at `end` where they reach so far.
    ///
    /// # Safety
    /// `read` reads slots that end at `end` or before.
    pub(crate) unsafe fn slot<F>(
        &self,
        end: usize,
        read: impl FnOnce(&sys::XLA_FFI_Api) -> Option<F>,
    ) -> Option<F> {
        // SAFETY: a non-null table is readable up to its struct_size, and the caller reads no more.
        unsafe {
            let there = !self.api.is_null()
                && !self.context.is_null()
                && sys::reaches((*self.api).struct_size, end);
            if there { read(&*self.api) } else { None }
        }
    }

    /// The host's thread pool; of one thread where the host has none.
    ///
    /// It ends with the call, not with `'f`: nothing can be queued after the handler has returned.
    pub fn thread_pool(&self) -> ThreadPool<'_> {
        // SAFETY: the pointers are the host's and valid during the call (Context::new).
        unsafe { ThreadPool::new(self.api, self.context) }
    }
}
