//! Empty and huge operands. Nothing here may allocate what a dimension says.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use xla_ffi::fake::{Failure, Host};

use crate::case::{Case, SMALL, Variant, bytes, variants};
use crate::plan::{Memory, Operand};
use crate::right::check_result;

/// The system's allocator, which remembers the largest request of this thread.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator; the cell neither allocates nor has a destructor.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// More than any call on operands of this size needs.
const SMALL_BYTES: usize = 1 << 20;

/// Makes a call; it may not allocate much.
fn execute(case: &mut Case) -> Result<(), Failure> {
    let host = Host::new();
    let handler = case.variant.target.handler;
    case.plan.with_frame(&host, |frame| {
        LARGEST.set(0);
        let outcome = host.invoke(handler, frame);
        let largest = LARGEST.get();
        let at = format!("{} {:?} {:?}", case.variant.label(), case.leading, case.dims);
        assert!(largest < SMALL_BYTES, "{largest} bytes at once: {at}");
        outcome
    })
}

/// A call whose free dimensions have these values, with memory only where that is small.
fn sized(variant: Variant, plain: &Case, leading: &[i64], free: &[i64]) -> Case {
    let mut case = plain.clone();
    (case.dims, _) = variant.complete(free, &plain.plan.attrs);
    case.leading = leading.to_vec();
    let operand = |operand: &xla_ffi::Operand| {
        let own = operand.dims.iter().map(|dim| case.dims[*dim]);
        let leading = leading.iter().copied().filter(|_| !operand.alone);
        let dims: Vec<i64> = leading.chain(own).collect();
        let count = dims.iter().try_fold(1_i64, |count, dim| count.checked_mul(*dim));
        match count {
            Some(1..=1024) => Operand::unwritten(operand.dtype, &dims),
            _ => Operand::dangling(operand.dtype, &dims),
        }
    };
    case.plan.args = variant.signature.args.iter().map(operand).collect();
    case.plan.rets = variant.signature.rets.iter().map(operand).collect();
    case
}

#[test]
fn an_empty_batch_is_no_work() {
    for variant in variants() {
        for leading in [&[0][..], &[0, 3], &[2, 0], &[0, 1 << 40]] {
            for mut case in variant.cases(leading, SMALL) {
                assert_eq!(execute(&mut case), Ok(()), "{} {leading:?}", variant.label());
            }
        }
    }
}

/// Where a dimension is 0, what remains of the results is written: `info` is 0.
#[test]
fn zero_sizes_are_right_calls() {
    for variant in variants() {
        let plain = variant.plain(&[2], SMALL);
        let free: Vec<i64> = variant.free().iter().map(|index| plain.dims[*index]).collect();
        let mut zeros: Vec<Vec<i64>> = vec![vec![0; free.len()]];
        for index in 0..free.len() {
            let mut some = free.clone();
            some[index] = 0;
            zeros.push(some);
        }
        let mut accepted = 0;
        for free in zeros {
            for choice in variant.codes() {
                let Some(attrs) = variant.numbers(&choice, &free) else { continue };
                for shared in [false, true] {
                    let mut case = variant.case(&[2], &free, attrs.clone());
                    case.plan.shared = if shared { case.aliases() } else { Vec::new() };
                    let at = format!("{} {free:?} {attrs:?}", variant.label());
                    assert_eq!(execute(&mut case), Ok(()), "{at}");
                    for (operand, ret) in case.plan.rets.iter().zip(variant.signature.rets) {
                        check_result(operand, ret.name, &at);
                    }
                    // Empty buffers may be null.
                    let operands = case.plan.args.iter_mut().chain(&mut case.plan.rets);
                    operands.filter(|it| it.dims.contains(&0)).for_each(|it| {
                        it.memory = Memory::Null;
                    });
                    case.plan.shared.retain(|(arg, _)| !case.plan.args[*arg].dims.contains(&0));
                    assert_eq!(execute(&mut case), Ok(()), "null: {at}");
                    accepted += 1;
                }
            }
        }
        assert!(accepted >= 2, "{}: no size may be zero", variant.label());
    }
}

