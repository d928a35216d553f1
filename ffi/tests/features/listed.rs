//! docs/ffi-features.md names tests that exist.

use std::path::Path;

#[test]
fn the_table_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !root.join("../Cargo.toml").is_file() {
        eprintln!("skipped: the table is in the repository, and this is the package");
        return;
    }
    let table = std::fs::read_to_string(root.join("../docs/ffi-features.md")).unwrap();
    let mut named = 0;
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cell = line.trim_end_matches('|').rsplit('|').next().unwrap();
        for test in cell.split('`').skip(1).step_by(2) {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("no test: {test}"));
            let path = root.join("..").join(file);
            let source = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{file}"));
            let case = path.with_extension("").join(name).with_extension("stderr");
            assert!(source.contains(&format!("fn {name}(")) || case.is_file(), "{test}");
            named += 1;
        }
    }
    assert!(named > 30, "only {named} tests are named");
}
