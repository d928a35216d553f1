//! A matrix in memory: how it lies, and how it is copied, turned and cut.

pub(crate) mod blocks;
pub(crate) mod exponential;
pub(crate) mod hermitian;
pub(crate) mod layout;
pub(crate) mod panel;
pub(crate) mod phase;
pub(crate) mod results;
pub(crate) mod rows;
pub(crate) mod strips;
pub(crate) mod transpose;
pub(crate) mod triangle;
