//! What the fake host keeps and tells: state by stage, types, user data, the run, options, extensions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;

use super::Failure;
use crate::sys;

/// The run and the device of every call.
pub const RUN: i64 = 0x1234_5678_9abc;
/// The device of every call.
pub const DEVICE: i32 = 3;

type Deleter = unsafe extern "C" fn(*mut c_void);

/// Registered types: names, and how their values are dropped. A number is a place in the list, plus 1.
static TYPES: Mutex<Vec<(String, Option<Deleter>)>> = Mutex::new(Vec::new());

/// The number of a value's type, the value, and how it is dropped.
type State = (i64, *mut c_void, Option<Deleter>);

thread_local! {
    /// State of the program whose calls this thread makes, by stage.
    static STATE: RefCell<HashMap<u32, State>> = RefCell::new(HashMap::new());
    static USER_DATA: RefCell<HashMap<i64, *mut c_void>> = RefCell::new(HashMap::new());
    static OPTIONS: RefCell<*const sys::XLA_FFI_Attrs> = const { RefCell::new(std::ptr::null()) };
    static EXTENSION: RefCell<*const sys::XLA_FFI_Extension> =
        const { RefCell::new(std::ptr::null()) };
}

/// Fills the table's slots.
pub(super) fn offer(api: &mut sys::XLA_FFI_Api) {
    api.XLA_FFI_Type_Register = Some(register);
    api.XLA_FFI_State_Set = Some(set);
    api.XLA_FFI_State_Get = Some(get);
    api.XLA_FFI_InvokeContext_Get = Some(user_data);
    api.XLA_FFI_RunId_Get = Some(run_id);
    api.XLA_FFI_DeviceOrdinal_Get = Some(device_ordinal);
    api.XLA_FFI_CustomOptions_Get = Some(options);
    api.XLA_FFI_InvokeContext_FindExtension = Some(find_extension);
}

/// Ends the program whose calls this thread makes: drops its state.
///
/// # Panics
/// If a value has no deleter.
pub fn end_program() {
    for (_, (_, state, deleter)) in STATE.take() {
        // SAFETY: the value that was set, dropped once.
        unsafe { deleter.expect("a deleter")(state) };
    }
}

/// Lends a value to the handlers that this thread calls, under the number of its type.
///
/// # Safety
/// The value outlives those calls.
pub unsafe fn lend<T: crate::HostType>(host: &super::Host, value: &T) {
    // SAFETY: the host's table.
    let id = unsafe { crate::state::type_id::<T>(host.api()) }.expect("a number");
    USER_DATA.with_borrow_mut(|data| data.insert(id, (&raw const *value).cast_mut().cast()));
}

/// Sets the options of the programs whose calls this thread makes.
///
/// # Safety
/// They outlive those calls.
pub unsafe fn set_options(options: *const sys::XLA_FFI_Attrs) {
    OPTIONS.set(options);
}

/// Sets the one extension that the calls of this thread find.
///
/// # Safety
/// It outlives those calls.
pub unsafe fn set_extension(extension: *const sys::XLA_FFI_Extension) {
    EXTENSION.set(extension);
}

/// The head of an extension of version 0.2.
pub(super) fn extension(number: u32, size: usize) -> sys::XLA_FFI_Extension {
    let id = sys::XLA_FFI_ExtensionId {
        extension_type: i64::from(number),
        major_version: 0,
        minor_version: 2,
    };
    sys::XLA_FFI_Extension { struct_size: size, id, next: std::ptr::null() }
}

/// Runs `body`; the calls that this thread makes in it find this extension.
///
/// # Safety
/// It outlives `body`.
pub(super) unsafe fn with_extension<T>(
    extension: *const sys::XLA_FFI_Extension,
    body: impl FnOnce() -> T,
) -> T {
    let before = EXTENSION.replace(extension);
    let answer = body();
    EXTENSION.set(before);
    answer
}

fn failure(code: u32, message: &str) -> *mut sys::XLA_FFI_Error {
    Failure { code, message: message.to_owned() }.into_error()
}

/// The structs of all versions, told apart by size: 40 bytes without, 48 with the type's info.
unsafe extern "C" fn register(
    args: *mut sys::XLA_FFI_Type_Register_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct, read no further than its size.
    unsafe {
        let name = (*args).name;
        let name = std::slice::from_raw_parts(name.ptr.cast::<u8>(), name.len);
        let name = String::from_utf8_lossy(name).into_owned();
        let with_info = (*args).struct_size >= size_of::<sys::XLA_FFI_Type_Register_Args>();
        let deleter = if with_info { (*(*args).type_info).deleter } else { None };
        let mut types = TYPES.lock().expect("no panic");
        let at = types.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            types.push((name, deleter));
            types.len() - 1
        });
        types[at].1 = types[at].1.or(deleter);
        (*(*args).type_id).type_id = i64::try_from(at).expect("few types") + 1;
    }
    std::ptr::null_mut()
}

