//! What results of a matrix are where it has none, and parts of them.

use std::ops::Range;

use crate::simd::scalar::nan;
use crate::{Error, Scalar};

/// Whether all places are among so many.
pub(crate) fn is_part(part: &Range<usize>, all: (&'static str, usize)) -> Result<(), Error> {
    let (start, stop) = (("start", part.start), ("stop", part.end));
    for ((larger, larger_value), (smaller, smaller_value)) in [(all, stop), (stop, start)] {
        if larger_value < smaller_value {
            return Err(Error::Order { larger, larger_value, smaller, smaller_value });
        }
    }
    Ok(())
}

/// Fills the results of matrices that did not converge with NaN; of those that are not finite they are.
pub(crate) fn mark_failed<T: Scalar, const RESULTS: usize>(
    info: &[i32],
    values: &mut [T::Real],
    mut others: [&mut [T]; RESULTS],
) {
    let nan = nan::<T>();
    for b in (0..info.len()).filter(|&b| info[b] > 0) {
        item(values, b, info.len()).fill(nan.re());
        for other in &mut others {
            item(other, b, info.len()).fill(nan);
        }
    }
}

/// One of `batch` items.
pub(crate) fn item<T>(items: &mut [T], b: usize, batch: usize) -> &mut [T] {
    let length = items.len() / batch;
    &mut items[b * length..(b + 1) * length]
}