/// Where all results are empty, the number of matrices does not matter.
#[test]
fn any_number_of_empty_matrices_is_no_work() {
    let mut served = 0;
    for variant in variants() {
        let free = vec![0; variant.free().len()];
        for attrs in variant.codes().iter().filter_map(|choice| variant.numbers(choice, &free)) {
            let plain = variant.case(&[], &free, attrs);
            let mut case = sized(variant, &plain, &[1 << 40], &free);
            if case.plan.rets.iter().all(|ret| ret.dims.contains(&0)) {
                assert_eq!(execute(&mut case), Ok(()), "{}", variant.label());
                served += 1;
            }
        }
    }
    assert!(served > 0, "no target has only empty results");
}

/// One dimension huge and the others 0: a right call or a refusal in words, and no allocation.
#[test]
fn huge_dimensions_are_served_or_refused() {
    for variant in variants() {
        for plain in variant.cases(&[], SMALL) {
            for index in 0..variant.free().len() {
                for huge in [1 << 31, 1 << 40] {
                    for leading in [&[][..], &[0], &[0, 1 << 31]] {
                        let mut free = vec![0; variant.free().len()];
                        free[index] = huge;
                        huge_call(variant, &plain, leading, &free, index);
                    }
                }
            }
        }
    }
}

fn huge_call(variant: Variant, plain: &Case, leading: &[i64], free: &[i64], index: usize) {
    let mut case = sized(variant, plain, leading, free);
    let name = variant.signature.dims[variant.free()[index]].name;
    let at = format!("{} {name} = {}, leading {leading:?}", variant.label(), free[index]);
    let memoryless = |operand: &Operand| {
        matches!(operand.memory, Memory::Dangling) && !operand.dims.contains(&0)
    };
    // Without results there is nothing to read the arguments for.
    let nothing = case.plan.rets.iter().all(|ret| ret.dims.contains(&0));
    let must_fail = !nothing && case.plan.args.iter().chain(&case.plan.rets).any(memoryless);
    match execute(&mut case) {
        Ok(()) => assert!(!must_fail, "accepted: {at}"),
        // What the host computes for a device is copied there, if it has so much memory.
        Err(Failure { code, message })
            if must_fail && code == 8 && message.contains(" bytes of page-locked memory: ") =>
        {
            assert!(message.starts_with(variant.target.name), "{at}: {message}");
        }
        Err(Failure { code, message }) => {
            let value = free[index].to_string();
            assert!(code == 3 && message.starts_with(variant.target.name), "{at}: {message}");
            let named = message.contains(name) || message.contains("address space");
            // What an attribute demands is not the dimension's fault, and a kernel that is given an
            // empty batch of impossible matrices names the operand.
            let broken = variant.complete(free, &case.plan.attrs).1;
            let said = broken.iter().any(|reason| message.contains(reason))
                || leading.contains(&0) && message.contains(" multiply to more than ");
            assert!(said || named && message.contains(&value), "{at}: {message}");
        }
    }
}

/// Pivots are 32-bit integers: the dimension that they count is limited, and named.
#[test]
fn rows_beyond_pivots_are_refused() {
    for variant in variants().filter(|variant| variant.op.name == "getrf") {
        for (rows, fits) in [((1 << 31) - 1, true), (1 << 31, false), (1 << 40, false)] {
            let plain = variant.plain(&[], SMALL);
            let mut case = sized(variant, &plain, &[], &[rows, 0]);
            let outcome = execute(&mut case);
            if fits {
                assert_eq!(outcome, Ok(()));
                continue;
            }
            let message = format!(
                "{}: dimension m = {rows} is too large: its indices are returned as 32-bit \
                 integers, so it can be at most 2147483647",
                variant.target.name
            );
            assert_eq!(outcome, Err(Failure { code: 3, message }));
            assert_eq!(bytes(&case.plan.rets[2]).len(), 4);
        }
    }
}

/// Sizes whose product is no address.
#[test]
fn impossible_products_are_refused() {
    for variant in variants() {
        let plain = variant.plain(&[], SMALL);
        let free: Vec<i64> = variant.free().iter().map(|index| plain.dims[*index]).collect();
        for leading in [&[1_i64 << 62][..], &[1 << 31, 1 << 31], &[1 << 40, 1 << 40]] {
            let mut case = sized(variant, &plain, leading, &free);
            let Failure { code, message } = execute(&mut case).expect_err(&variant.label());
            let operand = variant.signature.args[0].name;
            let start = format!("{}: argument 0 `{operand}`: ", variant.target.name);
            assert!(code == 3 && message.starts_with(&start), "{message}");
            assert!(message.contains(" is larger than an address space"), "{message}");
        }
    }
}
