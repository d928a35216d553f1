//! Reductions to tridiagonal and to Hessenberg form, multiplied together again.

use lapax_core::{InOut, ItemsInOut, ItemsMut, Scalar as _};

use super::BATCHES;
use crate::simd::arch::Arch as Level;
use crate::testing::levels::{close, random};
use crate::{Real, Scalar, Uplo};

for_each_scalar!(sytrd, gehrd);

/// A = Q·T·Qᴴ from LAPACK's storage, with what is not in the triangle left as it was.
fn sytrd<T: Scalar>() {
    let orders = [1, 2, 3, 4, 7, 16, 24, 25, 32];
    for (n, batch) in orders.into_iter().flat_map(|n| BATCHES.map(|b| (n, b))) {
        let mut a = random::<T>(n * n * batch);
        for (b, a) in a.chunks_exact_mut(n * n).enumerate() {
            let power = [1.0, T::Real::SAFE_MIN.to_f64(), T::Real::MAX.to_f64() / 4096.0][b % 3];
            a.iter_mut().for_each(|a| *a = a.scale(T::Real::from_f64(power)));
        }
        if batch > 7 {
            a[7 * n * n] = T::from_real(T::Real::from_f64(f64::INFINITY));
        }
        for (level, uplo) in
            Level::available().flat_map(|l| [Uplo::Lower, Uplo::Upper].map(|u| (l, u)))
        {
            let what = format!("{uplo:?} {n}, batch {batch}, {level:?}");
            let found = tridiagonalized::<T, T>(level, (n, uplo), &a);
            is_tridiagonal_form((n, uplo), &a, &found, &what);
            if n <= crate::eigh::reduction::route::DOUBLE {
                let found = tridiagonalized::<T, T::Double>(level, (n, uplo), &a);
                is_tridiagonal_form((n, uplo), &a, &found, &what);
            }
        }
    }
}

/// a, tau, d and e.
type Reduced<T> = ([Vec<T>; 2], [Vec<<T as lapax_core::Scalar>::Real>; 2]);

/// In lanes of D.
fn tridiagonalized<T: Scalar, D: Scalar>(
    level: Level,
    (n, uplo): (usize, Uplo),
    a: &[T],
) -> Reduced<T> {
    let batch = a.len() / (n * n);
    let mut out = [vec![T::ONE; a.len()], vec![T::ONE; (n - 1) * batch]];
    let mut real = [n, n - 1].map(|len| vec![T::Real::ONE; len * batch]);
    let mut info = vec![7; batch];
    let ([dst, tau], [d, e]) = (&mut out, &mut real);
    let operands = (
        ItemsInOut::new("a", batch, &[n, n], InOut { src: Some(a), dst }).unwrap(),
        ItemsMut::new("d", batch, &[n], d).unwrap(),
        ItemsMut::new("e", batch, &[n - 1], e).unwrap(),
        ItemsMut::new("tau", batch, &[n - 1], tau).unwrap(),
        ItemsMut::new("info", batch, &[], &mut info).unwrap(),
    );
    let single = |a: &mut [T], _: &mut [T::Real], _: &mut [T::Real], _: &mut [T]| {
        assert!(!a[0].is_finite(), "only one matrix is not finite");
        a.fill(crate::simd::scalar::nan());
    };
    level.run::<D, _>(batch, operands, &crate::lanes::eigh::sytrd::Reduce { n, uplo, single });
    assert_eq!(info, vec![0; batch]);
    (out, real)
}

fn is_tridiagonal_form<T: Scalar>(
    (n, uplo): (usize, Uplo),
    a: &[T],
    ([reduced, tau], [d, e]): &Reduced<T>,
    what: &str,
) {
    for (b, (a, reduced)) in a.chunks_exact(n * n).zip(reduced.chunks_exact(n * n)).enumerate() {
        if b == 7 {
            assert!(reduced.iter().all(|x| x.is_nan()), "{what}: left to the other way");
            continue;
        }
        let (d, part) = (&d[b * n..(b + 1) * n], b * (n - 1)..(b + 1) * (n - 1));
        let (e, tau) = (&e[part.clone()], &tau[part]);
        let scale = a.iter().map(|a| a.abs1().to_f64()).fold(0.0, f64::max);
        let unit = |x: T| x.unscale(T::Real::from_f64(scale.max(T::Real::SAFE_MIN.to_f64())));
        let mut product = vec![T::ZERO; n * n];
        for j in 0..n {
            product[j * n + j] = unit(T::from_real(d[j]));
            assert_eq!(reduced[j * n + j], T::from_real(d[j]), "{what}");
        }
        for (j, &e) in e.iter().enumerate() {
            product[j * n + j + 1] = unit(T::from_real(e));
            product[(j + 1) * n + j] = unit(T::from_real(e));
        }
        let lower = uplo == Uplo::Lower;
        // Q·T·Qᴴ, from the reflector that was found last.
        for k in 0..n - 1 {
            let j = if lower { n - 2 - k } else { k };
            let vector = |i: usize| match (lower, i.cmp(&if lower { j + 1 } else { j })) {
                (_, std::cmp::Ordering::Equal) => T::ONE,
                (true, std::cmp::Ordering::Greater) => reduced[j * n + i],
                (false, std::cmp::Ordering::Less) => reduced[(j + 1) * n + i],
                _ => T::ZERO,
            };
            let v: Vec<T> = (0..n).map(vector).collect();
            reflect_both(&mut product, n, &v, tau[j]);
        }
        for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
            let at = j * n + i;
            if i == j {
                let diagonal = unit(T::from_real(a[at].re()));
                close(&[product[at]], &[diagonal], n, what);
            } else if (i > j) == lower {
                close(&[product[at]], &[unit(a[at])], n, what);
            } else {
                assert_eq!(reduced[at], a[at], "{what}: the other triangle");
            }
        }
    }
}

