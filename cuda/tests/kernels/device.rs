//! The fake device of the tests: its memory is the process's, so operands are slices.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lapax_cuda::memory::{InOut, Input, Output};
use lapax_cuda::{Error, Gpu, Lent, MODULES, Memory};
use lapax_cuda_fake::{driver, install};

/// Lends memory of exactly the size that is asked for, full of what no result is.
pub(crate) struct Heap;

struct Piece(Box<[u128]>);

impl Lent for Piece {
    fn address(&self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }
}

impl Memory for Heap {
    fn lend(&self, bytes: usize) -> Result<Box<dyn Lent + '_>, Error> {
        Ok(Box::new(Piece(vec![u128::MAX; bytes.div_ceil(16)].into_boxed_slice())))
    }
}

/// One test at a time has the device. None, with the reason printed, where this build has no kernels.
pub(crate) fn device() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    if MODULES.is_empty() {
        println!("skipped: this build has no CUDA kernels (no nvcc)");
        return None;
    }
    if let Err(reason) = install() {
        println!("skipped: {reason}");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A call's GPU.
pub(crate) fn gpu() -> Gpu<'static> {
    gpu_on(0x57_0000)
}

/// The same on a stream of this address.
pub(crate) fn gpu_on(stream: usize) -> Gpu<'static> {
    // SAFETY: the fake driver follows no stream.
    unsafe { Gpu::new(std::ptr::without_provenance_mut(stream), &Heap) }.unwrap()
}

/// What a call answered, with the emulator's reason where it has one.
#[track_caller]
pub(crate) fn succeeds(answer: Result<(), Error>) {
    let reason = driver::state().error.take();
    assert_eq!((answer, reason), (Ok(()), None));
}

/// The orders of threads that tests go through.
pub(crate) const SEEDS: Range<u32> = 0..3;

pub(crate) fn input<T>(data: &[T]) -> Input<T> {
    // SAFETY: the slice outlives the call, which runs at once.
    unsafe { Input::new(data.as_ptr(), data.len()) }
}

pub(crate) fn output<T>(data: &mut [T]) -> Output<T> {
    // SAFETY: as above.
    unsafe { Output::new(data.as_mut_ptr(), data.len()) }
}

/// An operand in its result's memory, or elsewhere.
pub(crate) fn in_out<T>(src: Option<&[T]>, dst: &mut [T]) -> InOut<T> {
    InOut { src: src.map(input), dst: output(dst) }
}
