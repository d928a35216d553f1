//! The record stage: a call writes its commands into a command buffer (a CUDA graph) of the host's, or
//! brings those that it wrote before up to date. It needs the host's extension 128.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::context::Context;
use crate::error::{Error, ErrorCode, take};
use crate::sys;

/// What a handler of the record stage is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the host knows no others")]
pub enum RecordAction {
    /// Write commands.
    Create,
    /// Give the commands it wrote, which are [`Recorder::commands`], this call's operands.
    Update,
}

/// A command of a command buffer, valid as long as that: what other commands wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Command<'c> {
    command: NonNull<sys::XLA_FFI_Command>,
    call: PhantomData<&'c ()>,
}

/// Where a kernel's code is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum KernelCode<'a> {
    /// PTX, as text.
    Ptx(&'a CStr),
    /// Machine code.
    Cubin(&'a [u8]),
    /// The host's handle of a kernel that is loaded: a `CUfunction` or `cudaFunction_t`.
    Loaded(NonNull<c_void>),
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum KernelArg<'a> {
    /// An address in the device's memory, alive until the command buffer has run.
    Address(*const c_void),
    /// A value of these bytes, at least one, which the host copies.
    Value(&'a [u8]),
}

/// A kernel and how it is launched.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, as the C function's arguments are")]
pub struct Launch<'a> {
    /// The kernel's name.
    pub name: &'a CStr,
    /// Its code.
    pub code: KernelCode<'a>,
    /// Blocks in x, y and z.
    pub grid: [i32; 3],
    /// Threads of a block.
    pub block: [i32; 3],
    /// Blocks of a cluster, where there are clusters.
    pub cluster: Option<[i32; 3]>,
    /// Bytes of shared memory that each block gets at the launch.
    pub shared_memory: u32,
    /// Whether it may start before the one that it waits for has ended (programmatic dependent launch).
    pub early: bool,
}

/// Writes a call into a command buffer.
#[derive(Debug)]
pub struct Recorder<'c> {
    api: *const sys::XLA_FFI_Api,
    frame: NonNull<sys::XLA_FFI_RecordFrame>,
    call: PhantomData<&'c mut ()>,
}

impl<'f> Context<'f> {
    /// What a handler of the record stage writes to.
    ///
    /// # Errors
    /// UNIMPLEMENTED where the host has no record extension of version 0.2: in other stages, on the CPU,
    /// before API 0.4.
    pub fn recorder(&self) -> Result<Recorder<'_>, Error> {
        const NUMBER: i64 = sys::XLA_FFI_Extension_Record as i64;
        let extension = self.extension(NUMBER, (0, 2)).map(|extension| extension.as_ptr());
        // SAFETY: the number says which struct it is; the frame is valid during the call.
        let frame = extension.and_then(|extension| unsafe {
            NonNull::new((*extension.cast::<sys::XLA_FFI_Record_Extension>()).record_frame)
        });
        let frame = frame.ok_or_else(|| {
            Error::new(ErrorCode::Unimplemented, "this host records no commands in this stage")
        })?;
        Ok(Recorder { api: self.api(), frame, call: PhantomData })
    }
}

/// A function of the host's, called with the frame's context and these arguments.
macro_rules! call {
    ($recorder:ident, $function:ident($($argument:expr),* $(,)?)) => {{
        let frame = $recorder.frame();
        // SAFETY: the host's table, which has all functions of version 0.2.
        match unsafe { (*frame.api).$function } {
            // SAFETY: the host's function; the arguments are valid during the call.
            Some(function) => $recorder.done(unsafe { function(frame.record_ctx, $($argument),*) }),
            None => Err(missing(stringify!($function))),
        }
    }};
}

impl<'c> Recorder<'c> {
    /// Whether commands are to be written or brought up to date.
    pub fn action(&self) -> RecordAction {
        match self.frame().action {
            sys::XLA_FFI_RecordAction_Update => RecordAction::Update,
            _ => RecordAction::Create,
        }
    }

