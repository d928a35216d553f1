//! Which library is called: the one that was asked for, and no other behind its name; and what it takes.

use lapax_cpu::lapack::{Width, cholesky, library, lu};
use lapax_cpu::{Error, Serial, Uplo};
use num_complex::Complex;

use crate::sample::{at, positive, say};

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

/// OpenBLAS takes 528 KiB of stack for each level of its recursion, and has five in matrices of this order.
#[test]
fn a_small_stack_is_enough() {
    const SMALL: usize = 256 << 10;
    const N: usize = 600;
    let factored = || {
        let mut a = positive::<Complex<f64>>(N);
        let (mut pivots, mut info) = (vec![0; N], [-1, -1]);
        let [lu_info, cholesky_info] = info.each_mut().map(std::slice::from_mut);
        lu::getrf(1, N, N, at(&mut a.clone()), &mut pivots, lu_info, &Serial)?;
        cholesky::potrf(Uplo::Lower, 1, N, at(&mut a), cholesky_info, &Serial)?;
        Ok::<_, Error>(info)
    };
    let thread = std::thread::Builder::new().stack_size(SMALL).spawn(factored);
    let info = thread.ok().and_then(|thread| thread.join().ok());
    assert_eq!(info, Some(Ok([0, 0])));
}
