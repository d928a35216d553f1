//! A dimension that may be missing, and signatures told apart by two element types.

use xla_ffi::fake::{Failure, Host};
use xla_ffi::{
    Call as _, Context, Element, Frame, Given, Handler, Outcome, Shape, Signature, infer, signature,
};

use crate::plan::{Operand, Plan};

signature! {
    /// y = x for each of the chosen rows, n, and whether the indices are wide.
    struct Rows<T, I> {
        dims { m, k, n }
        args { chosen: I [m], x: T [k, n?] }
        rets { y: T [m, n?], seen: i64 [] }
    }
}

struct RowsHandler;

type Of<'f, T, I> = Rows<'f, T, I>;

impl Handler for RowsHandler {
    const NAME: &'static str = "rows";
    const SIGNATURES: &'static [&'static Signature] = &[
        Of::<f32, i32>::SIGNATURE,
        Of::<f64, i32>::SIGNATURE,
        Of::<f32, i64>::SIGNATURE,
        Of::<f64, i64>::SIGNATURE,
    ];

    fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
        match (frame.arg_dtype(0), frame.arg_dtype(1)) {
            (Some(i32::DTYPE), Some(f32::DTYPE)) => rows::<f32, i32>(frame),
            (Some(i32::DTYPE), _) => rows::<f64, i32>(frame),
            (_, Some(f32::DTYPE)) => rows::<f32, i64>(frame),
            _ => rows::<f64, i64>(frame),
        }
    }
}

fn rows<'f, T: Element, I: Element + Into<i64>>(frame: Frame<'f>) -> Outcome<'f> {
    let Some(call) = Rows::<T, I>::decode(frame) else { return Outcome::Mismatch };
    let n = call.n;
    for problem in 0..call.batch {
        let x = &call.x[problem * call.k * n..][..call.k * n];
        let y = &mut call.y[problem * call.m * n..][..call.m * n];
        for (row, chosen) in call.chosen[problem * call.m..][..call.m].iter().enumerate() {
            let chosen = usize::try_from((*chosen).into()).unwrap();
            y[row * n..][..n].copy_from_slice(&x[chosen * n..][..n]);
        }
        call.seen[problem] = i64::try_from(n).unwrap();
    }
    Outcome::Done(Ok(()))
}

fn execute(plan: &mut Plan) -> Result<(), Failure> {
    plan.execute(&Host::new(), Some(xla_ffi::execute::<RowsHandler>))
}

/// Rows 2 and 0 of a matrix of three, `x[i] = i`; leading, x's and y's own dimensions as given.
fn plan<T: Element, I: Element>(
    [leading, x, y]: [&[i64]; 3],
    number: fn(u8) -> T,
    index: fn(u8) -> I,
) -> Plan {
    let full = |own: &[i64]| [leading, own].concat();
    let chosen = |i: usize| index(if i.is_multiple_of(2) { 2 } else { 0 });
    let args = vec![
        Operand::new(&full(&[2]), chosen),
        Operand::new(&full(x), |i| number(u8::try_from(i).unwrap())),
    ];
    let rets =
        vec![Operand::unwritten(T::DTYPE, &full(y)), Operand::unwritten(i64::DTYPE, leading)];
    Plan { args, rets, ..Plan::default() }
}

#[test]
fn a_missing_dimension_is_one() {
    for leading in [&[][..], &[2], &[2, 1]] {
        let batch: u8 = if leading.is_empty() { 1 } else { 2 };
        for (x, y, n) in [
            (&[3][..], &[2][..], 1_u8),
            (&[3, 1], &[2, 1], 1),
            (&[3, 2], &[2, 2], 2),
            (&[3, 0], &[2, 0], 0),
        ] {
            let mut plan = plan([leading, x, y], f64::from, i64::from);
            assert_eq!(execute(&mut plan), Ok(()), "{leading:?} {x:?}");
            let row =
                |problem: u8, row: u8| (0..n).map(move |i| f64::from((problem * 3 + row) * n + i));
            let expected: Vec<f64> = (0..batch).flat_map(|b| row(b, 2).chain(row(b, 0))).collect();
            assert_eq!(plan.rets[0].values::<f64>(), expected);
            assert!(plan.rets[1].values::<i64>().iter().all(|seen| *seen == n.into()));
        }
    }
    let forms = [&[][..], &[3], &[2]];
    assert_eq!(execute(&mut plan(forms, f32::from, i64::from)), Ok(()));
    assert_eq!(execute(&mut plan(forms, f64::from, i32::from)), Ok(()));
    assert_eq!(execute(&mut plan(forms, f32::from, i32::from)), Ok(()));
}

