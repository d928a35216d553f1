//! lu_pivots_to_permutation: any pivots, in all three plans, give what swapping one by one gives.

use lapax_core::Serial;
use lapax_cuda::lu;
use lapax_cuda_fake::driver;

use crate::device::{SEEDS, device, gpu, input, output, succeeds};
use crate::random::Random;

/// How pivots are drawn: as an LU factorisation's, near the diagonal, each the next row (of all swaps
/// the longest chain), anywhere, or out of range too.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Factorisation,
    Near,
    Next,
    Anywhere,
    OutOfRange,
}

fn pivots(random: &mut Random, kind: Kind, k: usize, p: usize) -> Vec<i32> {
    let pivot = |i: usize| match kind {
        Kind::Factorisation => i + random.below(p - i),
        Kind::Near => (i + random.below(3)).min(p - 1),
        Kind::Next => (i + 1).min(p - 1),
        Kind::Anywhere => random.below(p),
        Kind::OutOfRange => random.below(p + 4),
    };
    let shift = if matches!(kind, Kind::OutOfRange) { 2 } else { 0 };
    (0..k).map(pivot).map(|pivot| i32::try_from(pivot).unwrap() - shift).collect()
}

fn check(batch: usize, k: usize, p: usize, pivots: &[i32]) {
    let mut expected = vec![0; batch * p];
    lapax_cpu::lu::lu_pivots_to_permutation(batch, k, p, pivots, &mut expected, &Serial).unwrap();
    let mut permutation = vec![-1; batch * p];
    let out = output(&mut permutation);
    succeeds(lu::lu_pivots_to_permutation(&gpu(), batch, k, p, input(pivots), out));
    assert_eq!(permutation, expected, "batch {batch}, {k} pivots of {p}: {pivots:?}");
}

#[test]
fn any_pivots_in_any_order_of_threads() {
    use Kind::{Anywhere, Factorisation, Near, Next, OutOfRange};
    let Some(_device) = device() else { return };
    let mut random = Random(1);
    for kind in [Factorisation, Near, Next, Anywhere, OutOfRange] {
        for p in [1_usize, 2, 7, 31, 32, 33, 64, 100, 129, 300] {
            for (batch, k) in [(1, p), (3, p), (5, p.div_ceil(2)), (2, 0), (20, p)] {
                let all =
                    (0..batch).flat_map(|_| pivots(&mut random, kind, k, p)).collect::<Vec<_>>();
                for seed in SEEDS {
                    driver::state().seed = seed;
                    check(batch, k, p, &all);
                }
            }
        }
    }
}

#[test]
fn every_plan_is_taken() {
    let Some(_device) = device() else { return };
    let mut random = Random(2);
    // More systems than a grid's warps, a block with shared memory, a block without.
    for (batch, p) in [(700, 5), (1, 5000), (2, 60_000)] {
        let all: Vec<i32> =
            (0..batch).flat_map(|_| pivots(&mut random, Kind::Factorisation, p, p)).collect();
        check(batch, p, p, &all);
    }
    let launches = &driver::state().launches;
    assert!(launches.contains_key("lu_pivots_warp") && launches.contains_key("lu_pivots_block"));
}
