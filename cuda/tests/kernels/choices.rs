//! Which kernel serves a call follows from the table of choices, of which the user's rows are the last.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use lapax_core::Uplo;
use lapax_cuda::{Error, Kind, cholesky};
use lapax_cuda_fake::driver;

use crate::device::{device, gpu, in_out, output};

const VARIABLE: &str = "LAPAX_GPU_CHOICES";

/// Factors identities, and whether the own kernel did so.
fn is_own(n: usize, batch: usize) -> Result<bool, Error> {
    let launches = || driver::state().launches.get("potrf_f64").copied();
    let mut a: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at % (n + 1) == 0))).collect();
    a = a.repeat(batch);
    let (mut info, before) = (vec![-1; batch], launches());
    cholesky::potrf(&gpu(), Uplo::Lower, batch, n, in_out(None, &mut a), output(&mut info))?;
    assert_eq!(info, vec![0; batch]);
    Ok(launches() != before)
}

/// Whether this test passes in a process whose table this is.
fn passes(test: &str, table: &str) -> bool {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.json"));
    fs::write(&file, table).unwrap();
    let mut process = Command::new(env::current_exe().unwrap());
    let name = format!("choices::{test}");
    let outcome = process.args([&name, "--exact"]).env(VARIABLE, &file).output().unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(text.contains("1 passed") || !outcome.status.success(), "{text}");
    outcome.status.success()
}

#[test]
fn a_row_of_the_user_moves_the_border() {
    let Some(_device) = device() else { return };
    if env::var_os(VARIABLE).is_some() {
        let served = [(5, 1), (6, 1), (9, 2), (10, 2)].map(|(n, batch)| is_own(n, batch).unwrap());
        assert_eq!(served, [true, false, true, false]);
        return;
    }
    assert!(passes(
        "a_row_of_the_user_moves_the_border",
        r#"[{"ops": ["potrf"], "gpu": "9.0", "batches": 9, "alone": 5},
            {"ops": ["potrf"], "gpu": "8.0", "batches": 0, "alone": 0}]"#
    ));
    let served = [(128, 1), (129, 1), (129, 2)].map(|(n, batch)| is_own(n, batch).unwrap());
    assert_eq!(served, [true, false, true]);
}

#[test]
fn a_file_that_is_no_table_is_an_error_of_the_call() {
    let Some(_device) = device() else { return };
    if env::var_os(VARIABLE).is_some() {
        let error = is_own(3, 2).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
        assert!(error.message().starts_with("LAPAX_GPU_CHOICES: "), "{error}");
        assert!(error.message().ends_with("expected a JSON array of rows"), "{error}");
        return;
    }
    assert!(passes("a_file_that_is_no_table_is_an_error_of_the_call", "{}"));
}
