//! The C ABI of XLA's FFI, and what of it differs between the API versions 0.1 to 0.5.
//!
//! `c_api` is bindgen's reading of the newest header. What a handler touches (the call frame,
//! buffers, attributes, metadata, the first slots of the function table) has kept its layout since
//! API 0.1; the assertions below hold those offsets. What did change has one struct per layout.

#[allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[allow(unreachable_pub, clippy::all, clippy::unwrap_used)]
#[rustfmt::skip]
mod c_api;

pub use c_api::*;

use std::mem::{offset_of, size_of};

/// Whether a function table has the slot that ends at `end`. Tables of API 0.1 up to jaxlib 0.5 say 88
/// bytes, and have the slots up to the thread pool's.
///
/// # Safety
/// The pointer is a host's function table.
pub(crate) unsafe fn has_slot(api: *const XLA_FFI_Api, end: usize) -> bool {
    /// What those tables say.
    const SAID: usize = 88;
    // SAFETY: every table begins with its size and version.
    let (size, minor) = unsafe { ((*api).struct_size, (*api).api_version.minor_version) };
    let pool = offset_of!(XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule) + size_of::<usize>();
    reaches(size, end) || (size == SAID && minor == 1 && end <= pool)
}

/// Whether a table or struct of `struct_size` bytes has the field that ends at `end`.
pub(crate) fn reaches(struct_size: usize, end: usize) -> bool {
    struct_size >= end
}

/// The first API minor version whose bundles and registrations have a record stage.
pub(crate) const RECORD_MINOR: i32 = 4;

/// `XLA_FFI_Handler_Bundle` up to API 0.3: no `record` stage.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct HandlerBundleV3 {
    pub instantiate: XLA_FFI_Handler,
    pub prepare: XLA_FFI_Handler,
    pub initialize: XLA_FFI_Handler,
    pub execute: XLA_FFI_Handler,
}

/// `XLA_FFI_Handler_Register_Args` up to API 0.3.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct HandlerRegisterArgsV3 {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_InternalExtension,
    pub name: XLA_FFI_ByteSpan,
    pub platform: XLA_FFI_ByteSpan,
    pub bundle: HandlerBundleV3,
    pub traits: XLA_FFI_Handler_Traits,
}

/// `XLA_FFI_State_Set_Args` of API 0.1: the deleter travels with the state.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct StateSetArgsV1 {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_InternalExtension,
    pub ctx: *mut XLA_FFI_InvokeContext,
    pub type_id: *mut XLA_FFI_TypeId,
    pub state: *mut std::ffi::c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut std::ffi::c_void)>,
}

/// `XLA_FFI_State_Set_Args` of API 0.2: neither deleter nor stage.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct StateSetArgsV2 {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_InternalExtension,
    pub ctx: *mut XLA_FFI_InvokeContext,
    pub type_id: *mut XLA_FFI_TypeId,
    pub state: *mut std::ffi::c_void,
}

/// `XLA_FFI_State_Get_Args` of API 0.1 and 0.2: no stage.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct StateGetArgsV2 {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_InternalExtension,
    pub ctx: *mut XLA_FFI_InvokeContext,
    pub type_id: *mut XLA_FFI_TypeId,
    pub state: *mut std::ffi::c_void,
}

/// `XLA_FFI_TypeId_Register_Args` of API 0.1, in the slot of `XLA_FFI_Type_Register`: no type info.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct TypeIdRegisterArgsV1 {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_InternalExtension,
    pub name: XLA_FFI_ByteSpan,
    pub type_id: *mut XLA_FFI_TypeId,
}

/// The first API minor version in which types are registered with their deleter.
pub(crate) const TYPE_INFO_MINOR: i32 = 2;

/// The first API minor version in which each stage has a state of its own.
pub(crate) const STAGED_STATE_MINOR: i32 = 3;

// The same in every API version from 0.1 on: (what, offset or size).
const _: () = {
    assert!(offset_of!(XLA_FFI_CallFrame, extension_start) == 8);
    assert!(offset_of!(XLA_FFI_CallFrame, api) == 16);
    assert!(offset_of!(XLA_FFI_CallFrame, ctx) == 24);
    assert!(offset_of!(XLA_FFI_CallFrame, stage) == 32);
    assert!(offset_of!(XLA_FFI_CallFrame, args) == 40);
    assert!(offset_of!(XLA_FFI_CallFrame, rets) == 80);
    assert!(offset_of!(XLA_FFI_CallFrame, attrs) == 120);
    assert!(offset_of!(XLA_FFI_CallFrame, future) == 168);
    assert!(XLA_FFI_CallFrame_STRUCT_SIZE == 168);
    assert!(size_of::<XLA_FFI_Buffer>() == 48);
    assert!(size_of::<XLA_FFI_Args>() == 40 && size_of::<XLA_FFI_Rets>() == 40);
    assert!(size_of::<XLA_FFI_Attrs>() == 48);
    assert!(size_of::<XLA_FFI_ByteSpan>() == 16 && size_of::<XLA_FFI_Scalar>() == 16);
    assert!(offset_of!(XLA_FFI_Metadata, api_version) == 8);
    assert!(offset_of!(XLA_FFI_Metadata, traits) == 32);
    assert!(offset_of!(XLA_FFI_Api, api_version) == 16);
    assert!(offset_of!(XLA_FFI_Api, XLA_FFI_Error_Create) == 48);
    assert!(offset_of!(XLA_FFI_Api, XLA_FFI_Error_Destroy) == 64);
    assert!(offset_of!(XLA_FFI_Api, XLA_FFI_Handler_Register) == 72);
    assert!(offset_of!(XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule) == 136);
    assert!(offset_of!(XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads) == 144);
};

// What differs. `state_type_id` lies past the metadata of hosts before jaxlib 0.8.0.
const _: () = {
    assert!(offset_of!(HandlerRegisterArgsV3, traits) == 80);
    assert!(offset_of!(XLA_FFI_Handler_Register_Args, traits) == 88);
    assert!(XLA_FFI_Handler_Register_Args_STRUCT_SIZE == 92);
    assert!(size_of::<StateSetArgsV1>() == 48 && size_of::<StateSetArgsV2>() == 40);
    assert!(size_of::<XLA_FFI_State_Set_Args>() == 48);
    assert!(offset_of!(XLA_FFI_State_Set_Args, stage) == 24);
    assert!(offset_of!(XLA_FFI_Metadata, state_type_id) == 40);
    assert!(XLA_FFI_Metadata_STRUCT_SIZE == 36);
};
