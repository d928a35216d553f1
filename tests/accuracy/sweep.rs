//! Which cases are run: a fast slice, or with `LAPAX_ACCURACY=full` all of them.

use crate::kinds::{KINDS, Kind};
use crate::spectrum::SPECTRA;

/// Whether the full sweep is asked for.
pub(crate) fn is_full() -> bool {
    std::env::var_os("LAPAX_ACCURACY").is_some_and(|sweep| sweep == "full")
}

/// Orders of square matrices: empty, tiny, and around the block sizes of the kernels.
const ORDERS: [usize; 13] = [0, 1, 2, 3, 5, 8, 17, 31, 32, 33, 64, 100, 129];
/// Those of the full sweep besides.
const MORE_ORDERS: [usize; 7] = [4, 16, 48, 75, 180, 301, 500];

/// Tall and wide shapes.
const RECTANGLES: [(usize, usize); 10] =
    [(0, 3), (3, 0), (1, 5), (5, 1), (17, 4), (4, 17), (129, 8), (8, 129), (100, 33), (33, 100)];
/// Those of the full sweep besides.
const MORE_RECTANGLES: [(usize, usize); 6] =
    [(64, 63), (63, 64), (150, 70), (70, 150), (500, 20), (20, 500)];

/// An order from which one kind of this many is tried, by turns.
const LARGE: usize = 150;
const LARGE_STRIDE: usize = 6;
/// The order from which matrices are no longer put into vector lanes together, and a little more.
pub(crate) const SMALL: usize = 33;
/// An order above it at which the SVD still goes through lanes.
const LARGE_LANES: usize = 64;
/// Above `SMALL` the fast slice tries one of this many kinds, by turns.
const FAST_LARGE_STRIDE: usize = 3;
/// Of the spectra the fast slice tries one of this many for an order, by turns.
const FAST_STRIDE: usize = 5;

/// The orders of square matrices.
pub(crate) fn orders() -> Vec<usize> {
    let more = if is_full() { &MORE_ORDERS[..] } else { &[] };
    [&ORDERS, more].concat()
}

/// The orders, as shapes.
pub(crate) fn squares() -> Vec<(usize, usize)> {
    orders().into_iter().map(|n| (n, n)).collect()
}

/// Square, tall and wide.
pub(crate) fn shapes() -> Vec<(usize, usize)> {
    let more = if is_full() { &MORE_RECTANGLES[..] } else { &[] };
    [&squares()[..], &RECTANGLES, more].concat()
}

/// The kinds of matrices for a size.
pub(crate) fn kinds(size: usize) -> Vec<Kind> {
    let spectra = SPECTRA.into_iter().map(Kind::Spectrum);
    let turn = |stride: usize| move |(i, _): &(usize, Kind)| i % stride == size % stride;
    let all = KINDS.into_iter().chain(spectra.clone());
    match (is_full(), size > LARGE) {
        (true, false) => all.collect(),
        (true, true) => all.enumerate().filter(turn(LARGE_STRIDE)).map(|(_, kind)| kind).collect(),
        (false, _) if size > SMALL => {
            let turn = |(i, _): &(usize, Kind)| (i + size / 2).is_multiple_of(FAST_LARGE_STRIDE);
            all.enumerate().filter(turn).map(|(_, kind)| kind).collect()
        }
        (false, _) => {
            let some = spectra.enumerate().filter(turn(FAST_STRIDE)).map(|(_, kind)| kind);
            KINDS.into_iter().chain(some).collect()
        }
    }
}

/// An order with each of its kinds.
pub(crate) fn kinds_of(n: usize) -> impl Iterator<Item = (usize, Kind)> {
    kinds(n).into_iter().map(move |kind| (n, kind))
}

/// Sizes with each of their kinds and batches; the order is the larger of the two.
pub(crate) fn batches_of(
    sizes: Vec<(usize, usize)>,
) -> impl Iterator<Item = (usize, usize, Kind, Vec<u64>)> {
    sizes.into_iter().flat_map(|(m, n)| {
        kinds(m.max(n)).into_iter().flat_map(move |kind| {
            batches(m.max(n)).into_iter().map(move |seeds| (m, n, kind, seeds))
        })
    })
}

/// Batches, as the seeds of their matrices: of one, and where matrices are small enough to go
/// through vector lanes together, of several.
pub(crate) fn batches(size: usize) -> Vec<Vec<u64>> {
    match (is_full(), size) {
        (_, ..=SMALL) | (true, ..LARGE) => vec![vec![1], vec![2, 3, 4, 5, 6]],
        (false, LARGE_LANES) => vec![vec![1, 2, 3, 4, 5]],
        _ => vec![vec![1]],
    }
}

/// The seeds of matrices that are worked on one by one.
pub(crate) fn seeds(size: usize) -> std::ops::RangeInclusive<u64> {
    1..=if is_full() && size < LARGE { 2 } else { 1 }
}

/// Matrices in a batch whose bits others are compared with: enough to go through lanes.
pub(crate) const FEW: usize = 5;

/// How many copies of a matrix one of a family's kinds is tried with: a few, or by turns one.
pub(crate) fn few(size: usize, turn: usize) -> usize {
    if size <= SMALL && turn.is_multiple_of(2) { FEW } else { 1 }
}
