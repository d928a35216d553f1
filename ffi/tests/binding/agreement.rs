//! The decoder and `Signature::check` are written apart from each other and must say the same.

use xla_ffi::fake::{Attr, Host};
use xla_ffi::{Call, DataType, Frame, Given};

use crate::plan::{Operand, Plan};
use crate::sample::{SIZES, Sample, Sizes, right, usual};

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// (the decoder accepts, check accepts).
fn verdicts(plan: &mut Plan) -> (bool, bool) {
    plan.with_frame(&Host::new(), |frame| {
        // SAFETY: the plan's frame, whose operands have their memory or are refused.
        let frame = unsafe { Frame::new(frame) };
        let checked = Sample::<f32>::SIGNATURE.check(&Given::from_frame(frame));
        (Sample::<f32>::decode(frame).is_some(), checked.is_ok())
    })
}

const TYPES: [DataType; 4] = [DataType::F32, DataType::I64, DataType::I32, DataType::U8];

/// One change that may or may not matter.
fn perturb(plan: &mut Plan, random: &mut Random) {
    let arg = random.below(2) == 0;
    let list = if arg { &mut plan.args } else { &mut plan.rets };
    let index = random.below(list.len().max(1));
    let dtype = random.pick(&TYPES);
    match random.below(8) {
        0 => list.truncate(index),
        1 => list.push(Operand::unwritten(dtype, &[2])),
        2 => {
            let dims = list.get(index).map(|operand| operand.dims.clone()).unwrap_or_default();
            list.get_mut(index).into_iter().for_each(|it| *it = Operand::unwritten(dtype, &dims));
        }
        3 | 4 => {
            let Some(operand) = list.get_mut(index) else { return };
            let mut dims = operand.dims.clone();
            match (random.below(4), dims.len()) {
                (0, _) => dims.insert(0, random.pick(&[0, 1, 2])),
                (1, _) => drop(dims.pop()),
                (_, 0) => {}
                (_, rank) => dims[random.below(rank)] = random.pick(&[0, 1, 2, 3, 4, 5, 6]),
            }
            *operand = Operand::unwritten(operand.dtype, &dims);
        }
        5 => {
            let name = random.pick(&plan.attrs).0;
            plan.unset(&name);
        }
        6 => {
            let names = ["size", "side", "note", "mode", "flag", "zone", "aaa", "perm", "int32"];
            let (name, value) = (random.pick(&names), random.pick(&values()));
            plan.set(name, value);
        }
        _ => drop(plan.shared.pop()),
    }
}

fn values() -> [Attr; 10] {
    [
        Attr::Bool(true),
        Attr::U8(b'L'),
        Attr::U8(b'Q'),
        Attr::I32(4),
        Attr::I32(2),
        Attr::I64(4),
        Attr::String("text".to_owned()),
        Attr::String("täxt".to_owned()),
        Attr::I64s(vec![1]),
        Attr::I32s(vec![]),
    ]
}

#[test]
fn decoder_and_check_agree_on_perturbed_calls() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut accepted = 0;
    for round in 0..6000 {
        let leading = random.pick(&[&[][..], &[2], &[2, 1], &[0]]);
        let (m, n) = (random.pick(&[0, 1, 2, 4]), random.pick(&[0, 1, 3, 4]));
        let sizes = Sizes { leading, m, n, p: random.pick(&[3, 4, 5]) };
        let mut plan = right(sizes, f32::from);
        for _ in 0..random.below(3) {
            perturb(&mut plan, &mut random);
        }
        let (decoded, checked) = verdicts(&mut plan);
        assert_eq!(decoded, checked, "round {round}: {plan:?}");
        accepted += u32::from(decoded);
    }
    assert!((1500..4500).contains(&accepted), "both answers are frequent: {accepted} of 6000");
}

/// Element counts at the edge of what a slice can hold: n = 1 and m as given, without memory.
#[test]
fn decoder_and_check_agree_on_huge_empty_operands() {
    let huge = [1 << 31, 1 << 40, 1 << 58, 1 << 59, 1 << 60, 1 << 61, 1 << 62, i64::MAX];
    for m in huge {
        for leading in [&[][..], &[0], &[0, i64::MAX], &[i64::MAX, 0], &[m, 0]] {
            for n in [0, 1] {
                // A slice of such a size over no memory would not be sound: only empty ones are
                // made.
                if n == 1 && !leading.contains(&0) {
                    continue;
                }
                let mut plan = right(SIZES, f32::from);
                let own: [&[i64]; 6] = [&[m, n], &[n], &[m, n], &[n], &[5], &[]];
                let operands = plan.args.iter_mut().chain(&mut plan.rets);
                for (operand, own) in operands.zip(own) {
                    let dims = [leading, own].concat();
                    *operand = if dims.contains(&0) {
                        Operand::dangling(operand.dtype, &dims)
                    } else {
                        Operand::unwritten(operand.dtype, &dims)
                    };
                }
                let (decoded, checked) = verdicts(&mut plan);
                assert_eq!(decoded, checked, "leading {leading:?}, m = {m}, n = {n}");
            }
        }
    }
    assert_eq!(verdicts(&mut usual()), (true, true));
}

/// The largest slices: no memory lies behind them, so they are refused by their type only.
#[test]
fn check_refuses_what_no_slice_can_hold_and_nothing_else() {
    let signature = Sample::<f32>::SIGNATURE;
    for (m, fits) in [((1_i64 << 61) - 1, true), (1 << 61, false), (i64::MAX, false)] {
        let message = usual().with_frame(&Host::new(), |frame| {
            // SAFETY: the plan's frame.
            let mut given = Given::from_frame(unsafe { Frame::new(frame) });
            let own: [&[i64]; 6] = [&[m, 1], &[1], &[m, 1], &[1], &[5], &[]];
            let rets = given.rets.iter_mut().flatten();
            for (shape, own) in given.args.iter_mut().chain(rets).flatten().zip(own) {
                shape.dims = own.to_vec();
            }
            signature.check(&given).err().map(|mismatches| mismatches.join("; "))
        });
        let got = message.as_deref().unwrap_or("accepted");
        assert_eq!(got == "accepted", fits, "f32 [{m}, 1]: {got}");
    }
}
