//! One outcome of calls that several threads make.

use std::sync::{Mutex, PoisonError};

use crate::Error;

/// An error of the calls so far, if there was one.
#[derive(Debug, Default)]
pub(crate) struct Outcome(Mutex<Option<Error>>);

impl Outcome {
    /// Takes account of a call.
    pub(crate) fn take(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    pub(crate) fn into_result(self) -> Result<(), Error> {
        let error = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }
}
