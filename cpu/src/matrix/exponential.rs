//! How often a matrix is halved before exp of it is approximated, and by which approximant: by norms.
//!
//! The approximant of degree m, whose backward error is below the unit roundoff for ‖X‖ ≤ θ (Higham, SIAM J. Matrix
//! Anal. Appl. 26, 2005), or by the norms of powers of X, and of those of |X| (Al-Mohy and Higham, SIAM J. Matrix Anal.
//! Appl. 31, 2009).

use lapax_core::Real;

use crate::simd::exponential::doublings;

/// A diagonal Padé approximant, p(X)/p(−X).
pub(crate) struct Approximant {
    /// Of p and p(−X).
    pub(crate) degree: usize,
    /// The norm up to which it serves.
    theta: f64,
    /// The coefficients of p, b₀ = 1.
    pub(crate) coefficients: [f64; 14],
}

/// The approximants of f64, of rising degree: 9 would take as many products as 13, whose formula has it.
static DOUBLE: [Approximant; 4] = [
    Approximant::new(3, 1.495_585_217_958_292e-2),
    Approximant::new(5, 2.539_398_330_063_23e-1),
    Approximant::new(7, 9.504_178_996_162_932e-1),
    Approximant::new(13, 5.371_920_351_148_152),
];
const SINGLE_THETA: f64 = 3.925_724_783_138_66;
static SINGLE: [Approximant; 3] = [
    Approximant::new(3, 4.258_730_016_922_831e-1),
    Approximant::new(5, 1.880_152_677_804_762),
    Approximant::new(7, SINGLE_THETA),
];

impl Approximant {
    const fn new(degree: usize, theta: f64) -> Self {
        Self { degree, theta, coefficients: coefficients(degree as u64) }
    }
}

/// b_k/b₀ of b_k = (2m − k)!·m!/((2m)!·k!·(m − k)!), by whole multiples of b_m.
#[allow(clippy::cast_precision_loss, reason = "the multiples are rounded once")]
#[allow(clippy::cast_possible_truncation, reason = "k is at most m, which was a usize")]
const fn coefficients(m: u64) -> [f64; 14] {
    let mut multiples = [0; 14];
    let (mut multiple, mut k) = (1_u64, m);
    loop {
        multiples[k as usize] = multiple;
        if k == 0 {
            break;
        }
        multiple = multiple * (2 * m - k + 1) * k / (m - k + 1);
        k -= 1;
    }
    let (mut b, mut k) = ([0.0; 14], 0);
    while k < b.len() {
        b[k] = multiples[k] as f64 / multiples[0] as f64;
        k += 1;
    }
    b
}

/// What is decided for a matrix.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Which one of [`approximants`].
    pub(crate) approximant: usize,
    /// How often A is halved.
    pub(crate) halvings: i32,
}

/// The approximants for numbers of this precision.
pub(crate) fn approximants<R: Real>() -> &'static [Approximant] {
    if size_of::<R>() == size_of::<f64>() { &DOUBLE } else { &SINGLE }
}

impl Plan {
    /// By the norm of a finite matrix of order n, which may be infinite.
    pub(crate) fn by_norm<R: Real>(norm: R, n: usize) -> Self {
        let approximants = approximants::<R>();
        let last = approximants.len() - 1;
        if !norm.finite() {
            // A column's sum is below n·√2 times the largest number.
            let halvings = doublings(R::MAX.to_f64()) + order(n) + 1;
            return Self { approximant: last, halvings };
        }
        let norm = norm.to_f64();
        let fits = approximants.iter().position(|one| norm <= one.theta);
        let halvings = doublings(norm / approximants[last].theta);
        Self { approximant: fits.unwrap_or(last), halvings }
    }
}

/// The least k with n ≤ 2ᵏ.
fn order(n: usize) -> i32 {
    i32::try_from(n.next_power_of_two().trailing_zeros()).unwrap_or(i32::MAX)
}

/// Which halvings of X = 2⁻ˢ·A were too many: at most s by norms of powers of X, none of which need be known exactly.
#[derive(Clone, Copy)]
pub(crate) struct Undo {
    degree: f64,
    /// log₂ of |c|/u, c the first coefficient of the backward error.
    roundoff: f64,
    /// The bound of a norm by powers.
    theta: f64,
    /// log₂ ‖X‖.
    norm: f64,
}

impl Undo {
    /// For a matrix X with this norm.
    pub(crate) fn new<R: Real>(norm: R) -> Self {
        let norm = norm.to_f64().log2();
        // c = (m!)²/((2m)!·(2m + 1)!).
        if size_of::<R>() == size_of::<f64>() {
            Self { degree: 13.0, roundoff: -63.447_004_251_762_99, theta: 4.25, norm }
        } else {
            Self { degree: 7.0, roundoff: -27.994_974_307_382_165, theta: SINGLE_THETA, norm }
        }
    }

    /// By ‖|X|²ᵐ⁺¹‖ = 2ˡ.
    #[allow(clippy::cast_possible_truncation, reason = "saturated, for an infinite one")]
    pub(crate) fn by_magnitudes(&self, l: f64) -> i32 {
        (-(self.roundoff + l - self.norm) / (2.0 * self.degree)).floor() as i32
    }

    /// Its bound by the least sum of a column of |X|.
    pub(crate) fn at_most<R: Real>(&self, least: R) -> i32 {
        self.by_magnitudes(least.to_f64().log2() * f64::from(self.steps()))
    }

    /// 2m + 1.
    #[allow(clippy::cast_possible_truncation, reason = "a small whole number")]
    #[allow(clippy::cast_sign_loss, reason = "a small whole number")]
    pub(crate) fn steps(&self) -> u32 {
        (2.0 * self.degree) as u32 + 1
    }

    /// By the norms of X², X⁴ and X⁶.
    #[allow(clippy::cast_possible_truncation, reason = "saturated, for an infinite one")]
    pub(crate) fn by_powers<R: Real>(&self, norms: [R; 3]) -> i32 {
        let [n2, n4, n6] = norms.map(|norm| norm.to_f64().log2());
        let (d4, d6, d8) = (n4 / 4.0, n6 / 6.0, (2.0 * n4).min(n2 + n6) / 8.0);
        let other = if self.degree > 7.0 { d8.max((n4 + n6) / 10.0) } else { d4.max(d6) };
        (self.theta.log2() - d6.max(d8).min(other)).floor() as i32
    }
}
