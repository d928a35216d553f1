//! Which kernel serves a call: the choice of a family as a value, which can be listed without computing anything.

use crate::simd::kind::Kind;

/// A way that a matrix can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// As it is written in `route.rs`.
    pub name: &'static str,
    /// What works on the matrix then: the comment of the variant.
    pub(crate) comment: &'static str,
}

impl Way {
    /// What works on the matrix then: a sentence.
    #[must_use]
    pub fn what(&self) -> String {
        let mut text = String::new();
        let mut rest = self.comment.trim();
        // Of a link the name is left.
        while let Some((before, after)) = rest.split_once('[') {
            let (name, after) = after.split_once(']').unwrap_or((after, ""));
            text += before;
            text += name;
            rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
                Some((_, after)) => after,
                None => after,
            };
        }
        text + rest
    }
}

/// The ways that a family's matrices can go.
pub(crate) trait Named: Copy + 'static {
    /// All of them.
    const ALL: &'static [Way];

    /// This one.
    fn way(self) -> &'static Way;
}

/// An enum of ways, each with a sentence: `routes! { /// … pub(crate) enum Route { /// … Lanes, … } }`.
macro_rules! routes {
    ($(#[$outer:meta])* $visibility:vis enum $name:ident { $($(#[doc = $what:literal])+ $way:ident),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name { $($(#[doc = $what])+ $way),+ }

        impl $crate::parallel::routes::Named for $name {
            const ALL: &'static [$crate::parallel::routes::Way] =
                &[$($crate::parallel::routes::Way { name: stringify!($way), comment: concat!($($what),+) }),+];

            fn way(self) -> &'static $crate::parallel::routes::Way {
                &Self::ALL[self as usize]
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
    pub ways: &'static [Way],
    /// The way for numbers of a kind, a batch of so many and these sizes.
    pub(crate) choose: fn(Kind, usize, &[usize]) -> &'static Way,
}

impl Routine {
    /// The way that each matrix of a batch goes.
    ///
    /// # Panics
    /// Where `sizes` has another length than the routine's.
    #[must_use]
    pub fn way(&self, kind: Kind, batch: usize, sizes: &[usize]) -> &'static Way {
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
                $crate::parallel::routes::Named::way(choice)
            },
        }
    };
}
pub(crate) use routine;