    /// The commands that this call has written, in their order.
    pub fn commands(&self) -> &[Command<'c>] {
        let frame = self.frame();
        // SAFETY: the host's list and its length; no command in it is null.
        unsafe {
            match usize::try_from(*frame.num_commands) {
                Ok(count @ 1..) if !frame.commands.is_null() => {
                    std::slice::from_raw_parts(frame.commands.cast(), count)
                }
                _ => &[],
            }
        }
    }

    /// How many commands the host keeps for a call.
    pub fn capacity(&self) -> usize {
        let frame = self.frame();
        if frame.commands.is_null() { 0 } else { usize::try_from(frame.max_commands).unwrap_or(0) }
    }

    /// Writes the launch of a kernel, after these commands.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where the host keeps no more commands; the host's.
    ///
    /// # Safety
    /// The kernel takes these arguments, and may run with them whenever the command buffer does.
    pub unsafe fn launch(
        &mut self,
        launch: &Launch<'_>,
        args: &[KernelArg<'_>],
        after: &[Command<'c>],
    ) -> Result<Command<'c>, Error> {
        let (format, code, size) = match launch.code {
            KernelCode::Ptx(text) => {
                let bytes = text.to_bytes_with_nul();
                (sys::XLA_FFI_SourceFormat_PTX, bytes.as_ptr().cast(), bytes.len())
            }
            KernelCode::Cubin(bytes) => {
                (sys::XLA_FFI_SourceFormat_CUBIN, bytes.as_ptr().cast(), bytes.len())
            }
            KernelCode::Loaded(function) => {
                (sys::XLA_FFI_SourceFormat_FUNCTION_PTR, function.as_ptr().cast_const(), 0)
            }
        };
        let [x, y, z] = [launch.grid, launch.block, launch.cluster.unwrap_or([0; 3])];
        let [grid, block, cluster] = [x, y, z].map(|[x, y, z]| sys::XLA_FFI_Dim3 { x, y, z });
        let dims = sys::XLA_FFI_LaunchDims { grid, block, cluster };
        let (size, raw) = (length("bytes of code", size)?, raw_args(args)?);
        let args = list(&raw)?;
        self.write(after, |recorder, after, count, command| {
            call!(
                recorder,
                create_launch(
                    launch.name.as_ptr(),
                    code,
                    size,
                    format,
                    dims,
                    launch.shared_memory,
                    i32::from(launch.early),
                    &raw const args,
                    after,
                    count,
                    command,
                )
            )
        })
    }

    /// Gives a launch other arguments.
    ///
    /// # Errors
    /// The host's.
    ///
    /// # Safety
    /// As for [`Recorder::launch`]; the command is a launch.
    pub unsafe fn update_launch(
        &mut self,
        command: Command<'c>,
        args: &[KernelArg<'_>],
    ) -> Result<(), Error> {
        let raw = raw_args(args)?;
        let args = list(&raw)?;
        call!(self, update_launch(command.command.as_ptr(), &raw const args))
    }

    /// Writes a copy of so many bytes within the device's memory, after these commands.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where the host keeps no more commands; the host's.
    ///
    /// # Safety
    /// Both are so many bytes of the device's memory whenever the command buffer runs.
    pub unsafe fn copy(
        &mut self,
        dst: *mut c_void,
        src: *const c_void,
        bytes: usize,
        after: &[Command<'c>],
    ) -> Result<Command<'c>, Error> {
        let bytes = length("bytes", bytes)?;
        self.write(after, |recorder, after, count, command| {
            let src = src.cast_mut();
            call!(recorder, create_memcpy_d2d(dst, src, bytes, after, count, command))
        })
    }

    /// Gives a copy other operands.
    ///
    /// # Errors
    /// The host's.
    ///
    /// # Safety
    /// As for [`Recorder::copy`]; the command is a copy.
    pub unsafe fn update_copy(
        &mut self,
        command: Command<'c>,
        dst: *mut c_void,
        src: *const c_void,
        bytes: usize,
    ) -> Result<(), Error> {
        let (command, bytes) = (command.command.as_ptr(), length("bytes", bytes)?);
        call!(self, update_memcpy_d2d(command, dst, src.cast_mut(), bytes))
    }

    /// Writes a command that does nothing but wait for these: one to wait for instead of many.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where the host keeps no more commands; the host's.
    pub fn join(&mut self, after: &[Command<'c>]) -> Result<Command<'c>, Error> {
        self.write(after, |recorder, after, count, command| {
            call!(recorder, create_empty_command(after, count, command))
        })
    }

    /// Asks the host to capture what the execute handler does on its stream instead.
    ///
    /// # Errors
    /// The host's.
    pub fn capture(&mut self) -> Result<(), Error> {
        call!(self, request_stream_capture())
    }

    fn frame(&self) -> &sys::XLA_FFI_RecordFrame {
        // SAFETY: the host's frame, valid during the call.
        unsafe { self.frame.as_ref() }
    }

    fn done(&self, error: *mut sys::XLA_FFI_Error) -> Result<(), Error> {
        match NonNull::new(error) {
            None => Ok(()),
            // SAFETY: an error of this host that is ours.
            Some(error) => Err(unsafe { take(self.api, error) }),
        }
    }

    /// Has the host write a command after others, and keeps it.
    fn write(
        &mut self,
        after: &[Command<'c>],
        write: impl FnOnce(
            &Self,
            *const *const sys::XLA_FFI_Command,
            u32,
            *mut *const sys::XLA_FFI_Command,
        ) -> Result<(), Error>,
    ) -> Result<Command<'c>, Error> {
        let (kept, capacity) = (self.commands().len(), self.capacity());
        if kept >= capacity {
            return Err(Error::new(
                ErrorCode::ResourceExhausted,
                format!("the host keeps {capacity} commands of a call, and has them all"),
            ));
        }
        let count = u32::try_from(after.len()).map_err(|_| too_many("commands to wait for"))?;
        let mut command = std::ptr::null();
        write(self, after.as_ptr().cast(), count, &raw mut command)?;
        let Some(command) = NonNull::new(command.cast_mut()) else {
            return Err(Error::internal("the host wrote no command, and says no error"));
        };
        let frame = self.frame();
        // SAFETY: the host's list has room for `capacity` commands.
        unsafe {
            *frame.commands.add(kept) = command.as_ptr();
            *frame.num_commands += 1;
        }
        Ok(Command { command, call: PhantomData })
    }
}

/// Arguments of a kernel as the host takes them.
fn raw_args(args: &[KernelArg<'_>]) -> Result<Vec<sys::XLA_FFI_KernelArg>, Error> {
    let raw = |arg: &KernelArg<'_>| {
        let (address, size, kind) = match *arg {
            KernelArg::Address(address) => (address, 0, sys::XLA_FFI_KernelArgType_DevicePtr),
            KernelArg::Value([]) => {
                return Err(Error::invalid_argument("a kernel's argument of no bytes"));
            }
            KernelArg::Value(value) => {
                (value.as_ptr().cast(), value.len(), sys::XLA_FFI_KernelArgType_HostValue)
            }
        };
        let size = length("bytes of an argument", size)?;
        Ok(sys::XLA_FFI_KernelArg { arg_address: address, size, type_: kind })
    };
    args.iter().map(raw).collect()
}

/// The same as one struct, which points to them.
fn list(args: &[sys::XLA_FFI_KernelArg]) -> Result<sys::XLA_FFI_KernelArgs, Error> {
    let num_args = length("arguments", args.len())?;
    Ok(sys::XLA_FFI_KernelArgs { args: args.as_ptr(), num_args })
}

fn length(what: &str, length: usize) -> Result<i64, Error> {
    i64::try_from(length).map_err(|_| too_many(what))
}

fn too_many(what: &str) -> Error {
    Error::invalid_argument(format!("too many {what}"))
}

fn missing(function: &str) -> Error {
    Error::new(ErrorCode::Unimplemented, format!("this host's record extension has no {function}"))
}
