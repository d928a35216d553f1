//! The shape of a call as data: what a handler expects, for messages, tables and inference.
//!
//! `signature!` writes it together with a decoder that accepts the same calls. An operand's own
//! dimensions are its last ones; in front of them every operand has the same leading dimensions.

use std::fmt;

use crate::data_type::DataType;
use crate::frame::Frame;
use crate::value::{Attribute, Value, decode_code};

/// A decoded call: what `signature!` generates.
pub trait Call<'f>: Sized {
    /// The shape of the call as data.
    const SIGNATURE: &'static Signature;

    /// The call, if the frame fits the signature in every respect.
    fn decode(frame: Frame<'f>) -> Option<Self>;
}

/// Everything that a call must satisfy.
#[derive(Debug)]
pub struct Signature {
    /// The dimensions that operands name.
    pub dims: &'static [Dim],
    /// The arguments, in order.
    pub args: &'static [Operand],
    /// The attributes, in the order of their names.
    pub attrs: &'static [Attr],
    /// The results, in order.
    pub rets: &'static [Operand],
    /// What must hold besides.
    pub requirements: &'static [Requirement],
}

/// A dimension with a name.
#[derive(Debug)]
pub struct Dim {
    /// The name.
    pub name: &'static str,
    /// Its value in terms of others, where it has one.
    pub formula: Option<Formula>,
}

/// A dimension's value in terms of other dimensions and of attributes.
pub struct Formula {
    /// The source text: `min(m, n)`.
    pub text: &'static str,
    /// The value; None while something that it names is unknown. Dims and attributes come in the
    /// signature's order.
    pub evaluate: Evaluate<i64>,
}

/// A function of the dimensions and attributes of a call, in the signature's order.
pub(crate) type Evaluate<T> = fn(&[Option<i64>], &[Option<Value<'_>>]) -> Option<T>;

/// One argument or result.
#[derive(Debug)]
pub struct Operand {
    /// The name.
    pub name: &'static str,
    /// The element type.
    pub dtype: DataType,
    /// Its own dimensions, as indices into [`Signature::dims`].
    pub dims: &'static [usize],
    /// Whether the last of them may be missing.
    pub optional: bool,
    /// Whether it is one number for all problems, without the leading dimensions.
    pub alone: bool,
    /// For a result: the argument whose memory it may share.
    pub alias: Option<usize>,
}

impl Operand {
    /// Whether the own dimension `index` may be missing.
    pub(crate) fn may_miss(&self, index: usize) -> bool {
        self.optional && index + 1 == self.dims.len()
    }
}

/// One attribute.
pub struct Attr {
    /// The name.
    pub name: &'static str,
    /// The kind of value: `u8`, `bool`, `string`, …
    pub kind: &'static str,
    /// Whether a call may leave it out.
    pub optional: bool,
    /// For an enum that travels as a code: the codes it accepts.
    pub codes: Option<fn() -> Vec<Code>>,
    /// Whether the handler accepts a value.
    pub accepts: fn(Value<'_>) -> bool,
}

/// One value of an enum attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// What travels.
    pub code: u8,
    /// The variant's name.
    pub name: String,
}

impl Attr {
    /// An attribute of a type that XLA knows.
    pub const fn plain<T: Attribute<'static>>(name: &'static str, optional: bool) -> Self {
        Attr { name, kind: T::KIND, optional, codes: None, accepts: T::accepts }
    }

    /// An enum that travels as a `u8`.
    pub const fn coded<E: TryFrom<u8> + fmt::Debug>(name: &'static str, optional: bool) -> Self {
        Attr {
            name,
            kind: <u8 as Attribute<'static>>::KIND,
            optional,
            codes: Some(codes::<E>),
            accepts: |value| decode_code::<E>(value).is_some(),
        }
    }

    /// What a call must pass, for messages: `u8 'L' (Lower) or 'U' (Upper)`.
    pub fn expected(&self) -> String {
        match self.codes {
            None => self.kind.to_owned(),
            Some(codes) => {
                let codes: Vec<String> = codes().iter().map(Code::to_string).collect();
                format!("{} {}", self.kind, codes.join(" or "))
            }
        }
    }
}

/// All codes that an enum accepts, found by asking it.
fn codes<E: TryFrom<u8> + fmt::Debug>() -> Vec<Code> {
    let variant = |code| Some(Code { code, name: format!("{:?}", E::try_from(code).ok()?) });
    (0..=u8::MAX).filter_map(variant).collect()
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code.is_ascii_graphic() {
            write!(f, "'{}' ({})", char::from(self.code), self.name)
        } else {
            write!(f, "{} ({})", self.code, self.name)
        }
    }
}

/// A condition on dimensions and attributes.
pub struct Requirement {
    /// What must hold, in words.
    pub reason: &'static str,
    /// The dimensions it names, as indices into [`Signature::dims`].
    pub dims: &'static [usize],
    /// The attributes it names, as indices into [`Signature::attrs`].
    pub attrs: &'static [usize],
    /// Whether it holds; None while something that it names is unknown.
    pub holds: Evaluate<bool>,
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl fmt::Debug for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl fmt::Debug for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}{}",
            self.name,
            self.expected(),
            if self.optional { ", optional" } else { "" }
        )
    }
}
