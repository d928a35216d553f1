//! The library's tests of what is not public (`lapax_cpu::trials`), each by its path.

use libtest_mimic::{Arguments, Failed, Trial, run};

fn main() {
    let trials = lapax_cpu::trials::trials().into_iter().map(|(name, trial)| {
        let name = name.trim_start_matches("lapax_cpu::");
        Trial::test(name, move || trial().map_err(Failed::from))
    });
    run(&Arguments::from_args(), trials.collect()).exit();
}
