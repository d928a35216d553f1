//! What a choice of kernel asks about numbers.

use super::lane::width;
use super::scalar::Scalar;

/// A kind of numbers, and the registers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Whether they are complex.
    pub complex: bool,
    /// Whether their parts are f64, or f32.
    pub double: bool,
    /// How many real ones a register holds.
    pub lanes: usize,
}

impl Kind {
    /// That of a scalar type, and of this processor's registers.
    #[must_use]
    pub fn of<T: Scalar>() -> Self {
        let double = size_of::<T::Real>() == size_of::<f64>();
        Self { complex: T::IS_COMPLEX, double, lanes: width::<T>() }
    }

    /// The bytes of a number.
    pub(crate) fn bytes(self) -> usize {
        let real = if self.double { size_of::<f64>() } else { size_of::<f32>() };
        if self.complex { 2 * real } else { real }
    }
}
