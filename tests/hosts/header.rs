//! lapax.h declares what the library exports, and is C and C++ without a warning.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::plugin::{compiler, scratch};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The names `lapax_…` that stand just before an opening parenthesis, in lines that `chosen` takes.
fn functions(source: &str, chosen: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let lines = source.lines().filter(|line| chosen(line));
    let names = lines.filter_map(|line| {
        let (before, _) = line.split_once('(')?;
        let start = before.rfind(|it: char| !it.is_ascii_alphanumeric() && it != '_')?;
        before[start + 1..].starts_with("lapax_").then(|| before[start + 1..].to_owned())
    });
    names.collect()
}

#[test]
fn the_header_declares_every_export() {
    let text = |file: &str| fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    let files = ["exports.rs", "exports/register.rs", "exports/callback.rs", "exports/route.rs"];
    let source = files.map(|file| text(&format!("src/{file}"))).concat();
    let exported = functions(&source, |line| line.contains("extern \"C\" fn "));
    // Declarations begin in the first column; comments do not.
    let declared =
        functions(&text("python/lapax/include/lapax.h"), |line| !line.starts_with([' ', '/']));
    assert_eq!(declared, exported);
    assert!(exported.len() > 10, "{exported:?}");
}

#[test]
fn the_header_is_c_and_cpp() {
    let text = "#include \"lapax.h\"\nint main(void) { return lapax_target_count() == 0; }\n";
    for (name, standard) in [("header.c", "-std=c99"), ("header.cc", "-std=c++11")] {
        let file = scratch().join(name);
        fs::write(&file, text).unwrap();
        let Some(compiler) = compiler(name.ends_with(".cc")) else { continue };
        let done = Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
            .arg(Path::new(ROOT).join("python/lapax/include"))
            .arg(&file)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
