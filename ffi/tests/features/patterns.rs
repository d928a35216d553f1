//! Buffer patterns: sets of types and ranks, fixed and captured dimensions, shapes of others.

use xla_ffi::fake::Call;
use xla_ffi::{AnyBuffer, BufferMut, DataType, Pattern, Size, Sizes};

use crate::{refusal, run};

xla_ffi::handler! {
    pub(crate) fn matched(call: Matched<'f>, _context) in Execute {
        args { a: AnyBuffer<'f>, x: AnyBuffer<'f> }
        rets { y: BufferMut<'f, f64> }
    } => {
        let mut sizes = Sizes::new();
        let real = Pattern::new().dtypes(&[DataType::F32, DataType::F64]).ranks(&[2, 3]);
        real.verify("a", &call.a, &mut sizes)?;
        let square = Pattern::of(&call.a).dims(&[Size::Named("n"), Size::Named("n")]);
        square.verify("a", &call.a, &mut sizes)?;
        let vector = Pattern::of(&call.a).dims(&[Size::Named("n"), Size::Is(1)]);
        vector.verify("x", &call.x, &mut sizes)?;
        Pattern::like(&call.x).verify("y", &call.y, &mut sizes)?;
        assert_eq!((sizes.get("n"), sizes.get("m")), (Some(2), None));
        let other = Pattern::new().with_shape_of(&call.a);
        assert!(!other.matches(&call.x, &mut sizes));
        assert!(Pattern::new().dims(&[Size::Any, Size::Any]).matches(&call.x, &mut sizes));
        Ok(())
    }
}

#[test]
fn patterns_capture_dimensions_and_say_expected_and_got() {
    let (a, x, mut y) = ([0.0_f64; 6], [0.0_f64; 6], [0.0_f64; 6]);
    let mut with = |a_dims: &[i64], x_dims: &[i64], y_dims: &[i64]| {
        let call = Call::new().arg(a_dims, &a).arg(x_dims, &x).ret(y_dims, &mut y);
        match run(matched, &call) {
            Ok(()) => String::new(),
            Err(_) => refusal(matched, &call),
        }
    };
    assert_eq!(with(&[2, 2], &[2, 1], &[2, 1]), "");
    for (got, expected) in [
        (with(&[4], &[2, 1], &[2, 1]), "`a`: expected f32 or f64 of rank 2 or 3, got f64 [4]"),
        (with(&[2, 3], &[2, 1], &[2, 1]), "`a`: expected f64 [n, n], got f64 [2, 3]"),
        (with(&[2, 2], &[3, 1], &[3, 1]), "`x`: expected f64 [n=2, 1], got f64 [3, 1]"),
        (with(&[2, 2], &[2, 1], &[2]), "`y`: expected f64 [2, 1], got f64 [2]"),
    ] {
        assert_eq!(got, format!("matched: operand {expected}"));
    }
}
