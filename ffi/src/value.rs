//! Attribute values as XLA passes them, and the Rust types they decode to.

use std::marker::PhantomData;

use num_complex::Complex;

use crate::data_type::{DataType, Element};
use crate::dictionary::Dictionary;

/// The value of one attribute.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Value<'f> {
    /// A number or predicate.
    Scalar(Scalar<'f>),
    /// A string.
    String(&'f [u8]),
    /// An array of numbers.
    Array(Array<'f>),
    /// A dictionary.
    Dictionary(Dictionary<'f>),
    /// A kind of attribute that this crate does not know, with its code in the C API.
    Unknown(u32),
}

/// A scalar attribute: its type, and where its bytes lie.
#[derive(Clone, Copy)]
pub struct Scalar<'f> {
    dtype: DataType,
    data: *const u8,
    borrow: PhantomData<&'f [u8]>,
}

impl<'f> Scalar<'f> {
    /// # Safety
    /// `data` points at a value of type `dtype` that lives for `'f`.
    #[inline(always)]
    pub(crate) unsafe fn new(dtype: DataType, data: *const u8) -> Self {
        Scalar { dtype, data, borrow: PhantomData }
    }

    /// The element type.
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    fn describe(self) -> String {
        let value = Value::Scalar(self);
        if let Some(code) = u8::from_value(value) {
            return if code.is_ascii_graphic() {
                format!("u8 {code} ('{}')", char::from(code))
            } else {
                format!("u8 {code}")
            };
        }
        macro_rules! first_of {
            ($($scalar:ty),*) => {
                None$(.or_else(|| <$scalar>::from_value(value).map(|value| value.to_string())))*
            };
        }
        let text: Option<String> =
            first_of!(bool, i8, i16, i32, i64, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
        match text {
            Some(text) => format!("{} {text}", self.dtype),
            None => self.dtype.to_string(),
        }
    }
}

/// An array attribute: its element type, and where its elements lie.
#[derive(Clone, Copy)]
pub struct Array<'f> {
    dtype: DataType,
    len: usize,
    data: *const u8,
    borrow: PhantomData<&'f [u8]>,
}

impl<'f> Array<'f> {
    /// # Safety
    /// `data` points at `len` values of type `dtype` that live for `'f`.
    #[inline(always)]
    pub(crate) unsafe fn new(dtype: DataType, len: usize, data: *const u8) -> Self {
        Array { dtype, len, data, borrow: PhantomData }
    }

    #[inline(always)]
    fn elements<T: Element>(self) -> Option<&'f [T]> {
        if self.dtype != T::DTYPE {
            return None;
        }
        if self.len == 0 {
            return Some(&[]);
        }
        let data = self.data.cast::<T>();
        // SAFETY: so many values of this type lie there for 'f (Array::new), aligned as checked.
        data.is_aligned().then(|| unsafe { std::slice::from_raw_parts(data, self.len) })
    }
}

impl<'f> Value<'f> {
    /// A scalar from a Rust number.
    pub fn from_element<T: Element>(value: &'f T) -> Value<'f> {
        // SAFETY: an Element has the layout of its DTYPE, and the borrow lives for 'f.
        Value::Scalar(unsafe { Scalar::new(T::DTYPE, (&raw const *value).cast()) })
    }

    /// A predicate.
    pub fn from_bool(value: &'f bool) -> Value<'f> {
        // SAFETY: a bool is one byte, as a predicate is, and the borrow lives for 'f.
        Value::Scalar(unsafe { Scalar::new(DataType::BOOL, (&raw const *value).cast()) })
    }

    /// What was passed, for messages: `i32 7`, `u8 88 ('X')`, `string "on"`, `array of i64`.
    pub fn describe(&self) -> String {
        match self {
            Value::Scalar(scalar) => scalar.describe(),
            Value::String(bytes) => format!("string {:?}", String::from_utf8_lossy(bytes)),
            Value::Array(array) => format!("array of {} {}", array.len, array.dtype),
            Value::Dictionary(dictionary) => dictionary.describe(),
            Value::Unknown(code) => format!("attribute type {code}"),
        }
    }
}

/// A Rust type that an attribute decodes to.
pub trait Attribute<'f>: Sized {
    /// The kind, for tables and messages: `i32`, `bool`, `string`.
    const KIND: &'static str;

    /// The value, or None where it is of another kind.
    fn from_value(value: Value<'f>) -> Option<Self>;

    /// Whether `from_value` gives a value, for a value of any lifetime.
    fn accepts(value: Value<'_>) -> bool;

    /// What a call must pass, for messages.
    fn expected() -> String {
        Self::KIND.to_owned()
    }
}

macro_rules! scalar_attributes {
    ($($scalar:ty = $kind:literal),* $(,)?) => {$(
        impl Attribute<'_> for $scalar {
            const KIND: &'static str = $kind;

            #[inline(always)]
            fn from_value(value: Value<'_>) -> Option<Self> {
                match value {
                    Value::Scalar(scalar) if scalar.dtype == <$scalar>::DTYPE => {
                        // SAFETY: a value of this type lies there, and any bit pattern is a value
                        // of an Element.
                        Some(unsafe { scalar.data.cast::<$scalar>().read_unaligned() })
                    }
                    _ => None,
                }
            }

            fn accepts(value: Value<'_>) -> bool {
                Self::from_value(value).is_some()
            }
        }
    )*};
}

scalar_attributes! {
    i8 = "i8", i16 = "i16", i32 = "i32", i64 = "i64", u8 = "u8", u16 = "u16", u32 = "u32",
    u64 = "u64", f32 = "f32", f64 = "f64", Complex<f32> = "c64", Complex<f64> = "c128",
}

macro_rules! array_attributes {
    ($($scalar:ty = $kind:literal),* $(,)?) => {$(
        impl<'f> Attribute<'f> for &'f [$scalar] {
            const KIND: &'static str = $kind;

            #[inline(always)]
            fn from_value(value: Value<'f>) -> Option<Self> {
                match value {
                    Value::Array(array) => array.elements(),
                    _ => None,
                }
            }

            fn accepts(value: Value<'_>) -> bool {
                <&[$scalar]>::from_value(value).is_some()
            }
        }
    )*};
}

array_attributes! {
    i8 = "array of i8", i16 = "array of i16", i32 = "array of i32", i64 = "array of i64",
    u8 = "array of u8", u16 = "array of u16", u32 = "array of u32", u64 = "array of u64",
    f32 = "array of f32", f64 = "array of f64",
}

impl Attribute<'_> for bool {
    const KIND: &'static str = "bool";

    #[inline(always)]
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Scalar(scalar) if scalar.dtype == DataType::BOOL => {
                // SAFETY: a predicate is one byte.
                Some(unsafe { scalar.data.read() } != 0)
            }
            _ => None,
        }
    }

    fn accepts(value: Value<'_>) -> bool {
        Self::from_value(value).is_some()
    }
}

