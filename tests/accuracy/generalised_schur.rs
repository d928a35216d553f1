//! Generalised Schur forms: ‖Q·S·Zᴴ − A‖ / (n·‖A‖·ε) and that of B, ‖QᴴQ − I‖ / (n·ε), the form, and the eigenvalues
//! and vectors: ‖(β·A − α·B)·x‖ / (n·‖x‖·ε) where |α|·‖B‖ and β·‖A‖ are at most 1. The same before and after chosen
//! eigenvalues came first.

use lapax_core::Scalar;
use lapax_cpu::generalised_schur::{
    Pair, Which, generalised_eigenvectors, generalised_schur, reorder_generalised_schur,
};
use lapax_cpu::{Error, InOut, Serial, Spawned, Threads};

use crate::for_each_scalar;
use crate::kinds::{Kind, square};
use crate::matrix::{Matrix, departure, ratio, transposed};
use crate::ratios::LIMIT;
use crate::sample::{Random, Sample, bits};
use crate::sweep::{self, FEW};

/// The order up to which few pairs have the same bits as many: `FEW_IN_LANES` of the family.
const FEW_AS_MANY: usize = 16;

for_each_scalar!(
    residual,
    hard_cases,
    chosen_first,
    not_finite,
    same_bits_everywhere,
    neighbours,
    refusals,
);

/// S, T, Q and Z by rows, and the eigenvalues.
struct Form<T: Sample> {
    matrices: [Vec<T>; 4],
    alpha: Vec<T::Complex>,
    beta: Vec<T::Real>,
}

