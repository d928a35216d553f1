//! Routines for triangular systems, lapax's own or those of a LAPACK library.

use crate::{Diag, Error, InOut, Side, Threads, Trans, Uplo};

/// [`crate::triangular::trsm`], or another routine with its contract.
pub(crate) type Trsm<T> = fn(
    Side,
    Uplo,
    Trans,
    Diag,
    usize,
    usize,
    usize,
    &[T],
    InOut<'_, T>,
    &dyn Threads,
) -> Result<(), Error>;
