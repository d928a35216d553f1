//! Which library is called.

use std::path::PathBuf;

use super::integers::Width;

/// The LAPACK library that this process calls.
#[derive(Clone, Debug)]
pub struct Library {
    /// The file that holds its factorisations; `None` where the system does not tell. lapax's own
    /// file, or the program's, where the library is linked statically.
    pub lapack: Option<PathBuf>,
    /// The file that holds the BLAS.
    pub blas: Option<PathBuf>,
    /// The width of its integers.
    pub integers: Width,
}

/// The library that is called.
pub fn library() -> Library {
    let lapack = lapack_sys::dgetrf_ as *const ();
    let blas = crate::lapack::raw::dtrsm();
    Library {
        lapack: file_at(lapack.addr()),
        blas: file_at(blas.addr()),
        integers: Width::of_library(),
    }
}

/// The file that is mapped at an address, from Linux's list of this process's mappings.
fn file_at(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let bound = |text| usize::from_str_radix(text, 16).ok();
        let mapped = bound(start)?..bound(end)?;
        // Permissions, offset, device and inode come before the path, which may hold spaces.
        let path = rest.find('/').map(|at| PathBuf::from(&rest[at..]));
        if mapped.contains(&address) { path } else { None }
    })
}
