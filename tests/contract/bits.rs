//! The same bits: for any number of threads, anywhere in a batch, beside a matrix of NaN.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use lapax::Platform;
use num_complex::Complex;
use xla_ffi::DataType;
use xla_ffi::fake::{Host, PoolMode};
use xla_ffi::sys::{XLA_FFI_Api, XLA_FFI_Error, XLA_FFI_ThreadPool_Schedule_Args};

use crate::case::{Case, SMALL, bytes, variants};
use crate::plan::{Operand, elements};

type Schedule = unsafe extern "C" fn(*mut XLA_FFI_ThreadPool_Schedule_Args) -> *mut XLA_FFI_Error;

/// Helpers queued by the calls of this file's one test that counts them.
static SCHEDULED: AtomicUsize = AtomicUsize::new(0);
static ORIGINAL: OnceLock<Schedule> = OnceLock::new();

unsafe extern "C" fn count_and_schedule(
    args: *mut XLA_FFI_ThreadPool_Schedule_Args,
) -> *mut XLA_FFI_Error {
    SCHEDULED.fetch_add(1, SeqCst);
    // SAFETY: the fake host's function with what it was to be called with.
    unsafe { ORIGINAL.get().unwrap()(args) }
}

/// The results, and how many helpers were queued.
fn counted(case: &mut Case, host: &Host) -> (Vec<Vec<u8>>, usize) {
    let mut table = std::mem::MaybeUninit::<XLA_FFI_Api>::uninit();
    let (handler, before) = (case.variant.target.handler, SCHEDULED.load(SeqCst));
    let outcome = case.plan.with_frame(host, |frame| {
        // SAFETY: a copy of the host's table, which outlives the call.
        let table = unsafe { table.write(frame.api.read()) };
        ORIGINAL.get_or_init(|| table.XLA_FFI_ThreadPool_Schedule.unwrap());
        table.XLA_FFI_ThreadPool_Schedule = Some(count_and_schedule);
        frame.api = table;
        host.invoke(handler, frame)
    });
    assert_eq!(outcome, Ok(()), "{}", case.variant.label());
    (case.plan.rets.iter().map(bytes).collect(), SCHEDULED.load(SeqCst) - before)
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for variant in variants().filter(|variant| variant.target.platform == Platform::Cpu) {
        // As large as it must be to be spread.
        let spread = (6..).map(|power| 1_i64 << power).find_map(|batch| {
            assert!(batch <= 1 << 17, "{}: never spread", variant.label());
            let mut case = variant.plain(&[batch], &[9, 10, 11, 12]);
            let (results, helpers) = counted(&mut case, &Host::with_pool(8, PoolMode::Prompt));
            (helpers > 0).then_some((case, results))
        });
        let (case, results) = spread.unwrap();
        // The binding's own tests have the pools that stall or refuse.
        for (threads, shared) in [(1, false), (2, true), (8, false), (8, true)] {
            let mut again = case.clone();
            for ret in &mut again.plan.rets {
                *ret = Operand::unwritten(ret.dtype, &ret.dims);
            }
            again.plan.shared = if shared { case.aliases() } else { Vec::new() };
            let host = Host::with_pool(threads, PoolMode::Prompt);
            let (again, helpers) = counted(&mut again, &host);
            assert!(again == results, "{} on {threads}, {shared}", variant.label());
            assert_eq!(helpers > 0, threads > 1);
        }
    }
}

const BATCH: usize = 5;
/// The problem that is spoilt.
const SPOILT: usize = 2;

/// The bytes of one problem of each result.
fn problem(results: &[Vec<u8>], batch: usize, index: usize) -> Vec<&[u8]> {
    let part = |bytes: &Vec<u8>| bytes.len() / batch * index..bytes.len() / batch * (index + 1);
    results.iter().map(|bytes| &bytes[part(bytes)]).collect()
}

#[test]
fn the_place_in_a_batch_changes_nothing() {
    for variant in variants() {
        // Larger than a vector register and than a block of the kernels, too.
        for pool in [SMALL, &[33, 34, 35, 36]] {
            let mut case = variant.plain(&[5], pool);
            let results = case.results(&Host::new());
            for index in 0..BATCH {
                // The same problem everywhere: fewer than a few are computed one by one, and their
                // rounding is another.
                let mut alike = case.clone();
                let args = alike.plan.args.iter_mut().zip(variant.signature.args);
                args.filter(|(_, arg)| !arg.alone).for_each(|(arg, _)| repeat(arg, index, BATCH));
                let alike = alike.results(&Host::new());
                for place in 0..BATCH {
                    let same = problem(&results, BATCH, index) == problem(&alike, BATCH, place);
                    assert!(same, "{} {index} at {place}", variant.label());
                }
            }
        }
    }
}

