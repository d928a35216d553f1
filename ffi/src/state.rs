//! Values that the host keeps for handlers: state of a program's call, and what the host's user lends.
//! The host knows their types by numbers, which differ from host to host of one process.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

use crate::context::{Context, ExecutionStage};
use crate::error::{Error, ErrorCode, take};
use crate::future::locked;
use crate::invocation::{ask, asked_size, unknown};
use crate::{panics, sys};

/// A type that hosts keep values of. [`host_type!`](crate::host_type) implements it.
///
/// # Safety
/// The name and the numbers are of this type alone.
#[diagnostic::on_unimplemented(
    message = "a host cannot keep values of `{Self}`",
    note = "write xla_ffi::host_type!({Self}, \"a name that no other type has\")"
)]
pub unsafe trait HostType: Send + Sync + Sized + 'static {
    /// Under which hosts know it.
    const NAME: &'static str;

    /// Its numbers.
    fn ids() -> &'static TypeIds;
}

/// Lets hosts keep values of a type, under a name that no other type has.
///
/// ```
/// struct Plan(Vec<f32>);
/// xla_ffi::host_type!(Plan, "example.Plan");
/// ```
#[macro_export]
macro_rules! host_type {
    ($type:ty, $name:literal) => {
        // SAFETY: the numbers are this expansion's own; the name is the caller's choice.
        unsafe impl $crate::HostType for $type {
            const NAME: &'static str = $name;

            fn ids() -> &'static $crate::TypeIds {
                static IDS: $crate::TypeIds = $crate::TypeIds::new();
                &IDS
            }
        }
    };
}

/// How many hosts of one process may keep values of a type.
const HOSTS: usize = 16;

/// The numbers of a type in the hosts of this process.
#[derive(Debug)]
pub struct TypeIds {
    known: [(AtomicPtr<sys::XLA_FFI_Api>, AtomicI64); HOSTS],
    registering: Mutex<()>,
}

impl Default for TypeIds {
    fn default() -> Self {
        Self::new()
    }
}

impl TypeIds {
    /// None yet.
    pub const fn new() -> Self {
        let none = [const { (AtomicPtr::new(std::ptr::null_mut()), AtomicI64::new(0)) }; HOSTS];
        TypeIds { known: none, registering: Mutex::new(()) }
    }

    fn find(&self, api: *const sys::XLA_FFI_Api) -> Option<i64> {
        for (host, id) in &self.known {
            let host = host.load(Ordering::Acquire);
            if std::ptr::eq(host, api) {
                return Some(id.load(Ordering::Relaxed));
            }
            if host.is_null() {
                return None;
            }
        }
        None
    }
}

/// The number of `T` in a host; registers it there if need be.
///
/// # Safety
/// `api` is a host's function table.
pub(crate) unsafe fn type_id<T: HostType>(api: *const sys::XLA_FFI_Api) -> Result<i64, Error> {
    let ids = T::ids();
    if let Some(id) = ids.find(api) {
        return Ok(id);
    }
    let _one_at_a_time = locked(&ids.registering);
    if let Some(id) = ids.find(api) {
        return Ok(id);
    }
    let free = ids.known.iter().find(|(host, _)| host.load(Ordering::Relaxed).is_null());
    let (host, id) = free.ok_or_else(|| {
        let text =
            format!("{} is known to {HOSTS} hosts of this process, and no more fit", T::NAME);
        Error::new(ErrorCode::ResourceExhausted, text)
    })?;
    // SAFETY: the caller's promise.
    let number = unsafe { register::<T>(api) }?;
    id.store(number, Ordering::Relaxed);
    // Published with its number.
    host.store(api.cast_mut(), Ordering::Release);
    Ok(number)
}

