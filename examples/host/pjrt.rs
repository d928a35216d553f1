//! As much of PJRT's C API as running a program takes. The order of its functions and the beginnings
//! of its structs never change. A plugin wants its structs whole, and later versions of PJRT append
//! fields, which are off where they are zero: so each struct here ends with room for more.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// The functions used, by their place in the table.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Slot {
    ErrorDestroy = 0,
    ErrorMessage = 1,
    PluginInitialize = 3,
    EventDestroy = 5,
    EventAwait = 8,
    ClientCreate = 10,
    ClientDestroy = 11,
    ClientAddressableDevices = 16,
    ClientCompile = 20,
    ClientBufferFromHostBuffer = 22,
    ExecutableDestroy = 40,
    ExecutableNumOutputs = 44,
    LoadedExecutableDestroy = 50,
    LoadedExecutableGetExecutable = 51,
    LoadedExecutableExecute = 55,
    BufferDestroy = 58,
    BufferToHostBuffer = 70,
}

/// Element types of buffers.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum BufferType {
    S32 = 4,
    F32 = 11,
    F64 = 12,
    C64 = 14,
    C128 = 15,
}

#[repr(C)]
pub(crate) struct Api {
    struct_size: usize,
    extension_start: *const c_void,
    version_struct_size: usize,
    version_extension: *const c_void,
    version: [c_int; 2],
    functions: [Function; 71],
}

/// Most functions' arguments: `this` is what they work on, then what they take and give.
#[repr(C)]
struct Args<T> {
    struct_size: usize,
    extension_start: *const c_void,
    this: *mut c_void,
    rest: T,
    later: Later,
}

/// Fields that this program does not know.
type Later = [usize; 32];
const LATER: Later = [0; 32];

impl<T> Args<T> {
    fn new(this: *mut c_void, rest: T) -> Self {
        Args {
            struct_size: size_of::<Self>(),
            extension_start: std::ptr::null(),
            this,
            rest,
            later: LATER,
        }
    }
}

/// A text or list: where it is, and how long.
#[repr(C)]
struct List<T> {
    data: *const T,
    size: usize,
}

impl<T> List<T> {
    const EMPTY: Self = List { data: std::ptr::null(), size: 0 };

    fn of(items: &[T]) -> Self {
        List { data: items.as_ptr(), size: items.len() }
    }
}

#[repr(C)]
struct Program {
    struct_size: usize,
    extension_start: *const c_void,
    code: List<u8>,
    format: List<u8>,
    later: Later,
}

#[repr(C)]
struct Compile {
    program: *const Program,
    options: List<u8>,
    executable: *mut c_void,
}

#[repr(C)]
struct FromHost {
    data: *const u8,
    kind: BufferType,
    dims: List<i64>,
    strides: List<i64>,
    semantics: c_int,
    device: *mut c_void,
    memory: *mut c_void,
    layout: *mut c_void,
    done: *mut c_void,
    buffer: *mut c_void,
}

#[repr(C)]
struct Options {
    struct_size: usize,
    extension_start: *const c_void,
    callbacks: [*const c_void; 2],
    transfers: [usize; 2],
    launch_id: c_int,
    not_donated: List<i64>,
    later: Later,
}

#[repr(C)]
struct Execute {
    options: *const Options,
    arguments: *const *const *mut c_void,
    devices: usize,
    argument_count: usize,
    outputs: *const *mut *mut c_void,
    done: *mut *mut c_void,
    device: *mut c_void,
}

#[repr(C)]
struct ToHost {
    layout: *mut c_void,
    data: *mut u8,
    size: usize,
    done: *mut c_void,
}

