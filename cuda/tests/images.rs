//! What can be said of the compiled kernels without a GPU: the images are whole, and each kernel keeps
//! its budget of registers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

use lapax_cuda::MODULES;

/// Registers of a thread: with 256 threads to a block, two blocks fit on every processor.
const REGISTERS: u32 = 128;
/// The same where threads hold matrices: three blocks of 128 fit.
const REGISTERS_OF_A_HOLDER: u32 = 168;
/// Bytes that a thread may keep in memory for want of registers: a few words around a loop, not in it.
const SPILLED: u32 = 32;

#[test]
fn images_are_whole_and_aligned() {
    const FATBIN: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
    const HEADER: u64 = 16;
    if MODULES.is_empty() {
        println!("skipped: this build has no CUDA kernels (no nvcc)");
    }
    let mut bytes = 0;
    for module in MODULES {
        let image = module.image();
        assert_eq!(image[..4], FATBIN, "{}", module.name);
        assert!(image.as_ptr().cast::<[u64; 2]>().is_aligned(), "{}", module.name);
        let rest = u64::from_le_bytes(image[8..16].try_into().unwrap());
        assert_eq!(rest + HEADER, u64::try_from(image.len()).unwrap(), "{}", module.name);
        bytes += image.len();
    }
    println!("{} modules, {bytes} bytes", MODULES.len());
}

/// The number in front of a word of ptxas's report, which may have several in a line.
fn number_before(line: &str, what: &str) -> Option<u32> {
    line.split(what)
        .next()
        .filter(|start| start.len() < line.len())?
        .split(' ')
        .rev()
        .find_map(|word| word.parse().ok())
}

/// What ptxas says of a kernel for one architecture.
struct Report {
    kernel: &'static str,
    architecture: &'static str,
    registers: u32,
    stack: u32,
    spilled: u32,
}

fn reports() -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    let mut architecture = "";
    for line in MODULES.iter().flat_map(|module| module.report.lines()) {
        if let Some((_, after)) = line.split_once("' for '") {
            architecture = after.trim_end_matches('\'');
        }
        if let Some((_, kernel)) = line.split_once("Function properties for ") {
            let (registers, stack, spilled) = (0, 0, 0);
            reports.push(Report { kernel, architecture, registers, stack, spilled });
        }
        let Some(report) = reports.last_mut() else { continue };
        report.stack = number_before(line, " bytes stack frame").unwrap_or(report.stack);
        report.spilled = number_before(line, " bytes spill stores").unwrap_or(report.spilled);
        report.registers = number_before(line, " registers").unwrap_or(report.registers);
    }
    reports
}

/// Whether a kernel has matrices in registers: `family_order_type`.
fn holds_matrices(kernel: &str) -> bool {
    let order = kernel.rsplit('_').nth(1);
    order.is_some_and(|order| order.parse::<u32>().is_ok())
}

/// An array that is indexed by what the compiler does not know is in memory, as a stack frame.
#[test]
fn small_matrices_of_real_numbers_stay_in_registers() {
    let real = |kernel: &str| kernel.ends_with("_f32") || kernel.ends_with("_f64");
    for report in reports().iter().filter(|it| real(it.kernel) && holds_matrices(it.kernel)) {
        let Report { kernel, architecture, stack, spilled, .. } = report;
        assert_eq!((*stack, *spilled), (0, 0), "{kernel} for {architecture}");
    }
}

/// `LAPAX_BLESS=1` writes the file anew, where kernels are compiled as `make test` does, for sm_90 alone.
#[test]
fn registers_are_those_of_the_golden_file() {
    let mut reports = reports();
    if reports.is_empty() || reports.iter().any(|report| report.architecture != "sm_90") {
        println!("skipped: the kernels are not compiled for sm_90 alone (LAPAX_CUDA_ARCHS=90)");
        return;
    }
    reports.sort_by_key(|report| report.kernel);
    let mut text =
        String::from("# Of each kernel for sm_90: registers, bytes of stack, bytes spilled.\n");
    for Report { kernel, registers, stack, spilled, .. } in reports {
        text += &format!("{kernel} {registers} {stack} {spilled}\n");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/registers.golden");
    if std::env::var_os("LAPAX_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let changed: Vec<&str> =
        text.lines().filter(|line| !golden.lines().any(|it| it == *line)).collect();
    assert!(text == golden, "not as in {path}, from LAPAX_BLESS=1: {changed:?}");
}

#[test]
fn kernels_keep_their_budget() {
    let reports = reports();
    for report in &reports {
        let Report { kernel, architecture, registers, spilled, .. } = report;
        let most = if holds_matrices(kernel) { REGISTERS_OF_A_HOLDER } else { REGISTERS };
        assert!(*spilled <= SPILLED, "{kernel} for {architecture} spills {spilled} bytes");
        assert!(*registers <= most, "{kernel} for {architecture} has {registers} registers");
    }
    for module in MODULES {
        assert!(!module.report.is_empty(), "{}: no report of ptxas", module.name);
    }
    println!("{} kernels, over all architectures", reports.len());
}
