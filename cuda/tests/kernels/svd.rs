//! Singular value decompositions: what multiplies to A, and the values of lapax-cpu. Matrices that do not
//! fit into a block are the fake cuSOLVER's.

use lapax_core::{InOut, Real as _, Scalar as _, Serial, SingularVectors, Vectors};
use lapax_cuda::svd::{self, Job, Sizes};
use lapax_cuda::{Kind, jacobi};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, output, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random, distance};

/// Groups of 8 and of 32 lanes, one and several pairs to a group, odd and even numbers of columns, more
/// matrices than blocks, more vectors than a block makes, matrices beyond a block's shared memory.
const SIZES: [(usize, usize, usize); 13] = [
    (1, 1, 3),
    (2, 2, 9),
    (1, 5, 2),
    (7, 4, 9),
    (4, 7, 9),
    (9, 9, 9),
    (16, 3, 2),
    (17, 12, 9),
    (12, 17, 3),
    (40, 33, 2),
    (3, 2, 140),
    (260, 1, 2),
    (250, 240, 2),
];

/// Which function, and what it is asked for.
#[derive(Clone, Copy, Debug)]
enum Call {
    Rotations(Job),
    Polar(Job),
    Steps(SingularVectors),
}

struct Answer<T: Number> {
    s: Vec<T::Real>,
    u: Vec<T>,
    v: Vec<T>,
    info: Vec<i32>,
}

/// Decomposes, and returns V also where the function answers with its adjoint.
fn decompose<T: Number>(call: Call, sizes: Sizes, a: &[T]) -> Answer<T> {
    let Sizes { batch, m, n } = sizes;
    let k = m.min(n);
    let thin = match call {
        Call::Rotations(job) | Call::Polar(job) => job.thin,
        Call::Steps(vectors) => vectors != SingularVectors::All,
    };
    let (u_columns, v_columns) = if thin { (k, k) } else { (m, n) };
    let poison = T::from_real(T::Real::from_f64(-77.0));
    let (mut scratch, mut s) = (vec![poison; a.len()], vec![T::Real::from_f64(-77.0); batch * k]);
    let (mut u, mut v) = (vec![poison; batch * m * u_columns], vec![poison; batch * n * v_columns]);
    let mut info = vec![77; batch];
    let (s_out, u_out) = (output(&mut s), output(&mut u));
    let results = svd::Svd { s: s_out, u: u_out, v: output(&mut v), info: output(&mut info) };
    let operand = in_out(Some(a), &mut scratch);
    succeeds(match call {
        Call::Rotations(job) => svd::gesvdj(&gpu(), job, sizes, operand, results),
        Call::Polar(job) => svd::gesvdp(&gpu(), job, sizes, operand, results),
        Call::Steps(vectors) => svd::gesvd(&gpu(), vectors, sizes, operand, results),
    });
    if matches!(call, Call::Steps(_)) {
        let turned = v.chunks_exact(n * n).flat_map(|v| adjoint(n, n, v)).collect();
        v = turned;
    }
    Answer { s, u, v, info }
}

/// Aᴴ of an m × n matrix.
fn adjoint<T: Number>(m: usize, n: usize, a: &[T]) -> Vec<T> {
    (0..m * n).map(|at| a[at / n + at % n * m].conj()).collect()
}

/// A·B, A with m rows and B with k.
fn product<T: Number>(m: usize, k: usize, a: &[T], b: &[T]) -> Vec<T> {
    let mut c = Vec::new();
    for column in b.chunks_exact(k) {
        for i in 0..m {
            let sum = |sum, (j, &x): (usize, &T)| sum + a[i + j * m] * x;
            c.push(column.iter().enumerate().fold(T::ZERO, sum));
        }
    }
    c
}

/// ‖QᴴQ − I‖ in units of the roundoff.
fn loss<T: Number>(m: usize, q: &[T]) -> f64 {
    let columns = q.len() / m;
    let gram = product(columns, m, &adjoint(m, columns, q), q);
    let unit = |at: usize| if at % columns == at / columns { T::ONE } else { T::ZERO };
    distance(&gram, &(0..columns * columns).map(unit).collect::<Vec<_>>())
}

