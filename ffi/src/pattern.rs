//! What a buffer must look like, where the type alone cannot say it: sets of element types and ranks,
//! dimensions that are fixed or must agree with those of other buffers.

use crate::buffer::{AnyBuffer, AnyBufferMut, Buffer, BufferMut};
use crate::data_type::{DataType, Element};
use crate::error::Error;

/// A dimension in a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Size {
    /// Any size.
    Any,
    /// This size.
    Is(i64),
    /// The size that the first pattern with this name met; the same in all others.
    Named(&'static str),
}

/// The sizes that names stand for, as the patterns of a call meet them.
#[derive(Clone, Debug, Default)]
pub struct Sizes(Vec<(&'static str, i64)>);

impl Sizes {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The size of this name, once a pattern has met it.
    pub fn get(&self, name: &str) -> Option<usize> {
        let found = self.0.iter().find(|(known, _)| *known == name)?;
        usize::try_from(found.1).ok()
    }
}

/// A buffer of any kind, as a pattern sees it.
pub trait Shaped {
    /// Its element type and dimensions.
    fn shaped(&self) -> AnyBuffer<'_>;
}

impl Shaped for AnyBuffer<'_> {
    fn shaped(&self) -> AnyBuffer<'_> {
        *self
    }
}

impl Shaped for AnyBufferMut<'_> {
    fn shaped(&self) -> AnyBuffer<'_> {
        self.shape()
    }
}

impl<T: Element, const RANK: usize> Shaped for Buffer<'_, T, RANK> {
    fn shaped(&self) -> AnyBuffer<'_> {
        self.as_any()
    }
}

impl<T: Element, const RANK: usize> Shaped for BufferMut<'_, T, RANK> {
    fn shaped(&self) -> AnyBuffer<'_> {
        self.as_any()
    }
}

/// What a buffer must look like.
///
/// ```
/// use xla_ffi::{AnyBuffer, DataType, Error, Pattern, Size, Sizes};
///
/// fn columns(a: AnyBuffer<'_>, x: AnyBuffer<'_>) -> Result<usize, Error> {
///     let mut sizes = Sizes::new();
///     let real = Pattern::new().dtypes(&[DataType::F32, DataType::F64]);
///     real.dims(&[Size::Named("m"), Size::Named("n")]).verify("a", &a, &mut sizes)?;
///     Pattern::of(&a).dims(&[Size::Named("n")]).verify("x", &x, &mut sizes)?;
///     Ok(sizes.get("n").unwrap_or(0))
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    dtypes: Vec<DataType>,
    ranks: Vec<usize>,
    dims: Option<Vec<Size>>,
}

impl Pattern {
    /// Any buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of the same element type.
    pub fn of(buffer: &impl Shaped) -> Self {
        Self::new().dtypes(&[buffer.shaped().dtype()])
    }

    /// A buffer of the same element type and dimensions.
    pub fn like(buffer: &impl Shaped) -> Self {
        Self::of(buffer).with_shape_of(buffer)
    }

    /// Of one of these element types.
    pub fn dtypes(self, dtypes: &[DataType]) -> Self {
        Pattern { dtypes: dtypes.to_vec(), ..self }
    }

    /// Of one of these ranks.
    pub fn ranks(self, ranks: &[usize]) -> Self {
        Pattern { ranks: ranks.to_vec(), ..self }
    }

    /// Of these dimensions.
    pub fn dims(self, dims: &[Size]) -> Self {
        Pattern { dims: Some(dims.to_vec()), ..self }
    }

    /// Of another buffer's dimensions.
    pub fn with_shape_of(self, buffer: &impl Shaped) -> Self {
        let dims = buffer.shaped().dims().iter().map(|dim| Size::Is(*dim)).collect();
        Pattern { dims: Some(dims), ..self }
    }

    /// Whether the buffer looks so; only then are sizes added.
    pub fn matches(&self, buffer: &impl Shaped, sizes: &mut Sizes) -> bool {
        let buffer = buffer.shaped();
        let dtype = self.dtypes.is_empty() || self.dtypes.contains(&buffer.dtype());
        let rank = self.ranks.is_empty() || self.ranks.contains(&buffer.rank());
        let mut met = sizes.clone();
        let dims = self.dims.as_ref().is_none_or(|dims| {
            dims.len() == buffer.rank()
                && dims.iter().zip(buffer.dims()).all(|(size, dim)| met.admit(*size, *dim))
        });
        let matches = dtype && rank && dims;
        if matches {
            *sizes = met;
        }
        matches
    }

    /// The same, or what was expected of the operand of this name and what it is.
    ///
    /// # Errors
    /// INVALID_ARGUMENT.
    pub fn verify(&self, name: &str, buffer: &impl Shaped, sizes: &mut Sizes) -> Result<(), Error> {
        if self.matches(buffer, sizes) {
            return Ok(());
        }
        let (expected, got) = (self.text(sizes), buffer.shaped());
        Err(Error::invalid_argument(format!("operand `{name}`: expected {expected}, got {got}")))
    }

    /// `f32 or f64 [m, n=3]`.
    fn text(&self, sizes: &Sizes) -> String {
        let dtypes: Vec<String> = self.dtypes.iter().map(DataType::to_string).collect();
        let mut text = if dtypes.is_empty() { "a buffer".into() } else { dtypes.join(" or ") };
        if !self.ranks.is_empty() {
            let ranks: Vec<String> = self.ranks.iter().map(usize::to_string).collect();
            text = format!("{text} of rank {}", ranks.join(" or "));
        }
        let Some(dims) = &self.dims else { return text };
        let size = |size: &Size| match size {
            Size::Any => "any".to_owned(),
            Size::Is(size) => size.to_string(),
            Size::Named(name) => match sizes.get(name) {
                Some(size) => format!("{name}={size}"),
                None => (*name).to_owned(),
            },
        };
        let dims: Vec<String> = dims.iter().map(size).collect();
        format!("{text} [{}]", dims.join(", "))
    }
}

impl Sizes {
    fn admit(&mut self, size: Size, dim: i64) -> bool {
        match size {
            Size::Any => true,
            Size::Is(size) => size == dim,
            Size::Named(name) => match self.0.iter().find(|(known, _)| *known == name) {
                Some((_, met)) => *met == dim,
                None => {
                    self.0.push((name, dim));
                    true
                }
            },
        }
    }
}