fn run<T: Sample>(
    (batch, n): (usize, usize),
    start: [Option<&[T]>; 4],
    call: impl Fn(Pair<'_, T>) -> Result<(), Error>,
) -> Form<T> {
    let one = |aliased: bool| {
        let mut matrices = start.map(|x| match x {
            Some(x) if aliased => x.to_vec(),
            _ => vec![T::nan(); batch * n * n],
        });
        let mut alpha = vec![<T::Complex as Scalar>::ZERO; batch * n];
        let mut beta = vec![<T::Real as Scalar>::ZERO; batch * n];
        let mut sources = start.into_iter().map(|src| if aliased { None } else { src });
        let [s, t, q, z] =
            matrices.each_mut().map(|dst| InOut { src: sources.next().flatten(), dst });
        call(Pair { s, t, q, z, alpha: &mut alpha, beta: &mut beta }).unwrap();
        Form { matrices, alpha, beta }
    };
    let (copied, aliased) = (one(false), one(true));
    for (x, y) in copied.matrices.iter().zip(&aliased.matrices) {
        assert!(bits(x) == bits(y), "copied and aliased");
    }
    copied
}

fn decomposed<T: Sample>(
    batch: usize,
    n: usize,
    a: &[T],
    b: &[T],
    threads: &dyn Threads,
) -> Form<T> {
    run((batch, n), [Some(a), Some(b), None, None], |pair| {
        generalised_schur(batch, n, pair, threads)
    })
}

fn reordered<T: Sample>(batch: usize, n: usize, chosen: &[i32], form: &Form<T>) -> Form<T> {
    let start = form.matrices.each_ref().map(|x| Some(&x[..]));
    run((batch, n), start, |pair| reorder_generalised_schur(batch, n, chosen, pair, &Serial))
}

/// Those of one pair of a batch of copies.
fn vectors<T: Sample>(which: Which, batch: usize, n: usize, form: &Form<T>) -> Vec<T::Complex> {
    let mut x = vec![<T::Complex as Scalar>::ZERO; batch * n * n];
    let [s, t, ..] = form.matrices.each_ref().map(|x| x.repeat(batch));
    generalised_eigenvectors(which, batch, n, (&s, &t), &mut x, &Serial).unwrap();
    let one = x.split_off((batch - 1) * n * n);
    assert!(x.chunks_exact(one.len().max(1)).all(|x| x == one || x[0].is_nan()), "copies differ");
    one
}

/// What a form must be, its residuals, and those of its values and vectors.
fn check<T: Sample>(n: usize, a: &[T], b: &[T], form: &Form<T>, exponent: i32, what: &str) {
    let wide = |x: &[T], exponent| Matrix::<T::Wide>::widened(n, &transposed(n, x), exponent);
    let [s, t, q, z] = &form.matrices;
    for i in 0..n {
        let at = |x: &[T], i: usize, j: usize| x[i * n + j];
        let diagonal = at(t, i, i);
        assert!(diagonal.re() >= Scalar::ZERO && diagonal.im() == Scalar::ZERO, "{what}: T");
        let pair = i > 0 && at(s, i, i - 1) != T::ZERO;
        assert!(!pair || !T::IS_COMPLEX && at(t, i - 1, i) == T::ZERO, "{what}: a block");
        assert!(!pair || i < 2 || at(s, i - 1, i - 2) == T::ZERO, "{what}: blocks overlap");
        assert!((0..i).all(|j| at(t, i, j) == T::ZERO), "{what}: T is triangular");
        assert!((0..i.saturating_sub(1)).all(|j| at(s, i, j) == T::ZERO), "{what}: S");
        assert!(!pair || form.alpha[i - 1].im() >= Scalar::ZERO, "{what}: of a pair");
    }
    let (q, z) = (wide(q, 0), wide(z, 0));
    for (x, form) in [(a, s), (b, t)] {
        let x = wide(x, exponent);
        let error = q.times(&wide(form, exponent)).times(&z.adjoint()).minus(&x).norm();
        let ratio = ratio::<T>(error, n, x.norm(), exponent);
        assert!(ratio < LIMIT, "{what}: {ratio}");
    }
    for unitary in [&q, &z] {
        let ratio = departure::<T>(unitary);
        assert!(ratio < LIMIT, "{what}: {ratio} from unitary");
    }
    for (which, batch) in
        [(Which::Right, 1), (Which::Left, 1), (Which::Right, FEW), (Which::Left, FEW)]
    {
        let ratio = worst_vector(which, &vectors(which, batch, n, form), n, form, exponent);
        assert!(ratio < LIMIT, "{what}: {which:?} vectors {ratio}, {batch} of them");
    }
}

/// The largest residual of a vector of S and T with the eigenvalue that was given.
fn worst_vector<T: Sample>(
    which: Which,
    x: &[T::Complex],
    n: usize,
    form: &Form<T>,
    exponent: i32,
) -> f64 {
    let parts = |x: T::Complex| (f64_of::<T>(x.re()), f64_of::<T>(x.im()));
    let element = |of: &[T], i: usize, j: usize| {
        let x = of[i * n + j].widen(exponent);
        num_complex::Complex::new(x.re(), x.im())
    };
    let [s, t, ..] = &form.matrices;
    let size = |of: &[T]| (0..n * n).map(|k| element(of, k / n, k % n).norm()).fold(0.0, f64::max);
    let scale = crate::sample::times_power(1.0, exponent);
    let mut worst = 0.0_f64;
    for k in 0..n {
        let alpha = parts(form.alpha[k]);
        let mut alpha = num_complex::Complex::new(alpha.0, alpha.1) * scale;
        let mut beta = f64_of::<T>(form.beta[k]) * scale;
        let largest = (alpha.norm() * size(t)).max(beta * size(s));
        if largest == 0.0 {
            continue;
        }
        (alpha, beta) = (alpha / largest, beta / largest);
        let vector: Vec<_> = (0..n)
            .map(|i| {
                let (re, im) = parts(x[i * n + k]);
                num_complex::Complex::new(re, im)
            })
            .collect();
        let length = vector.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        assert!(length >= 0.5, "a vector of length {length}");
        for i in 0..n {
            let sum: num_complex::Complex<f64> = (0..n)
                .map(|j| match which {
                    Which::Right => {
                        (element(s, i, j) * beta - element(t, i, j) * alpha) * vector[j]
                    }
                    Which::Left => {
                        vector[j].conj() * (element(s, j, i) * beta - element(t, j, i) * alpha)
                    }
                })
                .sum();
            worst = worst.max(sum.norm() / (length * n as f64 * T::epsilon()));
        }
    }
    worst
}

fn f64_of<T: Sample>(x: T::Real) -> f64 {
    lapax_cpu::Real::to_f64(x)
}

fn rows<T: Sample>(kind: Kind, n: usize, seed: u64) -> Vec<T> {
    transposed(n, &square::<T>(kind, n, seed).narrowed(kind.exponent::<T>()))
}

fn residual<T: Sample>() {
    for n in [1, 2, 3, 4, 5, 8, 17, 40] {
        for kind in sweep::kinds(n) {
            let (a, b) = (rows::<T>(kind, n, 3), rows::<T>(kind, n, 4));
            let form = decomposed(1, n, &a, &b, &Serial);
            // Digits of denormal numbers are few: values and vectors belong to the numbers that are left.
            check(n, &a, &b, &form, -kind.exponent::<T>(), &format!("{kind:?} {n}"));
        }
    }
}

/// Singular pairs and infinite eigenvalues in every place; cyclic and nilpotent ones, on which shifts stand still.
fn hard_cases<T: Sample>() {
    type Element<'a> = &'a dyn Fn(usize, usize) -> f64;
    for n in [2, 3, 4, 5, 9, 24] {
        let eye: Element<'_> = &|i, j| f64::from(u8::from(i == j));
        let shift: Element<'_> = &|i, j| f64::from(u8::from(j == i + 1));
        let cyclic: Element<'_> = &|i, j| f64::from(u8::from(i == (j + 1) % n));
        let back: Element<'_> = &|i, j| f64::from(u8::from(j == (i + 1) % n));
        let zero: Element<'_> = &|_, _| 0.0;
        let ones: Element<'_> = &|_, _| 1.0;
        let mixed: Element<'_> = &|i, j| ((3 * i + 5 * j + i * j) % 7) as f64 - 3.0;
        let ends: Element<'_> =
            &|i, j| if i > j || i == j && i % 3 == 0 { 0.0 } else { 1.0 + (i * j % 4) as f64 };
        let cases = [
            ("cyclic", cyclic, eye),
            ("cyclic both", cyclic, back),
            ("Jordan", shift, eye),
            ("Jordan at infinity", eye, shift),
            ("no eigenvalues", shift, shift),
            ("zero", zero, zero),
            ("infinite", mixed, zero),
            ("zeros", zero, mixed),
            ("rank one", ones, eye),
            ("both of rank one", ones, ones),
            ("zeros on the diagonal", mixed, ends),
            ("zeros on both", ends, ends),
        ];
        for (name, a, b) in cases {
            let build = |element: Element<'_>| -> Vec<T> {
                (0..n * n).map(|k| T::from_f64(element(k / n, k % n))).collect()
            };
            let (a, b) = (build(a), build(b));
            let form = decomposed(1, n, &a, &b, &Serial);
            check(n, &a, &b, &form, 0, &format!("{name} {n}"));
            let every_other: Vec<i32> = (0..2).cycle().take(n).collect();
            let after = reordered(1, n, &every_other, &form);
            check(n, &a, &b, &after, 0, &format!("{name} {n}, reordered"));
        }
    }
}

