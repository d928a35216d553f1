//! Who works on what: batches in groups, matrices among threads.

pub(crate) mod affinity;
pub(crate) mod cost;
pub(crate) mod few;
pub(crate) mod first_error;
pub(crate) mod groups;
pub(crate) mod lookahead;
pub(crate) mod reduction;
pub(crate) mod routes;
pub(crate) mod schedule;
