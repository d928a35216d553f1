//! Why the GPU did not do what was asked.

use std::fmt;

/// What kind of failure: XLA's status codes, as far as they are needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sizes that a library or a kernel cannot take.
    InvalidArgument,
    /// A library, driver or kernel that is not there.
    Unavailable,
    /// The device's memory does not suffice.
    ResourceExhausted,
    /// The device or a library failed.
    Internal,
}

/// A failure, with a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<lapax_core::Error> for Error {
    fn from(error: lapax_core::Error) -> Self {
        Self::new(Kind::InvalidArgument, error.to_string())
    }
}

/// A size as the integer of a kernel's or a library's parameter.
pub(crate) fn narrow<I: TryFrom<usize>>(dimension: &str, value: usize) -> Result<I, Error> {
    I::try_from(value).map_err(|_| {
        let bits = 8 * size_of::<I>();
        let text =
            format!("{dimension} = {value} does not fit into the {bits}-bit integer it needs");
        Error::new(Kind::InvalidArgument, text)
    })
}

/// The product of sizes.
pub(crate) fn product(operand: &'static str, sizes: &[usize]) -> Result<usize, Error> {
    Ok(lapax_core::product(operand, sizes)?)
}