/// Of a batch: what is not finite, of deficient rank, zero, near the ends of the range, graded.
fn operands<T: Number>(random: &mut Random, Sizes { batch, m, n }: Sizes) -> Vec<T> {
    let mut a: Vec<T> = random.scalars(batch * m * n);
    let number = |x: f64| T::from_real(T::Real::from_f64(x));
    let (least, most) = (T::Real::SAFE_MIN.to_f64(), T::Real::MAX.to_f64());
    for (index, a) in a.chunks_exact_mut(m * n).enumerate() {
        match index {
            1 => a[m * n - 1] = T::from_parts(T::Real::ZERO, T::Real::from_f64(f64::NAN)),
            2 => {
                let first = a[..m].to_vec();
                a[m * n - m..].copy_from_slice(&first);
                if n > 2 {
                    a[m..2 * m].fill(T::ZERO);
                }
            }
            3 => a.fill(T::ZERO),
            4 => a.iter_mut().for_each(|x| *x *= number(least * 1e3)),
            5 => a.iter_mut().for_each(|x| *x *= number(most / 1e3)),
            6 => a.iter_mut().enumerate().for_each(|(at, x)| {
                *x *= number(10_f64.powi(-5 * i32::try_from(at / m).unwrap()).max(least));
            }),
            7 => a[0] = number(f64::INFINITY),
            _ => {}
        }
    }
    // The imaginary part of a real number is no place for a NaN.
    if batch > 1 && !T::IS_COMPLEX {
        a[2 * m * n - 1] = number(f64::NAN);
    }
    a
}

fn check<T: Number<Real: lapax_cpu::Scalar>>(random: &mut Random, call: Call, sizes: Sizes) {
    let Sizes { batch, m, n } = sizes;
    let k = m.min(n);
    let a = operands::<T>(random, sizes);
    let (mut expected, mut infos) = (vec![T::Real::ZERO; batch * k], vec![0; batch]);
    let (mut copy, mut u, mut vt): (_, [T; 0], [T; 0]) = (a.clone(), [], []);
    let operand = InOut { src: None, dst: &mut copy[..] };
    let results =
        lapax_cpu::svd::Svd { s: &mut expected, u: &mut u, vt: &mut vt, info: &mut infos };
    lapax_cpu::svd::gesdd(SingularVectors::None, batch, m, n, operand, results, &Serial).unwrap();
    let found = decompose(call, sizes, &a);
    let (vectors, not_finite) = match call {
        Call::Rotations(job) | Call::Polar(job) => (job.vectors == Vectors::Wanted, -4),
        Call::Steps(vectors) => (vectors != SingularVectors::None, -5),
    };
    // 30 n ε, of which distance() knows no n.
    let bound = 30.0 * f64::from(u32::try_from(m.max(n)).unwrap());
    let own = m.max(n) < 100;
    for b in 0..batch {
        let at = format!("{call:?} {m} × {n}, {b} of {batch}");
        let [a, u, v] =
            [&a, &found.u, &found.v].map(|x| &x[b * x.len() / batch..][..x.len() / batch]);
        let [s, values] = [&found.s, &expected].map(|s| &s[b * k..][..k]);
        if infos[b] != 0 {
            assert!(!own || found.info[b] == not_finite, "{at}: info {}", found.info[b]);
            assert!(s.iter().all(|s| s.is_nan()), "{at}");
            assert!(!vectors || u.iter().chain(v).all(|x| x.is_nan()), "{at}");
            continue;
        }
        assert_eq!(found.info[b], 0, "{at}");
        let ratio = distance(&reals::<T>(s), &reals::<T>(values));
        assert!(ratio < bound, "{at}: values {ratio}");
        assert!(s.is_sorted_by(|x, y| x >= y) && s[k - 1] >= T::Real::ZERO, "{at}");
        if !vectors {
            assert!(u.iter().chain(v).all(|&x| x == T::ZERO), "{at}");
            continue;
        }
        let (lost, gone) = (loss(m, u), loss(n, v));
        assert!(lost < bound && gone < bound, "{at}: U {lost}, V {gone}");
        let scaled: Vec<T> = (0..m * k).map(|at| u[at] * T::from_real(s[at / m])).collect();
        let ratio = distance(&product(m, k, &scaled, &adjoint(n, k, &v[..n * k])), a);
        assert!(ratio < bound, "{at}: {ratio}");
    }
}

