//! The routes of all routines as a page of Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use lapax_cpu::routes::{Kind, Routine, Way, routines};

use crate::ORDERS;

/// Every kind of numbers with every kind of registers: none, and of 16, 32 and 64 bytes.
pub(crate) const KINDS: [Kind; 16] = {
    let mut kinds = [Kind { complex: false, double: false, lanes: 1 }; 16];
    let mut i = 0;
    while i < 16 {
        let double = i & 1 == 1;
        let lanes = if i / 4 == 0 { 1 } else { (2 << (i / 4)) >> double as usize };
        kinds[i] = Kind { complex: i & 2 == 2, double, lanes };
        i += 1;
    }
    kinds
};

/// The batches that are looked through: none is told from a larger one.
pub(crate) const BATCHES: RangeInclusive<usize> = 1..=40;

/// The most sizes that a routine has.
const MOST_SIZES: usize = 4;

/// The orders up to which each is looked at; above, one in so many, and all between two that differ.
const EACH: usize = 640;
const STEP: usize = 20;

/// How the sizes of a matrix follow from its order.
pub(crate) struct Shape {
    pub(crate) name: String,
    factors: Vec<Factor>,
}

/// One size: the order, a multiple of it, or a constant.
#[derive(Clone, Copy)]
enum Factor {
    Times(usize),
    Constant(usize),
}

impl Shape {
    /// The way of order n.
    pub(crate) fn way(
        &self,
        routine: &Routine,
        kind: Kind,
        batch: usize,
        n: usize,
    ) -> &'static Way {
        let mut sizes = [0; MOST_SIZES];
        for (size, factor) in sizes.iter_mut().zip(&self.factors) {
            *size = match *factor {
                Factor::Times(factor) => factor * n,
                Factor::Constant(size) => size,
            };
        }
        routine.way(kind, batch, &sizes[..self.factors.len()])
    }
}

/// The shapes that are shown of a routine.
pub(crate) fn shapes(routine: &Routine) -> Vec<Shape> {
    use Factor::{Constant, Times};
    let shape =
        |name: &str, factors: &[Factor]| Shape { name: name.into(), factors: factors.into() };
    match routine.sizes {
        ["n"] => vec![shape("n × n", &[Times(1)])],
        ["n", "nrhs"] => vec![
            shape("one right-hand side", &[Times(1), Constant(1)]),
            shape("n right-hand sides", &[Times(1), Times(1)]),
        ],
        ["lower", "upper", "n", "nrhs"] => vec![
            shape("diagonal", &[Constant(0), Constant(0), Times(1), Constant(1)]),
            shape("tridiagonal", &[Constant(1), Constant(1), Times(1), Constant(1)]),
            shape("five diagonals", &[Constant(2), Constant(2), Times(1), Constant(1)]),
            shape(
                "five diagonals, n right-hand sides",
                &[Constant(2), Constant(2), Times(1), Times(1)],
            ),
        ],
        ["beside", "n"] => vec![
            shape("tridiagonal", &[Constant(1), Times(1)]),
            shape("five diagonals", &[Constant(2), Times(1)]),
        ],
        ["beside", "n", "nrhs"] => vec![
            shape("diagonal", &[Constant(0), Times(1), Constant(1)]),
            shape("tridiagonal", &[Constant(1), Times(1), Constant(1)]),
            shape("five diagonals", &[Constant(2), Times(1), Constant(1)]),
            shape("five diagonals, n right-hand sides", &[Constant(2), Times(1), Times(1)]),
        ],
        ["m", "n"] => vec![
            shape("n × n", &[Times(1), Times(1)]),
            shape("20n × n", &[Times(20), Times(1)]),
            shape("n × 20n", &[Times(1), Times(20)]),
        ],
        ["m", "t"] => vec![
            shape("n of n", &[Times(1), Times(1)]),
            shape("n of 20n rows", &[Times(20), Times(1)]),
        ],
        ["r", "others", "p", "t"] => vec![
            shape("one column", &[Times(1), Constant(1), Times(1), Times(1)]),
            shape("n columns", &[Times(1), Times(1), Times(1), Times(1)]),
        ],
        ["n", "active"] => vec![
            shape("all of it", &[Times(1), Times(1)]),
            shape("half of it", &[Times(2), Times(1)]),
        ],
        sizes => panic!("no shapes are known for {sizes:?}: add them here"),
    }
}

/// The page.
pub(crate) fn text() -> String {
    let mut page = String::from(HEAD);
    for routine in routines() {
        let _ = write!(page, "\n## {}\n\n", routine.name);
        page += "| matrices | numbers | registers | batch | kernel by order n |\n|---|---|---|---|---|\n";
        let mut used = Vec::new();
        for shape in shapes(routine) {
            for Row { numbers, registers, batches, ladder } in rows(routine, &shape) {
                let name = &shape.name;
                let _ =
                    writeln!(page, "| {name} | {numbers} | {registers} | {batches} | {ladder} |");
                used.extend(routine.ways.iter().filter(|way| ladder.contains(way.name)));
            }
        }
        page.push('\n');
        for way in routine.ways.iter().filter(|way| used.contains(way)) {
            let _ = writeln!(page, "- `{}`: {}", way.name, way.what());
        }
    }
    page
}

