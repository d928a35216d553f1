//! What can be wrong with a call's sizes. Numerical outcomes are not errors: they are `info`.

use std::fmt;

/// A call whose sizes cannot be served. Nothing was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A dimension exceeds what an integer of the result, or of a library underneath, can hold.
    TooLarge {
        /// The dimension's name in the operation's documentation.
        dimension: &'static str,
        /// Its value.
        value: usize,
        /// The largest value that is served.
        limit: usize,
    },
    /// A slice does not hold as many elements as its dimensions say.
    Length {
        /// The operand's name in the operation's documentation.
        operand: &'static str,
        /// Elements that the dimensions imply.
        expected: usize,
        /// Elements that the slice holds.
        got: usize,
    },
    /// The product of an operand's dimensions is not a `usize`.
    Overflow {
        /// The operand's name in the operation's documentation.
        operand: &'static str,
    },
    /// One dimension must be at least another one.
    Order {
        /// The dimension that must be the larger one.
        larger: &'static str,
        /// Its value.
        larger_value: usize,
        /// The dimension that must not exceed it.
        smaller: &'static str,
        /// Its value.
        smaller_value: usize,
    },
    /// A size exceeds the integers of the library underneath.
    Library {
        /// The dimension's name in the operation's documentation, or LAPACK's of a workspace length.
        quantity: &'static str,
        /// Its value.
        value: usize,
        /// The largest value that the library can be given.
        limit: usize,
    },
    /// The library underneath rejected an argument when it was asked how much workspace it needs.
    Refused {
        /// The library's routine, without its precision letter.
        routine: &'static str,
        /// What it reported: the argument's number, negated.
        info: i32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { dimension, value, limit } => write!(
                f,
                "dimension {dimension} = {value} is too large: its indices are returned as \
                 32-bit integers, so it can be at most {limit}"
            ),
            Self::Length { operand, expected, got } => write!(
                f,
                "operand {operand} holds {got} elements, but its dimensions ask for {expected}"
            ),
            Self::Overflow { operand } => {
                write!(
                    f,
                    "the dimensions of operand {operand} multiply to more than {}",
                    usize::MAX
                )
            }
            Self::Order { larger, larger_value, smaller, smaller_value } => write!(
                f,
                "dimension {larger} = {larger_value} must be at least {smaller} = {smaller_value}"
            ),
            Self::Library { quantity, value, limit } => write!(
                f,
                "{quantity} = {value} is too large for the LAPACK library in use, whose integers \
                 go up to {limit}"
            ),
            Self::Refused { routine, info } => write!(
                f,
                "the LAPACK library in use refused to say how much workspace {routine} needs: \
                 info = {info}"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// Checks that every index 1..=value of a dimension is an `i32`.
///
/// # Errors
/// [`Error::TooLarge`] where it is not.
pub fn index_fits_i32(dimension: &'static str, value: usize) -> Result<(), Error> {
    const LIMIT: usize = i32::MAX.unsigned_abs() as usize;
    if value <= LIMIT { Ok(()) } else { Err(Error::TooLarge { dimension, value, limit: LIMIT }) }
}

/// The product of an operand's dimensions.
///
/// # Errors
/// [`Error::Overflow`] where it is not a `usize`; a dimension of 0 makes it 0 in any order.
pub fn product(operand: &'static str, dims: &[usize]) -> Result<usize, Error> {
    if dims.contains(&0) {
        return Ok(0);
    }
    dims.iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim))
        .ok_or(Error::Overflow { operand })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_limit_is_the_largest_i32() {
        assert_eq!(index_fits_i32("m", 0x7fff_ffff), Ok(()));
        let error = index_fits_i32("m", 0x8000_0000).map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err("dimension m = 2147483648 is too large: its indices are returned as 32-bit \
                 integers, so it can be at most 2147483647"
                .to_owned())
        );
    }

    #[test]
    fn product_of_huge_dimensions_overflows_unless_one_is_zero() {
        assert_eq!(product("a", &[usize::MAX, 2]), Err(Error::Overflow { operand: "a" }));
        assert_eq!(product("a", &[usize::MAX, 2, 0]), Ok(0));
        assert_eq!(product("a", &[]), Ok(1));
    }
}
