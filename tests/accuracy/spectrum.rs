//! Matrices with prescribed singular values or eigenvalues between random unitary factors, as
//! LAPACK's own testers make them (xLATMS, xLATME).

use lapax_core::Scalar;

use crate::matrix::Matrix;
use crate::sample::{Random, Sample};

/// How the values fall from 1 to 1/cond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fall {
    Geometric,
    Arithmetic,
    /// All are 1 but the last.
    ClusteredAtOne,
    /// All are 1/cond but the first.
    ClusteredAtLeast,
}

/// The quotient of the largest and the smallest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    One,
    Hundred,
    /// 1/√ε.
    RootOfPrecision,
    /// 0.1/ε.
    Precision,
}

/// The values of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spectrum(pub(crate) Condition, pub(crate) Fall);

/// Every spectrum; those of condition 1 are all the same.
pub(crate) const SPECTRA: [Spectrum; 13] = {
    use Condition::{Hundred, One, Precision, RootOfPrecision};
    use Fall::{Arithmetic, ClusteredAtLeast, ClusteredAtOne, Geometric};
    [
        Spectrum(One, Geometric),
        Spectrum(Hundred, Geometric),
        Spectrum(Hundred, Arithmetic),
        Spectrum(Hundred, ClusteredAtOne),
        Spectrum(Hundred, ClusteredAtLeast),
        Spectrum(RootOfPrecision, Geometric),
        Spectrum(RootOfPrecision, Arithmetic),
        Spectrum(RootOfPrecision, ClusteredAtOne),
        Spectrum(RootOfPrecision, ClusteredAtLeast),
        Spectrum(Precision, Geometric),
        Spectrum(Precision, Arithmetic),
        Spectrum(Precision, ClusteredAtOne),
        Spectrum(Precision, ClusteredAtLeast),
    ]
};

/// The signs of eigenvalues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signs {
    Positive,
    Both,
}

impl Spectrum {
    /// So many values, falling.
    fn values<T: Sample>(self, count: usize) -> Vec<f64> {
        let Self(condition, fall) = self;
        let epsilon = <T as Sample>::epsilon();
        let condition = match condition {
            Condition::One => 1.0,
            Condition::Hundred => 100.0,
            Condition::RootOfPrecision => epsilon.sqrt().recip(),
            Condition::Precision => 0.1 / epsilon,
        };
        let last = count.saturating_sub(1).max(1);
        let value = |i: usize| {
            let part = i as f64 / last as f64;
            match fall {
                Fall::Geometric => condition.powf(-part),
                Fall::Arithmetic => 1.0 - part * (1.0 - 1.0 / condition),
                Fall::ClusteredAtOne if i < last => 1.0,
                Fall::ClusteredAtLeast if i == 0 => 1.0,
                Fall::ClusteredAtOne | Fall::ClusteredAtLeast => 1.0 / condition,
            }
        };
        (0..count).map(value).collect()
    }
}

/// U·diag(s)·Vᴴ, m × n.
pub(crate) fn general<T: Sample>(
    spectrum: Spectrum,
    m: usize,
    n: usize,
    random: &mut Random,
) -> Matrix<T::Wide> {
    let k = m.min(n);
    let s = spectrum.values::<T>(k);
    let real = <T::Wide as Scalar>::from_real;
    let mut a = Matrix::new(m, n, |i, j| real(if i == j { s[i] } else { 0.0 }));
    for first in (0..k).rev() {
        reflect_rows(&mut a, first, random);
        a = a.adjoint();
        reflect_rows(&mut a, first, random);
        a = a.adjoint();
    }
    a
}