/// A loaded PJRT plugin; it stays loaded.
#[derive(Clone, Copy)]
pub(crate) struct Plugin(&'static Api);

impl Plugin {
    pub(crate) fn load(path: &str) -> Result<Self, String> {
        // SAFETY: a PJRT plugin, whose GetPjrtApi returns its table.
        unsafe {
            let library = libloading::Library::new(path).map_err(|error| error.to_string())?;
            let library = Box::leak(Box::new(library));
            let get = library
                .get::<unsafe extern "C" fn() -> *const Api>(b"GetPjrtApi\0")
                .map_err(|error| error.to_string())?;
            let plugin = Plugin(get().as_ref().ok_or("the plugin has no table")?);
            plugin.call(Slot::PluginInitialize, std::ptr::null_mut(), [0_usize; 0])?;
            Ok(plugin)
        }
    }

    /// What `GetPjrtApi` returned.
    pub(crate) fn api(self) -> *const c_void {
        std::ptr::from_ref(self.0).cast()
    }

    pub(crate) fn client(self) -> Result<Client, String> {
        // Options, three callbacks' words, then the client.
        let made =
            self.call(Slot::ClientCreate, std::ptr::null_mut(), [std::ptr::null_mut(); 6])?;
        Ok(Client { plugin: self, client: made.rest[5] })
    }

    /// Calls a function and gives its arguments back as it left them.
    fn call<T>(self, slot: Slot, this: *mut c_void, rest: T) -> Result<Args<T>, String> {
        let mut args = Args::new(this, rest);
        // SAFETY: the struct is the one that the function of this place takes.
        let error = unsafe { self.0.functions[slot as usize]((&raw mut args).cast()) };
        if error.is_null() { Ok(args) } else { Err(self.message(error)) }
    }

    /// The text of an error, which is destroyed.
    fn message(self, error: *mut c_void) -> String {
        let mut asked = Args::new(error, List::<u8>::EMPTY);
        let mut gone = Args::new(error, ());
        // SAFETY: the table's first two functions; the text lives until the error is destroyed.
        unsafe {
            self.0.functions[Slot::ErrorMessage as usize]((&raw mut asked).cast());
            let bytes = std::slice::from_raw_parts(asked.rest.data, asked.rest.size);
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.functions[Slot::ErrorDestroy as usize]((&raw mut gone).cast());
            text
        }
    }

    fn wait(self, event: *mut c_void) -> Result<(), String> {
        let ended = self.call(Slot::EventAwait, event, ());
        self.call(Slot::EventDestroy, event, ())?;
        ended.map(drop)
    }

    /// Destroys something; that this fails would be a bug of the plugin's.
    fn destroy(self, slot: Slot, this: *mut c_void) {
        if let Err(error) = self.call(slot, this, ()) {
            eprintln!("{error}");
        }
    }
}

pub(crate) struct Client {
    plugin: Plugin,
    client: *mut c_void,
}

impl Client {
    pub(crate) fn compile(&self, code: &[u8]) -> Result<Executable<'_>, String> {
        /// CompileOptionsProto: one replica, one partition.
        const OPTIONS: [u8; 6] = [0x1a, 0x04, 0x20, 0x01, 0x28, 0x01];
        let program = Program {
            struct_size: size_of::<Program>(),
            extension_start: std::ptr::null(),
            code: List::of(code),
            format: List::of(b"mlir"),
            later: LATER,
        };
        let (options, executable) = (List::of(&OPTIONS), std::ptr::null_mut());
        let compile = Compile { program: &raw const program, options, executable };
        let compiled = self.plugin.call(Slot::ClientCompile, self.client, compile)?;
        Ok(Executable {
            plugin: self.plugin,
            loaded: compiled.rest.executable,
            client: PhantomData,
        })
    }

    /// A copy of the data on the first device.
    pub(crate) fn buffer(
        &self,
        kind: BufferType,
        dims: &[i64],
        data: &[u8],
    ) -> Result<Buffer<'_>, String> {
        let devices = List::<*mut c_void>::EMPTY;
        let devices = self.plugin.call(Slot::ClientAddressableDevices, self.client, devices)?.rest;
        if devices.size == 0 {
            return Err("the plugin has no device".to_owned());
        }
        let null = std::ptr::null_mut();
        let host = FromHost {
            data: data.as_ptr(),
            kind,
            dims: List::of(dims),
            strides: List::EMPTY,
            // The data is copied during the call.
            semantics: 0,
            // SAFETY: the list has an entry.
            device: unsafe { *devices.data },
            memory: null,
            layout: null,
            done: null,
            buffer: null,
        };
        let made = self.plugin.call(Slot::ClientBufferFromHostBuffer, self.client, host)?.rest;
        self.plugin.wait(made.done)?;
        Ok(Buffer { plugin: self.plugin, buffer: made.buffer, client: PhantomData })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.plugin.destroy(Slot::ClientDestroy, self.client);
    }
}

pub(crate) struct Executable<'c> {
    plugin: Plugin,
    loaded: *mut c_void,
    client: PhantomData<&'c Client>,
}

impl<'c> Executable<'c> {
    fn output_count(&self) -> Result<usize, String> {
        let got = self.plugin.call(
            Slot::LoadedExecutableGetExecutable,
            self.loaded,
            std::ptr::null_mut::<c_void>(),
        )?;
        let count = self.plugin.call(Slot::ExecutableNumOutputs, got.rest, 0_usize);
        self.plugin.destroy(Slot::ExecutableDestroy, got.rest);
        Ok(count?.rest)
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[Buffer<'_>]) -> Result<Vec<Buffer<'c>>, String> {
        let null = std::ptr::null_mut();
        let options = Options {
            struct_size: size_of::<Options>(),
            extension_start: std::ptr::null(),
            callbacks: [std::ptr::null(); 2],
            transfers: [0; 2],
            launch_id: 0,
            not_donated: List::EMPTY,
            later: LATER,
        };
        let args: Vec<*mut c_void> = args.iter().map(|arg| arg.buffer).collect();
        let mut outputs = vec![null; self.output_count()?];
        let (inputs_of_device, outputs_of_device) = (args.as_ptr(), outputs.as_mut_ptr());
        let mut done = null;
        let execute = Execute {
            options: &raw const options,
            arguments: &raw const inputs_of_device,
            devices: 1,
            argument_count: args.len(),
            outputs: &raw const outputs_of_device,
            done: &raw mut done,
            device: null,
        };
        self.plugin.call(Slot::LoadedExecutableExecute, self.loaded, execute)?;
        let buffer = |buffer| Buffer { plugin: self.plugin, buffer, client: PhantomData };
        let outputs = outputs.into_iter().map(buffer).collect();
        self.plugin.wait(done)?;
        Ok(outputs)
    }
}

impl Drop for Executable<'_> {
    fn drop(&mut self) {
        self.plugin.destroy(Slot::LoadedExecutableDestroy, self.loaded);
    }
}

pub(crate) struct Buffer<'c> {
    plugin: Plugin,
    buffer: *mut c_void,
    client: PhantomData<&'c Client>,
}

impl Buffer<'_> {
    pub(crate) fn to_host(&self) -> Result<Vec<u8>, String> {
        let null = std::ptr::null_mut();
        // Without a place to write to it tells the size.
        let ask = ToHost { layout: null, data: std::ptr::null_mut(), size: 0, done: null };
        let size = self.plugin.call(Slot::BufferToHostBuffer, self.buffer, ask)?.rest.size;
        let mut bytes = vec![0; size];
        let copy = ToHost { layout: null, data: bytes.as_mut_ptr(), size, done: null };
        let copied = self.plugin.call(Slot::BufferToHostBuffer, self.buffer, copy)?;
        self.plugin.wait(copied.rest.done)?;
        Ok(bytes)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.plugin.destroy(Slot::BufferDestroy, self.buffer);
    }
}
