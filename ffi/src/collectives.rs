//! The host's communicators between devices, and windows of memory that these share: extension 129.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::context::Context;
use crate::error::{Error, ErrorCode, take};
use crate::invocation::asked_size;
use crate::sys;

/// What the numbers in a clique's groups count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the host knows no others")]
#[repr(u32)]
pub enum GroupMode {
    /// Replicas; each partition has a communicator of its own.
    CrossReplica = sys::XLA_FFI_GROUP_CROSS_REPLICA,
    /// Partitions; each replica has one.
    CrossPartition = sys::XLA_FFI_GROUP_CROSS_PARTITION,
    /// Replicas, in all partitions.
    CrossReplicaAndPartition = sys::XLA_FFI_GROUP_CROSS_REPLICA_AND_PARTITION,
    /// Replica · partitions + partition.
    FlattenedId = sys::XLA_FFI_GROUP_FLATTENED_ID,
}

/// The devices that communicate: this device's group among these.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, as the C function's arguments are")]
pub struct Clique<'a> {
    /// What `groups` counts.
    pub mode: GroupMode,
    /// The groups; none for one of all devices.
    pub groups: &'a [&'a [i64]],
    /// Tells communicators of the same groups apart.
    pub communication_id: i64,
}

/// Memory to be shared by a clique.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, as the C function's arguments are")]
pub struct Region {
    /// Where it starts.
    pub data: *const c_void,
    /// Its size.
    pub bytes: usize,
    /// Flags of the host's library for collectives.
    pub flags: u64,
}

/// A window of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// The host's handle: an `ncclWindow_t` on CUDA.
    pub handle: NonNull<c_void>,
    /// Bytes from its start to the buffer that was asked for.
    pub offset: usize,
}

/// The host's collectives.
#[derive(Debug)]
pub struct Collectives<'c> {
    api: *const sys::XLA_FFI_Api,
    extension: NonNull<sys::XLA_FFI_Collectives_Extension>,
    call: PhantomData<&'c ()>,
}

impl Context<'_> {
    /// The host's collectives.
    ///
    /// # Errors
    /// UNIMPLEMENTED where the host has no collectives extension of version 0.2.
    pub fn collectives(&self) -> Result<Collectives<'_>, Error> {
        const NUMBER: i64 = sys::XLA_FFI_Extension_Collectives as i64;
        let extension = self.extension(NUMBER, (0, 2)).and_then(|extension| {
            let whole = extension.size() >= size_of::<sys::XLA_FFI_Collectives_Extension>();
            NonNull::new(extension.as_ptr().cast_mut().cast()).filter(|_| whole)
        });
        let extension = extension.ok_or_else(|| {
            Error::new(ErrorCode::Unimplemented, "this host lends no collectives to this call")
        })?;
        Ok(Collectives { api: self.api(), extension, call: PhantomData })
    }
}

/// Asks through one of the extension's functions with a struct of these fields besides the clique's.
macro_rules! ask {
    ($self:ident.$function:ident, $clique:ident, $args:ident { $($field:ident: $value:expr),* }) => {{
        let groups = raw_groups($clique);
        let mut args = sys::$args {
            struct_size: asked_size::<sys::$args>(),
            extension_start: std::ptr::null_mut(),
            group_mode: $clique.mode as u32,
            groups: groups.as_ptr(),
            num_groups: groups.len(),
            communication_id: $clique.communication_id,
            $($field: $value),*
        };
        // SAFETY: the host's extension, valid during the call.
        let function = unsafe { $self.extension.as_ref() }.$function;
        let function = function.ok_or_else(|| missing(stringify!($function)))?;
        // SAFETY: the host's function with the struct it asks for.
        match NonNull::new(unsafe { function($self.extension.as_ptr(), &raw mut args) }) {
            None => args,
            // SAFETY: an error of this host that is ours.
            Some(error) => return Err(unsafe { take($self.api, error) }),
        }
    }};
}

impl Collectives<'_> {
    /// Asks for a communicator, in the prepare stage.
    ///
    /// # Errors
    /// The host's.
    pub fn request_communicator(&self, clique: &Clique<'_>) -> Result<(), Error> {
        ask!(self.request_communicator, clique, XLA_FFI_Communicator_Request_Args {});
        Ok(())
    }

    /// The communicator that was asked for, in the initialize and execute stages: an `ncclComm_t` on
    /// CUDA, which belongs to the host.
    ///
    /// # Errors
    /// The host's.
    pub fn communicator(&self, clique: &Clique<'_>) -> Result<NonNull<c_void>, Error> {
        let args = ask!(
            self.get_communicator,
            clique,
            XLA_FFI_Communicator_Get_Args { communicator: std::ptr::null_mut() }
        );
        NonNull::new(args.communicator.cast()).ok_or_else(|| nothing("communicator"))
    }

    /// Asks for windows of these regions, in the prepare stage.
    ///
    /// # Errors
    /// The host's.
    ///
    /// # Safety
    /// They are the call's buffers, or memory that outlives the program.
    pub unsafe fn request_windows(
        &self,
        clique: &Clique<'_>,
        regions: &[Region],
    ) -> Result<(), Error> {
        let raw = |region: &Region| sys::XLA_FFI_CollectiveMemoryRegion {
            buffer: region.data,
            byte_size: region.bytes,
            flags: region.flags,
        };
        let regions: Vec<_> = regions.iter().map(raw).collect();
        ask!(
            self.request_window,
            clique,
            XLA_FFI_Window_Request_Args { regions: regions.as_ptr(), num_regions: regions.len() }
        );
        Ok(())
    }

    /// The window that a buffer lies in, in the initialize and execute stages.
    ///
    /// # Errors
    /// The host's.
    pub fn window(&self, clique: &Clique<'_>, buffer: *const c_void) -> Result<Window, Error> {
        let args = ask!(
            self.get_window,
            clique,
            XLA_FFI_Window_Get_Args {
                buffer: buffer,
                window: std::ptr::null_mut(),
                window_offset: 0
            }
        );
        let handle = NonNull::new(args.window.cast()).ok_or_else(|| nothing("window"))?;
        Ok(Window { handle, offset: args.window_offset })
    }
}

fn raw_groups(clique: &Clique<'_>) -> Vec<sys::XLA_FFI_ReplicaGroup> {
    let raw = |ids: &&[i64]| sys::XLA_FFI_ReplicaGroup { ids: ids.as_ptr(), size: ids.len() };
    clique.groups.iter().map(raw).collect()
}

fn missing(function: &str) -> Error {
    let text = format!("this host's collectives extension has no {function}");
    Error::new(ErrorCode::Unimplemented, text)
}

fn nothing(what: &str) -> Error {
    Error::internal(format!("the host gave no {what}, and says no error"))
}
