//! The reduction of one large matrix column by column, by all threads.
//!
//! Columns are cut into panels, and into strips of one panel or several. What takes the time, a product of the
//! rest of the matrix with each column's vector, is cut into groups of columns; after a panel each strip is
//! updated by itself. Where the cuts are depends on the sizes alone, so that the number of threads changes no bit.

use std::ops::Range;

use lapax_core::{Stages, run_tasks};

use super::affinity::Claims;
use crate::Threads;
use crate::simd::chunks::TOGETHER;

/// The order below which the rest of a matrix is reduced by one thread.
pub(crate) const LEFT: usize = 192;
/// The least columns of a group, and the groups at most. Of 128 columns `gehrd` of 512 in c128 takes 43 ms on two
/// cores with AVX-512, of 64 36.
const GROUP: usize = 64;
pub(crate) const GROUPS: usize = 8;

/// How far the job has come: columns reduced, groups summed, strips updated.
const COLUMNS: usize = 0;
const PRODUCTS: usize = 1;
const UPDATES: usize = 2;

/// The steps of a reduction.
pub(crate) trait Reduction: Sync {
    /// The columns of a panel and of a strip.
    const PANEL: usize;
    const STRIP: usize;
    /// Whether a panel has a product with the rows above it, by which its own strip is updated, too.
    const ABOVE: bool = false;

    /// What is left of column `column − 1` of a panel, once its products are known, and the reflector of
    /// column `column`, where the panel has it.
    fn column(&self, panel: usize, column: usize);

    /// The columns of a group, counted as panels are, of those from `first` to `order`.
    fn group_columns(order: usize, first: usize, group: usize) -> Range<usize> {
        group_columns(first..order, group)
    }

    /// One group of what a column's products consist of.
    fn product(&self, panel: usize, column: usize, group: usize);

    /// One group of the product of a panel with the rows above it.
    fn above(&self, _panel: usize, _group: usize) {}

    /// The sum of these.
    fn gather(&self, _panel: usize) {}

    /// The update of a strip after a panel.
    fn update(&self, panel: usize, strip: usize);
}

enum Work {
    Column {
        panel: usize,
        column: usize,
    },
    /// One group, whichever.
    Product {
        panel: usize,
        column: usize,
    },
    Above {
        panel: usize,
        group: usize,
    },
    Gather {
        panel: usize,
    },
    /// One strip, whichever.
    Update {
        panel: usize,
    },
}

/// Work, and how far which stage must have come before it.
struct Task {
    work: Work,
    after: (usize, usize),
}

/// So many panels of the first `order` of so many columns of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    pub(crate) columns: usize,
    pub(crate) order: usize,
    pub(crate) panels: usize,
}

impl Panels {
    /// The strips that a panel updates.
    fn strips<R: Reduction>(self, panel: usize) -> Range<usize> {
        let updated = if R::ABOVE { panel } else { panel + 1 } * R::PANEL;
        updated / R::STRIP..self.columns.div_ceil(R::STRIP)
    }

    /// The groups of a column's products.
    fn groups<R: Reduction>(self, panel: usize, column: usize) -> usize {
        groups(self.order - panel * R::PANEL - column - 1)
    }

    /// The group to which a strip's columns belonged in a panel's last products.
    fn group_of<R: Reduction>(self, panel: usize, strip: usize) -> usize {
        let first = (panel + 1) * R::PANEL;
        let middle = (strip * R::STRIP + R::STRIP / 2).max(first);
        let last = self.groups::<R>(panel, R::PANEL - 1) - 1;
        let within = |&group: &usize| R::group_columns(self.order, first, group).end > middle;
        (0..last).find(within).unwrap_or(last)
    }
}

/// Takes all steps.
pub(crate) fn run<R: Reduction>(job: &R, panels: Panels, threads: &dyn Threads) {
    let tasks = tasks::<R>(panels);
    let strips = Claims::new(panels.columns.div_ceil(R::STRIP));
    let run = Run { job, panels, groups: Claims::new(GROUPS), strips };
    run_tasks(threads, GROUPS, tasks.len(), 3, |task, stages| run.take(&tasks[task], stages));
}

struct Run<'a, R> {
    job: &'a R,
    panels: Panels,
    groups: Claims,
    strips: Claims,
}

impl<R: Reduction> Run<'_, R> {
    fn take(&self, task: &Task, stages: &Stages<'_>) {
        let Self { job, panels, groups, strips } = self;
        let (stage, steps) = task.after;
        if !stages.wait(stage, steps) {
            return;
        }
        let stage = match task.work {
            Work::Column { panel, column } => {
                job.column(panel, column);
                COLUMNS
            }
            Work::Product { panel, column } => {
                let all = 0..panels.groups::<R>(panel, column);
                let own = |group| groups.is_own(group);
                job.product(panel, column, groups.take(all, panel * R::PANEL + column, own));
                PRODUCTS
            }
            Work::Above { panel, group } => {
                job.above(panel, group);
                PRODUCTS
            }
            Work::Gather { panel } => {
                job.gather(panel);
                COLUMNS
            }
            Work::Update { panel } => {
                let own = |strip| groups.is_own(panels.group_of::<R>(panel, strip));
                job.update(panel, strips.take(panels.strips::<R>(panel), panel, own));
                UPDATES
            }
        };
        stages.advance(stage);
    }
}

/// The work in an order in which it can be done.
fn tasks<R: Reduction>(panels: Panels) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut done = [0; 3];
    let mut add = |work, after: usize, stage: usize| {
        tasks.push(Task { work, after: (after, done[after]) });
        done[stage] += 1;
    };
    for panel in 0..panels.panels {
        add(Work::Column { panel, column: 0 }, UPDATES, COLUMNS);
        for column in 0..R::PANEL {
            for _ in 0..panels.groups::<R>(panel, column) {
                add(Work::Product { panel, column }, COLUMNS, PRODUCTS);
            }
            add(Work::Column { panel, column: column + 1 }, PRODUCTS, COLUMNS);
        }
        if R::ABOVE {
            for group in 0..panels.groups::<R>(panel, 0) {
                add(Work::Above { panel, group }, COLUMNS, PRODUCTS);
            }
            add(Work::Gather { panel }, PRODUCTS, COLUMNS);
        }
        for _ in panels.strips::<R>(panel) {
            add(Work::Update { panel }, COLUMNS, UPDATES);
        }
    }
    tasks
}

/// How many groups so many columns are cut into.
pub(crate) fn groups(columns: usize) -> usize {
    (columns / GROUP).clamp(1, GROUPS)
}

/// The columns of a group.
pub(crate) fn group_columns(columns: Range<usize>, group: usize) -> Range<usize> {
    let width = (columns.len() / groups(columns.len())).next_multiple_of(TOGETHER);
    let start = columns.start + group * width;
    let end = if group + 1 == groups(columns.len()) { columns.end } else { start + width };
    start.min(columns.end)..end.min(columns.end)
}
