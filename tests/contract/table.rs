//! The table of targets: the golden list, names, and what every row must have.

use std::collections::HashSet;

use lapax::{ops, targets};
use xla_ffi::DataType;

use crate::case::variants;

#[test]
fn the_list_of_targets_is_the_golden_one() {
    let mut lines: Vec<String> = targets()
        .map(|(_, target)| format!("{} {}\n", target.platform.name(), target.name))
        .collect();
    lines.sort();
    let text = lines.concat();
    assert_eq!(crate::golden("targets.golden", &text), text, "LAPAX_BLESS=1 rewrites the file");
}

#[test]
fn no_name_is_listed_twice() {
    let mut seen = HashSet::new();
    for (_, target) in targets() {
        assert!(seen.insert((target.platform.name(), target.name)), "{} twice", target.name);
    }
    let mut seen = HashSet::new();
    for op in ops() {
        assert!(seen.insert(op.name), "{} twice", op.name);
    }
}

/// `lapack_` + precision letter + operation + `_ffi`, the letter being that of the element type;
/// symmetric and orthogonal become Hermitian and unitary.
#[test]
fn lapack_names_tell_the_element_type() {
    let mut found = 0;
    for variant in variants().filter(|variant| variant.target.name.starts_with("lapack_")) {
        let (letter, complex) = match variant.dtype() {
            DataType::F32 => ("s", false),
            DataType::F64 => ("d", false),
            DataType::C64 => ("c", true),
            DataType::C128 => ("z", true),
            other => panic!("LAPACK has no letter for {other}"),
        };
        // A routine whose results differ for complex numbers is an operation of its own.
        let op = variant.op.name.trim_end_matches("_complex");
        let routine = match (op.split_at_checked(2), complex) {
            (Some(("sy", rest)), true) => format!("he{rest}"),
            (Some(("or", rest)), true) => format!("un{rest}"),
            _ => op.to_owned(),
        };
        let name = format!("lapack_{letter}{routine}_ffi");
        assert_eq!(variant.target.name, name);
        assert_eq!(variant.target.signatures.len(), 1, "{name} has one element type");
        found += 1;
    }
    assert!(found >= 12);
}

#[test]
fn every_target_has_what_users_need() {
    for (op, target) in targets() {
        assert!(target.handler.is_some(), "{} has no handler", target.name);
        assert!(!target.signatures.is_empty(), "{} accepts nothing", target.name);
        let first = op.doc.lines().next().unwrap_or_default().trim();
        assert!(first.len() > 20 && first.ends_with('.'), "{}: {first:?} is no sentence", op.name);
        assert!(!op.family.is_empty());
        let dtypes = |it: &&xla_ffi::Signature| it.args.iter().map(|arg| arg.dtype).collect();
        let dtypes: HashSet<Vec<_>> = target.signatures.iter().map(dtypes).collect();
        assert_eq!(dtypes.len(), target.signatures.len(), "{}: a type twice", target.name);
        for signature in target.signatures {
            let first = target.signatures[0];
            let names = |operands: &[xla_ffi::Operand]| -> Vec<(&str, Vec<usize>, bool)> {
                operands.iter().map(|it| (it.name, it.dims.to_vec(), it.optional)).collect()
            };
            // Names and shapes do not depend on the element type.
            assert_eq!(names(signature.args), names(first.args), "{}", target.name);
            assert_eq!(names(signature.rets), names(first.rets), "{}", target.name);
        }
    }
}

/// A handler announces the version of its host, and whether it may be captured.
#[test]
fn every_handler_answers_the_metadata_query() {
    for (_, target) in targets() {
        let host = xla_ffi::fake::Host::new();
        let metadata = host.metadata(target.handler, true);
        assert_eq!(metadata.version, xla_ffi::API_VERSION);
        assert_eq!(metadata.traits, u32::from(target.captured), "{}", target.name);
        assert_eq!(host.metadata(target.handler, false).version, (0, 1));
    }
}