/// A = Q·H·Qᴴ for all of A and for a part of it, and NaN where it is not finite.
fn gehrd<T: Scalar>() {
    let orders = [(1, 0..1), (2, 0..2), (3, 0..3), (4, 1..4), (7, 0..7), (8, 2..7), (16, 0..16)];
    let orders = orders.into_iter().chain([(9, 4..5), (32, 0..32)]);
    for ((n, active), batch) in orders.flat_map(|n| BATCHES.map(|b| (n.clone(), b))) {
        let mut a = random::<T>(n * n * batch);
        for (p, x) in a.iter_mut().enumerate() {
            let (i, j) = (p % n, p / n % n);
            if i > j && (j < active.start || i >= active.end) {
                *x = T::ZERO;
            }
        }
        if batch > 7 {
            a[7 * n * n] = T::from_real(T::Real::from_f64(f64::INFINITY));
        }
        for level in Level::available() {
            let what = format!("{n}, {active:?}, batch {batch}, {level:?}");
            let (mut h, mut tau) = (vec![T::ONE; a.len()], vec![T::ONE; (n - 1) * batch]);
            let mut info = vec![7; batch];
            let in_out = InOut { src: Some(&a[..]), dst: &mut h[..] };
            let operands = (
                ItemsInOut::new("a", batch, &[n, n], in_out).unwrap(),
                ItemsMut::new("tau", batch, &[n - 1], &mut tau).unwrap(),
                ItemsMut::new("info", batch, &[], &mut info).unwrap(),
            );
            let kernel = crate::lanes::schur::hessenberg::Reduce { n, active: active.clone() };
            level.run::<T, _>(batch, operands, &kernel);
            assert_eq!(info, vec![0; batch], "{what}");
            for b in 0..batch {
                let part = b * n * n..(b + 1) * n * n;
                let (a, h, tau) = (&a[part.clone()], &h[part], &tau[b * (n - 1)..][..n - 1]);
                if b == 7 {
                    assert!(h.iter().chain(tau).all(|x| x.is_nan()), "{what}");
                } else {
                    is_hessenberg_form(active.clone(), a, h, tau, &what);
                }
            }
        }
    }
}

fn is_hessenberg_form<T: Scalar>(
    active: std::ops::Range<usize>,
    a: &[T],
    h: &[T],
    tau: &[T],
    what: &str,
) {
    let n = tau.len() + 1;
    let below = |p: usize| p % n > p / n + 1;
    let mut product: Vec<T> =
        h.iter().enumerate().map(|(p, &x)| if below(p) { T::ZERO } else { x }).collect();
    for j in (0..n - 1).rev() {
        if !active.contains(&j) || j + 1 >= active.end {
            assert_eq!(tau[j], T::ZERO, "{what}");
            continue;
        }
        let vector = |i: usize| match i.cmp(&(j + 1)) {
            std::cmp::Ordering::Equal => T::ONE,
            std::cmp::Ordering::Greater if i < active.end => h[j * n + i],
            _ => T::ZERO,
        };
        let v: Vec<T> = (0..n).map(vector).collect();
        reflect_both(&mut product, n, &v, tau[j]);
    }
    close(&product, a, n, what);
}

/// B ← H·B·Hᴴ with H = I − tau·v·vᴴ.
fn reflect_both<T: Scalar>(b: &mut [T], n: usize, v: &[T], tau: T) {
    for column in b.chunks_exact_mut(n) {
        let sum = v.iter().zip(&*column).fold(T::ZERO, |sum, (v, x)| sum + v.conj() * *x);
        column.iter_mut().zip(v).for_each(|(x, v)| *x -= tau * *v * sum);
    }
    for i in 0..n {
        let sum = (0..n).fold(T::ZERO, |sum, j| sum + b[j * n + i] * v[j]);
        for (j, v) in v.iter().enumerate() {
            b[j * n + i] -= sum * (tau * *v).conj();
        }
    }
}
