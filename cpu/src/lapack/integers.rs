//! LAPACK's integers, whose width is a fact about the library that is linked.
//!
//! An integer that the library reads or writes lies in a 64-bit slot, zero- or sign-extended: one
//! with 32-bit integers reads and writes the low half. Arrays have a slot for each element, and are
//! packed or not as the library wants it. So one build serves both kinds.

use std::ffi::c_int;
use std::sync::OnceLock;

use lapax_core::Error;

use super::routines::Routines;

#[cfg(not(target_endian = "little"))]
compile_error!("the low half of an integer must come first: LAPACK needs a little-endian target");

/// How wide the integers of the library are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits, LP64.
    Bits32,
    /// 64 bits, ILP64.
    Bits64,
}

impl Width {
    /// That of the library, found out once, from where it puts the second of two pivots.
    pub fn of_library() -> Self {
        static WIDTH: OnceLock<Width> = OnceLock::new();
        *WIDTH.get_or_init(|| {
            let two = Int(2);
            let mut pivots = Integers::with_room(2);
            f64::getrf(two, two, &mut [0.0, 1.0, 1.0, 0.0], &mut pivots);
            if pivots.slots[1] == 0 { Self::Bits32 } else { Self::Bits64 }
        })
    }

    /// The number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }

    /// The largest integer.
    fn limit(self) -> usize {
        let limit = match self {
            Self::Bits32 => i64::from(i32::MAX),
            Self::Bits64 => i64::MAX,
        };
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// A size that the library can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Int(i64);

impl Int {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const ONE: Self = Self(1);
    /// In place of a workspace's length: asks for that length.
    pub(super) const QUERY: Self = Self(-1);

    /// A size, narrowed to the library's integers.
    ///
    /// # Errors
    /// [`Error::Library`] where it is larger than the largest of them.
    pub(super) fn new(quantity: &'static str, value: usize) -> Result<Self, Error> {
        Self::narrowed(Width::of_library(), quantity, value)
    }

    fn narrowed(width: Width, quantity: &'static str, value: usize) -> Result<Self, Error> {
        let limit = width.limit();
        let fits = i64::try_from(value).ok().filter(|_| value <= limit);
        fits.map(Self).ok_or(Error::Library { quantity, value, limit })
    }

    /// The size; 0 for a query.
    pub(super) fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// The size less one, which is not negative.
    pub(super) fn less_one(self) -> Self {
        Self(self.0.saturating_sub(1).max(0))
    }

    pub(super) fn ptr(&self) -> *const c_int {
        std::ptr::from_ref(&self.0).cast()
    }
}

/// The one integer that a call writes; it fits 32 bits. The call has [a stack](with_stack).
pub(super) fn written(call: impl FnOnce(*mut c_int)) -> i32 {
    let mut slot = 0_i64;
    with_stack(|| call((&raw mut slot).cast()));
    low_half(slot)
}

/// Calls `body` with room on the stack for a library that needs it: Debian's OpenBLAS 0.3.21 takes 528 KiB for
/// each level of its recursion in xGETRF and xPOTRF, and a thread of Rust's has 2 MiB.
pub(crate) fn with_stack<R>(body: impl FnOnce() -> R) -> R {
    /// What must be free, and what is taken where it is not, of which only pages that are used are memory.
    const FREE: usize = 6 << 20;
    const TAKEN: usize = 64 << 20;
    stacker::maybe_grow(FREE, TAKEN, body)
}

/// An array of integers.
#[derive(Debug)]
pub struct Integers {
    slots: Vec<i64>,
}

impl Integers {
    /// For at most `count` integers, all zero.
    pub(super) fn with_room(count: usize) -> Self {
        Self { slots: vec![0; count] }
    }

    /// Where the library finds the first of `count` integers.
    ///
    /// # Panics
    /// Where there is not that much room.
    pub(super) fn ptr(&mut self, count: usize) -> *mut c_int {
        assert!(count <= self.slots.len(), "{count} integers in {}", self.slots.len());
        self.slots.as_mut_ptr().cast()
    }

    /// Makes `values` the first integers.
    pub(super) fn store(&mut self, values: &[i32]) {
        match Width::of_library() {
            Width::Bits32 => {
                for (slot, pair) in self.slots.iter_mut().zip(values.chunks(2)) {
                    let mut bytes = [0; 8];
                    for (half, value) in bytes.chunks_exact_mut(4).zip(pair) {
                        half.copy_from_slice(&value.to_le_bytes());
                    }
                    *slot = i64::from_le_bytes(bytes);
                }
            }
            Width::Bits64 => {
                for (slot, &value) in self.slots.iter_mut().zip(values) {
                    *slot = i64::from(value);
                }
            }
        }
    }

    /// Copies the first integers, which fit 32 bits, into `values`.
    pub(super) fn load(&self, values: &mut [i32]) {
        match Width::of_library() {
            Width::Bits32 => {
                for (pair, &slot) in values.chunks_mut(2).zip(&self.slots) {
                    for (value, slot) in pair.iter_mut().zip([slot, slot >> 32]) {
                        *value = low_half(slot);
                    }
                }
            }
            Width::Bits64 => {
                for (value, &slot) in values.iter_mut().zip(&self.slots) {
                    *value = low_half(slot);
                }
            }
        }
    }
}

fn low_half(slot: i64) -> i32 {
    let [a, b, c, d, ..] = slot.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

#[cfg(feature = "testing")]
pub(crate) mod tests {

    use super::{Int, Integers, Width};

    trials!(
        width_is_found,
        integers_survive_the_round_trip,
        narrowing_names_the_quantity_and_the_limit
    );

    fn width_is_found() {
        // Debian's library with 64-bit integers is the one that is chosen by that name.
        let expected = if cfg!(lapax_reference64) { Some(Width::Bits64) } else { None };
        let width = Width::of_library();
        println!("LAPACK with {}-bit integers", width.bits());
        assert_eq!(expected.unwrap_or(width), width);
    }

    fn integers_survive_the_round_trip() {
        for count in 0..5 {
            let values: Vec<i32> = (0..count).map(|i| i * 7 - 3).collect();
            let mut integers = Integers::with_room(values.len());
            integers.store(&values);
            let mut back = vec![0; values.len()];
            integers.load(&mut back);
            assert_eq!(back, values);
        }
    }

    fn narrowing_names_the_quantity_and_the_limit() {
        let limit = Width::Bits32.limit();
        assert_eq!(Int::narrowed(Width::Bits32, "n", limit).map(Int::get), Ok(limit));
        let error = Int::narrowed(Width::Bits32, "n", limit + 1).map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err("n = 2147483648 is too large for the LAPACK library in use, whose integers go up \
                 to 2147483647"
                .to_owned())
        );
        assert!(Int::narrowed(Width::Bits64, "n", limit + 1).is_ok());
        assert!(Int::narrowed(Width::Bits64, "n", usize::MAX).is_err());
    }
}
