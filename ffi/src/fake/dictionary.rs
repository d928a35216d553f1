//! Dictionaries as the C API has them, which own what they point to.

use std::ffi::c_void;
use std::rc::Rc;

use super::{Attr, CAttr, length, span};
use crate::error::struct_size;
use crate::sys;

/// A dictionary: an attribute's value, or a program's options.
#[derive(Clone)]
pub struct Dictionary(Rc<Owned>);

/// The C struct, and what it points to, which is not touched again.
struct Owned {
    entries: Vec<(String, Attr)>,
    attrs: sys::XLA_FFI_Attrs,
    _names: Vec<sys::XLA_FFI_ByteSpan>,
    _name_pointers: Vec<*mut sys::XLA_FFI_ByteSpan>,
    _values: Vec<CAttr>,
    _types: Vec<sys::XLA_FFI_AttrType>,
    _pointers: Vec<*mut c_void>,
}

impl Dictionary {
    /// A dictionary of these entries.
    pub fn new(entries: &[(&str, Attr)]) -> Self {
        let mut entries: Vec<(String, Attr)> =
            entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut names: Vec<_> = entries.iter().map(|(name, _)| span(name.as_bytes())).collect();
        let mut name_pointers: Vec<_> = names.iter_mut().map(|name| &raw mut *name).collect();
        let mut values: Vec<CAttr> = entries.iter().map(|(_, value)| value.to_c()).collect();
        let mut types: Vec<_> = values.iter().map(|value| value.kind).collect();
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| (&raw mut value.payload).cast()).collect();
        let attrs = sys::XLA_FFI_Attrs {
            struct_size: struct_size(sys::XLA_FFI_Attrs_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            size: length(&entries),
            types: types.as_mut_ptr(),
            names: name_pointers.as_mut_ptr(),
            attrs: pointers.as_mut_ptr(),
        };
        Dictionary(Rc::new(Owned {
            entries,
            attrs,
            _names: names,
            _name_pointers: name_pointers,
            _values: values,
            _types: types,
            _pointers: pointers,
        }))
    }

    /// The C struct, which lives as long as this.
    pub fn attrs(&self) -> &sys::XLA_FFI_Attrs {
        &self.0.attrs
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.0.entries).finish()
    }
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        self.0.entries == other.0.entries
    }
}