fn reals<T: Number>(s: &[T::Real]) -> Vec<T> {
    s.iter().map(|&s| T::from_real(s)).collect()
}

fn check_all<T: Number<Real: lapax_cpu::Scalar>>() {
    let Some(_device) = device() else { return };
    let mut random = Random(11);
    let jobs = [(Vectors::None, true), (Vectors::Wanted, true), (Vectors::Wanted, false)]
        .map(|(vectors, thin)| Job { vectors, thin });
    for seed in SEEDS {
        driver::state().seed = seed;
        // One order of the threads for what takes long on the emulator.
        for (m, n, batch) in SIZES.into_iter().filter(|it| seed == 0 || it.0.max(it.1) < 10) {
            let sizes = Sizes { batch, m, n };
            for job in jobs {
                check::<T>(&mut random, Call::Rotations(job), sizes);
            }
            check::<T>(&mut random, Call::Polar(jobs[2]), sizes);
            if m >= n {
                for mode in [SingularVectors::None, SingularVectors::Thin, SingularVectors::All] {
                    check::<T>(&mut random, Call::Steps(mode), sizes);
                }
            }
        }
    }
}

#[test]
fn multiplies_to_a_f32() {
    check_all::<f32>();
}

#[test]
fn multiplies_to_a_f64() {
    check_all::<f64>();
}

#[test]
fn multiplies_to_a_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn multiplies_to_a_c128() {
    check_all::<Complex<f64>>();
}

/// By rows: full and thin factors, and values alone; of the same batches as above.
fn check_rows<T: Number<Real: lapax_cpu::Scalar>>(
    random: &mut Random,
    (m, n, batch): (usize, usize, usize),
    full: bool,
) {
    let k = m.min(n);
    let (u_columns, vt_rows) = if full { (m, n) } else { (k, k) };
    let a = operands::<T>(random, Sizes { batch, m: n, n: m });
    let (mut s, mut alone) = (vec![T::Real::ONE; batch * k], vec![T::Real::ONE; batch * k]);
    let (mut u, mut vt) = (vec![T::ONE; batch * m * u_columns], vec![T::ONE; batch * vt_rows * n]);
    let (mut cpu_s, mut cpu_u, mut cpu_vt) = (s.clone(), u.clone(), vt.clone());
    let job = if full { SingularVectors::All } else { SingularVectors::Thin };
    lapax_cpu::svd::svd(job, batch, m, n, &a, &mut cpu_s, &mut cpu_u, &mut cpu_vt, &Serial)
        .unwrap();
    let vectors = Some((output(&mut u), output(&mut vt)));
    succeeds(jacobi::svd(&gpu(), batch, (m, n), full, input(&a), output(&mut s), vectors));
    let values = output(&mut alone);
    succeeds(jacobi::svd(&gpu(), batch, (m, n), false, input(&a), values, None));
    let size = f64::from(u32::try_from(m.max(n)).unwrap());
    for at in 0..batch {
        let label = format!("{m} × {n}, full: {full}, {at} of {batch}");
        let (u, vt) = (Matrix::of(&u, at, m, u_columns), Matrix::of(&vt, at, vt_rows, n));
        let [s, alone, expected] = [&s, &alone, &cpu_s].map(|s| &s[at * k..][..k]);
        if expected[0].is_nan() {
            let all = u.data.iter().chain(&vt.data).all(|x| x.is_nan());
            assert!(all && s.iter().chain(alone).all(|s| s.is_nan()), "{label}");
            continue;
        }
        for (name, found) in [("values", s), ("values alone", alone)] {
            let found = distance(&reals::<T>(found), &reals::<T>(expected));
            assert!(found < 30.0 * size, "{label}: {name} {found}");
        }
        let a = Matrix::of(&a, at, m, n);
        let us = Matrix::from(m, k, |i, j| u[(i, j)] * T::from_real(s[j]));
        let thin = Matrix::from(k, n, |i, j| vt[(i, j)]);
        let found = ratio(&us.times(&thin), &a, a.size().max(f64::MIN_POSITIVE) * size);
        assert!(found < 30.0, "{label}: {found}");
        for (name, q) in [("U", &u), ("V", &vt.adjoint())] {
            let one = Matrix::from(q.columns, q.columns, |i, j| {
                T::from_real(if i == j { T::Real::ONE } else { T::Real::ZERO })
            });
            let found = ratio(&q.adjoint().times(q), &one, size);
            assert!(found < 30.0, "{label}: {name} {found}");
        }
        for j in 0..u_columns {
            assert_leads(&format!("{label}, column {j} of U"), (0..m).map(|i| u[(i, j)]), m);
        }
        for j in k..vt_rows {
            assert_leads(&format!("{label}, row {j} of Vᴴ"), (0..n).map(|i| vt[(j, i)].conj()), n);
        }
    }
}

