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
/// The architectures of the golden file: A100, H100 and H200, B200.
const GOLDEN: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

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

/// What ptxas says of a kernel for one architecture, and the threads that a block of it may have.
#[derive(Debug)]
struct Report {
    kernel: &'static str,
    architecture: &'static str,
    threads: u32,
    registers: u32,
    stack: u32,
    spilled: u32,
    shared: u32,
}

impl Report {
    /// That of the golden file.
    fn line(&self) -> String {
        let Self { kernel, architecture, threads, registers, stack, spilled, shared } = self;
        let warps = self.warps();
        format!("{kernel} {architecture}: {threads} {registers} {stack} {spilled} {shared} {warps}")
    }

    /// Warps of full blocks that a multiprocessor holds at a time, as far as registers and what shared memory
    /// the kernel has of its own decide; what a launch asks for comes on top. The limits are those of
    /// the CUDA C++ programming guide for compute capabilities 8.0, 9.0 and 10.0.
    fn warps(&self) -> u32 {
        const WARPS: u32 = 64;
        const BLOCKS: u32 = 32;
        /// Each of the four parts of a multiprocessor has its own, given out to warps in pieces.
        const REGISTERS_OF_A_PART: u32 = 16_384;
        const PIECE: u32 = 256;
        let shared_memory = if self.architecture == "sm_80" { 164 } else { 228 } * 1024;
        /// What the system takes of it for each block.
        const RESERVED: u32 = 1024;
        let of_a_block = self.threads.div_ceil(32);
        let of_a_warp = (self.registers * 32).next_multiple_of(PIECE);
        let warps = WARPS.min(4 * (REGISTERS_OF_A_PART / of_a_warp));
        let blocks = BLOCKS.min(warps / of_a_block).min(shared_memory / (self.shared + RESERVED));
        blocks * of_a_block
    }
}

fn reports() -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    let mut architecture = "";
    for line in MODULES.iter().flat_map(|module| module.report.lines()) {
        if let Some((_, after)) = line.split_once("' for '") {
            architecture = after.trim_end_matches('\'');
        }
        if let Some((_, kernel)) = line.split_once("Function properties for ") {
            let (threads, registers, stack, spilled, shared) = (0, 0, 0, 0, 0);
            let report =
                Report { kernel, architecture, threads, registers, stack, spilled, shared };
            reports.push(report);
        }
        if let Some((kernel, after)) = line.split_once(": at most ") {
            let threads = number_before(after, " threads in a block").unwrap();
            let all = reports.iter_mut().filter(|report| report.kernel == kernel);
            all.for_each(|report| report.threads = threads);
        }
        let Some(report) = reports.last_mut() else { continue };
        report.stack = number_before(line, " bytes stack frame").unwrap_or(report.stack);
        report.spilled = number_before(line, " bytes spill stores").unwrap_or(report.spilled);
        report.registers = number_before(line, " registers").unwrap_or(report.registers);
        report.shared = number_before(line, " bytes smem").unwrap_or(report.shared);
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
fn kernels_of_small_real_matrices_stay_in_registers() {
    let real = |kernel: &str| kernel.ends_with("_f32") || kernel.ends_with("_f64");
    let small = |kernel: &str| holds_matrices(kernel) || kernel.contains("_warp_");
    for report in reports().iter().filter(|it| real(it.kernel) && small(it.kernel)) {
        let Report { kernel, architecture, stack, spilled, .. } = report;
        assert_eq!((*stack, *spilled), (0, 0), "{kernel} for {architecture}");
    }
}

/// Those of the golden file that this build has: `make test` compiles for sm_90 alone, a wheel for all.
/// `LAPAX_BLESS=1 make test-images` writes the file anew.
#[test]
fn resources_are_those_of_the_golden_file() {
    let mut reports = reports();
    reports.retain(|report| GOLDEN.contains(&report.architecture));
    if reports.is_empty() {
        println!("skipped: no kernel is compiled for one of {GOLDEN:?}");
        return;
    }
    reports.sort_by_key(|report| (report.kernel, report.architecture.len(), report.architecture));
    let lines: Vec<String> = reports.iter().map(Report::line).collect();
    let compiled: Vec<&str> = GOLDEN
        .into_iter()
        .filter(|it| reports.iter().any(|report| report.architecture == *it))
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resources.golden");
    if std::env::var_os("LAPAX_BLESS").is_some() {
        assert_eq!(compiled, GOLDEN, "the file is written by `LAPAX_BLESS=1 make test-images`");
        let title = "# kernel architecture: threads of a block at most, registers, bytes of stack, bytes \
                     spilled, bytes of shared memory but for what a launch asks for, warps of 64 at a time.\n";
        std::fs::write(path, format!("{title}{}\n", lines.join("\n"))).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let expected: Vec<&str> = golden
        .lines()
        .filter(|line| compiled.iter().any(|it| line.contains(&format!(" {it}: "))))
        .collect();
    let changed: Vec<&String> =
        lines.iter().filter(|line| !expected.contains(&line.as_str())).collect();
    assert!(
        lines == expected,
        "not as in {path}, from LAPAX_BLESS=1 make test-images: {changed:?}"
    );
    println!("{} lines for {compiled:?}", lines.len());
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
