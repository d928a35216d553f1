//! The page of routes: which kernel serves each routine, on any processor.
//!
//! `LAPAX_BLESS=1 cargo test -p lapax-cpu --test routes` writes the page anew.

mod page;

use lapax_cpu::routes::{Kind, Routine, routines};

/// The largest order that is looked at: above it nothing changes.
const ORDERS: usize = 4200;

#[test]
fn the_page_shows_the_routes() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/routes.md");
    let text = page::text();
    if std::env::var_os("LAPAX_BLESS").is_some() {
        std::fs::write(path, &text)?;
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == text, "docs/routes.md is not what the routes say: LAPAX_BLESS=1 rewrites it");
    Ok(())
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = routines().map(|routine| routine.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn every_way_is_taken() {
    for routine in routines() {
        for way in routine.ways {
            let of_family =
                |other: &&Routine| std::ptr::eq(other.ways.as_ptr(), routine.ways.as_ptr());
            let taken = routines().filter(of_family).any(|routine| takes(routine, way.name));
            assert!(taken, "no sizes go by {} in the family of {}", way.name, routine.name);
        }
    }
}

/// Whether some call goes this way.
fn takes(routine: &Routine, name: &str) -> bool {
    page::KINDS.iter().any(|&kind| {
        page::BATCHES.clone().any(|batch| {
            page::shapes(routine)
                .iter()
                .any(|shape| (0..=ORDERS).any(|n| shape.way(routine, kind, batch, n).name == name))
        })
    })
}

#[test]
fn what_a_processor_has_is_on_the_page() {
    let [f32, f64] = [Kind::of::<f32>(), Kind::of::<f64>()];
    assert_eq!((f32.complex, f32.double, f64.double), (false, false, true));
    assert!(page::KINDS.contains(&f32) && page::KINDS.contains(&f64));
}
