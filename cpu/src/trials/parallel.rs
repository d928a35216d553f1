//! Matrices cut into strips for several threads, against the same on one thread without strips.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use faer::MatMut;
use lapax_core::{InOut, Scalar as _, Serial, Side, Threads, Trans};

use crate::blas::householder::Reflectors;
use crate::eigh::reduction::blocked;
use crate::eigh::reduction::parallel::tridiagonalize_parallel;
use crate::hessenberg::parallel::reduce_parallel;
use crate::lu::parallel;
use crate::matrix::layout::Factor;
use crate::qr::pivoted::parallel::factor_pivoted_parallel;
use crate::qr::q;
use crate::simd::arch::Arch;
use crate::svd::reduction;
use crate::svd::reduction::Bidiagonal;
use crate::svd::reduction::parallel::bidiagonalize_parallel;
use crate::testing::levels::{close, random};
use crate::testing::threads::{on_threads, transposed};
use crate::triangular::{COPIED_ORDER, trsm};
use crate::{Diag, Real, Scalar, Uplo};
use crate::{cholesky, hessenberg, lu, qr};

for_each_scalar!(
    lu_factors,
    cholesky_factors,
    qr_factors,
    strip_beside_its_block,
    triangular,
    copied_triangle,
    tridiagonal,
    bidiagonal,
    hessenberg_form,
    pivoted,
    nan_column,
);

/// Tall, wide, of one strip, of many, and with a zero pivot.
fn lu_factors<T: Scalar>() {
    for (m, n) in [(40, 40), (61, 61), (90, 33), (33, 90), (70, 16), (16, 70), (1, 5), (5, 1)] {
        for singular in [None, Some(m.min(n) / 2)] {
            let mut a = random::<T>(m * n);
            let k = m.min(n);
            if let Some(column) = singular {
                a[column * m..(column + 1) * m].fill(T::ZERO);
            }
            let (mut factors, mut pivots, mut info) = (vec![T::ZERO; m * n], vec![0; k], [0]);
            let lu = InOut { src: Some(&a[..]), dst: &mut factors };
            lu::getrf(1, m, n, lu, &mut pivots, &mut info, &Serial).unwrap();
            let zero = usize::try_from(info[0]).unwrap().checked_sub(1);
            assert_eq!(zero, singular);
            for (width, by_rows) in [(8, false), (16, true), (48, false), (100, true)] {
                let what = format!("{m}x{n}, panels of {width}, by rows: {by_rows}");
                let found = on_threads(&what, |threads| {
                    let mut x = if by_rows { transposed(&a, m, n) } else { a.clone() };
                    let mut swaps = vec![0; k];
                    let view = if by_rows {
                        MatMut::from_row_major_slice_mut(&mut x, m, n)
                    } else {
                        MatMut::from_column_major_slice_mut(&mut x, m, n)
                    };
                    let zero = parallel::factor_parallel(view, &mut swaps, width, threads);
                    (if by_rows { transposed(&x, n, m) } else { x }, swaps, zero)
                });
                let swaps: Vec<_> =
                    found.1.iter().map(|&i| i32::try_from(i + 1).unwrap()).collect();
                assert_eq!((&swaps, found.2), (&pivots, singular), "{what}");
                close(&found.0, &factors, 100 * m.max(n), &what);
            }
        }
    }
}

/// Both triangles, and matrices that are not positive definite at some row.
fn cholesky_factors<T: Scalar>() {
    for n in [1, 30, 64, 97] {
        for failing in [None, Some(n / 2), Some(n - 1)] {
            let x = random::<T>(n * n);
            let mut a = vec![T::ZERO; n * n];
            for (p, a) in a.iter_mut().enumerate() {
                let (i, j) = (p % n, p / n);
                let products = (0..n).map(|k| x[i + k * n] * x[j + k * n].conj());
                *a = products.fold(T::ZERO, |sum, x| sum + x);
                if i == j {
                    *a = T::from_real(a.re() + T::Real::ONE);
                }
            }
            if let Some(row) = failing {
                a[row * (n + 1)] = T::from_real(-T::Real::ONE);
            }
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let (mut factor, mut info) = (vec![T::ZERO; n * n], [0]);
                let l = InOut { src: Some(&a[..]), dst: &mut factor };
                cholesky::potrf(uplo, 1, n, l, &mut info, &Serial).unwrap();
                let expected = usize::try_from(info[0]).unwrap().checked_sub(1);
                assert_eq!(expected, failing);
                for width in [8, 32, 50, 128] {
                    let what = format!("{n}, strips of {width}, {uplo:?}");
                    let found = on_threads(&what, |threads| {
                        let mut x = a.clone();
                        let view = MatMut::from_column_major_slice_mut(&mut x, n, n);
                        let view = if uplo == Uplo::Upper { view.transpose_mut() } else { view };
                        let outcome = cholesky::parallel::factor_parallel(view, width, threads);
                        // What a failed factorisation leaves depends on when the others saw it.
                        (if outcome.is_ok() { x } else { Vec::new() }, outcome)
                    });
                    assert_eq!(found.1.err(), failing, "{what}");
                    if failing.is_none() {
                        close(&found.0, &factor, 100 * n, &what);
                    }
                }
            }
        }
    }
}

