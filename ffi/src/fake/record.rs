//! A command buffer that remembers what is written to it, for handlers of the record stage.

use std::ffi::{CStr, c_char, c_void};
use std::fmt::Write as _;

use super::Failure;
use super::context::{extension, with_extension};
use crate::sys;

/// What it remembers: each command as a line, and whether capture was asked for.
#[derive(Debug, Default)]
struct Written {
    /// A command's address is its place here, and 1.
    lines: Vec<String>,
    captured: bool,
}

/// A command buffer of one call.
#[derive(Debug)]
pub struct CommandBuffer {
    written: Box<Written>,
    kept: Vec<*const sys::XLA_FFI_Command>,
    count: i64,
}

impl CommandBuffer {
    /// Empty, with room for so many commands.
    pub fn new(capacity: usize) -> Self {
        let kept = vec![std::ptr::null(); capacity];
        CommandBuffer { written: Box::default(), kept, count: 0 }
    }

    /// The commands as they are now: `copy with 8 bytes 0x10 -> 0x20 after 0, 1`.
    pub fn commands(&self) -> Vec<String> {
        self.written.lines.clone()
    }

    /// Whether a handler asked for the capture of its stream.
    pub fn captured(&self) -> bool {
        self.written.captured
    }

    /// Runs `body`; the calls that this thread makes in it write to this (`update` false), or bring it
    /// up to date.
    ///
    /// # Panics
    /// If there is no such number of commands.
    pub fn recording<T>(&mut self, update: bool, body: impl FnOnce() -> T) -> T {
        let create = sys::XLA_FFI_RecordAction_Create;
        let mut frame = sys::XLA_FFI_RecordFrame {
            record_ctx: (&raw mut *self.written).cast(),
            api: &raw const API,
            action: if update { sys::XLA_FFI_RecordAction_Update } else { create },
            commands: self.kept.as_mut_ptr(),
            num_commands: &raw mut self.count,
            max_commands: i64::try_from(self.kept.len()).expect("few commands"),
        };
        let extension = sys::XLA_FFI_Record_Extension {
            extension_base: extension(
                sys::XLA_FFI_Extension_Record,
                size_of::<sys::XLA_FFI_Record_Extension>(),
            ),
            record_frame: &raw mut frame,
        };
        // SAFETY: the extension outlives `body`.
        unsafe { with_extension((&raw const extension).cast(), body) }
    }
}

static API: sys::XLA_FFI_RecordApi = sys::XLA_FFI_RecordApi {
    create_launch: Some(create_launch),
    update_launch: Some(update_launch),
    create_memcpy_d2d: Some(create_copy),
    update_memcpy_d2d: Some(update_copy),
    request_stream_capture: Some(capture),
    create_empty_command: Some(create_empty),
};

/// # Safety
/// The context of a [`CommandBuffer`], and so many of its commands.
unsafe fn write(
    context: *mut sys::XLA_FFI_RecordContext,
    mut line: String,
    after: *const *const sys::XLA_FFI_Command,
    count: u32,
    command: *mut *const sys::XLA_FFI_Command,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's promise.
    unsafe {
        let written = &mut *context.cast::<Written>();
        for at in 0..count as usize {
            let Some(known) = place(written, *after.add(at)) else {
                let code = sys::XLA_FFI_Error_Code_INVALID_ARGUMENT;
                return Failure { code, message: "no such command".to_owned() }.into_error();
            };
            let _ = write!(line, "{}{known}", if at == 0 { " after " } else { ", " });
        }
        written.lines.push(line);
        *command = std::ptr::without_provenance(written.lines.len());
    }
    std::ptr::null_mut()
}

/// Where a command is in the list, if it is there.
fn place(written: &Written, command: *const sys::XLA_FFI_Command) -> Option<usize> {
    command.addr().checked_sub(1).filter(|place| *place < written.lines.len())
}

/// Replaces what a command does; what it waits for stays.
///
/// # Safety
/// As for `write`.
unsafe fn rewrite(
    context: *mut sys::XLA_FFI_RecordContext,
    command: *const sys::XLA_FFI_Command,
    kind: &str,
    what: &str,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's promise.
    let written = unsafe { &mut *context.cast::<Written>() };
    let line = place(written, command).map(|place| &mut written.lines[place]);
    let Some(line) = line.filter(|line| line.starts_with(kind)) else {
        let (code, message) =
            (sys::XLA_FFI_Error_Code_INVALID_ARGUMENT, format!("no {kind} to update"));
        return Failure { code, message }.into_error();
    };
    let after = line.find(" after ").map_or("", |at| &line[at..]).to_owned();
    let head = line.split(" with ").next().unwrap_or_default().to_owned();
    *line = format!("{head} with {what}{after}");
    std::ptr::null_mut()
}

