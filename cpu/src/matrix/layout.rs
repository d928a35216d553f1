//! How a matrix lies in memory.

/// A matrix whose lines lie one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Strides {
    row: usize,
    column: usize,
}

impl Strides {
    /// Of an m × n matrix.
    pub(crate) fn new(order: Layout, m: usize, n: usize) -> Self {
        match order {
            Layout::Rows => Self { row: n, column: 1 },
            Layout::Columns => Self { row: 1, column: m },
        }
    }

    pub(crate) fn at(self, i: usize, j: usize) -> usize {
        i * self.row + j * self.column
    }
}

/// Which of the two a matrix is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Q.
    Q,
    /// Qᴴ.
    Adjoint,
}

/// How the matrices of a batch lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Columns,
    Rows,
}
