//! The LAPACK backend: that each adapter calls its routine with the right arguments, what it does
//! where LAPACK is not called, and which library it is. Accuracy is for the tests that run on every
//! backend.

mod contract;
mod library;
mod phases;
mod sample;
mod spectral;
mod systems;
