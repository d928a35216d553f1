//! Which library is called: the one that was asked for, and no other behind its name.

use lapax_cpu::lapack::{Width, library};

use crate::sample::say;

#[test]
fn reference_is_not_another_library() {
    let library = library();
    if !cfg!(lapax_reference) {
        say(&format!("not built with LAPAX_LAPACK=reference, but for {library:?}"));
        return;
    }
    let program = std::env::current_exe().ok();
    assert_eq!((library.lapack, library.blas), (program.clone(), program), "linked statically");
    let wide = if cfg!(lapax_reference64) { Width::Bits64 } else { Width::Bits32 };
    assert_eq!(library.integers, wide);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = maps.lines().filter_map(|line| line.rsplit_once('/'));
    let others: Vec<_> = (files.map(|(_, file)| file))
        .filter(|file| {
            ["blas", "lapack", "mkl"].iter().any(|name| {
                file.starts_with(&format!("lib{name}"))
                    || file.starts_with(&format!("libopen{name}"))
            })
        })
        .collect();
    assert!(others.is_empty(), "mapped besides: {others:?}");
}
