//! Tridiagonal systems with perturbed pivots: as one by one, and finite where A is singular.

use lapax_core::{Items, ItemsMut, Serial};

use super::BATCHES;
use crate::simd::arch::Arch as Level;
use crate::testing::levels::{close, random};
use crate::tridiagonal::elimination::perturbed_quotient;
use crate::tridiagonal::tridiagonal_solve_perturbed;
use crate::{Real, Scalar};

for_each_scalar!(perturbed);

fn perturbed<T: Scalar>() {
    /// A matrix of zeros, one without its diagonal, one that underflows.
    const ZERO: usize = 7;
    const NO_DIAGONAL: usize = 8;
    const TINY: usize = 9;
    let sizes = [(1, 1), (2, 3), (5, 2), (33, 1)];
    for ((m, nrhs), batch) in sizes.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let mut diagonals = [0, 1, 2].map(|k| random::<T>(m * batch + k)[k..].to_vec());
        let b = random::<T>(m * nrhs * batch);
        for (i, x) in diagonals[1].iter_mut().enumerate() {
            // Some rows want to be swapped.
            *x += T::from_real(T::Real::from_f64(if i % 3 == 0 { 0.0 } else { 3.0 }));
        }
        if batch > TINY {
            let part = |b: usize| b * m..(b + 1) * m;
            diagonals[1][part(NO_DIAGONAL)].fill(T::ZERO);
            for d in &mut diagonals {
                d[part(ZERO)].fill(T::ZERO);
                let tiny = T::Real::SAFE_MIN * T::Real::from_f64(0.01);
                d[part(TINY)].iter_mut().for_each(|x| *x = x.scale(tiny));
            }
        }
        let [dl, d, du] = &diagonals;
        let mut expected = vec![T::ZERO; b.len()];
        for i in 0..batch {
            let of = |d: &'_ [T]| d[i * m..(i + 1) * m].to_vec();
            let (dl, d, du) = (of(dl), of(d), of(du));
            let part = i * m * nrhs..(i + 1) * m * nrhs;
            let (b, x) = (&b[part.clone()], &mut expected[part]);
            tridiagonal_solve_perturbed(1, m, nrhs, [&dl, &d, &du], b, x, &Serial).unwrap();
        }
        for level in Level::available() {
            let mut x = vec![T::ONE; b.len()];
            let operands = (
                Items::new("dl", batch, &[m], dl).unwrap(),
                Items::new("d", batch, &[m], d).unwrap(),
                Items::new("du", batch, &[m], du).unwrap(),
                Items::new("b", batch, &[m, nrhs], &b).unwrap(),
                ItemsMut::new("x", batch, &[m, nrhs], &mut x).unwrap(),
            );
            let quotient = perturbed_quotient::<T>;
            level.run::<T, _>(
                batch,
                operands,
                &crate::lanes::tridiagonal::perturbed::Solve { m, nrhs, quotient },
            );
            let parts = x.chunks_exact(m * nrhs).zip(expected.chunks_exact(m * nrhs));
            for (i, (x, expected)) in parts.enumerate() {
                let what = format!("{m} rows, system {i} of {batch}, {level:?}");
                assert!(x.iter().all(|x| x.is_finite()), "{what}: {x:?}");
                // What a perturbation is divided by is a rounding.
                if ![NO_DIAGONAL, TINY].contains(&i) {
                    close(x, expected, 1000 * m, &what);
                }
            }
        }
    }
}