/// A batch's last few are fewer than registers have lanes, or than are worked on at once.
#[test]
fn the_end_of_a_batch_has_the_bits_of_its_middle() {
    let sizes = (1..=40).flat_map(|n| [[n, 3, 4, 5], [n, n + 1, n + 2, n + 3]]);
    let batches: Vec<_> = sizes.zip([33_u8, 18, 35, 6].into_iter().cycle()).collect();
    for variant in variants().filter(|variant| variant.target.platform == Platform::Cpu) {
        for (pool, batch) in &batches {
            let (count, batch) = (usize::from(*batch), i64::from(*batch));
            let mut case = variant.plain(&[batch], pool);
            let args = case.plan.args.iter_mut().zip(variant.signature.args);
            args.filter(|(_, arg)| !arg.alone).for_each(|(arg, _)| repeat(arg, 0, count));
            let results = case.results(&Host::new());
            for place in 1..count {
                let same = problem(&results, count, place) == problem(&results, count, 0);
                assert!(same, "{} {:?} at {place} of {count}", variant.label(), case.dims);
            }
        }
    }
}

/// Problem `index` of a batch of so many in the place of all of them.
fn repeat(batch: &mut Operand, index: usize, problems: usize) {
    let count = elements(&batch.dims) / problems;
    macro_rules! copy {
        ($($dtype:ident: $element:ty),*) => {
            match batch.dtype {
                $(DataType::$dtype => {
                    let chosen = &batch.values::<$element>()[index * count..(index + 1) * count];
                    let everywhere = chosen.repeat(problems);
                    batch.values_mut::<$element>().copy_from_slice(&everywhere);
                })*
                other => panic!("an argument of {other}"),
            }
        };
    }
    copy!(F32: f32, F64: f64, C64: Complex<f32>, C128: Complex<f64>, I32: i32, I64: i64);
}

#[test]
fn a_spoilt_matrix_leaves_its_neighbours_alone() {
    for variant in variants() {
        for mut case in variant.cases(&[5], SMALL) {
            let results = case.results(&Host::new());
            for arg in 0..case.plan.args.len() {
                // An index that is none is misuse, and refused.
                if variant.op.family == "sparse" && (1..3).contains(&arg) {
                    continue;
                }
                // One number for all problems is none of one problem's.
                if variant.signature.args[arg].alone {
                    continue;
                }
                for all in [false, true] {
                    let mut spoilt = case.clone();
                    spoil(&mut spoilt.plan.args[arg], all);
                    let spoilt = spoilt.results(&Host::new());
                    let at = format!("{} {:?} argument {arg}", variant.label(), case.plan.attrs);
                    for index in 0..BATCH {
                        let same =
                            problem(&results, BATCH, index) == problem(&spoilt, BATCH, index);
                        // Spoilt throughout, a problem cannot have its old results.
                        let expected = index != SPOILT;
                        assert!(same == expected || index == SPOILT && !all, "{at} {index}");
                    }
                }
            }
        }
    }
}

/// NaN (an index that is none) in the first element of one problem, or in all of them.
fn spoil(operand: &mut Operand, all: bool) {
    let count = elements(&operand.dims) / BATCH;
    let part = SPOILT * count..if all { (SPOILT + 1) * count } else { SPOILT * count + 1 };
    match operand.dtype {
        DataType::F32 => operand.values_mut()[part].fill(f32::NAN),
        DataType::F64 => operand.values_mut()[part].fill(f64::NAN),
        DataType::C64 => operand.values_mut()[part].fill(Complex::new(f32::NAN, 1.0)),
        DataType::C128 => operand.values_mut()[part].fill(Complex::new(1.0, f64::NAN)),
        DataType::I32 => operand.values_mut()[part].fill(-7_i32),
        DataType::I64 => operand.values_mut()[part].fill(-7_i64),
        other => panic!("say here what spoils {other}"),
    }
}
