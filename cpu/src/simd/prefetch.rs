//! Memory that is asked for before it is needed.

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
