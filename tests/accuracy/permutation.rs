//! `lu_pivots_to_permutation`: exact, so compared exactly.

use lapax_cpu::lu::lu_pivots_to_permutation;
use lapax_cpu::{Error, Serial, Spawned};

use crate::sample::Random;

/// The definition, by hand: swaps in order on the identity.
fn expected(p: usize, pivots: &[i32]) -> Vec<i32> {
    let mut permutation: Vec<i32> = (0..i32::try_from(p).unwrap()).collect();
    for (i, &pivot) in pivots.iter().enumerate() {
        if let Some(j) = usize::try_from(pivot).ok().filter(|&j| j < p) {
            permutation.swap(i, j);
        }
    }
    permutation
}

#[test]
fn swaps_in_order_from_the_identity() {
    for (k, p) in [(0, 0), (0, 4), (1, 1), (3, 3), (4, 9), (33, 100), (100, 100)] {
        for batch in [0, 1, 5] {
            let mut random = Random(3);
            let pivots: Vec<i32> = (0..batch * k)
                .map(|i| i32::try_from(i % k + usize::try_from(random.below(4)).unwrap()).unwrap())
                .map(|pivot| if pivot % 11 == 10 { -1 } else { pivot })
                .collect();
            let mut permutation = vec![-7; batch * p];
            let threads = Spawned(2);
            lu_pivots_to_permutation(batch, k, p, &pivots, &mut permutation, &threads).unwrap();
            for b in 0..batch {
                let item = &permutation[b * p..(b + 1) * p];
                assert_eq!(item, expected(p, &pivots[b * k..(b + 1) * k]), "k = {k}, p = {p}");
            }
        }
    }
}

#[test]
fn small_example_is_what_jax_documents() {
    let mut permutation = [0; 4];
    lu_pivots_to_permutation(1, 3, 4, &[1, 3, 2], &mut permutation, &Serial).unwrap();
    assert_eq!(permutation, [1, 3, 2, 0]);
}

#[test]
fn many_threads_agree_with_one() {
    let (batch, k) = (20_000, 16);
    let mut random = Random(4);
    let pivots: Vec<i32> =
        (0..batch * k).map(|_| i32::try_from(random.below(16)).unwrap()).collect();
    let run = |threads| {
        let mut permutation = vec![0; batch * k];
        lu_pivots_to_permutation(batch, k, k, &pivots, &mut permutation, &Spawned(threads))
            .unwrap();
        permutation
    };
    let one = run(1);
    assert!(run(2) == one && run(7) == one);
}

#[test]
fn sizes_are_checked() {
    let error = lu_pivots_to_permutation(1, 3, 2, &[0; 3], &mut [0; 2], &Serial);
    assert!(matches!(error, Err(Error::Order { larger: "p", smaller: "k", .. })));
    let error = lu_pivots_to_permutation(0, 0, 1 << 31, &[], &mut [], &Serial);
    assert!(matches!(error, Err(Error::TooLarge { dimension: "p", .. })));
}