/// # Safety
/// So many arguments, each of its size.
unsafe fn arguments(args: *const sys::XLA_FFI_KernelArgs) -> String {
    // SAFETY: the caller's promise.
    let texts = unsafe {
        (0..usize::try_from((*args).num_args).expect("a count")).map(|at| {
            let arg = *(*args).args.add(at);
            if arg.type_ == sys::XLA_FFI_KernelArgType_DevicePtr {
                return format!("{:?}", arg.arg_address);
            }
            let size = usize::try_from(arg.size).expect("a size");
            format!("{:?}", std::slice::from_raw_parts(arg.arg_address.cast::<u8>(), size))
        })
    };
    texts.collect::<Vec<_>>().join(" ")
}

#[allow(clippy::too_many_arguments, reason = "the C API's")]
unsafe extern "C" fn create_launch(
    context: *mut sys::XLA_FFI_RecordContext,
    name: *const c_char,
    code: *const c_void,
    size: i64,
    format: sys::XLA_FFI_SourceFormat,
    dims: sys::XLA_FFI_LaunchDims,
    shared_memory: u32,
    early: i32,
    args: *const sys::XLA_FFI_KernelArgs,
    after: *const *const sys::XLA_FFI_Command,
    count: u32,
    command: *mut *const sys::XLA_FFI_Command,
) -> *mut sys::XLA_FFI_Error {
    let [grid, block, cluster] =
        [dims.grid, dims.block, dims.cluster].map(|dim| format!("{}x{}x{}", dim.x, dim.y, dim.z));
    // SAFETY: the binding's arguments.
    unsafe {
        let name = CStr::from_ptr(name).to_string_lossy();
        let kind = ["ptx", "cubin", "function"][format as usize];
        let code = if size == 0 { format!("{code:?}") } else { format!("{size} bytes") };
        let args = arguments(args);
        let line = format!(
            "launch {name}, {kind} {code}, {grid} of {block} in {cluster}, {shared_memory} shared, \
             early {early} with {args}"
        );
        write(context, line, after, count, command)
    }
}

unsafe extern "C" fn update_launch(
    context: *mut sys::XLA_FFI_RecordContext,
    command: *const sys::XLA_FFI_Command,
    args: *const sys::XLA_FFI_KernelArgs,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the binding's arguments.
    unsafe { rewrite(context, command, "launch", &arguments(args)) }
}

unsafe extern "C" fn create_copy(
    context: *mut sys::XLA_FFI_RecordContext,
    dst: *mut c_void,
    src: *mut c_void,
    size: i64,
    after: *const *const sys::XLA_FFI_Command,
    count: u32,
    command: *mut *const sys::XLA_FFI_Command,
) -> *mut sys::XLA_FFI_Error {
    let line = format!("copy with {size} bytes {src:?} -> {dst:?}");
    // SAFETY: the binding's arguments.
    unsafe { write(context, line, after, count, command) }
}

unsafe extern "C" fn update_copy(
    context: *mut sys::XLA_FFI_RecordContext,
    command: *const sys::XLA_FFI_Command,
    dst: *mut c_void,
    src: *mut c_void,
    size: i64,
) -> *mut sys::XLA_FFI_Error {
    let what = format!("{size} bytes {src:?} -> {dst:?}");
    // SAFETY: the binding's arguments.
    unsafe { rewrite(context, command, "copy", &what) }
}

unsafe extern "C" fn create_empty(
    context: *mut sys::XLA_FFI_RecordContext,
    after: *const *const sys::XLA_FFI_Command,
    count: u32,
    command: *mut *const sys::XLA_FFI_Command,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the binding's arguments.
    unsafe { write(context, "join".to_owned(), after, count, command) }
}

unsafe extern "C" fn capture(context: *mut sys::XLA_FFI_RecordContext) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the context of a CommandBuffer.
    unsafe { (*context.cast::<Written>()).captured = true };
    std::ptr::null_mut()
}