/// # Safety
/// `api` is a host's function table.
unsafe fn register<T: HostType>(api: *const sys::XLA_FFI_Api) -> Result<i64, Error> {
    const END: usize = offset_of!(sys::XLA_FFI_Api, XLA_FFI_Type_Register) + size_of::<usize>();
    // SAFETY: the slot is read where the table has it.
    let register =
        unsafe { sys::has_slot(api, END).then(|| (*api).XLA_FFI_Type_Register).flatten() };
    let register = register.ok_or_else(|| unknown("types their numbers"))?;
    let name = sys::XLA_FFI_ByteSpan { ptr: T::NAME.as_ptr().cast(), len: T::NAME.len() };
    // It says that the host is to choose the number.
    let mut type_id = sys::XLA_FFI_TypeId { type_id: 0 };
    let info = sys::XLA_FFI_TypeInfo {
        struct_size: asked_size::<sys::XLA_FFI_TypeInfo>(),
        extension_start: std::ptr::null_mut(),
        deleter: Some(delete::<T>),
    };
    let mut new = sys::XLA_FFI_Type_Register_Args {
        struct_size: asked_size::<sys::XLA_FFI_Type_Register_Args>(),
        extension_start: std::ptr::null_mut(),
        name,
        type_id: &raw mut type_id,
        type_info: &raw const info,
    };
    let mut old = sys::TypeIdRegisterArgsV1 {
        struct_size: asked_size::<sys::TypeIdRegisterArgsV1>(),
        extension_start: std::ptr::null_mut(),
        name,
        type_id: &raw mut type_id,
    };
    // SAFETY: the host's function with the struct of its version; XLA copies the name and the info.
    let error = unsafe {
        let minor = (*api).api_version.minor_version;
        register(if minor >= sys::TYPE_INFO_MINOR { &raw mut new } else { (&raw mut old).cast() })
    };
    match NonNull::new(error) {
        None => Ok(type_id.type_id),
        // SAFETY: an error of this host that is ours.
        Some(error) => Err(unsafe { take(api, error) }),
    }
}

/// Drops a value that the host has kept.
unsafe extern "C" fn delete<T: HostType>(value: *mut c_void) {
    // SAFETY: the host passes what `keep` gave it, once. A panic has nobody to be told to.
    let _ = panics::catch(|| drop(unsafe { Box::from_raw(value.cast::<T>()) }));
}

/// Gives the host a value to keep for the later stages of this call.
pub(crate) fn keep<T: HostType>(context: &Context<'_>, value: T) -> Result<(), Error> {
    const END: usize = offset_of!(sys::XLA_FFI_Api, XLA_FFI_State_Set) + size_of::<usize>();
    let api = context.api();
    // SAFETY: the slot ends at END.
    let set = unsafe { context.slot(END, |api| api.XLA_FFI_State_Set) };
    let set = set.ok_or_else(|| unknown("how to keep state"))?;
    // SAFETY: `slot` saw the table.
    let id = unsafe { type_id::<T>(api) }?;
    let mut id = sys::XLA_FFI_TypeId { type_id: id };
    let state: *mut T = Box::into_raw(Box::new(value));
    let (extension_start, ctx, type_id) = (std::ptr::null_mut(), context.raw(), &raw mut id);
    let mut v1 = sys::StateSetArgsV1 {
        struct_size: asked_size::<sys::StateSetArgsV1>(),
        extension_start,
        ctx,
        type_id,
        state: state.cast(),
        deleter: Some(delete::<T>),
    };
    let mut v2 = sys::StateSetArgsV2 {
        struct_size: asked_size::<sys::StateSetArgsV2>(),
        extension_start,
        ctx,
        type_id,
        state: state.cast(),
    };
    let mut v3 = sys::XLA_FFI_State_Set_Args {
        struct_size: asked_size::<sys::XLA_FFI_State_Set_Args>(),
        extension_start,
        ctx,
        stage: context.stage().code(),
        type_id,
        state: state.cast(),
    };
    // SAFETY: the table was seen; the host's function with the struct of its version.
    let error = unsafe {
        match (*api).api_version.minor_version {
            ..sys::TYPE_INFO_MINOR => set((&raw mut v1).cast()),
            sys::TYPE_INFO_MINOR => set((&raw mut v2).cast()),
            _ => set(&raw mut v3),
        }
    };
    let Some(error) = NonNull::new(error) else { return Ok(()) };
    // SAFETY: an error of this host that is ours; what it refused is ours still.
    unsafe {
        drop(Box::from_raw(state));
        Err(take(api, error))
    }
}

