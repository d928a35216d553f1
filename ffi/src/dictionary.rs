//! Attributes beyond scalars, strings and arrays: dictionaries, structs and enums decoded from them,
//! alternatives, pointers.

use std::ptr::NonNull;

use crate::error::Error;
use crate::frame::Entries;
use crate::value::{Attribute, Value};

/// Named values, sorted by name: all attributes of a call, or one attribute that is a dictionary.
#[derive(Clone, Copy)]
pub struct Dictionary<'f>(Entries<'f>);

impl<'f> Dictionary<'f> {
    #[inline(always)]
    pub(crate) fn new(entries: Entries<'f>) -> Self {
        Dictionary(entries)
    }

    /// Number of entries.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.0.count()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether there is a value of this name.
    pub fn contains(self, name: &str) -> bool {
        self.0.find(name).is_some()
    }

    /// Whether there is a value of this name and kind.
    pub fn is<T: Attribute<'f>>(self, name: &str) -> bool {
        self.0.find(name).and_then(T::from_value).is_some()
    }

    /// The value of this name.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where there is none, or it is of another kind.
    #[inline(always)]
    pub fn get<T: Attribute<'f>>(self, name: &str) -> Result<T, Error> {
        self.0.find(name).and_then(T::from_value).ok_or_else(|| mismatch::<T>(self, name))
    }

    /// The same, or None where the name is absent.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where the value is of another kind.
    pub fn get_optional<T: Attribute<'f>>(self, name: &str) -> Result<Option<T>, Error> {
        if self.contains(name) { self.get(name).map(Some) } else { Ok(None) }
    }

    /// Names and values, by name.
    pub fn iter(self) -> impl Iterator<Item = (&'f [u8], Value<'f>)> {
        self.0.all()
    }

    /// Entry `index`, if it has this name.
    #[doc(hidden)]
    #[inline(always)]
    pub fn at(self, index: usize, name: &str) -> Option<Value<'f>> {
        self.0.at(index, name)
    }

    /// Entry of this name.
    #[doc(hidden)]
    pub fn find(self, name: &str) -> Option<Value<'f>> {
        self.0.find(name)
    }

    /// `{ hi: i64 7, lo: i64 1 }`.
    pub(crate) fn describe(self) -> String {
        let entry = |(name, value): (&[u8], Value<'_>)| {
            format!("{}: {}", String::from_utf8_lossy(name), value.describe())
        };
        let entries: Vec<String> = self.iter().map(entry).collect();
        format!("dictionary {{ {} }}", entries.join(", "))
    }
}

#[cold]
#[inline(never)]
fn mismatch<'f, T: Attribute<'f>>(attrs: Dictionary<'f>, name: &str) -> Error {
    let got = attrs.find(name).map_or("nothing".to_owned(), |value| value.describe());
    Error::invalid_argument(format!("attribute `{name}`: expected {}, got {got}", T::expected()))
}

impl<'f> Attribute<'f> for Dictionary<'f> {
    const KIND: &'static str = "dictionary";

    #[inline(always)]
    fn from_value(value: Value<'f>) -> Option<Self> {
        match value {
            Value::Dictionary(dictionary) => Some(dictionary),
            _ => None,
        }
    }

    fn accepts(value: Value<'_>) -> bool {
        matches!(value, Value::Dictionary(_))
    }
}

/// A pointer that the program carries as an `i64`: what it points to is between who wrote the program
/// and the handler. Never null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer<T>(NonNull<T>);

impl<T> Pointer<T> {
    /// The address.
    pub fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Attribute<'_> for Pointer<T> {
    const KIND: &'static str = "i64, an address";

    #[inline(always)]
    fn from_value(value: Value<'_>) -> Option<Self> {
        let address = usize::try_from(i64::from_value(value)?).ok()?;
        let pointer = NonNull::new(std::ptr::with_exposed_provenance_mut::<T>(address))?;
        pointer.is_aligned().then_some(Pointer(pointer))
    }

    fn accepts(value: Value<'_>) -> bool {
        Self::from_value(value).is_some()
    }
}

/// Positions in sorted order: entry k of what the host passes is name `k` of the sorted names.
pub const fn positions<const N: usize>(names: [&str; N]) -> [usize; N] {
    let mut positions = [0; N];
    let mut at = 0;
    while at < N {
        let mut other = 0;
        while other < N {
            if other != at && less(names[other].as_bytes(), names[at].as_bytes()) {
                positions[at] += 1;
            }
            other += 1;
        }
        at += 1;
    }
    positions
}

const fn less(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

/// Whether no name occurs twice.
pub const fn distinct<const N: usize>(names: [&str; N]) -> bool {
    let positions = positions(names);
    let mut at = 0;
    while at < N {
        let mut other = at + 1;
        while other < N {
            if positions[at] == positions[other] {
                return false;
            }
            other += 1;
        }
        at += 1;
    }
    true
}
