//! What a handler may ask of the host during a call.

use std::marker::PhantomData;

use crate::pool::ThreadPool;
use crate::sys;

/// When a handler is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum ExecutionStage {
    /// Once for each call in a program, when that is compiled or loaded.
    Instantiate = sys::XLA_FFI_ExecutionStage_INSTANTIATE,
    /// Before each run of a program, on GPUs.
    Prepare = sys::XLA_FFI_ExecutionStage_PREPARE,
    /// After all calls have prepared.
    Initialize = sys::XLA_FFI_ExecutionStage_INITIALIZE,
    /// Each call.
    Execute = sys::XLA_FFI_ExecutionStage_EXECUTE,
    /// To write the call into a command buffer.
    Record = sys::XLA_FFI_ExecutionStage_RECORD,
}

impl ExecutionStage {
    /// The number in the C API.
    pub const fn code(self) -> sys::XLA_FFI_ExecutionStage {
        self as sys::XLA_FFI_ExecutionStage
    }
}

/// The execution context of one call, valid while the handler runs.
pub struct Context<'f> {
    api: *const sys::XLA_FFI_Api,
    context: *mut sys::XLA_FFI_InvokeContext,
    stage: ExecutionStage,
    call: PhantomData<&'f sys::XLA_FFI_CallFrame>,
}

// SAFETY: the functions of the C API that take a context may be called from any thread.
unsafe impl Sync for Context<'_> {}

impl<'f> Context<'f> {
    /// That of a call in the execute stage.
    ///
    /// # Safety
    /// The frame's table and context are null or the host's, valid as long as the context lives.
    #[inline(always)]
    pub(crate) unsafe fn of(frame: &sys::XLA_FFI_CallFrame) -> Self {
        let stage = ExecutionStage::Execute;
        Context { api: frame.api, context: frame.ctx, stage, call: PhantomData }
    }

    /// The same in another stage than execute.
    #[inline(always)]
    pub(crate) fn of_stage(self, stage: ExecutionStage) -> Self {
        Context { stage, ..self }
    }

    /// The stage that the call is in.
    pub fn stage(&self) -> ExecutionStage {
        self.stage
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
            let there =
                !self.api.is_null() && !self.context.is_null() && sys::has_slot(self.api, end);
            if there { read(&*self.api) } else { None }
        }
    }

    /// The host's thread pool; of one thread where the host has none.
    ///
    /// It ends with the call, not with `'f`: nothing can be queued after the handler has returned.
    pub fn thread_pool(&self) -> ThreadPool<'_> {
        // SAFETY: the pointers are the host's and valid during the call (Context::of).
        unsafe { ThreadPool::new(self.api, self.context) }
    }
}