const HEAD: &str = "<!-- LAPAX_BLESS=1 cargo test -p lapax-cpu --test routes -->

# Which kernel serves a call

The choice that `route.rs` of each family in `cpu/src` makes, of the type, the sizes and the batch alone; a row holds
for all numbers, registers and batches that it names. `getrf` and its like take matrices by columns, as LAPACK does,
`lu` and its like by rows, as JAX does. `python -m lapax route NAME TYPE SIZES --batch COUNT` says it for one call on
the machine it runs on.
";

struct Row {
    numbers: String,
    registers: String,
    batches: String,
    ladder: String,
}

/// Batches, and the ladder that they go by.
type Ladder = (String, String);

/// The ladders of a shape, each with all calls that go by it.
fn rows(routine: &Routine, shape: &Shape) -> Vec<Row> {
    // Batches with the same ladder for one kind, kinds with the same ladders for all batches.
    let mut alike: Vec<(Vec<Ladder>, Vec<Kind>)> = Vec::new();
    for kind in KINDS {
        let mut of_kind: Vec<(String, (usize, usize))> = Vec::new();
        for batch in BATCHES {
            let ladder = ladder(|n| shape.way(routine, kind, batch, n));
            match of_kind.last_mut() {
                Some((last, (_, to))) if *last == ladder => *to = batch,
                _ => of_kind.push((ladder, (batch, batch))),
            }
        }
        let of_kind = of_kind.into_iter().map(|(ladder, (from, to))| {
            let batches = match (from, to) {
                (1, to) if to == *BATCHES.end() => "any".to_owned(),
                (from, to) if to == *BATCHES.end() => format!("{from} and more"),
                (from, to) if from == to => format!("{from}"),
                (from, to) => format!("{from} to {to}"),
            };
            (batches, ladder)
        });
        let of_kind: Vec<_> = of_kind.collect();
        match alike.iter_mut().find(|(ladders, _)| *ladders == of_kind) {
            Some((_, kinds)) => kinds.push(kind),
            None => alike.push((of_kind, vec![kind])),
        }
    }
    let mut rows = Vec::new();
    for (ladders, kinds) in alike {
        for (numbers, registers) in blocks(&kinds) {
            for (batches, ladder) in &ladders {
                rows.push(Row {
                    numbers: numbers.clone(),
                    registers: registers.clone(),
                    batches: batches.clone(),
                    ladder: ladder.clone(),
                });
            }
        }
    }
    rows
}

/// Kinds as products of sets: numbers with the same registers stand together.
fn blocks(kinds: &[Kind]) -> Vec<(String, String)> {
    let mut by_number: BTreeMap<(bool, bool), Vec<usize>> = BTreeMap::new();
    for kind in kinds {
        let bytes = if kind.lanes == 1 { 0 } else { kind.lanes * if kind.double { 8 } else { 4 } };
        by_number.entry((kind.complex, kind.double)).or_default().push(bytes);
    }
    let mut by_registers: BTreeMap<Vec<usize>, Vec<&str>> = BTreeMap::new();
    for ((complex, double), bytes) in by_number {
        let name = match (complex, double) {
            (false, false) => "f32",
            (false, true) => "f64",
            (true, false) => "c64",
            (true, true) => "c128",
        };
        by_registers.entry(bytes).or_default().push(name);
    }
    let said = |bytes: &[usize]| match bytes {
        [0, 16, 32, 64] => "any".to_owned(),
        [0] => "none".to_owned(),
        [0, rest @ ..] => format!("none, {} bytes", listed(rest)),
        bytes => format!("{} bytes", listed(bytes)),
    };
    by_registers
        .into_iter()
        .map(|(bytes, names)| {
            let all = names.len() == 4;
            (if all { "any".to_owned() } else { names.join(", ") }, said(&bytes))
        })
        .collect()
}

fn listed(bytes: &[usize]) -> String {
    bytes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The ways of all orders: `to 16 Lanes, to 64 Registers, then Blocked`.
fn ladder(way: impl Fn(usize) -> &'static Way) -> String {
    let mut rungs: Vec<(&str, usize)> = Vec::new();
    let mut look = |n: usize| {
        let name = way(n).name;
        match rungs.last_mut() {
            Some((last, to)) if *last == name => *to = n,
            _ => rungs.push((name, n)),
        }
    };
    (1..=EACH).for_each(&mut look);
    for n in (EACH..ORDERS).step_by(STEP) {
        if way(n).name == way(n + STEP).name {
            look(n + STEP);
        } else {
            (n + 1..=n + STEP).for_each(&mut look);
        }
    }
    let rung = |&(name, to): &(&str, usize)| match to {
        ORDERS if rungs.len() == 1 => format!("`{name}`"),
        ORDERS => format!("then `{name}`"),
        to => format!("to {to} `{name}`"),
    };
    rungs.iter().map(rung).collect::<Vec<_>>().join(", ")
}