/// Eigenvalues of either kind keep their order, each within what its condition allows.
fn chosen_first<T: Sample>() {
    let mut random = Random(7);
    for n in [1, 2, 3, 4, 5, 6, 9, 20] {
        for seed in 0..6 {
            let (a, b) = (rows::<T>(Kind::Random, n, seed), rows::<T>(Kind::Random, n, seed + 50));
            let form = decomposed(1, n, &a, &b, &Serial);
            let mut chosen: Vec<i32> = (0..n).map(|_| i32::from(random.below(2) == 1)).collect();
            let after = reordered(1, n, &chosen, &form);
            check(n, &a, &b, &after, 0, &format!("reordered {n} {chosen:?}"));
            for k in 1..n {
                if form.matrices[0][k * n + k - 1] != T::ZERO {
                    let both = chosen[k - 1] | chosen[k];
                    (chosen[k - 1], chosen[k]) = (both, both);
                }
            }
            let order = [1, 0]
                .into_iter()
                .flat_map(|kind| (0..n).filter(|&k| chosen[k] == kind).collect::<Vec<_>>());
            // On the sphere of numbers: α/β as a direction of length one.
            let direction = |of: &Form<T>, k: usize| {
                let (re, im) = (f64_of::<T>(of.alpha[k].re()), f64_of::<T>(of.alpha[k].im()));
                let beta = f64_of::<T>(of.beta[k]);
                let size = re.hypot(im).hypot(beta);
                [re / size, im / size, beta / size]
            };
            for (to, from) in order.enumerate() {
                let (x, y) = (direction(&after, to), direction(&form, from));
                let apart = x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
                assert!(apart < 1e6 * T::epsilon(), "{n}: {from} at {to}: {x:?} is not {y:?}");
            }
        }
    }
}

fn not_finite<T: Sample>() {
    for n in [1, 2, 3, 12] {
        let (a, b) = (rows::<T>(Kind::Random, n, 1), rows::<T>(Kind::Random, n, 2));
        let alone = decomposed(1, n, &a, &b, &Serial);
        for (bad, in_b) in [(f64::NAN, false), (f64::INFINITY, false), (f64::NAN, true)] {
            let (mut a, mut b) = (a.repeat(3), b.repeat(3));
            let of = if in_b { &mut b } else { &mut a };
            of[n * n + n / 2] = T::from_f64(bad);
            let form = decomposed(3, n, &a, &b, &Serial);
            let moved = reordered(3, n, &vec![1; 3 * n], &form);
            for (x, own) in
                form.matrices.iter().chain(&moved.matrices).zip(alone.matrices.iter().cycle())
            {
                assert!(x[n * n..2 * n * n].iter().all(|x| x.is_nan()));
                assert!(bits(&x[..n * n]) == bits(own) && bits(&x[2 * n * n..]) == bits(own));
            }
            assert!(form.alpha[n..2 * n].iter().all(|x| x.is_nan()));
            assert!(form.beta[n..2 * n].iter().all(|x| x.is_nan()));
        }
    }
}

