//! Right calls: every signature, every combination of codes, any leading dimensions, shared memory
//! or not.

use xla_ffi::DataType;
use xla_ffi::fake::Host;

use crate::case::{SMALL, Variant, bytes, variants, width};
use crate::plan::{Operand, UNWRITTEN};

const LEADING: [&[i64]; 5] = [&[], &[2], &[2, 3], &[2, 1, 3], &[1]];

#[test]
fn right_calls_succeed_and_shared_memory_changes_nothing() {
    variants().for_each(|variant| check(&variant));
}

/// Sizes of `cuhybrid_geqp3` that the user's table of choices gives to the host.
#[cfg(feature = "cuda")]
#[test]
fn what_the_table_of_choices_gives_to_the_host_is_right() {
    const VARIABLE: &str = "LAPAX_GPU_CHOICES";
    const NAME: &str = "cuhybrid_geqp3";
    if std::env::var_os(VARIABLE).is_some() {
        let waits = || lapax_cuda_fake::driver::state().waits;
        for variant in variants().filter(|variant| variant.target.name == NAME) {
            let before = waits();
            check(&variant);
            assert!(waits() > before, "{}: the host waits for the device", variant.label());
        }
        return;
    }
    // A process reads the table once.
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("geqp3_by_the_host.json");
    let table = r#"[{"ops": ["geqp3"], "gpu": "any", "batches": 0, "alone": 0}]"#;
    std::fs::write(&file, table).unwrap();
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    let test = "right::what_the_table_of_choices_gives_to_the_host_is_right";
    let outcome = process.args([test, "--exact"]).env(VARIABLE, &file).output().unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(outcome.status.success() && text.contains("1 passed"), "{text}");
}

fn check(variant: &Variant) {
    for leading in LEADING {
        for case in variant.cases(leading, SMALL) {
            let at = format!("{} {leading:?} {:?}", variant.label(), case.plan.attrs);
            let before: Vec<Vec<u8>> = case.plan.args.iter().map(bytes).collect();
            let mut apart = case.clone();
            let results = apart.results(&Host::new());
            let after: Vec<Vec<u8>> = apart.plan.args.iter().map(bytes).collect();
            assert_eq!(before, after, "an argument changed: {at}");
            for (operand, ret) in apart.plan.rets.iter().zip(variant.signature.rets) {
                check_result(operand, ret.name, &format!("{at} {}", ret.name));
            }
            let mut shared = case.clone();
            shared.plan.shared = case.aliases();
            assert_eq!(shared.results(&Host::new()), results, "shared: {at}");
            // One pair at a time, where there are several.
            for pair in case.aliases() {
                let mut shared = case.clone();
                shared.plan.shared = vec![pair];
                assert_eq!(shared.results(&Host::new()), results, "shared {pair:?}: {at}");
            }
        }
    }
}

/// Every element was written, no number is NaN or infinite, and `info` is 0.
pub(crate) fn check_result(operand: &Operand, name: &str, at: &str) {
    let pattern = [UNWRITTEN; 2].map(u64::to_ne_bytes).concat();
    let width = width(operand.dtype);
    let bytes = bytes(operand);
    for element in bytes.chunks_exact(width) {
        assert_ne!(element, &pattern[..width], "unwritten: {at}");
        let finite = match operand.dtype {
            DataType::F32 | DataType::C64 => element
                .chunks_exact(4)
                .all(|x| f32::from_ne_bytes(x.try_into().unwrap()).is_finite()),
            DataType::F64 | DataType::C128 => element
                .chunks_exact(8)
                .all(|x| f64::from_ne_bytes(x.try_into().unwrap()).is_finite()),
            _ => true,
        };
        assert!(finite, "not a number: {at}");
        assert!(name != "info" || element.iter().all(|byte| *byte == 0), "info is not 0: {at}");
    }
}