fn deleter_of(id: i64) -> Option<Deleter> {
    let at = usize::try_from(id - 1).ok()?;
    TYPES.lock().expect("no panic").get(at).and_then(|(_, deleter)| *deleter)
}

/// The newest struct says the stage; those of 0.1 and 0.2 have none, which means instantiate. The two
/// of 48 bytes are told apart by where their context lies: a stage is a small number.
unsafe extern "C" fn set(args: *mut sys::XLA_FFI_State_Set_Args) -> *mut sys::XLA_FFI_Error {
    let size = size_of::<sys::XLA_FFI_State_Set_Args>();
    // SAFETY: the caller's struct, of one of three layouts.
    let (stage, id, state, deleter) = unsafe {
        let old = args.cast::<sys::StateSetArgsV1>();
        // Half of a pointer, or a stage.
        let stage = (*args).stage;
        if (*args).struct_size == size && stage <= sys::XLA_FFI_ExecutionStage_RECORD {
            let id = (*(*args).type_id).type_id;
            (stage, id, (*args).state, deleter_of(id))
        } else {
            let id = (*(*old).type_id).type_id;
            let deleter = if (*args).struct_size == size { (*old).deleter } else { deleter_of(id) };
            (sys::XLA_FFI_ExecutionStage_INSTANTIATE, id, (*old).state, deleter)
        }
    };
    STATE.with_borrow_mut(|states| {
        if states.contains_key(&stage) {
            return failure(sys::XLA_FFI_Error_Code_ALREADY_EXISTS, "State is already set");
        }
        states.insert(stage, (id, state, deleter));
        std::ptr::null_mut()
    })
}

unsafe extern "C" fn get(args: *mut sys::XLA_FFI_State_Get_Args) -> *mut sys::XLA_FFI_Error {
    let staged = size_of::<sys::XLA_FFI_State_Get_Args>();
    // SAFETY: the caller's struct, of one of two layouts.
    unsafe {
        let old = args.cast::<sys::StateGetArgsV2>();
        let (stage, id, answer) = if (*args).struct_size == staged {
            ((*args).stage, (*(*args).type_id).type_id, &raw mut (*args).state)
        } else {
            let instantiate = sys::XLA_FFI_ExecutionStage_INSTANTIATE;
            (instantiate, (*(*old).type_id).type_id, &raw mut (*old).state)
        };
        STATE.with_borrow(|states| match states.get(&stage) {
            None => failure(sys::XLA_FFI_Error_Code_NOT_FOUND, "State is not set"),
            Some((known, _, _)) if *known != id => {
                failure(sys::XLA_FFI_Error_Code_INVALID_ARGUMENT, "State is of another type")
            }
            Some((_, state, _)) => {
                *answer = *state;
                std::ptr::null_mut()
            }
        })
    }
}

unsafe extern "C" fn user_data(
    args: *mut sys::XLA_FFI_InvokeContext_Get_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct.
    unsafe {
        let id = (*(*args).type_id).type_id;
        match USER_DATA.with_borrow(|data| data.get(&id).copied()) {
            None => failure(sys::XLA_FFI_Error_Code_NOT_FOUND, "User data not found"),
            Some(data) => {
                (*args).data = data;
                std::ptr::null_mut()
            }
        }
    }
}

unsafe extern "C" fn run_id(args: *mut sys::XLA_FFI_RunId_Get_Args) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct.
    unsafe { (*args).run_id = RUN };
    std::ptr::null_mut()
}

unsafe extern "C" fn device_ordinal(
    args: *mut sys::XLA_FFI_DeviceOrdinal_Get_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct.
    unsafe { (*args).device_ordinal = DEVICE };
    std::ptr::null_mut()
}

unsafe extern "C" fn options(
    args: *mut sys::XLA_FFI_CustomOptions_Get_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct.
    unsafe { (*args).attrs = OPTIONS.with_borrow(|options| *options) };
    std::ptr::null_mut()
}

unsafe extern "C" fn find_extension(
    args: *mut sys::XLA_FFI_InvokeContext_FindExtension_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct, and the extension that the test set.
    unsafe {
        let extension = EXTENSION.with_borrow(|extension| *extension);
        let asked = (*args).extension_type;
        let found = !extension.is_null() && (*extension).id.extension_type == asked;
        (*args).extension = if found { extension } else { std::ptr::null() };
    }
    std::ptr::null_mut()
}