/// The factors, Q, and products with it on both sides.
fn qr_factors<T: Scalar>() {
    let arch = Arch::new();
    for (m, n) in [(120, 120), (150, 60), (60, 150), (97, 96), (49, 49)] {
        let (k, what) = (m.min(n), format!("{m}x{n}"));
        let a = random::<T>(m * n);
        let (mut factors, mut tau) = (a.clone(), vec![T::ZERO; k]);
        let panel = crate::matrix::panel::Panel { a: &mut factors, lda: m, row: 0 };
        crate::qr::blocked::factor(
            panel,
            &mut tau,
            &mut crate::qr::blocked::factor_scratch(m, n),
            arch,
        );
        let found = on_threads(&what, |threads| {
            let (mut x, mut tau) = (a.clone(), vec![T::ZERO; k]);
            qr::parallel::factor_parallel(&mut x, m, &mut tau, threads);
            (x, tau)
        });
        close(&found.0, &factors, 100 * m.max(n), &what);
        close(&found.1, &tau, 100 * m.max(n), &what);

        // As many columns as Q has, and as many as there are reflectors.
        for columns in [m, k] {
            let mut reflectors = random::<T>(m * columns);
            reflectors[..m * k].copy_from_slice(&factors[..m * k]);
            let mut q = reflectors.clone();
            let mut scratch = crate::blas::householder::BlockScratch::new(m, 32, m);
            q::generate(&mut q, m, &tau, &mut scratch, arch);
            let found = on_threads(&what, |threads| {
                let mut q = reflectors.clone();
                qr::parallel::generate_parallel(&mut q, m, &tau, threads);
                q
            });
            close(&found, &q, 100 * m, &format!("{what}: {columns} columns of Q"));
        }

        const OTHERS: usize = 70;
        for (side, factor) in [Side::Left, Side::Right]
            .into_iter()
            .flat_map(|side| [Factor::Q, Factor::Adjoint].map(|factor| (side, factor)))
        {
            let rows = if side == Side::Left { m } else { OTHERS };
            let c = random::<T>(m * OTHERS);
            let q = Reflectors { a: &factors[..m * k], r: m, tau: &tau, factor };
            let mut product = c.clone();
            let mut scratch = crate::blas::householder::BlockScratch::new(m, 32, OTHERS);
            let sums = &mut vec![T::ZERO; rows];
            q::multiply(side, q, &mut product, rows, &mut scratch, sums, arch);
            let found = on_threads(&what, |threads| {
                let mut c = c.clone();
                qr::parallel::multiply_parallel(side, q, &mut c, rows, threads);
                c
            });
            close(&found, &product, 100 * m, &format!("{what}: {side:?} {factor:?}"));
        }
    }
}

/// Two threads, of which the second comes so many turns of a loop after the first.
struct Late(usize);

impl Threads for Late {
    fn count(&self) -> usize {
        2
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !begun.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                (0..self.0).for_each(|_| std::hint::spin_loop());
                (1..chunks).for_each(body);
            });
            begun.store(true, Ordering::Release);
            body(0);
        });
    }
}

