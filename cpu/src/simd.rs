//! Loops over contiguous elements, compiled for the vectors of the processor that runs them.
//!
//! They are elementwise, so how many elements a register holds does not change a result. A caller
//! wraps its whole inner loop nest in one [`pulp::WithSimd`]; what is here is inlined into it.

use pulp::Simd;

use lapax_core::{Real as _, Scalar as _};

use crate::Scalar;

/// Memory that will be read or written soon, asked for piece by piece so that it comes while the
/// processor is at work.
pub(crate) struct Ahead<T> {
    from: *const T,
    left: usize,
    piece: usize,
}

impl<T> Ahead<T> {
    /// The `count` elements behind a slice, in so many pieces. Nothing is read; what lies there may be
    /// no memory of the program's.
    #[inline(always)]
    pub(crate) fn behind(slice: &[T], count: usize, pieces: usize) -> Self {
        let from = slice.as_ptr_range().end;
        Self { from, left: count, piece: count.div_ceil(pieces.max(1)) }
    }

    /// The elements of a slice, in so many pieces.
    #[inline(always)]
    pub(crate) fn of(slice: &[T], pieces: usize) -> Self {
        let count = slice.len();
        Self { from: slice.as_ptr(), left: count, piece: count.div_ceil(pieces.max(1)) }
    }

    /// Asks for the next piece.
    #[inline(always)]
    pub(crate) fn next(&mut self) {
        let count = self.piece.min(self.left);
        ask(self.from.cast(), count * size_of::<T>());
        self.from = self.from.wrapping_add(count);
        self.left -= count;
    }
}

/// Asks for so many bytes of memory, which may be none of the program's.
#[inline(always)]
pub(crate) fn ask(from: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        const CACHE_LINE: usize = 64;
        for line in (0..bytes).step_by(CACHE_LINE) {
            // SAFETY: an address that is not the program's is no error: nothing is fetched then.
            #[allow(unsafe_code, reason = "the instruction has no safe form")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(from.cast::<i8>().wrapping_add(line));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, bytes);
}

/// acc − a·b; fused where S has vectors, because those processors fuse.
#[inline(always)]
pub(crate) fn sub_mul<S: Simd, T: Scalar>(acc: T, a: T, b: T) -> T {
    if S::IS_SCALAR { acc - a * b } else { acc.fused_add(-a, b) }
}

/// y ← y − a·x.
#[inline(always)]
pub(crate) fn sub_scaled<S: Simd, T: Scalar>(y: &mut [T], a: T, x: &[T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = sub_mul::<S, T>(*y, a, x);
    }
}

/// What dividing by one number takes: its reciprocal where that loses nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Divisor<T> {
    /// Nothing to do.
    One,
    /// Multiply by this reciprocal.
    Reciprocal(T),
    /// Divide: the reciprocal would overflow or lose digits, or the number is zero or NaN.
    Number(T),
}

impl<T: Scalar> Divisor<T> {
    #[inline(always)]
    pub(crate) fn new(number: T) -> Self {
        let size = number.abs1();
        if size >= T::Real::SAFE_MIN && size <= T::Real::ONE / T::Real::SAFE_MIN {
            Self::Reciprocal(T::ONE.divide(number))
        } else {
            Self::Number(number)
        }
    }

    /// x ← x / the number.
    #[inline(always)]
    pub(crate) fn divide(self, x: &mut [T]) {
        match self {
            Self::One => {}
            Self::Reciprocal(reciprocal) => x.iter_mut().for_each(|x| *x *= reciprocal),
            Self::Number(number) => x.iter_mut().for_each(|x| *x = x.divide(number)),
        }
    }
}

/// The index of the first element of largest |re| + |im|, where a NaN is larger than any number.
#[inline(always)]
pub(crate) fn first_largest<T: Scalar>(x: &[T]) -> usize {
    /// Independent maxima, so that the loop over them is one of vectors.
    const LANES: usize = 16;
    let larger = |best: T::Real, size: T::Real| size > best || (size.is_nan() && !best.is_nan());
    if x.len() < 2 * LANES {
        let mut first = (0, -T::Real::ONE);
        for (i, x) in x.iter().enumerate() {
            let size = x.abs1();
            if larger(first.1, size) {
                first = (i, size);
            }
        }
        return first.0;
    }
    let maximum = |best, size| if larger(best, size) { size } else { best };
    let mut lanes = [-T::Real::ONE; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder().iter().map(|x| x.abs1());
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = maximum(*lane, x.abs1());
        }
    }
    let largest = lanes.into_iter().chain(rest).fold(-T::Real::ONE, maximum);
    let found = |x: &T| {
        let size = x.abs1();
        size == largest || (size.is_nan() && largest.is_nan())
    };
    x.iter().position(found).unwrap_or(0)
}
