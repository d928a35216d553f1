//! Right calls: leading dimensions, empty operands, shared memory, optional attributes.

use num_complex::Complex;
use xla_ffi::fake::{Attr, Host};
use xla_ffi::{DataType, Element};

use crate::plan::{Memory, Operand, Plan, elements};
use crate::sample::{C128, HANDLER, SIZES, Sizes, right, usual};

const LEADING: [&[i64]; 6] = [&[], &[3], &[2, 3], &[0], &[1, 0], &[1]];
/// m, n, p.
const OWN: [[i64; 3]; 5] = [[4, 3, 5], [2, 5, 5], [0, 3, 3], [4, 0, 0], [0, 0, 0]];

#[test]
fn values_are_right_shared_or_not() {
    for leading in LEADING {
        for [m, n, p] in OWN {
            let sizes = Sizes { leading, m, n, p };
            check::<f32>(sizes, f32::from);
            check::<C128>(sizes, |x| Complex::new(f64::from(x), -f64::from(x)));
        }
    }
}

fn check<T: Element + PartialEq + std::fmt::Debug>(sizes: Sizes<'_>, number: fn(u16) -> T) {
    let batch = elements(sizes.leading);
    for shared in [false, true] {
        let mut plan = right(sizes, number);
        plan.shared = if shared { vec![(0, 0)] } else { vec![] };
        let at = format!("{:?} {} {} {shared}", sizes.leading, sizes.m, sizes.n);
        assert_eq!(plan.execute(&Host::new(), HANDLER), Ok(()), "{at}");
        let entry = |index: usize| u16::try_from(index).unwrap() + 1;
        let a: Vec<T> = (0..elements(&plan.args[0].dims)).map(|i| number(entry(i))).collect();
        let lu: Vec<T> = (0..a.len()).map(|i| number(2 * entry(i))).collect();
        assert_eq!(plan.args[0].values::<T>(), a, "the argument changed: {at}");
        assert_eq!(plan.rets[0].values::<T>(), lu, "{at}");
        let k = i32::try_from(sizes.m.min(sizes.n)).unwrap();
        let piv: Vec<i32> = (0..batch).flat_map(|_| 0..k).collect();
        assert_eq!(plan.rets[1].values::<i32>(), piv, "{at}");
        assert!(plan.rets[2].values::<u8>().iter().all(|x| *x == 7), "{at}");
        let info: Vec<i32> = (0..).take(batch).collect();
        assert_eq!(plan.rets[3].values::<i32>(), info, "{at}");
    }
}

#[test]
fn optional_attributes_may_be_there() {
    let mut plan = usual();
    plan.set("size", Attr::I32(4));
    plan.set("side", Attr::U8(3));
    plan.set("note", Attr::String(String::new()));
    assert_eq!(plan.execute(&Host::new(), HANDLER), Ok(()));
}

/// A call with these leading dimensions and an m of `huge`, n and p zero: only wide's own size is
/// p, and info is of the batch.
fn empty(leading: &[i64], m: i64) -> Plan {
    let mut plan = right(Sizes { leading: &[0], m: 0, n: 0, p: 0 }, f32::from);
    let own: [&[i64]; 6] = [&[m, 0], &[0], &[m, 0], &[0], &[0], &[]];
    let operands = plan.args.iter_mut().chain(&mut plan.rets);
    for (operand, own) in operands.zip(own) {
        *operand = Operand::dangling(operand.dtype, &[leading, own].concat());
    }
    plan
}

/// Dimensions whose product is 0 are fine whatever the others are; nothing is multiplied without a
/// check and nothing is allocated (a test that allocated 2^40 bytes would be seen).
#[test]
fn empty_operands_may_have_huge_dimensions() {
    for huge in [1 << 31, 1 << 40, 1 << 58] {
        for leading in [&[0_i64][..], &[0, 5], &[0, huge]] {
            let mut plan = empty(leading, huge);
            assert_eq!(plan.execute(&Host::new(), HANDLER), Ok(()), "{leading:?} {huge}");
        }
    }
}

#[test]
fn empty_buffers_may_be_null() {
    let mut plan = right(Sizes { leading: &[2, 0], ..SIZES }, f32::from);
    let operands = plan.args.iter_mut().chain(&mut plan.rets);
    operands.for_each(|operand| operand.memory = Memory::Null);
    assert_eq!(plan.execute(&Host::new(), HANDLER), Ok(()));
    // One of several is enough, and a null pointer that is not empty is refused.
    let mut plan = right(Sizes { m: 0, ..SIZES }, f32::from);
    plan.args[0].memory = Memory::Null;
    assert_eq!(plan.execute(&Host::new(), HANDLER), Ok(()));
    let mut plan = usual();
    plan.args[1].memory = Memory::Null;
    let failure = plan.execute(&Host::new(), HANDLER).unwrap_err();
    assert_eq!(
        failure.message,
        "sample: a buffer is null or not aligned to its element type, though its shape is right"
    );
}

/// Where the products do not fit, the call is refused in words.
#[test]
fn impossible_sizes_are_refused() {
    let cases: [(&[i64], i64, &str); 3] = [
        (&[1 << 31, 1 << 31], 1 << 2, "f32 [2147483648, 2147483648, 4, 1]"),
        (&[1 << 40], 1 << 40, "f32 [1099511627776, 1099511627776, 1]"),
        (&[], i64::MAX, "f32 [9223372036854775807, 1]"),
    ];
    for (leading, m, shape) in cases {
        let mut plan = empty(leading, m);
        let own: [&[i64]; 6] = [&[m, 1], &[1], &[m, 1], &[1], &[1], &[]];
        let operands = plan.args.iter_mut().chain(&mut plan.rets);
        for (operand, own) in operands.zip(own) {
            operand.dims = [leading, own].concat();
        }
        let failure = plan.execute(&Host::new(), HANDLER).unwrap_err();
        let first = format!("sample: argument 0 `a`: {shape} is larger than an address space; ");
        assert!(failure.message.starts_with(&first), "{}", failure.message);
        assert_eq!(failure.code, 3);
        assert_eq!(plan.args[0].dtype, DataType::F32);
    }
}