/// A thread that is to make a block of reflectors, and one that is to make Q's columns of the same strip, at
/// about the same time: neither may keep the other from what it waits for.
fn strip_beside_its_block<T: Scalar>() {
    const RUNS: usize = 3000;
    const REFLECTORS: usize = 49;
    let (ended, end) = mpsc::channel();
    // Where two threads wait for each other, nobody can end them.
    std::thread::spawn(move || {
        let (a, tau) = (random::<T>(REFLECTORS * REFLECTORS), random::<T>(REFLECTORS));
        for run in 0..RUNS {
            let mut q = a.clone();
            qr::parallel::generate_parallel(&mut q, REFLECTORS, &tau, &Late(run));
            if ended.send(run).is_err() {
                return;
            }
        }
    });
    for run in 0..RUNS {
        let found = end.recv_timeout(Duration::from_secs(60));
        assert_eq!(found, Ok(run), "two threads wait for each other");
    }
}

/// Systems large enough for strips, against the residual.
fn triangular<T: Scalar>() {
    let (n, nrhs) = (200, 150);
    let mut a = random::<T>(n * n);
    for i in 0..n {
        a[i * (n + 1)] = T::from_real(T::Real::from_f64(n as f64));
    }
    let b = random::<T>(n * nrhs);
    for (side, uplo) in [(Side::Left, Uplo::Lower), (Side::Right, Uplo::Upper)] {
        let (m, columns) = if side == Side::Left { (n, nrhs) } else { (nrhs, n) };
        let what = format!("{side:?} {uplo:?}");
        let x = on_threads(&what, |threads| {
            let mut x = b.clone();
            let x_in = InOut { src: None, dst: &mut x[..] };
            let (trans, diag) = (Trans::ConjTranspose, Diag::NonUnit);
            trsm(side, uplo, trans, diag, 1, m, columns, &a, x_in, threads).unwrap();
            x
        });
        let at = |i: usize, j: usize| {
            let kept = if uplo == Uplo::Lower { j >= i } else { j <= i };
            if kept { a[i * n + j].conj() } else { T::ZERO }
        };
        // Element (i, j) of op(A) is the conjugate of element (j, i) of A.
        let product = (0..m * columns).map(|p| {
            let (i, j) = (p % m, p / m);
            let terms = (0..n).map(|k| match side {
                Side::Left => at(i, k) * x[k + j * m],
                Side::Right => x[i + k * m] * at(k, j),
            });
            terms.fold(T::ZERO, |sum, x| sum + x)
        });
        close(&product.collect::<Vec<_>>(), &b, 10 * n, &what);
    }
}

/// A large triangle that lies across the right-hand sides is copied: the same bits as where it lies along.
fn copied_triangle<T: Scalar>() {
    let (n, nrhs) = (COPIED_ORDER, 70);
    let mut a = random::<T>(n * n);
    for i in 0..n {
        a[i * (n + 1)] = T::from_real(T::Real::from_f64(n as f64));
    }
    let across = transposed(&a, n, n);
    let b = random::<T>(n * nrhs);
    for side in [Side::Left, Side::Right] {
        let (m, columns) = if side == Side::Left { (n, nrhs) } else { (nrhs, n) };
        let solve = |uplo, trans, a: &[T], threads: &dyn Threads| {
            let mut x = b.clone();
            let x_in = InOut { src: None, dst: &mut x[..] };
            trsm(side, uplo, trans, Diag::NonUnit, 1, m, columns, a, x_in, threads).unwrap();
            x
        };
        let along = solve(Uplo::Lower, Trans::None, &a, &Serial);
        let what = format!("{side:?} across");
        let found =
            on_threads(&what, |threads| solve(Uplo::Upper, Trans::Transpose, &across, threads));
        assert!(found == along && found != b, "{what}: another result than along");
    }
}