/// Q·diag(w)·Qᴴ, of order n.
pub(crate) fn hermitian<T: Sample>(
    spectrum: Spectrum,
    n: usize,
    signs: Signs,
    random: &mut Random,
) -> Matrix<T::Wide> {
    let sign = |random: &mut Random| if signs == Signs::Both { random.real() } else { 1.0 };
    let mut w = spectrum.values::<T>(n);
    w.iter_mut().for_each(|w| *w = w.copysign(sign(random)));
    let diagonal = |i: usize, j: usize| if i == j { w[i] } else { 0.0 };
    let real = <T::Wide as Scalar>::from_real;
    let a = similar(Matrix::new(n, n, |i, j| real(diagonal(i, j))), random);
    let element = |i, j| (a.at(i, j) + a.at(j, i).conj()).scale(0.5);
    Matrix::new(n, n, element)
}

/// Q·T·Qᴴ of order n, whose T is random above its diagonal blocks. The eigenvalues have prescribed
/// moduli; those of a real matrix are real or come in pairs, by turns.
pub(crate) fn not_normal<T: Sample>(
    spectrum: Spectrum,
    n: usize,
    random: &mut Random,
) -> Matrix<T::Wide> {
    let real = <T::Wide as Scalar>::from_real;
    let w = spectrum.values::<T>(n);
    let mut t = Matrix::new(n, n, |i, j| if i < j { random.scalar() } else { real(0.0) });
    for (i, &w) in w.iter().enumerate() {
        let phase = std::f64::consts::PI * random.real();
        let (sine, cosine) = phase.sin_cos();
        let at = |i: usize, j: usize| i + j * n;
        if T::IS_COMPLEX {
            t.data[at(i, i)] = Scalar::from_parts(w * cosine, w * sine);
        } else if i % 4 == 3 {
            // Rows i − 1 and i rotate: both eigenvalues have this modulus.
            t.data[at(i - 1, i - 1)] = real(w * cosine);
            t.data[at(i, i)] = real(w * cosine);
            t.data[at(i - 1, i)] = real(w * sine);
            t.data[at(i, i - 1)] = real(-w * sine);
        } else {
            t.data[at(i, i)] = real(w.copysign(sine));
        }
    }
    similar(t, random)
}

/// Q·A·Qᴴ for a random unitary Q.
fn similar<W: Scalar<Real = f64>>(mut a: Matrix<W>, random: &mut Random) -> Matrix<W> {
    for first in (0..a.rows).rev() {
        let seed = random.bits();
        // The same reflector from both sides.
        reflect_rows(&mut a, first, &mut Random(seed));
        a = a.adjoint();
        reflect_rows(&mut a, first, &mut Random(seed));
        a = a.adjoint();
    }
    a
}

/// A ← (I − 2·v·vᴴ/vᴴv)·A for a random v that is zero above row `first`.
fn reflect_rows<W: Scalar<Real = f64>>(a: &mut Matrix<W>, first: usize, random: &mut Random) {
    let v: Vec<W> = (first..a.rows).map(|_| random.scalar()).collect();
    let size: f64 = v.iter().map(|v| v.abs() * v.abs()).sum();
    if size == 0.0 {
        return;
    }
    for column in a.data.chunks_exact_mut(a.rows) {
        let x = &mut column[first..];
        let dot = v.iter().zip(&*x).fold(W::ZERO, |dot, (v, &x)| dot + v.conj() * x);
        let factor = dot.scale(2.0 / size);
        x.iter_mut().zip(&v).for_each(|(x, &v)| *x -= factor * v);
    }
}

#[test]
fn values_and_factors_are_as_prescribed() {
    for spectrum in SPECTRA {
        let values = spectrum.values::<f64>(7);
        let squares: f64 = values.iter().map(|s| s * s).sum();
        let frobenius = |a: &Matrix<f64>| a.data.iter().map(|x| x * x).sum::<f64>();
        let a = general::<f64>(spectrum, 9, 7, &mut Random(1));
        approx::assert_relative_eq!(frobenius(&a), squares, max_relative = 1e-13);
        let a = hermitian::<f64>(spectrum, 7, Signs::Both, &mut Random(1));
        approx::assert_relative_eq!(frobenius(&a), squares, max_relative = 1e-13);
        let condition = values[0] / values[6];
        assert!((condition - 1.0).abs() < 1e-15 || condition > 99.0, "{spectrum:?}: {values:?}");
    }
}
