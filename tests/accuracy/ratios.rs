//! The ratios of a family, from each backend on the same matrices, side by side.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::backend::{Backend, Provider};
use crate::kinds::{KINDS, Kind};
use crate::sample::Sample;
use crate::sweep;

/// LAPACK's own tests accept a ratio below 30.
pub(crate) const LIMIT: f64 = 30.0;
/// Our median ratio is at most so many times the reference's,
const FACTOR: f64 = 3.0;
/// or is below this: a tenth of one rounding error per row, where a quotient of medians says
/// nothing any more.
const TINY: f64 = 0.1;

/// Compares the backends on one family: `sweep` runs its cases, and hands in their ratios.
pub(crate) fn compare<T: Sample>(family: &'static str, sweep: impl FnOnce(&mut Ratios)) {
    let mut ratios = Ratios { family, scalar: T::NAME, checks: Vec::new(), kinds: BTreeSet::new() };
    sweep(&mut ratios);
    ratios.report();
}

/// What the cases of a family gave so far.
pub(crate) struct Ratios {
    family: &'static str,
    scalar: &'static str,
    checks: Vec<Check>,
    kinds: BTreeSet<Kind>,
}

/// One check of one backend.
struct Check {
    backend: Backend,
    formula: &'static str,
    ratios: Vec<f64>,
    /// The largest ratio, and its case.
    worst: (f64, String),
}

impl Ratios {
    /// Takes the ratio of one case. lapax's own must be below the limit; another's is only told.
    pub(crate) fn add(
        &mut self,
        backend: Backend,
        formula: &'static str,
        ratio: f64,
        case: impl Fn() -> String,
    ) {
        let text = || format!("{} {} {formula} of {}", self.family, self.scalar, case());
        assert!(
            ratio < LIMIT || backend != Backend::Native,
            "ratio {ratio} is not below {LIMIT}: {}",
            text()
        );
        let same = |check: &&Check| check.backend == backend && check.formula == formula;
        let check = match self.checks.iter().position(|check| same(&check)) {
            Some(position) => &mut self.checks[position],
            None => {
                let worst = (-1.0, String::new());
                self.checks.push(Check { backend, formula, ratios: Vec::new(), worst });
                self.checks.last_mut().unwrap()
            }
        };
        if ratio > check.worst.0 {
            check.worst = (ratio, case());
        }
        check.ratios.push(ratio);
    }

    /// Notes that matrices of this kind were among the cases.
    pub(crate) fn met(&mut self, kind: Kind) {
        self.kinds.insert(kind);
    }

    /// Fails unless every kind by name was met.
    pub(crate) fn assert_every_kind(&self) {
        for kind in KINDS {
            assert!(self.kinds.contains(&kind), "{} was not tried on {kind:?}", self.family);
        }
    }

    /// Prints the ratios, writes them to `out/accuracy`, and compares the medians.
    fn report(&self) {
        let provider = Provider::of_this_process();
        let checks: Vec<Value> = self.checks.iter().map(|check| check.summary(provider)).collect();
        for check in &checks {
            println!("{} {} {check}", self.family, self.scalar);
        }
        let name = format!("{}.{}.json", self.family.replace(' ', "-"), self.scalar);
        let report = json!({
            "family": self.family, "scalar": self.scalar, "checks": checks,
        });
        let folder = folder(provider);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), format!("{report:#}\n")).unwrap();
        self.assert_close_to(provider);
    }

    /// Our medians against those of the reference, where it is the reference that is there.
    #[cfg(feature = "lapack")]
    fn assert_close_to(&self, provider: Provider) {
        if provider != Provider::Reference {
            return;
        }
        let of = |backend| self.checks.iter().filter(move |check| check.backend == backend);
        for ours in of(Backend::Native) {
            let Some(theirs) = of(Backend::Lapack).find(|check| check.formula == ours.formula)
            else {
                continue;
            };
            let (mine, reference) = (ours.median(), theirs.median());
            if reference == 0.0 {
                // It has the bits of the check's own arithmetic, which is no wider than it.
                println!("{}: {}: the reference is not measured", self.family, ours.formula);
                continue;
            }
            assert!(
                mine <= FACTOR * reference || mine < TINY,
                "{} {} {}: median {mine} is more than {FACTOR} times the reference's {reference}",
                self.family,
                self.scalar,
                ours.formula
            );
        }
    }

    #[cfg(not(feature = "lapack"))]
    fn assert_close_to(&self, _: Provider) {
        let _ = (FACTOR, TINY);
    }
}

impl Check {
    /// Of the ratios that are numbers, in order, the middle one.
    fn median(&self) -> f64 {
        let mut finite: Vec<f64> = self.ratios.iter().copied().filter(|r| r.is_finite()).collect();
        finite.sort_by(f64::total_cmp);
        finite.get(finite.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn summary(&self, provider: Provider) -> Value {
        let finite = self.ratios.iter().copied().filter(|r| r.is_finite());
        json!({
            "formula": self.formula,
            "backend": if self.backend == Backend::Native { "lapax" } else { provider.name() },
            "cases": self.ratios.len(),
            "failed": self.ratios.len() - finite.clone().count(),
            "median": self.median(),
            "max": finite.fold(0.0, f64::max),
            "worst": self.worst.1,
        })
    }
}

/// Where the ratios go: by sweep and by the LAPACK that they were compared with.
fn folder(provider: Provider) -> PathBuf {
    let sweep = if sweep::is_full() { "full" } else { "fast" };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("out/accuracy").join(sweep).join(provider.name())
}