/// Hermitian matrices with no panel for several threads, one, and some; the upper triangle stays.
fn tridiagonal<T: Scalar>() {
    let arch = Arch::new();
    for n in [1, 100, 224, 225, 300] {
        let mut a = random::<T>(n * n);
        for j in 0..n {
            a[j * n + j] = T::from_real(a[j * n + j].re());
        }
        let what = format!("n = {n}");
        let (x, d, e, tau) = on_threads(&what, |threads| {
            let (mut x, mut d, mut e) =
                (a.clone(), vec![T::Real::ZERO; n], vec![T::Real::ZERO; n - 1]);
            let mut tau = vec![T::ZERO; n - 1];
            let mut scratch = blocked::Scratch::new(n);
            tridiagonalize_parallel(&mut x, &mut d, &mut e, &mut tau, &mut scratch, threads, arch);
            (x, d, e, tau)
        });
        // T, to which the reflectors are applied from both sides, the last one first.
        let mut product = vec![T::ZERO; n * n];
        for j in 0..n {
            product[j * n + j] = T::from_real(d[j]);
            if j + 1 < n {
                product[j * n + j + 1] = T::from_real(e[j]);
                product[(j + 1) * n + j] = T::from_real(e[j]);
            }
        }
        apply_both_sides(&mut product, &x, &tau);
        for j in 0..n {
            close(&product[j * n + j..(j + 1) * n], &a[j * n + j..(j + 1) * n], 100 * n, &what);
            assert_eq!(x[j * n..j * n + j], a[j * n..j * n + j], "{what}: the other triangle");
        }
    }
}

/// P ← Q·P·Qᴴ for the reflectors below the first subdiagonal of `a`, the last one first.
pub(crate) fn apply_both_sides<T: Scalar>(product: &mut Vec<T>, a: &[T], tau: &[T]) {
    let n = tau.len() + 1;
    for (j, &tau) in tau.iter().enumerate().rev() {
        let mut v = a[j * n + j + 1..(j + 1) * n].to_vec();
        v[0] = T::ONE;
        for _ in 0..2 {
            for column in product.chunks_exact_mut(n) {
                let rows = &mut column[j + 1..];
                let sum = rows.iter().zip(&v).fold(T::ZERO, |sum, (&x, &v)| sum + v.conj() * x);
                rows.iter_mut().zip(&v).for_each(|(x, &v)| *x -= tau * sum * v);
            }
            // H·(H·P)ᴴ is (H·P·Hᴴ)ᴴ.
            *product = transposed(product, n, n).into_iter().map(|x| x.conj()).collect();
        }
    }
}

/// No panel for several threads, one, and some; numbers whose squares are no normal ones.
fn bidiagonal<T: Scalar>() {
    let (arch, zeros) = (Arch::new(), |length| vec![T::ZERO; length]);
    let tiny = T::Real::from_f64(0.01) * T::Real::SAFE_MIN.sqrt();
    for (m, n, size) in [
        (1, 1, T::Real::ONE),
        (150, 100, T::Real::ONE),
        (208, 208, T::Real::ONE),
        (260, 225, T::Real::ONE),
        (300, 300, T::Real::ONE),
        (300, 300, tiny),
    ] {
        let a: Vec<T> = random::<T>(m * n).iter().map(|x| x.scale(size)).collect();
        let what = format!("{m}x{n} of size {size:?}");
        let (x, v, d, e, tau_q, tau_p) = on_threads(&what, |threads| {
            let (mut x, mut v) = (a.clone(), zeros(n * n));
            let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n - 1]);
            let (mut tau_q, mut tau_p) = (zeros(n), zeros(n - 1));
            let mut b = Bidiagonal { d: &mut d, e: &mut e, tau_q: &mut tau_q, tau_p: &mut tau_p };
            let mut scratch = reduction::blocked::Scratch::new(m, n);
            bidiagonalize_parallel(&mut x, &mut v, &mut b, &mut scratch, threads, arch);
            (x, v, d, e, tau_q, tau_p)
        });
        // B, to which the reflectors are applied from both sides, the last ones first.
        let mut product = zeros(m * n);
        for j in 0..n {
            product[j * m + j] = T::from_real(d[j]);
            if j + 1 < n {
                product[(j + 1) * m + j] = T::from_real(e[j]);
            }
        }
        let reflect = |columns: &mut [T], ld: usize, tau: T, row: usize, tail: &[T]| {
            for column in columns.chunks_exact_mut(ld) {
                let (head, rest) = column[row..].split_first_mut().unwrap();
                let terms = rest.iter().zip(tail);
                let sum = tau * terms.fold(*head, |sum, (&x, &v)| sum + v.conj() * x);
                *head -= sum;
                rest.iter_mut().zip(tail).for_each(|(x, &v)| *x -= sum * v);
            }
        };
        for j in (0..n).rev() {
            reflect(&mut product, m, tau_q[j], j, &x[j * m + j + 1..(j + 1) * m]);
        }
        // P·(Q·B)ᴴ is Aᴴ.
        let adjoint = |a: &[T], m, n| -> Vec<T> {
            transposed(a, m, n).into_iter().map(|x| x.conj()).collect()
        };
        let mut product = adjoint(&product, m, n);
        for j in (0..n - 1).rev() {
            reflect(&mut product, n, tau_p[j], j + 1, &v[j * n + j + 2..(j + 1) * n]);
        }
        let found: Vec<T> = product.iter().map(|&x| x.scale(T::Real::ONE / size)).collect();
        let expected: Vec<T> =
            adjoint(&a, m, n).iter().map(|x| x.scale(T::Real::ONE / size)).collect();
        close(&found, &expected, m, &what);
    }
}