fn same_bits_everywhere<T: Sample>() {
    for (n, batch) in [(2, 40_u64), (5, 20), (30, 5)] {
        let all = |seed| -> Vec<T> {
            (0..batch).flat_map(|k| rows::<T>(Kind::Random, n, seed + k)).collect()
        };
        let (a, b, count) = (all(1), all(500), usize::try_from(batch).unwrap());
        let serial = decomposed(count, n, &a, &b, &Serial);
        let spread = decomposed(count, n, &a, &b, &Spawned(3));
        for (x, y) in serial.matrices.iter().zip(&spread.matrices) {
            assert!(bits(x) == bits(y));
        }
        let own = 3 % count * n * n..(3 % count + 1) * n * n;
        // Of a large pair few go another way.
        let few = if n <= FEW_AS_MANY { 1 } else { FEW };
        let (own_a, own_b) = (a[own.clone()].repeat(few), b[own.clone()].repeat(few));
        let alone = decomposed(few, n, &own_a, &own_b, &Serial);
        for (x, y) in serial.matrices.iter().zip(&alone.matrices) {
            assert!(bits(&x[own.clone()]) == bits(&y[..n * n]));
        }
    }
}

/// Pairs of all kinds in one batch: each has a form, of the same bits as among copies of its own, and alone if it is small.
fn neighbours<T: Sample>() {
    for n in [2, 3, 4, 7, 16, 17, 32] {
        let mut kinds: Vec<Kind> = sweep::kinds(n);
        kinds.retain(|kind| kind.exponent::<T>() == 0);
        // All orders of neighbours turn up: a register has up to eight of them.
        let pairs: Vec<_> = (0..)
            .zip(kinds.iter().chain(kinds.iter().step_by(3)))
            .map(|(seed, &kind)| {
                let other = if seed % 2 == 0 { Kind::Random } else { kind };
                (kind, rows::<T>(kind, n, seed), rows::<T>(other, n, seed + 100))
            })
            .collect();
        let mut a: Vec<T> = pairs.iter().flat_map(|(_, a, _)| a.clone()).collect();
        let b: Vec<T> = pairs.iter().flat_map(|(_, _, b)| b.clone()).collect();
        let size = n * n;
        a[5 * size + 1] = T::nan();
        let form = decomposed(pairs.len(), n, &a, &b, &Serial);
        for (k, (kind, own_a, own_b)) in pairs.iter().enumerate() {
            let own = k * size..(k + 1) * size;
            let mine = form.matrices.each_ref().map(|x| x[own.clone()].to_vec());
            if k == 5 {
                assert!(mine.iter().flatten().all(|x| x.is_nan()), "{n}");
                continue;
            }
            for batch in if n <= FEW_AS_MANY { vec![1, FEW + 1] } else { vec![FEW + 1] } {
                let (a, b) = (own_a.repeat(batch), own_b.repeat(batch));
                let same = decomposed(batch, n, &a, &b, &Serial);
                for (x, y) in mine.iter().zip(&same.matrices) {
                    assert!(bits(&x.repeat(batch)) == bits(y), "{kind:?} {n}, {batch} of them");
                }
            }
            let values = k * n..(k + 1) * n;
            let (alpha, beta) = (form.alpha[values.clone()].to_vec(), form.beta[values].to_vec());
            let mine = Form { matrices: mine, alpha, beta };
            check(n, own_a, own_b, &mine, 0, &format!("{kind:?} {n}, among others"));
        }
    }
}

fn refusals<T: Sample>() {
    let mut matrices = [vec![T::ZERO; 4], vec![T::ZERO; 4], vec![T::ZERO; 4], vec![T::ZERO; 3]];
    let (mut alpha, mut beta) = ([<T::Complex as Scalar>::ZERO; 2], [<T::Real as Scalar>::ZERO; 2]);
    let [s, t, q, z] = matrices.each_mut().map(|dst| InOut { src: None, dst });
    let pair = Pair { s, t, q, z, alpha: &mut alpha, beta: &mut beta };
    let error = generalised_schur(1, 2, pair, &Serial).unwrap_err().to_string();
    assert!(error.contains('z'), "{error}");
    let empty = decomposed::<T>(3, 0, &[], &[], &Serial);
    assert!(empty.alpha.is_empty() && vectors(Which::Left, 1, 0, &empty).is_empty());
}
