//! The sparse product beyond its signature: vectors, indices that are none, hosts without futures.

use std::mem::offset_of;

use xla_ffi::fake::{Call, Failure, Host, PoolMode};
use xla_ffi::sys::{XLA_FFI_Api, XLA_FFI_Handler};

use lapax::targets;

const NAME: &str = "cpu_csr_sparse_dense_ffi";

fn handler() -> XLA_FFI_Handler {
    targets().find(|(_, target)| target.name == NAME).unwrap().1.handler
}

/// 1 0 2
/// 0 0 0
/// 0 3 4, and an entry that no row has.
const DATA: [f64; 5] = [1.0, 2.0, 4.0, 3.0, f64::NAN];
const INDPTR: [i64; 4] = [0, 2, 2, 4];
const INDICES: [i64; 5] = [0, 2, 2, 1, 99];
const X: [f64; 3] = [10.0, 20.0, 30.0];
const Y: [f64; 3] = [70.0, 0.0, 180.0];

fn call<'a>(indptr: &'a [i64], indices: &'a [i64]) -> Call<'a> {
    Call::new().arg(&[5], &DATA).arg(&[4], indptr).arg(&[5], indices)
}

#[test]
fn vectors_are_matrices_of_one_column() {
    let (mut matrix, mut vector) = ([7.0; 3], [7.0; 3]);
    let as_matrix = call(&INDPTR, &INDICES).arg(&[3, 1], &X).ret(&[3, 1], &mut matrix);
    let as_vector = call(&INDPTR, &INDICES).arg(&[3], &X).ret(&[3], &mut vector);
    for call in [as_matrix, as_vector] {
        assert_eq!(Host::new().execute(handler(), &call), Ok(()));
    }
    assert_eq!((matrix, vector), (Y, Y));
    // In a batch, too.
    let (mut batch, twice) = ([7.0; 6], |x: &[f64]| [x, x].concat());
    let (data, x) = (twice(&DATA), twice(&X));
    let (indptr, indices) = ([INDPTR, INDPTR].concat(), [INDICES, INDICES].concat());
    let call = Call::new()
        .arg(&[2, 5], &data)
        .arg(&[2, 4], &indptr)
        .arg(&[2, 5], &indices)
        .arg(&[2, 3], &x)
        .ret(&[2, 3], &mut batch);
    assert_eq!(Host::new().execute(handler(), &call), Ok(()));
    drop(call);
    assert_eq!(batch[..], [Y, Y].concat());
}

fn refusal(indptr: [i64; 4], indices: [i64; 5], host: &Host) -> String {
    let mut y = [7.0; 3];
    let call = call(&indptr, &indices).arg(&[3], &X).ret(&[3], &mut y);
    let Failure { code, message } = host.execute(handler(), &call).unwrap_err();
    assert_eq!(code, 3);
    message.strip_prefix(NAME).unwrap().to_owned()
}

#[test]
fn indices_that_are_none_are_refused_on_every_host() {
    let without = offset_of!(XLA_FFI_Api, XLA_FFI_Future_Create);
    for host in [
        Host::new(),
        Host::with_pool(4, PoolMode::Prompt),
        Host::with_pool(4, PoolMode::Stalled),
        Host::with_pool(4, PoolMode::Prompt).aged(1, without),
    ] {
        let said = refusal([0, 2, 1, 4], INDICES, &host);
        assert_eq!(said, ": argument 1 `indptr`: expected 2 to 5 at 2, got 1");
        let said = refusal([-1, 2, 2, 4], INDICES, &host);
        assert_eq!(said, ": argument 1 `indptr`: expected 0 to 5 at 0, got -1");
        let said = refusal([0, 2, 2, 6], INDICES, &host);
        assert_eq!(said, ": argument 1 `indptr`: expected 2 to 5 at 3, got 6");
        let said = refusal(INDPTR, [0, 2, 3, 1, 99], &host);
        assert_eq!(said, ": argument 2 `indices`: expected 0 to 2 at 2, got 3");
        let said = refusal(INDPTR, [0, -1, 2, 1, 99], &host);
        assert_eq!(said, ": argument 2 `indices`: expected 0 to 2 at 1, got -1");
    }
}

#[test]
fn vectors_and_matrices_do_not_mix() {
    let mut y = [7.0; 3];
    let call = call(&INDPTR, &INDICES).arg(&[3], &X).ret(&[3, 1], &mut y);
    let message = Host::new().execute(handler(), &call).unwrap_err().message;
    let text = format!("{NAME}: result 0 `out`: expected f64 [rows=p - 1=3], got f64 [3, 1]");
    assert_eq!(message, text);
}

/// Large enough to be spread: the same on every host, and finished when the call is.
#[test]
fn a_large_product_is_the_same_on_every_host() {
    let (rows, n) = (20_000, 16);
    let count = |number: i64| usize::try_from(number).unwrap();
    let indptr: Vec<i32> = (0..=rows).map(|row| i32::try_from(4 * row).unwrap()).collect();
    let indices: Vec<i32> = (0..4 * rows).map(|i| i32::try_from(i * 7 % rows).unwrap()).collect();
    let number = |i: i64| 1.0 / f64::from(i32::try_from(i).unwrap() + 1);
    let (data, x): (Vec<f64>, Vec<f64>) =
        ((0..4 * rows).map(number).collect(), (0..rows * n).map(number).collect());
    let product = |host: &Host| {
        let mut y = vec![f64::NAN; count(rows * n)];
        let call = Call::new()
            .arg(&[4 * rows], &data)
            .arg(&[rows + 1], &indptr)
            .arg(&[4 * rows], &indices)
            .arg(&[rows, n], &x)
            .ret(&[rows, n], &mut y);
        assert_eq!(host.execute(handler(), &call), Ok(()));
        drop(call);
        y
    };
    let expected = product(&Host::new());
    assert!(expected.iter().all(|y| y.is_finite()));
    let without = offset_of!(XLA_FFI_Api, XLA_FFI_Future_Create);
    for mode in [PoolMode::Prompt, PoolMode::Stalled, PoolMode::Refusing] {
        for threads in [2, 8] {
            assert!(product(&Host::with_pool(threads, mode)) == expected);
            assert!(product(&Host::with_pool(threads, mode).aged(1, without)) == expected);
        }
    }
}
