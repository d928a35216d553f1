//! What can be said of the compiled kernels without a GPU: the images are whole, and each kernel keeps
//! its budget of registers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

use lapax_cuda::MODULES;

/// Registers of a thread: with 256 threads to a block, two blocks fit on every processor.
const REGISTERS: u32 = 128;
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

#[test]
fn kernels_keep_their_budget() {
    let mut kernels = 0;
    for module in MODULES {
        let mut name = "";
        for line in module.report.lines() {
            if let Some((_, entry)) = line.split_once("Function properties for ") {
                name = entry;
                kernels += 1;
            }
            let spilled = number_before(line, " bytes spill stores").unwrap_or(0);
            assert!(spilled <= SPILLED, "{}: {name} spills {spilled} bytes", module.name);
            let registers = number_before(line, " registers").unwrap_or(0);
            assert!(registers <= REGISTERS, "{}: {name} has {registers} registers", module.name);
        }
        assert!(!name.is_empty(), "{}: no report of ptxas", module.name);
    }
    println!("{kernels} kernels, over all architectures");
}
