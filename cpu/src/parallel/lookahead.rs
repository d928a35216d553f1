//! The factorisation of one large matrix by panels, shared out among threads.
//!
//! Columns are cut into strips, of which the first are panels in their turn. A panel is factored as a
//! whole; what it does to a strip on its right is a task. The update of the next panel comes first and
//! is one task with that panel's factorisation, so that the other threads update what is left in the
//! meantime (look-ahead; Strazdins, "A comparison of lookahead and algorithmic blocking techniques for
//! parallel matrix factorization", TR-CS-98-07, Australian National University, 1998).

use lapax_core::run_tasks;

use crate::Threads;

/// The steps of a factorisation. No two calls have the same panel to factor, or the same strip to
/// update, at the same time.
pub(crate) trait Panels: Sync {
    /// Factors a panel that all panels before it have updated.
    fn factor(&self, panel: usize);

    /// Updates a strip by a panel that is factored; the panels before have updated it.
    fn update(&self, panel: usize, strip: usize);

    /// Ends the work on a panel, when all are factored.
    fn finish(&self, panel: usize);
}

#[derive(Clone, Copy)]
enum Task {
    First,
    Update { panel: usize, strip: usize },
    Finish { panel: usize },
}

/// Takes all steps; the first `panels` of the strips are panels.
pub(crate) fn run(job: &impl Panels, panels: usize, strips: usize, threads: &dyn Threads) {
    let updates = (0..panels)
        .flat_map(|panel| (panel + 1..strips).map(move |strip| Task::Update { panel, strip }));
    let first = (panels > 0).then_some(Task::First);
    let tasks: Vec<_> = first
        .into_iter()
        .chain(updates)
        .chain((0..panels).map(|panel| Task::Finish { panel }))
        .collect();
    // A strip's stage counts the panels that have updated it, and its own factorisation.
    run_tasks(threads, strips, tasks.len(), strips, |task, stages| match tasks[task] {
        Task::First => {
            job.factor(0);
            stages.advance(0);
        }
        Task::Update { panel, strip } => {
            if !(stages.wait(strip, panel) && stages.wait(panel, panel + 1)) {
                return;
            }
            job.update(panel, strip);
            stages.advance(strip);
            if strip == panel + 1 && strip < panels {
                job.factor(strip);
                stages.advance(strip);
            }
        }
        Task::Finish { panel } => {
            if stages.wait(panels - 1, panels) {
                job.finish(panel);
            }
        }
    });
}
