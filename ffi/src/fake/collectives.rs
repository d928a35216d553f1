//! Collectives of the fake host: communicators and windows are what was asked for, and no more.

use std::cell::RefCell;
use std::ffi::c_void;

use super::Failure;
use super::context::{extension, with_extension};
use crate::sys;

/// What handlers have asked for: cliques as text, and windows with the clique that each is of.
#[derive(Debug, Default)]
struct Asked {
    #[allow(clippy::vec_box, reason = "handles point to the strings, which must not move")]
    communicators: Vec<Box<String>>,
    windows: Vec<(String, Box<(usize, usize)>)>,
}

/// Runs `body`; the calls that this thread makes in it have collectives. A communicator's handle points
/// to a `String`, as `[[0, 1]] in mode 0, number 7`.
pub fn with_collectives<T>(body: impl FnOnce() -> T) -> T {
    let asked = RefCell::new(Asked::default());
    let extension = sys::XLA_FFI_Collectives_Extension {
        extension_base: extension(
            sys::XLA_FFI_Extension_Collectives,
            size_of::<sys::XLA_FFI_Collectives_Extension>(),
        ),
        state: (&raw const asked).cast_mut().cast(),
        request_communicator: Some(request_communicator),
        get_communicator: Some(get_communicator),
        request_window: Some(request_window),
        get_window: Some(get_window),
    };
    // SAFETY: the extension outlives `body`.
    unsafe { with_extension((&raw const extension).cast(), body) }
}

type This = *const sys::XLA_FFI_Collectives_Extension;

/// # Safety
/// The extension of `with_collectives`.
unsafe fn asked<'a>(this: This) -> &'a RefCell<Asked> {
    // SAFETY: the caller's promise.
    unsafe { &*(*this).state.cast::<RefCell<Asked>>() }
}

/// A clique as text.
///
/// # Safety
/// So many groups, each of its size.
unsafe fn clique(
    mode: u32,
    groups: *const sys::XLA_FFI_ReplicaGroup,
    count: usize,
    communication: i64,
) -> String {
    let ids = |at| {
        // SAFETY: the caller's promise.
        unsafe {
            let group: sys::XLA_FFI_ReplicaGroup = *groups.add(at);
            std::slice::from_raw_parts(group.ids, group.size)
        }
    };
    let groups: Vec<&[i64]> = (0..count).map(ids).collect();
    format!("{groups:?} in mode {mode}, number {communication}")
}

macro_rules! clique {
    ($args:ident) => {
        clique((*$args).group_mode, (*$args).groups, (*$args).num_groups, (*$args).communication_id)
    };
}

fn not_asked(what: &str) -> *mut sys::XLA_FFI_Error {
    let code = sys::XLA_FFI_Error_Code_NOT_FOUND;
    Failure { code, message: format!("nobody asked for this {what}") }.into_error()
}

unsafe extern "C" fn request_communicator(
    this: This,
    args: *mut sys::XLA_FFI_Communicator_Request_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the binding's arguments.
    unsafe { asked(this).borrow_mut().communicators.push(Box::new(clique!(args))) };
    std::ptr::null_mut()
}

unsafe extern "C" fn get_communicator(
    this: This,
    args: *mut sys::XLA_FFI_Communicator_Get_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the binding's arguments.
    unsafe {
        let (asked, wanted) = (asked(this).borrow(), clique!(args));
        let Some(found) = asked.communicators.iter().find(|known| ***known == wanted) else {
            return not_asked("communicator");
        };
        (*args).communicator = (&raw const **found).cast_mut().cast();
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn request_window(
    this: This,
    args: *mut sys::XLA_FFI_Window_Request_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the binding's arguments.
    unsafe {
        let mut asked = asked(this).borrow_mut();
        for at in 0..(*args).num_regions {
            let region = *(*args).regions.add(at);
            let span = Box::new((region.buffer.addr(), region.byte_size));
            asked.windows.push((clique!(args), span));
        }
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn get_window(
    this: This,
    args: *mut sys::XLA_FFI_Window_Get_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the binding's arguments.
    unsafe {
        let (asked, wanted, at) = (asked(this).borrow(), clique!(args), (*args).buffer.addr());
        let within = |span: &(usize, usize)| at >= span.0 && at - span.0 < span.1;
        let found = asked.windows.iter().find(|(clique, span)| *clique == wanted && within(span));
        let Some((_, span)) = found else { return not_asked("window") };
        (*args).window = (&raw const **span).cast::<c_void>().cast_mut().cast();
        (*args).window_offset = at - span.0;
    }
    std::ptr::null_mut()
}