impl<'f> Attribute<'f> for &'f str {
    const KIND: &'static str = "string";

    #[inline(always)]
    fn from_value(value: Value<'f>) -> Option<Self> {
        match value {
            Value::String(bytes) => text(bytes),
            _ => None,
        }
    }

    fn accepts(value: Value<'_>) -> bool {
        <&str>::from_value(value).is_some()
    }
}

/// A string attribute's bytes, whatever they are: `&str` refuses what is not UTF-8.
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bytes([u8]);

impl Bytes {
    /// These bytes.
    pub fn new(bytes: &[u8]) -> &Self {
        // SAFETY: the same layout (transparent), and the borrow lives as long.
        unsafe { &*(std::ptr::from_ref(bytes) as *const Self) }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl<'f> Attribute<'f> for &'f Bytes {
    const KIND: &'static str = "string";

    #[inline(always)]
    fn from_value(value: Value<'f>) -> Option<Self> {
        match value {
            Value::String(bytes) => Some(Bytes::new(bytes)),
            _ => None,
        }
    }

    fn accepts(value: Value<'_>) -> bool {
        <&Bytes>::from_value(value).is_some()
    }
}

/// The bytes as text, if they are UTF-8. ASCII of up to 16 bytes, which is what attributes hold, is
/// seen without a call, by two words that overlap and hold all bytes.
#[inline(always)]
fn text(bytes: &[u8]) -> Option<&str> {
    let ascii = match bytes.len() {
        4..=8 => ends(bytes).is_some_and(|[first, last]| {
            (u32::from_ne_bytes(first) | u32::from_ne_bytes(last)) & 0x8080_8080 == 0
        }),
        9..=16 => ends(bytes).is_some_and(|[first, last]| {
            (u64::from_ne_bytes(first) | u64::from_ne_bytes(last)) & 0x8080_8080_8080_8080 == 0
        }),
        1..=3 => {
            bytes[0].is_ascii()
                && ends(bytes).is_none_or(|[first, last]| {
                    (u16::from_ne_bytes(first) | u16::from_ne_bytes(last)) & 0x8080 == 0
                })
        }
        _ => false,
    };
    if ascii {
        // SAFETY: ASCII is UTF-8.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    validate(bytes)
}

/// The first and the last N bytes, where there are so many.
#[inline(always)]
fn ends<const N: usize>(bytes: &[u8]) -> Option<[[u8; N]; 2]> {
    Some([*bytes.first_chunk()?, *bytes.last_chunk()?])
}

#[cold]
#[inline(never)]
fn validate(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// An enum that travels as a `u8` code (`as u8` in `signature!`).
#[inline(always)]
pub fn decode_code<E: TryFrom<u8>>(value: Value<'_>) -> Option<E> {
    E::try_from(u8::from_value(value)?).ok()
}
