//! Singular value decompositions: what multiplies to A, and the values of lapax-cpu. Matrices that do not
//! fit into a block are the fake cuSOLVER's.

use lapax_core::{InOut, Real as _, Scalar as _, Serial, SingularVectors, Vectors};
use lapax_cuda::svd::{self, Job, Sizes};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, output, succeeds};
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