/// No panel for several threads, one, and some, in one strip of columns and in several; rows and columns
/// around the active ones.
fn hessenberg_form<T: Scalar>() {
    let arch = Arch::new();
    for (n, active) in
        [(1, 0..1), (100, 0..100), (224, 0..224), (300, 7..260), (280, 40..280), (420, 0..420)]
    {
        let mut a = random::<T>(n * n);
        let outside = |p: usize| {
            let (i, j) = (p % n, p / n);
            i > j && (j < active.start || i >= active.end)
        };
        (0..n * n).filter(|&p| outside(p)).for_each(|p| a[p] = T::ZERO);
        let what = format!("{active:?} of {n}");
        let (x, tau) = on_threads(&what, |threads| {
            let (mut x, mut tau) = (a.clone(), vec![T::ZERO; n - 1]);
            let mut scratch = hessenberg::blocked::Scratch::new(n);
            reduce_parallel(&mut x, n, active.clone(), &mut tau, &mut scratch, threads, arch);
            (x, tau)
        });
        let mut product: Vec<T> =
            (0..n * n).map(|p| if p % n > p / n + 1 { T::ZERO } else { x[p] }).collect();
        apply_both_sides(&mut product, &x, &tau);
        close(&product, &a, 100 * n, &what);
    }
}

/// Numbers that are equal where their bits are.
#[derive(Debug)]
struct Bits<T>(Vec<T>);

impl<T: Scalar> PartialEq for Bits<T> {
    fn eq(&self, other: &Self) -> bool {
        bytemuck::cast_slice::<T, u8>(&self.0) == bytemuck::cast_slice::<T, u8>(&other.0)
    }
}

/// The factors, `jpvt` and `tau` on any number of threads.
fn factor_pivoted<T: Scalar>(
    what: &str,
    m: usize,
    (a, fixed): (&[T], &[i32]),
) -> (Vec<T>, Vec<i32>, Vec<T>) {
    let (Bits(x), jpvt, Bits(tau)) = on_threads(what, |threads| {
        let (mut x, mut jpvt) = (a.to_vec(), fixed.to_vec());
        let mut tau = vec![T::ZERO; m.min(jpvt.len())];
        factor_pivoted_parallel(&mut x, m, &mut jpvt, &mut tau, threads, Arch::new());
        (Bits(x), jpvt, Bits(tau))
    });
    (x, jpvt, tau)
}