/// The rule of phases; what is within rounding of its bound may count or not.
fn assert_leads<T: Number>(label: &str, x: impl Iterator<Item = T>, n: usize) {
    let bound = 0.4869 / f64::from(u32::try_from(n).unwrap()).sqrt();
    let leads = |x: T| x.im().to_f64() == 0.0 && x.re().to_f64() > 0.0;
    for x in x {
        let size = x.abs().to_f64();
        if size >= bound * 0.9999 && leads(x) {
            return;
        }
        assert!(size < bound * 1.0001, "{label}: {x:?} of {size}");
    }
    panic!("{label}: no component is {bound}");
}

fn check_all_rows<T: Number<Real: lapax_cpu::Scalar>>() {
    let Some(_device) = device() else { return };
    let mut random = Random(12);
    let blocks = SIZES.into_iter().filter(|&(m, n, _)| m.max(n) < 250);
    for (sizes, seed) in blocks.zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check_rows::<T>(&mut random, sizes, false);
        check_rows::<T>(&mut random, sizes, true);
    }
}

#[test]
fn by_rows_f32() {
    check_all_rows::<f32>();
}

#[test]
fn by_rows_f64() {
    check_all_rows::<f64>();
}

#[test]
fn by_rows_c64() {
    check_all_rows::<Complex<f32>>();
}

#[test]
fn by_rows_c128() {
    check_all_rows::<Complex<f64>>();
}

/// Vectors follow each other as the CPU's, where they are unique.
#[test]
fn by_rows_phases_are_the_cpus() {
    let Some(_device) = device() else { return };
    let (m, n, batch) = (7, 4, 5);
    let mut random = Random(13);
    for (m, n) in [(m, n), (n, m), (n, n)] {
        let a: Vec<Complex<f64>> = random.scalars(batch * m * n);
        let k = m.min(n);
        let (mut s, mut u, mut vt) =
            (vec![0.0; batch * k], vec![nan(); batch * m * k], vec![nan(); batch * k * n]);
        let (mut cpu_s, mut cpu_u, mut cpu_vt) = (s.clone(), u.clone(), vt.clone());
        let vectors = Some((output(&mut u), output(&mut vt)));
        succeeds(jacobi::svd(&gpu(), batch, (m, n), false, input(&a), output(&mut s), vectors));
        let job = SingularVectors::Thin;
        lapax_cpu::svd::svd(job, batch, m, n, &a, &mut cpu_s, &mut cpu_u, &mut cpu_vt, &Serial)
            .unwrap();
        assert!(distance(&u, &cpu_u) < 1e4 && distance(&vt, &cpu_vt) < 1e4, "{m} × {n}");
    }
}

#[test]
fn by_rows_empty_ones_have_identities() {
    let Some(_device) = device() else { return };
    let mut u = [7.0; 9];
    let vectors = Some((output(&mut u), output(&mut [])));
    succeeds(jacobi::svd::<f64>(&gpu(), 1, (3, 0), true, input(&[]), output(&mut []), vectors));
    assert_eq!(u, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let vectors = Some((output(&mut []), output(&mut [])));
    succeeds(jacobi::svd::<f64>(&gpu(), 2, (0, 3), false, input(&[]), output(&mut []), vectors));
}

#[test]
fn by_rows_what_no_block_can_hold_is_refused() {
    let Some(_device) = device() else { return };
    let (a, mut s) = (vec![0.0_f64; 250 * 240], vec![0.0; 240]);
    let values = output(&mut s);
    let error = jacobi::svd(&gpu(), 1, (250, 240), false, input(&a), values, None).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    assert!(error.message().contains("got 250 × 240, which takes"), "{error}");
}
