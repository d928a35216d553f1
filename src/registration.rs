//! Registration of the targets in any XLA host: which, for which platform, under which names.

use std::collections::HashSet;

use xla_ffi::{Error, ErrorCode, Registry, Stages};

use crate::table::{Platform, Target, targets};

/// Which targets are registered, and how they are named: all of them under their own names, unless
/// told otherwise.
///
/// ```no_run
/// # let api = std::ptr::null(); // what the plugin's GetPjrtApi returned
/// // SAFETY: the plugin is loaded, and is never unloaded.
/// let registry = unsafe { xla_ffi::Registry::of_plugin(api) }?;
/// lapax::Registration::all().register(registry)?;
/// # Ok::<(), xla_ffi::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Registration<'a> {
    platform: Option<Platform>,
    names: Option<&'a [&'a str]>,
    prefix: &'a str,
}

impl<'a> Registration<'a> {
    /// Every target of every platform.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only the targets of this platform.
    pub fn platform(self, platform: Platform) -> Self {
        Registration { platform: Some(platform), ..self }
    }

    /// Only the targets of these names.
    pub fn names(self, names: &'a [&'a str]) -> Self {
        Registration { names: Some(names), ..self }
    }

    /// Registers `prefix` + name instead of the name.
    pub fn prefix(self, prefix: &'a str) -> Self {
        Registration { prefix, ..self }
    }

    /// Registers them; how many there were. To do so again is harmless.
    ///
    /// # Errors
    /// NOT_FOUND, with nothing registered, where a name is no target's on that platform, and
    /// FAILED_PRECONDITION where the build is for another processor than this. Where the
    /// host refuses targets, the others are registered all the same, and the error has the host's
    /// code and says of each refused one why.
    pub fn register(self, registry: Registry) -> Result<usize, Error> {
        let chosen = self.chosen()?;
        let on_cpu = chosen.iter().any(|target| target.platform == Platform::Cpu);
        if let Some(reason) = lapax_cpu::unfit().filter(|_| on_cpu) {
            return Err(Error::new(ErrorCode::FailedPrecondition, reason));
        }
        let mut refused: Vec<(String, Error)> = Vec::new();
        for target in &chosen {
            let Some(execute) = target.handler else { continue };
            let name = format!("{}{}", self.prefix, target.name);
            let stages = Stages { initialize: target.initialize, ..Stages::execute(execute) };
            // SAFETY: the table holds xla_ffi::execute and initialize of its handlers, which are never
            // unloaded before the host: both stay to the end of the process.
            let outcome = unsafe { registry.register(&name, target.platform.xla_name(), stages) };
            refused.extend(outcome.err().map(|error| (name, error)));
        }
        let Some((_, first)) = refused.first() else { return Ok(chosen.len()) };
        let reasons: Vec<String> =
            refused.iter().map(|(name, error)| format!("{name}: {error}")).collect();
        let text = format!(
            "{} of {} targets of lapax were refused: {}",
            refused.len(),
            chosen.len(),
            reasons.join("; ")
        );
        Err(Error::new(first.code(), text))
    }

    fn chosen(self) -> Result<Vec<&'static Target>, Error> {
        let on_platform = |target: &&Target| self.platform.is_none_or(|it| it == target.platform);
        let all: Vec<&Target> = targets().map(|(_, target)| target).filter(on_platform).collect();
        let Some(names) = self.names else { return Ok(all) };
        let known: HashSet<&str> = all.iter().map(|target| target.name).collect();
        let unknown: Vec<&str> =
            names.iter().copied().filter(|name| !known.contains(name)).collect();
        if !unknown.is_empty() {
            let place = self.platform.map_or(String::new(), |it| format!(" on {}", it.name()));
            let text = format!("lapax has no target {}{place}", unknown.join(", "));
            return Err(Error::new(ErrorCode::NotFound, text));
        }
        Ok(all.into_iter().filter(|target| names.contains(&target.name)).collect())
    }
}