impl<'f> Context<'f> {
    /// The state that this call's instantiate handler made.
    ///
    /// # Errors
    /// The host's: there is none, or it is of another type.
    pub fn state<T: HostType>(&self) -> Result<&'f T, Error> {
        self.state_of(ExecutionStage::Instantiate)
    }

    /// The state that this call's handler of a stage made. Hosts before API 0.3 know no other stage's
    /// than instantiate's.
    ///
    /// # Errors
    /// The host's: there is none, or it is of another type.
    pub fn state_of<T: HostType>(&self, stage: ExecutionStage) -> Result<&'f T, Error> {
        const END: usize = offset_of!(sys::XLA_FFI_Api, XLA_FFI_State_Get) + size_of::<usize>();
        let api = self.api();
        // SAFETY: the slot ends at END.
        let get = unsafe { self.slot(END, |api| api.XLA_FFI_State_Get) };
        let get = get.ok_or_else(|| unknown("what it keeps"))?;
        // SAFETY: `slot` saw the table.
        let (id, minor) = unsafe { (type_id::<T>(api)?, (*api).api_version.minor_version) };
        let mut id = sys::XLA_FFI_TypeId { type_id: id };
        let (extension_start, ctx, type_id) = (std::ptr::null_mut(), self.raw(), &raw mut id);
        let state = std::ptr::null_mut();
        let mut v2 = sys::StateGetArgsV2 {
            struct_size: asked_size::<sys::StateGetArgsV2>(),
            extension_start,
            ctx,
            type_id,
            state,
        };
        let mut v3 = sys::XLA_FFI_State_Get_Args {
            struct_size: asked_size::<sys::XLA_FFI_State_Get_Args>(),
            extension_start,
            ctx,
            stage: stage.code(),
            type_id,
            state,
        };
        // SAFETY: the host's function with the struct of its version.
        let (error, state) = unsafe {
            if minor >= sys::STAGED_STATE_MINOR {
                (get(&raw mut v3), v3.state)
            } else if stage == ExecutionStage::Instantiate {
                (get((&raw mut v2).cast()), v2.state)
            } else {
                let what = format!("the state of stage {stage:?}: it is of API 0.{minor}");
                return Err(unknown(&what));
            }
        };
        // SAFETY: the host's answer about a value of this type, kept until the program is gone.
        unsafe { answer(api, error, state) }
    }

    /// What the program that runs this one lends to handlers under this type.
    ///
    /// # Errors
    /// The host's: NOT_FOUND where there is none.
    pub fn user_data<T: HostType>(&self) -> Result<&T, Error> {
        if self.api().is_null() {
            return Err(unknown("user data"));
        }
        // SAFETY: a table that is not null.
        let mut id = sys::XLA_FFI_TypeId { type_id: unsafe { type_id::<T>(self.api()) }? };
        let args = ask!(
            self,
            XLA_FFI_InvokeContext_Get,
            "user data",
            XLA_FFI_InvokeContext_Get_Args { type_id: &raw mut id, data: std::ptr::null_mut() }
        )?;
        // SAFETY: the host's answer about a value of this type, lent during the call.
        unsafe { answer(self.api(), std::ptr::null_mut(), args.data) }
    }
}

/// # Safety
/// An answer of this host: an error that is ours, or a value of type `T` that lives for `'a`.
unsafe fn answer<'a, T: HostType>(
    api: *const sys::XLA_FFI_Api,
    error: *mut sys::XLA_FFI_Error,
    value: *mut c_void,
) -> Result<&'a T, Error> {
    if let Some(error) = NonNull::new(error) {
        // SAFETY: the caller's promise.
        return Err(unsafe { take(api, error) });
    }
    // SAFETY: the caller's promise.
    let value = unsafe { value.cast::<T>().as_ref() };
    value.ok_or_else(|| Error::new(ErrorCode::NotFound, format!("the host keeps no {}", T::NAME)))
}