fn message(plan: &mut Plan) -> String {
    let Failure { code, message } = execute(plan).expect_err("a refusal");
    assert_eq!(code, 3);
    message
}

#[test]
fn operands_agree_on_what_is_missing() {
    for (x, y, text) in [
        (&[3][..], &[2, 1][..], "result 0 `y`: expected f64 [5, m=2], got f64 [5, 2, 1]"),
        (&[3, 1], &[2], "result 0 `y`: expected f64 [5, m=2, n=1], got f64 [5, 2]"),
        (&[3, 4], &[2, 3], "result 0 `y`: expected f64 [5, m=2, n=4], got f64 [5, 2, 3]"),
        (&[], &[2], "argument 1 `x`: expected f64 [5, k], got f64 [5]"),
        (&[3, 1, 1], &[2], "argument 1 `x`: expected f64 [5, k=1, n=1], got f64 [5, 3, 1, 1]"),
        (&[-1], &[2], "argument 1 `x`: expected f64 [5, k], got f64 [5, -1]"),
        (&[3, -1], &[2], "argument 1 `x`: expected f64 [5, k=3], got f64 [5, 3, -1]"),
        (&[3, -1], &[2, -1], "argument 1 `x`: expected f64 [5, k=3, n?], got f64 [5, 3, -1]"),
    ] {
        let said = message(&mut plan([&[5], x, y], f64::from, i64::from));
        assert!(said.starts_with("rows: ") && said.contains(text), "{x:?} {y:?}: {said}");
    }
}

#[test]
fn element_types_tell_the_signature() {
    let said = message(&mut plan([&[], &[3], &[2]], f64::from, u16::from));
    assert_eq!(said, "rows: argument 0 `chosen`: expected i32 or i64, got u16");
    let said = message(&mut plan([&[], &[3], &[2]], u16::from, i64::from));
    assert_eq!(said, "rows: argument 1 `x`: expected f32 or f64, got u16");
    let mut mixed = plan([&[], &[3], &[2]], f32::from, i64::from);
    mixed.rets[0] = Operand::unwritten(f64::DTYPE, &[2]);
    assert_eq!(message(&mut mixed), "rows: result 0 `y`: expected f32 [m=2], got f64 [2]");
    mixed.args.pop();
    let said = message(&mut mixed);
    assert!(said.starts_with("rows: expected 2 arguments (chosen, x), got 1"), "{said}");
}

/// The decoder accepts what the check accepts, and inference has the same shapes.
#[test]
fn decoder_check_and_inference_agree() {
    let sizes = [-1, 0, 1, 2];
    let mut shapes: Vec<Vec<i64>> = vec![vec![]];
    for rank in 0..3 {
        let longer: Vec<Vec<i64>> = (shapes.iter().filter(|shape| shape.len() == rank))
            .flat_map(|shape| sizes.map(|size| [&shape[..], &[size]].concat()))
            .collect();
        shapes.extend(longer);
    }
    let mut accepted = 0;
    for chosen in &shapes {
        for x in &shapes {
            for y in &shapes {
                let mut plan = Plan {
                    args: vec![Operand::new(chosen, |_| 0_i64), Operand::unwritten(f64::DTYPE, x)],
                    rets: vec![
                        Operand::unwritten(f64::DTYPE, y),
                        Operand::unwritten(i64::DTYPE, chosen.split_last().map_or(&[], |it| it.1)),
                    ],
                    ..Plan::default()
                };
                let decoded = plan.with_frame(&Host::new(), |frame| {
                    // SAFETY: the plan's frame.
                    Rows::<f64, i64>::decode(unsafe { Frame::new(frame) }).is_some()
                });
                let shape = |it: &Operand| Some(Shape { dtype: it.dtype, dims: it.dims.clone() });
                let args: Vec<_> = plan.args.iter().map(shape).collect();
                let rets: Option<Vec<_>> = Some(plan.rets.iter().map(shape).collect());
                let at = format!("{chosen:?} {x:?} {y:?}");
                let given = Given { args: args.clone(), rets, ..Given::default() };
                let checked = Rows::<f64, i64>::SIGNATURE.check(&given);
                assert_eq!(decoded, checked.is_ok(), "{at}: {checked:?}");
                let inferred = infer(RowsHandler::SIGNATURES, &Given { args, ..Given::default() });
                if let Ok(rets) = checked {
                    assert!(inferred.as_ref() == Ok(&rets) && rets[0].dims == *y, "{at}");
                    accepted += 1;
                }
            }
        }
    }
    assert!(accepted > 50, "{accepted}");
}
