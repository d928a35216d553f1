//! Workspace of LAPACK's routines: asked for once per call, allocated once per thread.

use std::ffi::c_int;

use lapax_core::{Error, Real as _, Scalar};

use super::integers::{Int, Integers};

/// The lengths that a routine's documentation demands at least.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Least {
    pub(super) work: usize,
    /// Of complex routines.
    pub(super) rwork: usize,
    pub(super) iwork: usize,
}

/// Workspace, or the question how long it should be.
#[derive(Debug)]
pub struct Work<T: Scalar> {
    work: Vec<T>,
    rwork: Vec<T::Real>,
    iwork: Integers,
    lwork: Int,
    lrwork: Int,
    liwork: Int,
    /// What a question's routine demanded.
    least: Option<Least>,
}

/// The lengths of the workspace of one routine for one set of sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    work: Int,
    rwork: Int,
    iwork: Int,
}

impl Lengths {
    /// Asks the routine that `call` calls, which is `routine`, without a matrix.
    ///
    /// # Errors
    /// [`Error::Library`] where a length, or the demand before the routine is called at all, exceeds
    /// the library's integers; [`Error::Refused`] where the routine rejects an argument.
    pub(super) fn ask<T: Scalar>(
        routine: &'static str,
        call: impl FnOnce(&mut Work<T>) -> Result<i32, Error>,
    ) -> Result<Self, Error> {
        let mut question = Work::<T> {
            work: vec![T::ZERO],
            rwork: vec![T::Real::ZERO],
            iwork: Integers::with_room(1),
            lwork: Int::QUERY,
            lrwork: Int::QUERY,
            liwork: Int::QUERY,
            least: Some(Least::default()),
        };
        let info = call(&mut question)?;
        if info != 0 {
            return Err(Error::Refused { routine, info });
        }
        let least = question.least.unwrap_or_default();
        // The answer is a floating-point number, which may have been rounded down.
        let answer = question.work[0].re().to_f64() * (1.0 + 2.0 * T::Real::EPSILON.to_f64());
        let work = length(answer).max(least.work);
        Ok(Self {
            work: Int::new("lwork", work)?,
            rwork: Int::new("lrwork", least.rwork)?,
            iwork: Int::new("liwork", least.iwork)?,
        })
    }

    /// Workspace of these lengths.
    pub(super) fn allocate<T: Scalar>(self) -> Work<T> {
        let Self { work, rwork, iwork } = self;
        Work {
            work: vec![T::ZERO; work.get()],
            rwork: vec![T::Real::ZERO; rwork.get()],
            iwork: Integers::with_room(iwork.get()),
            lwork: work,
            lrwork: rwork,
            liwork: iwork,
            least: None,
        }
    }
}

/// A length that a routine answered with.
fn length(answer: f64) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    {
        answer as usize
    }
}

impl<T: Scalar> Work<T> {
    /// Notes a routine's demand, of which `work` and `rwork` and `iwork` then hold as much.
    ///
    /// # Errors
    /// [`Error::Library`] where a question's demand exceeds the library's integers.
    ///
    /// # Panics
    /// Where this is workspace for other sizes.
    pub(super) fn demand(&mut self, least: Least) -> Result<(), Error> {
        if let Some(known) = &mut self.least {
            Int::new("lwork", least.work)?;
            Int::new("lrwork", least.rwork)?;
            Int::new("liwork", least.iwork)?;
            *known = least;
            return Ok(());
        }
        let enough = self.lwork.get() >= least.work
            && self.lrwork.get() >= least.rwork
            && self.liwork.get() >= least.iwork;
        assert!(enough, "workspace for other sizes: {least:?}");
        Ok(())
    }

    /// Where an operand with the dimensions `dims` lies; a question has none.
    ///
    /// # Panics
    /// Where it is shorter.
    pub(super) fn at<U, V>(&self, data: &mut [U], dims: &[Int]) -> *mut V {
        if self.least.is_some() { data.as_mut_ptr().cast() } else { at(data, dims) }
    }

    /// As [`Work::at`], for an operand that is only read.
    pub(super) fn at_input<U, V>(&self, data: &[U], dims: &[Int]) -> *const V {
        if self.least.is_some() { data.as_ptr().cast() } else { at_input(data, dims) }
    }

    /// As [`Work::at`], for `count` integers.
    pub(super) fn integers(&self, data: &mut Integers, count: Int) -> *mut c_int {
        data.ptr(if self.least.is_some() { 0 } else { count.get() })
    }

    pub(super) fn work<V>(&mut self) -> *mut V {
        self.work.as_mut_ptr().cast()
    }

    pub(super) fn rwork(&mut self) -> *mut T::Real {
        self.rwork.as_mut_ptr()
    }

    pub(super) fn iwork(&mut self) -> *mut c_int {
        self.iwork.ptr(0)
    }

    pub(super) fn lwork(&self) -> *const c_int {
        self.lwork.ptr()
    }

    pub(super) fn lrwork(&self) -> *const c_int {
        self.lrwork.ptr()
    }

    pub(super) fn liwork(&self) -> *const c_int {
        self.liwork.ptr()
    }
}

/// Where an operand with the dimensions `dims` lies.
///
/// # Panics
/// Where it is shorter.
pub(super) fn at<U, V>(data: &mut [U], dims: &[Int]) -> *mut V {
    data[..elements(dims)].as_mut_ptr().cast()
}

/// As [`at`], for an operand that is only read.
pub(super) fn at_input<U, V>(data: &[U], dims: &[Int]) -> *const V {
    data[..elements(dims)].as_ptr().cast()
}

/// The number of elements with the dimensions `dims`, or a number that no slice has.
fn elements(dims: &[Int]) -> usize {
    dims.iter().fold(1, |product: usize, dim| product.saturating_mul(dim.get()))
}
