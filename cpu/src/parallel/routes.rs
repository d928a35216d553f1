//! Which kernel serves a call: the choice of a family as a value, which can be listed without computing anything.

use crate::simd::kind::Kind;

/// The ways that a family's matrices can go.
pub(crate) trait Named: Copy + 'static {
    /// All of them.
    const ALL: &'static [&'static str];

    /// As it is written in `route.rs`.
    fn name(self) -> &'static str;
}

/// An enum of ways, which have their names: `routes! { /// … pub(crate) enum Route { … } }`.
macro_rules! routes {
    ($(#[$outer:meta])* $visibility:vis enum $name:ident { $($(#[$inner:meta])* $way:ident),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name { $($(#[$inner])* $way),+ }

        impl $crate::parallel::routes::Named for $name {
            const ALL: &'static [&'static str] = &[$(stringify!($way)),+];

            fn name(self) -> &'static str {
                match self { $(Self::$way => stringify!($way)),+ }
            }
        }
    };
}
pub(crate) use routes;

/// A public routine, and the way that its matrices go.
#[derive(Clone, Copy, Debug)]
pub struct Routine {
    /// Its name, that of the function.
    pub name: &'static str,
    /// The sizes of its matrices that decide, in order.
    pub sizes: &'static [&'static str],
    /// The ways that its family knows.
    pub ways: &'static [&'static str],
    /// The way for numbers of a kind, a batch of so many and these sizes.
    pub(crate) choose: fn(Kind, usize, &[usize]) -> &'static str,
}

impl Routine {
    /// The way that each matrix of a batch goes: the name of a variant of its family's `Route`.
    ///
    /// # Panics
    /// Where `sizes` has another length than the routine's.
    #[must_use]
    pub fn way(&self, kind: Kind, batch: usize, sizes: &[usize]) -> &'static str {
        assert_eq!(sizes.len(), self.sizes.len(), "{} has sizes {:?}", self.name, self.sizes);
        (self.choose)(kind, batch, sizes)
    }
}

/// The entry of a routine: `routine!("lu", Route, ["m", "n"], |kind, batch, [m, n]| route(…))`.
macro_rules! routine {
    ($name:literal, $route:ty, [$($size:literal),+], |$kind:pat_param, $batch:pat_param, [$($variable:ident),+]| $choice:expr) => {
        $crate::parallel::routes::Routine {
            name: $name,
            sizes: &[$($size),+],
            ways: <$route as $crate::parallel::routes::Named>::ALL,
            choose: |$kind, $batch, sizes| {
                let &[$($variable),+] = sizes else { unreachable!("`way` counts them") };
                let choice: $route = $choice;
                $crate::parallel::routes::Named::name(choice)
            },
        }
    };
}
pub(crate) use routine;