/// A random matrix; others, whose norms lose their digits together after some reflectors, at a distance of
/// some, and not at all because they are zero.
fn to_pivot<T: Scalar>(m: usize, n: usize) -> [(&'static str, Vec<T>); 5] {
    const RANK: usize = 40;
    let a = random::<T>(m * n);
    let factors = random::<T>((m + n) * RANK);
    let (left, right) = factors.split_at(m * RANK);
    let of_rank = |p: usize| {
        let terms = (0..RANK).map(|k| left[p % m + k * m] * right[k + p / m * RANK]);
        terms.fold(T::ZERO, |sum, x| sum + x)
    };
    let of_rank: Vec<T> = (0..m * n).map(of_rank).collect();
    let noise = T::Real::from_f64(T::Real::EPSILON.to_f64().cbrt());
    let noisy = of_rank.iter().zip(&a).map(|(&x, a)| x + a.scale(noise)).collect();
    let power = |p: usize| T::Real::from_f64(0.8_f64.powf((p % m) as f64));
    let graded = a.iter().enumerate().map(|(p, a)| a.scale(power(p))).collect();
    [
        ("random", a),
        ("of low rank", of_rank),
        ("nearly of low rank", noisy),
        ("graded", graded),
        ("zero", vec![T::ZERO; m * n]),
    ]
}

/// No panel for several threads, one, and some; no fixed columns, some, and those alone.
fn pivoted<T: Scalar>() {
    for (m, n) in [(5, 1), (90, 95), (96, 96), (130, 300), (300, 130), (230, 230)] {
        for (kind, a) in to_pivot::<T>(m, n) {
            for fixed in [[0, 0, 0], [-3, 0, 0], [1, 1, 1]] {
                let what = format!("{m}x{n}, {kind}, fixed {fixed:?}");
                let fixed: Vec<i32> = fixed.into_iter().cycle().take(n).collect();
                let (x, jpvt, tau) = factor_pivoted(&what, m, (&a, &fixed));
                are_pivoted_factors(&what, m, (&a, &fixed), (&x, &jpvt, &tau));
                if kind == "random" {
                    are_those_without_strips(&what, m, (&a, &fixed), (&x, &jpvt, &tau));
                }
            }
        }
    }
}

/// One thread without strips has the same permutation, and nearly the same factors.
fn are_those_without_strips<T: Scalar>(
    what: &str,
    m: usize,
    (a, fixed): (&[T], &[i32]),
    (x, jpvt, tau): (&[T], &[i32], &[T]),
) {
    let n = fixed.len();
    let (mut y, mut numbers, mut factors) = (a.to_vec(), fixed.to_vec(), tau.to_vec());
    let scratch = &mut qr::pivoted::blocked::Scratch::new(m, n);
    qr::pivoted::blocked::factor_pivoted(
        &mut y,
        m,
        &mut numbers,
        &mut factors,
        scratch,
        Arch::new(),
    );
    assert_eq!(jpvt, numbers, "{what}");
    close(x, &y, 100 * m.max(n), what);
    close(tau, &factors, 100 * m.max(n), what);
}

/// Fixed columns come first, A·P = Q·R, and no column that is left has a larger norm than the next one.
fn are_pivoted_factors<T: Scalar>(
    what: &str,
    m: usize,
    (a, fixed): (&[T], &[i32]),
    (x, jpvt, tau): (&[T], &[i32], &[T]),
) {
    let (n, k) = (fixed.len(), tau.len());
    let columns = jpvt.iter().map(|&number| usize::try_from(number - 1).unwrap());
    let first: Vec<usize> = (0..n).filter(|&j| fixed[j] != 0).collect();
    let mut sorted: Vec<usize> = columns.clone().collect();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..n), "{what}: {jpvt:?} is no permutation");
    assert!(columns.clone().take(first.len()).eq(first.iter().copied()), "{what}: {jpvt:?}");

    let permuted: Vec<T> = columns.flat_map(|j| &a[j * m..(j + 1) * m]).copied().collect();
    let mut product: Vec<T> =
        (0..m * n).map(|p| if p % m > p / m { T::ZERO } else { x[p] }).collect();
    let q = Reflectors { a: &x[..m * k], r: m, tau, factor: Factor::Q };
    let mut scratch = crate::blas::householder::BlockScratch::new(m, 32, n);
    let sums = &mut vec![T::ZERO; m];
    q::multiply(Side::Left, q, &mut product, m, &mut scratch, sums, Arch::new());
    close(&product, &permuted, m.max(n), what);

    // √ε is what downdated norms may be wrong by.
    let limit = 1.0 + 30.0 * T::Real::EPSILON.to_f64().sqrt();
    let at = |i: usize, j: usize| x[i + j * m].abs().to_f64();
    for j in first.len()..n {
        let mut norm: f64 = 0.0;
        for i in (first.len()..k.min(j + 1)).rev() {
            norm = norm.hypot(at(i, j));
            assert!(norm <= limit * at(i, i), "{what}: {norm:e} in column {j} from row {i} on");
        }
    }
}

/// A column that holds NaN comes before all others.
fn nan_column<T: Scalar>() {
    for (m, n) in [(130, 170), (200, 200)] {
        let mut a = random::<T>(m * n);
        a[(n - 1) * m + m / 2] = crate::simd::scalar::nan();
        let (_, jpvt, tau) = factor_pivoted(&format!("{m}x{n}"), m, (&a, &vec![0; n]));
        assert_eq!(usize::try_from(jpvt[0]), Ok(n));
        assert!(tau[0].is_nan());
    }
}
