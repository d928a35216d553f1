//! Which kernel works on a block-tridiagonal matrix.

use crate::matrix::blocks::Blocks;
use crate::parallel::groups::BATCH;
use crate::parallel::routes::{Routine, routes, routine};

routes! {
    /// How a matrix goes.
    pub(crate) enum Route {
        /// By [`lanes::block_tridiagonal`](crate::lanes::block_tridiagonal), in a lane of the registers.
        Lanes,
        /// By rows in registers, on one thread.
        Rows,
    }
}

/// The order of blocks up to which a batch goes through lanes: a factor of f64 on one core of Zen 5, ns a block by rows
/// and in lanes, order 8 250 and 52, 12 490 and 215, 16 660 and 570.
const LANES: usize = 16;

/// The numbers of a block of X up to which a batch does: a tile of them then takes what one of a block of A does.
const LANES_NUMBERS: usize = 32 * 32;

/// How each matrix of a batch goes, with nrhs right-hand sides.
pub(crate) fn route(batch: usize, blocks: Blocks, nrhs: usize) -> Route {
    let n = blocks.n;
    let fit_lanes = (1..=LANES).contains(&n) && n.saturating_mul(nrhs) <= LANES_NUMBERS;
    let some = blocks.count > 0 && nrhs > 0;
    if batch >= BATCH && fit_lanes && some { Route::Lanes } else { Route::Rows }
}

/// The order of blocks without symmetry up to which a batch does: factors of f64 on one core of Zen 5, ns a block by rows
/// and in lanes, order 1 59 and 12, 3 260 and 70, 4 200 and 130, 8 510 and 950.
const LANES_GENERAL: usize = 4;

/// How each matrix of a batch is factored that has no symmetry.
pub(crate) fn general(batch: usize, blocks: Blocks) -> Route {
    let fit = (1..=LANES_GENERAL).contains(&blocks.n) && blocks.count > 0;
    if batch >= BATCH && fit { Route::Lanes } else { Route::Rows }
}

/// The products of numbers that a factorisation takes, with what the roots and quotients of a block wait for.
pub(crate) fn factor_products(blocks: Blocks) -> usize {
    /// Each row waits for about 15 ns.
    const ROW: usize = 90;
    let n = blocks.n;
    let block = (n.saturating_mul(n).saturating_mul(n) / 6).saturating_mul(7);
    block.saturating_add(n.saturating_mul(ROW)).saturating_mul(blocks.count)
}

/// The products of numbers that the factors of a matrix without symmetry take.
pub(crate) fn general_products(blocks: Blocks) -> usize {
    factor_products(blocks).saturating_mul(2)
}

/// The products of numbers that both sweeps take: rows wait for each other.
pub(crate) fn solve_products(blocks: Blocks, nrhs: usize) -> usize {
    let n = blocks.n;
    n.saturating_mul(3)
        .saturating_mul(n.saturating_mul(nrhs).saturating_add(8))
        .saturating_mul(blocks.count)
}

/// The products of numbers that the inverse takes.
pub(crate) fn inverse_products(blocks: Blocks) -> usize {
    factor_products(blocks).saturating_mul(3)
}

/// The choices of this family, by name.
pub(crate) const ROUTINES: &[Routine] = &[
    routine!("block_tridiagonal_cholesky", Route, ["n"], |_, batch, [n]| {
        route(batch, Blocks { count: 1, n }, 1)
    }),
    routine!("block_tridiagonal_cho_solve", Route, ["n", "nrhs"], |_, batch, [n, nrhs]| {
        route(batch, Blocks { count: 1, n }, nrhs)
    }),
    routine!("block_tridiagonal_solve", Route, ["n", "nrhs"], |_, batch, [n, nrhs]| {
        route(batch, Blocks { count: 1, n }, nrhs)
    }),
    routine!("block_tridiagonal_inverse", Route, ["n"], |_, batch, [n]| {
        route(batch, Blocks { count: 1, n }, 1)
    }),
    routine!("block_tridiagonal_lu", Route, ["n"], |_, batch, [n]| {
        general(batch, Blocks { count: 1, n })
    }),
];
