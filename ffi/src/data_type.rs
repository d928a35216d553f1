//! XLA's element types, and the Rust types that stand for them.

use std::fmt;

use num_complex::Complex;

use crate::sys;

/// An XLA element type, as it travels in the C API. Unknown codes are kept and shown as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataType(u32);

/// The types with a name, each with its code and the short name used in messages and tables.
macro_rules! data_types {
    ($($(#[$doc:meta])* $constant:ident = $code:ident, $name:literal;)*) => {
        impl DataType {
            $($(#[$doc])* pub const $constant: DataType = DataType(sys::$code);)*

            const NAMED: &'static [(DataType, &'static str)] =
                &[$((DataType::$constant, $name)),*];
        }
    };
}

data_types! {
    /// Predicate, one byte, 0 or 1.
    BOOL = XLA_FFI_DataType_PRED, "bool";
    /// Signed 8-bit integer.
    I8 = XLA_FFI_DataType_S8, "i8";
    /// Signed 16-bit integer.
    I16 = XLA_FFI_DataType_S16, "i16";
    /// Signed 32-bit integer.
    I32 = XLA_FFI_DataType_S32, "i32";
    /// Signed 64-bit integer.
    I64 = XLA_FFI_DataType_S64, "i64";
    /// Unsigned 8-bit integer.
    U8 = XLA_FFI_DataType_U8, "u8";
    /// Unsigned 16-bit integer.
    U16 = XLA_FFI_DataType_U16, "u16";
    /// Unsigned 32-bit integer.
    U32 = XLA_FFI_DataType_U32, "u32";
    /// Unsigned 64-bit integer.
    U64 = XLA_FFI_DataType_U64, "u64";
    /// IEEE half precision.
    F16 = XLA_FFI_DataType_F16, "f16";
    /// Brain float.
    BF16 = XLA_FFI_DataType_BF16, "bf16";
    /// IEEE single precision.
    F32 = XLA_FFI_DataType_F32, "f32";
    /// IEEE double precision.
    F64 = XLA_FFI_DataType_F64, "f64";
    /// Complex of two `f32`.
    C64 = XLA_FFI_DataType_C64, "c64";
    /// Complex of two `f64`.
    C128 = XLA_FFI_DataType_C128, "c128";
    /// A token: no data.
    TOKEN = XLA_FFI_DataType_TOKEN, "token";
}

impl DataType {
    /// The type with this code in the C API.
    pub const fn from_code(code: u32) -> Self {
        DataType(code)
    }

    /// The code in the C API.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// Bytes of one element; of the largest element where the type is not known here.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::BOOL | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C64 => 8,
            _ => 16,
        }
    }

    /// Bytes of one element, where the type has a name here and data.
    pub fn byte_width(self) -> Option<usize> {
        (self.name().is_some() && self != Self::TOKEN).then(|| self.size())
    }

    /// The complex type whose parts are of this type, if there is one.
    pub fn to_complex(self) -> Option<Self> {
        match self {
            Self::F32 => Some(Self::C64),
            Self::F64 => Some(Self::C128),
            _ => None,
        }
    }

    /// The type of the parts of a complex type; every other type itself.
    pub fn to_real(self) -> Self {
        match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other => other,
        }
    }

    /// Says which it is.
    pub(crate) fn describe(self, text: &mut impl fmt::Write) -> fmt::Result {
        match self.name() {
            Some(name) => text.write_str(name),
            None => write!(text, "XLA element type {}", self.0),
        }
    }

    /// The type with this short name (`"f64"`), if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype)
    }

    /// The short name, if this is a type that has one here.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED.iter().find(|(dtype, _)| *dtype == self).map(|(_, name)| *name)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A Rust type that is the element of a buffer.
///
/// # Safety
/// The type has the size and layout of `DTYPE`, and every bit pattern that XLA may hand over in
/// such a buffer is a valid value of it. Which types qualify follows from the C API's definition
/// of its element types (a predicate is a byte here, since XLA does not promise 0 or 1).
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The XLA element type.
    const DTYPE: DataType;
}

/// A predicate: 0 is false, all else true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pred(pub u8);

/// The bits of an IEEE half-precision number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a brain float.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

macro_rules! elements {
    ($($element:ty = $dtype:ident),* $(,)?) => {
        // SAFETY: numbers of the size and layout that XLA gives the element type; all bit patterns
        // of an integer or a float are values, and Complex is repr(C) over two of them.
        $(unsafe impl Element for $element { const DTYPE: DataType = DataType::$dtype; })*
    };
}

elements! {
    i8 = I8, i16 = I16, i32 = I32, i64 = I64, u8 = U8, u16 = U16, u32 = U32, u64 = U64,
    f32 = F32, f64 = F64, Complex<f32> = C64, Complex<f64> = C128,
    Pred = BOOL, F16 = F16, Bf16 = BF16,
}
